"""What commands answer: data, or what went wrong."""

from __future__ import annotations

from typing import Any


class RC:
    """An answer. It is true when all went well."""

    def __init__(self, rc: bool | None = None, data: Any = None, is_warn: bool = False) -> None:
        self.is_good = rc is not False
        self.is_warn = is_warn
        self._data = data

    def __bool__(self) -> bool:
        return self.is_good

    def good(self) -> bool:
        """Whether all went well."""
        return self.is_good

    def bad(self) -> bool:
        """Whether something went wrong."""
        return not self.is_good

    def warn(self) -> bool:
        """Whether there is something to be known."""
        return self.is_warn

    def data(self) -> Any:
        """What was asked for."""
        return self._data if self.is_good else ""

    def err(self) -> Any:
        """What went wrong."""
        return "" if self.is_good else self._data

    def __str__(self) -> str:
        return str(self._data)


def RC_OK(data: Any = "") -> RC:
    """An answer with what was asked for."""
    return RC(True, data)


def RC_ERR(err: Any = "") -> RC:
    """An answer that says what went wrong."""
    return RC(False, err)


def RC_WARN(warn: Any = "") -> RC:
    """An answer with something to be known."""
    return RC(True, warn, is_warn=True)
