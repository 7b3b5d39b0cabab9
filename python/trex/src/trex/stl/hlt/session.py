"""`CTRexHltApi`: a session with ports, streams and counters, in named arguments."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from trex.arguments import listify
from trex.client.multiplier import Multiplier
from trex.client.profile_id import DEFAULT_PROFILE_ID
from trex.client.transmission import max_load
from trex.errors import TRexError
from trex.stl.client import STLClient
from trex.stl.hlt.arguments import DEFAULTS
from trex.stl.hlt.results import HLT_ERR, HLT_OK, is_true
from trex.stl.hlt.streams import STLHltStream
from trex.stl.profile import STLProfile
from trex.stl.statistics import STLFlowStatsInterface
from trex.stl.streams import STLStream

connect_kwargs: dict[str, Any] = {
    "device": "localhost",
    "trex_rpc_port": None,
    "trex_pub_port": None,
    "trex_timeout_sec": None,
    "port_list": None,
    "username": "TRexUser",
    "reset": True,
    "break_locks": False,
}
cleanup_session_kwargs: dict[str, Any] = {
    "maintain_lock": False,
    "port_list": None,
    "port_handle": None,
}
traffic_control_kwargs: dict[str, Any] = {"action": None, "port_handle": None}
traffic_stats_kwargs: dict[str, Any] = {"mode": "aggregate", "port_handle": None}

_INTERFACE_MODES = ("config", "modify", "destroy")
_TRAFFIC_MODES = ("create", "modify", "remove", "enable", "disable", "reset")
_ACTIONS = ("clear_stats", "run", "stop", "sync_run", "poll", "reset")
_STATS_MODES = ("aggregate", "streams", "all")
# Name of a counter in TRex, and its names in the HLTAPI.
_AGGREGATE = {
    "{}_bps": ("pkt_bit_rate",),
    "{}_pps": ("pkt_rate", "total_pkt_rate"),
    "{}bytes": ("pkt_byte_count", "total_pkt_bytes"),
    "{}packets": ("pkt_count", "total_pkts"),
}
_STREAM = {
    "{}_pkts": ("total_pkts",),
    "{}_bytes": ("total_pkt_bytes", "total_pkts_bytes"),
    "{}_bps": ("total_pkt_bit_rate",),
    "{}_pps": ("total_pkt_rate",),
}


def _call(method: Callable[..., HLT_OK]) -> Callable[..., HLT_OK | HLT_ERR]:
    """Wraps a method so that its errors become results."""

    @functools.wraps(method)
    def wrapped(self: CTRexHltApi, *arguments: Any, **kwargs: Any) -> HLT_OK | HLT_ERR:
        try:
            return method(self, *arguments, **kwargs)
        except (TRexError, TypeError, ValueError, OSError) as error:
            return HLT_ERR(f"{method.__name__}: {error}")

    return wrapped


class CTRexHltApi:
    """TRex's HLTAPI on `STLClient`.

    Each call returns a dictionary: `status` is 1, or 0 with the reason in `log`. A stream has a
    number from 1, its `stream_id`, which is also its packet group if it is measured.
    """

    def __init__(self, verbose: str = "error") -> None:
        self.trex_client: STLClient | None = None
        self.verbose = verbose
        #: By port and stream: its arguments, and its IDs at the port.
        self._streams: dict[int, dict[int, _HltStream]] = {}
        self._numbers = itertools.count(1)

    # The session.

    @_call
    def connect(self, **user_kwargs: Any) -> HLT_OK:
        """Acquires ports, by default all of them, and returns them as `port_handle`.

        `device` and its ports are stored without effect, because there is no server.
        """
        kwargs = _merge_defaults(connect_kwargs, user_kwargs)
        sockets = {"sync_port": kwargs["trex_rpc_port"], "async_port": kwargs["trex_pub_port"]}
        client = STLClient(
            kwargs["username"],
            kwargs["device"],
            verbose_level=self.verbose,
            **{name: port for name, port in sockets.items() if port},
        )
        if kwargs["trex_timeout_sec"] is not None:
            client.set_timeout(kwargs["trex_timeout_sec"])
        client.connect()
        try:
            ports = _ports(kwargs["port_list"], client.get_all_ports())
            client.acquire(ports, force=kwargs["break_locks"])
            if kwargs["reset"]:
                client.reset(ports)
        except TRexError:
            client.disconnect()
            raise
        self.trex_client = client
        self._streams = {port: {} for port in ports}
        return HLT_OK(port_handle={port: port for port in ports})

    @_call
    def cleanup_session(self, **user_kwargs: Any) -> HLT_OK:
        """Stops the traffic of ports, releases them unless `maintain_lock`, and disconnects."""
        kwargs, client = _merge_defaults(cleanup_session_kwargs, user_kwargs), self._client()
        if not kwargs["maintain_lock"]:
            named = kwargs["port_list"] or kwargs["port_handle"]
            ports = _ports(None if named == "all" else named, client.get_acquired_ports())
            client.stop(ports)
            client.remove_all_streams(ports)
            client.release(ports)
        client.disconnect()
        self.trex_client = None
        return HLT_OK()

    @_call
    def interface_config(self, port_handle: Any, mode: str = "config") -> HLT_OK:
        """Acquires ports (`config`, `modify`), or removes their streams (`destroy`).

        The system configures the interfaces.
        """
        client = self._client()
        _check("mode", mode, _INTERFACE_MODES)
        ports = _ports(port_handle, [])
        client.acquire(ports)
        if mode == "destroy":
            self._empty(ports)
        return HLT_OK()

    # Streams.

    @_call
    def traffic_config(self, **user_kwargs: Any) -> HLT_OK:
        """Creates, modifies, removes, enables or disables a stream at ports, or removes all.

        The arguments are those of `STLHltStream`, and `mode`, `port_handle` and `stream_id`. With
        `bidirectional`, a second stream runs in reverse from `port_handle2`.
        """
        client = self._client()
        mode, stream_id = user_kwargs.get("mode"), user_kwargs.get("stream_id")
        _check("mode", mode, _TRAFFIC_MODES)
        ports = _ports(user_kwargs.get("port_handle"), [])
        if mode == "reset" or (mode == "remove" and stream_id == "all"):
            self._empty(ports)
            return HLT_OK()
        if mode == "create":
            if is_true(user_kwargs.get("bidirectional", False)):
                return HLT_OK(stream_id=self._create_both(ports, user_kwargs))
            return HLT_OK(stream_id=self._create(ports, user_kwargs))
        if stream_id is None:
            raise TRexError(f"stream_id: expected the stream to {mode}")
        for port in ports:
            for number in _stream_numbers(stream_id, self._port_streams(port)):
                stream = self._stream_of(port, number)
                if mode == "modify":
                    self._remove(port, number)
                    self._create([port], {**stream.arguments, **user_kwargs}, number)
                elif mode == "remove":
                    self._remove(port, number)
                else:
                    streams = client.links[port].profile(DEFAULT_PROFILE_ID).streams
                    for handle in stream.handles:
                        streams[handle].fields["enabled"] = mode == "enable"
        return HLT_OK()

    @_call
    def traffic_control(self, **user_kwargs: Any) -> HLT_OK:
        """Starts or stops ports, clears their counters, or resets them; `poll` only queries.

        `stopped` in the result is whether none of them sends.
        """
        kwargs, client = _merge_defaults(traffic_control_kwargs, user_kwargs), self._client()
        action = kwargs["action"]
        _check("action", action, _ACTIONS)
        ports = _ports(kwargs["port_handle"], client.get_acquired_ports())
        if action in ("sync_run", "clear_stats"):
            client.clear_stats(ports)
        if action in ("sync_run", "run"):
            client.start(ports)
        elif action == "stop":
            client.stop(ports)
        elif action == "reset":
            client.reset(ports)
            for port in ports:
                self._port_streams(port).clear()
        return HLT_OK(stopped=not client.is_traffic_active(ports))

    @_call
    def traffic_stats(self, **user_kwargs: Any) -> HLT_OK:
        """Returns the counters of ports, by port: `aggregate`, `stream` (by stream), or both
        (`all`).
        """
        kwargs, client = _merge_defaults(traffic_stats_kwargs, user_kwargs), self._client()
        mode = kwargs["mode"]
        _check("mode", mode, _STATS_MODES)
        ports = _ports(kwargs["port_handle"], client.get_acquired_ports())
        stats = client.get_stats(ports)
        found: dict[int, dict[str, Any]] = {port: {} for port in ports}
        for port in ports:
            if mode != "streams":
                directions = {"tx": "o", "rx": "i"}
                found[port]["aggregate"] = {
                    direction: _aggregate(stats[port], direction, letter)
                    for direction, letter in directions.items()
                }
            if mode != "aggregate":
                speed = client.links[port].speed_bps
                found[port]["stream"] = {
                    group: {
                        direction: _stream(counted, direction, port, speed)
                        for direction in ("tx", "rx")
                    }
                    for group, counted in stats["flow_stats"].items()
                    if isinstance(group, int)
                }
        return HLT_OK(found)

    @_call
    def wait_on_traffic(self, port_handle: Any = None, timeout: float | None = None) -> HLT_OK:
        """Waits until ports have sent everything, at most `timeout` seconds."""
        client = self._client()
        ports = None if port_handle is None else _ports(port_handle, [])
        client.wait_on_traffic(ports, timeout)
        return HLT_OK()

    def _client(self) -> STLClient:
        if self.trex_client is None:
            raise TRexError("not connected; call connect() first")
        return self.trex_client

    def _port_streams(self, port: int) -> dict[int, _HltStream]:
        return self._streams.setdefault(port, {})

    def _stream_of(self, port: int, number: int) -> _HltStream:
        if number not in self._port_streams(port):
            raise TRexError(f"port {port} has no stream {number}: make it with mode='create'")
        return self._port_streams(port)[number]

    def _create_both(self, ports: list[int], arguments: dict[str, Any]) -> dict[int, int]:
        """Creates a stream and its reverse. Returns their numbers by port."""
        reverse = _ports(arguments.get("port_handle2"), [])
        if len(ports) != 1 or len(reverse) != 1:
            raise TRexError("bidirectional: expected one port_handle and one port_handle2")
        forward = {name: it for name, it in arguments.items() if name != "bidirectional"}
        direction = int(arguments.get("direction", DEFAULTS["direction"]))
        return {
            ports[0]: self._create(ports, _with_suffix(forward, "_bi1")),
            reverse[0]: self._create(
                reverse,
                {
                    **_with_suffix(forward, "_bi2"),
                    "direction": 1 - direction,
                    "port_handle": reverse,
                },
            ),
        }

    def _create(
        self, ports: list[int], arguments: dict[str, Any], number: int | None = None
    ) -> int:
        """Adds a stream, or those of a profile, to ports. Returns its number."""
        client = self._client()
        if number is None:
            number = int(arguments.get("flow_stats_id") or next(self._numbers))
        if arguments.get("load_profile"):
            direction = int(arguments.get("direction", DEFAULTS["direction"]))
            profile = STLProfile.load_py(arguments["load_profile"], direction=direction)
            streams = [] if profile is None else profile.get_streams()
        else:
            streams = listify(STLHltStream(**{**arguments, "pg_id": number}))
        for port in ports:
            if number in self._port_streams(port):
                raise TRexError(f"port {port} already has a stream {number}")
            if not arguments.get("flow_stats_id"):
                self._disable_uncountable(port, streams)
            handles = listify(client.add_streams(streams, port))
            self._port_streams(port)[number] = _HltStream(dict(arguments), handles)
        return number

    def _disable_uncountable(self, port: int, streams: Iterable[STLStream]) -> None:
        """Removes the counters of unmeasured streams that cannot be counted.

        Such a stream overwrites the bytes that would identify its frames.
        """
        parameters = self._client().links[port].stream_parameters()
        for stream in streams:
            try:
                max_load({1: stream}, parameters, Multiplier(1))
            except TRexError:
                stream.fields["flow_stats"] = STLFlowStatsInterface.defaults()

    def _remove(self, port: int, number: int) -> None:
        self._client().remove_streams(self._stream_of(port, number).handles, port)
        del self._port_streams(port)[number]

    def _empty(self, ports: list[int]) -> None:
        self._client().remove_all_streams(ports)
        for port in ports:
            self._port_streams(port).clear()


class _HltStream:
    """A stream of a port: its arguments, and its IDs there."""

    def __init__(self, arguments: dict[str, Any], handles: list[int]) -> None:
        self.arguments = arguments
        self.handles = handles


class CStreamsPerPort(dict[int, list[int]]):
    """The streams of each port, from the results that created them."""

    def __missing__(self, port: int) -> list[int]:
        return self.setdefault(port, [])

    def get_stream_list(self, ports_list: Any = None) -> dict[int, list[int]]:
        """Returns the streams of each port, or of these ports."""
        ports = self if ports_list is None else listify(ports_list)
        return {port: self[port] for port in ports}

    def add_streams_from_res(self, res: dict[str, Any]) -> None:
        """Adds the streams of a `traffic_config` result."""
        streams = res.get("stream_id")
        if res.get("status") != 1 or not isinstance(streams, dict):
            raise TRexError(f"{res!r}: expected a result with streams by port")
        for port, numbers in streams.items():
            self[port] += listify(numbers)


def _merge_defaults(defaults: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    for name in arguments:
        if name not in defaults:
            warnings.warn(f"argument '{name}' is not supported", stacklevel=5)
    return {**defaults, **{name: it for name, it in arguments.items() if name in defaults}}


def _check(name: str, value: Any, known: Iterable[str]) -> None:
    if value not in known:
        raise TRexError(f"{name} {value!r}: expected one of {', '.join(known)}")


def _ports(named: Any, default: list[int]) -> list[int]:
    """Parses ports given as a number, a list, or a text of numbers."""
    if named is None and default:
        return list(default)
    values = named.split() if isinstance(named, str) else listify(named)
    try:
        return [int(value) for value in values]
    except (TypeError, ValueError):
        raise TRexError(f"ports {named!r}: expected numbers of ports") from None


def _stream_numbers(named: Any, known: Iterable[int]) -> list[int]:
    """Parses streams given as a number, a list, or a text such as `2, 4-13`; `all` selects the
    known ones.
    """
    if named == "all":
        return list(known)
    found: list[int] = []
    parts = named.split(",") if isinstance(named, str) else listify(named)
    for part in parts:
        first, dash, last = str(part).strip().partition("-")
        try:
            start, end = int(first), int(last) if dash else int(first)
        except ValueError:
            raise TRexError(f"stream_id {named!r}: expected numbers, or 2, 4-13") from None
        if end < start:
            raise TRexError(f"stream_id {named!r}: {part} counts down")
        found += range(start, end + 1)
    return found


def _with_suffix(arguments: dict[str, Any], suffix: str) -> dict[str, Any]:
    """Adds a suffix for the direction to the file that a stream is written to."""
    file = arguments.get("save_to_yaml")
    if not isinstance(file, str):
        return arguments
    return {**arguments, "save_to_yaml": file.replace(".yaml", f"{suffix}.yaml")}


def _aggregate(counted: dict[str, float], direction: str, letter: str) -> dict[str, float]:
    return {
        name: counted[form.format(direction if "_" in form else letter)]
        for form, names in _AGGREGATE.items()
        for name in names
    }


def _stream(counted: dict[str, Any], direction: str, port: int, speed: float) -> dict[str, float]:
    found = {
        name: counted[form.format(direction)].get(port, 0)
        for form, names in _STREAM.items()
        for name in names
    }
    bits_l1 = counted[f"{direction}_bps_l1"].get(port, 0)
    return {**found, "line_rate_percentage": 100 * bits_l1 / speed if speed else 0.0}
