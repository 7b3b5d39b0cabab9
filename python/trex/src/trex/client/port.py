"""A port of a client: its interface, streams and state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from trex.addresses import compress_ipv6, generate_ipv6
from trex.client.capture_port import CapturePort
from trex.client.configuration import PortConfiguration
from trex.client.hosts import Hosts, Tags, tags_of
from trex.client.nodes import Nodes
from trex.client.packet_socket import PacketSocket
from trex.client.profile_id import DEFAULT_PROFILE_ID
from trex.client.rx_queue import RxQueue
from trex.client.transmission import StreamParameters, Transmission, native
from trex.errors import TRexError
from trex.stl.streams import STLStream

# Line speed for percentages on interfaces that do not report theirs.
_SPEED_BPS = 10_000_000_000
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_NO_ADDRESS = "00:00:00:00:00:00"
# Receive statistics under TRex's names, and the maximum number of packet groups.
_RX_CAPABILITIES = ("flow_stats", "latency", "rx_bytes", "tpg")
_FLOWS_MAX = 1023
_MODES = {"ethernet": "Ethernet", "ipv4": "IPv4", "ipv6": "IPv6"}


class Run(Protocol):
    """Interface of a stateful profile that uses a port."""

    #: Whether captures see the frames that it sends.
    is_visible: bool

    def is_done(self) -> bool:
        """Returns whether it has ended."""

    def stop(self) -> None:
        """Stops it."""

    def wait(self) -> bool:
        """Waits for a while. Returns whether it has ended."""

    def sent(self, number: int) -> tuple[int, int, int]:
        """Returns frames sent by a port, their bytes without FCS, and failed frames."""


class Latency(Protocol):
    """Interface of latency traffic on a port."""

    def sent(self) -> tuple[int, int, int]:
        """Returns frames sent, their bytes without FCS, and failed frames."""


class Source(Protocol):
    """Source and sink of single frames: a packet socket, or a capture of a server."""

    def __enter__(self) -> Source: ...

    def __exit__(self, *exception: object) -> None: ...

    def fileno(self) -> int:
        """Returns a file descriptor that is readable when frames have arrived."""

    def filter(self, expression: str) -> None:
        """Sets a tcpdump expression."""

    def enable_promiscuous(self) -> None:
        """Receives frames for other addresses too."""

    def enable_all_multicast(self) -> None:
        """Receives frames for all groups too."""

    def send(self, frame: bytes) -> None:
        """Sends a frame."""

    def received(self) -> Iterator[bytes]:
        """Yields the frames that have arrived."""


class Profile:
    """Streams of a port that are started and stopped together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams: dict[int, STLStream] = {}
        self.transmission: Transmission | None = None

    def display_name(self, port: int) -> str:
        """Returns the name for messages."""
        return f"port {port}" if self.name == DEFAULT_PROFILE_ID else f"profile {port}.{self.name}"

    @property
    def is_active(self) -> bool:
        """Whether it is sending or paused."""
        return self.transmission is not None and not self.transmission.is_done()

    @property
    def is_visible(self) -> bool:
        """Whether captures see the frames that it sends."""
        return self.transmission is not None and self.transmission.is_visible

    @property
    def is_paused(self) -> bool:
        """Whether it is paused."""
        return self.is_active and self.transmission is not None and self.transmission.is_paused

    @property
    def state(self) -> str:
        """TRex's name of the state."""
        if self.is_paused:
            return "PAUSE"
        if self.is_active:
            return "TRANSMITTING"
        return "STREAMS" if self.streams else "IDLE"


@dataclass
class Layer:
    """How a port's next hop is set: by its Ethernet address (`ethernet`), or by IP address."""

    mode: str = "ethernet"
    source: str = ""
    destination: str = ""
    #: Ethernet address of the next hop, once resolved.
    resolved: str | None = None


