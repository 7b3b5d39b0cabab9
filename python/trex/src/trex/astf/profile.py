"""Profiles: templates, and the files that define them."""

from __future__ import annotations

import json
import os
from typing import Any, Union

from trex.astf.arguments import check_list, check_optional, check_required
from trex.astf.cap_info import ASTFCapInfo
from trex.astf.commands import ASTFCmdDelay, ASTFCmdDelayRnd
from trex.astf.conversation import Conversation, read_conversation
from trex.astf.conversation_program import Delay
from trex.astf.document import Document
from trex.astf.errors import ASTFError, ASTFErrorBadParamCombination
from trex.astf.global_info import ASTFGlobalInfo
from trex.astf.pools import ASTFIPGen
from trex.astf.templates import ASTFTemplate
from trex.errors import TRexError
from trex.files import reading
from trex.loader import find_function, registered
from trex.tunables import call_with_tunables, defaults_of


class ASTFProfile:
    """Templates that run together. `meta` describes their origin."""

    def __init__(
        self,
        default_ip_gen: ASTFIPGen,
        default_c_glob_info: ASTFGlobalInfo | None = None,
        default_s_glob_info: ASTFGlobalInfo | None = None,
        templates: list[ASTFTemplate] | ASTFTemplate | None = None,
        cap_list: list[ASTFCapInfo] | ASTFCapInfo | None = None,
        s_delay: Delay | None = None,
        udp_mtu: int | None = None,
    ) -> None:
        """:param default_ip_gen: addresses for captures without their own
        :param default_c_glob_info: tunables of all clients
        :param default_s_glob_info: tunables of all servers
        :param templates: templates
        :param cap_list: captures that become further templates
        :param s_delay: delay before each answer of the captures' servers
        :param udp_mtu: truncates the captures' datagrams to this length, including the Ethernet
            header
        """
        context = type(self).__name__
        check_required(context, "default_ip_gen", default_ip_gen, ASTFIPGen)
        check_optional(context, "default_c_glob_info", default_c_glob_info, ASTFGlobalInfo)
        check_optional(context, "default_s_glob_info", default_s_glob_info, ASTFGlobalInfo)
        check_optional(context, "s_delay", s_delay, ASTFCmdDelay, ASTFCmdDelayRnd)
        check_optional(context, "udp_mtu", udp_mtu, int)
        if templates is None and cap_list is None:
            raise ASTFErrorBadParamCombination(context, "templates", "cap_list", are_missing=True)
        self.default_ip_gen = default_ip_gen
        self.default_c_glob_info = default_c_glob_info
        self.default_s_glob_info = default_s_glob_info
        self.templates: list[ASTFTemplate] = []
        self.meta: dict[str, Any] | None = None
        if templates is not None:
            self.templates += check_list(context, "templates", templates, ASTFTemplate)
        if cap_list is not None:
            captures = check_list(context, "cap_list", cap_list, ASTFCapInfo)
            conversations = [read_conversation(capture.file) for capture in captures]
            self.templates += [
                capture.template(conversation, cps, default_ip_gen, s_delay, udp_mtu)
                for capture, conversation, cps in zip(
                    captures, conversations, _cps(captures, conversations)
                )
            ]
        _check_ports(self.templates)

    @classmethod
    def load(cls, filename: str, **kwargs: Any) -> AnyProfile | None:
        """Loads a file by its suffix: `.py` or `.json`."""
        suffix = os.path.splitext(filename)[1]
        if suffix == ".py":
            return cls.load_py(filename, **kwargs)
        if suffix == ".json":
            return cls.load_json(filename)
        raise TRexError(
            f"'{filename}' is not a profile: expected a name that ends with .py or .json"
        )

    @staticmethod
    def load_py(python_file: str, **kwargs: Any) -> AnyProfile | None:
        """Calls `register().get_profile(tunables, ...)` of a Python file.

        Keyword arguments are passed on. Unless they include `tunables` (a list of arguments), they
        also become a command line. Returns None if the profile only printed its help.
        """
        with registered(python_file) as described:
            get_profile = find_function(described, "get_profile", "stateful")
            profile = call_with_tunables(get_profile, kwargs, "get_profile", "an ASTFProfile")
            if profile is None:
                return None
            if not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
                raise TRexError(
                    f"get_profile returned {type(profile).__name__}, not an ASTFProfile"
                )
            profile.meta = {"type": "python", "tunables": defaults_of(get_profile)}
            return profile

    @staticmethod
    def load_json(json_file: str) -> ASTFProfileLight:
        """Loads a document of `to_json`."""
        if not os.path.isfile(json_file):
            raise TRexError(f"no such file: '{json_file}'")
        with reading(json_file), open(json_file) as file:
            try:
                return ASTFProfileLight(json.load(file))
            except json.JSONDecodeError as error:
                raise TRexError(f"'{json_file}' is no JSON file: {error}") from error

    @staticmethod
    def get_module_tunables(module: Any) -> dict[str, Any]:
        """Returns the arguments of a module's `get_profile` that have defaults, with their
        defaults.
        """
        return defaults_of(module.register().get_profile)

    def to_json(self) -> dict[str, Any]:
        """Returns the profile in the format of TRex's server."""
        document = Document(self.templates)
        found: dict[str, Any] = {
            "buf_list": document.buffers.entries,
            "ip_gen_dist_list": document.pools.entries,
            "program_list": document.programs.entries,
        }
        if self.default_c_glob_info is not None:
            found["c_glob_info"] = self.default_c_glob_info.to_json()
        if self.default_s_glob_info is not None:
            found["s_glob_info"] = self.default_s_glob_info.to_json()
        found["templates"] = document.templates
        found["tg_names"] = list(document.groups)
        return found

    def to_json_str(self, pretty: bool = True, sort_keys: bool = False) -> str:
        """Returns the document as JSON text."""
        return json.dumps(self.to_json(), indent=4 if pretty else None, sort_keys=sort_keys)

    def print_stats(self) -> None:
        """Prints the load of the templates: payload bytes of both sides, flows and bits per second.

        Each command counts once, even if a program repeats it.
        """
        document = Document(self.templates)
        print(f"{'template':<20} {'port':>9} {'bytes a flow':>14} {'flows/s':>12} {'bit/s':>18}")
        total_cps = total_bps = 0.0
        for number, template in enumerate(self.templates):
            client, server = template.client_template, template.server_template
            sent = client.program.total_send_bytes + server.program.total_send_bytes
            cps = client.cps or 0
            name = f"{number} {template.tg_name}" if template.tg_name else str(number)
            port = f"{client.port}/{'tcp' if client.is_stream() else 'udp'}"
            print(f"{name:<20.20} {port:>9} {sent:>14,} {cps:>12,.3f} {sent * 8 * cps:>18,.0f}")
            total_cps += cps
            total_bps += sent * 8 * cps
        print(f"{'all':<20} {'':>9} {'':>14} {total_cps:>12,.3f} {total_bps:>18,.0f}")
        print(
            f"{len(document.programs.entries)} programs, {len(document.buffers.entries)} buffers, "
            f"{len(document.pools.entries)} address pools"
        )

    def clear_cache(self) -> None:
        """Does nothing: a profile has no cache."""


