"""Checks of arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trex.errors import TRexArgumentError, TRexError, TRexTypeError

# About 30 years.
_SECONDS_MAX = 1_000_000_000


def validate_type(arg_name: str, arg: object, valid_types: Any) -> None:
    """Raises `TRexTypeError` unless `arg` has one of the types."""
    types = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if not isinstance(arg, types):
        raise TRexTypeError(arg_name, type(arg), types)


def verify_exclusive_arg(args_list: Iterable[object]) -> None:
    """Raises unless exactly one of the arguments is given (is not None)."""
    passed = [arg for arg in args_list if arg is not None]
    if len(passed) != 1:
        raise TRexError(f"expected exactly one of these arguments, not {len(passed)}")


def check_positive(name: str, value: float) -> None:
    """Raises `TRexArgumentError` unless the value is above zero."""
    if not value > 0:
        raise TRexArgumentError(name, value, "anything above 0")


def check_seconds(name: str, value: Any) -> None:
    """Raises unless the value is a number of seconds in the supported range."""
    validate_type(name, value, (int, float))
    if not -_SECONDS_MAX <= value <= _SECONDS_MAX:
        raise TRexArgumentError(name, value, f"seconds, up to {_SECONDS_MAX:,}")


def check_bits(name: str, value: Any) -> None:
    """Raises unless the value is a 32-bit mask."""
    validate_type(name, value, int)
    if not 0 <= value < 1 << 32:
        raise TRexArgumentError(name, value, "a mask of 32 bits, such as 0x5")


def is_integer(arg: object) -> bool:
    """Returns whether `arg` is an integer."""
    return isinstance(arg, int)


def listify(x: Any) -> list[Any]:
    """Returns `x` as a list: its items if it is a list or tuple, else a list with `x` alone."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def listify_if_int(x: Any) -> Any:
    """Returns an integer as a list with one item, any other value unchanged."""
    return [x] if isinstance(x, int) else x
