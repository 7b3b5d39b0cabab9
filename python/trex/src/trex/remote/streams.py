"""Commands for streams of a server's ports."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from trex.arguments import listify, validate_type
from trex.client.multiplier import Multiplier
from trex.client.profile_id import ALL_PROFILES
from trex.client.rc import RC, RC_OK
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError
from trex.remote.client import RemoteCommands
from trex.remote.connection import Request
from trex.remote.port import RemotePort, RemoteProfile
from trex.stl.profile import STLProfile
from trex.stl.streams import STLStream

_UNITS = {"": "raw", "%": "percentage", "pps": "pps", "bps": "bps", "bpsl1": "bpsl1"}
_OPERATIONS = {0: "abs", 1: "add", -1: "sub"}
_ALL_CORES = (1 << 64) - 1
# Interval of questions whether traffic has ended, and the default wait for frames in flight.
_POLL_S, _RX_DELAY_S = 0.05, 0.01
# Time until a synchronized start, in seconds.
_SYNCHRONIZED_S = 0.5
# Names of counters of packet groups: in answers, and for scripts.
_FLOW_COUNTERS = {"tp": "tx_pkts", "tb": "tx_bytes", "rp": "rx_pkts", "rb": "rx_bytes"}
_FLOW_RATES = {"tps": "tx_pps", "tbs": "tx_bps", "rps": "rx_pps", "rbs": "rx_bps"}
_ERRORS = {
    "drp": "dropped",
    "ooo": "out_of_order",
    "dup": "dup",
    "sth": "seq_too_high",
    "stl": "seq_too_low",
}
_DELAYS = {
    "average": "average",
    "jit": "jitter",
    "total_max": "total_max",
    "total_min": "total_min",
    "last_max": "last_max",
}
_WIRE_OVERHEAD = 20


class RemoteStreamCommands(RemoteCommands):
    """Streams, traffic and packet groups."""

    _profiles: Any
    _check_core_mask: Any
    _check_pairs: Any
    #: Counters of packet groups when they were cleared, with their versions.
    _group_base: dict[int, tuple[Any, dict[str, dict[Any, int]]]]
    _error_base: dict[int, tuple[Any, dict[str, int]]]

    def _stop_all(self) -> None:
        self.stop_stl()

    def connect(self) -> None:
        """Connects to the server."""
        super().connect()
        self._group_base, self._error_base = {}, {}

    def _acquire_stl(self, ports: Any, force: bool, sync_streams: bool = True) -> None:
        """Acquires ports, and reads their streams."""
        self._require_session()
        for number in self._numbers(ports, of_all=True):
            port = self._port(number)
            port.handler = self._call(
                "acquire",
                port_id=number,
                user=self._username,
                session_id=self._session_id,
                force=force,
            )
            port.is_acquired = True
            if sync_streams:
                port.load_streams()

    def _release_stl(self, ports: Any) -> None:
        self._require_session()
        for number in self._acquired_ports(ports):
            port = self._port(number)
            port.call("release")
            port.is_acquired, port.handler = False, ""
            port.forget()

    def _reset_streams(self, ports: Any, restart: bool) -> list[int]:
        """Acquires ports, stops their traffic and removes their streams. Returns their numbers."""
        self._require_session()
        if restart:
            raise TRexError("restart: not supported; the machine of the server sets its links")
        numbers: list[int] = self._numbers(ports, of_all=True)
        self._acquire_ports(numbers, force=True)
        self.stop_stl([f"{number}.{ALL_PROFILES}" for number in numbers])
        self.remove_all_captures()
        for number in numbers:
            port = self._port(number)
            self._change(number, "remove_all_streams", profile_id=ALL_PROFILES)
            for command in ("stop_capture_port", "remove_rx_filters"):
                self._change(number, command, profile_id=ALL_PROFILES)
            self._change(number, "set_rx_feature", type="queue", enabled=False)
            port.profiles.clear()
        self._set_service(numbers, False, False, None)
        self.set_port_attr(numbers, promiscuous=False)
        return numbers

    def _acquire_ports(self, ports: Any, force: bool) -> None:
        self._acquire_stl(ports, force)

    def _release_ports(self, ports: Any) -> None:
        self._release_stl(ports)

    def _set_service(
        self, numbers: Iterable[int], enabled: bool, filtered: bool, mask: Any
    ) -> None:
        more = {} if mask is None else {"mask": mask}
        for number in numbers:
            self._change(number, "service", enabled=enabled, filtered=filtered, **more)
            self._port(number).refresh()

    def set_service_mode_base(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Switches service mode of ports, in which they answer ARP and pings."""
        self._require_session()
        validate_type("enabled", enabled, bool)
        validate_type("filtered", filtered, bool)
        self._set_service(self._acquired_ports(ports), enabled, filtered, mask)

    # Streams.

    def _chosen(self, ports: Any) -> list[tuple[RemotePort, RemoteProfile]]:
        found = self._profiles(ports)
        for port, _ in found:
            port.forget()
            port.refresh()
        return [(port, profile) for port, profile in found if profile.name in port.profiles]

    def _sending(self, ports: Any) -> list[tuple[RemotePort, RemoteProfile]]:
        """Returns active profiles: all, or those of ports, which must be active then."""
        if ports is None:
            wanted = [f"{port.number}.{ALL_PROFILES}" for port in self._acquired()]
            found = [(port, it) for port, it in self._chosen(wanted) if it.is_active]
        else:
            found = self._chosen(ports)
            for port, profile in found:
                if not profile.is_active:
                    raise TRexError(f"{profile.display_name(port.number)} is not sending")
        if not found:
            raise TRexError("no port is sending")
        return found

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
        numbers: list[int] = []
        for port, profile in self._profiles(ports):
            added = [(port.add(profile.name, stream), stream) for stream in streams]
            try:
                self._call_all(_additions(port, profile.name, added))
            except TRexError:
                port.load_streams()
                raise
            port.forget()
            numbers += [number for number, _ in added]
        return numbers[0] if len(numbers) == 1 else numbers

    def remove_streams(self, stream_id_list: Any, ports: Any = None) -> None:
        """Removes streams by ID."""
        self._require_session()
        numbers = listify(stream_id_list)
        if not numbers:
            raise TRexArgumentError("stream_id_list", stream_id_list, "numbers of streams")
        for port, profile in self._profiles(ports):
            for number in numbers:
                validate_type("stream_id", number, int)
                port.call("remove_stream", profile_id=profile.name, stream_id=number)
                profile.streams.pop(number, None)
            port.forget()

    def remove_all_streams(self, ports: Any = None) -> None:
        """Removes all streams of ports."""
        self._require_session()
        for port, profile in self._profiles(ports):
            port.call("remove_all_streams", profile_id=profile.name)
            profile.streams.clear()
            port.forget()

    # Traffic.

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
        """Starts the streams of ports; see `start_stl`."""
        self._require_session()
        validate_type("mult", mult, str)
        validate_type("force", force, bool)
        validate_type("duration", duration, (int, float))
        validate_type("total", total, bool)
        profiles = self._chosen(ports)
        self._check_core_mask(core_mask, len(profiles))
        multiplier = Multiplier.parse(mult)
        if total:
            multiplier = multiplier.shared(len(profiles))
        more: dict[str, Any] = {}
        if synchronized:
            self._check_pairs([port.number for port, _ in profiles])
            more["start_at_ts"] = self.ping_rpc_server()["ts"] + _SYNCHRONIZED_S
        for port, profile in profiles:
            if port.is_service and not force:
                raise TRexError(
                    f"port {port.number} is in service mode; leave it or pass force=True"
                )
            if profile.is_active and force:
                port.call("stop_traffic", profile_id=profile.name)
        requests: list[Request] = [
            (
                "start_traffic",
                port.parameters(
                    profile_id=profile.name,
                    mul=_document(multiplier),
                    duration=float(duration),
                    force=force,
                    core_mask=_ALL_CORES,
                    **more,
                ),
            )
            for port, profile in profiles
        ]
        try:
            self._call_all(requests)
        finally:
            for port, _ in profiles:
                port.refresh()
        return RC_OK()

    def stop_stl(self, ports: Any = None, rx_delay_ms: int | None = None) -> None:
        """Stops the traffic of ports, and waits for frames in flight."""
        self._require_session()
        if ports is None:
            ports = [f"{port.number}.{ALL_PROFILES}" for port in self._acquired()]
        requests = []
        profiles = self._chosen(ports)
        for port, profile in profiles:
            if profile.is_active:
                requests.append(("stop_traffic", port.parameters(profile_id=profile.name)))
        replays = {port for port, _ in profiles if port.is_active and not port.active}
        requests += [("stop_traffic", port.parameters(profile_id=ALL_PROFILES)) for port in replays]
        if requests:
            self._call_all(requests)
            time.sleep(_RX_DELAY_S if rx_delay_ms is None else rx_delay_ms / 1e3)
        for port, _ in profiles:
            port.refresh()
        self._record_results()

    def wait_on_traffic_stl(
        self, ports: Any = None, timeout: float | None = None, rx_delay_ms: int | None = None
    ) -> None:
        """Waits until ports have sent all frames and these had time to arrive.

        Raises `TRexTimeoutError` after `timeout` seconds.
        """
        self._require_session()
        if ports is None:
            ports = [f"{port.number}.{ALL_PROFILES}" for port in self._acquired()]
        deadline = None if timeout is None else time.monotonic() + timeout
        while any(
            port.is_active if not port.active else it.is_active for port, it in self._chosen(ports)
        ):
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise TRexTimeoutError(timeout)
            time.sleep(_POLL_S)
        time.sleep(_RX_DELAY_S if rx_delay_ms is None else rx_delay_ms / 1e3)
        self._record_results()

    def update_stl(
        self, ports: Any = None, mult: str = "1", total: bool = False, force: bool = False
    ) -> None:
        """Changes the rates; `mult` can be relative: `+5%` or `1mpps-`."""
        self._require_session()
        validate_type("force", force, bool)
        multiplier = Multiplier.parse(mult, allow_update=True)
        profiles = self._sending(ports)
        if total:
            multiplier = multiplier.shared(len(profiles))
        more = {"mul": _document(multiplier), "force": force}
        self._send("update_traffic", profiles, **more)

    def pause(self, ports: Any = None) -> None:
        """Pauses the traffic of ports: only continuous streams without a duration."""
        self._require_session()
        self._send("pause_traffic", self._sending(ports))

    def resume(self, ports: Any = None) -> None:
        """Resumes paused traffic."""
        self._require_session()
        self._send("resume_traffic", self._sending(ports))

    def update_streams(
        self, port: int, mult: str = "1", force: bool = False, stream_ids: Any = None
    ) -> None:
        """Changes the rates of streams of a port, each to `mult`."""
        more = {"mul": _document(Multiplier.parse(mult)), "force": force}
        self._send("update_streams", self._sending(port), stream_ids=_ids(stream_ids), **more)

    def pause_streams(self, port: int, stream_ids: Any) -> None:
        """Pauses streams of a port that sends only continuous streams without a duration."""
        self._send("pause_streams", self._sending(port), stream_ids=_ids(stream_ids))

    def resume_streams(self, port: int, stream_ids: Any) -> None:
        """Resumes streams of a port."""
        self._send("resume_streams", self._sending(port), stream_ids=_ids(stream_ids))

    def _send(
        self, method: str, profiles: list[tuple[RemotePort, RemoteProfile]], **parameters: Any
    ) -> None:
        """Executes a command for profiles."""
        self._call_all(
            (method, port.parameters(profile_id=profile.name, **parameters))
            for port, profile in profiles
        )
        for port, _ in profiles:
            port.forget()

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
        """Sends a capture that was uploaded to the server."""
        self._require_session()
        validate_type("pcap_filename", pcap_filename, str)
        numbers = self._acquired_ports(ports)
        if force:
            self.stop_stl([f"{number}.{ALL_PROFILES}" for number in numbers])
        for number in self._idle_ports(numbers):
            other = self.links.get(number ^ 1)
            slave = other.handler if is_dual and isinstance(other, RemotePort) else ""
            self._change(
                number,
                "push_remote",
                pcap_filename=pcap_filename,
                ipg_usec=-1 if ipg_usec is None else ipg_usec,
                min_ipg_usec=0 if min_ipg_usec is None else min_ipg_usec,
                speedup=speedup,
                count=count,
                duration=duration,
                is_dual=is_dual,
                slave_handler=slave,
            )
        return RC_OK()

    # Packet groups.

    def get_active_pgids(self) -> dict[str, list[int]]:
        """Returns the packet groups of streams on the server."""
        found: dict[str, list[int]] = self._call("get_active_pgids")["ids"]
        return found

    def get_pgid_stats(self, pgid_list: Any = ()) -> dict[str, Any]:
        """Returns counters and delays of packet groups, by default of all."""
        return self._groups(listify(pgid_list))

    def _groups(self, pgids: list[int], is_relative: bool = True) -> dict[str, Any]:
        found = self._call("get_pgid_stats", pgids=pgids)
        versions = {int(group): it for group, it in (found.get("ver_id") or {}).items()}
        ports = list(self.links)
        flow_stats: dict[Any, Any] = {}
        for group, values in (found.get("flow_stats") or {}).items():
            number = int(group)
            version, base = self._group_base.get(number, (None, {}))
            base = base if is_relative and version == versions.get(number) else {}
            flow: dict[str, dict[Any, float]] = {}
            for short, name in {**_FLOW_COUNTERS, **_FLOW_RATES}.items():
                column = {port: values[short].get(str(port), 0) for port in ports}
                for port in ports if short in _FLOW_COUNTERS else ():
                    column[port] -= base.get(name, {}).get(port, 0)
                flow[name] = {**column, "total": sum(column.values())}
            for direction in ("tx", "rx"):
                bps, pps = flow[f"{direction}_bps"], flow[f"{direction}_pps"]
                flow[f"{direction}_bps_l1"] = {
                    port: bps[port] + pps[port] * _WIRE_OVERHEAD * 8 for port in bps
                }
            flow_stats[number] = flow
        none: dict[Any, int] = dict.fromkeys([*ports, "total"], 0)
        flow_stats["global"] = {"rx_err": dict(none), "tx_err": dict(none)}
        latency: dict[Any, Any] = {"global": {"bad_hdr": 0, "old_flow": 0}}
        for group, values in (found.get("latency") or {}).items():
            if not group.isdigit():
                continue
            number = int(group)
            version, errors_base = self._error_base.get(number, (None, {}))
            errors_base = errors_base if is_relative and version == versions.get(number) else {}
            counted, delays = values.get("er", {}), values["lat"]
            errors = {
                name: counted.get(short, 0) - errors_base.get(name, 0)
                for short, name in _ERRORS.items()
            }
            latency[number] = {
                "err_cntrs": errors,
                "latency": {
                    **{name: delays.get(short, 0) for short, name in _DELAYS.items()},
                    "histogram": {int(k): v for k, v in delays.get("histogram", {}).items()},
                    **({"hdrh": delays["hdrh"]} if "hdrh" in delays else {}),
                },
            }
        return {"flow_stats": flow_stats, "latency": latency, "ver_id": versions}

    def clear_pgid_stats(
        self, clear_flow_stats: bool = True, clear_latency_stats: bool = True
    ) -> None:
        """Clears the counters of packet groups."""
        found = self._groups([], is_relative=False)
        versions = found["ver_id"]
        if clear_flow_stats:
            self._group_base = {
                group: (versions.get(group), flow)
                for group, flow in found["flow_stats"].items()
                if group != "global"
            }
        if clear_latency_stats:
            self._error_base = {
                group: (versions.get(group), it["err_cntrs"])
                for group, it in found["latency"].items()
                if group != "global"
            }


