"""Streams on ports: add, start, change and count."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from trex import erf_file
from trex.arguments import listify, validate_type
from trex.client import port_map
from trex.client.client import TRexClient
from trex.client.multiplier import Multiplier
from trex.client.packet_buffer import with_addresses
from trex.client.port import Port, Profile
from trex.client.profile_id import ALL_PROFILES
from trex.client.rc import RC, RC_OK
from trex.client.transmission import Transmission, max_load
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError
from trex.stl.modes import STLTXCont, STLTXSingleBurst
from trex.stl.packet_builder import STLPktBuilder
from trex.stl.profile import STLProfile
from trex.stl.streams import STLStream, STLStreamDstMAC_PKT

# Maximum share of the line rate for a start without `force`: TRex's tolerance.
_LINE_MAX = 1.0001
# Rate error in ppm that causes a warning.
_RATE_ERROR_PPM_MAX = 10_000
_PUSHED = "pushed"
_STATES = ("active", "transmitting", "paused", "streams", "all")


class StreamCommands(TRexClient):
    """Commands for streams of ports.

    Both clients share them, under the names that distinguish stateless from stateful.
    """

    CORE_MASK_SPLIT = 1
    CORE_MASK_PIN = 2
    CORE_MASK_SINGLE = 3

    def _reset_streams(self, ports: Any, restart: bool) -> list[int]:
        """Acquires ports, stops their traffic and removes their streams. Returns their numbers."""
        self._require_session()
        if restart:
            raise TRexError("restart: not supported; use ip link set INTERFACE down")
        numbers = self._numbers(ports, of_all=True)
        self._acquire_ports(numbers, force=True)
        self.stop_stl([f"{number}.{ALL_PROFILES}" for number in numbers])
        self.remove_all_captures()
        for number in numbers:
            port = self.links[number]
            for profile in port.profiles.values():
                port.drop_transmission(profile)
            port.profiles.clear()
            port.end_sockets()
            port.is_service = port.service_filtered = False
            self._set_rx_mode(number, "promiscuous", False)
        return numbers

    # Streams.

    def add_streams(self, streams: Any, ports: Any = None) -> Any:
        """Adds a stream, a list of streams or a profile. Returns the IDs, or the ID of a single
        stream.
        """
        self._require_session()
        if isinstance(streams, STLProfile):
            streams = streams.get_streams()
        streams = listify(streams)
        if not all(isinstance(stream, STLStream) for stream in streams):
            raise TRexArgumentError("streams", streams, "an STLStream, a list of them, a profile")
        numbers = []
        for port, profile in self._idle_profiles(ports):
            numbers += [port.add(profile.name, stream) for stream in streams]
        return numbers[0] if len(numbers) == 1 else numbers

    def add_profile(self, filename: str, ports: Any = None, **kwargs: Any) -> Any:
        """Adds the streams of a profile file. Other arguments are passed to the profile."""
        validate_type("filename", filename, str)
        profile = STLProfile.load(filename, **kwargs)
        return [] if profile is None else self.add_streams(profile, ports)

    def remove_streams(self, stream_id_list: Any, ports: Any = None) -> None:
        """Removes streams by ID."""
        self._require_session()
        numbers = listify(stream_id_list)
        if not numbers:
            raise TRexArgumentError("stream_id_list", stream_id_list, "numbers of streams")
        for number in numbers:
            validate_type("stream_id", number, int)
        for port, profile in self._idle_profiles(ports):
            for number in numbers:
                if profile.streams.pop(number, None) is None:
                    raise TRexError(f"port {port.number} has no stream {number}")

    def remove_all_streams(self, ports: Any = None) -> None:
        """Removes all streams of ports."""
        self._require_session()
        for _, profile in self._idle_profiles(ports):
            profile.streams.clear()

    def get_profiles_with_state(self, state: str) -> list[str]:
        """Returns profiles as `NUMBER.NAME`: `active`, `transmitting`, `paused`, with `streams`,
        `all`.
        """
        if state not in _STATES:
            raise TRexArgumentError("state", state, ", ".join(_STATES))
        found = []
        for number in self.get_acquired_ports():
            for profile in self.links[number].profiles.values():
                matches = {
                    "active": profile.is_active,
                    "transmitting": profile.is_active and not profile.is_paused,
                    "paused": profile.is_paused,
                    "streams": bool(profile.streams),
                    "all": True,
                }
                if matches[state]:
                    found.append(f"{number}.{profile.name}")
        return found

    def validate_profile_input(self, input_profiles: Iterable[Any]) -> list[str]:
        """Returns profiles as `NUMBER.NAME`; `NUMBER.*` selects all of a port."""
        return [
            f"{port.number}.{profile.name}"
            for port, profile in self._profiles(list(input_profiles))
        ]

    def clear_stl_profiles(self, ports: Any = None) -> None:
        """Stops and removes all streams of ports."""
        numbers = self.get_all_ports() if ports is None else self._numbers(ports)
        profiles = [f"{number}.{ALL_PROFILES}" for number in numbers]
        self.stop_stl(profiles)
        self.remove_all_streams(profiles)

    # Traffic.

    def start_stl(
        self,
        ports: Any = None,
        mult: str = "1",
        force: bool = False,
        duration: float = -1,
        total: bool = False,
        core_mask: Any = None,
        synchronized: bool = False,
    ) -> RC:
        """Starts the streams of ports. `mult` is a factor, or the total load of each port.

        :param mult: `"2"`, `"50%"` of the line, `"10kpps"`, `"1gbps"` (frames with FCS),
            `"1gbpsl1"`
        :param force: stop running traffic first; start also in service mode, without a carrier, or
            above the line rate
        :param duration: seconds, -1 for endless
        :param total: divide `mult` among the ports
        :param core_mask: checked, without effect, because each port has its own thread
        :param synchronized: checked for pairs of ports; ports always start together
        """
        return self._start(ports, mult, force, duration, total, core_mask, synchronized)

    def _start(
        self,
        ports: Any,
        mult: str = "1",
        force: bool = False,
        duration: float = -1,
        total: bool = False,
        core_mask: Any = None,
        synchronized: bool = False,
        keeps_schedule: bool = False,
    ) -> RC:
        self._require_session()
        validate_type("mult", mult, str)
        validate_type("force", force, bool)
        validate_type("duration", duration, (int, float))
        validate_type("total", total, bool)
        profiles = self._profiles(ports)
        self._check_core_mask(core_mask, len(profiles))
        multiplier = Multiplier.parse(mult)
        if total:
            multiplier = multiplier.shared(len(profiles))
        limit = None if duration < 0 else float(duration)
        if synchronized:
            self._check_pairs([port.number for port, _ in profiles])
        for port, profile in profiles:
            self._check_start(port, profile, multiplier, force)
        for _, profile in profiles:
            if profile.is_active and profile.transmission is not None:
                profile.transmission.stop()
        self._record_results()
        self._collect_group_counters()
        self._counters.begin(
            stream.get_pg_id() for _, profile in profiles for stream in profile.streams.values()
        )
        started: list[tuple[Port, Profile]] = []
        try:
            for port, profile in profiles:
                self._start_transmission(port, profile, multiplier, limit, keeps_schedule)
                started.append((port, profile))
            for _, profile in started:
                if profile.transmission is not None:
                    profile.transmission.wait_started()
        except TRexError as error:
            for _, profile in started:
                if profile.transmission is not None:
                    profile.transmission.stop()
                    profile.transmission = None
            raise TRexError(f"cannot start: {error}") from error
        for port, profile in started:
            if profile.transmission is not None:
                self._log_state(port, profile.transmission, "has started")
        return RC_OK()

    def stop_stl(self, ports: Any = None, rx_delay_ms: int | None = None) -> None:
        """Stops the traffic of ports, and waits for frames in flight."""
        self._require_session()
        profiles = self._active_profiles() if ports is None else self._profiles(ports)
        for port, profile in profiles:
            if profile.is_active and profile.transmission is not None:
                profile.transmission.stop()
                profile.transmission.is_stopped = True
                self._log_state(port, profile.transmission, "has stopped")
        self._record_results()

    def wait_on_traffic_stl(
        self, ports: Any = None, timeout: float | None = None, rx_delay_ms: int | None = None
    ) -> None:
        """Waits until ports have sent all frames and these had time to arrive.

        Raises `TRexTimeoutError` after `timeout` seconds.
        """
        self._require_session()
        profiles = self._profiles(ports) if ports is not None else self._active_profiles()
        deadline = None if timeout is None else time.monotonic() + timeout
        for _, profile in profiles:
            transmission = profile.transmission
            while transmission is not None and not transmission.wait():
                if timeout is not None and deadline is not None and time.monotonic() > deadline:
                    raise TRexTimeoutError(timeout)
        self._record_results()

    def update_stl(
        self, ports: Any = None, mult: str = "1", total: bool = False, force: bool = False
    ) -> None:
        """Changes the rates; `mult` can be relative: `+5%` or `1mpps-`.

        Raises for more than the line rate, unless `force`.
        """
        self._require_session()
        validate_type("force", force, bool)
        multiplier = Multiplier.parse(mult, allow_update=True)
        profiles = self._active_transmissions(ports)
        if total:
            multiplier = multiplier.shared(len(profiles))
        updates = []
        for port, transmission in profiles:
            changed = transmission.changed_multiplier(multiplier)
            if not force:
                others = (it for it in port.active if it.transmission is not transmission)
                load = max_load(transmission.streams, port.stream_parameters(), changed)[2]
                self._check_line(port, load + _profiles_load(others))
            updates.append((transmission, changed))
        for transmission, changed in updates:
            transmission.update(changed)

    def update_streams(
        self, port: int, mult: str = "1", force: bool = False, stream_ids: Any = None
    ) -> None:
        """Changes the rates of streams of a port, each to `mult`.

        Raises if one exceeds the line rate, unless `force`. Latency streams keep their rates.
        """
        self._require_session()
        validate_type("force", force, bool)
        multiplier = Multiplier.parse(mult)
        chosen, transmission, numbers = self._streams_of(port, stream_ids)
        for number in numbers if not force else ():
            alone = {number: transmission.streams[number]}
            self._check_line(chosen, max_load(alone, chosen.stream_parameters(), multiplier)[2])
        transmission.update(multiplier, numbers)

    def pause(self, ports: Any = None) -> None:
        """Pauses the traffic of ports: only continuous streams without a duration."""
        self._require_session()
        sending = self._active_transmissions(ports)
        for port, transmission in sending:
            if transmission.is_paused:
                raise TRexError(f"port {port.number} is paused already")
            _check_pausable(port, transmission)
        for port, transmission in sending:
            transmission.pause()
            self._log_state(port, transmission, "has paused")

    def resume(self, ports: Any = None) -> None:
        """Resumes paused traffic."""
        self._require_session()
        for port, transmission in self._active_transmissions(ports):
            if not transmission.is_paused:
                raise TRexError(f"port {port.number} is not paused")
            transmission.resume()
            self._log_state(port, transmission, "has resumed")

    def pause_streams(self, port: int, stream_ids: Any) -> None:
        """Pauses streams of a port that sends only continuous streams without a duration."""
        self._require_session()
        chosen, transmission, numbers = self._streams_of(port, stream_ids)
        _check_pausable(chosen, transmission)
        transmission.pause(numbers)

    def resume_streams(self, port: int, stream_ids: Any) -> None:
        """Resumes streams of a port."""
        self._require_session()
        _, transmission, numbers = self._streams_of(port, stream_ids)
        transmission.resume(numbers)

    # Captures and packets.

    def push_pcap(
        self,
        pcap_filename: str,
        ports: Any = None,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        count: int = 1,
        duration: float = -1,
        force: bool = False,
        vm: Any = None,
        packet_hook: Any = None,
        is_dual: bool = False,
        min_ipg_usec: float | None = None,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> RC:
        """Sends a capture, each packet as a stream that starts the next one.

        With `is_dual`, a port and its neighbour send the two sides. Returns after the start;
        `wait_on_traffic` waits for the end.

        MAC addresses determine the sides, in an ERF file its interfaces. Late frames leave at once,
        so that the total time stays the sum of the gaps.
        """
        self._require_session()
        validate_type("pcap_filename", pcap_filename, str)
        numbers = self._acquired_ports(ports)
        if not force:
            self._idle_ports(numbers)
        self.stop_stl(numbers)
        sides: dict[int, STLProfile] = {}
        by = "INTERFACE" if is_dual and erf_file.is_erf_at(pcap_filename) else "MAC"
        for number in numbers:
            loaded = STLProfile.load_pcap(
                pcap_filename,
                ipg_usec,
                speedup,
                count,
                vm,
                packet_hook,
                split_mode=by if is_dual else None,
                min_ipg_usec=min_ipg_usec,
                src_mac_pcap=src_mac_pcap,
                dst_mac_pcap=dst_mac_pcap,
            )
            if not isinstance(loaded, tuple):
                sides[number] = loaded
                continue
            neighbour = number ^ 1
            if neighbour in numbers:
                raise TRexError(f"is_dual: port {neighbour} is the other side of port {number}")
            self._idle_ports(neighbour)
            sides[number], sides[neighbour] = loaded
        for number, profile in sides.items():
            self.remove_all_streams(number)
            self.add_streams(profile, number)
        return self._start(list(sides), force=force, duration=duration, keeps_schedule=True)

    def push_remote(
        self,
        pcap_filename: str,
        ports: Any = None,
        ipg_usec: float | None = None,
        speedup: float = 1.0,
        count: int = 1,
        duration: float = -1,
        is_dual: bool = False,
        min_ipg_usec: float | None = None,
        force: bool = False,
        src_mac_pcap: bool = False,
        dst_mac_pcap: bool = False,
    ) -> RC:
        """Same as `push_pcap`, because the engine is on this machine."""
        return self.push_pcap(
            pcap_filename,
            ports,
            ipg_usec,
            speedup,
            count,
            duration,
            force,
            is_dual=is_dual,
            min_ipg_usec=min_ipg_usec,
            src_mac_pcap=src_mac_pcap,
            dst_mac_pcap=dst_mac_pcap,
        )

    def push_packets(
        self, pkts: Any, ports: Any = None, force: bool = False, ipg_usec: float = 0
    ) -> RC:
        """Sends packets one after the other: bytes, scapy packets or `PacketBuffer`.

        Bytes get the port's addresses, scapy packets only where they set none, and a `PacketBuffer`
        as its flags say.
        """
        self._require_session()
        packets = listify(pkts)
        if not packets:
            raise TRexArgumentError("pkts", pkts, "at least one packet")
        numbers = self._acquired_ports(ports)
        if not force:
            self._idle_ports(numbers)
        self.stop_stl(numbers)
        self._collect_group_counters()
        for number in numbers:
            port = self.links[number]
            profile = Profile(_PUSHED)
            frames = [with_addresses(packet, port.source, port.destination) for packet in packets]
            profile.streams = dict(enumerate(_linked_streams(frames, ipg_usec), start=1))
            port.profiles[_PUSHED] = profile
            self._start_transmission(
                port, profile, Multiplier.parse("1"), None, keeps_schedule=True
            )
        for number in numbers:
            port = self.links[number]
            profile = port.profiles[_PUSHED]
            while profile.transmission is not None and not profile.transmission.wait():
                pass
            self._record_results()
            port.drop_transmission(port.profiles.pop(_PUSHED))
        return RC_OK()

    # Counters.

    def get_active_pgids(self) -> dict[str, list[int]]:
        """Returns the packet groups of started streams."""
        self._require_session()
        return self._counters.active_groups()

    def get_pgid_stats(self, pgid_list: Any = ()) -> dict[str, Any]:
        """Returns counters and delays of packet groups, by default of all."""
        self._require_session()
        self._record_results()
        return {**self._counters.groups(listify(pgid_list) or None), "ver_id": {}}

    def clear_pgid_stats(
        self, clear_flow_stats: bool = True, clear_latency_stats: bool = True
    ) -> None:
        """Clears the counters of packet groups."""
        self._counters.clear_groups(clear_flow_stats, clear_latency_stats)

    def map_ports(
        self, ports: Any = None, read_delay: float = 0.3, send_pkts: int = 3
    ) -> dict[str, Any]:
        """Returns which ports are connected to each other."""
        self._require_session()
        numbers = self._numbers(ports, of_all=True)
        for number in numbers:
            if self.links[number].is_active:
                raise TRexError(f"port {number} is sending; stop it first")
        return port_map.connections([self.links[number] for number in numbers], send_pkts)

    # Internal methods.

    def _check_core_mask(self, core_mask: Any, count: int) -> None:
        validate_type("core_mask", core_mask, (type(None), int, list))
        modes = (self.CORE_MASK_SPLIT, self.CORE_MASK_PIN, self.CORE_MASK_SINGLE)
        if isinstance(core_mask, int) and core_mask not in modes:
            raise TRexArgumentError("core_mask", core_mask, "CORE_MASK_SPLIT, _PIN, _SINGLE")
        if isinstance(core_mask, list) and len(core_mask) != count:
            raise TRexError(f"core_mask has {len(core_mask)} masks for {count} ports")

    def _check_pairs(self, numbers: list[int]) -> None:
        alone = [number for number in numbers if number ^ 1 not in numbers]
        if alone:
            raise TRexError(f"synchronized: ports {alone} lack their neighbours (0 and 1, ...)")

    def _check_start(
        self, port: Port, profile: Profile, multiplier: Multiplier, force: bool
    ) -> None:
        name = f"port {port.number}"
        if profile.name == ALL_PROFILES:
            raise TRexError(f"{name}: name one profile to start")
        if not any(stream.fields["enabled"] for stream in profile.streams.values()):
            raise TRexError(f"{name} has no streams; call add_streams() first")
        if port.destination is None:
            for stream in profile.streams.values():
                if stream.mac_dst_override_mode() != STLStreamDstMAC_PKT:
                    raise TRexError(
                        f"{name} has no destination address, and stream {stream.get_name()!r} "
                        "uses the port's: set one with set_l2_mode()"
                    )
        try:
            load = max_load(profile.streams, port.stream_parameters(), multiplier)[2]
        except TRexError as error:
            raise TRexError(f"{name}: streams{error}") from error
        self._check_groups(port, profile)
        if force:
            return
        if profile.is_active:
            active = profile.display_name(port.number)
            raise TRexError(f"{active} is sending; stop it or pass force=True")
        if port.is_service:
            raise TRexError(f"{name} is in service mode; leave it or pass force=True")
        if not port.read_properties()["has_carrier"]:
            raise TRexError(
                f"{name} ({port.interface}) has no carrier; connect it or pass force=True"
            )
        self._check_line(port, load + _profiles_load(port.active))

    def _check_line(self, port: Port, load: float) -> None:
        """Raises if a load, in bits per second at layer 1, exceeds the port's line rate."""
        if load > port.speed_bps * _LINE_MAX:
            part = 100 * load / port.speed_bps
            raise TRexError(
                f"port {port.number}: the streams need {part:.1f} % of its "
                f"{port.speed_bps / 1e9:g} Gb/s: a smaller mult, or force=True"
            )

    def _check_groups(self, port: Port, profile: Profile) -> None:
        groups = _groups(profile.streams.values())
        for other in port.active:
            if other is profile or other.transmission is None:
                continue
            shared = groups & _groups(other.transmission.streams.values())
            if shared:
                name = other.display_name(port.number)
                raise TRexError(
                    f"port {port.number}: {name} is sending and uses packet groups "
                    f"{sorted(shared)}: use other groups"
                )

    def _start_transmission(
        self,
        port: Port,
        profile: Profile,
        multiplier: Multiplier,
        limit: float | None,
        keeps_schedule: bool = False,
    ) -> None:
        receiver = self._receiver(port)
        if receiver is not None and not self._has_sender(receiver):
            receiver.begin_receiving()
        transmission = Transmission(
            profile.streams,
            port.stream_parameters(),
            multiplier,
            port.interface,
            None if receiver is None else (receiver.number, receiver.interface),
            limit,
            self._captures_tx(port.number),
            keeps_schedule,
        )
        port.begin(profile, transmission)

    def _receiver(self, port: Port) -> Port | None:
        """Returns the port that should receive a port's frames.

        It is the other acquired port if there is only one, else the neighbour (0 and 1, 2 and 3,
        ...).
        """
        others = [number for number in self.get_acquired_ports() if number != port.number]
        number = others[0] if len(others) == 1 else port.number ^ 1
        other = self.links.get(number)
        # In service mode or with a capture, received frames go to the kernel.
        uses_kernel = other is not None and (other.is_service or self._captures_rx(number))
        return None if uses_kernel else other

    def _has_sender(self, receiver: Port) -> bool:
        """Returns whether traffic to a port is running or has unrecorded results."""
        transmissions = [it for port in self.links.values() for it in port.transmissions()]
        return any(it.receiver == receiver.number and not it.is_recorded for it in transmissions)

    def _idle_profiles(self, ports: Any) -> list[tuple[Port, Profile]]:
        profiles = self._profiles(ports)
        for port, profile in profiles:
            if profile.is_active:
                raise TRexError(f"{profile.display_name(port.number)} is sending; stop it first")
        return profiles

    def _active_transmissions(self, ports: Any) -> list[tuple[Port, Transmission]]:
        profiles = self._active_profiles() if ports is None else self._profiles(ports)
        found = []
        for port, profile in profiles:
            if not profile.is_active or profile.transmission is None:
                raise TRexError(f"{profile.display_name(port.number)} is not sending")
            found.append((port, profile.transmission))
        if not found:
            raise TRexError("no port is sending")
        return found

    def _streams_of(self, port: Any, stream_ids: Any) -> tuple[Port, Transmission, list[int]]:
        """Returns a port or profile, its transmission, and streams of it. Raises if they are not
        sent.
        """
        numbers = listify(stream_ids) if stream_ids is not None else []
        if not numbers:
            raise TRexArgumentError("stream_ids", stream_ids, "numbers of streams")
        sending = self._active_transmissions(port)
        if len(sending) != 1:
            raise TRexArgumentError("port", port, "one port, or one profile of it")
        ((chosen, transmission),) = sending
        for number in numbers:
            validate_type("stream_id", number, int)
            if number not in transmission.streams:
                known = ", ".join(map(str, transmission.streams))
                raise TRexArgumentError("stream_ids", number, f"numbers of streams: {known}")
        return chosen, transmission, numbers

    def _record_results(self) -> None:
        for port in self.links.values():
            for transmission in port.transmissions():
                if transmission.is_recorded or not transmission.is_done():
                    continue
                transmission.is_recorded = True
                self._count_received(transmission)
                for warning in _warnings(transmission):
                    self._log_event(f"port {port.number}: {warning}", "warning")
                if not transmission.is_stopped:
                    self._log_state(port, transmission, "job done")

    def _log_state(self, port: Port, transmission: Transmission, name: str) -> None:
        """Logs the state of a profile in TRex's wording, which scripts wait for."""
        profiles = (it for it in port.profiles.values() if it.transmission is transmission)
        for profile in profiles:
            self._log_event(f"Profile {port.number}.{profile.name} {name}")
            others = [it for it in port.active if it is not profile]
            if all(it.is_paused for it in others) if name == "has paused" else not others:
                self._log_event(f"Port {port.number} {name}")

    def _count_received(self, transmission: Transmission) -> None:
        report, receiver = transmission.report(), self.links.get(transmission.receiver or 0)
        if report is None or transmission.receiver is None or receiver is None:
            return
        for port in report["ports"]:
            if port["rx"]:
                receiver.record_received(port["rx"]["packets"], port["rx"]["bytes"])
        if not self._has_sender(receiver):
            receiver.end_receiving()


