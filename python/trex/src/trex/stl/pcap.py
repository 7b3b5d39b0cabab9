"""Captures as lists of packets and times, optionally split by direction."""

from __future__ import annotations

from collections import deque
from typing import Any

from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot3, Ether

from trex.capture_file import TimedPacket, read
from trex.errors import TRexError


class PCAPReader:
    """Reads a capture."""

    def __init__(self, pcap_file: str) -> None:
        self.pcap_file = pcap_file

    def read_all(
        self,
        ipg_usec: float | None,
        min_ipg_usec: float | None,
        speedup: float,
        split_mode: str | None = None,
    ) -> Any:
        """Returns the packets; with a `split_mode` (`MAC`, `IP`, or `INTERFACE` for ERF files) two
        lists, one for each direction.

        :param ipg_usec: microseconds between packets, as captured if None
        :param min_ipg_usec: minimum microseconds between packets
        """
        packets: list[TimedPacket] = []
        captured = read(self.pcap_file)
        time_usec = 0.0
        captured_before: float | None = None
        for data, captured_usec, _, _ in captured:
            if ipg_usec is None:
                gap = 0.0
                if captured_before is not None:
                    gap = (captured_usec - captured_before) / speedup
                time_usec += max(gap, min_ipg_usec) if min_ipg_usec else gap
                captured_before = captured_usec
            elif min_ipg_usec or ipg_usec:
                time_usec += min_ipg_usec or ipg_usec / speedup
            else:
                raise TRexError("ipg_usec and min_ipg_usec cannot both be 0")
            packets.append((data, time_usec))
        if split_mode is None:
            return packets
        if split_mode == "INTERFACE":
            sides = [record.interface & 1 for record in captured]
            return tuple([p for p, s in zip(packets, sides) if s == side] for side in (0, 1))
        return _directions(packets, split_mode)


class Graph:
    """Graph of hosts that communicate."""

    def __init__(self) -> None:
        self._peers: dict[Any, set[Any]] = {}

    def add(self, v1: Any, v2: Any) -> None:
        """Records that two hosts communicate."""
        for one, other in ((v1, v2), (v2, v1)):
            peers = self._peers.setdefault(one, set())
            if one != other:
                peers.add(other)

    def split(self) -> tuple[set[Any], set[Any]]:
        """Splits the hosts into two sides without communication within a side. Raises if
        impossible.
        """
        side: dict[Any, int] = {}
        for first in self._peers:
            if first in side:
                continue
            side[first] = 0
            queue = deque([first])
            while queue:
                one = queue.popleft()
                for other in self._peers[one]:
                    if other not in side:
                        side[other] = 1 - side[one]
                        queue.append(other)
                    elif side[other] == side[one]:
                        raise TRexError(
                            f"the capture cannot be split: {one} and {other} communicate with each "
                            "other and with the same others"
                        )
        return {v for v, s in side.items() if s == 0}, {v for v, s in side.items() if s == 1}


def _directions(
    packets: list[TimedPacket], split_mode: str
) -> tuple[list[TimedPacket], list[TimedPacket]]:
    if split_mode not in ("MAC", "IP"):
        raise TRexError(f"split_mode is MAC, IP or INTERFACE, not {split_mode}")
    ends = []
    graph = Graph()
    for number, (data, _) in enumerate(packets):
        header = Ether(data)
        if not isinstance(header, (Ether, Dot3)):
            raise TRexError(f"packet {number} has no Ethernet header")
        if split_mode == "IP":
            header = header.getlayer(IP) or header.getlayer(IPv6)
        ends.append(header.src if header else None)
        if header:
            graph.add(header.src, header.dst)
    _, other_side = graph.split()
    there = [p for p, source in zip(packets, ends) if source not in other_side]
    back = [p for p, source in zip(packets, ends) if source in other_side]
    return there, back
