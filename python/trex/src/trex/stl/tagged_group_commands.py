"""Commands for tagged packet groups."""

from __future__ import annotations

from typing import Any

from trex.arguments import validate_type
from trex.client.session import Session
from trex.client.tagged_groups import UNKNOWN, UNTAGGED, TaggedGroups, TagTable
from trex.errors import TRexArgumentError, TRexError

_NOT_ENABLED = "tagged packet groups are not enabled; call enable_tpg() first"


class TaggedGroupCommands(Session):
    """Counters of streams with `STLTaggedPktGroup` by the VLAN tags of received frames."""

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
        if self._tagged is not None:
            raise TRexError("tagged packet groups are enabled already; call disable_tpg() first")
        table = TagTable(tags)
        rx_ports = self._acquired_ports(rx_ports)
        acquired = self.get_acquired_ports()
        self._tagged = TaggedGroups(self.links, acquired, rx_ports, num_tpgids, table)

    def disable_tpg(self, username: str | None = None, surpress_log: bool = False) -> None:
        """Stops counting and deletes the groups."""
        self._require_session()
        if self._tagged is None or username not in (None, self._username):
            raise TRexError(_NOT_ENABLED)
        self._tagged = None

    @property
    def tpg_status(self) -> dict[str, Any] | None:
        """Same as `get_tpg_status`; None without a session."""
        return self.get_tpg_status() if self._is_connected else None

    def get_tpg_status(
        self, username: str | None = None, port: int | None = None
    ) -> dict[str, Any]:
        """Returns whether groups are counted, and at which ports."""
        self._require_session()
        tagged = self._tagged_of(username, port)
        if tagged is None:
            data = {"acquired_ports": [], "rx_ports": [], "username": "-"}
            return {"enabled": False, "data": {**data, "num_tpgids": 0, "num_tags": 0}}
        return {
            "enabled": True,
            "data": {
                "acquired_ports": list(tagged.acquired),
                "rx_ports": list(tagged.rx_ports),
                "username": self._username,
                "num_tpgids": tagged.count,
                "num_tags": len(tagged.table),
            },
        }

    def update_tpg_tags(self, new_tags: Any, clear: bool = False) -> None:
        """Changes tags by `tag_id`; the type None removes a tag.

        :param clear: reset the counters of the changed tags
        """
        self._require_session()
        if self._tagged is None:
            raise TRexError(_NOT_ENABLED)
        self._tagged.update(new_tags, clear)

    def get_tpg_tags(
        self,
        min_tag: int = 0,
        max_tag: int | None = None,
        username: str | None = None,
        port: int | None = None,
    ) -> list[dict[str, Any] | None]:
        """Returns the tags from `min_tag` to before `max_tag`; None for removed ones."""
        self._require_session()
        tagged = self._tagged_of(username, port)
        if tagged is None:
            raise TRexError(_NOT_ENABLED)
        end = len(tagged.table) if max_tag is None else max_tag
        first, end = _range(min_tag, end, len(tagged.table), True)
        return tagged.table.documents(first, end)

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
        tagged = self._receiving_groups(port, tpgid)
        tags = _range(min_tag, max_tag, len(tagged.table), unknown_tag or untagged)
        validate_type("max_sections", max_sections, int)
        tagged.collect(tpgid)
        found, next_tag = tagged.sections(port, tpgid, tags, max_sections)
        for name in _extra(unknown_tag, untagged):
            found[name] = tagged.received(port, tpgid, name)
        return {str(port): {str(tpgid): found}}, next_tag if max_tag > min_tag else None

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
        tagged = self._receiving_groups(port, tpgid)
        if (max_tag is None) == (not tag_list):
            raise TRexError("expected either max_tag or tag_list")
        extra = _extra(unknown_tag, untagged)
        if max_tag is not None:
            tags = list(range(*_range(min_tag, max_tag, len(tagged.table), bool(extra))))
        else:
            validate_type("tag_list", tag_list, list)
            tags = tag_list
            if any(tag not in range(len(tagged.table)) for tag in tags):
                raise TRexArgumentError("tag_list", tags, f"0 to {len(tagged.table) - 1}")
        tagged.collect(tpgid)
        tagged.clear_received(port, tpgid, [*tags, *extra])

    def get_tpg_tx_stats(self, port: int, tpgid: int) -> dict[str, Any]:
        """Returns the sent counters of a group at a port."""
        tagged = self._sending_groups(port, tpgid)
        tagged.collect(tpgid)
        return {str(port): {str(tpgid): tagged.sent(port, tpgid)}}

    def clear_tpg_tx_stats(self, port: int, tpgid: int) -> None:
        """Resets the sent counters of a group at a port."""
        tagged = self._sending_groups(port, tpgid)
        tagged.collect(tpgid)
        tagged.clear_sent(port, tpgid)

    def get_tpg_unknown_tags(self, port: int) -> dict[str, list[dict[str, Any]]]:
        """Returns the unknown tags that a port received, each once with its group."""
        tagged = self._receiving_groups(port)
        tagged.collect()
        return {str(port): tagged.unknown(port)}

    def clear_tpg_unknown_tags(self, port: int) -> None:
        """Clears the unknown tags of a port."""
        tagged = self._receiving_groups(port)
        tagged.collect()
        tagged.clear_unknown(port)

    def _collect_group_counters(self) -> None:
        if self._tagged is not None:
            self._tagged.collect()

    def _discard_groups(self) -> None:
        self._tagged = None

    def _tagged_of(self, username: str | None, port: int | None) -> TaggedGroups | None:
        if username is not None and port is not None:
            raise TRexError("expected either username or port")
        if username not in (None, self._username) or self._tagged is None:
            return None
        if port is not None and self._numbers(port)[0] not in self._tagged.acquired:
            return None
        return self._tagged

    def _sending_groups(self, port: int, tpgid: int) -> TaggedGroups:
        """Returns the groups for a sending port."""
        self._require_session()
        tagged = self._tagged_of(None, port)
        if tagged is None:
            raise TRexError(_NOT_ENABLED)
        validate_type("tpgid", tpgid, int)
        if not 0 <= tpgid < tagged.count:
            raise TRexArgumentError("tpgid", tpgid, f"0 to {tagged.count - 1}")
        return tagged

    def _receiving_groups(self, port: int, tpgid: int = 0) -> TaggedGroups:
        """Returns the groups for a receiving port."""
        tagged = self._sending_groups(port, tpgid)
        if port not in tagged.rx_ports:
            raise TRexArgumentError("port", port, ", ".join(map(str, tagged.rx_ports)))
        return tagged


def _range(first: int, end: int, count: int, may_be_empty: bool = False) -> tuple[int, int]:
    for name, value in (("min_tag", first), ("max_tag", end)):
        validate_type(name, value, int)
    if not 0 <= first <= end <= count or (first == end and not may_be_empty):
        raise TRexError(
            f"min_tag {first} and max_tag {end}: expected 0 <= min_tag < max_tag <= {count}"
        )
    return first, end


def _extra(unknown_tag: bool, untagged: bool) -> list[str]:
    validate_type("unknown_tag", unknown_tag, bool)
    validate_type("untagged", untagged, bool)
    return [UNTAGGED] * untagged + [UNKNOWN] * unknown_tag
