"""Methods of TRex's client for what the engine does not have, each of which says so."""

from __future__ import annotations

from typing import Any, NoReturn

from trex.errors import TRexError

_TAGS = "tagged packet groups are not there: STLFlowStats and STLFlowLatencyStats measure streams"
_MEMORY = "the engine has no pools of packet memory: get_stats()['global'] has the CPU's load"


class Absent:
    """Raises `TRexError` where something does not exist; what removes it has nothing to do."""

    # Tagged packet groups.

    def enable_tpg(self, num_tpgids: int, tags: Any, rx_ports: Any = None) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def disable_tpg(self, username: str | None = None, surpress_log: bool = False) -> None:
        """There are none to disable."""

    def get_tpg_status(self, username: str | None = None, port: int | None = None) -> Any:
        """None are enabled."""
        return {"enabled": False}

    def update_tpg_tags(self, new_tags: Any, clear: bool = False) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_tags(
        self,
        min_tag: int = 0,
        max_tag: int | None = None,
        username: str | None = None,
        port: int | None = None,
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_stats(
        self,
        port: int,
        tpgid: int,
        min_tag: int,
        max_tag: int,
        max_sections: int = 50,
        unknown_tag: bool = False,
        untagged: bool = False,
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def clear_tpg_stats(
        self,
        port: int,
        tpgid: int,
        min_tag: int = 0,
        max_tag: int | None = None,
        tag_list: Any = None,
        unknown_tag: bool = False,
        untagged: bool = False,
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_tx_stats(self, port: int, tpgid: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def clear_tpg_tx_stats(self, port: int, tpgid: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_unknown_tags(self, port: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def clear_tpg_unknown_tags(self, port: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_util_stats(self) -> NoReturn:
        """Not there."""
        raise TRexError(_MEMORY)
