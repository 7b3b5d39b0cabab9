"""Captures of one conversation, packet by packet. Older location of this module's classes."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import PcapWriter

from trex.astf.conversation import Segment, read_messages
from trex.astf.errors import ASTFError
from trex.capture_file import ethernet_records
from trex.files import writing

_SYN = 0x02
# Minimum round-trip time for which packets can be moved.
_ROUND_TRIP_MIN_S = 0.010


class CPacketData:
    """Payload of a packet, or of several packets from one side."""

    def __init__(self, direction: str, payload: bytes) -> None:
        """:param direction: `c` from the client, `s` from the server"""
        self.direction = direction
        self.payload = payload

    def is_empty(self) -> bool:
        """Returns whether the payload is empty."""
        return not self.payload

    def dump(self) -> None:
        """Prints direction and length."""
        print(f"{self.direction} - len {len(self.payload)}")

    def __add__(self, other: CPacketData) -> CPacketData:
        if self.direction != other.direction:
            raise ASTFError("cannot join data of the client and data of the server")
        return CPacketData(self.direction, self.payload + other.payload)


class CaptureReader:
    """A capture of one TCP or UDP conversation. `analyze` fills the fields."""

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name
        self.pkts: list[CPacketData] = []
        #: Seconds since the previous packet, for each packet.
        self.pkt_times: list[float] = []
        #: The addresses as bytes.
        self.c_ip: bytes | None = None
        self.s_ip: bytes | None = None
        self.s_port = self.d_port = -1
        #: Windows of SYN and SYN+ACK; -1 if missing.
        self.c_tcp_win = self.s_tcp_win = -1
        self.payload_len = 0
        self._first: Segment | None = None

    def analyze(self) -> None:
        """Reads the capture. Raises `ASTFError` if it is not a single conversation."""
        if self._first is not None:
            return
        reader = read_messages(self.file_name)
        first = reader.first
        if first is None:
            raise ASTFError(f"'{self.file_name}' has no packets")
        self._first = first
        self.c_ip, self.s_ip = first.source, first.destination
        self.s_port, self.d_port = first.source_port, first.destination_port
        self.c_tcp_win, self.s_tcp_win = (reader.windows.get(side, -1) for side in ("c", "s"))
        self.pkts = [CPacketData(it.side, it.payload) for it in reader.messages]
        self.pkt_times = [it.gap_sec for it in reader.messages]
        self.payload_len = sum(len(it.payload) for it in reader.messages)

    def condense_pkt_data(self) -> None:
        """Merges consecutive packets of the same side."""
        turns: list[CPacketData] = []
        for packet in self.pkts:
            if packet.is_empty():
                continue
            if turns and turns[-1].direction == packet.direction:
                turns[-1] = turns[-1] + packet
            else:
                turns.append(packet)
        self.pkts = turns

    def is_tcp(self) -> bool:
        """Returns whether the conversation uses TCP."""
        return self._first is not None and self._first.stream

    @property
    def pkt_dirs(self) -> list[str]:
        """Direction of each packet: `c` or `s`."""
        return [packet.direction for packet in self.pkts]

    def is_same_pkts(self, cap_reader: CaptureReader) -> int:
        """Compares with another capture.

        Returns -1 if the payloads are equal, -2 if the numbers of packets differ, else the index of
        the first packet that differs.
        """
        if len(self.pkts) != len(cap_reader.pkts):
            return -2
        for number, (one, other) in enumerate(zip(self.pkts, cap_reader.pkts)):
            if (one.direction, one.payload) != (other.direction, other.payload):
                return number
        return -1

    def dump(self) -> None:
        """Prints the fields."""
        print(f"{self.c_ip!r}:{self.s_port} --> {self.s_ip!r}:{self.d_port}")
        for name, window in (("Client", self.c_tcp_win), ("Server", self.s_tcp_win)):
            if window != -1:
                print(f"{name} TCP window:{window}")
        for packet in self.pkts:
            packet.dump()


def pcap_reader(file_name: str) -> CaptureReader:
    """Returns the reader of a capture, from a cache while the file is unchanged."""
    path = os.path.abspath(file_name)
    try:
        written = os.stat(path).st_mtime_ns
    except OSError as error:
        raise ASTFError(f"'{file_name}': {error.strerror}") from error
    return _reader(path, written)


@lru_cache(maxsize=64)
def _reader(path: str, written: int) -> CaptureReader:
    return CaptureReader(path)


class CPktWithTime(list):  # type: ignore[type-arg]
    """A time in seconds, and a frame."""

    def __init__(self, *a: Any) -> None:
        super().__init__(a)

    @property
    def ts(self) -> float:
        """The time."""
        return float(self[0])

    @property
    def pkt(self) -> bytes:
        """The frame."""
        return bytes(self[1])

    def __repr__(self) -> str:
        return f" {self.ts:g}: {self.pkt!r}"


class CPcapFixTime:
    """A capture of a connection from its client, converted to the middle of the path."""

    def __init__(self, in_file_name: str) -> None:
        self.pcap_data = [(usec / 1e6, frame) for frame, usec in ethernet_records(in_file_name)]
        #: Seconds from SYN to SYN+ACK, and from there to the ACK.
        self.rtt = self.rtt_syn_ack_ack = 0.0
        self.pkts: list[CPktWithTime] = []

    def calc_rtt(self) -> float:
        """Returns the round-trip time. Raises `ASTFError` unless the capture begins with SYN and
        SYN+ACK.
        """
        for number, (_, frame) in enumerate(self.pcap_data[:3], start=1):
            packet = Ether(frame)
            if TCP not in packet:
                raise ASTFError(f"packet {number} is not of TCP")
            if number < 3 and not int(packet[TCP].flags) & _SYN:
                raise ASTFError(f"packet {number} has no SYN: a connection begins with two")
        if len(self.pcap_data) < 2:
            raise ASTFError("there is no SYN+ACK: the capture ends too early")
        times = [at for at, _ in self.pcap_data[:3]]
        self.rtt_syn_ack_ack = times[2] - times[1] if len(times) > 2 else 0.0
        return times[1] - times[0]

    def calc_timing(self) -> None:
        """Sets `rtt`."""
        self.rtt = self.calc_rtt()

    def fix_timing(self, out_file_name: str) -> None:
        """Writes the capture with the client's packets a quarter of the round trip later, and the
        server's packets a quarter earlier.
        """
        self.calc_timing()
        print(f"RTT is {self.rtt * 1000:g} msec")
        if self.rtt < _ROUND_TRIP_MIN_S:
            raise ASTFError(f"the round trip takes {self.rtt * 1000:g} ms, which is below 10")
        client = _endpoints(self.pcap_data[0][1])
        for number, (at, frame) in enumerate(self.pcap_data, start=1):
            endpoints = _endpoints(frame)
            if endpoints != client and endpoints != client[::-1]:
                raise ASTFError(f"packet {number} belongs to another connection than packet 1")
            later = self.rtt / 4 if endpoints == client else -self.rtt / 4
            self.pkts.append(CPktWithTime(at + later, frame))
        self.pkts.sort(key=lambda it: it.ts)
        _write(out_file_name, self.pkts)


def is_udp_pcap(in_file_name: str) -> bool:
    """Returns whether the first packet of a capture is UDP."""
    return UDP in Ether(ethernet_records(in_file_name)[0][0])


def pcap_cut_udp(
    max_data_len: int, in_file_name: str, out_file_name: str, verbose: bool = False
) -> None:
    """Writes the datagrams of a capture, truncated to `max_data_len` bytes of data."""
    if max_data_len < 1:
        raise ASTFError(f"max_data_len is {max_data_len}, expected 1 or more")
    packets = []
    for number, (frame, usec) in enumerate(ethernet_records(in_file_name)):
        packet = Ether(frame)
        if UDP not in packet:
            raise ASTFError(f"'{in_file_name}', packet {number + 1}: it is not of UDP")
        data = bytes(packet[UDP].payload)[: packet[UDP].len - 8]
        if len(data) > max_data_len:
            if verbose:
                more = len(data) - max_data_len
                print(f"pkt {number} pld size is {len(data)}, exceeding by {more}")
            frame = _with_data(packet, data[:max_data_len])
        packets.append(CPktWithTime(usec / 1e6, frame))
    _write(out_file_name, packets)


def _with_data(packet: Any, data: bytes) -> bytes:
    """Replaces the data of a datagram, and updates lengths and checksums."""
    packet[UDP].remove_payload()
    packet[UDP].add_payload(Raw(data))
    for layer, names in ((UDP, ("len", "chksum")), (IP, ("len", "chksum")), (IPv6, ("plen",))):
        if layer in packet:
            for name in names:
                packet[layer].delfieldval(name)
    return bytes(packet)


def _endpoints(frame: bytes) -> tuple[tuple[str, int], tuple[str, int]]:
    """Returns source and destination of a segment."""
    packet = Ether(frame)
    if TCP not in packet:
        raise ASTFError("a packet is not of TCP: keep one connection in the capture")
    ip, tcp = packet[IPv6 if IPv6 in packet else IP], packet[TCP]
    return (ip.src, tcp.sport), (ip.dst, tcp.dport)


def _write(path: str, packets: list[CPktWithTime]) -> None:
    with writing(path, ASTFError), PcapWriter(path, linktype=1) as out:
        for packet in packets:
            frame = Ether(packet.pkt)
            frame.time = packet.ts
            out.write(frame)
