"""User files: errors of the system become a `TRexError` with the file's name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trex.errors import TRexError


@contextmanager
def reading(path: str | os.PathLike[str], error: type[TRexError] = TRexError) -> Iterator[None]:
    """Raises `error` if the block cannot read the file."""
    try:
        yield
    except (OSError, UnicodeDecodeError) as cause:
        raise error(f"cannot read '{path}': {_reason(cause)}") from cause


@contextmanager
def writing(path: str | os.PathLike[str], error: type[TRexError] = TRexError) -> Iterator[None]:
    """Raises `error` if the block cannot write the file."""
    try:
        yield
    except OSError as cause:
        folder = os.path.dirname(path) or "."
        hint = "" if os.path.isdir(folder) else f"; create the folder '{folder}' first"
        raise error(f"cannot write '{path}': {_reason(cause)}{hint}") from cause


def _reason(cause: OSError | UnicodeDecodeError) -> str:
    if isinstance(cause, UnicodeDecodeError):
        return f"expected text in UTF-8, found byte {cause.object[cause.start]:#04x}"
    return cause.strerror or str(cause)
