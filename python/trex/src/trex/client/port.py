"""A port of a client: an interface, the streams that were added to it, what it is doing."""

from __future__ import annotations

from typing import Any

from trex.client.configuration import PortConfiguration
from trex.client.transmission import Terms, Transmission, native
from trex.errors import TRexError
from trex.stl.streams import STLStream

# What percentages are of on interfaces that do not tell how fast they are.
_SPEED_BPS = 10_000_000_000
_BROADCAST = "ff:ff:ff:ff:ff:ff"

DEFAULT_PROFILE = "_"


class Profile:
    """Streams of a port that are started and stopped together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.streams: dict[int, STLStream] = {}
        self.transmission: Transmission | None = None

    @property
    def is_active(self) -> bool:
        """Whether it is sending, or held."""
        return self.transmission is not None and not self.transmission.is_done()

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


class Port:
    """A port."""

    def __init__(self, number: int, configuration: PortConfiguration, speed: str | None) -> None:
        self.number = number
        self.interface = configuration.interface
        self.is_acquired = False
        self.is_service = False
        self.service_filtered = False
        #: Whether this client makes it hear every frame.
        self.hears_all = False
        self.layer: dict[str, Any] = {"mode": "ethernet"}
        self.vlan: list[int] = []
        self.profiles: dict[str, Profile] = {}
        self._next_id = 1
        self._configuration = configuration
        self._speed = speed
        #: Frames that left, their bytes, frames refused, of transmissions that are over.
        self._ended = (0, 0, 0)
        #: Bytes that arrived and that the kernel did not count.
        self.bytes_not_counted = 0
        self.facts = self.look()
        self.destination: str | None = configuration.destination

    def look(self) -> dict[str, Any]:
        """What is known of the interface now. Raises `TRexError` where it is gone."""
        from wirestorm.errors import WirestormError

        try:
            facts: dict[str, Any] = native().interface(self.interface)
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
        return self._configuration.source or self.facts["mac"] or "00:00:00:00:00:00"

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
    def active(self) -> Profile | None:
        """The profile that is on its way; one at a time is."""
        return next((it for it in self.profiles.values() if it.is_active), None)

    @property
    def is_active(self) -> bool:
        """Whether it is sending, or held."""
        return self.active is not None

    @property
    def is_paused(self) -> bool:
        """Whether what it sends is held."""
        active = self.active
        return active is not None and active.is_paused

    @property
    def state(self) -> str:
        """What it is doing, in TRex's word."""
        if self.active is not None:
            return self.active.state
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

    def retire(self, profile: Profile) -> None:
        """Forgets a profile's last transmission, but for what it sent."""
        if profile.transmission is not None:
            sent = profile.transmission.sent()
            first, second, third = (a + b for a, b in zip(self._ended, sent))
            self._ended = (first, second, third)
            profile.transmission = None

    def sent(self) -> tuple[int, int, int]:
        """Frames that left, their bytes without FCS, frames that were refused."""
        sums = list(self._ended)
        for transmission in self.transmissions():
            for place, value in enumerate(transmission.sent()):
                sums[place] += value
        return sums[0], sums[1], sums[2]

    def transmissions(self) -> list[Transmission]:
        """The present or last transmission of each profile."""
        profiles = self.profiles.values()
        return [it.transmission for it in profiles if it.transmission is not None]

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
            "dest": self.layer.get("dst_ipv4", self.destination or "unset"),
            "src_ipv4": self.layer.get("src_ipv4", "-"),
            "layer_mode": {"ethernet": "Ethernet", "ipv4": "IPv4"}[self.layer["mode"]],
            "arp": self.layer.get("resolved", "-"),
            "vlan": self.vlan or "-",
            "ipv6": "off",
            "pci_addr": facts["bus"] or "",
            "numa": -1,
            "is_virtual": "yes" if facts["is_virtual"] else "no",
            "is_fc_supported": "no",
            "is_led_supported": "no",
            "is_link_supported": "no",
            "is_prom_supported": "yes",
            "link": "UP" if facts["has_carrier"] else "DOWN",
            "prom": "on" if self.hears_all or facts["is_promiscuous"] else "off",
            "mult": "off",
            "fc": "none",
            "led": "off",
            "rx_filter_mode": "hardware match",
            "rx_queue": "off",
            "grat_arp": "off",
            "status": self.state,
            "owner": "" if not self.is_acquired else "this client",
            "profile_count": len(self.profiles),
        }
