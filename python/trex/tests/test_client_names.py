"""Clients and ports have all names of TRex's: methods, parameters, attributes, lines.

`astf_names.txt` and the other files list them. With `TREX_CORE`, the lists are compared with that
tree.
"""

from __future__ import annotations

import inspect

import client_names
import pytest
from trex_tree import needs_tree, trex_results

from trex.astf.api import ASTFClient, TRexUnsupportedError, TRexError
from trex.client.unsupported import Unsupported
from trex.common.trex_port import Port
from trex.stl.api import STLClient

NAME_FILES = {
    (name, entry)
    for (_, name), file in client_names.NAME_FILES.items()
    for entry in file.read_text().splitlines()
}


def read_names(kind: str) -> list[tuple[str, list[str]]]:
    """Returns the entries of a kind, each with its class."""
    split = sorted((owner, entry.split()) for owner, entry in NAME_FILES)
    return [(owner, words[1:]) for owner, words in split if words[0] == kind]


def found(owner: str) -> type:
    """Returns the class with this name."""
    module = {name: module for module, name in client_names.NAME_FILES}[owner]
    return getattr(__import__(module, fromlist=[owner]), owner)


@pytest.mark.parametrize(
    ("owner", "name", "parameters"), [(owner, it[0], it[1:]) for owner, it in read_names("method")]
)
def test_every_method_exists_with_its_parameters(owner, name, parameters):
    method = getattr(found(owner), name)
    assert callable(method)
    if any(parameter.startswith("*") for parameter in parameters):
        # The wrapper hides its parameters.
        return
    ours = client_names.parameters_of(method)
    if ours == ["*arguments", "**kwargs"]:
        # It raises for any arguments.
        return
    # Some methods have additional parameters behind these.
    assert ours[: len(parameters)] == parameters
    assert all("=" in parameter for parameter in ours[len(parameters) :])


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, it[0]) for owner, it in read_names("attribute")]
)
def test_every_attribute_exists_or_names_a_replacement(owner, name):
    one = found(owner)
    client = one(STLClient(), 0) if issubclass(one, Port) else one()
    if isinstance(inspect.getattr_static(client, name), Unsupported):
        with pytest.raises(TRexUnsupportedError, match=f"{name} is not supported: .+"):
            getattr(client, name)
        assert not hasattr(client, name)
        return
    try:
        getattr(client, name)
    except TRexUnsupportedError:
        raise
    except TRexError as error:
        # There is no session.
        assert "not connected" in str(error)


@pytest.mark.parametrize("owner", ["STLClient", "ASTFClient"])
def test_every_option_of_a_line_exists(owner):
    ours = client_names.lines_of(found(owner))
    missing = {}
    for line, command, *options in [it for of, it in read_names("line") if of == owner]:
        known = ours.get(line, {}).get(command)
        if known is None or not set(options) <= set(known):
            missing[line, command] = set(options) - set(known or ())
    assert not missing


@pytest.mark.parametrize("owner", ["STLClient", "ASTFClient", "STLPort"])
def test_replacements_of_unsupported_attributes_exist(owner):
    one = found(owner)
    client = one(STLClient(), 0) if issubclass(one, Port) else one()
    static = {name: inspect.getattr_static(one, name) for name in dir(one)}
    parts = [name for name, part in static.items() if isinstance(part, Unsupported)]
    assert parts
    for name in parts:
        with pytest.raises(TRexError) as raised:
            getattr(client, name)
        for word in str(raised.value).replace("()", "() ").split():
            if word.endswith("()"):
                assert callable(getattr(one, word[:-2])), (name, word)


@pytest.mark.parametrize("owner", ["STLClient", "ASTFClient"])
def test_commands_have_the_names_of_the_console(owner):
    commands = found(owner)().get_console_methods()
    assert commands["arp"].__name__ == "resolve_line"
    assert commands["tpg_enable"].__name__ == "tpg_enable"
    assert len(commands) == len(set(client_names.lines_of(found(owner))))


def test_clients_are_separate_classes():
    assert not issubclass(ASTFClient, STLClient) and not issubclass(STLClient, ASTFClient)


@needs_tree
def test_lists_match_trex():
    lists = trex_results(client_names, [list(place) for place in client_names.NAME_FILES])
    files = client_names.NAME_FILES.values()
    assert lists == [file.read_text().splitlines() for file in files]