class Port:
    """A port of a client."""

    def __init__(self, number: int, configuration: PortConfiguration, speed: str | None) -> None:
        self.number = number
        self.interface = configuration.interface
        self.is_acquired = False
        #: Lock against other processes, while the port is acquired.
        self.lease: Any = None
        self.is_service = False
        self.service_filtered = False
        #: Sockets that keep the interface in promiscuous or multicast mode, by mode.
        self.mode_sockets: dict[str, PacketSocket] = {}
        self.layer = Layer()
        if configuration.address is not None and configuration.gateway is not None:
            self.layer = Layer("ipv4", configuration.address, configuration.gateway)
        #: Whether it has an IPv6 address beside its layer's, and the address; empty for link-local.
        self.has_own_ipv6 = False
        self.own_ipv6 = ""
        self.vlan = list(configuration.vlan)
        self.profiles: dict[str, Profile] = {}
        #: Last run of each stateful profile on this port, by its ID.
        self.stateful: dict[str, Run] = {}
        #: Current or last latency traffic of the port.
        self.latency: Latency | None = None
        self._next_id = 1
        self._configuration = configuration
        self._speed = speed
        #: Frames sent, bytes and failed frames of finished transmissions.
        self._finished_sent = (0, 0, 0)
        #: Received bytes that the kernel did not count.
        self.uncounted_bytes = 0
        #: Kernel counters before traffic to this port started, and engine counters since then.
        self._kernel_base: dict[str, int] | None = None
        self._engine_received = (0, 0)
        self.properties = self.read_properties()
        self.hosts = Hosts(self.interface, self.properties["mac"] or _NO_ADDRESS)
        self._host_tags: Tags | None = None
        self.nodes = Nodes(number, self.hosts)
        self.rx_queue: RxQueue | None = None
        self.capture_port: CapturePort | None = None
        self.destination: str | None = configuration.destination

    def read_properties(self) -> dict[str, Any]:
        """Returns the current properties of the interface. Raises `TRexError` if it is gone."""
        # First, because its error explains how to install the package.
        engine = native()
        from wirestorm.errors import WirestormError

        try:
            properties: dict[str, Any] = engine.interface(self.interface)
        except WirestormError as error:
            raise TRexError(f"port {self.number}: {error}") from error
        return properties

    @property
    def speed_bps(self) -> float:
        """Line speed in bits per second."""
        if self._speed is not None:
            scales = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
            number, scale = self._speed, 1.0
            if number[-1:] in scales:
                number, scale = number[:-1], scales[number[-1]]
            try:
                return float(number) * scale
            except ValueError:
                raise TRexError(f"speed {self._speed!r}: expected a speed such as 10G") from None
        return float(self.properties["speed_bps"] or _SPEED_BPS)

    @property
    def source(self) -> str:
        """Source Ethernet address of its frames."""
        return self._configuration.source or self.properties["mac"] or _NO_ADDRESS

    @property
    def source_ipv6(self) -> str:
        """IPv6 source address of its solicitations and pings."""
        own = self.own_ipv6 or (self.layer.source if self.layer.mode == "ipv6" else "")
        return compress_ipv6(own or generate_ipv6(self.source))

    def packet_source(self) -> Source:
        """Returns a source and sink of single frames."""
        return PacketSocket(self.interface)

    def update_host(self) -> None:
        """Updates the answers to the current addresses."""
        tags = tags_of(self.vlan)
        addresses = [] if self.layer.mode == "ethernet" else [self.layer.source]
        if self.has_own_ipv6:
            # A host with another address also has a link-local address.
            addresses += [generate_ipv6(self.source), *filter(None, [self.own_ipv6])]
        before, self._host_tags = self._host_tags, tags if addresses else None
        if addresses:
            solicits_routers = self.has_own_ipv6 and not self.own_ipv6
            self.hosts.add(self.source, tags, addresses, solicits_routers)
        if before is not None and before != self._host_tags:
            self.hosts.remove(self.source, before)

    def end_sockets(self) -> None:
        """Stops forwarding frames to queues and sockets."""
        if self.rx_queue is not None:
            self.rx_queue.stop()
        if self.capture_port is not None:
            self.capture_port.stop()
        self.rx_queue = self.capture_port = None

    def close(self) -> None:
        """Stops all answers, receivers and forwarders."""
        self.end_sockets()
        self.nodes.remove_all()
        self.hosts.close()
        while self.mode_sockets:
            self.mode_sockets.popitem()[1].close()

    def get_layer_cfg(self) -> dict[str, Any]:
        """Returns the addresses under TRex's names: `ether`, `ipv4` and `ipv6`."""
        is_known = self.destination is not None
        ipv4: dict[str, Any] = {"state": "none"}
        if self.layer.mode == "ipv4":
            state = "unresolved" if self.layer.resolved is None else "resolved"
            ipv4 = {"state": state, "src": self.layer.source, "dst": self.layer.destination}
        return {
            "ether": {
                "src": self.source,
                "dst": self.destination or "unset",
                "state": "configured" if is_known else "unconfigured",
            },
            "ipv4": ipv4,
            "ipv6": {"enabled": self.has_own_ipv6, "src": self.own_ipv6},
        }

    def is_prom_enabled(self) -> bool:
        """Returns whether promiscuous mode is on."""
        return "promiscuous" in self.mode_sockets

    def is_mult_enabled(self) -> bool:
        """Returns whether multicast mode is on."""
        return "multicast" in self.mode_sockets

    def is_resolved(self) -> bool:
        """Returns whether the Ethernet address of the next hop is known."""
        if self.layer.mode == "ethernet":
            return self.destination is not None
        return self.layer.resolved is not None

    def stream_parameters(self) -> StreamParameters:
        """Returns the parameters to convert its streams."""
        return StreamParameters(
            f"{self.speed_bps:.0f}", self.source, self.destination or _BROADCAST
        )

    def profile(self, name: str) -> Profile:
        """Returns the profile with this name, and creates it if necessary."""
        return self.profiles.setdefault(name, Profile(name))

    @property
    def streams(self) -> dict[int, STLStream]:
        """Streams of all profiles by ID."""
        return {
            number: stream
            for profile in self.profiles.values()
            for number, stream in profile.streams.items()
        }

    @property
    def active(self) -> list[Profile]:
        """Active profiles."""
        return [it for it in self.profiles.values() if it.is_active]

    @property
    def is_active(self) -> bool:
        """Whether it is sending or paused."""
        return bool(self.active) or any(not run.is_done() for run in self.stateful.values())

    @property
    def is_paused(self) -> bool:
        """Whether all its traffic is paused."""
        active = self.active
        return bool(active) and all(profile.is_paused for profile in active)

    @property
    def state(self) -> str:
        """TRex's name of the state."""
        if self.is_active:
            return "PAUSE" if self.is_paused else "TRANSMITTING"
        return "STREAMS" if self.streams else "IDLE"

    def add(self, profile: str, stream: STLStream) -> int:
        """Adds a stream. Returns its ID."""
        number = stream.get_id()
        if number is None:
            number = self._next_id
            while self._has(number):
                number += 1
        elif self._has(number):
            raise TRexError(f"port {self.number} already has a stream {number}")
        self._next_id = max(self._next_id, number + 1)
        self.profile(profile).streams[number] = stream
        return number

    def _has(self, stream: int) -> bool:
        return any(stream in profile.streams for profile in self.profiles.values())

    def begin(self, profile: Profile, transmission: Transmission) -> None:
        """Marks a profile as started."""
        self.drop_transmission(profile)
        profile.transmission = transmission

    def begin_stateful(self, pid: str, run: Run, kernel_counters: dict[str, int]) -> None:
        """Marks a stateful profile as started.

        `kernel_counters` are the counters from before the start.
        """
        if pid in self.stateful:
            self._add_sent(self.stateful[pid].sent(self.number))
        self.stateful[pid] = run
        self._kernel_base, self._engine_received = kernel_counters, (0, 0)

    def begin_latency(self, latency: Latency) -> None:
        """Marks latency traffic as started."""
        if self.latency is not None:
            self._add_sent(self.latency.sent())
        self.latency = latency

    def drop_transmission(self, profile: Profile) -> None:
        """Removes a profile's last transmission and keeps its sent counters."""
        if profile.transmission is not None:
            self._add_sent(profile.transmission.sent())
            profile.transmission = None

    def _add_sent(self, sent: tuple[int, int, int]) -> None:
        first, second, third = (a + b for a, b in zip(self._finished_sent, sent))
        self._finished_sent = (first, second, third)

    def sent(self) -> tuple[int, int, int]:
        """Returns frames sent, their bytes without FCS, and failed frames."""
        sums = list(self._finished_sent)
        counts = [transmission.sent() for transmission in self.transmissions()]
        counts += [run.sent(self.number) for run in self.stateful.values()]
        counts += [] if self.latency is None else [self.latency.sent()]
        for sent in counts:
            for index, value in enumerate(sent):
                sums[index] += value
        return sums[0], sums[1], sums[2]

    def begin_receiving(self) -> None:
        """Records the kernel's counters before traffic to this port starts."""
        self._kernel_base = self.read_properties()["counters"]
        self._engine_received = (0, 0)

    def record_received(self, packets: int, size: int) -> None:
        """Records the engine's counters of traffic to this port."""
        self._engine_received = max(self._engine_received, (packets, size))

    def end_receiving(self) -> None:
        """Adds the bytes that the kernel did not count.

        At a veth, the kernel counts frames with or without their Ethernet headers, depending on
        their path.
        """
        before, (kernel_counters, size) = self._kernel_base, self._engine_received
        if before is None or not kernel_counters:
            return
        try:
            now = self.read_properties()["counters"]
        except TRexError:
            # The interface is gone, and its kernel counters with it.
            self._kernel_base = None
            return
        packets = now["rx_packets"] - before["rx_packets"]
        expected = round(packets * size / kernel_counters)
        self.uncounted_bytes += expected - (now["rx_bytes"] - before["rx_bytes"])
        self._kernel_base = None

    def transmissions(self) -> list[Transmission]:
        """Returns the current or last transmission of each profile."""
        profiles = self.profiles.values()
        return [it.transmission for it in profiles if it.transmission is not None]

    def end_traffic(self) -> None:
        """Stops all traffic and waits for its end, including other ports of stateful profiles."""
        for transmission in self.transmissions():
            transmission.stop()
        for run in self.stateful.values():
            run.stop()
            while not run.wait():
                pass

    def info(self) -> dict[str, Any]:
        """Returns the properties of a port in TRex's format."""
        properties = self.properties = self.read_properties()
        return {
            "index": self.number,
            "driver": properties["driver"] or "",
            "description": self.interface,
            "speed": self.speed_bps / 1e9,
            "supp_speeds": [],
            "hw_mac": properties["mac"],
            "src_mac": self.source,
            "dest": self.layer.destination or self.destination or "unset",
            "src_ipv4": self.layer.source if self.layer.mode == "ipv4" else "-",
            "layer_mode": _MODES[self.layer.mode],
            "arp": self._resolution(),
            "vlan": self.vlan or "-",
            "ipv6": (self.own_ipv6 or "auto") if self.has_own_ipv6 else "off",
            "pci_addr": properties["bus"] or "",
            "numa": -1,
            "is_virtual": "yes" if properties["is_virtual"] else "no",
            "is_fc_supported": "no",
            "is_led_supported": "no",
            "is_link_supported": "no",
            "is_prom_supported": "yes",
            "is_vxlan_supported": "no",
            "is_ieee1588_supported": "no",
            "fc_supported": "no",
            "led_change_supported": "no",
            "link_change_supported": "no",
            "prom_supported": "yes",
            "stack": "legacy",
            # A thread for each profile sends, on any core.
            "cores": [],
            "rx": {"caps": list(_RX_CAPABILITIES), "counters": _FLOWS_MAX},
            "link": "UP" if properties["has_carrier"] else "DOWN",
            "prom": "on"
            if "promiscuous" in self.mode_sockets or properties["is_promiscuous"]
            else "off",
            "mult": "on" if "multicast" in self.mode_sockets else "off",
            "fc": "none",
            "vxlan_fs": "-",
            "led": "off",
            "rx_filter_mode": "hardware match",
            "rx_queue": "off" if self.rx_queue is None else str(self.rx_queue),
            "grat_arp": "off",
            "status": self.state,
            "owner": "" if not self.is_acquired else "this client",
            "profile_count": len(self.profiles),
        }

    def _resolution(self) -> str:
        if self.layer.mode == "ethernet":
            return "-"
        return self.layer.resolved or "unresolved"
