"""Options of service mode."""

from __future__ import annotations

import argparse

from trex.lines.parser import LineParser

# TRex's filters. Each of them selects filtered service mode.
_FILTERS = ("bgp", "tran", "dhcp", "mdns", "emu", "no-tcp-udp", "all")


def add_modes(parser: LineParser) -> None:
    """Adds `--off` and the filters for `mode_of`."""
    parser.add_argument("--off", action="store_true", help="leave service mode")
    for name in _FILTERS:
        parser.add_argument(f"--{name}", action="store_true", help="filtered service mode")


def mode_of(args: argparse.Namespace) -> tuple[bool, bool]:
    """Returns whether service mode is on, and whether it is filtered."""
    is_filtered = any(getattr(args, name.replace("-", "_")) for name in _FILTERS)
    return not args.off, is_filtered
