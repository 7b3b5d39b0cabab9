"""What commands of the console say of themselves, and how they show numbers. Nothing is sent."""

from __future__ import annotations

import re

import pytest

from trex.astf import console
from trex.astf.api import ASTFClient

COMMANDS = [name for name in dir(console.Console) if name.endswith("_line")]
OPTION = re.compile(r"^  (-\S.*)$")
# With what an option does behind it, or on the next line.
TOLD = re.compile(r"^  -\S.*?  +\S|^ {10,}\S")


@pytest.mark.parametrize("command", [*COMMANDS, "update_clients_tunnel"])
def test_every_option_is_explained(command, capsys):
    method = getattr(ASTFClient(), command)
    lines = []
    for part in ("", *SUBCOMMANDS.get(command, ())):
        method(f"{part} --help")
        lines += [*capsys.readouterr().out.splitlines(), ""]
    options = [at for at, line in enumerate(lines) if OPTION.match(line)]
    assert options
    bare = [
        lines[at] for at in options if not TOLD.match(lines[at]) and not TOLD.match(lines[at + 1])
    ]
    assert not bare


SUBCOMMANDS = {
    "latency_line": ("start", "update"),
    "topo_line": ("load", "save", "resolve", "show"),
    "tunnels_topo_line": ("load",),
    "black_list_line": ("set", "remove", "clear"),
    "template_group_line": ("names", "stats"),
}


def test_numbers_are_shown_in_one_way(capsys):
    values = {"bits": 9_837_290.0, "frames": 201_093, "share": 0.12345, "none": 0.0, "is": True}
    console._print_values("port 0", values)
    told = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert told == ["9,837,290", "201,093", "0.123", "0", "True"]
