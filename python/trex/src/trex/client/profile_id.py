"""Names of profiles on ports: `0`, `0.imix`, `0.*`."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexArgumentError

DEFAULT_PROFILE_ID = "_"
ALL_PROFILES = "*"


class PortProfileID:
    """Port number and profile name; the default name is `_`."""

    def __init__(self, port_str: Any) -> None:
        text = str(port_str)
        number, _, name = text.partition(".")
        if isinstance(port_str, bool) or not number.isdigit() or "." in name:
            raise TRexArgumentError("ports", port_str, "numbers of ports, or NUMBER.PROFILE")
        self.port_id = int(number)
        self.profile_id = name or DEFAULT_PROFILE_ID

    @property
    def profile_name(self) -> str:
        """Name as `NUMBER.PROFILE`."""
        return f"{self.port_id}.{self.profile_id}"

    def __int__(self) -> int:
        return self.port_id

    __index__ = __int__

    def __str__(self) -> str:
        return self.profile_name

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash((self.port_id, self.profile_id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PortProfileID) and str(self) == str(other)
