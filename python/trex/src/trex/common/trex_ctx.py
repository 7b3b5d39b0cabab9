"""What the parts of a client share, by its older place."""

from trex.client.context import TRexCtx

__all__ = ["TRexCtx"]
