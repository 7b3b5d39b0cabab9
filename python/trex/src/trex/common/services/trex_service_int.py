"""Context of services. The code is in `trex.services.context`."""

from trex.services.context import ServiceCtx
from trex.services.pipe import ServicePipe

__all__ = ["ServiceCtx", "ServicePipe"]
