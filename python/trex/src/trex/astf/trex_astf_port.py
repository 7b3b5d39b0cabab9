"""A port of `ASTFClient` by its older place."""

from trex.astf.port import ASTFPort

__all__ = ["ASTFPort"]
