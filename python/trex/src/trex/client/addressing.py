"""Addressing of ports: own addresses, next hops and neighbours."""

from __future__ import annotations

import time
from typing import Any

from trex.addresses import is_valid_ipv4, is_valid_ipv6, is_valid_mac
from trex.arguments import listify, validate_type
from trex.client.port import Layer, Port
from trex.client.session import Session
from trex.client.vlan import VLAN
from trex.errors import TRexArgumentError, TRexError
from trex.services.arp import ServiceARP
from trex.services.context import ServiceCtx, run_services
from trex.services.icmp import ServiceICMP
from trex.services.icmpv6 import ServiceICMPv6, ServiceIPv6Scan
from trex.services.neighbour import ServiceIPv6ND

_PING_SIZES = range(64, 9217)
_REPLY_TIMEOUT_S = 1
_ALL_NODES = "ff02::1"


class Addressing(Session):
    """Addresses of ports.

    A port with an address is a host: it answers ARP, neighbour discovery and pings, also outside
    service mode.
    """

    def set_l2_mode(self, port: int, dst_mac: str) -> None:
        """Sets the destination Ethernet address of a port, for streams without their own."""
        self._require_session()
        if not is_valid_mac(dst_mac):
            raise TRexArgumentError("dst_mac", dst_mac, "an address such as 00:00:00:00:00:01")
        (number,) = self._idle_ports(port)
        chosen = self.links[number]
        chosen.layer, chosen.destination = Layer(), dst_mac
        chosen.update_host()

    def set_l3_mode(
        self, port: int, src_ipv4: str, dst_ipv4: str, vlan: int | list[int] | None = None
    ) -> None:
        """Sets the address of a port and the address of its next hop, and resolves the next hop.

        Both are IPv4 or both IPv6.
        """
        self._require_session()
        mode = "ipv6" if is_valid_ipv6(src_ipv4) else "ipv4"
        is_valid = is_valid_ipv6 if mode == "ipv6" else is_valid_ipv4
        for name, address in (("src_ipv4", src_ipv4), ("dst_ipv4", dst_ipv4)):
            if not is_valid(address):
                family = "IPv6, as src_ipv4 is" if mode == "ipv6" else "IPv4"
                raise TRexArgumentError(name, address, f"an address of {family}")
        (number,) = self._idle_ports(port)
        if vlan is not None:
            self.set_vlan(port, vlan)
        self.links[number].layer = Layer(mode, src_ipv4, dst_ipv4)
        self.links[number].update_host()
        self.resolve(port)

    def conf_ipv6(self, port: int, enabled: bool, src_ipv6: str | None = None) -> None:
        """Sets or removes the IPv6 address of a port.

        Without `src_ipv6`, the port has its link-local address (EUI-64) and addresses from router
        advertisements.
        """
        self._require_session()
        validate_type("enabled", enabled, bool)
        if enabled and src_ipv6 and not is_valid_ipv6(src_ipv6):
            raise TRexArgumentError("src_ipv6", src_ipv6, "an address of IPv6")
        (number,) = self._acquired_ports(port)
        chosen = self.links[number]
        chosen.has_own_ipv6, chosen.own_ipv6 = enabled, (src_ipv6 or "") if enabled else ""
        chosen.update_host()

    def set_vlan(self, ports: Any = None, vlan: int | list[int] | None = None) -> None:
        """Sets the VLAN, or outer and inner VLAN, of a port's ARP requests, answers and pings."""
        self._require_session()
        tags = VLAN(vlan)
        for number in self._idle_ports(ports):
            self.links[number].vlan = list(tags)
            self.links[number].update_host()

    def clear_vlan(self, ports: Any = None) -> None:
        """Removes the VLANs."""
        self.set_vlan(ports, None)

    def resolve(
        self, ports: Any = None, retries: int = 0, verbose: bool = True, vlan: Any = None
    ) -> None:
        """Resolves the next hops of ports by ARP or neighbour discovery.

        Raises `TRexError` if a next hop does not answer.
        """
        self._require_session()
        chosen = self.get_resolvable_ports() if ports is None else self._idle_ports(ports)
        failures = []
        for number in chosen:
            port = self.links[number]
            if port.layer.mode == "ethernet":
                raise TRexError(f"port {number} has no next hop; set one with set_l3_mode()")
            failure = self._resolve(port, port.vlan if vlan is None else vlan, retries)
            if failure is not None:
                failures.append(failure)
        if failures:
            raise TRexError("; ".join(failures))

    arp = resolve

    def ping_ip(
        self,
        src_port: int,
        dst_ip: str,
        pkt_size: int = 64,
        count: int = 5,
        interval_sec: float = 1,
        vlan: Any = None,
        **kw: Any,
    ) -> list[Any]:
        """Pings an address through a port's next hop.

        Returns a result for each ping: `status` (`success`, `timeout`, `unreachable`),
        `formatted_string`, and for a success `src_ip`, `rtt` in milliseconds and `ttl`.

        IPv4 requires a port with `set_l3_mode`. `kw` are arguments of `ServiceICMP` or
        `ServiceICMPv6`.
        """
        self._require_session()
        is_ipv4 = is_valid_ipv4(dst_ip)
        if not is_ipv4 and not is_valid_ipv6(dst_ip):
            raise TRexArgumentError("dst_ip", dst_ip, "an address")
        if pkt_size not in _PING_SIZES:
            raise TRexArgumentError("pkt_size", pkt_size, "64 to 9216")
        validate_type("count", count, int)
        validate_type("interval_sec", interval_sec, (int, float))
        (number,) = self._idle_ports(src_port)
        port = self.links[number]
        if is_ipv4 and (port.layer.mode != "ipv4" or port.layer.resolved is None):
            raise TRexError(f"port {number} has no resolved next hop; set one with set_l3_mode()")
        kw["vlan"] = port.vlan if vlan is None else vlan
        service = ServiceICMP if is_ipv4 else ServiceICMPv6
        ping = service(self.create_service_ctx(number), dst_ip, pkt_size=pkt_size, **kw)
        records = []
        for left in reversed(range(count)):
            began = time.monotonic()
            run_services(port, ping)
            record: Any = ping.get_record()
            records.append(record)
            self._log_event(record["formatted_string"])
            if left:
                time.sleep(max(interval_sec - (time.monotonic() - began), 0))
        return records

    def scan6(
        self, ports: Any = None, timeout: float = 3, verbose: bool = False
    ) -> dict[int, list[dict[str, str]]]:
        """Scans for IPv6 neighbours of ports for `timeout` seconds.

        Returns `type` (`Router`, `Host`), `mac` and `ipv6` of each neighbour.
        """
        self._require_session()
        found = {}
        for number in self._idle_ports(ports):
            scan = ServiceIPv6Scan(self.create_service_ctx(number), _ALL_NODES, timeout)
            run_services(self.links[number], scan)
            found[number] = scan.get_record()
        if verbose:
            for number, neighbours in found.items():
                print(f"Port {number}: {len(neighbours) or 'no'} IPv6 neighbours")
                for one in sorted(neighbours, key=lambda one: (one["type"], one["ipv6"])):
                    print(f"  {one['type']:<8}{one['mac']}  {one['ipv6']}")
        return found

    def create_service_ctx(self, port: int) -> ServiceCtx:
        """Returns a context to run services on a port."""
        self._require_session()
        self._numbers(port)
        return ServiceCtx(self, port)

    def get_resolvable_ports(self) -> list[int]:
        """Returns the ports whose next hop has an IP address."""
        return self._matching_ports(lambda port: port.layer.mode != "ethernet")

    def get_resolved_ports(self) -> list[int]:
        """Returns the ports whose next hop is resolved."""
        return self._matching_ports(lambda port: port.layer.resolved is not None)

    def _set_next_hop(self, port: int, source: str, destination: str, mac: str) -> None:
        """Sets IPv4 addresses like `set_l3_mode`, with a known Ethernet address of the next hop."""
        for name, address in (("src_addr", source), ("dst_addr", destination)):
            if not is_valid_ipv4(address):
                raise TRexArgumentError(name, address, "an address of IPv4")
        if not is_valid_mac(mac):
            raise TRexArgumentError("resolved_mac", mac, "an address such as 00:00:00:00:00:01")
        (number,) = self._idle_ports(port)
        chosen = self.links[number]
        chosen.layer, chosen.destination = Layer("ipv4", source, destination, mac), mac
        chosen.update_host()

    def _resolve(self, port: Port, vlan: Any, retries: int = 0) -> str | None:
        """Resolves the next hop of a port. Returns an error message, or None."""
        layer = port.layer
        layer.resolved = self._resolve_mac(port, vlan, retries)
        if layer.resolved is None:
            how = "ARP" if layer.mode == "ipv4" else "neighbour discovery"
            return f"port {port.number}: no answer for {layer.destination} ({how})"
        port.destination = layer.resolved
        self._log_event(f"port {port.number}: {layer.destination} is {layer.resolved}")
        return None

    def _resolve_mac(self, port: Port, vlan: Any, retries: int) -> str | None:
        """Returns the Ethernet address of a port's next hop; None without an answer."""
        context, layer = ServiceCtx(self, port.number), port.layer
        if layer.mode == "ipv6":
            discovery = ServiceIPv6ND(
                context,
                layer.destination,
                layer.source,
                retries=retries,
                vlan=listify(vlan),
                timeout=_REPLY_TIMEOUT_S,
            )
            run_services(port, discovery)
            return discovery.get_record().dst_mac
        for _ in range(retries + 1):
            request = ServiceARP(
                context,
                layer.destination,
                layer.source,
                listify(vlan),
                timeout_sec=_REPLY_TIMEOUT_S,
            )
            run_services(port, request)
            record = request.get_record()
            if record:
                return record.dst_mac
        return None
