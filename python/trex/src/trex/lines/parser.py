"""Parser of the words of console commands."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from trex.addresses import is_valid_ipv4, is_valid_ipv6, is_valid_mac
from trex.errors import TRexError
from trex.tunables import parse_tunables

HELP = ("-h", "--help")
_TIME = re.compile(r"(\d+(?:\.\d+)?)([mh]?)")
_SECONDS = {"": 1.0, "m": 60.0, "h": 3600.0}
_PROFILE = re.compile(r"\d+(\.\S+)?")
_PORTS = "port numbers; default: all acquired ports"
_CONSOLE = "console"

_Method = TypeVar("_Method", bound=Callable[..., Any])


def command(name: str) -> Callable[[_Method], _Method]:
    """Marks a method as the console command `name`. The method takes the rest of the line."""

    def mark(method: _Method) -> _Method:
        vars(method).update(api_type=_CONSOLE, name=name)
        return method

    return mark


def console_commands(client: Any) -> dict[str, Any]:
    """Returns the console commands of a client by name."""
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
        """Adds `-p` and `-a` for `ports_of`."""
        group = self.add_mutually_exclusive_group()
        _add_list(group, int, _PORTS, None)
        group.add_argument("-a", dest="all_ports", action="store_true", help="all ports")

    def add_profiles(self, with_all: bool = False) -> None:
        """Adds `-p` for profiles of ports, and `-a` if `with_all`."""
        group = self.add_mutually_exclusive_group()
        text = "ports or profiles as PORT.PROFILE; default:"
        _add_list(group, _profile, f"{text} all", "PORT[.PROFILE]")
        if with_all:
            group.add_argument("-a", dest="all_profiles", action="store_true", help="all profiles")

    def add_port(self, is_required: bool = True) -> None:
        """Adds `-p` for one port."""
        self.add_argument(
            "-p", "--port", dest="port", type=int, required=is_required, help="port number"
        )

    def add_vlan(self, text: str = "the VLAN, or outer and inner VLAN") -> None:
        """Adds `--vlan`."""
        self.add_argument("--vlan", type=int, nargs="*", help=text)

    def add_ids(self, text: str) -> None:
        """Adds `-i` for stream IDs."""
        self.add_argument("-i", "--id", dest="ids", type=int, nargs="+", default=[], help=text)

    def add_tunables(self) -> None:
        """Adds `-t`, which takes the rest of the line."""
        self.add_argument(
            "-t",
            "--tunables",
            nargs=argparse.REMAINDER,
            default=[],
            help="arguments of the file; must be the last option",
        )


class LineParser(_Parser):
    """Argument parser of a command, with the name and docstring of its method."""

    def __init__(self, method: Any) -> None:
        super().__init__(prog=method.name, description=method.__doc__)

    def commands(self, *names: str) -> list[_Parser]:
        """Adds subcommands and returns their parsers."""
        chosen = self.add_subparsers(dest="command", parser_class=_Parser)
        return [chosen.add_parser(name) for name in names]

    def parse_line(self, line: str, has_quotes: bool = True) -> argparse.Namespace | None:
        """Parses a line. Returns None if it requests help, which is printed then.

        Without `has_quotes`, quotes have no special meaning.
        """
        try:
            return self.parse_args(shlex.split(line) if has_quotes else line.split())
        except ValueError as error:
            raise TRexError(f"{self.prog}: {line!r}: {error}") from error
        except SystemExit:
            return None


def ports_of(client: Any, args: argparse.Namespace, others: list[int] | None = None) -> list[int]:
    """Returns the given ports without duplicates; by default `others`, or the acquired ports."""
    if args.all_ports:
        return list(client.get_all_ports())
    if args.ports:
        return list(dict.fromkeys(args.ports))
    return list(client.get_acquired_ports()) if others is None else others


def profiles_of(client: Any, args: argparse.Namespace, state: str) -> list[str]:
    """Returns the given profiles of streams; by default those in a state."""
    if getattr(args, "all_profiles", False):
        return list(client.get_profiles_with_state("all"))
    if args.ports:
        return list(client.validate_profile_input(dict.fromkeys(args.ports)))
    return list(client.get_profiles_with_state(state))


def tunables(words: list[str]) -> dict[str, Any]:
    """Parses tunables of the older or newer form to keyword arguments."""
    try:
        return parse_tunables(words)
    except SystemExit as error:
        raise TRexError(str(error)) from error


def seconds(text: str) -> float:
    """Parses a time: `100`, `10m`, `1h`."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 100, 10m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


def _checker(is_valid: Callable[[str], bool], kind: str) -> Callable[[str], str]:
    """Returns an argument type that accepts a valid text unchanged."""

    def check(text: str) -> str:
        if not is_valid(text):
            raise argparse.ArgumentTypeError(f"{text!r} is no {kind}")
        return text

    return check


ipv4 = _checker(is_valid_ipv4, "IPv4 address")
ipv6 = _checker(is_valid_ipv6, "IPv6 address")
address = _checker(lambda text: is_valid_ipv4(text) or is_valid_ipv6(text), "IP address")
mac = _checker(is_valid_mac, "Ethernet address")


def _profile(text: str) -> str:
    if _PROFILE.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a port such as 0 nor a profile such as 0.name"
        )
    return text


def _add_list(group: Any, kind: Any, text: str, metavar: str | None) -> None:
    group.add_argument(
        "-p",
        "--port",
        dest="ports",
        type=kind,
        nargs="+",
        action="extend",
        default=[],
        metavar=metavar,
        help=text,
    )
