"""Capture files: packets as bytes with their timestamps."""

from __future__ import annotations

import os
from typing import NamedTuple

from scapy.error import Scapy_Exception
from scapy.utils import PcapNgReader, RawPcapReader

from trex import erf_file
from trex.errors import TRexError
from trex.files import reading

# A packet, and its time of capture or departure in microseconds.
TimedPacket = tuple[bytes, float]

_LINK_TYPE_ETHERNET = 1


class Record(NamedTuple):
    """A packet of a capture."""

    data: bytes
    time_usec: float
    link_type: int
    #: Interface number of an ERF record, 0 to 3; 0 in other files.
    interface: int = 0


def records(path: str) -> list[TimedPacket]:
    """Returns the packets of a pcap, pcapng or ERF file. Raises `TRexError` if it has none."""
    return [(record.data, record.time_usec) for record in read(path)]


def ethernet_records(path: str) -> list[TimedPacket]:
    """Like `records`, and raises `TRexError` if a packet is not Ethernet."""
    found = []
    for number, record in enumerate(read(path), start=1):
        if record.link_type != _LINK_TYPE_ETHERNET:
            raise TRexError(
                f"'{path}', packet {number}: its link type is {record.link_type}, not "
                f"{_LINK_TYPE_ETHERNET} (Ethernet)"
            )
        found.append((record.data, record.time_usec))
    return found


def read(path: str) -> list[Record]:
    """Returns all packets of a file. Raises `TRexError` if it has none."""
    if not os.path.isfile(path):
        raise TRexError(f"no such file: '{path}'")
    with reading(path):
        if erf_file.is_erf(path):
            erf = erf_file.records(path)
            found = [Record(it[0], it[1], _LINK_TYPE_ETHERNET, it[2]) for it in erf]
        else:
            found = _read_pcap(path)
    if not found:
        raise TRexError(f"'{path}' has no packets")
    return found


def _read_pcap(path: str) -> list[Record]:
    try:
        with RawPcapReader(path) as reader:
            if isinstance(reader, PcapNgReader) or not hasattr(reader, "nano"):
                return [
                    Record(data, _since_epoch_usec(meta), meta.linktype) for data, meta in reader
                ]
            fraction = 1000 if reader.nano else 1
            return [
                Record(data, meta.sec * 1e6 + meta.usec / fraction, reader.linktype)
                for data, meta in reader
            ]
    except Scapy_Exception as error:
        raise TRexError(
            f"'{path}' is not a capture: {error}; expected a pcap, pcapng or ERF file"
        ) from error


def _since_epoch_usec(meta: PcapNgReader.PacketMetadata) -> float:
    """Returns the timestamp of a pcapng packet in microseconds."""
    return ((meta.tshigh << 32) + meta.tslow) * 1e6 / meta.tsresol
