"""Older location of events."""

from trex.client.events import Event, EventsHandler

__all__ = ["Event", "EventsHandler"]
