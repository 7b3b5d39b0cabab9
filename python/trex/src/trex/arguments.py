"""Checks of what a caller passed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trex.errors import TRexArgumentError, TRexError, TRexTypeError

# About 30 years.
_SECONDS_MAX = 1_000_000_000


def validate_type(arg_name: str, arg: object, valid_types: Any) -> None:
    """Raises `TRexTypeError` unless `arg` is of one of the types."""
    types = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if not isinstance(arg, types):
        raise TRexTypeError(arg_name, type(arg), types)


def verify_exclusive_arg(args_list: Iterable[object]) -> None:
    """Raises unless exactly one of the arguments is given (is not None)."""
    given = [arg for arg in args_list if arg is not None]
    if len(given) != 1:
        raise TRexError(f"exactly one of these arguments has to be given, not {len(given)}")


def positive(name: str, value: float) -> None:
    """Raises `TRexArgumentError` unless the value is above zero."""
    if not value > 0:
        raise TRexArgumentError(name, value, "anything above 0")


def seconds(name: str, value: Any) -> None:
    """Raises unless the value is a number of seconds that a run can be told of."""
    validate_type(name, value, (int, float))
    if not -_SECONDS_MAX <= value <= _SECONDS_MAX:
        raise TRexArgumentError(name, value, f"seconds, up to {_SECONDS_MAX:,}")


def bits(name: str, value: Any) -> None:
    """Raises unless the value is a mask of 32 bits."""
    validate_type(name, value, int)
    if not 0 <= value < 1 << 32:
        raise TRexArgumentError(name, value, "a mask of 32 bits, such as 0x5")


def is_integer(arg: object) -> bool:
    """Whether it is a whole number."""
    return isinstance(arg, int)


def listify(x: Any) -> list[Any]:
    """`x` as a list: itself if it is a list or a tuple, else alone in one."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def listify_if_int(x: Any) -> Any:
    """A number alone in a list, anything else as it is."""
    return [x] if isinstance(x, int) else x
