"""Older location of the ports of `STLClient`."""

from trex.stl.port import STLPort

__all__ = ["STLPort"]
