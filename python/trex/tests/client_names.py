"""Names of clients and ports: methods with parameters, attributes, options of console lines.

As a script it reads pairs of a module and a class as JSON, and prints their names. It imports no
other test module, so that it also runs with TRex's own client. `astf_names.txt` and the other files
store the names of TRex.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import inspect
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

#: File of names for each TRex class.
NAME_FILES = {
    ("trex.stl.trex_stl_client", "STLClient"): Path(__file__).with_name("stl_names.txt"),
    ("trex.astf.trex_astf_client", "ASTFClient"): Path(__file__).with_name("astf_names.txt"),
    ("trex.stl.trex_stl_port", "STLPort"): Path(__file__).with_name("stl_port_names.txt"),
    ("trex.astf.trex_astf_port", "ASTFPort"): Path(__file__).with_name("astf_port_names.txt"),
}


def class_names(client: type) -> list[str]:
    """Returns all names, sorted: `method NAME PARAMETER=DEFAULT ...`, `attribute NAME`, `line NAME
    COMMAND OPTION ...`.

    The command is a dash for options before any command.
    """
    names = [*_methods(client), *(f"attribute {name}" for name in _attributes(client))]
    for line, commands in lines_of(client).items():
        for command, options in commands.items():
            names.append(" ".join(["line", line, command, *sorted(options)]))
    return sorted(names)


def parameters_of(method: Any) -> list[str]:
    """Returns the parameters of a method without self, with non-empty defaults."""
    found = []
    for parameter in list(inspect.signature(inspect.unwrap(method)).parameters.values())[1:]:
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = stars.get(parameter.kind, "") + parameter.name
        if parameter.default is not parameter.empty:
            is_nothing = parameter.default in (None, [], (), {}, "")
            text += "=" if is_nothing else f"={parameter.default!r}"
        found.append(text.replace(" ", ""))
    return found


def lines_of(client: type) -> dict[str, dict[str, list[str]]]:
    """Returns the options of each console line, by subcommand."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in dir(client):
        method = getattr(client, name, None)
        if getattr(method, "api_type", None) == "console":
            found[name] = _options(client, method)
    return found


def _methods(client: type) -> list[str]:
    found = []
    for name in dir(client):
        method = getattr(client, name, None)
        if not name.startswith("_") and inspect.isfunction(method):
            found.append(" ".join(["method", name, *parameters_of(method)]))
    return found


def _attributes(client: type) -> set[str]:
    """Returns the attributes of the classes and their objects."""
    found = set()
    for one in client.__mro__[:-1]:
        found |= {
            name
            for name, value in vars(one).items()
            if not callable(value) and not isinstance(value, staticmethod)
        }
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one)))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id == "self":
                    found.add(node.attr)
    return {name for name in found if not name.startswith("_")}


class _Parsed(BaseException):
    """Raised instead of parsing a line."""


class _Stub:
    """Stand-in for the parts of a client that a line uses before it is parsed."""

    def __getattr__(self, name: str) -> _Stub:
        return _Stub()

    def __call__(self, *arguments: Any, **kwargs: Any) -> _Stub:
        return _Stub()


def _options(client: type, method: Any) -> dict[str, list[str]]:
    parsers: list[argparse.ArgumentParser] = []

    def parse(parser: argparse.ArgumentParser, *arguments: Any, **kwargs: Any) -> None:
        parsers.append(parser)
        raise _Parsed

    fake: Any = object.__new__(client)
    known = {"ports": {}, "is_dynamic": True, "astf_profile_state": {"_": 0}}
    for name, value in {**dict.fromkeys(("conn", "ctx", "psv"), _Stub()), **known}.items():
        # Properties cannot be set, and need no value.
        with contextlib.suppress(AttributeError):
            setattr(fake, name, value)
    before = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign, assignment]
    try:
        inspect.unwrap(method)(fake, "-x")
    except (_Parsed, Exception):
        # A command without arguments runs instead.
        pass
    finally:
        argparse.ArgumentParser.parse_args = before  # type: ignore[method-assign]
    return _options_of(parsers[0]) if parsers else {}


def _options_of(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"-": []}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, sub in action.choices.items():
                found[command] = _options_of(sub)["-"]
        elif action.dest != "help":
            found["-"] += action.option_strings
    return found


def main() -> None:
    """Prints the names of the requested classes."""
    requested = json.load(sys.stdin)
    found = [
        class_names(getattr(importlib.import_module(module), name)) for module, name in requested
    ]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
