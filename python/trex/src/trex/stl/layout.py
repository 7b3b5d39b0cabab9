"""Offsets of headers and fields in a packet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scapy.packet import NoPayload, Packet

from trex.stl.instructions import build_error


class FieldPosition(NamedTuple):
    """A field by name: the `instance`-th header (from 0) of the class `layer`, and its field."""

    layer: str
    instance: int
    field: str


class _Header(NamedTuple):
    packet: Packet
    offset: int


class PacketLayout:
    """Offsets of a packet's headers and fields, in bytes from the start of the frame."""

    def __init__(self, packet: Packet) -> None:
        self._headers = list(_headers(packet))

    def description(self) -> str:
        """Returns the names of the headers, outermost first: `Ethernet:IP:UDP:Raw`."""
        return ":".join(header.packet.name for header in self._headers)

    def layer_offset(self, layer: str) -> int:
        """Returns the offset of a header: `IP`, or `IP:1` for the second one."""
        return self._find(layer).offset

    def field_offset(self, field: str) -> int:
        """Returns the offset of a field's first byte: `IP.src`, or `IP:1.src`.

        A `|` in the header's name stands for a dot: `802|1Q.vlan`.
        """
        layer, dot, name = field.partition(".")
        if not dot or "." in name:
            raise build_error(f"a field is LAYER.FIELD or LAYER:INDEX.FIELD, not {field}")
        header = self._find(layer.replace("|", "."))
        for found, offset in _field_offsets(header):
            if found == name:
                return offset
        fields = ", ".join(f.name for f in header.packet.fields_desc)
        raise build_error(f"{layer} has no field {name}; it has {fields}")

    def layer_at(self, offset: int) -> str | None:
        """Returns the name of the header at an offset for `layer_offset`; None if no header begins
        there.
        """
        names: list[str] = []
        for header in self._headers:
            names.append(header.packet.name)
            if header.offset == offset and not set(names[-1]) & set(".:|"):
                return _indexed(names[-1], names.count(names[-1]) - 1)
        return None

    def field_at(self, offset: int) -> FieldPosition | None:
        """Returns the first field that begins at an offset, None if there is none."""
        names: list[str] = []
        position = None
        for header in self._headers:
            names.append(type(header.packet).__name__)
            if header.offset > offset:
                break
            for name, begin in _field_offsets(header):
                if begin == offset:
                    position = FieldPosition(names[-1], names.count(names[-1]) - 1, name)
                    break
        return position

    def _find(self, layer: str) -> _Header:
        name, _, index = layer.partition(":")
        if index and not index.isdigit():
            raise build_error(f"{layer}: the index of a header must be a number")
        found = [h for h in self._headers if name in (h.packet.name, type(h.packet).__name__)]
        if int(index or 0) >= len(found):
            raise build_error(f"no layer {layer} in {self.description()}")
        return found[int(index or 0)]


def field_name(position: FieldPosition) -> str:
    """Returns the text of a place for `PacketLayout.field_offset`."""
    return f"{_indexed(position.layer, position.instance)}.{position.field}"


def _indexed(name: str, index: int) -> str:
    return f"{name}:{index}" if index else name


def _headers(packet: Packet) -> Iterator[_Header]:
    offset = 0
    length = len(packet)
    while not isinstance(packet, NoPayload):
        yield _Header(packet, offset)
        packet = packet.payload
        inner = len(packet)
        offset += length - inner
        length = inner


def _field_offsets(header: _Header) -> Iterator[tuple[str, int]]:
    """Builds the header field by field, and yields the offset before each."""
    built = b""
    for field in header.packet.fields_desc:
        # Between bit fields, scapy passes the bytes so far, the bits so far and their value.
        done = built[0] if isinstance(built, tuple) else built
        yield field.name, header.offset + len(done)
        built = field.addfield(header.packet, built, header.packet.getfieldval(field.name))
