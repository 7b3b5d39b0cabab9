"""The topology of a client: loads, resolves and prints it, and passes it to the engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trex.addresses import is_valid_ipv4, is_valid_ipv6, is_valid_mac
from trex.arguments import listify
from trex.astf import topo
from trex.astf.topo import ASTFTopology, TopoGW, TopoVIF
from trex.client.hosts import tags_of
from trex.client.port import Port
from trex.errors import TRexError
from trex.services.arp import ServiceARP
from trex.services.context import ServiceCtx, run_services

_REPLY_TIMEOUT_S = 1


class ASTFTopologyManager:
    """Topology of a client.

    Traffic that starts after `resolve` uses its gateways. From then on its virtual interfaces
    answer ARP and pings.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._topology = ASTFTopology()
        #: Whether traffic that starts uses the topology.
        self._is_resolved = False

    from_data = staticmethod(topo.from_data)

    def is_empty(self) -> bool:
        """Returns whether there is no topology."""
        return self._topology.is_empty()

    def load(self, topology: Any, **tunables: Any) -> None:
        """Loads a topology: an `ASTFTopology`, or a file in Python, JSON or YAML.

        `tunables` are arguments of a Python file's `get_topo()`.
        """
        if not self.is_empty():
            raise TRexError("a topology is loaded already; call topo_clear() first")
        loaded = topo.load(topology, tunables)
        loaded.check()
        parts: list[TopoVIF | TopoGW] = [*loaded.vifs, *loaded.gws]
        for part in parts:
            if part.trex_port not in self._client.links:
                raise TRexError(f"the topology's port {part.port_id}: there is no such port")
        for gw, vif in loaded.by_gateway():
            self._check_source(gw, vif)
        if loaded.is_empty():
            raise TRexError("the topology is empty")
        self._topology, self._is_resolved = loaded, False

    def clear(self) -> None:
        """Removes the topology. Traffic that starts later uses the next hops of the ports."""
        if self._is_resolved:
            self._set_hosts(False)
        self._topology, self._is_resolved = ASTFTopology(), False

    def resolve(self, ports: Any = None) -> None:
        """Resolves the MAC addresses of gateways, of some ports or all.

        Traffic that starts after all are resolved uses the topology. Raises if a gateway does not
        answer.
        """
        failed: list[str] = []
        for number in self._numbers(ports):
            failed += self._resolve_gateways(number)
        if failed:
            raise TRexError(f"gateways do not answer: {', '.join(failed[:5])}")
        self._is_resolved = all(gw.dst_mac for gw in self._topology.gws)
        if self._is_resolved:
            self._set_hosts(True)

    def show(self, ports: Any = None) -> None:
        """Prints the topology."""
        if self.is_empty():
            self.info("there is no topology")
            return
        chosen = self._numbers(ports)
        self.info(f"{'interface':<12}{'MAC':<19}{'VLAN':<6}{'IPv4':<17}IPv6")
        for vif in sorted(self._topology.vifs, key=lambda it: (it.trex_port, it.sub_if)):
            if vif.trex_port in chosen:
                addresses = f"{vif.src_ipv4 or '-':<17}{vif.src_ipv6 or '-'}"
                self.info(f"{vif.port_id:<12}{vif.src_mac:<19}{vif.vlan or '-':<6}{addresses}")
        self.info(f"{'interface':<12}{'clients':<33}{'gateway':<19}MAC")
        for gw in self._topology.gws:
            if gw.trex_port in chosen:
                clients = f"{gw.src_start} - {gw.src_end}"
                self.info(f"{gw.port_id:<12}{clients:<33}{gw.dst:<19}{gw.dst_mac or '-'}")

    def save(self, filename: str) -> None:
        """Writes the topology to a new file: Python, JSON or YAML by its suffix."""
        writers = {".py": self.to_code, ".json": lambda: self.to_json(False), ".yaml": self.to_yaml}
        write = next((make for suffix, make in writers.items() if filename.endswith(suffix)), None)
        if write is None:
            raise TRexError(f"topo_save: '{filename}' ends in none of {', '.join(writers)}")
        try:
            with open(filename, "x") as file:
                file.write(write())
        except FileExistsError:
            raise TRexError(f"topo_save: '{filename}' exists already; remove it first") from None
        except OSError as error:
            raise TRexError(f"topo_save: {error}") from error

    def get_merged_data(self, to_server: bool = True) -> dict[str, Any]:
        """Returns the topology as a document."""
        return self._topology.get_data(to_server)

    def to_json(self, to_server: bool = True) -> str:
        """Returns the topology as JSON."""
        return self._topology.to_json(to_server)

    def to_yaml(self) -> str:
        """Returns the topology as YAML."""
        return self._topology.to_yaml()

    def to_code(self) -> str:
        """Returns the topology as Python code."""
        return self._topology.to_code()

    def info(self, msg: str) -> None:
        """Prints a message."""
        print(msg)

    def warn(self, msg: str) -> None:
        """Prints a warning."""
        print(f"warning: {msg}")

    def gateways_of(self, port: Port) -> list[dict[str, Any]]:
        """Returns the gateways of a port in the engine's format."""
        if not self._is_resolved:
            return []
        found = []
        for gw, vif in self._gateways(port.number):
            vlans = port.vlan if vif is None else [vif.vlan] if vif.vlan else []
            found.append(
                {
                    "first": gw.src_start,
                    "last": gw.src_end,
                    "vlan": list(vlans),
                    "source": None if vif is None else vif.src_mac,
                    "destination": gw.dst_mac,
                }
            )
        return found

    def _numbers(self, ports: Any) -> list[int]:
        chosen = sorted(self._client.links) if ports is None else listify(ports)
        for number in chosen:
            if number not in self._client.links:
                raise TRexError(f"there is no port {number}")
        return chosen

    def _gateways(self, number: int) -> Iterable[tuple[TopoGW, TopoVIF | None]]:
        return (it for it in self._topology.by_gateway() if it[0].trex_port == number)

    def _check_source(self, gw: TopoGW, vif: TopoVIF | None) -> None:
        """Raises if there is no source address for the ARP request of a gateway."""
        port = self._client.links[gw.trex_port]
        if is_valid_mac(gw.dst):
            return
        if is_valid_ipv4(gw.dst):
            family, has_address = "IPv4", bool(_arp_source(vif, port))
        else:
            family, has_address = "IPv6", port.has_own_ipv6 if vif is None else bool(vif.src_ipv6)
        if not has_address:
            owner = f"port {port.number}" if vif is None else f"virtual interface {vif.port_id}"
            raise TRexError(f"gateway {gw.dst}: {owner} has no {family} address for its requests")

    def _resolve_gateways(self, number: int) -> list[str]:
        """Resolves the gateways of a port. Returns those that do not answer."""
        port = self._client.links[number]
        requests: dict[tuple[str, int], tuple[ServiceARP, list[TopoGW]]] = {}
        for gw, vif in self._gateways(number):
            if gw.dst_mac:
                continue
            if is_valid_ipv6(gw.dst):
                raise TRexError(f"gateway {gw.dst}: ARP resolves gateways; use an IPv4 address")
            key = (gw.dst, gw.sub_if)
            if key not in requests:
                requests[key] = (self._arp_request(port, gw, vif), [])
            requests[key][1].append(gw)
        if requests:
            run_services(port, [service for service, _ in requests.values()])
        for service, gateways in requests.values():
            record = service.get_record()
            for gw in gateways:
                gw.dst_mac = record.dst_mac if record else None
        return [dst for (dst, _), (service, _) in requests.items() if not service.get_record()]

    def _arp_request(self, port: Port, gw: TopoGW, vif: TopoVIF | None) -> ServiceARP:
        mac = port.source if vif is None else vif.src_mac
        vlans = port.vlan if vif is None else [vif.vlan] if vif.vlan else []
        context = ServiceCtx(self._client, port.number)
        return ServiceARP(
            context, gw.dst, _arp_source(vif, port), vlans, mac, timeout_sec=_REPLY_TIMEOUT_S
        )

    def _set_hosts(self, enabled: bool) -> None:
        """Starts or stops the answers of virtual interfaces for their addresses."""
        for vif in self._topology.vifs:
            port, tags = self._client.links.get(vif.trex_port), tags_of([vif.vlan] * bool(vif.vlan))
            # The port itself can be that host.
            is_port = port is not None and (vif.src_mac, tags) == (port.source, tags_of(port.vlan))
            if port is None or not vif.src_ipv4 or is_port:
                continue
            if enabled:
                port.hosts.add(vif.src_mac, tags, [vif.src_ipv4])
            else:
                port.hosts.remove(vif.src_mac, tags)


def _arp_source(vif: TopoVIF | None, port: Port) -> str:
    """Returns the source address of ARP requests for gateways; empty if there is none."""
    if vif is not None:
        return vif.src_ipv4
    return port.layer.source if port.layer.mode == "ipv4" else ""
