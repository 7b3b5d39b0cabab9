"""A thread that receives the frames of an interface."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from trex.client.packet_socket import PacketSocket
from trex.errors import TRexError


class Listener:
    """Passes each received frame to a function, until it is stopped or the interface fails.

    The frames that `handle_frame` returns are sent on the interface.
    """

    def __init__(self, port: PacketSocket, handle_frame: Callable[[bytes], list[bytes]]) -> None:
        self._port = port
        self._handle_frame = handle_frame
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread and closes the socket."""
        os.write(self._wake_write, b"\0")
        self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._port.close()

    def _run(self) -> None:
        sources = [self._port.fileno(), self._wake_read]
        while self._wake_read not in select.select(sources, [], [])[0]:
            try:
                for frame in self._port.received():
                    for answer in self._handle_frame(frame):
                        self._port.send(answer)
            except TRexError:
                # The interface went down. The socket works again when it is up.
                continue
