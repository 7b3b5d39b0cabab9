"""Execution of services: a port, an event loop, and the packet sockets between them.

TRex runs services in simpy, which simulates time and polls for frames ten times a second. This loop
waits in `select` on the port, so that it handles a reply when it arrives.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from trex.client.packet_buffer import with_addresses
from trex.client.port import Port, Source
from trex.errors import TRexArgumentError, TRexError
from trex.services.loop import Event, Loop
from trex.services.pipe import ServicePipe
from trex.services.service import Service, ServiceFilter

# Largest lag behind the rate, in seconds, that the sender makes up for.
_BACKLOG_S = 0.01


class ServiceCtx:
    """Context of services on a port, from `STLClient.create_service_ctx`."""

    def __init__(self, client: Any, port: int) -> None:
        self.client = client
        self.port = port

    @property
    def port_obj(self) -> Any:
        """The port object that `STLClient.get_port` returns."""
        return self.client.ports[self.link.number]

    @property
    def link(self) -> Port:
        """The port. Raises `TRexArgumentError` if its number does not exist now."""
        port: Port | None = self.client.links.get(self.port)
        if port is None:
            known = ", ".join(map(str, self.client.links)) or "none: not connected"
            raise TRexArgumentError("port", self.port, known)
        return port

    def get_port_id(self) -> int:
        """Returns the port's number."""
        return self.port

    def get_src_ipv4(self) -> str | None:
        """Returns the port's IPv4 address, None if it has none."""
        return self.link.get_layer_cfg()["ipv4"].get("src")

    def get_src_mac(self) -> str:
        """Returns the port's Ethernet address."""
        return self.link.source

    def run(self, services: Any, pps: float = 1000) -> None:
        """Runs a service or a list of services concurrently until all have ended.

        They send at most `pps` frames per second together. The port must be in service mode.
        """
        self._check()
        run_services(self.link, services, pps)

    def _check(self) -> None:
        port, name = self.link, f"port {self.port}"
        if not port.is_acquired:
            raise TRexError(f"{name} is not acquired; call acquire() or reset()")
        if self.client.needs_service_mode and not port.is_service:
            raise TRexError(f"{name} is not in service mode; call set_service_mode() first")
        if not port.read_properties()["has_carrier"]:
            raise TRexError(f"{name} ({port.interface}) has no carrier; connect it")


class _Sender:
    """Queue of frames that leave at a rate."""

    def __init__(self, port: Port, out: Source, pps: float) -> None:
        self._port = port
        self._out = out
        self._gap_s = 1 / pps
        self._next = time.monotonic()
        self._queue: deque[tuple[bytes, Event]] = deque()

    def push(self, packet: Any) -> Event:
        """Queues a frame. Returns the event of its departure."""
        event = Event()
        frame = with_addresses(packet, self._port.source, self._port.destination)
        self._queue.append((frame, event))
        return event

    def send(self) -> None:
        """Sends the frames that are due."""
        while self._queue and self._next <= (now := time.monotonic()):
            self._next = max(self._next, now - _BACKLOG_S) + self._gap_s
            frame, event = self._queue.popleft()
            seconds = time.time()
            self._out.send(frame)
            event.succeed({"ts": seconds})

    def seconds_left(self) -> float | None:
        """Returns the time until the next frame is due; None if the queue is empty."""
        return max(self._next - time.monotonic(), 0) if self._queue else None


def run_services(port: Port, services: Any, pps: float = 1000) -> None:
    """Runs one or several services on a port until all have ended."""
    chosen = [services] if isinstance(services, Service) else services
    if not isinstance(chosen, (list, tuple)) or not all(isinstance(s, Service) for s in chosen):
        raise TRexError(f"services: found {services!r}, expected a Service or a list of them")
    if not chosen:
        raise TRexError("services: the list is empty")
    if not pps > 0:
        raise TRexArgumentError("pps", pps, "anything above 0")
    filters: dict[type[ServiceFilter], ServiceFilter] = {}
    for service in chosen:
        kind = service.get_filter_type()
        filters.setdefault(kind, kind()).add(service)
    with ExitStack() as stack:
        sockets = []
        for one in filters.values():
            source = stack.enter_context(port.packet_source())
            source.filter(one.get_bpf_filter())
            sockets.append((source, one))
        first = sockets[0][0]
        if any(service.is_prom_required() for service in chosen):
            first.enable_promiscuous()
        if any(service.is_mult_required() for service in chosen):
            first.enable_all_multicast()
        _run(chosen, sockets, _Sender(port, first, pps))


def _run(
    services: Sequence[Service], sockets: list[tuple[Source, ServiceFilter]], sender: _Sender
) -> None:
    loop = Loop()
    pipes = {service: ServicePipe(loop, sender.push) for service in services}
    processes = [loop.process(service.run(pipe)) for service, pipe in pipes.items()]
    while True:
        loop.run_ready()
        sender.send()
        has_ended = all(process.is_triggered for process in processes)
        waits = [sender.seconds_left(), None if has_ended else loop.seconds_left()]
        known = [wait for wait in waits if wait is not None]
        if has_ended and not known:
            return
        if loop.is_ready():
            continue
        readable, _, _ = select.select(
            [source for source, _ in sockets], [], [], min(known, default=None)
        )
        for source, one in sockets:
            if source not in readable:
                continue
            for frame in source.received():
                seconds = time.time()
                for service in one.lookup(frame):
                    pipes[service].deliver(frame, seconds)
