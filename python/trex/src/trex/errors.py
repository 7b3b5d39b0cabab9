"""The errors that scripts catch, under the names they know."""

from __future__ import annotations

import os
import traceback
from typing import Any


class TRexError(Exception):
    """Anything this package refuses, with a message for the user."""

    def __init__(self, msg: object) -> None:
        super().__init__(msg)
        self.msg = str(msg)

    def __str__(self) -> str:
        return self.msg

    def brief(self) -> str:
        """The message alone."""
        return self.msg

    def get_tb(self) -> str:
        """The way to where it was raised, the caller first, as it was caught; nothing of one that
        was not raised. TRex counts the lines as well, the last is 0."""
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
        """The message and what led to it."""
        cause = self.__cause__
        return self.msg if cause is None else f"{self.msg}\n{type(cause).__name__}: {cause}"


class TRexArgumentError(TRexError):
    """An argument with a value that means nothing."""

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
    """Something took longer than it may."""

    def __init__(self, timeout: float) -> None:
        super().__init__(f"not done within {timeout} seconds")


class TRexAbsentError(TRexError, AttributeError):
    """A part of TRex's that is not there: `hasattr` says so as well."""


class TRexConsoleError(TRexError):
    """A console command that could not be carried out."""


class TRexConsoleNoAction(TRexError):
    """A console command that had nothing to do."""

    def __init__(self) -> None:
        super().__init__("")


class CTRexPacketBuildException(Exception):
    """A packet or a field-engine program that cannot be built."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"[errcode:{self.code}] {self.message}"


STLError = TRexError
STLTypeError = TRexTypeError
