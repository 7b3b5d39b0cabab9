"""tcpdump expressions, matched on whole frames as in captures."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from trex.errors import TRexError

_ETHERNET = 1
# struct sock_filter, which libpcap calls bpf_insn: code, jump offsets, operand.
_INSTRUCTION = struct.Struct("HBBI")
# The kernel removes the outer VLAN tag of a frame before a filter sees it. A program for whole
# frames then misreads the EtherType behind the tag. These instructions precede the program: they
# load whether there was a tag (SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT of linux/filter.h) and accept
# such frames. `FrameFilter.matches` checks them after the tag is restored.
_ACCEPT_TAGGED = [
    (0x20, 0, 0, (-0x1000 + 48) & 0xFFFF_FFFF),
    (0x15, 1, 0, 0),
    (0x06, 0, 0, 0x40000),
]


class _Program(ctypes.Structure):
    """struct bpf_program."""

    _fields_ = (("length", ctypes.c_uint), ("instructions", ctypes.c_void_p))


class _Header(ctypes.Structure):
    """struct pcap_pkthdr: timestamp, captured length, original length."""

    _fields_ = (
        ("seconds", ctypes.c_long),
        ("microseconds", ctypes.c_long),
        ("captured", ctypes.c_uint),
        ("length", ctypes.c_uint),
    )


class FrameFilter:
    """A filter compiled by libpcap. Raises `TRexError` for an invalid expression."""

    def __init__(self, expression: str) -> None:
        from scapy.arch.common import compile_filter
        from scapy.error import Scapy_Exception

        try:
            compiled = compile_filter(expression, linktype=_ETHERNET)
            from scapy.libs.winpcapy import _lib as libpcap
        except (Scapy_Exception, ImportError, OSError) as error:
            raise TRexError(f"filter {expression!r}: {error}") from error
        length = compiled.bf_len * _INSTRUCTION.size
        # A copy that Python frees, because libpcap's own memory needs an explicit free.
        code = ctypes.string_at(compiled.bf_insns, length)
        self._code = ctypes.create_string_buffer(code, length)
        libpcap.pcap_freecode(ctypes.byref(compiled))
        self._program = _Program(compiled.bf_len, ctypes.addressof(self._code))
        # scapy declares the result as a boolean, which truncates libpcap's length to its lowest
        # byte.
        prototype = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(_Program), ctypes.POINTER(_Header), ctypes.c_char_p
        )
        self._matches: Any = prototype(("pcap_offline_filter", libpcap))

    def matches(self, frame: bytes) -> bool:
        """Returns whether a frame with all its tags matches."""
        header = _Header(0, 0, len(frame), len(frame))
        return bool(self._matches(ctypes.byref(self._program), ctypes.byref(header), frame))

    def kernel_program(self, ignores_tag: bool) -> bytes:
        """Returns the instructions for a socket, as an array of struct sock_filter.

        They accept every frame whose tag the kernel has removed. With `ignores_tag`, they
        match such a frame as if it had no tag.
        """
        before = [] if ignores_tag else _ACCEPT_TAGGED
        return b"".join(_INSTRUCTION.pack(*one) for one in before) + self._code.raw
