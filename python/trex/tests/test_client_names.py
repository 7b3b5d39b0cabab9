"""The stateful client has all that TRex's has: methods, parameters, attributes, lines.

`astf_names.txt` lists it. With `TREX_CORE`, the list is held against that tree.
"""

from __future__ import annotations

import inspect

import astf_names
import pytest
from trex_tree import needs_tree, of_trex

from trex.astf.absent import Absent
from trex.astf.api import ASTFClient, TRexAbsentError, TRexError

KEPT = astf_names.KEPT.read_text().splitlines()


def kept(kind: str) -> list[list[str]]:
    """The entries of a kind, without it."""
    return [words[1:] for words in (entry.split() for entry in KEPT) if words[0] == kind]


@pytest.mark.parametrize(("name", "parameters"), [(it[0], it[1:]) for it in kept("method")])
def test_every_method_is_there_with_its_parameters(name, parameters):
    ours = astf_names.parameters_of(getattr(ASTFClient, name))
    # Some have more of their own behind these.
    assert ours[: len(parameters)] == parameters
    assert all("=" in parameter for parameter in ours[len(parameters) :])


@pytest.mark.parametrize("name", [it[0] for it in kept("attribute")])
def test_every_attribute_is_there_or_says_what_to_use(name):
    client = ASTFClient()
    if isinstance(inspect.getattr_static(client, name), Absent):
        with pytest.raises(TRexAbsentError, match=f"{name} is not there: .+"):
            getattr(client, name)
        assert not hasattr(client, name)


def test_every_option_of_a_line_is_there():
    ours = astf_names.lines_of(ASTFClient)
    missing = {}
    for line, command, *options in kept("line"):
        found = ours.get(line, {}).get(command)
        if found is None or not set(options) <= set(found):
            missing[line, command] = options
    assert not missing


def test_what_an_absent_part_is_for_is_there():
    client = ASTFClient()
    static = {name: inspect.getattr_static(ASTFClient, name) for name in dir(ASTFClient)}
    parts = [name for name, part in static.items() if isinstance(part, Absent)]
    assert "conn" in parts
    for name in parts:
        with pytest.raises(TRexError) as told:
            getattr(client, name)
        for word in str(told.value).replace("()", "() ").split():
            if word.endswith("()"):
                assert callable(getattr(ASTFClient, word[:-2])), (name, word)


def test_commands_have_the_names_of_the_console():
    commands = ASTFClient().get_console_methods()
    assert commands["arp"].__name__ == "resolve_line"
    assert commands["tpg_enable"].__name__ == "tpg_enable"
    assert len(commands) == len(set(astf_names.lines_of(ASTFClient)))


@needs_tree
def test_the_list_is_that_of_trex():
    found = of_trex(astf_names, [])
    assert found == KEPT
