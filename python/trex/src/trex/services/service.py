"""What a service is made of; scripts derive their own from it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NoReturn

from trex.errors import TRexError
from trex.services.loop import Event
from trex.services.pipe import ServicePipe


class ServiceFilter:
    """Which frames are whose, among services of a kind."""

    def add(self, service: Any) -> None:
        """Notes a service."""
        raise NotImplementedError

    def lookup(self, pkt: bytes) -> Iterable[Any]:
        """The services that a frame is for."""
        raise NotImplementedError

    def get_bpf_filter(self) -> str:
        """An expression of tcpdump's for all that any of them waits for."""
        raise NotImplementedError


class Service:
    """A protocol on a port."""

    ERROR = 3
    WARN = 2
    INFO = 1

    def __init__(self, verbose_level: int = ERROR) -> None:
        self.verbose_level = verbose_level

    def get_filter_type(self) -> type[ServiceFilter]:
        """The filter of its kind."""
        raise NotImplementedError

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, Any]:
        """What it does: a generator that yields what the pipe's methods return."""
        raise NotImplementedError

    def is_prom_required(self) -> bool:
        """Whether the port has to hear frames to all addresses."""
        return False

    def is_mult_required(self) -> bool:
        """Whether the port has to hear frames to all groups."""
        return False

    def err(self, msg: str) -> NoReturn:
        """Raises a `TRexError`."""
        raise TRexError(msg)

    def set_verbose(self, level: int) -> None:
        """Prints what is at least as grave from now on."""
        self.verbose_level = level

    def log(self, msg: str, level: int = INFO) -> None:
        """Prints something if it is grave enough."""
        if level >= self.verbose_level:
            print(msg)
