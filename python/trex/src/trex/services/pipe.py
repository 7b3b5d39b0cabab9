"""Input and output of a service."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from trex.services.loop import Event, Loop


class ServicePipe:
    """Sends and receives for a service. Each method returns an event to yield."""

    def __init__(self, env: Loop, send: Callable[[Any], Event]) -> None:
        self.env = env
        self._send = send
        self._received: deque[dict[str, Any]] = deque()
        self._waiting: deque[tuple[Event, int | None]] = deque()

    def async_wait(self, time_sec: float) -> Event:
        """Returns an event after `time_sec` seconds."""
        return self.env.timeout(time_sec)

    def async_wait_for_pkt(self, time_sec: float | None = None, limit: int | None = None) -> Event:
        """Returns an event with received frames, at most `limit`; an empty list after `time_sec`.

        Each frame is a dictionary of `pkt`, its bytes without FCS, and `ts`, its arrival in seconds
        since 1970.
        """
        event = self.env.event()
        while self._waiting and self._waiting[0][0].is_triggered:
            self._waiting.popleft()
        self._waiting.append((event, limit))
        self._deliver_waiting()
        if time_sec is not None:
            self.env.timeout(time_sec).add_callback(lambda _: event.succeed([]))
        return event

    def async_tx_pkt(self, tx_pkt: Any) -> Event:
        """Sends a scapy packet, bytes or a `PacketBuffer`.

        The returned event happens when the packet has left, with a dictionary of `ts`, seconds
        since 1970. The service need not wait for it.
        """
        return self._send(tx_pkt)

    def deliver(self, frame: bytes, seconds: float) -> None:
        """Delivers a frame to the service."""
        self._received.append({"pkt": frame, "ts": seconds})
        self._deliver_waiting()

    def _deliver_waiting(self) -> None:
        while self._received and self._waiting:
            event, limit = self._waiting.popleft()
            if event.is_triggered:
                continue
            count = len(self._received) if limit is None else min(limit, len(self._received))
            event.succeed([self._received.popleft() for _ in range(count)])
