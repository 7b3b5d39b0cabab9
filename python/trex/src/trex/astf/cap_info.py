"""Templates from captured conversations."""

from __future__ import annotations

from typing import cast

from trex.astf.arguments import (
    check_group_name,
    check_not_negative,
    check_optional,
    check_range,
    check_required,
)
from trex.astf.association import ASTFAssociation, ASTFAssociationRule
from trex.astf.commands import ASTFCmdDelay, ASTFCmdDelayRnd
from trex.astf.conversation import Conversation
from trex.astf.conversation_program import Delay
from trex.astf.errors import ASTFErrorBadParamCombination
from trex.astf.global_info import ASTFGlobalInfoPerTemplate
from trex.astf.pools import ASTFIPGen
from trex.astf.program import ASTFProgram
from trex.astf.templates import ASTFTCPClientTemplate, ASTFTCPServerTemplate, ASTFTemplate


class ASTFCapInfo:
    """A capture of one conversation, and its load."""

    def __init__(
        self,
        file: str | None = None,
        cps: float | None = None,
        assoc: ASTFAssociation | ASTFAssociationRule | None = None,
        ip_gen: ASTFIPGen | None = None,
        port: int | None = None,
        l7_percent: float | None = None,
        s_glob_info: ASTFGlobalInfoPerTemplate | None = None,
        c_glob_info: ASTFGlobalInfoPerTemplate | None = None,
        limit: int | None = None,
        cont: bool | None = None,
        tg_name: str | None = None,
        s_delay: Delay | None = None,
        udp_mtu: int | None = None,
    ) -> None:
        """:param file: capture, relative to the profile's folder
        :param cps: new flows per second; 1 without `cps` and `l7_percent`
        :param assoc: rules for the server's flows; the capture's port if None
        :param ip_gen: addresses; the profile's if None
        :param port: destination port instead of the capture's
        :param l7_percent: share of the payload bytes of all captures in the profile, instead of
            `cps`
        :param s_glob_info: tunables of the servers
        :param c_glob_info: tunables of the clients
        :param limit: maximum number of flows; no limit if None
        :param cont: `limit` concurrent flows instead
        :param tg_name: template group
        :param s_delay: delay before each answer of the server; the profile's if None
        :param udp_mtu: truncates datagrams to this length; the profile's if None
        """
        context = type(self).__name__
        check_required(context, "file", file, str)
        check_not_negative(context, "cps", cps)
        check_optional(context, "assoc", assoc, ASTFAssociation, ASTFAssociationRule)
        check_optional(context, "ip_gen", ip_gen, ASTFIPGen)
        check_not_negative(context, "l7_percent", l7_percent)
        check_optional(context, "s_glob_info", s_glob_info, ASTFGlobalInfoPerTemplate)
        check_optional(context, "c_glob_info", c_glob_info, ASTFGlobalInfoPerTemplate)
        check_optional(context, "limit", limit, int)
        check_optional(context, "cont", cont, bool)
        check_group_name(context, tg_name)
        check_optional(context, "s_delay", s_delay, ASTFCmdDelay, ASTFCmdDelayRnd)
        check_optional(context, "udp_mtu", udp_mtu, int)
        if cps is not None and l7_percent is not None:
            raise ASTFErrorBadParamCombination(context, "cps", "l7_percent")
        if assoc is not None and port is not None:
            raise ASTFErrorBadParamCombination(context, "port", "assoc")
        if port is not None:
            check_range(context, "port", port, 0, 65535)
            assoc = ASTFAssociationRule(port=port)
        if isinstance(assoc, ASTFAssociationRule):
            assoc = ASTFAssociation(assoc)
        self.file = cast(str, file)
        self.cps = 1 if cps is None and l7_percent is None else cps
        self.l7_percent = l7_percent
        self.assoc = assoc
        self.ip_gen = ip_gen
        self.s_glob_info = s_glob_info
        self.c_glob_info = c_glob_info
        self.limit = limit
        self.cont = cont
        self.tg_name = tg_name
        self.s_delay = s_delay
        self.udp_mtu = udp_mtu

    def template(
        self,
        conversation: Conversation,
        cps: float | None,
        default_ip_gen: ASTFIPGen,
        default_s_delay: Delay | None,
        default_udp_mtu: int | None,
    ) -> ASTFTemplate:
        """Returns the template of the capture's conversation, with the profile's defaults."""
        s_delay = self.s_delay if self.s_delay is not None else default_s_delay
        udp_mtu = self.udp_mtu if self.udp_mtu is not None else default_udp_mtu
        client = ASTFProgram.imported(conversation, "c", udp_mtu=udp_mtu)
        server = ASTFProgram.imported(conversation, "s", s_delay=s_delay, udp_mtu=udp_mtu)
        # Both sides use the longer keepalive, so that neither gives up while the other waits.
        client.update_keepalive(server)
        if not conversation.stream:
            server.update_keepalive(client)
        assoc = self.assoc or ASTFAssociation(ASTFAssociationRule(port=conversation.port))
        return ASTFTemplate(
            ASTFTCPClientTemplate(
                program=client,
                ip_gen=self.ip_gen or default_ip_gen,
                port=assoc.port,
                cps=cps,
                glob_info=self.c_glob_info,
                limit=self.limit,
                cont=self.cont,
            ),
            ASTFTCPServerTemplate(program=server, assoc=assoc, glob_info=self.s_glob_info),
            tg_name=self.tg_name,
        )
