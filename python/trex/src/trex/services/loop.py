"""Event loop for generators that wait for times, frames and each other, in real time.

A process is a generator that yields events and continues when they happen. The loop neither sleeps
nor reads sockets; its caller does so between turns.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Generator
from typing import Any

from trex.errors import TRexError


class Event:
    """A one-time event with a value."""

    def __init__(self) -> None:
        self.is_triggered = False
        self.value: Any = None
        self._callbacks: list[Callable[[Any], None]] = []

    def succeed(self, value: Any = None) -> None:
        """Triggers the event and resumes the waiting processes. A second call has no effect."""
        if self.is_triggered:
            return
        self.is_triggered, self.value = True, value
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(value)

    def add_callback(self, callback: Callable[[Any], None]) -> None:
        """Calls `callback` with the value when the event happens, at once if it has happened."""
        if self.is_triggered:
            callback(self.value)
        else:
            self._callbacks.append(callback)


class Loop:
    """Event loop with processes and timers."""

    def __init__(self) -> None:
        self._times: list[tuple[float, int, Event]] = []
        self._ready: list[tuple[Process, Any]] = []
        self._count = 0

    def event(self) -> Event:
        """Returns an event that the caller triggers."""
        return Event()

    def timeout(self, seconds: float, value: Any = None) -> Event:
        """Returns an event that happens after `seconds`."""
        event, timer = Event(), Event()
        timer.add_callback(lambda _: event.succeed(value))
        self._count += 1
        heapq.heappush(self._times, (time.monotonic() + seconds, self._count, timer))
        return event

    def process(self, generator: Generator[Event, Any, Any]) -> Process:
        """Starts a generator. Returns the event of its end, whose value is the return value."""
        if not isinstance(generator, Generator):
            raise TRexError(f"{generator!r} is not a generator; run() of a service must yield")
        process = Process(self, generator)
        self.resume(process, None)
        return process

    def resume(self, process: Process, value: Any) -> None:
        """Resumes a process in the next turn."""
        self._ready.append((process, value))

    def run_ready(self) -> None:
        """Runs due timers and ready processes, until none is left."""
        while True:
            now = time.monotonic()
            while self._times and self._times[0][0] <= now:
                heapq.heappop(self._times)[2].succeed()
            if not self._ready:
                return
            ready, self._ready = self._ready, []
            for process, value in ready:
                process.step(value)

    def is_ready(self) -> bool:
        """Returns whether a process is ready."""
        return bool(self._ready)

    def seconds_left(self) -> float | None:
        """Returns the time until the next timer; None without timers."""
        return max(self._times[0][0] - time.monotonic(), 0) if self._times else None


class Process(Event):
    """A running generator. The event happens at its end."""

    def __init__(self, loop: Loop, generator: Generator[Event, Any, Any]) -> None:
        super().__init__()
        self._loop = loop
        self._generator = generator

    def step(self, value: Any) -> None:
        """Runs the generator to its next event. Its exceptions pass through."""
        try:
            event = self._generator.send(value)
        except StopIteration as end:
            self.succeed(end.value)
            return
        if not isinstance(event, Event):
            raise TRexError(
                f"a service yielded {event!r}; expected what pipe.async_wait, "
                "async_wait_for_pkt or async_tx_pkt returns"
            )
        event.add_callback(lambda value: self._loop.resume(self, value))
