"""Commands for tagged packet groups of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trex.arguments import validate_type
from trex.client.tagged_groups import TagTable
from trex.errors import TRexError

_NOT_ENABLED = "tagged packet groups are not enabled; call enable_tpg() first"
# States of the server: the receiving ports are ready, the groups count, their memory is free.
_PREPARED, _ENABLED, _FREED = 2, 3, 5
# Tags of an answer, and counters of a request that clears them.
_TAGS_MAX, _CLEARED_MAX = 500, 2048


class RemoteTaggedGroupCommands:
    """Counters of streams with `STLTaggedPktGroup`, which the server keeps."""

    _call: Callable[..., Any]
    _call_all: Callable[..., list[Any]]
    _numbers: Callable[..., list[int]]
    _acquired_ports: Callable[..., list[int]]
    _require_session: Callable[[], None]
    get_acquired_ports: Callable[[], list[int]]
    _username: str
    _session_id: int
    _is_connected: bool

    def enable_tpg(self, num_tpgids: int, tags: Any, rx_ports: Any = None) -> None:
        """Starts to count the groups 0 to `num_tpgids` - 1.

        :param tags: known tags, numbered from 0; see `STLTaggedPktGroupTagConf`
        :param rx_ports: receiving ports; default: all acquired ports
        """
        self._require_session()
        validate_type("num_tpgids", num_tpgids, int)
        TagTable(tags)
        user = {"username": self._username}
        self._call(
            "enable_tpg",
            **user,
            session_id=self._session_id,
            ports=self.get_acquired_ports(),
            rx_ports=self._acquired_ports(rx_ports),
            num_tpgids=num_tpgids,
            tags=tags,
        )
        for state in (_PREPARED, _ENABLED):
            self._expect_state(self._username, state)
            if state == _PREPARED:
                self._call("enable_tpg", **user)

    def disable_tpg(self, username: str | None = None, surpress_log: bool = False) -> None:
        """Stops counting and deletes the groups."""
        user = self._username if username is None else username
        self._call("disable_tpg", username=user)
        self._expect_state(user, _FREED)
        self._call("disable_tpg", username=user)

    def _expect_state(self, user: str, expected: int) -> None:
        state = self._call("get_tpg_state", username=user)
        if state != expected:
            raise TRexError(f"tagged packet groups: state {state} of the server, not {expected}")

    @property
    def tpg_status(self) -> dict[str, Any] | None:
        """Same as `get_tpg_status`; None without a session."""
        return self.get_tpg_status() if self._is_connected else None

    def get_tpg_status(
        self, username: str | None = None, port: int | None = None
    ) -> dict[str, Any]:
        """Returns whether groups are counted, and at which ports."""
        found: dict[str, Any] = self._call("get_tpg_status", **self._whose(username, port))
        return found

    def _whose(self, username: str | None, port: int | None) -> dict[str, Any]:
        if username is not None and port is not None:
            raise TRexError("expected either username or port")
        if port is None:
            return {"username": self._username if username is None else username}
        (number,) = self._numbers(port)
        return {"port_id": number}

    def update_tpg_tags(self, new_tags: Any, clear: bool = False) -> None:
        """Changes tags by `tag_id`; the type None removes a tag.

        :param clear: reset the counters of the changed tags
        """
        validate_type("new_tags", new_tags, list)
        self._call("update_tpg_tags", username=self._username, tags=new_tags)
        if not clear or not new_tags:
            return
        status = self.get_tpg_status()["data"]
        numbers = [tag["tag_id"] for tag in new_tags]
        step = max(_CLEARED_MAX // len(numbers), 1)
        self._call_all(
            (
                "clear_updated",
                {
                    "username": self._username,
                    "port_id": port,
                    "min_tpgid": first,
                    "max_tpgid": min(first + step, status["num_tpgids"]),
                    "tag_list": numbers[at : at + _CLEARED_MAX],
                },
            )
            for port in status["rx_ports"]
            for first in range(0, status["num_tpgids"], step)
            for at in range(0, len(numbers), _CLEARED_MAX)
        )

    def get_tpg_tags(
        self,
        min_tag: int = 0,
        max_tag: int | None = None,
        username: str | None = None,
        port: int | None = None,
    ) -> list[dict[str, Any] | None]:
        """Returns the tags from `min_tag` to before `max_tag`; None for removed ones."""
        whose = self._whose(username, port)
        status = self._call("get_tpg_status", **whose)
        if not status["enabled"]:
            raise TRexError(_NOT_ENABLED)
        end = status["data"]["num_tags"] if max_tag is None else max_tag
        requests = [
            ("get_tpg_tags", {**whose, "min_tag": at, "max_tag": min(at + _TAGS_MAX, end)})
            for at in range(min_tag, end, _TAGS_MAX)
        ]
        return [tag for found in self._call_all(requests) for tag in found]

    def get_tpg_stats(
        self,
        port: int,
        tpgid: int,
        min_tag: int,
        max_tag: int,
        max_sections: int = 50,
        unknown_tag: bool = False,
        untagged: bool = False,
    ) -> tuple[dict[str, Any], int | None]:
        """Returns the received counters of a group at a port, for the tags from `min_tag` to before
        `max_tag`.

        :param max_sections: maximum number of sections; adjacent tags with equal counters share
            one, such as `3-7`
        :param unknown_tag: include frames with unknown tags
        :param untagged: include untagged frames
        :returns: counters by port, group and tag, and the first tag that is not included; None
            without a range of tags
        """
        (number,) = self._numbers(port)
        others = {"unknown_tag": unknown_tag, "untagged": untagged}
        found: dict[str, Any] = {}
        next_tag = min_tag
        for _ in range(max_sections):
            request = {"port_id": number, "tpgid": tpgid, "min_tag": next_tag, "max_tag": max_tag}
            answer = self._call("get_tpg_stats", **request, **(others if not found else {}))
            sections: dict[str, Any] = answer[str(number)][str(tpgid)]
            found.update(sections)
            if min_tag == max_tag:
                break
            (name,) = (name for name in sections if name[0].isdigit())
            next_tag = int(name.split("-")[-1]) + 1
            if next_tag == max_tag:
                break
        return {str(number): {str(tpgid): found}}, next_tag if max_tag > min_tag else None

    def clear_tpg_stats(
        self,
        port: int,
        tpgid: int,
        min_tag: int = 0,
        max_tag: int | None = None,
        tag_list: Any = None,
        unknown_tag: bool = False,
        untagged: bool = False,
    ) -> None:
        """Resets the received counters of a group at a port, for a range or list of tags."""
        if (max_tag is None) == (not tag_list):
            raise TRexError("expected either max_tag or tag_list")
        (number,) = self._numbers(port)
        tags = {"min_tag": min_tag, "max_tag": max_tag} if tag_list is None else {}
        self._call(
            "clear_tpg_stats",
            port_id=number,
            tpgid=tpgid,
            unknown_tag=unknown_tag,
            untagged=untagged,
            **(tags or {"tag_list": tag_list}),
        )

    def get_tpg_tx_stats(self, port: int, tpgid: int) -> dict[str, Any]:
        """Returns the sent counters of a group at a port."""
        (number,) = self._numbers(port)
        found: dict[str, Any] = self._call("get_tpg_tx_stats", port_id=number, tpgid=tpgid)
        return found

    def clear_tpg_tx_stats(self, port: int, tpgid: int) -> None:
        """Resets the sent counters of a group at a port."""
        (number,) = self._numbers(port)
        self._call("clear_tpg_tx_stats", port_id=number, tpgid=tpgid)

    def get_tpg_unknown_tags(self, port: int) -> dict[str, list[dict[str, Any]]]:
        """Returns the first ten unknown tags that a port received, each once with its group."""
        (number,) = self._numbers(port)
        found: dict[str, list[dict[str, Any]]] = self._call("get_tpg_unknown_tags", port_id=number)
        return found

    def clear_tpg_unknown_tags(self, port: int) -> None:
        """Clears the unknown tags of a port."""
        (number,) = self._numbers(port)
        self._call("clear_tpg_unknown_tags", port_id=number)

    def _end_groups(self, ports: list[int] | None = None) -> None:
        """Ends the own groups; with ports, those of any user at them."""
        whose = (
            [{"username": self._username}] if ports is None else [{"port_id": it} for it in ports]
        )
        for one in whose:
            status = self._call("get_tpg_status", **one)
            if status["enabled"]:
                self.disable_tpg(status["data"]["username"])
