"""Neighbour discovery client (RFC 4861)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

from scapy.layers.inet6 import (
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from trex.addresses import compress_ipv6, generate_ipv6_solicited_node, multicast_mac_from_ipv6
from trex.client.vlan import VLAN
from trex.services.context import ServiceCtx
from trex.services.loop import Event
from trex.services.pipe import ServicePipe
from trex.services.record import NeighbourRecord
from trex.services.service import Service, ServiceFilter

_ALL_NODES = "ff02::1"
_UNSPECIFIED = "::"


class ServiceFilterIPv6NDP(ServiceFilter):
    """Matches advertisements by requester, target and VLANs, and solicitations by target."""

    def __init__(self) -> None:
        self._advertisement_receivers: dict[Any, list[ServiceIPv6ND]] = defaultdict(list)
        self._solicitation_receivers: dict[Any, list[ServiceIPv6ND]] = defaultdict(list)

    def add(self, service: ServiceIPv6ND) -> None:
        """Adds a service."""
        vlans = tuple(service.vlan)
        self._advertisement_receivers[(service.src_ip, service.dst_ip, vlans)].append(service)
        self._solicitation_receivers[(service.src_ip, vlans)].append(service)

    def lookup(self, pkt: bytes) -> list[ServiceIPv6ND]:
        """Returns the services that an advertisement or solicitation belongs to."""
        found = Ether(pkt)
        vlans = VLAN.extract_without_priority(found)
        if ICMPv6ND_NA in found:
            # A solicitation from the unspecified address gets a multicast reply (RFC 4861 section
            # 7.2.4).
            requester = _UNSPECIFIED if found[IPv6].dst == _ALL_NODES else found[IPv6].dst
            key = (requester, found[ICMPv6ND_NA].tgt, vlans)
            return self._advertisement_receivers.get(key, [])
        if ICMPv6ND_NS in found:
            return self._solicitation_receivers.get((found[ICMPv6ND_NS].tgt, vlans), [])
        return []

    def get_bpf_filter(self) -> str:
        """Matches ICMPv6 with up to two VLAN tags."""
        return "icmp6 or (vlan and icmp6) or (vlan and icmp6)"


class ServiceIPv6ND(Service):
    """Resolves `dst_ip`, from the unspecified address without `src_ip`.

    It repeats the solicitation up to `retries` times, each after `timeout` seconds. Then it answers
    solicitations for `src_ip` for `verify_timeout` seconds.
    """

    def __init__(
        self,
        ctx: ServiceCtx,
        dst_ip: str,
        src_ip: str = "::0",
        retries: int = 1,
        src_mac: str | None = None,
        vlan: Any = None,
        fmt: str | None = None,
        timeout: float = 5,
        verify_timeout: float = 0,
        verbose_level: int = Service.ERROR,
    ) -> None:
        super().__init__(verbose_level)
        self.src_ip = compress_ipv6(src_ip)
        self.dst_ip = compress_ipv6(dst_ip)
        self.retries = retries
        self.src_mac = src_mac or ctx.get_src_mac()
        self.vlan = VLAN(vlan)
        self.fmt = fmt
        self.timeout = timeout
        self.verify_timeout = verify_timeout
        self.record = IPv6Neighbor(self.src_mac, self.src_ip, self.dst_ip)

    def get_filter_type(self) -> type[ServiceFilter]:
        """Returns the filter class of the service."""
        return ServiceFilterIPv6NDP

    def is_mult_required(self) -> bool:
        """True: neighbour solicitations go to multicast groups."""
        return True

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        """Sends solicitations and waits for the advertisement."""
        self.record.initialize()
        for number in range(self.retries + 1):
            yield pipe.async_tx_pkt(self._solicitation())
            self.log(f"ND: who has {self.dst_ip}? Tell {self.src_ip} ({number + 1})")
            yield from self._receive(pipe, self.timeout, until_resolved=True)
            if self.record.is_resolved():
                break
        self.log(f"ND: {self.record}")
        if self.record.is_resolved():
            yield from self._receive(pipe, self.verify_timeout)

    def get_record(self) -> IPv6Neighbor:
        """Returns the result."""
        return self.record

    def _solicitation(self) -> Packet:
        group = generate_ipv6_solicited_node(self.dst_ip)
        header = Ether(src=self.src_mac, dst=multicast_mac_from_ipv6(group))
        packet = header / IPv6(src=self.src_ip, dst=group) / ICMPv6ND_NS(tgt=self.dst_ip)
        if self.src_ip != _UNSPECIFIED:
            packet /= ICMPv6NDOptSrcLLAddr(lladdr=self.src_mac)
        return self.vlan.embed(packet, self.fmt)

    def _receive(
        self, pipe: ServicePipe, seconds: float, until_resolved: bool = False
    ) -> Generator[Event, Any, None]:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for one in (yield pipe.async_wait_for_pkt(time_sec=left)):
                packet = Ether(one["pkt"])
                if ICMPv6ND_NA in packet:
                    self.record.update(packet)
                elif packet[IPv6].src != _UNSPECIFIED:
                    self.log(f"ND: {packet[IPv6].src} solicits {self.src_ip}")
                    pipe.async_tx_pkt(self._advertisement(packet))
                    self.record.verified()
            if until_resolved and self.record.is_resolved():
                return

    def _advertisement(self, solicitation: Packet) -> Packet:
        option = ICMPv6NDOptDstLLAddr(lladdr=self.src_mac)
        advertisement = ICMPv6ND_NA(tgt=self.src_ip, R=0, S=1, O=1) / option
        header = Ether(src=self.src_mac, dst=solicitation.src)
        packet = header / IPv6(src=self.src_ip, dst=solicitation[IPv6].src) / advertisement
        return self.vlan.embed(packet, self.fmt)


class IPv6Neighbor(NeighbourRecord):
    """Result of neighbour discovery: `dst_mac`, None without a reply.

    `state` is `REACHABLE` or `UNREACHABLE`. True if there was a reply.
    """

    def __init__(
        self, src_mac: str | None = None, src_ip: str = "N/A", dst_ip: str = "N/A"
    ) -> None:
        self.src_mac = src_mac
        self.src_ip = src_ip
        self.dst_ip = dst_ip
        self.initialize()

    def initialize(self) -> None:
        """Resets the result."""
        self.dst_mac: str | None = None
        self.state = "UNREACHABLE"
        self.neighbor_verifications = 0

    def is_resolved(self) -> bool:
        """Returns whether there was a reply."""
        return self.state == "REACHABLE"

    def verified(self) -> None:
        """Counts a solicitation from the neighbour."""
        self.neighbor_verifications += 1

    def update(self, response: Packet) -> None:
        """Records an advertisement. Without a link-layer option, it uses the sender's address."""
        option = response.getlayer(ICMPv6NDOptDstLLAddr)
        self.dst_mac = response.src if option is None else option.lladdr
        self.state = "REACHABLE"
