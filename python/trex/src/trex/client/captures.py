"""Captures of frames that ports in service mode receive and send through the kernel."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from trex.client import capture_writer
from trex.client.packet_socket import PacketSocket
from trex.errors import TRexArgumentError, TRexError
from trex.files import writing

_MODES = ("fixed", "cyclic")
_RX, _TX = "RX", "TX"
# Wait for a frame before the next check for the end of the capture, in seconds.
_POLL_S = 0.05
# After its end, a capture takes the frames that have arrived. The limit stops it if frames keep
# arriving.
_LAST_POLL_S, _LAST_S_MAX = 0.01, 0.5


class Capture:
    """A capture of at most `limit` frames: the first ones (`fixed`) or the last ones (`cyclic`)."""

    def __init__(
        self,
        number: int,
        rx_interfaces: dict[int, str],
        tx_interfaces: dict[int, str],
        limit: int,
        mode: str,
        bpf_filter: str,
        snaplen: int,
    ) -> None:
        if mode not in _MODES:
            raise TRexArgumentError("mode", mode, ", ".join(_MODES))
        self.number = number
        self.started = time.time()
        #: Ports whose sent frames it captures.
        self.tx_ports = list(tx_interfaces)
        self.rx_ports = list(rx_interfaces)
        self._limit = limit
        self._mode = mode
        self._filter = bpf_filter
        self._snaplen = snaplen or None
        self._frames: deque[dict[str, Any]] = deque()
        self._matched = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._last_s = 0.0
        sources = [(port, _RX, interface) for port, interface in rx_interfaces.items()]
        sources += [(port, _TX, interface) for port, interface in tx_interfaces.items()]
        listeners = []
        for port, origin, interface in sources:
            source = PacketSocket(interface, is_outgoing=origin == _TX)
            if bpf_filter:
                source.filter(bpf_filter)
            listeners.append((port, origin, source))
        self._threads = [
            threading.Thread(target=self._run, args=listener, name="capture", daemon=True)
            for listener in listeners
        ]
        for thread in self._threads:
            thread.start()

    def status(self) -> dict[str, Any]:
        """Returns the status of a capture in TRex's format."""
        with self._lock:
            return {
                "id": self.number,
                "state": "STOPPED" if self._ended.is_set() else "ACTIVE",
                "mode": self._mode,
                "limit": self._limit,
                "count": len(self._frames),
                "bytes": sum(len(frame["binary"]) for frame in self._frames),
                "matched": self._matched,
                "filter": {
                    "tx": sum(1 << port for port in self.tx_ports),
                    "rx": sum(1 << port for port in self.rx_ports),
                    "bpf": self._filter,
                },
            }

    def stop(self) -> None:
        """Ends the capture after all frames that have arrived."""
        self._last_s = time.monotonic() + _LAST_S_MAX
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def pop_frames(self, count: int | None = None) -> list[dict[str, Any]]:
        """Removes and returns the oldest `count` frames, or all."""
        with self._lock:
            limit = len(self._frames) if count is None else min(count, len(self._frames))
            return [self._frames.popleft() for _ in range(limit)]

    def _run(self, port: int, origin: str, source: PacketSocket) -> None:
        with source:
            while True:
                is_last = self._ended.is_set()
                poll_s = _LAST_POLL_S if is_last else _POLL_S
                frame = source.receive(lambda _: True, poll_s)
                if frame is not None:
                    self._record(port, origin, frame)
                if is_last and (frame is None or time.monotonic() > self._last_s):
                    return

    def _record(self, port: int, origin: str, frame: bytes) -> None:
        with self._lock:
            self._matched += 1
            if self._limit and len(self._frames) >= self._limit:
                if self._mode == "fixed":
                    return
                self._frames.popleft()
            if self._limit:
                self._frames.append(
                    {
                        "binary": frame[: self._snaplen],
                        "wirelen": len(frame),
                        "origin": origin,
                        "port": port,
                        "index": self._matched,
                        "ts": time.time(),
                    }
                )


def check_output(output: Any) -> None:
    """Raises `TRexError` if `output` is not writable. Runs before any frame is removed."""
    if isinstance(output, str):
        with writing(output), open(output, "ab"):
            return
    if output is not None and not isinstance(output, list):
        raise TRexError(f"output is a list or the name of a file, not {type(output).__name__}")


def write(frames: list[dict[str, Any]], output: Any) -> None:
    """Writes frames to a file, or replaces the content of a list. Does nothing for None."""
    if isinstance(output, str):
        capture_writer.write(output, frames)
    elif output is not None:
        output[:] = frames