class ASTFProfileLight:
    """A profile loaded from JSON."""

    def __init__(self, json_dict: dict[str, Any]) -> None:
        if not isinstance(json_dict, dict):
            raise TRexError(f"a profile is a JSON object, not {type(json_dict).__name__}")
        self.json_dict = json_dict
        self.meta: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the document."""
        return self.json_dict

    def to_json_str(self) -> str:
        """Returns the document as JSON text."""
        return json.dumps(self.json_dict, indent=4)

    def print_stats(self) -> None:
        """Prints that statistics require a profile in Python."""
        print("no statistics for a profile from JSON")


AnyProfile = Union[ASTFProfile, ASTFProfileLight]


def _cps(captures: list[ASTFCapInfo], conversations: list[Conversation]) -> list[float | None]:
    """Returns the flows per second of each capture: as given, or 100 in total by payload share."""
    percents = [capture.l7_percent for capture in captures if capture.l7_percent is not None]
    if not percents:
        return [capture.cps for capture in captures]
    for capture, conversation in zip(captures, conversations):
        if not conversation.payload_len:
            raise ASTFError(f"'{capture.file}' has no payload to have l7_percent of: give it cps")
        if capture.l7_percent is None:
            raise ASTFError(f"l7_percent is given, but not of '{capture.file}': give it of all")
    if abs(sum(percents) - 100) > 1e-6:
        raise ASTFError(f"the l7_percent of all captures are {sum(percents):g} together, not 100")
    rates = [
        percent / conversation.payload_len for percent, conversation in zip(percents, conversations)
    ]
    return [rate * 100 / sum(rates) for rate in rates]


def _check_ports(templates: list[ASTFTemplate]) -> None:
    """Raises if two servers claim all flows to the same port."""
    taken: dict[tuple[int, bool], int] = {}
    for number, template in enumerate(templates):
        server = template.server_template
        if not server.assoc.is_port_only():
            continue
        port, is_stream = server.assoc.port, server.is_stream()
        other = taken.setdefault((port, is_stream), number)
        if other != number:
            kind = "TCP" if is_stream else "UDP"
            raise ASTFError(
                f"templates {other} and {number} both have a server at {kind} port {port}: give "
                "one another port, or destination addresses (ip_start, ip_end) or an l7_map"
            )
