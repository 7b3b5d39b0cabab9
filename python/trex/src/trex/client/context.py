"""Context that TRex's components share."""

from __future__ import annotations

import random
from typing import Any

from trex.client.events import EventsHandler


class TRexCtx:
    """User, session and connection of a client, as its `ctx`.

    TRex components that connect to their own server take one.
    """

    def __init__(
        self,
        api_ver: Any,
        username: str,
        server: str,
        sync_port: int,
        async_port: int,
        logger: Any,
        sync_timeout: float | None = None,
        async_timeout: float | None = None,
    ) -> None:
        self.api_ver = api_ver
        self.username = username
        self.session_id = random.randrange(1, 1 << 32)
        self.event_handler = EventsHandler()
        self.server = server
        self.sync_port = sync_port
        self.async_port = async_port
        self.logger = logger
        self.server_version: dict[str, Any] | None = None
        self.system_info: dict[str, Any] | None = None
        self.sync_timeout = sync_timeout
        self.async_timeout = async_timeout