def _document(multiplier: Multiplier) -> dict[str, Any]:
    """Returns a multiplier in the form of the server."""
    return {
        "type": _UNITS[multiplier.unit],
        "value": multiplier.value,
        "op": _OPERATIONS[multiplier.sign],
    }


def _ids(stream_ids: Any) -> list[int]:
    numbers = listify(stream_ids) if stream_ids is not None else []
    if not numbers:
        raise TRexArgumentError("stream_ids", stream_ids, "numbers of streams")
    return numbers


def _additions(
    port: RemotePort, profile: str, streams: list[tuple[int, STLStream]]
) -> list[Request]:
    """Returns the commands that add streams; names of next streams become their IDs."""
    ids: dict[Any, int] = {}
    for number, stream in streams:
        name = stream.get_name()
        if name is not None and name in ids:
            raise TRexError(f"port {port.number}: two streams have the name {name!r}")
        ids[number if name is None else name] = number
    requests: list[Request] = []
    for number, stream in streams:
        following = stream.get_next()
        if following and following not in ids:
            raise TRexError(
                f"port {port.number}: stream {following!r} is `next` but does not exist"
            )
        document = {**stream.to_json(), "next_stream_id": ids[following] if following else -1}
        parameters = port.parameters(profile_id=profile, stream_id=number, stream=document)
        requests.append(("add_stream", parameters))
    return requests
