"""Base classes of services, for scripts to subclass."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NoReturn

from trex.errors import TRexError
from trex.services.loop import Event
from trex.services.pipe import ServicePipe


class ServiceFilter:
    """Assigns frames to services of one kind."""

    def add(self, service: Any) -> None:
        """Adds a service."""
        raise NotImplementedError

    def lookup(self, pkt: bytes) -> Iterable[Any]:
        """Returns the services that a frame belongs to."""
        raise NotImplementedError

    def get_bpf_filter(self) -> str:
        """Returns a tcpdump expression for the frames of all services."""
        raise NotImplementedError


class Service:
    """A protocol on a port."""

    ERROR = 3
    WARN = 2
    INFO = 1

    def __init__(self, verbose_level: int = ERROR) -> None:
        self.verbose_level = verbose_level

    def get_filter_type(self) -> type[ServiceFilter]:
        """Returns the filter class of the service."""
        raise NotImplementedError

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, Any]:
        """Runs the service: a generator that yields the events of the pipe's methods."""
        raise NotImplementedError

    def is_prom_required(self) -> bool:
        """Returns whether the port must receive frames to all addresses."""
        return False

    def is_mult_required(self) -> bool:
        """Returns whether the port must receive frames to all groups."""
        return False

    def err(self, msg: str) -> NoReturn:
        """Raises a `TRexError`."""
        raise TRexError(msg)

    def set_verbose(self, level: int) -> None:
        """Sets the lowest level of printed messages."""
        self.verbose_level = level

    def log(self, msg: str, level: int = INFO) -> None:
        """Prints a message if its level is high enough."""
        if level >= self.verbose_level:
            print(msg)
