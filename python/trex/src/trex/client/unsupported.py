"""Parts of TRex's client that this package lacks."""

from __future__ import annotations

from typing import Any, NoReturn

from trex.errors import TRexUnsupportedError


class Unsupported:
    """An attribute that raises `TRexUnsupportedError` with the replacement to use."""

    def __init__(self, replacement: str) -> None:
        self._replacement = replacement
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, client: Any, owner: type) -> NoReturn:
        raise TRexUnsupportedError(f"{self._name} is not supported: {self._replacement}")
