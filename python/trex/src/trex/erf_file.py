"""Captures in the Extensible Record Format of Endace's DAG cards, with Ethernet records.

A record is a header of 16 bytes, two bytes of padding, and a frame with its FCS (Endace, "ERF Types
Reference Guide", type 2).
"""

from __future__ import annotations

import struct

from trex.errors import TRexError

# Timestamp (32.32 fixed point), type, flags, record length, loss counter, frame length on the wire.
# Only the timestamp is little-endian.
_TIME = struct.Struct("<Q")
_REST = struct.Struct(">BBHHH")
_HEADER_LENGTH = _TIME.size + _REST.size
_PADDING_LENGTH = 2
_ETHERNET = 2
# Bits of the flags: interface number, reserved bits.
_INTERFACE, _RESERVED = 0x03, 0xC0
_FCS_LENGTH = 4
# Records to check, because the format has no magic number.
_RECORDS_CHECKED_MAX = 10
# Magic numbers of other formats: pcap in both byte orders, with micro- and nanoseconds, and pcapng.
_OTHERS = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)


def is_erf(path: str) -> bool:
    """Returns whether a file is ERF: its first records are Ethernet with ascending timestamps."""
    with open(path, "rb") as file:
        before = 0
        for number in range(_RECORDS_CHECKED_MAX):
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
    """Like `is_erf`. Returns False for a file that is missing or unreadable."""
    try:
        return is_erf(path)
    except OSError:
        return False


def records(path: str) -> list[tuple[bytes, float, int]]:
    """Returns frames without FCS, timestamps in microseconds since 1970, and interfaces, 0 to 3.

    Raises `TRexError` if a record is truncated or not Ethernet.
    """
    with open(path, "rb") as file:
        data = file.read()
    found: list[tuple[bytes, float, int]] = []
    offset = 0
    while offset < len(data):
        location = f"'{path}', record {len(found) + 1} at byte {offset}"
        if len(data) - offset < _HEADER_LENGTH:
            raise TRexError(f"{location}: {len(data) - offset} bytes, expected a header of 16")
        (time,) = _TIME.unpack_from(data, offset)
        kind, flags, length, _, wire_length = _REST.unpack_from(data, offset + _TIME.size)
        if kind != _ETHERNET:
            raise TRexError(f"{location}: type {kind}, expected {_ETHERNET} (Ethernet)")
        start = offset + _HEADER_LENGTH + _PADDING_LENGTH
        offset += length
        if offset > len(data) or offset <= start:
            raise TRexError(f"{location}: a length of {length} bytes, which the file does not have")
        end = min(offset, start + wire_length)
        # In a truncated frame, the FCS is part of the missing bytes.
        if end == start + wire_length:
            end = max(end - _FCS_LENGTH, start)
        found.append((data[start:end], time * 1e6 / (1 << 32), flags & _INTERFACE))
    return found
