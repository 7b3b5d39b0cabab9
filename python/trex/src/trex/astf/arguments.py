"""Checks of a profile's arguments. `context` is the class or method for messages."""

from __future__ import annotations

from typing import Any

from trex.addresses import ip2int, is_valid_ipv4
from trex.astf.errors import (
    ASTFError,
    ASTFErrorBadIp,
    ASTFErrorBadIpRange,
    ASTFErrorMissingParam,
    ASTFErrorWrongType,
)


def check_required(context: str, name: str, value: object, *types: type) -> None:
    """Raises unless the argument is given with one of the types."""
    if value is None:
        raise ASTFErrorMissingParam(context, name)
    check_optional(context, name, value, *types)


def check_optional(context: str, name: str, value: object, *types: type) -> None:
    """Raises if the argument is given with another type."""
    if value is not None and not isinstance(value, types):
        raise ASTFErrorWrongType(context, name, types, False, value)


def check_list(context: str, name: str, value: Any, kind: type) -> list[Any]:
    """Returns a value, or a non-empty list of values, of a type as a new list."""
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    if not found:
        raise ASTFErrorMissingParam(context, name)
    for one in found:
        if not isinstance(one, kind):
            raise ASTFErrorWrongType(context, name, (kind,), True, one)
    return found


def check_range(context: str, name: str, value: Any, minimum: int, maximum: int) -> None:
    """Raises unless the value is an integer from `minimum` to `maximum`."""
    check_required(context, name, value, int)
    if not minimum <= value <= maximum:
        raise ASTFError(
            f"argument '{name}' of {context} is {value}, not from {minimum} to {maximum}"
        )


def check_not_negative(context: str, name: str, value: Any) -> None:
    """Raises if the value is given and is not a number of 0 or more."""
    check_optional(context, name, value, int, float)
    if value is not None and not value >= 0:
        raise ASTFError(f"argument '{name}' of {context} is {value}, not 0 or more")


def check_ipv4(context: str, name: str, value: object) -> None:
    """Raises unless the value is an IPv4 address in dotted notation."""
    if not is_valid_ipv4(value):
        raise ASTFErrorBadIp(context, name, value)


def check_ipv4_range(context: str, name: str, value: Any) -> tuple[str, str]:
    """Returns the first and the last address of a range."""
    if value is None:
        raise ASTFErrorMissingParam(context, name)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ASTFErrorBadIpRange(
            context, name, value, "a range is a first and a last IPv4 address"
        )
    first, last = value
    for address in (first, last):
        if not is_valid_ipv4(address):
            raise ASTFErrorBadIpRange(context, name, value, f"{address!r} is no IPv4 address")
    if ip2int(first) > ip2int(last):
        raise ASTFErrorBadIpRange(context, name, value, "the first address is above the last")
    return first, last


def check_group_name(context: str, value: Any) -> None:
    """Raises if the name of a template group is given and does not have 1 to 20 characters."""
    check_optional(context, "tg_name", value, str)
    if value is not None and not 1 <= len(value) <= 20:
        raise ASTFError(
            f"argument 'tg_name' of {context} has {len(value)} characters ({value!r}), not 1 to 20"
        )
