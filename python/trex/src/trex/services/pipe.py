"""What a service sends and receives through."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from trex.services.loop import Event, Loop


class ServicePipe:
    """What a service sends and receives through; each method returns an event to be yielded."""

    def __init__(self, env: Loop, send: Callable[[Any], Event]) -> None:
        self.env = env
        self._send = send
        self._arrived: deque[dict[str, Any]] = deque()
        self._waiting: deque[tuple[Event, int | None]] = deque()

    def async_wait(self, time_sec: float) -> Event:
        """After so many seconds."""
        return self.env.timeout(time_sec)

    def async_wait_for_pkt(self, time_sec: float | None = None, limit: int | None = None) -> Event:
        """With the frames that have arrived, at most `limit`; none of them after `time_sec`.

        Each is a dictionary of `pkt`, its bytes without FCS, and `ts`, when it arrived (seconds
        since 1970).
        """
        event = self.env.event()
        while self._waiting and self._waiting[0][0].has_happened:
            self._waiting.popleft()
        self._waiting.append((event, limit))
        self._hand_on()
        if time_sec is not None:
            self.env.timeout(time_sec).then(lambda _: event.succeed([]))
        return event

    def async_tx_pkt(self, tx_pkt: Any) -> Event:
        """Sends a packet of scapy's, bytes or a `PacketBuffer`; it need not be waited for. When it
        has left, the event is a dictionary of `ts`, seconds since 1970."""
        return self._send(tx_pkt)

    def arrive(self, frame: bytes, seconds: float) -> None:
        """Takes a frame for the service."""
        self._arrived.append({"pkt": frame, "ts": seconds})
        self._hand_on()

    def _hand_on(self) -> None:
        while self._arrived and self._waiting:
            event, limit = self._waiting.popleft()
            if event.has_happened:
                continue
            count = len(self._arrived) if limit is None else min(limit, len(self._arrived))
            event.succeed([self._arrived.popleft() for _ in range(count)])
