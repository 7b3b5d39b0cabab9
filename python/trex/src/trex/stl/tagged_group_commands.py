"""Commands for tagged packet groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trex.arguments import validate_type
from trex.client.session import Session
from trex.client.tagged_groups import UNKNOWN, UNTAGGED, TaggedGroups, TagTable
from trex.errors import TRexArgumentError, TRexError


class TaggedGroupCommands(Session):
    """Counters of streams with `STLTaggedPktGroup` by the VLAN tags of received frames.

    The commands check their arguments. The methods `_tpg_...` do the work, with the engine of this
    process; a client of a server replaces them.
    """

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self._tagged: TaggedGroups | None = None

    def enable_tpg(self, num_tpgids: int, tags: Any, rx_ports: Any = None) -> None:
        """Starts to count the groups 0 to `num_tpgids` - 1.

        :param tags: known tags, numbered from 0; see `STLTaggedPktGroupTagConf`
        :param rx_ports: receiving ports; default: all acquired ports
        """
        self._require_session()
        validate_type("num_tpgids", num_tpgids, int)
        if self.get_tpg_status()["enabled"]:
            raise TRexError("tagged packet groups are enabled already; call disable_tpg() first")
        self._tpg_enable(num_tpgids, TagTable(tags), self._acquired_ports(rx_ports))

    def disable_tpg(self, username: str | None = None, surpress_log: bool = False) -> None:
        """Stops counting and deletes the groups."""
        self._enabled_tpg(username)
        self._tpg_disable(self._username if username is None else username)

    @property
    def tpg_status(self) -> dict[str, Any] | None:
        """Same as `get_tpg_status`; None without a session."""
        return self.get_tpg_status() if self._is_connected else None

    def get_tpg_status(
        self, username: str | None = None, port: int | None = None
    ) -> dict[str, Any]:
        """Returns whether groups are counted, and at which ports."""
        self._require_session()
        if username is not None and port is not None:
            raise TRexError("expected either username or port")
        if port is not None:
            return self._tpg_status_of_port(self._numbers(port)[0])
        return self._tpg_status_of_user(self._username if username is None else username)

    def update_tpg_tags(self, new_tags: Any, clear: bool = False) -> None:
        """Changes tags by `tag_id`; the type None removes a tag.

        :param clear: reset the counters of the changed tags
        """
        groups = self._enabled_tpg()
        validate_type("new_tags", new_tags, list)
        self._tpg_update(groups, new_tags, clear)

    def get_tpg_tags(
        self,
        min_tag: int = 0,
        max_tag: int | None = None,
        username: str | None = None,
        port: int | None = None,
    ) -> list[dict[str, Any] | None]:
        """Returns the tags from `min_tag` to before `max_tag`; None for removed ones."""
        groups = self._enabled_tpg(username, port)
        count = groups["num_tags"]
        tags = _tag_range(min_tag, count if max_tag is None else max_tag, count, True)
        return self._tpg_tags(groups["username"], tags)

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
        number, groups = self._receiving_tpg(port)
        _check_group(groups, tpgid)
        others = _others(unknown_tag, untagged)
        tags = _tag_range(min_tag, max_tag, groups["num_tags"], bool(others))
        validate_type("max_sections", max_sections, int)
        found, next_tag = self._tpg_received(number, tpgid, tags, max_sections, others)
        return {str(number): {str(tpgid): found}}, next_tag if tags else None

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
        number, groups = self._receiving_tpg(port)
        _check_group(groups, tpgid)
        if (max_tag is None) == (not tag_list):
            raise TRexError("expected either max_tag or tag_list")
        others = _others(unknown_tag, untagged)
        count = groups["num_tags"]
        if max_tag is not None:
            tags: range | list[int] = _tag_range(min_tag, max_tag, count, bool(others))
        else:
            validate_type("tag_list", tag_list, list)
            tags = tag_list
            if any(tag not in range(count) for tag in tags):
                raise TRexArgumentError("tag_list", tags, f"0 to {count - 1}")
        self._tpg_clear_received(number, tpgid, tags, others)

    def get_tpg_tx_stats(self, port: int, tpgid: int) -> dict[str, Any]:
        """Returns the sent counters of a group at a port."""
        number, groups = self._sending_tpg(port)
        _check_group(groups, tpgid)
        return {str(number): {str(tpgid): self._tpg_sent(number, tpgid)}}

    def clear_tpg_tx_stats(self, port: int, tpgid: int) -> None:
        """Resets the sent counters of a group at a port."""
        number, groups = self._sending_tpg(port)
        _check_group(groups, tpgid)
        self._tpg_clear_sent(number, tpgid)

    def get_tpg_unknown_tags(self, port: int) -> dict[str, list[dict[str, Any]]]:
        """Returns the unknown tags that a port received, each once with its group; of a server the
        first ten.
        """
        number, _ = self._receiving_tpg(port)
        return {str(number): self._tpg_unknown(number)}

    def clear_tpg_unknown_tags(self, port: int) -> None:
        """Clears the unknown tags of a port."""
        number, _ = self._receiving_tpg(port)
        self._tpg_clear_unknown(number)

    def _enabled_tpg(self, username: str | None = None, port: int | None = None) -> dict[str, Any]:
        """Returns the `data` of the status of enabled groups."""
        status = self.get_tpg_status(username, port)
        if not status["enabled"]:
            raise TRexError("tagged packet groups are not enabled; call enable_tpg() first")
        data: dict[str, Any] = status["data"]
        return data

    def _sending_tpg(self, port: int) -> tuple[int, dict[str, Any]]:
        """Returns the number of a port and its groups."""
        validate_type("port", port, int)
        groups = self._enabled_tpg(port=port)
        return self._numbers(port)[0], groups

    def _receiving_tpg(self, port: int) -> tuple[int, dict[str, Any]]:
        """Returns the number of a receiving port and its groups."""
        number, groups = self._sending_tpg(port)
        if number not in groups["rx_ports"]:
            raise TRexArgumentError("port", port, ", ".join(map(str, groups["rx_ports"])))
        return number, groups

    def _discard_groups(self, ports: Iterable[int]) -> None:
        status = self.get_tpg_status()
        if status["enabled"] and not set(ports).isdisjoint(status["data"]["acquired_ports"]):
            self._tpg_disable(self._username)

    # With the engine of this process, which has the groups of this client alone.

    def _tagged_groups(self) -> TaggedGroups:
        assert self._tagged is not None, "a command checks that groups are enabled"
        return self._tagged

    def _collected_groups(self, group: int | None = None) -> TaggedGroups:
        """Returns the groups with the current counters, of all groups or of one."""
        groups = self._tagged_groups()
        groups.collect(group)
        return groups

    def _collect_group_counters(self) -> None:
        if self._tagged is not None:
            self._tagged.collect()

    def _tpg_enable(self, count: int, table: TagTable, rx_ports: list[int]) -> None:
        acquired = self.get_acquired_ports()
        self._tagged = TaggedGroups(self.links, acquired, rx_ports, count, table)

    def _tpg_disable(self, username: str) -> None:
        self._tagged = None

    def _tpg_status_of_user(self, username: str) -> dict[str, Any]:
        return self._tpg_document(self._tagged if username == self._username else None)

    def _tpg_status_of_port(self, port: int) -> dict[str, Any]:
        has_port = self._tagged is not None and port in self._tagged.acquired
        return self._tpg_document(self._tagged if has_port else None)

    def _tpg_document(self, groups: TaggedGroups | None) -> dict[str, Any]:
        data: dict[str, Any] = {
            "acquired_ports": list(groups.acquired) if groups else [],
            "rx_ports": list(groups.rx_ports) if groups else [],
            "username": self._username if groups else "-",
            "num_tpgids": groups.count if groups else 0,
            "num_tags": len(groups.table) if groups else 0,
        }
        return {"enabled": groups is not None, "data": data}

    def _tpg_update(self, groups: dict[str, Any], changes: list[Any], clear: bool) -> None:
        self._tagged_groups().update(changes, clear)

    def _tpg_tags(self, username: str, tags: range) -> list[dict[str, Any] | None]:
        return self._tagged_groups().table.documents(tags.start, tags.stop)

    def _tpg_received(
        self, port: int, group: int, tags: range, limit: int, others: list[str]
    ) -> tuple[dict[str, Any], int]:
        """Returns at most `limit` sections of tags and the `others`, and the first tag that is not
        included.
        """
        groups = self._collected_groups(group)
        found, next_tag = groups.sections(port, group, tags, limit)
        found.update({name: groups.received(port, group, name) for name in others})
        return found, next_tag

    def _tpg_clear_received(
        self, port: int, group: int, tags: range | list[int], others: list[str]
    ) -> None:
        self._collected_groups(group).clear_received(port, group, [*tags, *others])

    def _tpg_sent(self, port: int, group: int) -> dict[str, int]:
        return self._collected_groups(group).sent(port, group)

    def _tpg_clear_sent(self, port: int, group: int) -> None:
        self._collected_groups(group).clear_sent(port, group)

    def _tpg_unknown(self, port: int) -> list[dict[str, Any]]:
        return self._collected_groups().unknown(port)

    def _tpg_clear_unknown(self, port: int) -> None:
        self._collected_groups().clear_unknown(port)


def _check_group(groups: dict[str, Any], tpgid: int) -> None:
    validate_type("tpgid", tpgid, int)
    count = groups["num_tpgids"]
    if not 0 <= tpgid < count:
        raise TRexArgumentError("tpgid", tpgid, f"0 to {count - 1}")


def _tag_range(first: int, end: int, count: int, may_be_empty: bool) -> range:
    for name, value in (("min_tag", first), ("max_tag", end)):
        validate_type(name, value, int)
    if not 0 <= first <= end <= count or (first == end and not may_be_empty):
        raise TRexError(
            f"min_tag {first} and max_tag {end}: expected 0 <= min_tag < max_tag <= {count}"
        )
    return range(first, end)


def _others(unknown_tag: bool, untagged: bool) -> list[str]:
    """Returns the names of the chosen counters beside those by tag."""
    validate_type("unknown_tag", unknown_tag, bool)
    validate_type("untagged", untagged, bool)
    return [UNTAGGED] * untagged + [UNKNOWN] * unknown_tag
