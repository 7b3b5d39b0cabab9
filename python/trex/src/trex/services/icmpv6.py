"""Ping over IPv6 (RFC 4443), and a scan for neighbours."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from typing import Any

from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6MLDMultAddrRec,
    ICMPv6MLReport2,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrHopByHop,
    RouterAlert,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from trex.addresses import compress_ipv6, generate_ipv6_solicited_node, multicast_mac_from_ipv6
from trex.client.vlan import VLAN
from trex.errors import TRexError
from trex.services.context import ServiceCtx
from trex.services.loop import Event
from trex.services.pipe import ServicePipe
from trex.services.service import Service, ServiceFilter

_ALL_NODES = "ff02::1"
# Number of times each request is sent, because one can be lost.
_REQUESTS_MAX = 2
# Frames to process before the next check of the time.
_BATCH_MAX = 16
_ALL_REPORTS = "ff02::16"
# RFC 3810 section 5.2.12: the sender joins the group with an empty exclude list.
_CHANGE_TO_EXCLUDE = 4


class ServiceFilterIPv6(ServiceFilter):
    """Matches IPv6 by VLANs. The services check the packets themselves."""

    def __init__(self) -> None:
        self._services: dict[Any, list[ServiceIPv6]] = defaultdict(list)

    def add(self, service: ServiceIPv6) -> None:
        """Adds a service."""
        self._services[tuple(service.vlan)].append(service)

    def lookup(self, pkt: bytes) -> list[ServiceIPv6]:
        """Returns the services in the VLAN of a frame."""
        found = Ether(pkt)
        return self._services.get(VLAN.extract_without_priority(found), []) if IPv6 in found else []

    def get_bpf_filter(self) -> str:
        """Matches IPv6 with up to two VLAN tags."""
        return "ip6 or (vlan and ip6) or (vlan and ip6)"


class ServiceIPv6(Service):
    """Base class of IPv6 services: the port's address, and answers to neighbour solicitations."""

    def __init__(
        self, ctx: ServiceCtx, dst_ip: str, vlan: Any, timeout: float, verbose_level: int
    ) -> None:
        super().__init__(verbose_level)
        self.ctx = ctx
        self.port = ctx.link
        self.vlan = VLAN(vlan)
        self.timeout = timeout
        self.src_mac = ctx.get_src_mac()
        self.src_ip = self.port.source_ipv6
        self.dst_ip = compress_ipv6(dst_ip)
        self.record: Any = {}

    def get_filter_type(self) -> type[ServiceFilter]:
        """Returns the filter class of the service."""
        return ServiceFilterIPv6

    def is_mult_required(self) -> bool:
        """True: neighbour solicitations go to multicast groups."""
        return True

    def get_record(self) -> Any:
        """Returns the result."""
        return self.record

    def _packet(self, destination: str, payload: Packet, **fields: Any) -> Packet:
        """Builds a packet to an Ethernet address."""
        header = Ether(src=self.src_mac, dst=destination) / IPv6(src=self.src_ip, **fields)
        return self.vlan.embed(header / payload)

    def _advertisements(self, packet: Packet) -> list[Packet]:
        """Builds the answer to a neighbour solicitation for this port's address."""
        if ICMPv6ND_NS not in packet or packet[ICMPv6ND_NS].tgt != self.src_ip:
            return []
        option = ICMPv6NDOptDstLLAddr(lladdr=self.src_mac)
        answer = ICMPv6ND_NA(tgt=self.src_ip, R=0, S=1, O=1) / option
        return [self._packet(packet.src, answer, dst=packet[IPv6].src)]

    def _receive_until(
        self, pipe: ServicePipe, deadline: float
    ) -> Generator[Event, Any, list[dict[str, Any]]]:
        """Waits for frames until `deadline`; returns an empty list after it."""
        left = deadline - time.monotonic()
        if left <= 0:
            return []
        frames: list[dict[str, Any]] = yield pipe.async_wait_for_pkt(left, _BATCH_MAX)
        return frames


