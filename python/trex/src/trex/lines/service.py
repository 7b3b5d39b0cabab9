"""Service mode by words."""

from __future__ import annotations

import argparse

from trex.lines.words import Words

# TRex's filters; each of them is filtered service mode.
_FILTERS = ("bgp", "tran", "dhcp", "mdns", "emu", "no-tcp-udp", "all")


def add_modes(words: Words) -> None:
    """`--off` and the filters, which `mode_of` reads."""
    words.add_argument("--off", action="store_true", help="out of service mode")
    for name in _FILTERS:
        words.add_argument(f"--{name}", action="store_true", help="in filtered service mode")


def mode_of(given: argparse.Namespace) -> tuple[bool, bool]:
    """Whether ports are to be in service mode, and in the filtered one."""
    is_filtered = any(getattr(given, name.replace("-", "_")) for name in _FILTERS)
    return not given.off, is_filtered
