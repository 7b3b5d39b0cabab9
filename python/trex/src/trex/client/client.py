"""Part of a client without streams: its session, ports and their reports."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trex.arguments import listify, validate_type
from trex.client import configuration, owners
from trex.client.addressing import Addressing
from trex.client.capture_commands import CaptureCommands
from trex.client.context import TRexCtx
from trex.client.counters import Counters
from trex.client.events import Event
from trex.client.namespaces import Namespaces
from trex.client.packet_socket import PacketSocket
from trex.client.port import Port, Profile
from trex.client.port_commands import PortCommands
from trex.client.profile_id import ALL_PROFILES, PortProfileID
from trex.client.sockets import Sockets
from trex.client.unsupported import Unsupported
from trex.errors import TRexArgumentError, TRexError
from trex.lines.parser import console_commands
from trex.logger import Logger

# Length of the history in `get_util_stats`, in seconds.
_SECONDS = 20


class TRexClient(Addressing, CaptureCommands, Namespaces, Sockets):
    """A session with the engine of this process.

    `server` and its ports are stored without effect, because there is no server. The environment
    defines the interfaces of ports 0, 1, ...; see `trex.client.configuration`.
    """

    # Attributes of TRex's client for its connection and server, which do not exist here.
    conn = Unsupported("use is_connected() and get_connection_info()")
    psv = Unsupported("use get_acquired_ports(), get_active_ports() and so on")
    global_stats = Unsupported("get_stats()['global'] has the counters")
    util_stats = Unsupported("get_util_stats() has the counters")
    pgid_stats = Unsupported("get_pgid_stats() and clear_pgid_stats() have the counters")
    #: A port can have several profiles at a time.
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
        self._connect_time = 0.0
        self._counters = Counters(self.links)
        self._global_cfg = {"sched_max_stretch": 0}
        self.set_verbose(verbose_level)

    def __enter__(self) -> Any:
        self.connect()
        self._acquire_ports(None, force=True)
        return self

    def __exit__(self, *exception: object) -> None:
        self.disconnect()

    def init(self) -> None:
        """Does nothing."""

    def get_mode(self) -> str:
        """Returns the mode: `STL` or `ASTF`."""
        raise NotImplementedError("get_mode")

    # The session.

    def connect(self) -> None:
        """Opens the ports of the environment. Raises `TRexError` if it defines none."""
        if self._is_connected:
            self.disconnect()
        found = configuration.load()
        self.links.update(
            {number: Port(number, port, found.speed) for number, port in found.ports.items()}
        )
        for number, port in self.links.items():
            is_host = port.layer.mode != "ethernet"
            if port.destination is None and not is_host and number ^ 1 in self.links:
                # Ports come in pairs. By default each one is the next hop of the other.
                port.destination = self.links[number ^ 1].source
        self._is_connected = True
        self._connect_time = time.monotonic()
        self._counters.clear(self.links)
        self._events.clear_events()
        self._log_event("connected")
        hosts = [port for port in self.links.values() if port.layer.mode == "ipv4"]
        for port in hosts:
            port.update_host()
        for port in hosts:
            failure = self._resolve(port, port.vlan)
            if failure is not None:
                self._log_event(f"{failure}; resolve() tries again")

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Ends the session and its traffic. Without `stop_traffic`, the traffic continues."""
        validate_type("stop_traffic", stop_traffic, bool)
        validate_type("release_ports", release_ports, bool)
        if not self._is_connected:
            return
        for port in self.links.values():
            if stop_traffic:
                for transmission in port.transmissions():
                    transmission.stop()
            if release_ports:
                owners.release([port])
        self.remove_all_captures()
        for port in self.links.values():
            port.close()
        self._is_connected = False
        if stop_traffic:
            self.links.clear()
        self._log_event("disconnected")

    def is_connected(self) -> bool:
        """Returns whether there is a session."""
        return self._is_connected

    def ping_rpc_server(self) -> dict[str, float]:
        """Returns the engine's time in seconds."""
        self._require_session()
        return {"ts": time.time()}

    def probe_server(self) -> dict[str, Any]:
        """Returns the version of the engine."""
        return self._version()

    def server_shutdown(self, force: bool = False) -> None:
        """Ends the session. Raises if ports are sending, unless `force`."""
        self._require_session()
        if not force and any(port.is_active for port in self.links.values()):
            raise TRexError("ports are sending; stop them or pass force=True")
        self.disconnect()

    def get_connection_info(self) -> dict[str, Any]:
        """Returns the user and settings of the connection."""
        return {**self._connection, **self._timeouts, "username": self._username}

    def get_server_version(self) -> dict[str, Any]:
        """Returns the version of the engine."""
        self._require_session()
        return self._version()

    def get_server_supported_cmds(self) -> list[str]:
        """Returns the names of this client's commands."""
        self._require_session()
        return sorted(name for name in dir(self) if not name.startswith("_"))

    @property
    def supported_cmds(self) -> list[str]:
        """Names of this client's commands."""
        return self.get_server_supported_cmds()

    def get_server_system_info(self) -> dict[str, Any]:
        """Returns properties of the machine and its ports."""
        self._require_session()
        return {
            "hostname": platform.node(),
            "uptime": f"{time.monotonic() - self._connect_time:.0f} s",
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
        """User, session and connection, as TRex's parts take them."""
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
        """Properties of the machine and its ports."""
        return self.get_server_system_info()

    @property
    def logger(self) -> Any:
        """The given `logger`, else the default one."""
        return self._logger

    def get_verbose(self) -> str:
        """Returns the level of the logger."""
        verbose: str = self._logger.get_verbose()
        return verbose

    def set_verbose(self, level: str) -> None:
        """Sets the level of the logger. `info` and `debug` log every event."""
        if level not in Logger.VERBOSES:
            raise TRexArgumentError("level", level, ", ".join(Logger.VERBOSES))
        self._logger.set_verbose(level)

    def set_timeout(self, timeout_sec: float) -> None:
        """Stores a timeout without effect. Raises during a session."""
        validate_type("timeout_sec", timeout_sec, (int, float))
        if self._is_connected:
            raise TRexError("set_timeout() is possible only before connect()")
        self._timeouts = {"sync_timeout": timeout_sec, "async_timeout": timeout_sec}

    def get_global_cfg(self) -> dict[str, Any]:
        """Returns the engine's parameters."""
        self._require_session()
        return dict(self._global_cfg)

    def set_global_cfg(self, params: dict[str, Any]) -> None:
        """Sets parameters. `sched_max_stretch` has no effect: late frames are never skipped."""
        self._require_session()
        validate_type("params", params, dict)
        unknown = [name for name in params if name not in self._global_cfg]
        if unknown:
            raise TRexArgumentError("params", unknown, ", ".join(self._global_cfg))
        self._global_cfg.update(params)

    def get_console_methods(self) -> dict[str, Any]:
        """Returns the console commands by TRex's names."""
        return console_commands(self)

    # Events.

    def has_events(self) -> bool:
        """Returns whether there are events."""
        self._record_results()
        return len(self._events) > 0

    def pop_event(self) -> Event | None:
        """Removes and returns the oldest event."""
        self._record_results()
        return self._events.pop_event()

    def get_events(self, ev_type_filter: Any = None) -> list[Event]:
        """Returns the events, all or those of one or several types (`info`, `warning`)."""
        types = [] if ev_type_filter is None else listify(ev_type_filter)
        wrong = [one for one in types if one not in ("info", "warning")]
        if wrong:
            raise TRexArgumentError("ev_type_filter", wrong, "info, warning")
        self._record_results()
        return self._events.get_events(types)

    def get_warnings(self) -> list[Event]:
        """Returns the warnings."""
        self._record_results()
        return self._events.get_events("warning")

    def get_info(self) -> list[Event]:
        """Returns the informational events."""
        self._record_results()
        return self._events.get_events("info")

    def clear_events(self) -> None:
        """Clears all events."""
        self._events.clear_events()

    # Ports and what they are doing.

    def get_port_count(self) -> int:
        """Returns the number of ports."""
        return len(self.links)

    @property
    def ports(self) -> dict[int, PortCommands]:
        """The ports by number, with their commands."""
        return {number: self._port_commands(number) for number in self.links}

    def get_port(self, port_id: int) -> PortCommands | None:
        """Returns a port by number, None if it does not exist."""
        return self.ports.get(port_id)

    @property
    def any_port(self) -> PortCommands | None:
        """Any port, None if there is none."""
        return next(iter(self.ports.values()), None)

    def is_all_ports_acquired(self) -> bool:
        """Returns whether this client has acquired all ports."""
        return self.get_acquired_ports() == self.get_all_ports()

    def get_active_ports(self, owned: bool = True) -> list[int]:
        """Returns the ports that send or are paused."""
        return self._matching_ports(lambda port: port.is_active, owned)

    def get_transmitting_ports(self, owned: bool = True) -> list[int]:
        """Returns the ports that send."""
        return self._matching_ports(lambda port: port.is_active and not port.is_paused, owned)

    def get_paused_ports(self, owned: bool = True) -> list[int]:
        """Returns the paused ports."""
        return self._matching_ports(lambda port: port.is_paused, owned)

    def get_service_enabled_ports(self, owned: bool = True) -> list[int]:
        """Returns the ports in service mode."""
        return self._matching_ports(lambda port: port.is_service, owned)

    def get_service_filtered_ports(self, owned: bool = True) -> list[int]:
        """Returns the ports in filtered service mode."""
        return self._matching_ports(lambda port: port.is_service and port.service_filtered, owned)

    def is_traffic_active(self, ports: Any = None) -> bool:
        """Returns whether a port sends or is paused."""
        chosen = self.get_acquired_ports() if ports is None else self._numbers(ports)
        return any(self.links[number].is_active for number in chosen)

    def get_port_info(self, ports: Any = None) -> list[dict[str, Any]]:
        """Returns the properties of ports."""
        self._require_session()
        return [self.links[number].info() for number in self._numbers(ports, of_all=True)]

    def get_port_attr(self, port: int) -> dict[str, Any]:
        """Returns the properties of a port."""
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
        """Sets promiscuous and multicast mode of ports. Other attributes belong to the system."""
        self._require_session()
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
                raise TRexError(
                    f"{name}: not supported; Wirestorm does not count frames by their inner packet"
                )
            names = ", ".join(self.links[number].interface for number in chosen)
            raise TRexError(
                f"{name} cannot be set here, because it would persist if this process is killed: "
                f"{instead.format(names)}"
            )
        for name, on in (("promiscuous", promiscuous), ("multicast", multicast)):
            if on is not None:
                validate_type(name, on, bool)
                for number in chosen:
                    self._set_rx_mode(number, name, on)

    def set_service_mode_base(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Marks ports as in service mode; see `set_service_mode`."""
        self._require_session()
        validate_type("enabled", enabled, bool)
        validate_type("filtered", filtered, bool)
        for number in self._acquired_ports(ports):
            port = self.links[number]
            if enabled and port.is_active:
                raise TRexError(f"port {number} is sending; stop it first")
            if not enabled and port.capture_port is not None:
                raise TRexError(f"port {number} has a capture port; call stop_capture_port() first")
            port.is_service, port.service_filtered = enabled, enabled and filtered

    @contextmanager
    def service_mode(self, ports: Any) -> Iterator[None]:
        """Enables service mode within a block."""
        self.set_service_mode_base(ports, True)
        try:
            yield
        finally:
            self.set_service_mode_base(ports, False)

    def get_util_stats(self) -> dict[str, Any]:
        """Returns the CPU load of the sending threads in each of the last 20 seconds, in percent.

        `cpu` has an item for each running profile: its port, and `history`, the latest second
        first. `mbuf_stats` is empty, because there are no pools of packet memory.
        """
        self._require_session()
        cpu = [
            {"ports": [number, -1], "history": _padded(profile.transmission.cpu_load())}
            for number, port in self.links.items()
            for profile in port.active
            if profile.transmission is not None
        ]
        idle = {"ports": [-1, -1], "history": _padded([])}
        return {"cpu": cpu or [idle], "mbuf_stats": {}}

    def get_xstats(self, port_id: int) -> dict[str, int]:
        """Returns the kernel's counters of a port's interface."""
        self._require_session()
        (number,) = self._numbers(port_id)
        counters: dict[str, int] = self.links[number].read_properties()["counters"]
        return counters

    # Internal methods.

    def _port_commands(self, number: int) -> PortCommands:
        """Returns the commands of a port."""
        raise NotImplementedError("_port_commands")

    def _acquire_ports(self, ports: Any, force: bool) -> None:
        """Acquires ports.

        Raises `TRexError` if another client or process has one. With `force`, a client of this
        process loses the port and its traffic ends.
        """
        self._require_session()
        numbers = self._numbers(ports, of_all=True)
        owners.acquire([self.links[number] for number in numbers], force)
        if force:
            self._discard_groups(numbers)

    def _release_ports(self, ports: Any) -> None:
        """Releases ports."""
        self._require_session()
        numbers = self._acquired_ports(ports)
        owners.release([self.links[number] for number in numbers])
        self._discard_groups(numbers)

    def _version(self) -> dict[str, Any]:
        from trex.client.transmission import native

        version = f"wirestorm {native().__version__}"
        return {"version": version, "mode": self.get_mode(), "built_by": ""}

    def _set_rx_mode(self, number: int, mode: str, on: bool) -> None:
        """Switches promiscuous or multicast (`mode`) mode of a port."""
        sockets = self.links[number].mode_sockets
        if on and mode not in sockets:
            sockets[mode] = port = PacketSocket(self.links[number].interface)
            if mode == "promiscuous":
                port.enable_promiscuous()
            else:
                port.enable_all_multicast()
        elif not on and mode in sockets:
            sockets.pop(mode).close()

    def _profiles(self, ports: Any) -> list[tuple[Port, Profile]]:
        """Returns the profiles of ports (`0`), single profiles (`"0.name"`), or all of a port
        (`"0.*"`).
        """
        chosen: list[tuple[Port, Profile]] = []
        if ports is None:
            ports = self.get_acquired_ports()
        for named in listify(ports):
            one = PortProfileID(named)
            number, name = one.port_id, one.profile_id
            self._acquired_ports(number)
            port = self.links[number]
            if name == ALL_PROFILES:
                chosen += [(port, profile) for profile in list(port.profiles.values())]
            else:
                chosen.append((port, port.profile(name)))
        names = [f"{port.number}.{profile.name}" for port, profile in chosen]
        if len(set(names)) < len(names):
            raise TRexError(f"duplicate port or profile: {', '.join(names)}")
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
    """Pads a history with zeros to its full length."""
    return history + [0.0] * (_SECONDS - len(history))
