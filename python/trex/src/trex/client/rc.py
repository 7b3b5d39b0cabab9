"""Results of commands: data or an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class _Part(NamedTuple):
    is_good: bool
    data: Any
    is_warn: bool


class RC:
    """A result, or several results in one. True if all are successful."""

    def __init__(self, rc: bool | None = None, data: Any = None, is_warn: bool = False) -> None:
        self._parts = [] if rc is None else [_Part(bool(rc), data, is_warn)]

    def __bool__(self) -> bool:
        return self.good()

    def __iter__(self) -> Iterator[RC]:
        return (RC(*part) for part in self._parts)

    def add(self, rc: RC) -> None:
        """Adds the results of another one."""
        self._parts += rc._parts

    def good(self) -> bool:
        """Returns whether all results are successful."""
        return all(part.is_good for part in self._parts)

    def bad(self) -> bool:
        """Returns whether a result is an error."""
        return not self.good()

    def warn(self) -> bool:
        """Returns whether a result has a warning."""
        return any(part.is_warn for part in self._parts)

    def data(self) -> Any:
        """Returns the data; a list for several results."""
        return _single_or_list([part.data if part.is_good else "" for part in self._parts])

    def err(self) -> Any:
        """Returns the errors; a list for several results."""
        return _single_or_list(["" if part.is_good else part.data for part in self._parts])

    def __str__(self) -> str:
        texts = (str(part.data) for part in self._parts if part.is_good == self.good())
        return "\n".join(text for text in texts if text)


def _single_or_list(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def RC_OK(data: Any = "") -> RC:
    """Returns a successful result with data."""
    return RC(True, data)


def RC_ERR(err: Any = "") -> RC:
    """Returns an error result."""
    return RC(False, err)


def RC_WARN(warn: Any = "") -> RC:
    """Returns a successful result with a warning."""
    return RC(True, warn, is_warn=True)
