"""Tagged packet groups of a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trex.client.tagged_groups import TagTable
from trex.errors import TRexError

# States of the server: the receiving ports are ready, the groups count, their memory is free.
_PREPARED, _ENABLED, _FREED = 2, 3, 5
# Tags of an answer, and counters of a request that clears them.
_TAGS_MAX, _CLEARED_MAX = 500, 2048


class RemoteTaggedGroups:
    """The work of `TaggedGroupCommands` at a server, which has the groups of all its users."""

    _call: Callable[..., Any]
    _call_all: Callable[..., list[Any]]
    get_acquired_ports: Callable[[], list[int]]
    get_tpg_status: Callable[..., dict[str, Any]]
    _username: str
    _session_id: int

    def _tpg_enable(self, count: int, table: TagTable, rx_ports: list[int]) -> None:
        user = {"username": self._username}
        self._call(
            "enable_tpg",
            **user,
            session_id=self._session_id,
            ports=self.get_acquired_ports(),
            rx_ports=rx_ports,
            num_tpgids=count,
            tags=table.documents(0, len(table)),
        )
        self._expect_state(self._username, _PREPARED)
        self._call("enable_tpg", **user)
        self._expect_state(self._username, _ENABLED)

    def _tpg_disable(self, username: str) -> None:
        self._call("disable_tpg", username=username)
        self._expect_state(username, _FREED)
        self._call("disable_tpg", username=username)

    def _expect_state(self, user: str, expected: int) -> None:
        state = self._call("get_tpg_state", username=user)
        if state != expected:
            raise TRexError(f"tagged packet groups: state {state} of the server, not {expected}")

    def _tpg_status_of_user(self, username: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("get_tpg_status", username=username)
        return found

    def _tpg_status_of_port(self, port: int) -> dict[str, Any]:
        found: dict[str, Any] = self._call("get_tpg_status", port_id=port)
        return found

    def _tpg_update(self, groups: dict[str, Any], changes: list[Any], clear: bool) -> None:
        self._call("update_tpg_tags", username=self._username, tags=changes)
        if not clear or not changes:
            return
        numbers = [tag["tag_id"] for tag in changes]
        step = max(_CLEARED_MAX // len(numbers), 1)
        self._call_all(
            (
                "clear_updated",
                {
                    "username": self._username,
                    "port_id": port,
                    "min_tpgid": first,
                    "max_tpgid": min(first + step, groups["num_tpgids"]),
                    "tag_list": numbers[at : at + _CLEARED_MAX],
                },
            )
            for port in groups["rx_ports"]
            for first in range(0, groups["num_tpgids"], step)
            for at in range(0, len(numbers), _CLEARED_MAX)
        )

    def _tpg_tags(self, username: str, tags: range) -> list[dict[str, Any] | None]:
        parts = (tags[at : at + _TAGS_MAX] for at in range(0, len(tags), _TAGS_MAX))
        answers = self._call_all(
            ("get_tpg_tags", {"username": username, "min_tag": part.start, "max_tag": part.stop})
            for part in parts
        )
        return [tag for answer in answers for tag in answer]

    def _tpg_received(
        self, port: int, group: int, tags: range, limit: int, others: list[str]
    ) -> tuple[dict[str, Any], int]:
        def ask(first: int, end: int, **flags: bool) -> dict[str, Any]:
            request = {"port_id": port, "tpgid": group, "min_tag": first, "max_tag": end}
            answer = self._call("get_tpg_stats", **request, **flags)
            found: dict[str, Any] = answer[str(port)][str(group)]
            return found

        found: dict[str, Any] = {}
        next_tag = tags.start
        # An answer has one section.
        while next_tag < tags.stop and len(found) < limit:
            section = ask(next_tag, tags.stop)
            (name,) = section
            found.update(section)
            next_tag = int(name.split("-")[-1]) + 1
        if others:
            found.update(ask(tags.start, tags.start, **dict.fromkeys(others, True)))
        return found, next_tag

    def _tpg_clear_received(
        self, port: int, group: int, tags: range | list[int], others: list[str]
    ) -> None:
        chosen: dict[str, Any] = {"tag_list": tags}
        if isinstance(tags, range):
            chosen = {"min_tag": tags.start, "max_tag": tags.stop}
        flags = dict.fromkeys(others, True)
        self._call("clear_tpg_stats", port_id=port, tpgid=group, **chosen, **flags)

    def _tpg_sent(self, port: int, group: int) -> dict[str, int]:
        answer = self._call("get_tpg_tx_stats", port_id=port, tpgid=group)
        found: dict[str, int] = answer[str(port)][str(group)]
        return found

    def _tpg_clear_sent(self, port: int, group: int) -> None:
        self._call("clear_tpg_tx_stats", port_id=port, tpgid=group)

    def _tpg_unknown(self, port: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("get_tpg_unknown_tags", port_id=port)[str(port)]
        return found

    def _tpg_clear_unknown(self, port: int) -> None:
        self._call("clear_tpg_unknown_tags", port_id=port)

    def _end_groups(self, ports: Iterable[int]) -> None:
        """Ends the groups of any user at ports."""
        for port in ports:
            status = self.get_tpg_status(port=port)
            if status["enabled"]:
                self._tpg_disable(status["data"]["username"])