def _profiles_load(profiles: Iterable[Profile]) -> float:
    """Returns the maximum load of profiles in bits per second at layer 1."""
    transmissions = (profile.transmission for profile in profiles)
    return float(sum(it.load()[2] for it in transmissions if it is not None))


def _check_pausable(port: Port, transmission: Transmission) -> None:
    streams = transmission.streams.values()
    is_continuous = all(it.get_mode() == str(STLTXCont()) for it in streams)
    if transmission.has_duration or not is_continuous:
        raise TRexError(
            f"port {port.number}: only continuous streams without a duration can be paused"
        )


def _groups(streams: Iterable[STLStream]) -> set[int]:
    """Returns the packet groups of streams, without tagged ones, which profiles can share."""
    groups = {it.get_pg_id() for it in streams if it.get_flow_stats_type() in ("stats", "latency")}
    return {group for group in groups if group is not None}


def _warnings(transmission: Transmission) -> Iterable[str]:
    """Yields the errors and shortfalls of a transmission."""
    report = transmission.report()
    if report is None:
        return
    yield from report["errors"]
    _, _, failed = transmission.sent()
    if failed:
        yield f"the interface refused {failed:,} frames"
    errors = [flow["rate_error_ppm"] for flow in report["flows"]]
    slowest = min((error for error in errors if error is not None), default=0)
    if transmission.has_initial_rates and slowest < -_RATE_ERROR_PPM_MAX:
        yield f"the rate was {-slowest / 1e4:.1f} % below the target"


def _linked_streams(frames: list[bytes], ipg_usec: float) -> Iterable[STLStream]:
    """Yields streams of one unchanged frame each, which start each other."""
    for number, frame in enumerate(frames, start=1):
        yield STLStream(
            name=str(number),
            packet=STLPktBuilder(pkt_buffer=frame),
            mode=STLTXSingleBurst(total_pkts=1, percentage=100),
            isg=ipg_usec if number > 1 else 0.0,
            self_start=number == 1,
            next=str(number + 1) if number < len(frames) else None,
            mac_src_override_by_pkt=True,
            mac_dst_override_mode=STLStreamDstMAC_PKT,
        )
