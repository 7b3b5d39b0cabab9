"""Ping over IPv4 (RFC 792)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Generator
from typing import Any

from scapy.layers.inet import ICMP, IP, ICMPerror
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from trex.client.vlan import VLAN
from trex.errors import TRexError
from trex.services.context import ServiceCtx
from trex.services.loop import Event
from trex.services.pipe import ServicePipe
from trex.services.service import Service, ServiceFilter

_ECHO_REPLY = 0
_UNREACHABLE = 3
_ECHO_REQUEST = 8


class ServiceFilterICMP(ServiceFilter):
    """Matches replies by requester, identifier, sequence number and VLANs.

    It also matches ICMP errors about a request.
    """

    def __init__(self) -> None:
        self._services: dict[Any, list[ServiceICMP]] = defaultdict(list)

    def add(self, service: ServiceICMP) -> None:
        """Adds a service."""
        key = (service.src_ip, service.id, service.seq, tuple(service.vlan))
        self._services[key].append(service)

    def lookup(self, pkt: bytes) -> list[ServiceICMP]:
        """Returns the services that a reply belongs to."""
        found = Ether(pkt)
        if ICMP not in found or found[ICMP].type not in (_ECHO_REPLY, _UNREACHABLE):
            return []
        about = found[ICMPerror] if ICMPerror in found else found[ICMP]
        return self._services.get(
            (found[IP].dst, about.id, about.seq, VLAN.extract_without_priority(found)), []
        )

    def get_bpf_filter(self) -> str:
        """Matches ICMP with up to two VLAN tags."""
        return "icmp or (vlan and icmp) or (vlan and icmp)"


class PingRecord(dict):
    """Result of a ping, in both forms of TRex.

    Attributes `state`, `responder_ip`, `ttl`, `rtt` (ms) and `pkt_size`; keys `status`,
    `formatted_string`, `src_ip`, `ttl` and `rtt`.
    """

    TIMEOUT, UNREACHABLE, SUCCESS = range(3)

    def __init__(
        self,
        scapy_pkt: Packet | None = None,
        tx_ts: float = 0.0,
        rx_ts: float = 0.0,
    ) -> None:
        self.responder_ip: Any = "N/A"
        self.ttl: Any = "N/A"
        self.rtt: Any = "N/A"
        self.pkt_size: Any = "N/A"
        self.state = self.TIMEOUT
        if scapy_pkt is None:
            super().__init__(status="timeout", formatted_string="Request timed out.")
            return
        self.responder_ip = scapy_pkt[IP].src
        if scapy_pkt[ICMP].type == _UNREACHABLE:
            self.state = self.UNREACHABLE
            text = f"Reply from {self.responder_ip}: Destination host unreachable"
            super().__init__(status="unreachable", formatted_string=text)
            return
        self.state = self.SUCCESS
        self.ttl = scapy_pkt[IP].ttl
        self.rtt = (rx_ts - tx_ts) * 1e3
        self.pkt_size = len(scapy_pkt)
        text = f"Reply from {self.responder_ip}: bytes={self.pkt_size}, time={self.rtt:.2f}ms"
        super().__init__(
            status="success",
            formatted_string=f"{text}, TTL={self.ttl}",
            src_ip=self.responder_ip,
            rtt=self.rtt,
            ttl=self.ttl,
        )

    def __str__(self) -> str:
        return str(self["formatted_string"])


class ServiceICMP(Service):
    """Sends an echo request of `pkt_size` bytes without FCS to the port's next hop, and waits for
    the reply.
    """

    PINGRecord = PingRecord

    def __init__(
        self,
        ctx: ServiceCtx,
        dst_ip: str,
        src_ip: str | None = None,
        pkt_size: int = 64,
        timeout_sec: float = 3,
        verbose_level: int = Service.ERROR,
        vlan: Any = None,
    ) -> None:
        super().__init__(verbose_level)
        source = src_ip or ctx.get_src_ipv4()
        if source is None:
            raise TRexError(
                f"ping: port {ctx.get_port_id()} has no IPv4 address: set one with set_l3_mode, "
                "or pass src_ip"
            )
        self.src_ip = source
        self.dst_ip = dst_ip
        self.vlan = VLAN(vlan)
        self.pkt_size = pkt_size
        self.timeout_sec = timeout_sec
        self.id = random.getrandbits(16)
        self.seq = 0
        self.record: PingRecord | None = None

    def get_filter_type(self) -> type[ServiceFilter]:
        """Returns the filter class of the service."""
        return ServiceFilterICMP

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        """Sends one request and waits for its reply."""
        self.record = None
        self.log(f"ICMP: {self.src_ip} pings {self.dst_ip}")
        echo = ICMP(type=_ECHO_REQUEST, id=self.id, seq=self.seq)
        packet = Ether() / IP(src=self.src_ip, dst=self.dst_ip) / echo
        self.vlan.embed(packet)
        packet /= Raw(b"x" * max(0, self.pkt_size - len(packet)))
        sent = yield pipe.async_tx_pkt(packet)
        frames = yield pipe.async_wait_for_pkt(time_sec=self.timeout_sec)
        if frames:
            self.record = PingRecord(Ether(frames[0]["pkt"]), sent["ts"], frames[0]["ts"])
        else:
            self.record = PingRecord()
        self.log(f"ICMP: {self.src_ip}: {self.record}")

    def get_record(self) -> PingRecord | None:
        """Returns the result, None before the run."""
        return self.record
