"""Streams for the tests that send, and waiting with a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from trex.stl.api import (
    IP,
    UDP,
    Ether,
    STLClient,
    STLPktBuilder,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
)

# A machine that is busy with other things is late, and that is no failure of these tests.
LIMIT_S = 60


def packet(size: int = 60, **fields: Any) -> STLPktBuilder:
    """A packet of UDP of so many bytes."""
    base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1", **fields) / UDP(dport=12, sport=1025)
    return STLPktBuilder(pkt=base / bytes(size - len(base)))


def continuous(pps: float = 1000, **arguments: Any) -> STLStream:
    """A stream without end."""
    return STLStream(packet=packet(), mode=STLTXCont(pps=pps), **arguments)


def burst(count: int, pps: float = 10_000, size: int = 60, **arguments: Any) -> STLStream:
    """A stream of so many frames."""
    return STLStream(packet=packet(size), mode=STLTXSingleBurst(count, pps=pps), **arguments)


def until(is_so: Callable[[], bool]) -> None:
    """Waits for something, with a bound."""
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def sent(client: STLClient, port: int = 0) -> int:
    """The frames that left a port."""
    count: int = client.get_stats()[port]["opackets"]
    return count


def settled(client: STLClient, port: int = 0) -> None:
    """Waits until what is sent grows no more: for half a second, at a hundred frames a second or
    more. Orders and counters take tenths of one."""
    before, deadline = -1, time.monotonic() + LIMIT_S
    while before != sent(client, port):
        assert time.monotonic() < deadline
        before = sent(client, port)
        time.sleep(0.5)
