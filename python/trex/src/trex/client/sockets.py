"""Forwarding of received frames to queues and ZeroMQ sockets."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

from trex.arguments import validate_type
from trex.client.capture_port import CapturePort
from trex.client.port import Port
from trex.client.rx_queue import RxQueue
from trex.client.session import Session
from trex.errors import TRexArgumentError, TRexError

_FILE = "file://"


class Sockets(Session):
    """Forwarding of frames of ports in service mode."""

    def set_rx_queue(self, ports: Any = None, size: int = 1000) -> None:
        """Keeps the last `size` received frames of each port.

        `get_port(...).get_rx_queue_pkts()` returns them.
        """
        self._require_session()
        validate_type("size", size, int)
        if size <= 0:
            raise TRexArgumentError("size", size, "1 or more")
        numbers = self._acquired_ports(ports)
        self.remove_rx_queue(numbers)
        for number in numbers:
            port = self.links[number]
            port.rx_queue = RxQueue(number, port.interface, size)

    def remove_rx_queue(self, ports: Any = None) -> None:
        """Stops keeping frames."""
        self._require_session()
        for number in self._acquired_ports(ports):
            queue, self.links[number].rx_queue = self.links[number].rx_queue, None
            if queue is not None:
                queue.stop()

    def start_capture_port(self, port: int, endpoint: str, bpf_filter: str | None = None) -> None:
        """Connects a port in service mode to a bound ZeroMQ PAIR socket at `endpoint`.

        Received frames that match the filter go to the socket, one a message. Messages from the
        socket leave the port.
        """
        chosen = self._in_service(port)
        validate_type("endpoint", endpoint, str)
        if chosen.capture_port is not None:
            raise TRexError(f"port {port} has a capture port; call stop_capture_port() first")
        chosen.capture_port = CapturePort(chosen.interface, endpoint, bpf_filter or "")

    def stop_capture_port(self, port: int) -> None:
        """Disconnects the socket, if there is one."""
        self._require_session()
        (number,) = self._acquired_ports(port)
        socket, self.links[number].capture_port = self.links[number].capture_port, None
        if socket is not None:
            socket.stop()

    def set_capture_port_bpf_filter(self, port: int, bpf_filter: str | None) -> None:
        """Sets the filter of frames to the socket. None matches all."""
        chosen = self._in_service(port)
        if chosen.capture_port is None:
            raise TRexError(f"port {port} has no capture port; call start_capture_port() first")
        chosen.capture_port.filter(bpf_filter or "")

    def endpoint_cb_rsync(self, output: str) -> Callable[[str], int]:
        """Returns a function for `stop_capture(endpoint_cb=)`.

        It copies the file of an endpoint `file:///PATH` to `output`. The file is on this machine,
        so that rsync is not necessary.
        """

        def copy(endpoint: str) -> int:
            if endpoint.startswith(_FILE):
                try:
                    shutil.copyfile(endpoint[len(_FILE) :].partition("?")[0], output)
                except OSError as error:
                    raise TRexError(f"{endpoint} to {output}: {error.strerror}") from error
            return 0

        return copy

    def _in_service(self, port: int) -> Port:
        self._require_session()
        (number,) = self._acquired_ports(port)
        if not self.links[number].is_service:
            raise TRexError(f"port {number} is not in service mode; call set_service_mode() first")
        return self.links[number]
