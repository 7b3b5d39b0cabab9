"""Frames of a server's port for services: a capture that is polled, in place of a packet socket."""

from __future__ import annotations

import base64
import os
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from trex.errors import TRexError

# Interval of the questions for received frames, in seconds, and most frames of an answer.
_POLL_S = 0.02
_FETCH_MAX = 256
_FRAMES_MAX = 10_000


class PacketSource:
    """Sends and receives single frames of a port. The interface is that of `PacketSocket`."""

    def __init__(self, connection: Any, port: int) -> None:
        self._connection = connection
        self._port = port
        self._capture: int | None = None
        self._frames: deque[bytes] = deque()
        self._read, self._write = os.pipe()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> PacketSource:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Returns a file descriptor that is readable when frames have arrived."""
        return self._read

    def filter(self, expression: str) -> None:
        """Receives the frames that match a tcpdump expression, from now on."""
        self._stop()
        found = self._connection.call(
            "capture",
            {
                "command": "start",
                "limit": _FRAMES_MAX,
                "mode": "cyclic",
                "tx": [],
                "rx": [self._port],
                "filter": expression,
            },
        )
        self._capture = found["capture_id"]
        self._ended.clear()
        self._thread = threading.Thread(target=self._poll, name="frames", daemon=True)
        self._thread.start()

    def enable_promiscuous(self) -> None:
        """Does nothing: captures of the server are promiscuous."""

    def enable_all_multicast(self) -> None:
        """Does nothing: captures of the server are promiscuous."""

    def send(self, frame: bytes) -> None:
        """Sends a frame as it is."""
        packet = {
            "binary": base64.b64encode(frame).decode(),
            "use_port_dst_mac": False,
            "use_port_src_mac": False,
        }
        parameters = {"port_id": self._port, "pkts": [packet], "ipg_usec": 0}
        self._connection.call("push_pkts", parameters)

    def received(self) -> Iterator[bytes]:
        """Yields the frames that have arrived."""
        os.read(self._read, _FETCH_MAX)
        while self._frames:
            yield self._frames.popleft()

    def close(self) -> None:
        """Ends the capture."""
        self._stop()
        os.close(self._read)
        os.close(self._write)

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        if self._capture is not None:
            number, self._capture = self._capture, None
            for command in ("stop", "remove"):
                self._connection.call("capture", {"command": command, "capture_id": number})

    def _poll(self) -> None:
        parameters = {"command": "fetch", "capture_id": self._capture, "pkt_limit": _FETCH_MAX}
        while not self._ended.wait(_POLL_S):
            try:
                packets = self._connection.call("capture", parameters)["pkts"]
            except TRexError:
                # The server is gone; the next request of the service reports it.
                return
            if packets:
                self._frames.extend(base64.b64decode(packet["binary"]) for packet in packets)
                os.write(self._write, b"\0")
