"""A header of a packet, and what can stand behind the headers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wirestorm._plain import plain


class Header:
    """A header, or an item in one such as an option: its name and the fields that are given.

    `wirestorm.headers` has a function for each header; items are made by this class:

    >>> from wirestorm import Header, tcp
    >>> tcp(ctl_syn=1, options=[Header("mss", value=1460)])
    tcp(ctl_syn=1, options=[mss(value=1460)])
    """

    def __init__(self, name: str, fields: dict[str, Any] | None = None, **more: Any) -> None:
        self.name = name
        self.fields: dict[str, Any] = {**(fields or {}), **more}

    def to_plan(self) -> dict[str, Any]:
        """The header as it is written in a plan."""
        return {self.name: plain(self.fields)}

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
    """What stands behind the headers; zeros unless one of these is given.

    :param text: a text
    :param bytes: bytes, or their hexadecimal digits
    :param fixed: bytes that are repeated to the end of the frame
    :param increment_byte: bytes that count up from this one
    :param increment_word: 16-bit numbers that count up from this one
    """
    forms = given(locals())
    if len(forms) > 1:
        raise TypeError(f"a payload is one of {', '.join(forms)}")
    return Header("payload", forms or {"zeros": None})


def capture(
    file: str | os.PathLike[str],
    number: int = 1,
    fields: Mapping[str, Any] | None = None,
) -> Header:
    """A frame out of a capture, in place of headers.

    :param file: pcap or pcapng; a relative path begins where the plan is
    :param number: which of its packets, from 1
    :param fields: what is to differ from it: `{"ipv4.src": increment("10.0.0.1", 250)}`
    """
    more = {} if fields is None else {"fields": dict(fields)}
    return Header("capture", {"file": os.fspath(file), "number": number, **more})


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of a function's arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}
