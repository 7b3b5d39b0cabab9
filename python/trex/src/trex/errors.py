"""Exceptions with the names that scripts catch."""

from __future__ import annotations

import os
import traceback
from typing import Any


class TRexError(Exception):
    """Base class of the package's errors, with a message for the user."""

    def __init__(self, msg: object) -> None:
        super().__init__(msg)
        self.msg = str(msg)

    def __str__(self) -> str:
        return self.msg

    def brief(self) -> str:
        """Returns the message."""
        return self.msg

    def get_tb(self) -> str:
        """Returns the traceback, outermost caller first; empty if the error was not raised.

        As in TRex, the lines have numbers that count down to 0.
        """
        frames = traceback.extract_tb(self.__traceback__)
        if not frames:
            return ""
        lines = [
            f"#{len(frames) - 1 - index:<2}    {os.path.basename(frame.filename)}:{frame.lineno}"
            f" - '{frame.line}'"
            for index, frame in enumerate(frames)
        ]
        return "\n".join(["", "Exception stack (most recent call last):", "", *lines, ""])

    def full(self) -> str:
        """Returns the message and its cause."""
        cause = self.__cause__
        return self.msg if cause is None else f"{self.msg}\n{type(cause).__name__}: {cause}"


class TRexArgumentError(TRexError):
    """An argument with an invalid value."""

    def __init__(
        self, name: str, got: object, valid_values: object = None, extended: object = None
    ) -> None:
        msg = f"argument '{name}' cannot be {got!r}"
        if valid_values is not None:
            msg += f"; it can be {valid_values}"
        if extended is not None:
            msg += f"\n{extended}"
        super().__init__(msg)


class TRexTypeError(TRexError):
    """An argument of the wrong type."""

    def __init__(self, arg_name: str, arg_type: type, valid_types: Any) -> None:
        types = valid_types if isinstance(valid_types, (list, tuple)) else (valid_types,)
        expected = " or ".join(t.__name__ for t in types)
        super().__init__(f"argument '{arg_name}' is of type {arg_type.__name__}, not {expected}")


class TRexTimeoutError(TRexError):
    """An operation that exceeded its time limit."""

    def __init__(self, timeout: float) -> None:
        super().__init__(f"not done within {timeout} seconds")


class TRexUnsupportedError(TRexError, AttributeError):
    """A part of TRex that this package does not have. `hasattr` returns False for it."""


class TRexConsoleError(TRexError):
    """A console command that failed."""


class TRexConsoleNoAction(TRexError):
    """A console command that had no effect."""

    def __init__(self) -> None:
        super().__init__("")


class CTRexPacketBuildException(Exception):
    """A packet or field-engine program that cannot be built."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"[errcode:{self.code}] {self.message}"


STLError = TRexError
STLTypeError = TRexTypeError
