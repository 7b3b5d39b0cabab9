"""A port of a server, with the state that the server reports."""

from __future__ import annotations

import time
from typing import Any

from trex.addresses import compress_ipv6, generate_ipv6
from trex.client.port import Layer, Port, Profile
from trex.client.profile_id import DEFAULT_PROFILE_ID
from trex.remote.connection import Connection
from trex.remote.packet_source import PacketSource
from trex.stl.streams import STLStream

_PAUSED, _SENDING = "PAUSE", ("TX", "PCAP_TX")
# Age in seconds at which the state of a port is read again.
_AGE_MAX_S = 0.02


class RemoteProfile(Profile):
    """A profile whose state the server reports."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.server_state = "IDLE"

    @property
    def is_active(self) -> bool:
        """Whether it is sending or paused."""
        return self.server_state in (_PAUSED, *_SENDING)

    @property
    def is_visible(self) -> bool:
        """Whether captures see the frames that it sends; the server decides it."""
        return True

    @property
    def is_paused(self) -> bool:
        """Whether it is paused."""
        return self.server_state == _PAUSED


class RemotePort(Port):
    """A port of a server."""

    def __init__(self, number: int, system: dict[str, Any], connection: Connection) -> None:
        # The constructor of `Port` opens an interface of this machine.
        self.number = number
        self.interface = str(system.get("description") or f"port {number}")
        self.is_acquired = False
        #: Token of the requests that change the port.
        self.handler = ""
        self.is_service = False
        self.service_filtered = False
        self.layer = Layer()
        self.has_own_ipv6 = False
        self.own_ipv6 = ""
        self.vlan = []
        self.profiles = {}
        self.stateful = {}
        self.latency = None
        self.rx_queue = self.capture_port = None
        self.destination = None
        self.lease = None
        self.mode_sockets = {}
        self.uncounted_bytes = 0
        self._next_id = 1
        self._system = system
        self._connection = connection
        self._status: dict[str, Any] = {}
        self._read_at: float | None = None
        self.refresh()

    def call(self, method: str, **parameters: Any) -> Any:
        """Executes a command for this port."""
        return self._connection.call(method, self.parameters(**parameters))

    def parameters(self, **parameters: Any) -> dict[str, Any]:
        """Returns the parameters of a command for this port."""
        return {"port_id": self.number, "handler": self.handler, **parameters}

    def refresh(self) -> dict[str, Any]:
        """Reads the state of the port."""
        status: dict[str, Any] = self.call("get_port_status", profile_id="*")
        self._status, self._read_at = status, time.monotonic()
        attributes = status["attr"]
        layers = attributes["layer_cfg"]
        ether, ipv4 = layers["ether"], layers["ipv4"]
        self.destination = ether["dst"] if ether["state"] == "configured" else None
        if ipv4["state"] != "none":
            resolved = ether["dst"] if ipv4["state"] == "resolved" else None
            self.layer = Layer("ipv4", ipv4["src"], ipv4["dst"], resolved)
        elif self.layer.mode == "ipv4":
            self.layer = Layer()
        self.has_own_ipv6 = layers["ipv6"]["enabled"]
        self.own_ipv6 = layers["ipv6"].get("src", "")
        self.vlan = list(attributes.get("vlan", {}).get("tags", []))
        self.is_service, self.service_filtered = status["service"], status["service_filtered"]
        states = status.get("state_profile")
        for name, state in (states if isinstance(states, dict) else {}).items():
            self.profile(name).server_state = state
        for name in list(self.profiles):
            if isinstance(states, dict) and name not in states:
                self.profile(name).server_state = "IDLE"
        return status

    def forget(self) -> None:
        """Makes the next question read the state again, because a command has changed it."""
        self._read_at = None

    def _current(self) -> dict[str, Any]:
        if self._read_at is None or time.monotonic() - self._read_at > _AGE_MAX_S:
            self.refresh()
        return self._status

    def owner(self) -> str:
        """Returns the user who owns the port, empty if it is free."""
        return str(self._current()["owner"])

    def profile(self, name: str) -> RemoteProfile:
        """Returns the profile with this name, and creates it if necessary."""
        found = self.profiles.setdefault(name, RemoteProfile(name))
        assert isinstance(found, RemoteProfile)
        return found

    def load_streams(self) -> None:
        """Reads the streams of all profiles."""
        found = self.call("get_all_streams", profile_id="*")["profiles"]
        self.profiles.clear()
        self.profile(DEFAULT_PROFILE_ID)
        for name, streams in found.items():
            for number, document in streams.items():
                self.profile(name).streams[int(number)] = STLStream.from_json(document)
        self._next_id = max(self.streams, default=0) + 1
        self.forget()

    def packet_source(self) -> PacketSource:
        """Returns a source and sink of single frames, for services."""
        return PacketSource(self._connection, self.number)

    def read_properties(self) -> dict[str, Any]:
        """Returns the properties of the interface, and its counters of received frames."""
        attributes = self._current()["attr"]
        return {
            "mac": self._system.get("hw_mac"),
            "has_carrier": attributes["link"]["up"],
            "is_virtual": bool(self._system.get("is_virtual")),
            "speed_bps": attributes["speed"] * 1e9,
            "driver": self._system.get("driver"),
            "bus": self._system.get("pci_addr"),
            "is_promiscuous": attributes["promiscuous"]["enabled"],
        }

    @property
    def properties(self) -> dict[str, Any]:  # type: ignore[override]
        """Properties of the interface."""
        return self.read_properties()

    @properties.setter
    def properties(self, value: dict[str, Any]) -> None:
        """The server has the properties, so that nothing is stored."""

    @property
    def speed_bps(self) -> float:
        """Line speed in bits per second."""
        return float(self._current()["attr"]["speed"]) * 1e9

    @property
    def source(self) -> str:
        """Source Ethernet address of its frames."""
        return str(self._current()["attr"]["layer_cfg"]["ether"]["src"])

    @property
    def source_ipv6(self) -> str:
        """IPv6 source address of its solicitations and pings."""
        return compress_ipv6(self.own_ipv6 or generate_ipv6(self.source))

    def is_prom_enabled(self) -> bool:
        """Returns whether promiscuous mode is on."""
        return bool(self._current()["attr"]["promiscuous"]["enabled"])

    def is_mult_enabled(self) -> bool:
        """Returns whether multicast mode is on."""
        return bool(self._current()["attr"]["multicast"]["enabled"])

    @property
    def is_active(self) -> bool:
        """Whether it is sending or paused."""
        return self._current()["state"] in (_PAUSED, *_SENDING)

    @property
    def is_paused(self) -> bool:
        """Whether all its traffic is paused."""
        return bool(self._current()["state"] == _PAUSED)

    def update_host(self) -> None:
        """Does nothing: the server answers for the port."""

    def end_sockets(self) -> None:
        """Does nothing: the server has no sockets of this client."""

    def close(self) -> None:
        """Does nothing: the connection belongs to the client."""

    def info(self) -> dict[str, Any]:
        """Returns the properties of a port in TRex's format."""
        found = super().info()
        found.update(
            {
                "owner": self.owner(),
                "rx": self._system.get("rx", found["rx"]),
                "cores": self._system.get("cores", []),
                "stack": self._system.get("stack", "legacy"),
                "prom": "on" if self.is_prom_enabled() else "off",
                "mult": "on" if self.is_mult_enabled() else "off",
            }
        )
        return found
