"""Writer of captured frames to pcap and pcapng files."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from trex.files import writing

_PCAPNG = ".pcapng"
_ETHERNET = 1
_SNAP_LENGTH = 65_535
_MICROSECONDS = 1_000_000

# Magic number for microseconds, version 2.4, time zone, accuracy, snap length, link type.
_PCAP_HEADER = struct.Struct("<IHHiIII").pack(0xA1B2C3D4, 2, 4, 0, 0, _SNAP_LENGTH, _ETHERNET)
# Seconds, microseconds, captured length, original length.
_PCAP_RECORD = struct.Struct("<IIII")
# draft-ietf-opsawg-pcapng: sections 4.1, 4.2 and 4.3.
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_SECTION_BODY = struct.Struct("<IHHq").pack(0x1A2B3C4D, 1, 0, -1)
_INTERFACE_BODY = struct.Struct("<HHI").pack(_ETHERNET, 0, _SNAP_LENGTH)
_PACKET_BODY = struct.Struct("<IIIII")
_IF_NAME, _EPB_FLAGS = 2, 2
_DIRECTIONS = {"RX": 1, "TX": 2}


def write(path: str, frames: Iterable[dict[str, Any]]) -> None:
    """Writes frames to a pcapng file if its name ends with `.pcapng`, else to a pcap file.

    A pcapng has an interface for each port, and the direction of each frame. Raises `TRexError` if
    the file cannot be written.
    """
    blocks = _pcapng(frames) if path.endswith(_PCAPNG) else _pcap(frames)
    with writing(path), open(path, "wb") as file:
        for block in blocks:
            file.write(block)


def _pcap(frames: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    yield _PCAP_HEADER
    for frame in frames:
        data = frame["binary"]
        seconds, microseconds = divmod(_time_usec(frame), _MICROSECONDS)
        yield _PCAP_RECORD.pack(seconds, microseconds, len(data), frame["wirelen"]) + data


def _pcapng(frames: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    yield _block(_SECTION, _SECTION_BODY)
    interfaces: dict[int, int] = {}
    for frame in frames:
        port, data = frame["port"], frame["binary"]
        if port not in interfaces:
            interfaces[port] = len(interfaces)
            name = _options((_IF_NAME, f"port {port}".encode()))
            yield _block(_INTERFACE, _INTERFACE_BODY + name)
        time_usec = _time_usec(frame)
        times = (time_usec >> 32, time_usec & 0xFFFFFFFF)
        head = _PACKET_BODY.pack(interfaces[port], *times, len(data), frame["wirelen"])
        flags = struct.pack("<I", _DIRECTIONS[frame["origin"]])
        yield _block(_PACKET, head + _padded(data) + _options((_EPB_FLAGS, flags)))


def _time_usec(frame: dict[str, Any]) -> int:
    return round(frame["ts"] * _MICROSECONDS)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _options(*options: tuple[int, bytes]) -> bytes:
    made = (struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options)
    return b"".join(made) + bytes(4)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
