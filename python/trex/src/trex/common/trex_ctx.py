"""Older location of the client context."""

from trex.client.context import TRexCtx

__all__ = ["TRexCtx"]
