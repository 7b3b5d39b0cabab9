"""Options of service mode."""

from __future__ import annotations

import argparse

from trex.lines.parser import LineParser

# TRex's filters. Each of them selects filtered service mode.
_FILTERS = ("bgp", "tran", "dhcp", "mdns", "emu", "no-tcp-udp", "all")


def add_modes(words: LineParser) -> None:
    """Adds `--off` and the filters for `mode_of`."""
    words.add_argument("--off", action="store_true", help="leave service mode")
    for name in _FILTERS:
        words.add_argument(f"--{name}", action="store_true", help="filtered service mode")


def mode_of(given: argparse.Namespace) -> tuple[bool, bool]:
    """Returns whether service mode is on, and whether it is filtered."""
    is_filtered = any(getattr(given, name.replace("-", "_")) for name in _FILTERS)
    return not given.off, is_filtered
