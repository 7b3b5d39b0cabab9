"""Where services run; it lives in `trex.services.context`."""

from trex.services.context import ServiceCtx, ServicePipe

__all__ = ["ServiceCtx", "ServicePipe"]
