"""Part of the client without streams. The code is in `trex.client.client`."""

from trex.client.client import TRexClient
from trex.client.packet_buffer import PacketBuffer

__all__ = ["PacketBuffer", "TRexClient"]
