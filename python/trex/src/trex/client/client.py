"""The part of a client that is not about streams: its session, its ports, what they tell."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trex.arguments import listify, validate_type
from trex.client import configuration, owners
from trex.client.absent import Absent
from trex.client.addressing import Addressing
from trex.client.capturing import Capturing
from trex.client.context import TRexCtx
from trex.client.counters import Counters
from trex.client.events import Event
from trex.client.namespaces import Namespaces
from trex.client.packet_socket import PacketSocket
from trex.client.port import Port, Profile
from trex.client.port_commands import PortCommands
from trex.client.profile_id import ALL_PROFILES, PortProfileID
from trex.client.sockets import Sockets
from trex.errors import TRexArgumentError, TRexError
from trex.lines.words import commands_of
from trex.logger import Logger

# What `get_util_stats` goes back to.
_SECONDS = 20


class TRexClient(Addressing, Capturing, Namespaces, Sockets):
    """A session with the engine of this process.

    `server` and the ports of its sockets are kept and not used: there is no server. The interfaces
    that are ports 0, 1, ... come from the environment; see `trex.client.configuration`.
    """

    # What TRex's client has of its connection and its server, which are not there.
    conn = Absent("is_connected() and get_connection_info() tell of the session")
    psv = Absent("get_acquired_ports(), get_active_ports() and so on tell what ports are")
    global_stats = Absent("get_stats()['global'] has the counters")
    util_stats = Absent("get_util_stats() has the counters")
    pgid_stats = Absent("get_pgid_stats() and clear_pgid_stats() have the counters")
    #: There may be several profiles of a port at a time.
    is_dynamic = True

    def __init__(
        self,
        username: str | None = None,
        server: str = "localhost",
        sync_port: int = 4501,
        async_port: int = 4500,
        verbose_level: str = "error",
        logger: Any = None,
        sync_timeout: float | None = None,
        async_timeout: float | None = None,
    ) -> None:
        super().__init__(username)
        validate_type("verbose_level", verbose_level, str)
        self._connection: dict[str, Any] = {
            "server": server,
            "sync_port": sync_port,
            "async_port": async_port,
        }
        self._timeouts: dict[str, Any] = {
            "sync_timeout": sync_timeout,
            "async_timeout": async_timeout,
        }
        if logger is not None:
            self._logger = logger
        self._connected_since = 0.0
        self._counters = Counters(self.links)
        self._global_cfg = {"sched_max_stretch": 0}
        self.set_verbose(verbose_level)

    def __enter__(self) -> Any:
        self.connect()
        self._take(None, force=True)
        return self

    def __exit__(self, *exception: object) -> None:
        self.disconnect()

    def init(self) -> None:
        """Nothing is left to do."""

    def get_mode(self) -> str:
        """The mode: `STL` or `ASTF`."""
        raise NotImplementedError("get_mode")

    # The session.

    def connect(self) -> None:
        """Opens the ports that the environment names. Raises `TRexError` where it names none."""
        if self._is_connected:
            self.disconnect()
        found = configuration.load()
        self.links.update(
            {number: Port(number, port, found.speed) for number, port in found.ports.items()}
        )
        for number, port in self.links.items():
            is_host = port.layer.mode != "ethernet"
            if port.destination is None and not is_host and number ^ 1 in self.links:
                # Ports come in pairs, each the other's next hop unless it is told.
                port.destination = self.links[number ^ 1].source
        self._is_connected = True
        self._connected_since = time.monotonic()
        self._counters.clear(self.links)
        self._events.clear_events()
        self._note("connected")
        hosts = [port for port in self.links.values() if port.layer.mode == "ipv4"]
        for port in hosts:
            port.answer()
        for port in hosts:
            failure = self._resolve(port, port.vlan)
            if failure is not None:
                self._note(f"{failure}; resolve() asks again")

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Ends the session, and what is sent; without `stop_traffic` that goes on for now."""
        validate_type("stop_traffic", stop_traffic, bool)
        validate_type("release_ports", release_ports, bool)
        if not self._is_connected:
            return
        for port in self.links.values():
            if stop_traffic:
                for transmission in port.transmissions():
                    transmission.stop()
            if release_ports:
                owners.give_back([port])
        self.remove_all_captures()
        for port in self.links.values():
            port.close()
        self._is_connected = False
        if stop_traffic:
            self.links.clear()
        self._note("disconnected")

    def is_connected(self) -> bool:
        """Whether there is a session."""
        return self._is_connected

    def ping_rpc_server(self) -> dict[str, float]:
        """The engine's time, in seconds."""
        self._need_session()
        return {"ts": time.time()}

    def probe_server(self) -> dict[str, Any]:
        """What the engine is."""
        return self._version()

    def server_shutdown(self, force: bool = False) -> None:
        """Ends the session, without `force` not while something is sent."""
        self._need_session()
        if not force and any(port.is_active for port in self.links.values()):
            raise TRexError("ports are sending: stop them, or say force=True")
        self.disconnect()

    def get_connection_info(self) -> dict[str, Any]:
        """Who is connected with what."""
        return {**self._connection, **self._timeouts, "username": self._username}

    def get_server_version(self) -> dict[str, Any]:
        """The engine's version."""
        self._need_session()
        return self._version()

    def get_server_supported_cmds(self) -> list[str]:
        """The commands of this client."""
        self._need_session()
        return sorted(name for name in dir(self) if not name.startswith("_"))

    @property
    def supported_cmds(self) -> list[str]:
        """As `get_server_supported_cmds`."""
        return self.get_server_supported_cmds()

    def get_server_system_info(self) -> dict[str, Any]:
        """The machine and its ports."""
        self._need_session()
        return {
            "hostname": platform.node(),
            "uptime": f"{time.monotonic() - self._connected_since:.0f} s",
            "dp_core_count": len(self.links),
            "dp_core_count_per_port": 1,
            "core_type": platform.machine(),
            "is_multiqueue_mode": False,
            "advanced_per_stream_stats": True,
            "port_count": len(self.links),
            "ports": [port.info() for port in self.links.values()],
        }

    @property
    def ctx(self) -> TRexCtx:
        """Who is connected with what, as TRex's parts take it."""
        context = TRexCtx(
            {"name": self.get_mode(), "major": 0, "minor": 0},
            self._username,
            **self._connection,
            **self._timeouts,
            logger=self._logger,
        )
        context.event_handler = self._events
        if self._is_connected:
            context.server_version = self._version()
            context.system_info = self.get_server_system_info()
        return context

    @property
    def system_info(self) -> dict[str, Any]:
        """The machine and its ports."""
        return self.get_server_system_info()

    @property
    def logger(self) -> Any:
        """What was given as `logger`, else what prints."""
        return self._logger

    def get_verbose(self) -> str:
        """How much the logger says."""
        verbose: str = self._logger.get_verbose()
        return verbose

    def set_verbose(self, level: str) -> None:
        """How much the logger says: with `info` and `debug` every event."""
        if level not in Logger.VERBOSES:
            raise TRexArgumentError("level", level, ", ".join(Logger.VERBOSES))
        self._logger.set_verbose(level)

    def set_timeout(self, timeout_sec: float) -> None:
        """Kept and not used: nothing has to be waited for. Only before a session."""
        validate_type("timeout_sec", timeout_sec, (int, float))
        if self._is_connected:
            raise TRexError("the timeout can be set before connecting only")
        self._timeouts = {"sync_timeout": timeout_sec, "async_timeout": timeout_sec}

    def get_global_cfg(self) -> dict[str, Any]:
        """The engine's parameters."""
        self._need_session()
        return dict(self._global_cfg)

    def set_global_cfg(self, params: dict[str, Any]) -> None:
        """Sets parameters: `sched_max_stretch`, which is kept: late frames are never left out."""
        self._need_session()
        validate_type("params", params, dict)
        unknown = [name for name in params if name not in self._global_cfg]
        if unknown:
            raise TRexArgumentError("params", unknown, ", ".join(self._global_cfg))
        self._global_cfg.update(params)

    def get_console_methods(self) -> dict[str, Any]:
        """The commands that take a line of words, by the names that TRex's console has."""
        return commands_of(self)

    # Events.

    def has_events(self) -> bool:
        """Whether something happened that was not taken."""
        self._reap()
        return len(self._events) > 0

    def pop_event(self) -> Event | None:
        """Takes the oldest event."""
        self._reap()
        return self._events.pop_event()

    def get_events(self, ev_type_filter: Any = None) -> list[Event]:
        """The events, or those of a type (`info`, `warning`) or several."""
        types = [] if ev_type_filter is None else listify(ev_type_filter)
        wrong = [one for one in types if one not in ("info", "warning")]
        if wrong:
            raise TRexArgumentError("ev_type_filter", wrong, "info, warning")
        self._reap()
        return self._events.get_events(types)

    def get_warnings(self) -> list[Event]:
        """What fell short or went wrong."""
        self._reap()
        return self._events.get_events("warning")

    def get_info(self) -> list[Event]:
        """What else happened."""
        self._reap()
        return self._events.get_events("info")

    def clear_events(self) -> None:
        """Forgets all events."""
        self._events.clear_events()

    # Ports and what they are doing.

    def get_port_count(self) -> int:
        """How many ports there are."""
        return len(self.links)

    @property
    def ports(self) -> dict[int, PortCommands]:
        """The ports by number, as scripts ask and command them."""
        return {number: self._port_commands(number) for number in self.links}

    def get_port(self, port_id: int) -> PortCommands | None:
        """The port of this number, None if there is none."""
        return self.ports.get(port_id)

    @property
    def any_port(self) -> PortCommands | None:
        """A port, None if there is none."""
        return next(iter(self.ports.values()), None)

    def is_all_ports_acquired(self) -> bool:
        """Whether this client has all of them."""
        return self.get_acquired_ports() == self.get_all_ports()

    def get_active_ports(self, owned: bool = True) -> list[int]:
        """Those that send, or are held."""
        return self._those(lambda port: port.is_active, owned)

    def get_transmitting_ports(self, owned: bool = True) -> list[int]:
        """Those that send."""
        return self._those(lambda port: port.is_active and not port.is_paused, owned)

    def get_paused_ports(self, owned: bool = True) -> list[int]:
        """Those that are held."""
        return self._those(lambda port: port.is_paused, owned)

    def get_service_enabled_ports(self, owned: bool = True) -> list[int]:
        """Those in service mode."""
        return self._those(lambda port: port.is_service, owned)

    def get_service_filtered_ports(self, owned: bool = True) -> list[int]:
        """Those in filtered service mode."""
        return self._those(lambda port: port.is_service and port.service_filtered, owned)

    def is_traffic_active(self, ports: Any = None) -> bool:
        """Whether one of the ports sends, or is held."""
        chosen = self.get_acquired_ports() if ports is None else self._numbers(ports)
        return any(self.links[number].is_active for number in chosen)

    def get_port_info(self, ports: Any = None) -> list[dict[str, Any]]:
        """What is known of ports."""
        self._need_session()
        return [self.links[number].info() for number in self._numbers(ports, of_all=True)]

    def get_port_attr(self, port: int) -> dict[str, Any]:
        """What is known of a port."""
        (info,) = self.get_port_info(port)
        return info

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
        """Sets whether ports hear every frame, and frames to every group. The other attributes are
        the system's to set."""
        self._need_session()
        chosen = self._numbers(ports)
        for name, value, instead in (
            ("link_up", link_up, "ip link set {} up (or down)"),
            ("led_on", led_on, "ethtool --identify {}"),
            ("flow_ctrl", flow_ctrl, "ethtool --pause {}"),
            ("vxlan_fs", vxlan_fs, ""),
        ):
            if value in (None, []):
                continue
            if not instead:
                raise TRexError(f"{name}: frames are not counted by an inner packet")
            names = ", ".join(self.links[number].interface for number in chosen)
            raise TRexError(
                f"{name} is not set here, for it would stay so when this process is killed: "
                f"{instead.format(names)}"
            )
        for name, on in (("promiscuous", promiscuous), ("multicast", multicast)):
            if on is not None:
                validate_type(name, on, bool)
                for number in chosen:
                    self._hear(number, name, on)

    def set_service_mode_base(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Notes that ports are in service mode; see `set_service_mode`."""
        self._need_session()
        validate_type("enabled", enabled, bool)
        validate_type("filtered", filtered, bool)
        for number in self._owned(ports):
            port = self.links[number]
            if enabled and port.is_active:
                raise TRexError(f"port {number} is sending: stop it first")
            if not enabled and port.capture_port is not None:
                raise TRexError(f"port {number} has a capture port: stop_capture_port() first")
            port.is_service, port.service_filtered = enabled, enabled and filtered

    @contextmanager
    def service_mode(self, ports: Any) -> Iterator[None]:
        """Service mode within a block."""
        self.set_service_mode_base(ports, True)
        try:
            yield
        finally:
            self.set_service_mode_base(ports, False)

    def get_util_stats(self) -> dict[str, Any]:
        """How busy the threads are that send: percent of a CPU in each of the last 20 seconds.

        `cpu` has an item for each profile that is on its way: its port, and `history`, the latest
        first. There are no pools of packet memory, so that `mbuf_stats` is empty.
        """
        self._need_session()
        cpu = [
            {"ports": [number, -1], "history": _padded(profile.transmission.busy())}
            for number, port in self.links.items()
            for profile in port.active
            if profile.transmission is not None
        ]
        idle = {"ports": [-1, -1], "history": _padded([])}
        return {"cpu": cpu or [idle], "mbuf_stats": {}}

    def get_xstats(self, port_id: int) -> dict[str, int]:
        """What the kernel has counted at a port's interface."""
        self._need_session()
        (number,) = self._numbers(port_id)
        counters: dict[str, int] = self.links[number].look()["counters"]
        return counters

    # For commands.

    def _port_commands(self, number: int) -> PortCommands:
        """A port as scripts see it."""
        raise NotImplementedError("_port_commands")

    def _take(self, ports: Any, force: bool) -> None:
        """Takes ports. Raises `TRexError` where another client, or another process, has one of
        them; with `force` a client of this process loses it, and what it sends there ends."""
        self._need_session()
        owners.take([self.links[number] for number in self._numbers(ports, of_all=True)], force)
        if force:
            self._forget_groups()

    def _give_back(self, ports: Any) -> None:
        """Gives ports back."""
        self._need_session()
        owners.give_back([self.links[number] for number in self._owned(ports)])
        self._forget_groups()

    def _version(self) -> dict[str, Any]:
        from trex.client.transmission import native

        version = f"wirestorm {native().__version__}"
        return {"version": version, "mode": self.get_mode(), "built_by": ""}

    def _hear(self, number: int, what: str, on: bool) -> None:
        """Lets a port hear every frame (`promiscuous`), or those to every group (`multicast`)."""
        heard = self.links[number].hears
        if on and what not in heard:
            heard[what] = port = PacketSocket(self.links[number].interface)
            if what == "promiscuous":
                port.hear_all()
            else:
                port.hear_groups()
        elif not on and what in heard:
            heard.pop(what).close()

    def _profiles(self, ports: Any) -> list[tuple[Port, Profile]]:
        """The profiles of ports (`0`), or single ones (`"0.name"`), or all of a port (`"0.*"`)."""
        chosen: list[tuple[Port, Profile]] = []
        if ports is None:
            ports = self.get_acquired_ports()
        for named in listify(ports):
            one = PortProfileID(named)
            number, name = one.port_id, one.profile_id
            self._owned(number)
            port = self.links[number]
            if name == ALL_PROFILES:
                chosen += [(port, profile) for profile in list(port.profiles.values())]
            else:
                chosen.append((port, port.profile(name)))
        names = [f"{port.number}.{profile.name}" for port, profile in chosen]
        if len(set(names)) < len(names):
            raise TRexError(f"a port or profile is named twice: {', '.join(names)}")
        return chosen

    def _active_profiles(self) -> list[tuple[Port, Profile]]:
        return [
            (port, profile)
            for port in self.links.values()
            if port.is_acquired
            for profile in port.profiles.values()
            if profile.is_active
        ]


def _padded(history: list[float]) -> list[float]:
    """With nothing before what is known."""
    return history + [0.0] * (_SECONDS - len(history))
