"""Tunables: the arguments of a profile."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from trex.errors import TRexArgumentError, TRexError

# Words that TRex converts to True and False in the older form.
_SWITCHES = {
    **dict.fromkeys(("true", "on", "yes"), True),
    **dict.fromkeys(("false", "off", "no"), False),
}


def parse_tunables(options: list[str]) -> dict[str, Any]:
    """Converts the words behind `-t` of a command line to the arguments that load a profile.

    The older form (`size=100,pps=10`) becomes keyword arguments, the newer one (`--size 100`)
    remains a command line. Exits with a message for any other form.
    """
    if not options:
        return {}
    if options[0].startswith("-") or "=" not in options[0]:
        return {"tunables": options}
    # As TRex, accepts the flag in front of each tunable.
    options = [word for word in options if word not in ("-t", "--tunables")]
    pairs = [pair for word in options for pair in word.split(",") if pair]
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


def check_tunables(tunables: Any, hint: str = "") -> dict[str, Any]:
    """Checks tunables of a script; None becomes an empty dictionary.

    Raises `TRexArgumentError` if they are not a mapping. `hint` describes other valid values for
    the message.
    """
    if tunables is None:
        return {}
    if not isinstance(tunables, Mapping):
        raise TRexArgumentError(
            "tunables",
            tunables,
            f"a dictionary of arguments by their names, {{'size': 3}}{hint}",
        )
    return dict(tunables)


def call_with_tunables(
    function: Callable[..., Any], arguments: dict[str, Any], name: str, expected: str
) -> Any:
    """Calls a function of a registered object. Returns None if it only printed its help.

    `tunables` is the function's command line. Without it, the other arguments become the command
    line, as `--NAME VALUE`. Raises `TRexError` if the function rejects them, or returns None
    instead of what is `expected`.
    """
    line = arguments.get("tunables")
    if line is None:
        line = [text for name, value in arguments.items() for text in (f"--{name}", str(value))]
    try:
        found = function(**{**arguments, "tunables": line})
    except SystemExit as stop:
        if stop.code and not isinstance(stop.code, int):
            raise TRexError(f"{name}() exits the process: {stop.code}") from stop
        if stop.code:
            # The profile has printed its error message.
            raise TRexError(f"rejects its tunables: {' '.join(line) or 'none given'}") from stop
        return None
    if found is None:
        raise TRexError(f"{name}() returned None, expected {expected}")
    return found


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the arguments of a function that have defaults, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}
