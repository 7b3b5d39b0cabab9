"""Events by their older place."""

from trex.client.events import Event, EventsHandler

__all__ = ["Event", "EventsHandler"]
