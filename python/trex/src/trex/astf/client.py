"""`ASTFClient`: loads, starts, changes and counts stateful profiles."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from trex.addresses import int2ip, int2mac
from trex.arguments import check_bits, check_seconds, validate_type
from trex.astf.client_commands import ClientCommands
from trex.astf.console import Console
from trex.astf.counter_commands import CounterCommands
from trex.astf.ignored_addresses import ignored
from trex.astf.latency_commands import LatencyCommands, check_latency_addresses, latency_rate
from trex.astf.loaded_profile import Profile
from trex.astf.port import ASTFPort
from trex.astf.profile_commands import ALL_PROFILE_ID, DEFAULT_PROFILE_ID, Pids, parse_profile_ids
from trex.astf.stateful_run import StatefulRun, multiplier, port_name, stop_if_unestablished, times
from trex.astf.statistics import LatencyStats, TrafficStats
from trex.astf.topologies import ASTFTopologyManager
from trex.client.port import Port
from trex.client.port_commands import PortCommands
from trex.client.unsupported import Unsupported
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError
from trex.remote.selection import remote, uses_server
from trex.stl.stream_commands import StreamCommands
from trex.stl.tagged_group_commands import TaggedGroupCommands
from trex.tunables import check_tunables

_PORTS_MAX = 32
# Default and minimum interval of samples of single flows.
_INTERVAL_S, _INTERVAL_S_MIN = 1.0, 0.001


class ASTFClient(
    Console, ClientCommands, CounterCommands, LatencyCommands, TaggedGroupCommands, StreamCommands
):
    """TRex's advanced stateful client, with the engine in this process.

    The ports are those of `STLClient`: the environment defines their interfaces. Clients use the
    even ports, servers the odd ones. `dummy` in a trex_cfg.yaml leaves a port to other hosts.
    """

    def __new__(cls, *arguments: Any, **kwargs: Any) -> Any:
        if not uses_server(arguments, kwargs):
            return super().__new__(cls)
        return super().__new__(remote(cls, ASTFClient, "trex.remote.astf"))

    # Attributes of TRex's client for its server, which does not exist here.
    handler = Unsupported("use get_acquired_ports()")
    sync_waiting = Unsupported("commands are complete when they return")
    profile_state_change = Unsupported("use get_profiles_state()")
    macs_ips_mngr = Unsupported("use get_ignored_macs_ips() and set_ignored_macs_ips()")

    needs_service_mode = False

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self.topo_mngr = ASTFTopologyManager(self)
        self.traffic_stats = TrafficStats(self)
        self.latency_stats = LatencyStats(self)
        #: Counter of `inc_epoch`; None before the first session.
        self.epoch: int | None = None
        self._ignored: dict[str, list[int]] = {"macs": [], "ips": []}

    def get_mode(self) -> str:
        """The mode."""
        return "ASTF"

    # The session.

    def connect(self) -> None:
        """Opens the ports of the environment. Raises `TRexError` if it defines none."""
        super().connect()
        self.epoch = self.epoch or 1

    def inc_epoch(self) -> None:
        """Increments `epoch`. TRex uses it to ignore old messages of its server."""
        self._require_session()
        self.epoch = (self.epoch or 0) + 1
        self.sync()

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Ends the session and its traffic. Without `stop_traffic`, the traffic continues."""
        if self._is_connected and stop_traffic:
            self.stop(pid_input=ALL_PROFILE_ID)
            self.stop_latency()
        if self._is_connected:
            self.topo_mngr.clear()
        super().disconnect(stop_traffic, release_ports)

    def reset(self, restart: bool = False) -> None:
        """Acquires all ports, stops all traffic, and clears profiles and counters."""
        self._require_session()
        if not restart:
            self.stop(pid_input=ALL_PROFILE_ID)
            self.stop_latency()
            self._latency = None
            self.clear_profile(pid_input=ALL_PROFILE_ID)
        # Raises for `restart`.
        self._reset_streams(None, restart)
        self.clear_stats()

    def acquire(self, force: bool = False) -> None:
        """Acquires all ports; with `force` also from other clients of this process."""
        self._acquire_ports(None, force)

    def release(self, force: bool = False) -> None:
        """Releases all ports."""
        self._release_ports(None)

    def sync(self) -> dict[str, int]:
        """Returns the state of each profile as a number."""
        self._require_session()
        return self.astf_profile_state

    def set_service_mode(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Switches service mode of ports. Traffic that starts in service mode can be captured."""
        self._require_session()
        validate_type("enabled", enabled, bool)
        validate_type("filtered", filtered, bool)
        for number in self._acquired_ports(ports):
            port = self.links[number]
            if not enabled and port.capture_port is not None:
                raise TRexError(f"port {number} has a capture port; call stop_capture_port() first")
            port.is_service, port.service_filtered = enabled, enabled and filtered

    def _check_capture(self, rx_ports: list[int], tx_ports: list[int]) -> None:
        for number in rx_ports:
            port = self.links[number]
            if self._has_sender(port) and not port.is_service:
                raise TRexError(
                    f"port {number}: streams are sent there, and counted before they can be seen: "
                    "stop_stl() first, and start them after this"
                )
        for number in dict.fromkeys([*tx_ports, *rx_ports]):
            for pid, run in self.links[number].stateful.items():
                if not run.is_done() and not run.is_visible:
                    raise TRexError(
                        f"port {number}: profile {pid} is running past the kernel's taps: stop it, "
                        "and start it after this"
                    )
        super()._check_capture(rx_ports, tx_ports)

    # Gateways and ignored hosts.

    def topo_load(self, topology: Any, tunables: Any = None) -> None:
        """Loads a topology: an `ASTFTopology`, or a file in Python, JSON or YAML.

        `tunables` are keyword arguments of a Python file's `get_topo()`.
        """
        self._require_session()
        self.topo_mngr.load(topology, **check_tunables(tunables))

    def topo_clear(self) -> None:
        """Removes the topology. Traffic that starts later uses the next hops of the ports."""
        self._require_session()
        self.topo_mngr.clear()

    def topo_resolve(self, ports: Any = None) -> None:
        """Resolves the Ethernet addresses of the topology's gateways, of some ports or all.

        Traffic that starts after all are resolved uses the gateways. Raises if one does not answer.
        """
        self._require_session()
        self.topo_mngr.resolve(ports)

    def topo_show(self, ports: Any = None) -> None:
        """Prints the topology."""
        self._require_session()
        self.topo_mngr.show(ports)

    def topo_save(self, filename: str) -> None:
        """Writes the topology to a new file: `.py`, `.json` or `.yaml`."""
        self._require_session()
        self.topo_mngr.save(filename)

    def get_ignored_macs_ips(self, to_str: bool = True) -> dict[str, list[Any]]:
        """Returns the addresses that get no resets: `ips` and `macs`, as text or integers."""
        self._require_session()
        macs, ips = self._ignored["macs"], self._ignored["ips"]
        if to_str:
            return {"ips": [int2ip(ip) for ip in ips], "macs": [int2mac(mac) for mac in macs]}
        return {"ips": list(ips), "macs": list(macs)}

    def set_ignored_macs_ips(
        self, mac_list: Any = None, ip_list: Any = None, is_str: bool = True
    ) -> None:
        """Sets the addresses of other hosts on the ports, which get no resets.

        While the lists are not empty, profiles that start answer no packet that belongs to none of
        their flows, whatever its source.
        """
        self._require_session()
        running = [it.pid for it in self._profiles_by_id.values() if it.is_running]
        if running:
            raise TRexError(f"profile {running[0]} is running; stop it first")
        self._ignored = ignored(mac_list, ip_list, is_str)

    # Start and stop.

    def start(
        self,
        mult: float = 1,
        duration: float = -1,
        nc: bool = False,
        block: bool = True,
        latency_pps: float = 0,
        ipv6: bool = False,
        pid_input: Pids = DEFAULT_PROFILE_ID,
        client_mask: int = 0xFFFFFFFF,
        e_duration: float = 0,
        t_duration: float = 0,
        dump_interval: float = 0,
    ) -> None:
        """Starts the loaded profile.

        :param mult: multiplier of the flows per second of all templates
        :param duration: seconds in which flows start; 0 or less: endless
        :param nc: drop open flows at the end instead of waiting for them
        :param block: no effect: the profile has started when the method returns
        :param latency_pps: rate of latency traffic during the run, as `start_latency`, between the
            first addresses of the profile's pools
        :param ipv6: use IPv6
        :param client_mask: bit mask of ports whose clients open flows: 1 is port 0, 4 is port 2
        :param e_duration: stop if no flow is established within this time, in seconds
        :param t_duration: longest wait for the end of flows, in seconds; without `duration`, the
            duration of the whole run
        :param dump_interval: interval in seconds of the samples for `get_flow_info`; default 1
        """
        self._require_session()
        multiplier(mult)
        for name, value in (
            ("duration", duration),
            ("e_duration", e_duration),
            ("t_duration", t_duration),
            ("dump_interval", dump_interval),
        ):
            check_seconds(name, value)
        if dump_interval and dump_interval < _INTERVAL_S_MIN:
            raise TRexArgumentError("dump_interval", dump_interval, f"{_INTERVAL_S_MIN} or more")
        validate_type("ipv6", ipv6, bool)
        check_bits("client_mask", client_mask)
        profiles = self._select_profiles(pid_input, start=True)
        ports = self._stateful_ports()
        for profile in profiles:
            if profile.document is None:
                raise TRexError(f"profile {profile.pid} is not loaded; call load_profile() first")
            if profile.is_running:
                raise TRexError(f"profile {profile.pid} is running; stop it first")
        if latency_pps:
            latency_rate("latency_pps", latency_pps)
            self._check_latency(0xFFFFFFFF)
            check_latency_addresses(*profiles[0].first_addresses())
        self._record_results()
        self._counters.begin([])
        is_first = not self._running()
        for profile in profiles:
            self._check_conflicts(profile)
            limit, drain_timeout = times(duration, nc, t_duration)
            before = {
                number: port.read_properties()["counters"] for number, port in self.links.items()
            }
            try:
                run = StatefulRun(
                    str(profile.document),
                    ports,
                    mult,
                    ipv6,
                    client_mask,
                    limit,
                    drain_timeout,
                    self._has_captures(),
                    profile.pid != DEFAULT_PROFILE_ID or any(self._ignored.values()),
                    dump_interval or _INTERVAL_S,
                    self._clients_off(),
                )
            except TRexError as error:
                raise TRexError(f"cannot start profile {profile.pid}: {error}") from error
            profile.begin(run)
            self._notify_waiting()
            self.last_error = ""
            self.last_profile_error.pop(profile.pid, None)
            self._begin_tunnels(profile.pid)
            for number, port in self.links.items():
                if port_name(number) in run.ports():
                    port.begin_stateful(profile.pid, run, before[number])
            if e_duration > 0:
                arguments = (run, e_duration)
                threading.Thread(target=stop_if_unestablished, args=arguments, daemon=True).start()
            self._log_event(f"profile {profile.pid} has started")
            self._log_event("Moved to state: Transmitting")
            if is_first:
                self._begin_rates()
            if latency_pps > 0 and profile is profiles[0]:
                addresses, offsets = profile.first_addresses()
                self._start_latency(latency_pps, addresses, offsets, 0xFFFFFFFF, run.is_done)

    def stop(
        self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE_ID, is_remove: bool = False
    ) -> None:
        """Stops profiles at once and drops open flows; `is_remove` also removes the profiles."""
        self._require_session()
        profiles = self._select_profiles(pid_input)
        for profile in profiles:
            if profile.is_running and profile.run is not None:
                profile.run.stop()
                self._log_event(f"profile {profile.pid} has stopped")
        for profile in profiles:
            while (block or is_remove) and profile.run is not None and not profile.run.wait():
                pass
        self._record_results()
        if is_remove:
            self.clear_profile(pid_input=[profile.pid for profile in profiles])

    def update(self, mult: float, pid_input: Pids = DEFAULT_PROFILE_ID) -> None:
        """Changes the multiplier of profiles; `*` selects all that run."""
        self._require_session()
        multiplier(mult)
        profiles = self._select_profiles(pid_input)
        if ALL_PROFILE_ID in parse_profile_ids(pid_input):
            profiles = [it for it in profiles if it.is_running]
            if not profiles:
                raise TRexError("no profile is running; call start() first")
        for profile in profiles:
            if not profile.is_running or profile.run is None:
                raise TRexError(f"profile {profile.pid} is not running; call start() first")
            profile.run.update(mult)

    def wait_on_traffic(self, timeout: float | None = None, profile_id: str | None = None) -> None:
        """Waits for the end of all profiles or of one.

        Raises `TRexTimeoutError` after `timeout` seconds.
        """
        self._require_session()
        deadline = None if timeout is None else time.monotonic() + timeout
        for profile in self._select_profiles(ALL_PROFILE_ID if profile_id is None else profile_id):
            while profile.run is not None and not profile.run.wait():
                if timeout is not None and deadline is not None and time.monotonic() > deadline:
                    raise TRexTimeoutError(timeout)
        self._record_results()

    # Counters.

    def get_stats(
        self,
        ports: Any = None,
        sync_now: bool = True,
        skip_zero: bool = True,
        pid_input: str = DEFAULT_PROFILE_ID,
        is_sum: bool = False,
    ) -> dict[Any, Any]:
        """Returns the counters of ports, their sum and totals; `traffic` of a profile, and
        `latency`.
        """
        self._require_session()
        self._record_results()
        stats = self._counters.ports(self._numbers(ports, of_all=True))
        stats["global"].update(self._global_flows())
        stats["traffic"] = self.get_traffic_stats(skip_zero, pid_input, is_sum)
        stats["latency"] = self.get_latency_stats(skip_zero)
        return stats

    def clear_stats(
        self,
        ports: Any = None,
        clear_global: bool = True,
        clear_xstats: bool = True,
        clear_traffic: bool = True,
        pid_input: Pids = DEFAULT_PROFILE_ID,
    ) -> None:
        """Clears the counters."""
        self._require_session()
        profiles = self._select_profiles(pid_input)
        self._counters.clear(self._numbers(ports, of_all=True))
        if clear_traffic:
            for profile in profiles:
                self.clear_traffic_stats(profile.pid)
        self.clear_traffic_stats(is_sum=True)

    # Internal methods.

    def _port_commands(self, number: int) -> PortCommands:
        return ASTFPort(self, number)

    def _stateful_ports(self) -> list[dict[str, Any] | None]:
        """Returns the ports by number for the engine."""
        found: list[dict[str, Any] | None] = []
        for number in range(min(max(self.links, default=-1) + 1, _PORTS_MAX)):
            port = self.links.get(number)
            if port is not None and not port.is_acquired:
                raise TRexError(f"port {number} is not acquired; call acquire() or reset()")
            found.append(None if port is None else self._stateful_port(port))
        return found

    def _stateful_port(self, port: Port) -> dict[str, Any]:
        if port.source != port.properties["mac"]:
            raise TRexError(
                f"port {port.number}: stateful profiles require the interface's own address: ip "
                "link set {port.interface} address {port.source}"
            )
        if port.layer.mode != "ethernet" and port.layer.resolved is None:
            # A next hop that did not answer before may answer now.
            self.resolve(port.number)
        return {
            "interface": port.interface,
            "destination": port.destination,
            "vlan": list(port.vlan),
            "gateways": self.topo_mngr.gateways_of(port),
            "tunnels": self._tunnels_of(port.number),
        }

    def _has_captures(self) -> bool:
        """Returns whether captures must see the frames of the profile."""
        return bool(self._captures) or any(port.is_service for port in self.links.values())

    def _check_conflicts(self, profile: Profile) -> None:
        """Raises if a running profile conflicts with this one."""
        for other in self._profiles_by_id.values():
            if other is profile or other.run is None or not other.is_running:
                continue
            for one in (profile.pid, other.pid):
                if one == DEFAULT_PROFILE_ID:
                    raise TRexError(
                        f"profile {other.pid} is running, and profile {DEFAULT_PROFILE_ID} has the "
                        "ports to itself: start both with a pid_input of their own"
                    )
            shared = sorted(profile.servers() & other.servers())
            if shared:
                kind, port = shared[0]
                raise TRexError(
                    f"profiles {other.pid} and {profile.pid} both have a server at {kind} port "
                    f"{port}: give one another port"
                )
        for number, found in self.links.items():
            if found.active:
                raise TRexError(f"port {number} is sending streams; call stop_stl() first")

    def _record_results(self) -> None:
        super()._record_results()
        for profile in list(self._profiles_by_id.values()):
            run = profile.run
            result = None if run is None or run.is_recorded else run.result()
            if run is None or result is None:
                continue
            run.is_recorded = True
            for number, port in self.links.items():
                report = run.port(number)
                if report is not None and port.stateful.get(profile.pid) is run:
                    port.record_received(report["rx"]["packets"], report["rx"]["bytes"])
                    port.end_receiving()
            if result["errors"]:
                self.last_error = "; ".join(dict.fromkeys(result["errors"]))
                self.last_profile_error[profile.pid] = self.last_error
            for warning in _warnings(result):
                self._log_event(f"profile {profile.pid}: {warning}", "warning")
            self._log_event(f"profile {profile.pid} has ended")
            if not any(it.is_running for it in self._profiles_by_id.values()):
                # TRex's wording, which scripts search for.
                self._log_event("Moved to state: Loaded")
                # A deleted interface has no rates.
                with suppress(TRexError):
                    self._counters.end()


def _warnings(result: dict[str, Any]) -> Iterable[str]:
    """Yields the errors and warnings of a run."""
    # Several threads can report the same error.
    yield from dict.fromkeys(result["errors"])
    yield from result["notes"]
    for port in result["ports"]:
        tx, dropped = port["tx"], port["rx"]["dropped"]
        # Notes report outages and the frames that were not sent during them.
        if tx["unsent"] and not port["outages"]:
            yield f"{port['interface']}: {tx['unsent']:,} frames were not sent"
        if tx["failed"]:
            yield f"{port['interface']} refused {tx['failed']:,} frames"
        if dropped:
            yield f"{port['interface']}: {dropped:,} frames were dropped: receive buffer full"
        tunnels = port.get("tunnels") or {}
        for cause, reason in (
            ("no_tunnel", "neither sender nor receiver has a tunnel"),
            ("too_long", "they are too long with a tunnel's headers"),
        ):
            if tunnels.get(cause):
                yield f"{port['interface']}: {tunnels[cause]:,} frames were not sent, for {reason}"
