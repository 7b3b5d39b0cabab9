"""Older location of the ports of `ASTFClient`."""

from trex.astf.port import ASTFPort

__all__ = ["ASTFPort"]
