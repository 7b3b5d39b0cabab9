"""Streams for tests that send, and waits with a time limit."""

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

# Generous, because a busy machine is slow and that is no failure of these tests.
LIMIT_S = 60


def packet(size: int = 60, **fields: Any) -> STLPktBuilder:
    """Returns a UDP packet of `size` bytes."""
    base = Ether() / IP(src="16.0.0.1", dst="48.0.0.1", **fields) / UDP(dport=12, sport=1025)
    return STLPktBuilder(pkt=base / bytes(size - len(base)))


def continuous(pps: float = 1000, **arguments: Any) -> STLStream:
    """Returns a continuous stream."""
    return STLStream(packet=packet(), mode=STLTXCont(pps=pps), **arguments)


def burst(count: int, pps: float = 10_000, size: int = 60, **arguments: Any) -> STLStream:
    """Returns a stream of `count` frames."""
    return STLStream(packet=packet(size), mode=STLTXSingleBurst(count, pps=pps), **arguments)


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits until `condition()` is true, with a time limit."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def sent(client: STLClient, port: int = 0) -> int:
    """Returns the number of frames that a port has sent."""
    count: int = client.get_stats()[port]["opackets"]
    return count


def wait_until_idle(client: STLClient, port: int = 0) -> None:
    """Waits until the port has sent nothing for half a second, at 100 frames per second or more.

    Commands and counters take tenths of a second.
    """
    before, deadline = -1, time.monotonic() + LIMIT_S
    while before != sent(client, port):
        assert time.monotonic() < deadline
        before = sent(client, port)
        time.sleep(0.5)
