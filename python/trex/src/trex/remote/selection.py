"""Choice between the engine of this process and a server.

A client uses a server if the environment variable `WIRESTORM_TREX_PORTS` is `server`, or if its
argument `server` has the form `tcp://HOST`. Other values of `server` have no effect, because
TRex's scripts name `127.0.0.1` or `localhost`, and run in this process without changes.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from trex.client.configuration import PORTS, SERVER
from trex.errors import TRexError

SCHEME = "tcp://"
_DEFAULT_HOST = "localhost"


def uses_server(arguments: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns whether a client with these arguments uses a server."""
    server = kwargs.get("server", arguments[1] if len(arguments) > 1 else _DEFAULT_HOST)
    is_named = isinstance(server, str) and server.startswith(SCHEME)
    return is_named or os.environ.get(PORTS, "").strip() == SERVER


def remote(cls: type, local: type, module: str) -> type:
    """Returns the class of a client with a server: the one in `module` for `local`.

    The module derives its class from `local`, so it is imported here, by name.

    Raises `TRexError` for other classes, whose methods would not replace those of the server.
    """
    of_server: type = getattr(importlib.import_module(module), f"Remote{local.__name__}")
    if cls is local or issubclass(cls, of_server):
        return of_server if cls is local else cls
    raise TRexError(
        f"{cls.__name__} is derived from {local.__name__}, which runs in this process: derive it "
        f"from {module}.{of_server.__name__} for a server"
    )


def host_and_port(server: str, sync_port: int) -> tuple[str, int]:
    """Returns the address of the requests: of `HOST`, `tcp://HOST` or `tcp://HOST:PORT`."""
    address = server.removeprefix(SCHEME) if server.startswith(SCHEME) else server
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]") or ":" in host.strip("[]") and not host.startswith("["):
        host, port = address, str(sync_port)
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise TRexError(f"server {server!r}: expected HOST, tcp://HOST or tcp://HOST:PORT")
    return host, int(port)
