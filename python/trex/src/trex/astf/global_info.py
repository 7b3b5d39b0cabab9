"""Tunables of the stack: `info.tcp.mss = 1400`, for a side of a profile or template."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, ClassVar

# Types of the tunables: an integer, or the text of an IPv6 address.
_INT, _IPV6 = "a whole number", "an IPv6 address as text"

_IPV6_GROUP = {"src_msb": _IPV6, "dst_msb": _IPV6, "enable": _INT}
_IP_GROUP = {"tos": _INT, "ttl": _INT, "dont_use_inbound_mac": _INT}
_TCP_PER_TEMPLATE = {
    "initwnd": _INT,
    "mss": _INT,
    "no_delay": _INT,
    "no_delay_counter": _INT,
    "rxbufsize": _INT,
    "txbufsize": _INT,
}
_TCP_GROUP = {
    **_TCP_PER_TEMPLATE,
    "blackhole": _INT,
    "cc_algo": _INT,
    "delay_ack_msec": _INT,
    "do_ecn": _INT,
    "do_rfc1323": _INT,
    "do_sack": _INT,
    "keepidle": _INT,
    "keepinit": _INT,
    "keepintvl": _INT,
    "reass_maxqlen": _INT,
    "rexmtthresh": _INT,
}


class ASTFGlobalInfoGroup:
    """A group of tunables, such as `tcp`. Its attributes are the values that were set."""

    _values: dict[str, Any]

    def __init__(self, name: str, tunables: Mapping[str, str]) -> None:
        """:param name: name of the group for messages
        :param tunables: type of each tunable
        """
        # Bypasses `__setattr__`, which accepts only tunables.
        self.__dict__.update(_name=name, _tunables=tunables, _values={})

    def __setattr__(self, name: str, val: Any) -> None:
        kind = self._kind(name)
        if kind == _INT:
            # Rejects booleans, which are integers in Python.
            if type(val) is int:
                self._values[name] = val
                return
        elif isinstance(val, str):
            try:
                self._values[name] = list(socket.inet_pton(socket.AF_INET6, val))
                return
            except OSError:
                pass
        raise AttributeError(f"{self._name}.{name} cannot be {val!r}: it is {kind}")

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes. Private names are never tunables.
        if name.startswith("_"):
            raise AttributeError(name)
        self._kind(name)
        if name not in self._values:
            raise AttributeError(f"{self._name}.{name} was not set")
        return self._values[name]

    def _kind(self, name: str) -> str:
        if name not in self._tunables:
            expected = ", ".join(sorted(self._tunables))
            raise AttributeError(f"{self._name} has no '{name}'; it has {expected}")
        return self._tunables[name]

    def to_json(self) -> dict[str, Any]:
        """Returns the values; IPv6 addresses as lists of 16 bytes."""
        return dict(self._values)


class ASTFGlobalInfoBase:
    """Groups of tunables as attributes."""

    _groups: ClassVar[Mapping[str, Mapping[str, str]]]
    _values: dict[str, ASTFGlobalInfoGroup]

    def __init__(self) -> None:
        # Bypasses `__setattr__`, which rejects groups.
        self.__dict__.update(_values={})

    def __setattr__(self, name: str, val: Any) -> None:
        tunables = ", ".join(f"{name}.{tunable}" for tunable in sorted(self._group(name)))
        raise AttributeError(f"'{name}' is a group of tunables and cannot be set; set {tunables}")

    def __getattr__(self, name: str) -> ASTFGlobalInfoGroup:
        if name.startswith("_"):
            raise AttributeError(name)
        # A group that was read is part of the document, even if it is empty.
        group = ASTFGlobalInfoGroup(f"{type(self).__name__}.{name}", self._group(name))
        return self._values.setdefault(name, group)

    def _group(self, name: str) -> Mapping[str, str]:
        if name not in self._groups:
            raise AttributeError(
                f"{type(self).__name__} has no '{name}'; it has {', '.join(self._groups)}, each "
                "with tunables of its own"
            )
        return self._groups[name]

    def to_json(self) -> dict[str, Any]:
        """Returns the used groups with their values."""
        return {name: group.to_json() for name, group in self._values.items()}


class ASTFGlobalInfo(ASTFGlobalInfoBase):
    """Tunables of all clients or of all servers of a profile."""

    _groups = {
        "scheduler": {"rampup_sec": _INT},
        "ipv6": _IPV6_GROUP,
        "tcp": _TCP_GROUP,
        "ip": _IP_GROUP,
    }


class ASTFGlobalInfoPerTemplate(ASTFGlobalInfoBase):
    """Tunables of one template's clients or servers."""

    _groups = {"tcp": _TCP_PER_TEMPLATE, "ip": _IP_GROUP, "ipv6": _IPV6_GROUP}
