"""Objects as the plain values that plans are written in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Union

Scalar = Union[int, str, IPv4Address, IPv6Address]

#: A time: with its unit (`"1.5ms"`), in seconds, or as `datetime` has it.
Time = Union[str, int, float, timedelta]


def plain(value: Any) -> Any:
    """A value with everything in it that has a form of its own in plans put into that form."""
    if hasattr(value, "to_plan"):
        return value.to_plan()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (IPv4Address, IPv6Address)):
        return str(value)
    if isinstance(value, timedelta):
        return time_text(value)
    return value


def time_text(value: Time) -> str:
    """A time as plans have it, in whole nanoseconds where it is a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return f"{microseconds * 1000}ns"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a time is a text with its unit, seconds or a timedelta, not {value!r}")
    return f"{round(value * 1_000_000_000)}ns"
