"""Commands of clients of a server that both modes share."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

from trex.arguments import listify, validate_type
from trex.client import captures
from trex.client.port import Port
from trex.client.profile_id import DEFAULT_PROFILE_ID
from trex.client.rc import RC, RC_OK
from trex.errors import TRexArgumentError, TRexError, TRexTypeError, TRexUnsupportedError
from trex.remote.connection import Connection, Request
from trex.remote.port import RemotePort
from trex.remote.selection import host_and_port

# Bytes on the wire beside a frame with FCS.
_WIRE_OVERHEAD = 20
_PORT_COUNTERS = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")
_PREFIX = "m_"
# Global counters, without their prefix.
_GLOBAL = (
    *("active_flows", "active_sockets", "bw_per_core", "cpu_util", "cpu_util_raw", "open_flows"),
    *("platform_factor", "rx_bps", "rx_core_pps", "rx_cpu_util", "rx_drop_bps", "rx_pps"),
    *("socket_util", "tx_expected_bps", "tx_expected_cps", "tx_expected_pps", "tx_pps", "tx_bps"),
    *("tx_cps", "total_servers", "total_clients", "total_alloc_error"),
)
# Packets of an answer when a capture is fetched.
_FETCH_MAX = 100
# Names of the events of TRex that are worth a message.
_EVENTS = {
    0: "Port {port_id} has started",
    1: "Port {port_id} has stopped",
    2: "Port {port_id} has paused",
    3: "Port {port_id} has resumed",
    4: "Port {port_id} job done",
    7: "Port {port_id} has failed",
    10: "Profile {port_id}.{profile_id} has started",
    11: "Profile {port_id}.{profile_id} has stopped",
    12: "Profile {port_id}.{profile_id} has paused",
    13: "Profile {port_id}.{profile_id} has resumed",
    14: "Profile {port_id}.{profile_id} job done",
    100: "the server ends",
}
_WARNINGS = (7, 100)


def unsupported(name: str) -> Callable[..., Any]:
    """Returns a method that raises `TRexUnsupportedError`."""

    def method(self: Any, *arguments: Any, **kwargs: Any) -> Any:
        raise TRexUnsupportedError(
            f"{name}() is not possible with a server: use the ports of this machine, or TRex's own "
            "client"
        )

    method.__name__ = name
    method.__doc__ = "Raises `TRexUnsupportedError`."
    return method


class RemoteCommands:
    """Methods that ask a server; they replace those of a client with the engine of this process."""

    links: dict[int, Port]
    get_mode: Any
    _logger: Any
    _events: Any
    _username: str
    _is_connected: bool
    _connect_time: float
    _connection: dict[str, Any]
    _timeouts: dict[str, Any]
    _numbers: Any
    _acquired_ports: Any
    _idle_ports: Any
    _require_session: Any
    _log_event: Any
    _remote: Connection | None = None
    _session_id = 0
    _port_base: dict[int, dict[str, float]]

    # The session.

    def connect(self) -> None:
        """Connects to the server. Raises `TRexError` if it does not answer or has another mode."""
        if self._is_connected:
            self.disconnect()
        host, port = host_and_port(self._connection["server"], self._connection["sync_port"])
        remote = Connection(host, port, self._timeouts["sync_timeout"])
        try:
            remote.open(self.get_mode())
            system = remote.call("get_system_info")
            links = {
                int(found["index"]): RemotePort(int(found["index"]), found, remote)
                for found in system["ports"]
            }
        except BaseException:
            remote.close()
            raise
        self._remote, self._session_id = remote, random.randrange(1, 1 << 32)
        self.links.clear()
        self.links.update(links)
        self._port_base = {}
        self._is_connected = True
        self._connect_time = time.monotonic()
        self._events.clear_events()
        # The server queues events from the first question on.
        remote.call("get_async_events", {"session_id": self._session_id})
        self._log_event(f"connected to {remote.address}")

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Ends the session. Stops the traffic of acquired ports, unless `stop_traffic` is false."""
        validate_type("stop_traffic", stop_traffic, bool)
        validate_type("release_ports", release_ports, bool)
        if not self._is_connected or self._remote is None:
            return
        try:
            if stop_traffic:
                self._stop_all()
            if release_ports and self._acquired():
                self._release_ports(None)
        except TRexError as error:
            # The server may be gone.
            self._log_event(f"disconnect: {error}", "warning")
        self._is_connected = False
        self._remote.close()
        self._remote = None
        self.links.clear()
        self._log_event("disconnected")

    def _stop_all(self) -> None:
        """Stops the traffic of acquired ports."""
        raise NotImplementedError("_stop_all")

    def _call(self, method: str, **parameters: Any) -> Any:
        self._require_session()
        assert self._remote is not None
        return self._remote.call(method, parameters)

    def _call_all(self, requests: Iterable[Request]) -> list[Any]:
        self._require_session()
        assert self._remote is not None
        return self._remote.call_all(requests)

    def _port(self, number: int) -> RemotePort:
        port = self.links[number]
        assert isinstance(port, RemotePort)
        return port

    def _acquired(self) -> list[RemotePort]:
        return [self._port(number) for number, port in self.links.items() if port.is_acquired]

    def ping_rpc_server(self) -> dict[str, float]:
        """Returns the server's time in seconds."""
        found: dict[str, float] = self._call("ping")
        return found

    def probe_server(self) -> dict[str, Any]:
        """Returns the version of the server."""
        if self._is_connected:
            return self._version()
        host, port = host_and_port(self._connection["server"], self._connection["sync_port"])
        remote = Connection(host, port, self._timeouts["sync_timeout"])
        try:
            found: dict[str, Any] = remote.call("get_version")
        finally:
            remote.close()
        return found

    def server_shutdown(self, force: bool = False) -> None:
        """Asks the server to end."""
        self._call("shutdown", force=force, user=self._username)

    def get_server_supported_cmds(self) -> list[str]:
        """Returns the commands of the server."""
        found: list[str] = self._call("get_supported_cmds")
        return found

    def get_server_system_info(self) -> dict[str, Any]:
        """Returns properties of the server's machine and its ports."""
        found: dict[str, Any] = self._call("get_system_info")
        return found

    def _version(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("get_version")
        return found

    def get_global_cfg(self) -> dict[str, Any]:
        """Returns the parameters of the server."""
        found: dict[str, Any] = self._call("get_global_cfg")
        return found

    def set_global_cfg(self, params: dict[str, Any]) -> None:
        """Sets parameters of the server."""
        validate_type("params", params, dict)
        self._call("set_global_cfg", **params)

    # Owners and attributes of ports.

    def set_port_attr(
        self,
        ports: Any = None,
        promiscuous: bool | None = None,
        link_up: bool | None = None,
        led_on: bool | None = None,
        flow_ctrl: int | None = None,
        multicast: bool | None = None,
        vxlan_fs: list[int] | None = None,
    ) -> None:
        """Sets attributes of ports."""
        self._require_session()
        attributes: dict[str, Any] = {}
        for name, key, value in (
            ("promiscuous", "enabled", promiscuous),
            ("multicast", "enabled", multicast),
            ("link_status", "up", link_up),
            ("led_status", "on", led_on),
            ("flow_ctrl_mode", "mode", flow_ctrl),
        ):
            if value is not None:
                attributes[name] = {key: value}
        if vxlan_fs:
            attributes["vxlan_fs"] = vxlan_fs
        if not attributes:
            raise TRexError("set_port_attr: no attribute is given")
        for number in self._acquired_ports(ports):
            self._change(number, "set_port_attr", attr=attributes)

    def _change(self, number: int, method: str, **parameters: Any) -> Any:
        """Executes a command that changes the state of a port."""
        port = self._port(number)
        found = port.call(method, **parameters)
        port.forget()
        return found

    def set_l2_mode(self, port: int, dst_mac: str) -> None:
        """Sets the destination Ethernet address of a port."""
        self._require_session()
        (number,) = self._idle_ports(port)
        self._change(number, "set_l2", dst_mac=dst_mac, block=False)

    def conf_ipv6(self, port: int, enabled: bool, src_ipv6: str | None = None) -> None:
        """Sets or removes the IPv6 address of a port."""
        self._require_session()
        validate_type("enabled", enabled, bool)
        (number,) = self._acquired_ports(port)
        self._change(number, "conf_ipv6", enabled=enabled, src_ipv6=src_ipv6 or "", block=False)

    def set_vlan(self, ports: Any = None, vlan: Any = None) -> None:
        """Sets the VLAN, or outer and inner VLAN, of a port's ARP requests, answers and pings."""
        self._require_session()
        tags = [] if vlan is None else [int(tag) for tag in listify(vlan)]
        for number in self._idle_ports(ports):
            self._change(number, "set_vlan", vlan=tags, block=False)

    def set_l3_mode(self, port: int, src_ipv4: str, dst_ipv4: str, vlan: Any = None) -> None:
        """Sets the IPv4 address of a port and of its next hop, and resolves the next hop."""
        self._require_session()
        (number,) = self._idle_ports(port)
        if vlan is not None:
            self.set_vlan(number, vlan)
        self._change(number, "set_l3", src_addr=src_ipv4, dst_addr=dst_ipv4, block=False)
        self._port(number).refresh()
        self.resolve(number)

    resolve: Any

    def _resolve(self, port: Port, vlan: Any, retries: int = 0) -> str | None:
        """Resolves the next hop of a port. Returns an error message, or None."""
        layer = port.layer
        mac = self._resolve_mac(port, vlan, retries)
        if mac is None:
            return f"port {port.number}: no answer for {layer.destination} (ARP)"
        addresses = {"src_addr": layer.source, "dst_addr": layer.destination}
        self._change(port.number, "set_l3", **addresses, resolved_mac=mac, block=False)
        self._port(port.number).refresh()
        self._log_event(f"port {port.number}: {layer.destination} is {mac}")
        return None

    _resolve_mac: Any

    def _set_next_hop(self, port: int, source: str, destination: str, mac: str) -> None:
        """Sets IPv4 addresses with a known Ethernet address of the next hop."""
        (number,) = self._idle_ports(port)
        addresses = {"src_addr": source, "dst_addr": destination, "resolved_mac": mac}
        self._change(number, "set_l3", **addresses, block=False)

    # Captures and packets.

    def start_capture(
        self,
        tx_ports: Any = None,
        rx_ports: Any = None,
        limit: int = 1000,
        mode: str = "fixed",
        bpf_filter: str = "",
        endpoint: str = "",
        snaplen: int = 0,
    ) -> dict[str, Any]:
        """Captures frames that ports receive or send. Returns the ID and the start time."""
        self._require_session()
        rx, tx = (self._acquired_ports([] if it is None else it) for it in (rx_ports, tx_ports))
        if not rx and not tx:
            raise TRexError("start_capture: expected at least one port in tx_ports or rx_ports")
        self._check_service({*rx, *tx})
        parameters = {"limit": limit, "mode": mode, "tx": tx, "rx": rx, "filter": bpf_filter}
        if endpoint:
            parameters["endpoint"] = endpoint
        found = self._call("capture", command="start", snaplen=snaplen, **parameters)
        return {"id": found["capture_id"], "ts": found["start_ts"]}

    def _check_service(self, numbers: Iterable[int]) -> None:
        """Raises if a port is not in service mode, in the mode of streams."""
        for number in sorted(numbers):
            if self.get_mode() == "STL" and not self._port(number).is_service:
                raise TRexError(f"port {number} is not in service mode: set_service_mode() first")

    def _fetched(self, capture_id: int, count: int, snaplen: int = 0) -> list[dict[str, Any]]:
        """Removes and returns the oldest frames of a capture."""
        frames: list[dict[str, Any]] = []
        while len(frames) < count:
            limit = min(_FETCH_MAX, count - len(frames))
            parameters = {"capture_id": capture_id, "pkt_limit": limit, "snaplen": snaplen}
            found = self._call("capture", command="fetch", **parameters)
            for packet in found["pkts"]:
                packet["binary"] = base64.b64decode(packet["binary"])
                frames.append(packet)
            if not found["pending"] or not found["pkts"]:
                break
        return frames

    def stop_capture(self, capture_id: int, output: Any = None, endpoint_cb: Any = None) -> None:
        """Ends a capture and writes its frames to a list or a file."""
        self._require_session()
        captures.check_output(output)
        found = self._call("capture", command="stop", capture_id=capture_id)
        if output is not None:
            captures.write(self._fetched(capture_id, found["pkt_count"]), output)
        self._call("capture", command="remove", capture_id=capture_id)
        if found.get("endpoint") and endpoint_cb is not None:
            endpoint_cb(found["endpoint"])

    def fetch_capture_packets(
        self,
        capture_id: int,
        output: Any,
        pkt_count: int = 1000,
        fetch_limit: int = 50,
        snaplen: int = 0,
    ) -> None:
        """Removes the oldest frames of a running capture, at most `pkt_count`."""
        captures.check_output(output)
        captures.write(self._fetched(capture_id, pkt_count, snaplen), output)

    def get_capture_status(self) -> dict[int, dict[str, Any]]:
        """Returns the status of the captures by ID."""
        return {found["id"]: found for found in self._call("capture", command="status")}

    def remove_all_captures(self) -> None:
        """Ends all captures and discards their frames."""
        for number in self.get_capture_status():
            for command in ("stop", "remove"):
                self._call("capture", command=command, capture_id=number)

    def push_packets(
        self, pkts: Any, ports: Any = None, force: bool = False, ipg_usec: float = 0
    ) -> RC:
        """Sends packets one after the other: bytes, scapy packets or `PacketBuffer`."""
        self._require_session()
        packets = [_pushed(packet) for packet in listify(pkts)]
        if not packets:
            raise TRexArgumentError("pkts", pkts, "at least one packet")
        numbers = self._acquired_ports(ports)
        if not force:
            self._idle_ports(numbers)
        for number in numbers:
            self._port(number).call("push_pkts", pkts=packets, ipg_usec=round(ipg_usec))
        return RC_OK()

    def set_rx_queue(self, ports: Any = None, size: int = 1000) -> None:
        """Keeps the last `size` received frames of each port in service mode on the server."""
        for number in self._acquired_ports(ports):
            self._change(number, "set_rx_feature", type="queue", enabled=True, size=size)

    def remove_rx_queue(self, ports: Any = None) -> None:
        """Stops keeping frames."""
        for number in self._acquired_ports(ports):
            self._change(number, "set_rx_feature", type="queue", enabled=False)

    def start_capture_port(self, port: int, endpoint: str, bpf_filter: str | None = None) -> None:
        """Connects a port in service mode to a ZeroMQ PAIR socket, which the server can reach."""
        (number,) = self._acquired_ports(port)
        self._check_service([number])
        filtered = {} if bpf_filter is None else {"bpf_filter": bpf_filter}
        self._change(number, "start_capture_port", endpoint=endpoint, **filtered)

    def stop_capture_port(self, port: int) -> None:
        """Disconnects the socket, if there is one."""
        (number,) = self._acquired_ports(port)
        self._change(number, "stop_capture_port")

    def set_capture_port_bpf_filter(self, port: int, bpf_filter: str | None) -> None:
        """Sets the filter of frames to the socket. None matches all."""
        (number,) = self._acquired_ports(port)
        self._change(number, "set_capture_port_bpf", bpf_filter=bpf_filter or "")

    # Counters.

    def _port_stats(self, numbers: Iterable[int]) -> dict[Any, Any]:
        """Returns the counters of ports since they were cleared, their sum and global counters."""
        numbers = list(numbers)
        requests = [("get_port_stats", {"port_id": number}) for number in numbers]
        *ports, whole = self._call_all([*requests, ("get_global_stats", {})])
        stats: dict[Any, Any] = {}
        for number, found in zip(numbers, ports):
            base = self._port_base.get(number, {})
            counters = {name: found[name] - base.get(name, 0) for name in _PORT_COUNTERS}
            speed = self.links[number].speed_bps
            for direction in ("tx", "rx"):
                pps, bps = found[f"m_total_{direction}_pps"], found[f"m_total_{direction}_bps"]
                bps_l1 = bps + pps * _WIRE_OVERHEAD * 8
                counters[f"{direction}_pps"], counters[f"{direction}_bps"] = pps, bps
                counters[f"{direction}_bps_L1"] = bps_l1
                counters[f"{direction}_util"] = 100 * bps_l1 / speed if speed else 0.0
            stats[number] = counters
        total: dict[str, float] = {}
        for counters in stats.values():
            for name, value in counters.items():
                total[name] = total.get(name, 0) + value
        stats["total"] = total
        stats["global"] = {name: whole.get(_PREFIX + name) for name in _GLOBAL}
        stats["global"]["queue_full"] = whole.get("m_total_queue_full", 0)
        return stats

    def _clear_ports(self, numbers: Iterable[int]) -> None:
        numbers = list(numbers)
        found = self._call_all([("get_port_stats", {"port_id": number}) for number in numbers])
        for number, counters in zip(numbers, found):
            self._port_base[number] = {name: counters[name] for name in _PORT_COUNTERS}

    def get_xstats(self, port_id: int) -> dict[str, int]:
        """Returns the counters of a port's interface."""
        (number,) = self._numbers(port_id)
        names, found = self._call_all(
            [
                ("get_port_xstats_names", {"port_id": number}),
                ("get_port_xstats_values", {"port_id": number}),
            ]
        )
        return dict(zip(names["xstats_names"], found["xstats_values"]))

    def get_util_stats(self) -> dict[str, Any]:
        """Returns the CPU load of the server."""
        found: dict[str, Any] = self._call("get_utilization")
        return found

    # Events.

    def _record_results(self) -> None:
        """Reads the events of the server."""
        if not self._is_connected:
            return
        found = self._call("get_async_events", session_id=self._session_id)
        for event in found["data"]:
            kind, data = event["type"], event["data"]
            if kind == 5 and data["session_id"] != self._session_id:
                self._lose(data["port_id"], data["who"])
            if kind in _EVENTS:
                data = {"profile_id": DEFAULT_PROFILE_ID, **data}
                message = _EVENTS[kind].format(**data)
                self._log_event(message, "warning" if kind in _WARNINGS else "info")

    def _lose(self, number: int, user: str) -> None:
        port = self.links.get(number)
        if isinstance(port, RemotePort) and port.is_acquired:
            port.is_acquired, port.handler = False, ""
            self._log_event(f"port {number} was taken by {user!r}", "warning")

    def _release_ports(self, ports: Any) -> None:
        raise NotImplementedError("_release_ports")


def _pushed(packet: Any) -> dict[str, Any]:
    """Returns a packet in the form of the server. Addresses that it does not set are the port's."""
    from scapy.layers.l2 import Ether

    from trex.client.packet_buffer import PacketBuffer

    if isinstance(packet, Ether):
        port_src, port_dst = "src" not in packet.fields, "dst" not in packet.fields
    elif isinstance(packet, PacketBuffer):
        port_src, port_dst, packet = packet.port_src, packet.port_dst, packet.buffer
    elif isinstance(packet, (bytes, bytearray)):
        port_src = port_dst = True
    else:
        raise TRexTypeError("tx_pkt", type(packet), (Ether, bytes, PacketBuffer))
    return {
        "binary": base64.b64encode(bytes(packet)).decode(),
        "use_port_dst_mac": port_dst,
        "use_port_src_mac": port_src,
    }
