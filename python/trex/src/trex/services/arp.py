"""ARP client (RFC 826)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator
from typing import Any

from scapy.layers.inet import IP
from scapy.layers.l2 import ARP, Ether

from trex.client.vlan import VLAN
from trex.services.context import ServiceCtx
from trex.services.loop import Event
from trex.services.pipe import ServicePipe
from trex.services.record import NeighbourRecord
from trex.services.service import Service, ServiceFilter

_REPLY = 2
_BROADCAST = "ff:ff:ff:ff:ff:ff"


class ServiceFilterARP(ServiceFilter):
    """Matches replies by requester, owner and VLANs."""

    def __init__(self) -> None:
        self._services: dict[Any, list[ServiceARP]] = defaultdict(list)

    def add(self, service: ServiceARP) -> None:
        """Adds a service."""
        self._services[(service.src_ip, service.dst_ip, tuple(service.vlan))].append(service)

    def lookup(self, pkt: bytes) -> list[ServiceARP]:
        """Returns the services that a reply belongs to."""
        found = Ether(pkt)
        if ARP not in found or found[ARP].op != _REPLY:
            return []
        answer = found[ARP]
        return self._services.get(
            (answer.pdst, answer.psrc, VLAN.extract_without_priority(found)), []
        )

    def get_bpf_filter(self) -> str:
        """Matches ARP with up to two VLAN tags."""
        return "arp or (vlan and arp) or (vlan and arp)"


class ServiceARP(Service):
    """Sends one request for the owner of `dst_ip`.

    With `trigger_pkt`, sends that packet instead, and waits for a reply that something else has
    triggered.
    """

    def __init__(
        self,
        ctx: ServiceCtx,
        dst_ip: str,
        src_ip: str = "0.0.0.0",
        vlan: Any = None,
        src_mac: str | None = None,
        timeout_sec: float = 3,
        verbose_level: int = Service.ERROR,
        fmt: str | None = None,
        trigger_pkt: Any = None,
    ) -> None:
        super().__init__(verbose_level)
        self.src_ip = src_ip
        self.dst_ip = dst_ip
        self.vlan = VLAN(vlan)
        self.src_mac = src_mac or ctx.get_src_mac()
        self.timeout_sec = timeout_sec
        self.fmt = fmt
        self.trigger_pkt = trigger_pkt
        self.record: ARPRecord | None = None

    def get_filter_type(self) -> type[ServiceFilter]:
        """Returns the filter class of the service."""
        return ServiceFilterARP

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        """Sends the request and waits for the reply."""
        if self.trigger_pkt is not None:
            sides = f"{self.trigger_pkt[IP].src} to {self.trigger_pkt[IP].dst}"
            self.log(f"ARP: sends the given packet of {sides}")
            pipe.async_tx_pkt(self.trigger_pkt)
        else:
            self.log(f"ARP: who has {self.dst_ip}? Tell {self.src_ip}")
            request = ARP(psrc=self.src_ip, pdst=self.dst_ip, hwsrc=self.src_mac)
            packet = Ether(src=self.src_mac, dst=_BROADCAST) / request
            pipe.async_tx_pkt(self.vlan.embed(packet, self.fmt))
        frames = yield pipe.async_wait_for_pkt(time_sec=self.timeout_sec)
        answer = Ether(frames[0]["pkt"]) if frames else None
        self.record = ARPRecord(self.src_ip, self.dst_ip, answer)
        self.log(f"ARP: {self.record}")

    def get_record(self) -> ARPRecord | None:
        """Returns the result, None before the run."""
        return self.record


class ARPRecord(NeighbourRecord):
    """Result of an ARP request: `dst_mac`, None without a reply. True if there was a reply."""

    def __init__(self, src_ip: str = "N/A", dst_ip: str = "N/A", scapy_pkt: Any = None) -> None:
        self.src_ip = src_ip
        self.dst_ip = dst_ip
        self.dst_mac: str | None = None if scapy_pkt is None else scapy_pkt[ARP].hwsrc
