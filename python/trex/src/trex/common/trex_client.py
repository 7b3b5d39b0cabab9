"""The part of the client that is not about streams; it lives in `trex.client.client`."""

from trex.client.client import TRexClient
from trex.stl.client import PacketBuffer

__all__ = ["PacketBuffer", "TRexClient"]
