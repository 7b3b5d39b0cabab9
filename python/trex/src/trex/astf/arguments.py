"""Checks of a profile's arguments. `where` is the class or method for messages."""

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


def required(where: str, name: str, value: object, *types: type) -> None:
    """Raises unless the argument is given with one of the types."""
    if value is None:
        raise ASTFErrorMissingParam(where, name)
    optional(where, name, value, *types)


def optional(where: str, name: str, value: object, *types: type) -> None:
    """Raises if the argument is given with another type."""
    if value is not None and not isinstance(value, types):
        raise ASTFErrorWrongType(where, name, types, False, value)


def one_or_more(where: str, name: str, value: Any, kind: type) -> list[Any]:
    """Returns a value, or a non-empty list of values, of a type as a new list."""
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    if not found:
        raise ASTFErrorMissingParam(where, name)
    for one in found:
        if not isinstance(one, kind):
            raise ASTFErrorWrongType(where, name, (kind,), True, one)
    return found


def within(where: str, name: str, value: Any, least: int, most: int) -> None:
    """Raises unless the value is an integer from `least` to `most`."""
    required(where, name, value, int)
    if not least <= value <= most:
        raise ASTFError(f"argument '{name}' of {where} is {value}, not from {least} to {most}")


def not_negative(where: str, name: str, value: Any) -> None:
    """Raises if the value is given and is not a number of 0 or more."""
    optional(where, name, value, int, float)
    if value is not None and not value >= 0:
        raise ASTFError(f"argument '{name}' of {where} is {value}, not 0 or more")


def ipv4_address(where: str, name: str, value: object) -> None:
    """Raises unless the value is an IPv4 address in dotted notation."""
    if not is_valid_ipv4(value):
        raise ASTFErrorBadIp(where, name, value)


def ipv4_range(where: str, name: str, value: Any) -> tuple[str, str]:
    """Returns the first and the last address of a range."""
    if value is None:
        raise ASTFErrorMissingParam(where, name)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ASTFErrorBadIpRange(where, name, value, "a range is a first and a last IPv4 address")
    first, last = value
    for address in (first, last):
        if not is_valid_ipv4(address):
            raise ASTFErrorBadIpRange(where, name, value, f"{address!r} is no IPv4 address")
    if ip2int(first) > ip2int(last):
        raise ASTFErrorBadIpRange(where, name, value, "the first address is above the last")
    return first, last


def group_name(where: str, value: Any) -> None:
    """Raises if the name of a template group is given and does not have 1 to 20 characters."""
    optional(where, "tg_name", value, str)
    if value is not None and not 1 <= len(value) <= 20:
        raise ASTFError(
            f"argument 'tg_name' of {where} has {len(value)} characters ({value!r}), not 1 to 20"
        )
