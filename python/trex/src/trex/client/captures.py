"""Captures of what arrives at ports in service mode, which the engine leaves to the kernel."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from trex.client.packet_socket import PacketSocket
from trex.errors import TRexArgumentError, TRexError

_MODES = ("fixed", "cyclic")
# How long a look for a frame lasts before the end of the capture is looked for.
_LOOK_S = 0.05
# After its end a capture takes what has arrived, as long as something does.
_LAST_LOOK_S = 0.01


class Capture:
    """A capture: at most `limit` frames, the first of them (`fixed`) or the last (`cyclic`)."""

    def __init__(
        self,
        number: int,
        interfaces: dict[int, str],
        limit: int,
        mode: str,
        bpf_filter: str,
        snaplen: int,
    ) -> None:
        if mode not in _MODES:
            raise TRexArgumentError("mode", mode, ", ".join(_MODES))
        self.number = number
        self.since = time.time()
        self._ports = list(interfaces)
        self._limit = limit
        self._mode = mode
        self._filter = bpf_filter
        self._snaplen = snaplen or None
        self._frames: deque[dict[str, Any]] = deque()
        self._matched = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        sockets = {}
        for port, interface in interfaces.items():
            sockets[port] = PacketSocket(interface)
            if bpf_filter:
                sockets[port].filter(bpf_filter)
        self._threads = [
            threading.Thread(target=self._listen, args=item, name="capture", daemon=True)
            for item in sockets.items()
        ]
        for thread in self._threads:
            thread.start()

    def status(self) -> dict[str, Any]:
        """What TRex tells of a capture."""
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
                    "tx": 0,
                    "rx": sum(1 << port for port in self._ports),
                    "bpf": self._filter,
                },
            }

    def stop(self) -> None:
        """Ends it, once all that has arrived is taken."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def take(self, count: int | None = None) -> list[dict[str, Any]]:
        """Takes the oldest frames, or all."""
        with self._lock:
            most = len(self._frames) if count is None else min(count, len(self._frames))
            return [self._frames.popleft() for _ in range(most)]

    def _listen(self, port: int, source: PacketSocket) -> None:
        with source:
            while True:
                is_last = self._ended.is_set()
                frame = source.receive(lambda _: True, _LAST_LOOK_S if is_last else _LOOK_S)
                if frame is not None:
                    self._note(port, frame)
                elif is_last:
                    return

    def _note(self, port: int, frame: bytes) -> None:
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
                        "origin": "RX",
                        "port": port,
                        "index": self._matched,
                        "ts": time.time(),
                    }
                )


def write(frames: Iterable[dict[str, Any]], output: Any) -> None:
    """Adds frames to a list, or writes them to a file of this name; nowhere for None."""
    if output is None:
        return
    if isinstance(output, list):
        output.extend(frames)
        return
    if not isinstance(output, str):
        raise TRexError(f"output is a list or the name of a file, not {type(output).__name__}")
    from scapy.utils import PcapWriter

    with PcapWriter(output, linktype=1, sync=True) as file:
        for frame in frames:
            seconds = int(frame["ts"])
            microseconds = int((frame["ts"] - seconds) * 1e6)
            if not file.header_present:
                file.write_header(None)
            file.write_packet(frame["binary"], sec=seconds, usec=microseconds)
