"""Generators that wait for times, for frames and for each other, in real time.

A process is a generator that yields events, and goes on when they have happened. Nothing here
sleeps or reads sockets: who turns the loop does, between what is due.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Generator
from typing import Any

from trex.errors import TRexError


class Event:
    """Something that happens once, and has a value from then on."""

    def __init__(self) -> None:
        self.has_happened = False
        self.value: Any = None
        self._waiting: list[Callable[[Any], None]] = []

    def succeed(self, value: Any = None) -> None:
        """It happens now; who waits for it goes on. A second time is none."""
        if self.has_happened:
            return
        self.has_happened, self.value = True, value
        waiting, self._waiting = self._waiting, []
        for go_on in waiting:
            go_on(value)

    def then(self, go_on: Callable[[Any], None]) -> None:
        """Calls this with the value when it happens, at once if it has."""
        if self.has_happened:
            go_on(self.value)
        else:
            self._waiting.append(go_on)


class Loop:
    """Processes and times."""

    def __init__(self) -> None:
        self._times: list[tuple[float, int, Event]] = []
        self._ready: list[tuple[Process, Any]] = []
        self._count = 0

    def event(self) -> Event:
        """An event that somebody will make happen."""
        return Event()

    def timeout(self, seconds: float, value: Any = None) -> Event:
        """An event that happens after a time."""
        event, timer = Event(), Event()
        timer.then(lambda _: event.succeed(value))
        self._count += 1
        heapq.heappush(self._times, (time.monotonic() + seconds, self._count, timer))
        return event

    def process(self, generator: Generator[Event, Any, Any]) -> Process:
        """Starts a generator; the event of its end, with what it returns."""
        if not isinstance(generator, Generator):
            raise TRexError(f"{generator!r} is no generator: a service's run() has to yield")
        process = Process(self, generator)
        self.resume(process, None)
        return process

    def resume(self, process: Process, value: Any) -> None:
        """Lets a process go on in the next turn."""
        self._ready.append((process, value))

    def turn(self) -> None:
        """Makes happen what is due, until nothing is."""
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
        """Whether a process can go on now."""
        return bool(self._ready)

    def seconds_left(self) -> float | None:
        """Until the next time that something waits for; None if nothing does."""
        return max(self._times[0][0] - time.monotonic(), 0) if self._times else None


class Process(Event):
    """A generator on its way; the event is its end."""

    def __init__(self, loop: Loop, generator: Generator[Event, Any, Any]) -> None:
        super().__init__()
        self._loop = loop
        self._generator = generator

    def step(self, value: Any) -> None:
        """Goes on to the next event it waits for. What it raises goes up."""
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
        event.then(lambda value: self._loop.resume(self, value))
