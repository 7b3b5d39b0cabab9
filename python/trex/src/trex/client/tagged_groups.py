"""Counters of tagged packet groups, under TRex's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trex.arguments import validate_type
from trex.client.port import Port
from trex.client.transmission import Transmission
from trex.errors import TRexError

#: VLAN IDs of a frame, the outer one first.
Vlans = tuple[int, ...]

UNKNOWN = "unknown_tag"
UNTAGGED = "untagged"

_FCS = 4
_VLANS = range(1, 4095)
_COUNTERS = ("pkts", "bytes", "seq_err", "seq_err_too_big", "seq_err_too_small", "dup", "ooo")
_ZERO: tuple[int, ...] = (0,) * len(_COUNTERS)
# Counters of frames with an unknown tag. Their order is not defined.
_UNKNOWN_COUNTERS = _COUNTERS[:2]


class TagTable:
    """The known tags by number."""

    def __init__(self, tags: list[Any]) -> None:
        validate_type("tags", tags, list)
        self._tags: list[Vlans | None] = [None] * len(tags)
        self._ids: dict[Vlans, int] = {}
        for number, tag in enumerate(tags):
            self._set(number, _vlans(tag))

    def __len__(self) -> int:
        return len(self._tags)

    def number(self, vlans: Vlans) -> int | None:
        """Returns the number of a tag, None if it has none."""
        return self._ids.get(vlans)

    def documents(self, first: int, end: int) -> list[dict[str, Any] | None]:
        """Returns the tags from number `first` to before `end`; None for removed ones."""
        return [None if vlans is None else document(vlans) for vlans in self._tags[first:end]]

    def with_changes(self, changes: list[Any]) -> TagTable:
        """Returns a table with changes: tags with their `tag_id`; the type None removes one."""
        table = TagTable([])
        table._tags, table._ids = list(self._tags), dict(self._ids)
        for change in changes:
            number = change.get("tag_id") if isinstance(change, dict) else None
            if isinstance(number, bool) or not isinstance(number, int):
                raise TRexError(f"tag {change!r}: expected a number as its tag_id")
            if not 0 <= number < len(self):
                raise TRexError(f"tag_id {number}: expected 0 to {len(self) - 1}")
            if "type" in change and change["type"] is None:
                if table._tags[number] is None:
                    raise TRexError(f"tag_id {number} has no tag to remove")
                table._unset(number)
            else:
                table._set(number, _vlans(change))
        return table

    def _set(self, number: int, vlans: Vlans) -> None:
        if vlans in self._ids:
            raise TRexError(f"tag {document(vlans)} already is number {self._ids[vlans]}")
        self._unset(number)
        self._tags[number] = vlans
        self._ids[vlans] = number

    def _unset(self, number: int) -> None:
        before = self._tags[number]
        if before is not None:
            del self._ids[before]
        self._tags[number] = None


class TaggedGroups:
    """The counted groups 0 to `count` - 1, by the tags of received frames.

    The engine's counters by VLAN go to the tag that has the VLAN at that time.
    """

    def __init__(
        self,
        ports: dict[int, Port],
        acquired: list[int],
        rx_ports: list[int],
        count: int,
        table: TagTable,
    ) -> None:
        self.acquired = acquired
        self.rx_ports = rx_ports
        self.count = count
        self.table = table
        self._ports = ports
        #: Received counters by port and group, then by tag.
        self._received: dict[tuple[int, int], dict[int | str, tuple[int, ...]]] = {}
        self._sent: dict[tuple[int, int], tuple[int, ...]] = {}
        #: Unknown tags by receiving port, each with its group.
        self._unknown: dict[int, dict[tuple[int, Vlans], None]] = {}
        #: Last engine counters of each transmission.
        self._last_counts: dict[Transmission, dict[Any, tuple[int, ...]]] = {}
        # Earlier counters do not count.
        self.collect()
        self._received.clear()
        self._sent.clear()
        self._unknown.clear()

    def collect(self, only: int | None = None) -> None:
        """Adds the engine's counters since the last call, of all groups or of one."""
        last_counts = {}
        for port in self._ports.values():
            for transmission in port.transmissions():
                before = self._last_counts.get(transmission, {})
                now = self._collect(port.number, transmission, before, only)
                last_counts[transmission] = {**before, **now}
        self._last_counts = last_counts

    def update(self, changes: list[Any], clear: bool) -> None:
        """Changes tags."""
        table = self.table.with_changes(changes)
        self.collect()
        self.table = table
        if clear:
            for counts in self._received.values():
                for change in changes:
                    counts.pop(change["tag_id"], None)

    def received(self, port: int, group: int, tag: int | str) -> dict[str, int]:
        """Returns the received counters of a group at a port by tag."""
        counts = self._received.get((port, group), {}).get(tag, _ZERO)
        counters = dict(zip(_COUNTERS, counts))
        return {name: counters[name] for name in _UNKNOWN_COUNTERS} if tag == UNKNOWN else counters

    def sections(
        self, port: int, group: int, tags: range, limit: int
    ) -> tuple[dict[str, Any], int]:
        """Returns counters by tag, with equal neighbours merged, and the first tag that is not
        included.
        """
        counts = self._received.get((port, group), {})
        found: dict[str, Any] = {}
        first, end = tags.start, tags.stop
        while first < end and len(found) < limit:
            next_tag = first + 1
            while next_tag < end and counts.get(next_tag, _ZERO) == counts.get(first, _ZERO):
                next_tag += 1
            name = str(first) if next_tag == first + 1 else f"{first}-{next_tag - 1}"
            found[name] = self.received(port, group, first)
            first = next_tag
        return found, first

    def clear_received(self, port: int, group: int, tags: Iterable[int | str]) -> None:
        """Clears received counters of a group at a port."""
        counts = self._received.get((port, group), {})
        for tag in tags:
            counts.pop(tag, None)

    def sent(self, port: int, group: int) -> dict[str, int]:
        """Returns the sent counters of a group at a port."""
        return dict(zip(_COUNTERS, self._sent.get((port, group), (0, 0))))

    def clear_sent(self, port: int, group: int) -> None:
        """Clears the sent counters of a group at a port."""
        self._sent.pop((port, group), None)

    def unknown(self, port: int) -> list[dict[str, Any]]:
        """Returns the unknown tags that a port received, with the groups of the frames."""
        found = self._unknown.get(port, {})
        return [{"tag": document(vlans), "tpgid": group} for group, vlans in found]

    def clear_unknown(self, port: int) -> None:
        """Clears the unknown tags of a port."""
        self._unknown.pop(port, None)

    def _collect(
        self,
        port: int,
        transmission: Transmission,
        before: dict[Any, tuple[int, ...]],
        only: int | None,
    ) -> dict[Any, tuple[int, ...]]:
        groups = {
            number: stream.get_pg_id()
            for number, stream in transmission.streams.items()
            if stream.get_flow_stats_type() == "tpg" and only in (None, stream.get_pg_id())
        }
        now: dict[Any, tuple[int, ...]] = {}
        if not groups:
            return now
        flows = transmission.flows()
        for number, group in groups.items():
            if group is None or group >= self.count:
                continue
            sent = flows.get(number, {"packets": 0, "bytes": 0})
            now[number] = (sent["packets"], sent["bytes"] + _FCS * sent["packets"])
            _add(self._sent, (port, group), now[number], before.get(number))
            if transmission.receiver not in self.rx_ports:
                continue
            measured = transmission.measured(number)
            for tag in [] if measured is None else measured["tags"]:
                vlans = tuple(tag["vlans"])
                now[number, vlans] = counts = _counts(tag)
                previous = before.get((number, vlans))
                if counts != previous:
                    self._record(transmission.receiver, group, vlans, counts, previous)
        return now

    def _record(
        self,
        port: int | None,
        group: int,
        vlans: Vlans,
        counts: tuple[int, ...],
        previous: tuple[int, ...] | None,
    ) -> None:
        if port is None:
            return
        known = self.table.number(vlans)
        tag: int | str = UNTAGGED if not vlans else UNKNOWN if known is None else known
        if tag == UNKNOWN:
            self._unknown.setdefault(port, {})[group, vlans] = None
        _add(self._received.setdefault((port, group), {}), tag, counts, previous)


