"""Capture files: the packets, as bytes, and when they were captured."""

from __future__ import annotations

import os

from scapy.error import Scapy_Exception
from scapy.utils import PcapNgReader, RawPcapReader

from trex.errors import TRexError

# A packet and when it was captured, or is to leave, in microseconds.
TimedPacket = tuple[bytes, float]

_LINK_TYPE_ETHERNET = 1


def records(path: str) -> list[TimedPacket]:
    """The packets of a pcap or pcapng, at least one. Raises `TRexError` if there are none."""
    return [(data, time_usec) for data, time_usec, _ in _read(path)]


def ethernet_records(path: str) -> list[TimedPacket]:
    """The same of a capture whose packets all begin with an Ethernet header, or it raises."""
    found = []
    for number, (data, time_usec, link_type) in enumerate(_read(path), start=1):
        if link_type != _LINK_TYPE_ETHERNET:
            raise TRexError(
                f"'{path}', packet {number}: its link type is {link_type}, not "
                f"{_LINK_TYPE_ETHERNET} (Ethernet)"
            )
        found.append((data, time_usec))
    return found


def _read(path: str) -> list[tuple[bytes, float, int]]:
    """Each packet, its time and its link type."""
    if not os.path.isfile(path):
        raise TRexError(f"there is no file '{path}'")
    try:
        with RawPcapReader(path) as reader:
            if isinstance(reader, PcapNgReader) or not hasattr(reader, "nano"):
                found = [(data, _since_epoch_usec(meta), meta.linktype) for data, meta in reader]
            else:
                fraction = 1000 if reader.nano else 1
                found = [
                    (data, meta.sec * 1e6 + meta.usec / fraction, reader.linktype)
                    for data, meta in reader
                ]
    except Scapy_Exception as error:
        raise TRexError(f"'{path}' is no capture: {error}") from error
    if not found:
        raise TRexError(f"'{path}' has no packets")
    return found


def _since_epoch_usec(meta: PcapNgReader.PacketMetadata) -> float:
    """When a packet of a pcapng was captured."""
    return ((meta.tshigh << 32) + meta.tslow) * 1e6 / meta.tsresol
