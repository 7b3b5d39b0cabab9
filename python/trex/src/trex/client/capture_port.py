"""A port connected to a ZeroMQ socket in both directions."""

from __future__ import annotations

import os
import threading
from typing import Any

from trex.client.packet_socket import PacketSocket
from trex.errors import TRexError

# Maximum number of frames to send before the next check for received frames.
_BATCH_MAX = 32


class CapturePort:
    """Forwards raw frames without FCS, one a message, over a PAIR socket that the peer has bound.

    Frames that the peer does not accept at once are lost, and so are frames without a peer.
    """

    def __init__(self, interface: str, endpoint: str, bpf_filter: str) -> None:
        zmq = _zmq()
        self._zmq = zmq
        self._port = PacketSocket(interface)
        self._context = zmq.Context()
        self._messages = self._context.socket(zmq.PAIR)
        self._messages.setsockopt(zmq.LINGER, 0)
        self._wake_read, self._wake_write = os.pipe()
        self._thread: threading.Thread | None = None
        try:
            self.filter(bpf_filter)
            self._messages.connect(endpoint)
        except zmq.ZMQError as error:
            self.stop()
            raise TRexError(f"endpoint {endpoint!r}: {error}") from error
        except TRexError:
            self.stop()
            raise
        self._thread = threading.Thread(target=self._run, name="capture-port", daemon=True)
        self._thread.start()

    def filter(self, bpf_filter: str) -> None:
        """Sets a tcpdump expression for forwarded frames; an empty one matches all."""
        self._port.filter(bpf_filter)

    def stop(self) -> None:
        """Stops the forwarding and waits for its thread."""
        if self._thread is not None:
            os.write(self._wake_write, b"\0")
            self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._messages.close()
        self._context.term()
        self._port.close()

    def _run(self) -> None:
        poller = self._zmq.Poller()
        for source in (self._messages, self._port.fileno(), self._wake_read):
            poller.register(source, self._zmq.POLLIN)
        while self._wake_read not in (ready := dict(poller.poll())):
            try:
                if self._port.fileno() in ready:
                    self._forward()
                if self._messages in ready:
                    self._send()
            except TRexError:
                # The interface went down, or rejects a frame of this length.
                continue

    def _forward(self) -> None:
        for frame in self._port.received():
            try:
                self._messages.send(frame, self._zmq.NOBLOCK)
            except self._zmq.Again:
                continue

    def _send(self) -> None:
        for _ in range(_BATCH_MAX):
            try:
                message = self._messages.recv(self._zmq.NOBLOCK)
            except self._zmq.Again:
                return
            self._port.send(message)


def _zmq() -> Any:
    try:
        import zmq
    except ImportError as error:
        raise TRexError(
            f"capture ports need pyzmq ({error}): pip install 'wirestorm-trex[zmq]'"
        ) from error
    return zmq
