"""A captured conversation: the messages of a client and a server in order.

It is a complete TCP connection from its SYN without losses, or UDP between two hosts.
"""

from __future__ import annotations

import inspect
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from trex.astf.errors import ASTFError
from trex.capture_file import ethernet_records
from trex.errors import TRexError

Side = Literal["c", "s"]

_TCP, _UDP = 6, 17
_FIN, _SYN, _ACK = 0x01, 0x02, 0x10
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN_TAGS = (0x8100, 0x88A8)
# IPv6 extension headers of unfragmented packets (RFC 8200, section 4.1).
_HOP_BY_HOP, _ROUTING, _DESTINATION = 0, 43, 60


@dataclass
class Message:
    """Data of one side until the other one sends (TCP), or one datagram (UDP)."""

    side: Side
    payload: bytes
    # Seconds since the previous packet of either side.
    gap_sec: float


@dataclass(frozen=True)
class Conversation:
    """Messages in order."""

    # True for TCP, False for UDP.
    stream: bool
    # Destination port of the client's first packet.
    port: int
    messages: tuple[Message, ...]

    @property
    def payload_len(self) -> int:
        """Bytes that both sides send."""
        return sum(len(message.payload) for message in self.messages)


def read_conversation(file: str) -> Conversation:
    """Reads the conversation of a capture: pcap or pcapng, Ethernet with or without VLAN tags.

    A relative path starts at the folder of the profile under construction. Raises `ASTFError` with
    the packet number, from 1, if the capture is not a single conversation.
    """
    path = resolve_profile_path(file)
    reader = read_messages(path)
    messages = tuple(_merge_turns(reader.messages) if reader.stream else reader.messages)
    if not messages:
        raise ASTFError(f"'{path}' has no data: neither side sends anything after the handshake")
    return Conversation(reader.stream, reader.port, messages)


def read_messages(path: str) -> ConversationReader:
    """Returns the messages of each packet of a capture. Raises as `read_conversation`."""
    try:
        captured = ethernet_records(path)
    except TRexError as error:
        raise ASTFError(error) from error
    reader = ConversationReader()
    for number, (frame, time_usec) in enumerate(captured, start=1):
        try:
            reader.read(_segment(frame), time_usec)
        except ASTFError as error:
            raise ASTFError(f"'{path}', packet {number}: {error}") from error
        except (struct.error, IndexError):
            raise ASTFError(f"'{path}', packet {number}: too short for its headers") from None
    return reader


def resolve_profile_path(file: str) -> str:
    """Returns a path relative to the file whose `get_profile` is running."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "get_profile":
        frame = frame.f_back
    folder = os.path.dirname(frame.f_code.co_filename) if frame is not None else ""
    return os.path.abspath(os.path.join(folder, file))


@dataclass(frozen=True)
class Segment:
    """A TCP segment or a UDP datagram."""

    stream: bool
    source: bytes
    destination: bytes
    source_port: int
    destination_port: int
    payload: bytes
    # Fields of TCP.
    sequence: int = 0
    flags: int = 0
    window: int = 0

    def endpoints(self, with_ports: bool) -> tuple[tuple[bytes, int], tuple[bytes, int]]:
        """Returns source and destination; with ports 0 if they do not matter."""
        return (
            (self.source, self.source_port if with_ports else 0),
            (self.destination, self.destination_port if with_ports else 0),
        )


class ConversationReader:
    """Reads the packets of a conversation in order. `messages` has one message for each packet."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.stream = False
        self.port = 0
        #: Windows of SYN and SYN+ACK.
        self.windows: dict[Side, int] = {}
        #: The first packet.
        self.first: Segment | None = None
        self._last_sec = 0.0
        # Next sequence number of each side that has sent a SYN.
        self._next: dict[Side, int] = {}

    def read(self, segment: Segment, time_usec: float) -> None:
        """Reads a packet."""
        # Like TRex, computes differences of seconds in floating point, to get the same
        # microseconds.
        whole_sec, rest_usec = divmod(time_usec, 1e6)
        time_sec = whole_sec + rest_usec / 1e6
        if self.first is None:
            self.first = segment
            self._last_sec = time_sec
            self.stream = segment.stream
            self.port = segment.destination_port
        side = self._side(segment, self.first)
        if self.stream:
            self._follow(side, segment)
        self.messages.append(Message(side, segment.payload, time_sec - self._last_sec))
        self._last_sec = time_sec

    def _side(self, segment: Segment, first: Segment) -> Side:
        if segment.stream != first.stream:
            raise ASTFError("the conversation is in both TCP and UDP: keep one of them")
        # For a host that talks to itself, the ports distinguish client and server.
        with_ports = self.stream or first.source == first.destination
        client, server = first.endpoints(with_ports)
        endpoints = segment.endpoints(with_ports)
        if endpoints == (client, server):
            return "c"
        if endpoints == (server, client):
            return "s"
        raise ASTFError("it belongs to another conversation than packet 1: keep one in the capture")

    def _follow(self, side: Side, segment: Segment) -> None:
        """Checks a segment against the previous ones of its side."""
        length = len(segment.payload) + bool(segment.flags & _FIN)
        if segment.flags & _SYN:
            answers = bool(segment.flags & _ACK)
            if answers and "c" not in self._next:
                raise ASTFError("a SYN+ACK without a SYN before it: the capture begins too late")
            if "s" in self._next:
                raise ASTFError(
                    "another SYN after the SYN+ACK: the capture holds two connections, or repeats"
                )
            self.windows["s" if answers else "c"] = segment.window
            self._next["s" if answers else "c"] = (segment.sequence + 1) % (1 << 32)
            return
        if "s" not in self._next:
            raise ASTFError(
                "a connection begins with SYN and SYN+ACK, and this is neither: the capture "
                "begins too late"
            )
        if segment.sequence != self._next[side]:
            raise ASTFError(
                f"its TCP sequence number is {segment.sequence}, and {self._next[side]} comes "
                "next: packets are missing, repeated or out of order, so capture it again"
            )
        self._next[side] = (segment.sequence + length) % (1 << 32)


