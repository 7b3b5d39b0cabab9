"""Headers of a packet, and payloads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wirestorm._plan_values import plan_value


class Header:
    """A header, or an item of one such as a TCP option: its name and the given fields.

    `wirestorm.headers` has a function for each header. Use this class for items:

    >>> from wirestorm import Header, tcp
    >>> tcp(ctl_syn=1, options=[Header("mss", value=1460)])
    tcp(ctl_syn=1, options=[mss(value=1460)])
    """

    def __init__(self, name: str, fields: dict[str, Any] | None = None, **more: Any) -> None:
        self.name = name
        self.fields: dict[str, Any] = {**(fields or {}), **more}

    def to_plan(self) -> dict[str, Any]:
        """Returns the header in the form of a plan."""
        return {self.name: plan_value(self.fields)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Header) and self.to_plan() == other.to_plan()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.name}({fields})"


def payload(
    *,
    text: str | None = None,
    bytes: Any = None,
    fixed: Any = None,
    increment_byte: int | None = None,
    increment_word: int | None = None,
) -> Header:
    """Payload behind the headers; zeros by default.

    :param text: text
    :param bytes: bytes, or hexadecimal digits
    :param fixed: bytes, repeated to the end of the frame
    :param increment_byte: first of bytes that count up
    :param increment_word: first of 16-bit numbers that count up
    """
    fields = without_none(locals())
    if len(fields) > 1:
        raise TypeError(f"expected a single form of payload, not {', '.join(fields)}")
    return Header("payload", fields or {"zeros": None})


def capture(
    file: str | os.PathLike[str],
    number: int = 1,
    fields: Mapping[str, Any] | None = None,
) -> Header:
    """A frame from a capture file, in place of headers.

    :param file: pcap or pcapng; a relative path starts at the plan's folder
    :param number: number of the packet, from 1
    :param fields: changed fields: `{"ipv4.src": increment("10.0.0.1", 250)}`
    """
    more = {} if fields is None else {"fields": dict(fields)}
    return Header("capture", {"file": os.fspath(file), "number": number, **more})


def without_none(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}
