"""DHCP client that acquires and releases an IPv4 lease (RFC 2131)."""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from collections.abc import Generator
from typing import Any

from scapy.layers.dhcp import BOOTP, DHCP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from trex.addresses import is_valid_mac
from trex.errors import TRexArgumentError
from trex.services.loop import Event
from trex.services.pipe import ServicePipe
from trex.services.service import Service, ServiceFilter

_CLIENT_PORT = 68
_SERVER_PORT = 67
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_OFFER = 2
_ACK = 5
_NAK = 6
_TRIES = 4
_REPLY_TIMEOUT_S = 3
# Offset of the transaction ID in the UDP payload (RFC 2131 section 2).
_XID_OFFSET = 4


class ServiceFilterDHCP(ServiceFilter):
    """Matches replies by transaction ID."""

    def __init__(self) -> None:
        self._services: dict[int, list[ServiceDHCP]] = defaultdict(list)

    def add(self, service: ServiceDHCP) -> None:
        """Adds a service."""
        self._services[service.get_xid()].append(service)

    def lookup(self, pkt: bytes) -> list[ServiceDHCP]:
        """Returns the services that a reply belongs to."""
        found = Ether(pkt)
        if UDP not in found or found[UDP].dport != _CLIENT_PORT:
            return []
        message = bytes(found[UDP].payload)[_XID_OFFSET : _XID_OFFSET + 4]
        return self._services.get(struct.unpack("!I", message)[0], []) if len(message) == 4 else []

    def get_bpf_filter(self) -> str:
        """Matches the two ports of DHCP."""
        return "udp port 67 or 68"


class Lease:
    """A lease: client and server addresses, `subnet` (mask), `domain`, `lease` (seconds)."""

    def __init__(self, client_mac: str, acknowledgement: Packet) -> None:
        options = _options(acknowledgement)
        self.server_mac: str = acknowledgement[Ether].src
        self.client_mac = client_mac
        self.server_ip = options.get("server_id", "N/A")
        self.subnet = options.get("subnet_mask", "N/A")
        self.client_ip: str = acknowledgement[BOOTP].yiaddr
        domain = options.get("domain", "N/A")
        self.domain = domain.decode(errors="replace") if isinstance(domain, bytes) else domain
        self.lease = options.get("lease_time", "N/A")

    def __str__(self) -> str:
        return (
            f"ip: {self.client_ip}, server_ip: {self.server_ip}, subnet: {self.subnet}, "
            f"domain: {self.domain}, lease_time: {self.lease}"
        )


class ServiceDHCP(Service):
    """A client with its own Ethernet address.

    The first run acquires a lease, and the `state` becomes `BOUND`. The next run releases it.
    Without a lease, the `state` is `INIT`.
    """

    INIT, SELECTING, REQUESTING, BOUND = range(4)
    DHCPRecord = Lease

    def __init__(self, mac: str, verbose_level: int = Service.ERROR) -> None:
        super().__init__(verbose_level)
        if not isinstance(mac, str) or not is_valid_mac(mac):
            raise TRexArgumentError("mac", mac, "an address such as 00:00:00:00:00:01")
        self.mac = mac
        self.xid = random.getrandbits(32)
        self.state = "INIT"
        self.record: Lease | None = None

    def get_filter_type(self) -> type[ServiceFilter]:
        """Returns the filter class of the service."""
        return ServiceFilterDHCP

    def is_prom_required(self) -> bool:
        """True: replies go to the client's Ethernet address, which is not the port's."""
        return True

    def get_xid(self) -> int:
        """Returns the transaction ID."""
        return self.xid

    def get_mac(self) -> str:
        """Returns the client's Ethernet address."""
        return self.mac

    def get_record(self) -> Lease | None:
        """Returns the lease, None without one."""
        return self.record

    def run(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        """Acquires a lease, or releases the current one."""
        return self._acquire(pipe) if self.record is None else self._release(pipe, self.record)

    def _acquire(self, pipe: ServicePipe) -> Generator[Event, Any, None]:
        for _ in range(_TRIES):
            self.state = "SELECTING"
            self.log(f"DHCP: {self.mac}: looks for servers")
            yield pipe.async_tx_pkt(self._message("discover"))
            offer = yield from self._answer(pipe, _OFFER)
            if offer is None:
                self.log(f"DHCP: {self.mac}: nobody offers an address", Service.ERROR)
                continue
            address, server = offer[BOOTP].yiaddr, _options(offer).get("server_id", "0.0.0.0")
            self.log(f"DHCP: {self.mac}: {server} offers {address}")
            self.state = "REQUESTING"
            options = [("requested_addr", address), ("server_id", server)]
            yield pipe.async_tx_pkt(self._message("request", *options))
            answer = yield from self._answer(pipe, _ACK, _NAK)
            if answer is not None and _options(answer)["message-type"] == _ACK:
                self.log(f"DHCP: {self.mac}: has {answer[BOOTP].yiaddr}")
                self.state = "BOUND"
                self.record = Lease(self.mac, answer)
                return
            failure = "does not answer" if answer is None else "refuses"
            self.log(f"DHCP: {self.mac}: {server} {failure}", Service.ERROR)
        self.state = "INIT"

    def _release(self, pipe: ServicePipe, lease: Lease) -> Generator[Event, Any, None]:
        self.log(f"DHCP: {self.mac}: releases {lease.client_ip}")
        message = self._message("release", ("server_id", lease.server_ip))
        message[Ether].dst = lease.server_mac
        message[IP].src, message[IP].dst = lease.client_ip, lease.server_ip
        message[BOOTP].ciaddr = lease.client_ip
        yield pipe.async_tx_pkt(message)
        self.state = "INIT"
        self.record = None

    def _message(self, kind: str, *options: tuple[str, Any]) -> Packet:
        header = Ether(src=self.mac, dst=_BROADCAST) / IP(src="0.0.0.0", dst="255.255.255.255")
        hardware = bytes.fromhex(self.mac.replace(":", "").replace("-", ""))
        bootp = BOOTP(chaddr=hardware, xid=self.xid)
        words = DHCP(options=[("message-type", kind), *options, "end"])
        return header / UDP(sport=_CLIENT_PORT, dport=_SERVER_PORT) / bootp / words

    def _answer(self, pipe: ServicePipe, *kinds: int) -> Generator[Event, Any, Packet | None]:
        """Waits for the first reply of one of these types; None after the timeout."""
        is_over = pipe.async_wait(_REPLY_TIMEOUT_S)
        while not is_over.is_triggered:
            for one in (yield pipe.async_wait_for_pkt(_REPLY_TIMEOUT_S)):
                packet = Ether(one["pkt"])
                if DHCP in packet and _options(packet).get("message-type") in kinds:
                    return packet
        return None


def _options(packet: Packet) -> dict[str, Any]:
    """Returns the options by name, with the first value of each."""
    return {option[0]: option[1] for option in packet[DHCP].options if isinstance(option, tuple)}