def _merge_turns(messages: list[Message]) -> Iterator[Message]:
    """Yields the merged messages of each turn."""
    with_payload = (message for message in messages if message.payload)
    for side, turn in groupby(with_payload, key=lambda message: message.side):
        parts = list(turn)
        yield Message(side, b"".join(part.payload for part in parts), parts[0].gap_sec)


def _segment(frame: bytes) -> Segment:
    """Parses a frame."""
    (kind,) = struct.unpack_from("!H", frame, 12)
    packet = frame[14:]
    while kind in _VLAN_TAGS:
        (kind,) = struct.unpack_from("!H", packet, 2)
        packet = packet[4:]
    if kind == _IPV4:
        protocol, source, destination, data = _ipv4(packet)
    elif kind == _IPV6:
        protocol, source, destination, data = _ipv6(packet)
    else:
        raise ASTFError(f"it is neither IPv4 nor IPv6 (EtherType 0x{kind:04x}): leave it out")
    if protocol == _TCP:
        source_port, destination_port, sequence = struct.unpack_from("!HHI", data)
        header_len, flags = (data[12] >> 4) * 4, data[13]
        if header_len < 20:
            raise ASTFError(f"its TCP header has {header_len} bytes, not 20 or more")
        return Segment(
            True,
            source,
            destination,
            source_port,
            destination_port,
            data[header_len:],
            sequence,
            flags,
            struct.unpack_from("!H", data, 14)[0],
        )
    if protocol == _UDP:
        source_port, destination_port, _ = struct.unpack_from("!HHI", data)
        return Segment(False, source, destination, source_port, destination_port, data[8:])
    raise ASTFError(f"it is neither TCP nor UDP (protocol {protocol}): leave it out")


def _ipv4(packet: bytes) -> tuple[int, bytes, bytes, bytes]:
    """Returns protocol, source, destination and data of an IPv4 packet."""
    header_len = (packet[0] & 0x0F) * 4
    if header_len < 20:
        raise ASTFError(f"its IPv4 header has {header_len} bytes, not 20 or more")
    total_len, _, fragment = struct.unpack_from("!HHH", packet, 2)
    if fragment & 0x3FFF:
        raise ASTFError("it is a fragment of an IPv4 packet: capture where packets are whole")
    # Segmentation offload leaves the length 0; then the rest of the frame is the packet.
    data = packet[header_len : total_len or None]
    return packet[9], packet[12:16], packet[16:20], data


def _ipv6(packet: bytes) -> tuple[int, bytes, bytes, bytes]:
    """Returns protocol, source, destination and data of an IPv6 packet."""
    payload_len, protocol = struct.unpack_from("!HB", packet, 4)
    data = packet[40 : 40 + payload_len] if payload_len else packet[40:]
    while protocol in (_HOP_BY_HOP, _ROUTING, _DESTINATION):
        protocol, length = data[0], data[1]
        data = data[8 + 8 * length :]
    return protocol, packet[8:24], packet[24:40], data
