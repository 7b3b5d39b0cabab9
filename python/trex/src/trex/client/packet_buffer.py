"""Frames that scripts pass to be sent."""

from __future__ import annotations

from typing import Any

from scapy.layers.l2 import Ether

from trex.errors import TRexTypeError

_ADDRESSES_LENGTH = 12


class PacketBuffer:
    """A frame, with flags to replace its addresses by the port's."""

    def __init__(self, buffer: Any, port_src: bool = False, port_dst: bool = False) -> None:
        self.buffer = bytes(buffer)
        self.port_src = port_src
        self.port_dst = port_dst


def with_addresses(packet: Any, source: str, destination: str | None) -> bytes:
    """Returns the bytes to send.

    A scapy packet gets the port's addresses where it sets none. A `PacketBuffer` has flags for
    that. Bytes stay unchanged. Raises `TRexTypeError` for anything else.
    """
    if isinstance(packet, Ether):
        port_src, port_dst = "src" not in packet.fields, "dst" not in packet.fields
    elif isinstance(packet, PacketBuffer):
        port_src, port_dst, packet = packet.port_src, packet.port_dst, packet.buffer
    elif isinstance(packet, (bytes, bytearray)):
        port_src = port_dst = True
    else:
        raise TRexTypeError("tx_pkt", type(packet), (Ether, bytes, PacketBuffer))
    frame = bytearray(bytes(packet))
    if port_dst and destination is not None:
        frame[:6] = bytes.fromhex(destination.replace(":", ""))
    if port_src:
        frame[6:_ADDRESSES_LENGTH] = bytes.fromhex(source.replace(":", ""))
    return bytes(frame)