def document(vlans: Vlans) -> dict[str, Any]:
    """Returns a tag in TRex's format."""
    if len(vlans) == 1:
        return {"type": "Dot1Q", "value": {"vlan": vlans[0]}}
    return {"type": "QinQ", "value": {"vlans": list(vlans)}}


def _vlans(tag: Any) -> Vlans:
    """Parses the VLANs of a tag in TRex's format."""
    value = tag.get("value") if isinstance(tag, dict) else None
    kind = tag.get("type") if isinstance(tag, dict) else None
    vlans: Any = None
    if isinstance(value, dict):
        if kind == "Dot1Q":
            vlans = [value.get("vlan")]
        elif kind == "QinQ" and isinstance(value.get("vlans"), list):
            vlans = value["vlans"] if len(value["vlans"]) == 2 else None
    if vlans is None or any(isinstance(one, bool) or one not in _VLANS for one in vlans):
        raise TRexError(
            f"tag {tag!r}: expected {{'type': 'Dot1Q', 'value': {{'vlan': 5}}}} or {{'type': "
            "'QinQ', 'value': {'vlans': [5, 6]}}, VLANs from 1 to 4094"
        )
    return tuple(vlans)


def _counts(tag: dict[str, Any]) -> tuple[int, ...]:
    """Converts the engine's counters of a tag to TRex's."""
    reordered, repeated = tag["reordered"] + tag["too_late"], tag["duplicated"]
    size = tag["bytes"] + _FCS * tag["packets"]
    return (
        tag["packets"],
        size,
        tag["missing"],
        tag["gaps"],
        reordered + repeated,
        repeated,
        reordered,
    )


def _add(
    sums: dict[Any, tuple[int, ...]],
    key: Any,
    counts: tuple[int, ...],
    previous: tuple[int, ...] | None,
) -> None:
    """Adds the growth of counters."""
    before = previous or (0,) * len(counts)
    sums[key] = tuple(
        total + now - then
        for total, now, then in zip(sums.get(key, (0,) * len(counts)), counts, before)
    )
