"""Help and number formats of console commands. Sends nothing."""

from __future__ import annotations

import re

import pytest

from trex.astf.api import ASTFClient
from trex.lines import tables

COMMANDS = [method.__name__ for method in ASTFClient().get_console_methods().values()]
OPTION = re.compile(r"^  (-\S.*)$")
# An option with its help on the same line or on the next one.
OPTION_HELP = re.compile(r"^  -\S.*?  +\S|^ {10,}\S")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(command, capsys):
    method = getattr(ASTFClient(), command)
    lines = []
    for part in ("", *SUBCOMMANDS.get(command, ())):
        method(f"{part} --help")
        lines += [*capsys.readouterr().out.splitlines(), ""]
    options = [at for at, line in enumerate(lines) if OPTION.match(line)]
    assert options
    bare = [
        lines[at]
        for at in options
        if not OPTION_HELP.match(lines[at]) and not OPTION_HELP.match(lines[at + 1])
    ]
    assert not bare


SUBCOMMANDS = {
    "latency_line": ("start", "update"),
    "topo_line": ("load", "save", "resolve", "show"),
    "tunnels_topo_line": ("load", "show"),
    "black_list_line": ("set", "remove", "clear"),
    "template_group_line": ("names", "stats"),
    "ns_line": ("add", "remove", "show-node", "show-nodes", "show-counters"),
}


def test_number_format():
    shown = {"bits": 9_837_290.0, "frames": 201_093, "share": 0.12345, "none": 0.0, "is": True}
    texts = [line.split()[-1] for line in tables.values("port 0", shown).splitlines()[1:]]
    assert texts == ["9,837,290", "201,093", "0.123", "0", "True"]
