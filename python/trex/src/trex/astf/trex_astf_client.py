"""Older location of the stateful client."""

from trex.astf.client import ASTFClient
from trex.astf.tunnel_commands import Tunnel

__all__ = ["ASTFClient", "Tunnel"]
