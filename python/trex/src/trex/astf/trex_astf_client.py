"""The stateful client by an older name of its module."""

from trex.astf.client import ASTFClient
from trex.astf.tunnelling import Tunnel

__all__ = ["ASTFClient", "Tunnel"]
