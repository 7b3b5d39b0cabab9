"""Events of a client."""

from __future__ import annotations

import datetime
from collections import deque
from typing import Any

from trex.arguments import listify

# Maximum number of events; the oldest are dropped.
_EVENTS_MAX = 1000


class Event:
    """An event: its origin, type (`info` or `warning`) and message."""

    def __init__(self, origin: str, ev_type: str, msg: str) -> None:
        self.origin = origin
        self.ev_type = ev_type
        self.msg = msg
        self.ts = datetime.datetime.now()

    @property
    def type(self) -> str:
        """Same as `ev_type`."""
        return self.ev_type

    def __str__(self) -> str:
        return f"{self.ts:%Y-%m-%d %H:%M:%S} - [{self.origin}][{self.ev_type}] - {self.msg}"

    def __repr__(self) -> str:
        return str(self)


class EventsHandler:
    """Events of a client, the oldest first."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=_EVENTS_MAX)

    def __len__(self) -> int:
        return len(self.events)

    def empty(self) -> bool:
        """Returns whether there are no events."""
        return not self.events

    def add(self, ev_type: str, msg: str) -> None:
        """Adds a local event."""
        self.events.append(Event("local", ev_type, msg))

    def pop_event(self) -> Event | None:
        """Removes and returns the oldest event."""
        return self.events.popleft() if self.events else None

    def get_events(self, ev_type_filter: Any = None) -> list[Event]:
        """Returns the events, all or those of one or several types."""
        types = listify(ev_type_filter) if ev_type_filter else None
        return [event for event in self.events if types is None or event.ev_type in types]

    def clear_events(self) -> None:
        """Clears all events."""
        self.events.clear()
