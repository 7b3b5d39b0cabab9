"""The part of the client that is not about streams; it lives in `trex.client.client`."""

from trex.client.client import TRexClient
from trex.client.packet_buffer import PacketBuffer

__all__ = ["PacketBuffer", "TRexClient"]
