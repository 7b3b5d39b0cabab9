"""Expressions of tcpdump's, matched on whole frames as captures have them."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from trex.errors import TRexError

_ETHERNET = 1
# struct sock_filter, which libpcap calls bpf_insn: what to do, where to go on, with what number.
_INSTRUCTION = struct.Struct("HBBI")
# The kernel takes the outer VLAN tag out of a frame before filters see it, so a program for whole
# frames finds nothing of it, and the Ethernet type behind it where it looks for the tag's. This
# comes before the program: it loads whether there was a tag (at an offset that the kernel gives a
# meaning to: SKF_AD_OFF and SKF_AD_VLAN_TAG_PRESENT of linux/filter.h), and takes the whole frame
# if so. What was in a tag is left to `FrameFilter.matches`, once the tag is back in its place.
_TAKES_TAGGED = [
    (0x20, 0, 0, (-0x1000 + 48) & 0xFFFF_FFFF),
    (0x15, 1, 0, 0),
    (0x06, 0, 0, 0x40000),
]


class _Program(ctypes.Structure):
    """struct bpf_program."""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


class _Header(ctypes.Structure):
    """struct pcap_pkthdr: when a packet came, how much of it is there, how long it was."""

    _fields_ = (
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("captured", ctypes.c_uint),
        ("length", ctypes.c_uint),
    )


class FrameFilter:
    """A filter, by libpcap. Raises `TRexError` where the expression means nothing to it."""

    def __init__(self, expression: str) -> None:
        from scapy.arch.common import compile_filter
        from scapy.error import Scapy_Exception

        try:
            compiled = compile_filter(expression, linktype=_ETHERNET)
            from scapy.libs.winpcapy import _lib as libpcap
        except (Scapy_Exception, ImportError, OSError) as error:
            raise TRexError(f"filter {expression!r}: {error}") from error
        length = compiled.bf_len * _INSTRUCTION.size
        # A copy, which goes when nobody uses it any more: libpcap's own would have to be freed.
        code = ctypes.string_at(compiled.bf_insns, length)
        self._code = ctypes.create_string_buffer(code, length)
        libpcap.pcap_freecode(ctypes.byref(compiled))
        self._program = _Program(compiled.bf_len, ctypes.addressof(self._code))
        # scapy has it as a boolean, which is the lowest byte of how much of the frame is wanted.
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(_Program), ctypes.POINTER(_Header), ctypes.c_char_p
        )
        self._matches: Any = prototype(("pcap_offline_filter", libpcap))

    def matches(self, frame: bytes) -> bool:
        """Whether a frame does, with all its tags in place."""
        header = _Header(0, 0, len(frame), len(frame))
        return bool(self._matches(ctypes.byref(self._program), ctypes.byref(header), frame))

    def in_kernel(self, is_tag_passed_over: bool) -> bytes:
        """The instructions for a socket, struct sock_filter each.

        They take every frame whose tag the kernel has taken out. With `is_tag_passed_over` they
        look at such a frame as if it never had that tag.
        """
        before = [] if is_tag_passed_over else _TAKES_TAGGED
        return b"".join(_INSTRUCTION.pack(*one) for one in before) + self._code.raw
