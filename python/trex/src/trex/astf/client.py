"""`ASTFClient`: stateful profiles loaded, started, changed, counted."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Union

from trex.addresses import int2ip, int2mac, ip2int, is_valid_ipv4
from trex.arguments import listify, validate_type
from trex.astf.console import Console
from trex.astf.counters import SECTIONS, errors_of, section_of
from trex.astf.errors import ASTFErrorBadTG
from trex.astf.flow_info import flows_of
from trex.astf.ignored import ignored
from trex.astf.latency import RATE_MAX, LatencyPort, LatencyTraffic
from trex.astf.loaded import STATE_NAMES, Profile, sum_of
from trex.astf.profile import ASTFProfile, ASTFProfileLight
from trex.astf.running import StatefulRun, end_unestablished, port_name, times
from trex.astf.switching import Switching
from trex.astf.topologies import ASTFTopologyManager
from trex.astf.tunnelling import Tunnelling
from trex.client.client import TRexClient
from trex.client.counters import Rates
from trex.client.events import Event
from trex.client.port import Port
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError
from trex.stl.client import STLClient

DEFAULT_PROFILE_ID = "_"
ALL_PROFILE_ID = "*"
_PORTS_MAX = 32
_IPV4_MASK = 0xFFFFFFFF
# How often the flow of each side is looked at that is followed.
_INTERVAL_S = 1.0
# How often a state that is waited for is looked at.
_LOOK_S = 0.02

Pids = Union[str, list[str]]


class ASTFClient(Console, Tunnelling, Switching, STLClient):
    """TRex's advanced stateful client, with the engine in this process.

    Ports are `STLClient`'s: the environment names their interfaces. Clients are on the even ports,
    servers on the odd ones; `dummy` in a trex_cfg.yaml leaves one of them to others.
    """

    STATE_IDLE, STATE_ASTF_LOADED, STATE_ASTF_PARSE, STATE_ASTF_BUILD = range(4)
    STATE_TX, STATE_ASTF_CLEANUP, STATE_ASTF_DELETE = range(4, 7)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._profiles_by_id = {DEFAULT_PROFILE_ID: Profile(DEFAULT_PROFILE_ID)}
        self._rates_of_sum = Rates()
        self._latency: LatencyTraffic | None = None
        self.topo_mngr = ASTFTopologyManager(self)
        self._ignored: dict[str, list[int]] = {"macs": [], "ips": []}

    def get_mode(self) -> str:
        """The mode."""
        return "ASTF"

    # The session.

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        """Ends the session, and what is running; without `stop_traffic` that goes on for now."""
        if self._is_connected and stop_traffic:
            self.stop(pid_input=ALL_PROFILE_ID)
            self.stop_latency()
        if self._is_connected:
            self.topo_mngr.clear()
        super().disconnect(stop_traffic, release_ports)

    def reset(self, restart: bool = False) -> None:  # type: ignore[override]
        """Takes all ports, ends what is running, forgets profiles and counters."""
        self._need_session()
        self.stop(pid_input=ALL_PROFILE_ID)
        self.stop_latency()
        self._latency = None
        self.clear_profile(pid_input=ALL_PROFILE_ID)
        super().reset(restart=restart)

    def acquire(self, force: bool = False) -> None:  # type: ignore[override]
        """Takes all ports; those of a process are its own."""
        super().acquire(None, force)

    def release(self, force: bool = False) -> None:  # type: ignore[override]
        """Gives all ports back."""
        super().release(None)

    def sync(self) -> dict[str, int]:
        """The state of each profile, as a number."""
        self._need_session()
        return self.astf_profile_state

    def set_service_mode(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Notes that ports are in service mode: what is started then can be captured."""
        self._need_session()
        validate_type("enabled", enabled, bool)
        validate_type("filtered", filtered, bool)
        for number in self._owned(ports):
            port = self.ports[number]
            if not enabled and port.capture_port is not None:
                raise TRexError(f"port {number} has a capture port: stop_capture_port() first")
            port.is_service, port.service_filtered = enabled, enabled and filtered

    def start_capture(
        self, tx_ports: Any = None, rx_ports: Any = None, *options: Any, **named: Any
    ) -> dict[str, Any]:
        """As `STLClient` has it, in service mode or out of it.

        Raises for what is on its way already where it cannot be seen.
        """
        self._need_session()
        rx, tx = ([] if it is None else listify(it) for it in (rx_ports, tx_ports))
        for number in self._owned(rx):
            port = self.ports[number]
            if self._is_sent_to(port) and not port.is_service:
                raise TRexError(
                    f"port {number}: streams are sent there, and counted before they can be seen: "
                    "stop_stl() first, and start them after this"
                )
        for number in self._owned(list(dict.fromkeys([*tx, *rx]))):
            for pid, run in self.ports[number].stateful.items():
                if not run.is_done() and not run.is_visible:
                    raise TRexError(
                        f"port {number}: profile {pid} is running past the kernel's taps: stop it, "
                        "and start it after this"
                    )
        return super().start_capture(tx_ports, rx_ports, *options, **named)

    # Events.

    def has_events(self) -> bool:
        """Whether something happened that was not taken."""
        self._reap()
        return super().has_events()

    def pop_event(self) -> Event | None:
        """Takes the oldest event."""
        self._reap()
        return super().pop_event()

    def get_events(self, ev_type_filter: Any = None) -> list[Event]:
        """The events, or those of a type (`info`, `warning`) or several."""
        self._reap()
        return super().get_events(ev_type_filter)

    # Profiles.

    def load_profile(
        self, profile: Any, tunables: Any = None, pid_input: str = DEFAULT_PROFILE_ID
    ) -> None:
        """Loads a profile: an `ASTFProfile`, a file in Python or JSON, or its document.

        `tunables` are keyword arguments of the profile, or a list of its command line.
        """
        self._need_session()
        validate_type("pid_input", pid_input, str)
        known = self._profiles_by_id.get(pid_input)
        if known is not None and known.is_running:
            raise TRexError(f"profile {pid_input} is running: stop it first")
        if isinstance(profile, dict):
            profile = ASTFProfileLight(profile)
        elif not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
            validate_type("profile", profile, str)
            named = {"tunables": tunables} if isinstance(tunables, list) else tunables or {}
            try:
                profile = ASTFProfile.load(profile, **named)
            except Exception as error:
                raise TRexError(f"cannot load profile: {error}") from error
        if profile is None:
            # It printed its help.
            return
        document = profile.to_json()
        loaded = self._profiles_by_id.setdefault(pid_input, Profile(pid_input))
        loaded.document = profile.to_json_str()
        loaded.groups = list(document.get("tg_names") or [])
        self._note(f"profile {pid_input} is loaded")

    def clear_profile(self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE_ID) -> None:
        """Forgets profiles; one that is running stays."""
        self._need_session()
        for profile in self._chosen(pid_input):
            if profile.is_running:
                self._note(f"profile {profile.pid} is running, and stays", "warning")
                continue
            self._reap()
            del self._profiles_by_id[profile.pid]
        self._profiles_by_id.setdefault(DEFAULT_PROFILE_ID, Profile(DEFAULT_PROFILE_ID))

    def get_profiles(self, profiles_in_ports: bool = False) -> list[Any]:
        """The identifiers of all profiles, and with `profiles_in_ports` those of streams."""
        self._need_session()
        found: list[Any] = list(self._profiles_by_id)
        if profiles_in_ports:
            found.append({number: list(port.profiles) for number, port in self.ports.items()})
        return found

    @property
    def astf_profile_state(self) -> dict[str, int]:
        """The state of each profile, as a number."""
        return {pid: profile.state for pid, profile in self._profiles_by_id.items()}

    def get_profiles_state(self) -> dict[str, str]:
        """What each profile is doing: `STATE_IDLE`, `STATE_ASTF_LOADED` or `STATE_TX`."""
        return {pid: STATE_NAMES[profile.state] for pid, profile in self._profiles_by_id.items()}

    @property
    def state(self) -> int:
        """What the profiles are doing together: transmitting where one is."""
        return max((profile.state for profile in self._profiles_by_id.values()), default=0)

    def wait_for_profile_state(
        self, profile_id: str, wait_state: int, timeout: float | None = None
    ) -> None:
        """Waits until a profile is in a state, `STATE_TX` or another. Raises `TRexTimeoutError`
        after `timeout` seconds."""
        self._need_session()
        (profile,) = self._chosen(profile_id)
        deadline = None if timeout is None else time.monotonic() + timeout
        while profile.state != wait_state:
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise TRexTimeoutError(timeout)
            if profile.run is not None and profile.is_running:
                profile.run.wait(_LOOK_S)
            else:
                # Only another thread can start it.
                time.sleep(_LOOK_S)

    def wait_for_steady(self, profile_id: str | None = None) -> int:
        """The state of a profile, or of all: none is ever on its way from one to another."""
        return self.state if profile_id is None else self._chosen(profile_id)[0].state

    def validate_profile_id_input(
        self, pid_input: Pids = DEFAULT_PROFILE_ID, start: bool = False
    ) -> list[str]:
        """The identifiers that are named, in a list or a text; `*` is all of them."""
        return [profile.pid for profile in self._chosen(pid_input, start)]

    # Gateways, and who is left alone.

    def topo_load(self, topology: Any, tunables: Any = None) -> None:
        """Loads a topology: an `ASTFTopology`, or a file in Python, JSON or YAML.

        `tunables` are arguments of `get_topo()` of a file in Python, by their names.
        """
        self._need_session()
        self.topo_mngr.load(topology, **(tunables or {}))

    def topo_clear(self) -> None:
        """Forgets the topology: what is started then goes where the ports say."""
        self._need_session()
        self.topo_mngr.clear()

    def topo_resolve(self, ports: Any = None) -> None:
        """Asks the topology's gateways, of ports or of all, for their Ethernet addresses. What is
        started once all are known goes by them. Raises where one does not answer."""
        self._need_session()
        self.topo_mngr.resolve(ports)

    def topo_show(self, ports: Any = None) -> None:
        """Prints the topology."""
        self._need_session()
        self.topo_mngr.show(ports)

    def topo_save(self, filename: str) -> None:
        """Writes the topology into a new file: `.py`, `.json` or `.yaml`."""
        self._need_session()
        self.topo_mngr.save(filename)

    def get_ignored_macs_ips(self, to_str: bool = True) -> dict[str, list[Any]]:
        """The addresses to which no resets are sent: `ips` and `macs`, as text or as numbers."""
        self._need_session()
        macs, ips = self._ignored["macs"], self._ignored["ips"]
        if to_str:
            return {"ips": [int2ip(ip) for ip in ips], "macs": [int2mac(mac) for mac in macs]}
        return {"ips": list(ips), "macs": list(macs)}

    def set_ignored_macs_ips(
        self, mac_list: Any = None, ip_list: Any = None, is_str: bool = True
    ) -> None:
        """Sends no resets to these addresses; there may be others than this on the ports.

        What belongs to no flow of a profile that is started then is answered to nobody, whoever
        sends it, as long as the lists are not empty.
        """
        self._need_session()
        going = [it.pid for it in self._profiles_by_id.values() if it.is_running]
        if going:
            raise TRexError(f"profile {going[0]} is running: stop it first")
        self._ignored = ignored(mac_list, ip_list, is_str)

    # Running.

    def start(  # type: ignore[override]
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
        """Starts what is loaded.

        :param mult: what the flows a second of all templates are multiplied by
        :param duration: seconds after which no flow is made, -1 without end
        :param nc: drop what is open then, instead of waiting for its end
        :param block: no effect: it has started when this returns
        :param latency_pps: as `start_latency`, between the first addresses of the profile's pools,
            as long as it runs
        :param ipv6: over IPv6
        :param client_mask: ports whose clients make flows, a bit for each: 1 is port 0, 4 is port 2
        :param e_duration: all ends if no flow was established within so many seconds
        :param t_duration: wait for the end of flows for so many seconds at most; without a
            `duration` all ends after so many
        :param dump_interval: seconds from look to look at the flow of each side that
            `get_flow_info` tells of; 1 where nothing is said
        """
        self._need_session()
        validate_type("mult", mult, (int, float))
        validate_type("duration", duration, (int, float))
        if mult <= 0:
            raise TRexArgumentError("mult", mult, "more than 0")
        profiles = self._chosen(pid_input, start=True)
        ports = self._stateful_ports()
        if latency_pps:
            _latency_rate(latency_pps)
            self._check_latency(0xFFFFFFFF)
        for profile in profiles:
            if profile.document is None:
                raise TRexError(f"profile {profile.pid} is not loaded: load_profile() first")
            if profile.is_running:
                raise TRexError(f"profile {profile.pid} is running: stop it first")
        self._reap()
        self._counters.begin([])
        for profile in profiles:
            self._check_beside(profile)
            limit, linger = times(duration, nc, t_duration)
            before = {number: port.look()["counters"] for number, port in self.ports.items()}
            try:
                run = StatefulRun(
                    str(profile.document),
                    ports,
                    mult,
                    ipv6,
                    client_mask,
                    limit,
                    linger,
                    self._is_heard(),
                    profile.pid != DEFAULT_PROFILE_ID or any(self._ignored.values()),
                    dump_interval or _INTERVAL_S,
                    self._clients_off(),
                )
            except TRexError as error:
                raise TRexError(f"cannot start profile {profile.pid}: {error}") from error
            profile.begin(run)
            self._begin_tunnels(profile.pid)
            for number, port in self.ports.items():
                if port_name(number) in run.ports():
                    port.begin_stateful(profile.pid, run, before[number])
            if e_duration > 0:
                arguments = (run, e_duration)
                threading.Thread(target=end_unestablished, args=arguments, daemon=True).start()
            self._note(f"profile {profile.pid} has started")
            self._note("Moved to state: Transmitting")
            if latency_pps > 0 and profile is profiles[0]:
                addresses, offsets = profile.first_addresses()
                self._start_latency(latency_pps, addresses, offsets, 0xFFFFFFFF, run.is_done)

    def stop(  # type: ignore[override]
        self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE_ID, is_remove: bool = False
    ) -> None:
        """Ends profiles at once, and drops what is open; `is_remove` forgets them then."""
        self._need_session()
        profiles = self._chosen(pid_input)
        for profile in profiles:
            if profile.is_running and profile.run is not None:
                profile.run.stop()
                self._note(f"profile {profile.pid} has stopped")
        for profile in profiles:
            while (block or is_remove) and profile.run is not None and not profile.run.wait():
                pass
        self._reap()
        if is_remove:
            self.clear_profile(pid_input=[profile.pid for profile in profiles])

    def update(self, mult: float, pid_input: Pids = DEFAULT_PROFILE_ID) -> None:  # type: ignore[override]
        """Makes so many times the profiles' flows a second from now on."""
        self._need_session()
        validate_type("mult", mult, (int, float))
        if mult <= 0:
            raise TRexArgumentError("mult", mult, "more than 0")
        for profile in self._chosen(pid_input):
            if not profile.is_running or profile.run is None:
                raise TRexError(f"profile {profile.pid} is not running: start() first")
            profile.run.update(mult)

    def wait_on_traffic(  # type: ignore[override]
        self, timeout: float | None = None, profile_id: str | None = None
    ) -> None:
        """Waits until profiles have ended, all or one.

        Raises `TRexTimeoutError` after `timeout` seconds.
        """
        self._need_session()
        deadline = None if timeout is None else time.monotonic() + timeout
        for profile in self._chosen(ALL_PROFILE_ID if profile_id is None else profile_id):
            while profile.run is not None and not profile.run.wait():
                if timeout is not None and deadline is not None and time.monotonic() > deadline:
                    raise TRexTimeoutError(timeout)
        self._reap()

    wait_on_traffic_stl = TRexClient.wait_on_traffic

    # Counters.

    def get_stats(  # type: ignore[override]
        self,
        ports: Any = None,
        sync_now: bool = True,
        skip_zero: bool = True,
        pid_input: str = DEFAULT_PROFILE_ID,
        is_sum: bool = False,
    ) -> dict[Any, Any]:
        """Counters of ports, their sum, of the whole; `traffic` of a profile, and `latency`."""
        self._need_session()
        self._reap()
        stats = self._counters.ports(self._numbers(ports, of_all=True))
        traffic = self.get_traffic_stats(skip_zero, pid_input, is_sum)
        clients = traffic["client"]
        stats["global"].update(
            active_flows=clients["m_active_flows"],
            open_flows=clients.get("tcps_connattempt", 0) + clients.get("udps_connects", 0),
        )
        stats["traffic"] = traffic
        stats["latency"] = self.get_latency_stats(skip_zero)
        return stats

    def clear_stats(  # type: ignore[override]
        self,
        ports: Any = None,
        clear_global: bool = True,
        clear_xstats: bool = True,
        clear_traffic: bool = True,
        pid_input: Pids = DEFAULT_PROFILE_ID,
    ) -> None:
        """Counts from now on."""
        self._need_session()
        self._counters.clear(self._numbers(ports, of_all=True))
        if clear_traffic:
            for profile in self._chosen(pid_input):
                self.clear_traffic_stats(profile.pid)
        self.clear_traffic_stats(is_sum=True)

    def get_traffic_stats(
        self, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> dict[str, dict[str, float]]:
        """What clients and servers of a profile have counted since it was started or cleared.

        `client` and `server`, each by TRex's names; without those that are 0, and with `is_sum` of
        all profiles together.
        """
        self._need_session()
        self._reap()
        if is_sum:
            profiles = list(self._profiles_by_id.values())
            base, rates = sum_of(it.base_of_sum for it in profiles), self._rates_of_sum
        else:
            profiles = self._chosen(pid_input)[:1]
            base, rates = profiles[0].base, profiles[0].rates
        counts = sum_of(profile.counts() for profile in profiles)
        runs = [profile.run for profile in profiles if profile.run is not None]
        going = [profile.run for profile in profiles if profile.is_running and profile.run]
        since = min((run.started for run in going), default=0.0)
        found = {
            side: section_of(
                counts[side],
                base.get(side, {}),
                rates if going else None,
                side,
                since,
                skip_zero,
            )
            for side in SECTIONS
        }
        elapsed = max((run.elapsed() for run in runs), default=0.0)
        for section in found.values():
            if elapsed or not skip_zero:
                section["m_traffic_duration"] = elapsed
        return found

    def clear_traffic_stats(
        self, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> None:
        """Counts from now on."""
        self._need_session()
        if is_sum:
            for profile in self._profiles_by_id.values():
                profile.base_of_sum = profile.counts()
            return
        for profile in self._chosen(pid_input):
            profile.base = profile.counts()

    def is_traffic_stats_error(self, stats: Any) -> tuple[bool, dict[str, dict[str, str]]]:
        """Whether `get_traffic_stats` told of something wrong, and of what, by section."""
        return errors_of(stats)

    def get_tg_names(self, pid_input: str = DEFAULT_PROFILE_ID) -> list[str]:
        """The template groups of a profile."""
        self._need_session()
        return list(self._chosen(pid_input)[0].groups)

    def get_traffic_tg_stats(
        self, tg_names: Any, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID
    ) -> dict[str, dict[str, dict[str, float]]]:
        """What template groups have counted since their profile was started, by their names.

        Raises `ASTFErrorBadTG` where there is no such group.
        """
        self._need_session()
        validate_type("tg_names", tg_names, (list, str))
        profile = self._chosen(pid_input)[0]
        names = listify(tg_names)
        known = ", ".join(profile.groups) or "none"
        if not names:
            raise ASTFErrorBadTG(f"tg_names is empty; groups of profile {profile.pid}: {known}")
        wrong = [name for name in names if name not in profile.groups]
        if wrong:
            raise ASTFErrorBadTG(
                f"profile {profile.pid} has no template group {wrong[0]!r}; its groups: {known}"
            )
        rates = profile.rates if profile.is_running else None
        since = 0.0 if profile.run is None else profile.run.started
        found: dict[str, dict[str, dict[str, float]]] = {}
        counts = profile.group_counts()
        for name in names:
            found[name] = {
                side: section_of(counts[name, side], {}, rates, (name, side), since, skip_zero)
                for side in SECTIONS
            }
        return found

    def get_flow_info(
        self, profile_id: str = DEFAULT_PROFILE_ID, duration: float = 0, index: int | None = None
    ) -> dict[str, Any]:
        """What connections were seen to be: of each side of a pair of ports one at a time.

        By their ends (`16.0.0.1:1024-48.0.0.1:80`) lists of `origin`, `state`, `options`, `rtt`,
        `rto`, `snd_cwnd`, `snd_ssthresh` and so on, as TRex has them, but for `rcv_ooopack`, which
        is not kept of single flows: the last look of each, or all that are made
        within `duration` seconds. `index`: all from the look of this number on, and as `next_index`
        the number that comes then.
        """
        self._need_session()
        (profile,) = self._chosen(profile_id)
        run, first = profile.run, index or 0
        if run is None:
            return {} if index is None else {"next_index": first}
        least = int(run.elapsed() / run.interval) if index is None else first
        deadline = time.monotonic() + duration
        while time.monotonic() < deadline and not run.wait():
            pass
        seen = list(flows_of(run.ports(with_templates=True).values(), run.interval))
        found: dict[str, Any] = {}
        for ends, number, info in seen:
            if index is None and not duration:
                found[ends] = [info]
            elif number >= least:
                found.setdefault(ends, []).append(info)
        if index is not None:
            found["next_index"] = max((number + 1 for _, number, _ in seen), default=first)
        return found

    def get_traffic_distribution(
        self, start_ip: str, end_ip: str, dual_ip: str, seq_split: bool
    ) -> dict[int, dict[int, dict[str, str]]]:
        """The addresses of a pool that clients of each port have, by port and core.

        A port has one thread, core 0 here, which has them all; `seq_split` changes nothing.
        """
        self._need_session()
        numbers = []
        for name, address in (("start_ip", start_ip), ("end_ip", end_ip), ("dual_ip", dual_ip)):
            if not is_valid_ipv4(address):
                raise TRexArgumentError(name, address, "an address of IPv4")
            numbers.append(ip2int(address))
        start, end, dual = numbers
        return {
            number: {
                0: {
                    "start": int2ip((start + number // 2 * dual) & _IPV4_MASK),
                    "end": int2ip((end + number // 2 * dual) & _IPV4_MASK),
                }
            }
            for number in self.ports
            if number % 2 == 0
        }

    # Delays.

    def start_latency(
        self,
        mult: float = 1,
        src_ipv4: str = "16.0.0.1",
        dst_ipv4: str = "48.0.0.1",
        ports_mask: int = 0x7FFFFFFF,
        dual_ipv4: str = "1.0.0.0",
        port_ipv4_offset_s: str | None = None,
    ) -> None:
        """Sends ICMP from ports to each other, with or without a profile that is running.

        :param mult: packets a second from each port
        :param src_ipv4: the address of port 0
        :param dst_ipv4: the address of port 1
        :param ports_mask: a bit for each port
        :param dual_ipv4: what is added to the addresses for each further pair of ports
        :param port_ipv4_offset_s: the same for the odd ports, where it is another
        """
        self._need_session()
        offsets = (dual_ipv4, port_ipv4_offset_s or dual_ipv4)
        self._start_latency(mult, (src_ipv4, dst_ipv4), offsets, ports_mask, None)

    def update_latency(self, mult: float = 1) -> None:
        """Sends so many packets a second from each port from now on."""
        self._need_session()
        if self._latency is None or not self._latency.is_active:
            raise TRexError("no latency traffic is sent: start_latency() first")
        self._latency.set_rate(_latency_rate(mult))

    def stop_latency(self) -> None:
        """Ends it; what was measured stays."""
        self._need_session()
        if self._latency is not None:
            self._latency.stop()

    def get_latency_stats(self, skip_zero: bool = True) -> dict[int, dict[str, Any]]:
        """What was measured of packets between ports, by the port where they arrive.

        `hist`: delays in microseconds, one way, from when a packet was given to the kernel until
        its receiving end had it; `stats`: counters and `m_jitter` (RFC 3550).
        """
        self._need_session()
        return {} if self._latency is None else self._latency.told()

    # For the commands above.

    def _chosen(self, pid_input: Pids, start: bool = False) -> list[Profile]:
        names = pid_input.split() if isinstance(pid_input, str) else pid_input
        if not isinstance(names, list) or not names:
            raise TRexArgumentError("pid_input", pid_input, "the identifier of a profile")
        if ALL_PROFILE_ID in names:
            if start:
                raise TRexArgumentError("pid_input", pid_input, "identifiers to start, by name")
            return list(self._profiles_by_id.values())
        wrong = [name for name in names if name not in self._profiles_by_id]
        if wrong:
            known = ", ".join(self._profiles_by_id)
            raise TRexError(f"there is no profile {wrong[0]}; there are: {known}")
        return [self._profiles_by_id[name] for name in dict.fromkeys(names)]

    def _start_latency(
        self,
        pps: float,
        addresses: tuple[str, str],
        offsets: tuple[str, str],
        mask: int,
        is_over: Callable[[], bool] | None,
    ) -> None:
        rate = _latency_rate(pps)
        named = zip(
            ("src_ipv4", "dst_ipv4", "dual_ipv4", "port_ipv4_offset_s"), addresses + offsets
        )
        for name, address in named:
            if not is_valid_ipv4(address):
                raise TRexArgumentError(name, address, "an address of IPv4")
        ends: list[LatencyPort] = []
        for number in self._owned(self._check_latency(mask)):
            port = self.ports[number]
            own, other = (
                socket.inet_aton(
                    int2ip((ip2int(address) + number // 2 * ip2int(offset)) & _IPV4_MASK)
                )
                for address, offset in zip(addresses, offsets)
            )
            told = (own, other) if number % 2 == 0 else (other, own)
            macs = (port.source, port.destination or "ff:ff:ff:ff:ff:ff")
            ends.append(LatencyPort(number, port.interface, macs, port.vlan, told))
        for end in ends:
            self.ports[end.number].begin_latency(end)
        self._latency = LatencyTraffic(ends, rate, is_over)

    def _check_latency(self, mask: int) -> list[int]:
        """The ports that send latency traffic. Raises where it is sent already, or none can."""
        if self._latency is not None and self._latency.is_active:
            raise TRexError("latency traffic is sent already: stop_latency() first")
        both = [it for it in self.ports if it ^ 1 in self.ports and mask >> it & 1]
        if not both:
            raise TRexError("latency traffic needs a pair of ports: 0 and 1, or 2 and 3, and so on")
        return both

    def _stateful_ports(self) -> list[dict[str, Any] | None]:
        """The ports by number, as the engine takes them."""
        found: list[dict[str, Any] | None] = []
        for number in range(min(max(self.ports, default=-1) + 1, _PORTS_MAX)):
            port = self.ports.get(number)
            if port is not None and not port.is_acquired:
                raise TRexError(f"port {number} is not acquired: acquire() or reset() takes it")
            found.append(None if port is None else self._as_stateful(port))
        return found

    def _as_stateful(self, port: Port) -> dict[str, Any]:
        if port.source != port.facts["mac"]:
            raise TRexError(
                f"port {port.number}: stateful profiles send from the interface's own address: ip "
                f"link set {port.interface} address {port.source}"
            )
        if port.layer.mode != "ethernet" and port.layer.resolved is None:
            raise TRexError(f"port {port.number} has no resolved next hop: resolve() asks for it")
        return {
            "interface": port.interface,
            "destination": port.destination,
            "vlan": list(port.vlan),
            "gateways": self.topo_mngr.gateways_of(port),
            "tunnels": self._tunnels_of(port.number),
        }

    def _is_service_req(self) -> bool:
        return False

    def _is_heard(self) -> bool:
        """Whether others are to hear what is sent and what arrives."""
        return bool(self._captures) or any(port.is_service for port in self.ports.values())

    def _check_beside(self, profile: Profile) -> None:
        """Raises where what is running leaves no room for a profile."""
        for other in self._profiles_by_id.values():
            if other is profile or other.run is None or not other.is_running:
                continue
            for one in (profile.pid, other.pid):
                if one == DEFAULT_PROFILE_ID:
                    raise TRexError(
                        f"profile {other.pid} is running, and profile {DEFAULT_PROFILE_ID} has the "
                        "ports to itself: start both with a pid_input of their own"
                    )
            both = sorted(profile.servers() & other.servers())
            if both:
                kind, port = both[0]
                raise TRexError(
                    f"profiles {other.pid} and {profile.pid} both have a server at {kind} port "
                    f"{port}: give one another port"
                )
        for number, found in self.ports.items():
            if found.active:
                raise TRexError(f"port {number} is sending streams: stop_stl() first")

    def _reap(self) -> None:
        super()._reap()
        if self._latency is not None and self._latency.failure is not None:
            self._note(f"latency traffic has ended: {self._latency.failure}", "warning")
            self._latency.failure = None
        for profile in list(self._profiles_by_id.values()):
            run = profile.run
            result = None if run is None or run.is_told else run.result()
            if run is None or result is None:
                continue
            run.is_told = True
            for number, port in self.ports.items():
                counted = run.port(number)
                if counted is not None and port.stateful.get(profile.pid) is run:
                    port.note_received(counted["received"], counted["received_bytes"])
                    port.end_receiving()
            for warning in _warnings(result):
                self._note(f"profile {profile.pid}: {warning}", "warning")
            self._note(f"profile {profile.pid} has ended")
            if not any(it.is_running for it in self._profiles_by_id.values()):
                # In TRex's words, which scripts look for.
                self._note("Moved to state: Loaded")


def _latency_rate(pps: float) -> float:
    validate_type("mult", pps, (int, float))
    if not 0 < pps <= RATE_MAX:
        raise TRexArgumentError("mult", pps, f"packets a second, up to {RATE_MAX}")
    return float(pps)


def _warnings(result: dict[str, Any]) -> Iterable[str]:
    """What went wrong."""
    yield from result["errors"]
    for port in result["ports"]:
        if port["failed"]:
            yield f"{port['interface']} refused {port['failed']:,} frames"
        if port["missed"]:
            yield f"{port['interface']}: {port['missed']:,} frames were missed"
