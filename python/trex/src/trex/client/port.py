"""A port of a client: an interface, the streams that were added to it, what it is doing."""

from __future__ import annotations

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
from trex.client.transmission import Terms, Transmission, native
from trex.errors import TRexError
from trex.stl.streams import STLStream

# What percentages are of on interfaces that do not tell how fast they are.
_SPEED_BPS = 10_000_000_000
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_NO_ADDRESS = "00:00:00:00:00:00"
# Receive statistics in TRex's words, and packet groups at a time.
_RECEIVES = ("flow_stats", "latency", "rx_bytes", "tpg")
_FLOWS_MAX = 1023
_MODES = {"ethernet": "Ethernet", "ipv4": "IPv4", "ipv6": "IPv6"}


class Run(Protocol):
    """What a port has to know of a stateful profile that has a part in it."""

    #: Whether captures see what it sends.
    is_visible: bool

    def is_done(self) -> bool:
        """Whether it has ended."""

    def stop(self) -> None:
        """Ends it."""

    def wait(self) -> bool:
        """Waits for the end for a while; whether it has come."""

    def sent(self, number: int) -> tuple[int, int, int]:
        """Frames that left a port, their bytes without FCS, frames that were refused."""


class Latency(Protocol):
    """What a port has to know of latency traffic that it sends."""

    def sent(self) -> tuple[int, int, int]:
        """Frames that left, their bytes without FCS, frames that were refused."""


class Profile:
    """Streams of a port that are started and stopped together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams: dict[int, STLStream] = {}
        self.transmission: Transmission | None = None

    def named(self, port: int) -> str:
        """What messages call it."""
        return f"port {port}" if self.name == DEFAULT_PROFILE_ID else f"profile {port}.{self.name}"

    @property
    def is_active(self) -> bool:
        """Whether it is sending, or held."""
        return self.transmission is not None and not self.transmission.is_done()

    @property
    def is_visible(self) -> bool:
        """Whether captures see what it sends."""
        return self.transmission is not None and self.transmission.is_visible

    @property
    def is_paused(self) -> bool:
        """Whether it is held."""
        return self.is_active and self.transmission is not None and self.transmission.is_paused

    @property
    def state(self) -> str:
        """What it is doing, in TRex's word."""
        if self.is_paused:
            return "PAUSE"
        if self.is_active:
            return "TRANSMITTING"
        return "STREAMS" if self.streams else "IDLE"


@dataclass
class Layer:
    """How a port's next hop is named: `ethernet`, or by its address of `ipv4` or `ipv6`."""

    mode: str = "ethernet"
    source: str = ""
    destination: str = ""
    #: The Ethernet address of the next hop, once it is known.
    resolved: str | None = None


