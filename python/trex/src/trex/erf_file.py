"""Captures in the Extensible Record Format of Endace's DAG cards, with records of Ethernet.

A record is a header of 16 bytes, two bytes of padding, and a frame with its FCS (Endace, "ERF
Types Reference Guide", type 2).
"""

from __future__ import annotations

import struct

from trex.errors import TRexError

# Time of arrival (32.32 fixed point), type, flags, length of the record, loss counter, length of
# the frame on the wire. The time alone is little-endian.
_TIME = struct.Struct("<Q")
_REST = struct.Struct(">BBHHH")
_HEADER_LENGTH = _TIME.size + _REST.size
_PADDING_LENGTH = 2
_ETHERNET = 2
# Bits of the flags: the interface, those that are reserved.
_INTERFACE, _RESERVED = 0x03, 0xC0
_FCS_LENGTH = 4
# A file has no magic number: so many records have to make sense.
_LOOKED_AT = 10
# What other formats begin with: pcap in both orders of bytes, with micro- and nanoseconds, pcapng.
_OTHERS = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)


def is_erf(path: str) -> bool:
    """Whether a file is one: its first records are of Ethernet, and in the order of their times."""
    with open(path, "rb") as file:
        before = 0
        for number in range(_LOOKED_AT):
            header = file.read(_HEADER_LENGTH)
            if number == 0 and header[:4] in _OTHERS:
                return False
            if len(header) < _HEADER_LENGTH:
                return number > 0 and not header
            (time,) = _TIME.unpack_from(header)
            kind, flags, length, _, _ = _REST.unpack_from(header, _TIME.size)
            is_frame = kind == _ETHERNET and length > _HEADER_LENGTH + _PADDING_LENGTH
            if not is_frame or flags & _RESERVED or time < before:
                return False
            before = time
            file.seek(length - _HEADER_LENGTH, 1)
    return True


def is_erf_at(path: str) -> bool:
    """The same; not of what is not there, or cannot be read."""
    try:
        return is_erf(path)
    except OSError:
        return False


def records(path: str) -> list[tuple[bytes, float, int]]:
    """The frames of a file without FCS, their times in microseconds since 1970, and the interface
    of each, 0 to 3. Raises `TRexError` where a record is cut short or none of Ethernet."""
    with open(path, "rb") as file:
        data = file.read()
    found: list[tuple[bytes, float, int]] = []
    place = 0
    while place < len(data):
        where = f"'{path}', record {len(found) + 1} at byte {place}"
        if len(data) - place < _HEADER_LENGTH:
            raise TRexError(f"{where}: {len(data) - place} bytes, expected a header of 16")
        (time,) = _TIME.unpack_from(data, place)
        kind, flags, length, _, wire_length = _REST.unpack_from(data, place + _TIME.size)
        if kind != _ETHERNET:
            raise TRexError(f"{where}: type {kind}, expected {_ETHERNET} (Ethernet)")
        start = place + _HEADER_LENGTH + _PADDING_LENGTH
        place += length
        if place > len(data) or place <= start:
            raise TRexError(f"{where}: a length of {length} bytes, which the file does not have")
        end = min(place, start + wire_length)
        # Of a frame that was not kept whole, the FCS is among what is missing.
        if end == start + wire_length:
            end = max(end - _FCS_LENGTH, start)
        found.append((data[start:end], time * 1e6 / (1 << 32), flags & _INTERFACE))
    return found
