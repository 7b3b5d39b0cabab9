"""Tunables: a profile's own arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from trex.errors import TRexArgumentError, TRexError

# What TRex takes for True and False in the older form.
_SWITCHES = {
    **dict.fromkeys(("true", "on", "yes"), True),
    **dict.fromkeys(("false", "off", "no"), False),
}


def keywords_of(words: list[str]) -> dict[str, Any]:
    """The arguments that load a profile, of what stands behind `-t` on a command line.

    The older form (`size=100,pps=10`) becomes keyword arguments, the newer one (`--size 100`) stays
    a command line. Ends the process with a message if it is neither.
    """
    if not words:
        return {}
    if words[0].startswith("-") or "=" not in words[0]:
        return {"tunables": words}
    # TRex takes the flag before each of them, too.
    words = [word for word in words if word not in ("-t", "--tunables")]
    pairs = [pair for word in words for pair in word.split(",") if pair]
    tunables = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise SystemExit(f"error: tunables are NAME=VALUE,NAME=VALUE, not {pair}")
        try:
            tunables[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            tunables[name] = _SWITCHES.get(value.lower(), value)
    return tunables


def by_name(tunables: Any, or_else: str = "") -> dict[str, Any]:
    """Tunables that a script names, none for None. Raises `TRexArgumentError` unless that is what
    they are; `or_else` is what they may be beside that."""
    if tunables is None:
        return {}
    if not isinstance(tunables, Mapping):
        raise TRexArgumentError(
            "tunables",
            tunables,
            f"a dictionary of arguments by their names, {{'size': 3}}{or_else}",
        )
    return dict(tunables)


def call_with_tunables(
    function: Callable[..., Any], arguments: dict[str, Any], name: str, expected: str
) -> Any:
    """Calls a registered object's function of this name; None if all it did was print its help.

    `tunables` are the function's own command line. Unless they are among the arguments, the others
    reach it that way too, as `--NAME VALUE`. Raises `TRexError` if it does not take them, or does
    not return what is `expected` of it.
    """
    line = arguments.get("tunables")
    if line is None:
        line = [text for name, value in arguments.items() for text in (f"--{name}", str(value))]
    try:
        found = function(**{**arguments, "tunables": line})
    except SystemExit as stop:
        if stop.code and not isinstance(stop.code, int):
            raise TRexError(f"{name}() ends the process: {stop.code}") from stop
        if stop.code:
            # What is wrong with them was printed.
            raise TRexError(f"refuses its tunables: {' '.join(line) or 'none given'}") from stop
        return None
    if found is None:
        raise TRexError(f"{name}() returned None: let it return {expected} on every way")
    return found


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a registered object's function that have defaults, and those."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}