class Port:
    """A port."""

    def __init__(self, number: int, configuration: PortConfiguration, speed: str | None) -> None:
        self.number = number
        self.interface = configuration.interface
        self.is_acquired = False
        #: Keeps other processes from the interface while the port is acquired.
        self.lease: Any = None
        self.is_service = False
        self.service_filtered = False
        #: The sockets that make it hear every frame, or those to every group, by these words.
        self.hears: dict[str, PacketSocket] = {}
        self.layer = Layer()
        if configuration.address is not None and configuration.gateway is not None:
            self.layer = Layer("ipv4", configuration.address, configuration.gateway)
        #: Whether it has an IPv6 address beside that of its layer, and which; none is its link's.
        self.has_own_ipv6 = False
        self.own_ipv6 = ""
        self.vlan = list(configuration.vlan)
        self.profiles: dict[str, Profile] = {}
        #: The last run of each stateful profile that has a part here, by its identifier.
        self.stateful: dict[str, Run] = {}
        #: The latency traffic that it sends or sent last.
        self.latency: Latency | None = None
        self._next_id = 1
        self._configuration = configuration
        self._speed = speed
        #: Frames that left, their bytes, frames refused, of transmissions that are over.
        self._ended = (0, 0, 0)
        #: Bytes that arrived and that the kernel did not count.
        self.bytes_not_counted = 0
        #: What the kernel had counted before something was sent here, and what the engine did then.
        self._counted_before: dict[str, int] | None = None
        self._counted = (0, 0)
        self.facts = self.look()
        self.hosts = Hosts(self.interface, self.facts["mac"] or _NO_ADDRESS)
        self._answers_in: Tags | None = None
        self.nodes = Nodes(number, self.hosts)
        self.rx_queue: RxQueue | None = None
        self.capture_port: CapturePort | None = None
        self.destination: str | None = configuration.destination

    def look(self) -> dict[str, Any]:
        """What is known of the interface now. Raises `TRexError` where it is gone."""
        # First, for it says what to do where the package is not there.
        engine = native()
        from wirestorm.errors import WirestormError

        try:
            facts: dict[str, Any] = engine.interface(self.interface)
        except WirestormError as error:
            raise TRexError(f"port {self.number}: {error}") from error
        return facts

    @property
    def speed_bps(self) -> float:
        """Bits a second of its line."""
        if self._speed is not None:
            scales = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
            number, scale = self._speed, 1.0
            if number[-1:] in scales:
                number, scale = number[:-1], scales[number[-1]]
            try:
                return float(number) * scale
            except ValueError:
                raise TRexError(f"speed {self._speed!r}: expected for instance 10G") from None
        return float(self.facts["speed_bps"] or _SPEED_BPS)

    @property
    def source(self) -> str:
        """The address that its frames come from."""
        return self._configuration.source or self.facts["mac"] or _NO_ADDRESS

    @property
    def source_ipv6(self) -> str:
        """The IPv6 address that it asks and pings from."""
        own = self.own_ipv6 or (self.layer.source if self.layer.mode == "ipv6" else "")
        return compress_ipv6(own or generate_ipv6(self.source))

    def answer(self) -> None:
        """Answers for the addresses that it has now."""
        tags = tags_of(self.vlan)
        addresses = [] if self.layer.mode == "ethernet" else [self.layer.source]
        if self.has_own_ipv6:
            # Whoever has another address has the link's as well.
            addresses += [generate_ipv6(self.source), *filter(None, [self.own_ipv6])]
        before, self._answers_in = self._answers_in, tags if addresses else None
        if addresses:
            asks_routers = self.has_own_ipv6 and not self.own_ipv6
            self.hosts.put(self.source, tags, addresses, asks_routers)
        if before is not None and before != self._answers_in:
            self.hosts.remove(self.source, before)

    def end_sockets(self) -> None:
        """Ends what hands on its frames."""
        if self.rx_queue is not None:
            self.rx_queue.stop()
        if self.capture_port is not None:
            self.capture_port.stop()
        self.rx_queue = self.capture_port = None

    def close(self) -> None:
        """Answers and hears nothing any more, and hands on no frames."""
        self.end_sockets()
        self.nodes.remove_all()
        self.hosts.close()
        while self.hears:
            self.hears.popitem()[1].close()

    def get_layer_cfg(self) -> dict[str, Any]:
        """Its addresses in TRex's words: of `ether`, `ipv4` and `ipv6`."""
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
        """Whether `set_port_attr` lets it hear every frame."""
        return "promiscuous" in self.hears

    def is_mult_enabled(self) -> bool:
        """Whether `set_port_attr` lets it hear frames to every group."""
        return "multicast" in self.hears

    def is_resolved(self) -> bool:
        """Whether it knows the Ethernet address of its next hop."""
        if self.layer.mode == "ethernet":
            return self.destination is not None
        return self.layer.resolved is not None

    def terms(self) -> Terms:
        """How its streams are understood."""
        return Terms(f"{self.speed_bps:.0f}", self.source, self.destination or _BROADCAST)

    def profile(self, name: str) -> Profile:
        """The profile of this name, which is made if it is not there."""
        return self.profiles.setdefault(name, Profile(name))

    @property
    def streams(self) -> dict[int, STLStream]:
        """The streams of all its profiles, by number."""
        return {
            number: stream
            for profile in self.profiles.values()
            for number, stream in profile.streams.items()
        }

    @property
    def active(self) -> list[Profile]:
        """The profiles that are on their way."""
        return [it for it in self.profiles.values() if it.is_active]

    @property
    def is_active(self) -> bool:
        """Whether it is sending, or held."""
        return bool(self.active) or any(not run.is_done() for run in self.stateful.values())

    @property
    def is_paused(self) -> bool:
        """Whether all that it sends is held."""
        active = self.active
        return bool(active) and all(profile.is_paused for profile in active)

    @property
    def state(self) -> str:
        """What it is doing, in TRex's word."""
        if self.is_active:
            return "PAUSE" if self.is_paused else "TRANSMITTING"
        return "STREAMS" if self.streams else "IDLE"

    def add(self, profile: str, stream: STLStream) -> int:
        """Adds a stream; its number."""
        number = stream.get_id()
        if number is None:
            number = self._next_id
            while number in self.streams:
                number += 1
        elif number in self.streams:
            raise TRexError(f"port {self.number} already has a stream {number}")
        self._next_id = max(self._next_id, number + 1)
        self.profile(profile).streams[number] = stream
        return number

    def begin(self, profile: Profile, transmission: Transmission) -> None:
        """Notes that a profile is on its way."""
        self.retire(profile)
        profile.transmission = transmission

    def begin_stateful(self, pid: str, run: Run, counted: dict[str, int]) -> None:
        """Notes that a stateful profile is on its way; `counted` is what the kernel had before."""
        if pid in self.stateful:
            self._retire(self.stateful[pid].sent(self.number))
        self.stateful[pid] = run
        self._counted_before, self._counted = counted, (0, 0)

    def begin_latency(self, latency: Latency) -> None:
        """Notes that latency traffic is on its way."""
        if self.latency is not None:
            self._retire(self.latency.sent())
        self.latency = latency

    def retire(self, profile: Profile) -> None:
        """Forgets a profile's last transmission, but for what it sent."""
        if profile.transmission is not None:
            self._retire(profile.transmission.sent())
            profile.transmission = None

    def _retire(self, sent: tuple[int, int, int]) -> None:
        first, second, third = (a + b for a, b in zip(self._ended, sent))
        self._ended = (first, second, third)

    def sent(self) -> tuple[int, int, int]:
        """Frames that left, their bytes without FCS, frames that were refused."""
        sums = list(self._ended)
        counts = [transmission.sent() for transmission in self.transmissions()]
        counts += [run.sent(self.number) for run in self.stateful.values()]
        counts += [] if self.latency is None else [self.latency.sent()]
        for sent in counts:
            for place, value in enumerate(sent):
                sums[place] += value
        return sums[0], sums[1], sums[2]

    def begin_receiving(self) -> None:
        """Notes that something will be sent here."""
        self._counted_before = self.look()["counters"]
        self._counted = (0, 0)

    def note_received(self, packets: int, size: int) -> None:
        """Notes what the engine counted here since something was sent here, by whomever."""
        self._counted = max(self._counted, (packets, size))

    def end_receiving(self) -> None:
        """Adds the bytes that the kernel was short of.

        Kernels count frames at a veth with or without their Ethernet headers, by the way they take.
        """
        before, (counted, size) = self._counted_before, self._counted
        if before is None or not counted:
            return
        try:
            now = self.look()["counters"]
        except TRexError:
            # Where the interface is gone, the kernel's count of it is as well.
            self._counted_before = None
            return
        packets = now["rx_packets"] - before["rx_packets"]
        should = round(packets * size / counted)
        self.bytes_not_counted += should - (now["rx_bytes"] - before["rx_bytes"])
        self._counted_before = None

    def transmissions(self) -> list[Transmission]:
        """The present or last transmission of each profile."""
        profiles = self.profiles.values()
        return [it.transmission for it in profiles if it.transmission is not None]

    def end_traffic(self) -> None:
        """Ends all that is sent, and waits for it; of stateful profiles their other ports' too."""
        for transmission in self.transmissions():
            transmission.stop()
        for run in self.stateful.values():
            run.stop()
            while not run.wait():
                pass

    def info(self) -> dict[str, Any]:
        """What TRex tells of a port."""
        facts = self.facts = self.look()
        return {
            "index": self.number,
            "driver": facts["driver"] or "",
            "description": self.interface,
            "speed": self.speed_bps / 1e9,
            "supp_speeds": [],
            "hw_mac": facts["mac"],
            "src_mac": self.source,
            "dest": self.layer.destination or self.destination or "unset",
            "src_ipv4": self.layer.source if self.layer.mode == "ipv4" else "-",
            "layer_mode": _MODES[self.layer.mode],
            "arp": self._resolution(),
            "vlan": self.vlan or "-",
            "ipv6": (self.own_ipv6 or "auto") if self.has_own_ipv6 else "off",
            "pci_addr": facts["bus"] or "",
            "numa": -1,
            "is_virtual": "yes" if facts["is_virtual"] else "no",
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
            # One thread sends a port's profile, wherever the system lets it run.
            "cores": [],
            "rx": {"caps": list(_RECEIVES), "counters": _FLOWS_MAX},
            "link": "UP" if facts["has_carrier"] else "DOWN",
            "prom": "on" if "promiscuous" in self.hears or facts["is_promiscuous"] else "off",
            "mult": "on" if "multicast" in self.hears else "off",
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
