"""What commands answer: data, or what went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class _Part(NamedTuple):
    is_good: bool
    data: Any
    is_warn: bool


class RC:
    """An answer, or several in one. It is true when all went well."""

    def __init__(self, rc: bool | None = None, data: Any = None, is_warn: bool = False) -> None:
        self._parts = [] if rc is None else [_Part(bool(rc), data, is_warn)]

    def __bool__(self) -> bool:
        return self.good()

    def __iter__(self) -> Iterator[RC]:
        return (RC(*part) for part in self._parts)

    def add(self, rc: RC) -> None:
        """Adds another one's answers."""
        self._parts += rc._parts

    def good(self) -> bool:
        """Whether all went well."""
        return all(part.is_good for part in self._parts)

    def bad(self) -> bool:
        """Whether something went wrong."""
        return not self.good()

    def warn(self) -> bool:
        """Whether there is something to be known."""
        return any(part.is_warn for part in self._parts)

    def data(self) -> Any:
        """What was asked for; of several answers a list."""
        return _only([part.data if part.is_good else "" for part in self._parts])

    def err(self) -> Any:
        """What went wrong; of several answers a list."""
        return _only(["" if part.is_good else part.data for part in self._parts])

    def __str__(self) -> str:
        shown = (str(part.data) for part in self._parts if part.is_good == self.good())
        return "\n".join(text for text in shown if text)


def _only(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def RC_OK(data: Any = "") -> RC:
    """An answer with what was asked for."""
    return RC(True, data)


def RC_ERR(err: Any = "") -> RC:
    """An answer that says what went wrong."""
    return RC(False, err)


def RC_WARN(warn: Any = "") -> RC:
    """An answer with something to be known."""
    return RC(True, warn, is_warn=True)
