"""The words of a command, and how they are read."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from trex.addresses import is_valid_ipv4, is_valid_ipv6, is_valid_mac
from trex.errors import TRexError
from trex.tunables import keywords_of

HELP = ("-h", "--help")
_TIME = re.compile(r"(\d+(?:\.\d+)?)([mh]?)")
_SECONDS = {"": 1.0, "m": 60.0, "h": 3600.0}
_PROFILE = re.compile(r"\d+(\.\S+)?")
_PORTS = "ports by number; all that are acquired where none are named"
_CONSOLE = "console"

_Method = TypeVar("_Method", bound=Callable[..., Any])


def command(name: str) -> Callable[[_Method], _Method]:
    """Makes a method the command of that name: it takes the words behind it as one text."""

    def mark(method: _Method) -> _Method:
        vars(method).update(api_type=_CONSOLE, name=name)
        return method

    return mark


def commands_of(client: Any) -> dict[str, Any]:
    """The commands of a client, by their names."""
    found = {}
    for attribute in dir(type(client)):
        method = getattr(type(client), attribute, None)
        if getattr(method, "api_type", None) == _CONSOLE:
            found[str(getattr(method, "name", attribute))] = getattr(client, attribute)
    return found


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise TRexError(f"{self.prog}: {message}\n{self.format_usage().strip()}")

    def add_ports(self) -> None:
        """`-p` and `-a`, which `ports_of` reads."""
        which = self.add_mutually_exclusive_group()
        _add_list(which, int, _PORTS, None)
        which.add_argument("-a", dest="all_ports", action="store_true", help="all ports")

    def add_profiles(self, with_all: bool = False) -> None:
        """`-p` of profiles of ports; `-a` `with_all`."""
        which = self.add_mutually_exclusive_group()
        told = "ports, or profiles of theirs as PORT.PROFILE; all that it can be where none are"
        _add_list(which, _profile, f"{told} named", "PORT[.PROFILE]")
        if with_all:
            which.add_argument("-a", dest="all_profiles", action="store_true", help="all of them")

    def add_port(self, is_required: bool = True) -> None:
        """`-p` of one port."""
        self.add_argument(
            "-p", "--port", dest="port", type=int, required=is_required, help="a port by number"
        )

    def add_vlan(self, told: str = "the VLAN, or the outer and the inner one") -> None:
        """`--vlan`."""
        self.add_argument("--vlan", type=int, nargs="*", help=told)

    def add_ids(self, told: str) -> None:
        """`-i` of streams."""
        self.add_argument("-i", "--id", dest="ids", type=int, nargs="+", default=[], help=told)

    def add_tunables(self) -> None:
        """`-t`, behind which all is another's."""
        self.add_argument(
            "-t",
            "--tunables",
            nargs=argparse.REMAINDER,
            default=[],
            help="last: the file's own arguments",
        )


class Words(_Parser):
    """The words of a command, with the name and the help of its method."""

    def __init__(self, method: Any) -> None:
        super().__init__(prog=method.name, description=method.__doc__)

    def commands(self, *names: str) -> list[_Parser]:
        """Commands of its own, of which one may be given."""
        chosen = self.add_subparsers(dest="command", parser_class=_Parser)
        return [chosen.add_parser(name) for name in names]

    def of(self, line: str, has_quotes: bool = True) -> argparse.Namespace | None:
        """What a line says; None if it asks for help, which was printed then.

        Without `has_quotes` they are words like any others.
        """
        try:
            return self.parse_args(shlex.split(line) if has_quotes else line.split())
        except ValueError as error:
            raise TRexError(f"{self.prog}: {line!r}: {error}") from error
        except SystemExit:
            return None


def ports_of(client: Any, given: argparse.Namespace, others: list[int] | None = None) -> list[int]:
    """The ports that were named, each once; where none were, `others`, or those acquired."""
    if given.all_ports:
        return list(client.get_all_ports())
    if given.ports:
        return list(dict.fromkeys(given.ports))
    return list(client.get_acquired_ports()) if others is None else others


def profiles_of(client: Any, given: argparse.Namespace, state: str) -> list[str]:
    """The profiles of streams that were named; where none were, those in a state."""
    if getattr(given, "all_profiles", False):
        return list(client.get_profiles_with_state("all"))
    if given.ports:
        return list(client.validate_profile_input(dict.fromkeys(given.ports)))
    return list(client.get_profiles_with_state(state))


def tunables(words: list[str]) -> dict[str, Any]:
    """Tunables of the older form or the newer one, as keyword arguments."""
    try:
        return keywords_of(words)
    except SystemExit as error:
        raise TRexError(str(error)) from error


def seconds(text: str) -> float:
    """A time: `100`, `10m`, `1h`."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 100, 10m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


def ipv4(text: str) -> str:
    """An address of IPv4."""
    if not is_valid_ipv4(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no IPv4 address")
    return text


def ipv6(text: str) -> str:
    """An address of IPv6."""
    if not is_valid_ipv6(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no IPv6 address")
    return text


def address(text: str) -> str:
    """An address of either."""
    if not is_valid_ipv4(text) and not is_valid_ipv6(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no IP address")
    return text


def mac(text: str) -> str:
    """An Ethernet address."""
    if not is_valid_mac(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no Ethernet address")
    return text


def _profile(text: str) -> str:
    if _PROFILE.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no port such as 0, nor a profile as 0.name")
    return text


def _add_list(which: Any, kind: Any, told: str, metavar: str | None) -> None:
    which.add_argument(
        "-p",
        "--port",
        dest="ports",
        type=kind,
        nargs="+",
        action="extend",
        default=[],
        metavar=metavar,
        help=told,
    )
