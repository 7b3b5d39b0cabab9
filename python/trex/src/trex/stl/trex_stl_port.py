"""A port of `STLClient` by its older place."""

from trex.stl.port import STLPort

__all__ = ["STLPort"]
