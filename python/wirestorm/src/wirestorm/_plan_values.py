"""Conversion of objects to the plain values of plans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Union

Scalar = Union[int, str, IPv4Address, IPv6Address]

#: A time: a text with its unit (`"1.5ms"`), a number of seconds, or a `timedelta`.
Time = Union[str, int, float, timedelta]


def plan_value(value: Any) -> Any:
    """Converts a value, and the values in it, to the plain form of plans."""
    if hasattr(value, "to_plan"):
        return value.to_plan()
    if isinstance(value, Mapping):
        return {str(key): plan_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plan_value(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (IPv4Address, IPv6Address)):
        return str(value)
    if isinstance(value, timedelta):
        return time_text(value)
    return value


def time_text(value: Time) -> str:
    """Formats a time as plans have it. Numbers become whole nanoseconds."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        return f"{microseconds * 1000}ns"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"expected a time with its unit, seconds or a timedelta, not {value!r}")
    return f"{round(value * 1_000_000_000)}ns"