class ServiceIPv6Scan(ServiceIPv6):
    """Pings a group, by default all nodes, and sends a neighbour solicitation to each responder.

    The result is a list of `type` (`Router`, `Host`), `mac` and `ipv6` of each node.
    """

    def __init__(
        self,
        ctx: ServiceCtx,
        dst_ip: str,
        timeout: float = 3,
        verbose_level: int = Service.ERROR,
    ) -> None:
        super().__init__(ctx, dst_ip, ctx.link.vlan, timeout, verbose_level)

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        """Scans until the timeout."""
        found: dict[str, dict[str, str]] = {}
        attempts: Counter[str] = Counter()
        deadline = time.monotonic() + self.timeout
        for packet in self._requests() * _REQUESTS_MAX:
            yield pipe.async_tx_pkt(packet)
        while frames := (yield from self._receive_until(pipe, deadline)):
            for one in frames:
                for answer in self._handle(Ether(one["pkt"]), found, attempts):
                    yield pipe.async_tx_pkt(answer)
        self.record = list(found.values())

    def _requests(self) -> list[Packet]:
        # MLD-snooping switches forward solicitations to this group only after a report.
        solicited_node = generate_ipv6_solicited_node(self.src_ip)
        group = ICMPv6MLDMultAddrRec(rtype=_CHANGE_TO_EXCLUDE, dst=solicited_node)
        options = IPv6ExtHdrHopByHop(options=[RouterAlert()])
        report = self._packet(
            multicast_mac_from_ipv6(_ALL_REPORTS),
            options / ICMPv6MLReport2(records=[group]),
            dst=_ALL_REPORTS,
            hlim=1,
        )
        destination = multicast_mac_from_ipv6(self.dst_ip)
        echo = self._packet(destination, ICMPv6EchoRequest(), dst=self.dst_ip, hlim=1)
        return [report, echo]

    def _handle(
        self,
        packet: Packet,
        found: dict[str, dict[str, str]],
        attempts: Counter[str],
    ) -> Iterable[Packet]:
        yield from self._advertisements(packet)
        if ICMPv6ND_NA in packet:
            if packet[IPv6].dst == self.src_ip:
                address = packet[ICMPv6ND_NA].tgt
                kind = "Router" if packet[ICMPv6ND_NA].R else "Host"
                found[address] = {"type": kind, "mac": packet.src, "ipv6": address}
        elif ICMPv6EchoReply in packet or ICMPv6ND_NS in packet:
            address = packet[IPv6].src
            is_new = address not in found and attempts[address] < _REQUESTS_MAX
            if is_new and address not in ("::", self.src_ip):
                attempts[address] += 1
                option = ICMPv6NDOptSrcLLAddr(lladdr=self.src_mac)
                yield self._packet(packet.src, ICMPv6ND_NS(tgt=address) / option, dst=address)


class ServiceICMPv6(ServiceIPv6):
    """Sends an echo request and waits for a reply.

    `pkt_size` is in bytes without FCS. Without `dst_mac`, the request goes to the port's next hop.
    The result has TRex's keys: `status` (`success`, `timeout`, `unreachable`), `formatted_string`,
    and for a success `src_ip`, `rtt` (ms) and `ttl`.
    """

    def __init__(
        self,
        ctx: ServiceCtx,
        dst_ip: str,
        pkt_size: int = 64,
        timeout: float = 3,
        dst_mac: str | None = None,
        verbose_level: int = Service.ERROR,
        vlan: Any = None,
    ) -> None:
        super().__init__(ctx, dst_ip, vlan, timeout, verbose_level)
        self.pkt_size = pkt_size
        self.dst_mac = dst_mac
        self.id = random.getrandbits(16)

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        """Sends one request and waits for its reply."""
        destination = self.dst_mac or self.port.destination
        if destination is None:
            raise TRexError(
                f"ping: the next hop of port {self.ctx.get_port_id()} is unknown: set it with "
                "set_l2_mode or set_l3_mode"
            )
        self.record = {"status": "timeout", "formatted_string": "Request timed out."}
        packet = self._packet(destination, ICMPv6EchoRequest(id=self.id), dst=self.dst_ip)
        packet /= Raw(b"x" * max(0, self.pkt_size - len(packet)))
        sent = yield pipe.async_tx_pkt(packet)
        deadline = time.monotonic() + self.timeout
        while frames := (yield from self._receive_until(pipe, deadline)):
            for one in frames:
                packet = Ether(one["pkt"])
                for answer in self._advertisements(packet):
                    pipe.async_tx_pkt(answer)
                if self._handle(packet, one["ts"] - sent["ts"]):
                    return

    def _handle(self, packet: Packet, seconds: float) -> bool:
        source = packet[IPv6].src
        if packet[IPv6].dst != self.src_ip:
            return False
        if ICMPv6EchoReply in packet and packet[ICMPv6EchoReply].id == self.id:
            rtt, ttl = seconds * 1e3, packet[IPv6].hlim
            text = f"Reply from {source}: bytes={len(packet)}, time={rtt:.2f}ms, hlim={ttl}"
            self.record = {
                "status": "success",
                "formatted_string": text,
                "src_ip": source,
                "rtt": rtt,
                "ttl": ttl,
            }
            return True
        matches = ICMPv6EchoRequest in packet and packet[ICMPv6EchoRequest].id == self.id
        if ICMPv6DestUnreach in packet and matches:
            text = f"Reply from {source}: Destination host unreachable"
            self.record = {"status": "unreachable", "formatted_string": text}
            return True
        return False
