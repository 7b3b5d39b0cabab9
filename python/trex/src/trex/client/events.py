"""What a client tells beside its answers."""

from __future__ import annotations

import datetime
from collections import deque

# More than these are forgotten, the oldest first.
_EVENTS_MAX = 1000


class Event:
    """Something that happened: where, how grave (`info` or `warning`), and in words."""

    def __init__(self, origin: str, ev_type: str, msg: str) -> None:
        self.origin = origin
        self.type = ev_type
        self.msg = msg
        self.ts = datetime.datetime.now()

    def __str__(self) -> str:
        return f"{self.ts:%Y-%m-%d %H:%M:%S} - [{self.origin}][{self.type}] - {self.msg}"

    def __repr__(self) -> str:
        return str(self)


class Events:
    """The events of a client, the oldest first."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=_EVENTS_MAX)

    def __len__(self) -> int:
        return len(self._events)

    def add(self, ev_type: str, msg: str) -> None:
        """Notes an event of this program's."""
        self._events.append(Event("local", ev_type, msg))

    def pop(self) -> Event | None:
        """Takes the oldest."""
        return self._events.popleft() if self._events else None

    def of(self, *types: str) -> list[Event]:
        """Those of these types, or all."""
        return [event for event in self._events if not types or event.type in types]

    def clear(self) -> None:
        """Forgets all."""
        self._events.clear()
