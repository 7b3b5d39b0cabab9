"""Queue of the last frames that a port received."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from trex.client.listener import Listener
from trex.client.packet_socket import PacketSocket


class RxQueue:
    """Keeps at most `size` frames; drops the oldest."""

    def __init__(self, port: int, interface: str, size: int) -> None:
        self._port = port
        self._size = size
        self._frames: deque[dict[str, Any]] = deque(maxlen=size)
        self._count = 0
        self._lock = threading.Lock()
        self._listener = Listener(PacketSocket(interface), self._handle_frame)

    def __str__(self) -> str:
        return f"[{len(self._frames)} / {self._size}]"

    def pop_frames(self) -> list[dict[str, Any]]:
        """Removes and returns the frames."""
        with self._lock:
            frames = list(self._frames)
            self._frames.clear()
        return frames

    def stop(self) -> None:
        """Stops the queue."""
        self._listener.stop()

    def _handle_frame(self, frame: bytes) -> list[bytes]:
        with self._lock:
            self._count += 1
            self._frames.append(
                {
                    "binary": frame,
                    "origin": "RX",
                    "port": self._port,
                    "index": self._count,
                    "ts": time.time(),
                }
            )
        return []
