"""Packet socket on a port's interface, in any network namespace."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from trex.client.frame_filter import FrameFilter
from trex.errors import TRexError

_NAMESPACES = "/var/run/netns"
_CLONE_NEWNET = 0x40000000
_ETH_P_ALL = 3
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_MR_PROMISC = 1
_PACKET_MR_ALLMULTI = 2
_PACKET_AUXDATA = 8
_PACKET_OUTGOING = 4
# struct tpacket_auxdata: status, lengths, offsets, VLAN tag, TPID.
_AUXDATA = struct.Struct("IIIHHHH")
_VLAN_VALID = 1 << 4
_VLAN_TPID_VALID = 1 << 6
_VLAN = 0x8100
# Offset behind the Ethernet addresses.
_TAG_OFFSET = 12
_SO_ATTACH_FILTER = 26
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
# struct sock_filter of a classic BPF program: code, jump offsets, operand. The program compares the
# EtherType with IPv4 and the protocol with ICMP. It accepts frames that match both, and no others.
_IS_ICMP = [
    (0x28, 0, 0, 12),
    (0x15, 0, 3, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, 1),
    (0x06, 0, 0, 0x40000),
    (0x06, 0, 0, 0),
]
_INSTRUCTION_LENGTH = 8
_SO_RCVBUFFORCE = 33
# The kernel charges about a kilobyte for a small frame.
_RECEIVE_BUFFER_BYTES = 8 << 20
_FRAME_LENGTH_MAX = 65536
# Maximum number of frames to receive in a row.
_BATCH_MAX = 256
_EXTRA_LENGTH = 256


class PacketSocket:
    """Sends and receives single frames. Its kernel settings end with the process.

    With `is_outgoing`, it receives the frames that the interface sends through the kernel's taps.
    """

    def __init__(self, interface: str, is_outgoing: bool = False) -> None:
        self._interface = interface
        self._is_outgoing = is_outgoing
        #: Filter for tagged frames, which the kernel cannot match.
        self._filter: FrameFilter | None = None
        namespace, _, self._name = interface.rpartition(":")
        self._socket = self._open(namespace.removeprefix("netns/"))

    def __enter__(self) -> PacketSocket:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def enable_promiscuous(self) -> None:
        """Puts the interface in promiscuous mode while the socket is open."""
        self._join(_PACKET_MR_PROMISC)

    def enable_all_multicast(self) -> None:
        """Puts the interface in all-multicast mode while the socket is open."""
        self._join(_PACKET_MR_ALLMULTI)

    def _join(self, kind: int) -> None:
        request = struct.pack("iHH8s", self._index, kind, 0, b"")
        self._socket.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)

    def filter(self, expression: str) -> None:
        """Sets a tcpdump expression, matched on frames with their VLAN tags, as in a capture.

        `ip` does not match a frame in a VLAN.
        """
        self._filter = FrameFilter(expression)
        self._attach(self._filter.kernel_program(ignores_tag=False))

    def filter_ignoring_tag(self, expression: str) -> None:
        """Like `filter`, but ignores an outer tag: `ip` matches with and without it.

        The kernel does all the filtering, so that unwanted frames cost Python nothing.
        """
        self._filter = None
        self._attach(FrameFilter(expression).kernel_program(ignores_tag=True))

    def filter_icmp(self) -> None:
        """Receives only ICMP over IPv4, untagged or in one VLAN."""
        self._filter = None
        self._attach(b"".join(struct.pack("HBBI", *instruction) for instruction in _IS_ICMP))

    def _attach(self, program: bytes) -> None:
        """Attaches a classic BPF program, which the kernel copies."""
        instructions = ctypes.create_string_buffer(program, len(program))
        # struct sock_fprog: number of instructions, pointer to them.
        count = len(program) // _INSTRUCTION_LENGTH
        fprog = struct.pack("HL", count, ctypes.addressof(instructions))
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, fprog)
        except OSError as error:
            message = f"the kernel rejected a filter of {count} instructions"
            raise TRexError(f"{self._interface}: {message}: {error.strerror or error}") from error

    def enable_timestamps(self) -> None:
        """Enables receive timestamps; see `received_with_time`."""
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)

    def send(self, frame: bytes) -> None:
        """Sends a frame without FCS. Raises `TRexError` if the interface rejects it."""
        try:
            self._socket.send(frame)
        except OSError as error:
            message = f"a frame of {len(frame)} bytes was not sent"
            raise TRexError(f"{self._interface}: {message}: {error.strerror or error}") from error

    def receive(self, predicate: Callable[[bytes], bool], timeout_s: float) -> bytes | None:
        """Returns the first frame that matches `predicate`; None after the timeout."""
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            frame = self._next(0)
            if frame is None:
                return None
            if frame and predicate(frame):
                return frame
        return None

    def received(self) -> Iterator[bytes]:
        """Yields the received frames, at most a batch, without waiting."""
        for _ in range(_BATCH_MAX):
            frame = self._next(socket.MSG_DONTWAIT)
            if frame is None:
                return
            if frame:
                yield frame

    def received_with_time(self) -> Iterator[tuple[int, bytes]]:
        """Like `received`, with the arrival time of each frame in nanoseconds since 1970."""
        for _ in range(_BATCH_MAX):
            try:
                frame, extra, _, address = self._socket.recvmsg(
                    _FRAME_LENGTH_MAX, _EXTRA_LENGTH, socket.MSG_DONTWAIT
                )
            except BlockingIOError:
                return
            except OSError as error:
                raise TRexError(f"{self._interface}: {error.strerror or error}") from error
            for level, kind, data in extra:
                is_outgoing = address[2] == _PACKET_OUTGOING
                is_time = (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS)
                if is_time and is_outgoing == self._is_outgoing:
                    if tagged := self._apply_filter(frame, extra):
                        seconds, nanoseconds = _TIMESPEC.unpack(data[: _TIMESPEC.size])
                        yield seconds * 1_000_000_000 + nanoseconds, tagged

    def fileno(self) -> int:
        """Returns the file descriptor for `select`: readable if there is a frame."""
        return self._socket.fileno()

    def _next(self, flags: int) -> bytes | None:
        """Receives a frame. Returns None if there is none.

        Returns empty bytes for a frame of the other direction or one that does not match.
        """
        try:
            frame, extra, _, address = self._socket.recvmsg(_FRAME_LENGTH_MAX, _EXTRA_LENGTH, flags)
        except (socket.timeout, BlockingIOError):
            return None
        except OSError as error:
            raise TRexError(f"{self._interface}: {error.strerror or error}") from error
        is_outgoing = address[2] == _PACKET_OUTGOING
        return self._apply_filter(frame, extra) if is_outgoing == self._is_outgoing else b""

    def _apply_filter(self, frame: bytes, extra: list[tuple[int, int, bytes]]) -> bytes:
        """Returns the frame with its tag; empty bytes if it is tagged and does not match."""
        tagged, chosen = _with_tag(frame, extra), self._filter
        if chosen is not None and len(tagged) > len(frame) and not chosen.matches(tagged):
            return b""
        return tagged

    def _open(self, namespace: str) -> socket.socket:
        """Opens the socket in a thread that enters the namespace. The socket stays in it."""
        sockets: list[socket.socket] = []
        errors: list[OSError] = []

        def open_in_namespace() -> None:
            try:
                if namespace:
                    _enter(namespace)
                found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
                found.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
                _enlarge_buffer(found)
                found.bind((self._name, _ETH_P_ALL))
                self._index = socket.if_nametoindex(self._name)
                sockets.append(found)
            except OSError as error:
                errors.append(error)

        thread = threading.Thread(target=open_in_namespace, name="packet-socket")
        thread.start()
        thread.join()
        if errors:
            raise TRexError(f"{self._interface}: {errors[0].strerror or errors[0]}")
        return sockets[0]


def _enlarge_buffer(found: socket.socket) -> None:
    """Enlarges the receive buffer, for frames that arrive faster than Python reads them.

    Exceeds the limit for users if the process has the privilege.
    """
    try:
        found.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
    except PermissionError:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)


def _with_tag(frame: bytes, extra: list[tuple[int, int, bytes]]) -> bytes:
    """Restores the VLAN tag that the kernel has removed."""
    for level, kind, data in extra:
        if (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA) and len(data) >= _AUXDATA.size:
            status, _, _, _, _, tag, tpid = _AUXDATA.unpack_from(data)
            if status & _VLAN_VALID:
                tpid = tpid if status & _VLAN_TPID_VALID else _VLAN
                head, rest = frame[:_TAG_OFFSET], frame[_TAG_OFFSET:]
                return head + struct.pack("!HH", tpid, tag) + rest
    return frame


def _enter(namespace: str) -> None:
    file = os.open(os.path.join(_NAMESPACES, namespace), os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(file, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(file)
