"""Templates: a client, its server, and their load."""

from __future__ import annotations

from typing import Any, cast

from trex.astf.arguments import (
    check_group_name,
    check_not_negative,
    check_optional,
    check_range,
    check_required,
)
from trex.astf.association import ASTFAssociation, ASTFAssociationRule
from trex.astf.errors import ASTFError
from trex.astf.global_info import ASTFGlobalInfoPerTemplate
from trex.astf.pools import ASTFIPGen
from trex.astf.program import ASTFProgram


class ASTFCluster:
    """Clients with common properties; it has no settings."""

    def to_json(self) -> dict[str, Any]:
        """Returns an empty object."""
        return {}


class ASTFTCPOptions:
    """TCP options by name, which have no effect."""

    def __init__(self, opts: list[tuple[str, Any]] | None = None) -> None:
        """:param opts: names and values, such as `("MSS", 1400)`"""
        self.fields = dict(opts or [])

    @property
    def mss(self) -> Any:
        """Maximum segment size."""
        return self.fields["MSS"]

    @mss.setter
    def mss(self, val: Any) -> None:
        self.fields["MSS"] = val

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ASTFTCPOptions) and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]  # they change

    def to_json(self) -> dict[str, Any]:
        """The options."""
        return dict(self.fields)


class ASTFTCPClientTemplate:
    """Clients of a template. Their program determines TCP or UDP."""

    def __init__(
        self,
        ip_gen: ASTFIPGen,
        cluster: ASTFCluster | None = None,
        program: ASTFProgram | None = None,
        port: int = 80,
        cps: float | None = 1,
        glob_info: ASTFGlobalInfoPerTemplate | None = None,
        limit: int | None = None,
        cont: bool | None = None,
        core_base: int | None = None,
    ) -> None:
        """:param ip_gen: addresses of clients and servers
        :param cluster: no effect
        :param program: program of a client; required
        :param port: destination port
        :param cps: new flows per second; 0 or None: only flows that a program executes
        :param glob_info: tunables of these clients
        :param limit: maximum number of flows; no limit if None
        :param cont: `limit` concurrent flows instead
        :param core_base: core of the first flow, if there are fewer flows than cores
        """
        context = type(self).__name__
        check_required(context, "ip_gen", ip_gen, ASTFIPGen)
        check_optional(context, "cluster", cluster, ASTFCluster)
        check_required(context, "program", program, ASTFProgram)
        check_range(context, "port", port, 0, 65535)
        check_not_negative(context, "cps", cps)
        check_optional(context, "glob_info", glob_info, ASTFGlobalInfoPerTemplate)
        check_optional(context, "limit", limit, int)
        check_not_negative(context, "limit", limit)
        check_optional(context, "cont", cont, bool)
        check_optional(context, "core_base", core_base, int)
        check_not_negative(context, "core_base", core_base)
        self.ip_gen = ip_gen
        self.cluster = cluster or ASTFCluster()
        self.program = cast(ASTFProgram, program)
        self.port = port
        self.cps = cps
        self.glob_info = glob_info
        self.limit = limit
        self.cont = cont
        self.core_base = core_base

    def is_stream(self) -> bool:
        """Returns whether its flows are TCP."""
        return self.program.is_stream()

    def to_json(self) -> dict[str, Any]:
        """Returns the template without its program and pools, which have numbers in documents."""
        document: dict[str, Any] = {"cluster": self.cluster.to_json(), "port": self.port}
        if self.cps:
            document["cps"] = self.cps
        if self.limit:
            document["limit"] = self.limit
            if self.cont:
                document["cont"] = self.cont
            if self.core_base is not None:
                document["core_base"] = self.core_base
        if self.glob_info is not None:
            document["glob_info"] = self.glob_info.to_json()
        return document


class ASTFTCPServerTemplate:
    """Servers of a template. Their program determines TCP or UDP."""

    def __init__(
        self,
        program: ASTFProgram | None = None,
        assoc: ASTFAssociation | ASTFAssociationRule | None = None,
        glob_info: ASTFGlobalInfoPerTemplate | None = None,
    ) -> None:
        """:param program: program of a server; required
        :param assoc: rules for its flows; port 80 if None
        :param glob_info: tunables of these servers
        """
        context = type(self).__name__
        check_required(context, "program", program, ASTFProgram)
        check_optional(context, "assoc", assoc, ASTFAssociation, ASTFAssociationRule)
        check_optional(context, "glob_info", glob_info, ASTFGlobalInfoPerTemplate)
        self.program = cast(ASTFProgram, program)
        self.assoc = assoc if isinstance(assoc, ASTFAssociation) else ASTFAssociation(assoc)
        self.glob_info = glob_info

    def is_stream(self) -> bool:
        """Returns whether its flows are TCP."""
        return self.program.is_stream()

    def to_json(self) -> dict[str, Any]:
        """Returns the template without its program, which has a number in documents."""
        document: dict[str, Any] = {"assoc": self.assoc.to_json()}
        if self.glob_info is not None:
            document["glob_info"] = self.glob_info.to_json()
        return document


class ASTFTemplate:
    """Both sides of a kind of flow."""

    def __init__(
        self,
        client_template: ASTFTCPClientTemplate | None = None,
        server_template: ASTFTCPServerTemplate | None = None,
        tg_name: str | None = None,
    ) -> None:
        """:param client_template: the clients
        :param server_template: the servers
        :param tg_name: template group, for counters and for programs that execute it
        """
        context = type(self).__name__
        check_required(context, "client_template", client_template, ASTFTCPClientTemplate)
        check_required(context, "server_template", server_template, ASTFTCPServerTemplate)
        check_group_name(context, tg_name)
        client = cast(ASTFTCPClientTemplate, client_template)
        server = cast(ASTFTCPServerTemplate, server_template)
        if client.is_stream() != server.is_stream():
            kinds = {True: "TCP", False: "UDP"}
            raise ASTFError(
                f"the client's program is of {kinds[client.is_stream()]}, the server's "
                f"of {kinds[server.is_stream()]}: use the same for both"
            )
        self.client_template = client
        self.server_template = server
        self.tg_name = tg_name
