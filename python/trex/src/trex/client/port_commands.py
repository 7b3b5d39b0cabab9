"""A port in TRex's form: its state, and commands that return results instead of raising.

Each command is the client's command of the same name for this port. `ports[0]` and `get_port(0)` of
a client return it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from trex.client.context import TRexCtx
from trex.client.multiplier import Multiplier
from trex.client.profile_id import DEFAULT_PROFILE_ID, PortProfileID
from trex.client.rc import RC, RC_ERR, RC_OK
from trex.client.transmission import max_load
from trex.client.unsupported import Unsupported
from trex.errors import TRexArgumentError, TRexError
from trex.lines.tables import table, values

if TYPE_CHECKING:
    from trex.client.port import Port, Profile

# Multipliers in the form of TRex's objects: types, and operations on the current rate.
_UNITS = {"raw": "", "percentage": "%", "pps": "pps", "bps": "bps", "bpsl1": "bpsl1"}
_SIGNS = {"abs": "", "add": "+", "sub": "-"}
_PROFILE_HEADERS = ("Profile ID", "state", "stream ID")
_STREAM_HEADERS = ("ID", "name", "profile", "length", "mode", "rate", "next")
_NO_SERVER = "there is no server to send it; the port's state is that of the engine in this process"
# Names of port attributes in TRex, and the arguments of `set_port_attr`.
_ATTRIBUTES = {
    "promiscuous": "promiscuous",
    "multicast": "multicast",
    "link_status": "link_up",
    "led_status": "led_on",
    "flow_ctrl_mode": "flow_ctrl",
    "vxlan_fs": "vxlan_fs",
}


def _server_message(name: str) -> Callable[..., NoReturn]:
    """Returns a method for messages of TRex's server, which raises `TRexError`."""

    def method(self: PortCommands, *arguments: Any, **kwargs: Any) -> NoReturn:
        message = f"{name}() takes messages of TRex's server"
        raise TRexError(f"port {self.port_id}: {message}: {_NO_SERVER}")

    method.__name__ = name
    method.__doc__ = "Raises `TRexError`: there is no server."
    return method


class PortCounters:
    """Counters of a port."""

    def __init__(self, title: str, read_counters: Callable[[], dict[str, Any]]) -> None:
        self._title = title
        self._read_counters = read_counters

    def get_stats(self) -> dict[str, Any]:
        """Returns the counters by name."""
        return self._read_counters()

    def to_table(self) -> str:
        """Returns the counters as text."""
        return values(self._title, self._read_counters())


class PortCommands:
    """A port. Commands return an `RC`, which is false and has the reason if they fail."""

    MASK_ALL = (1 << 64) - 1
    STATE_IDLE, STATE_STREAMS, STATE_TX, STATE_PAUSE, STATE_PCAP_TX = range(5)
    STATE_ASTF_LOADED, STATE_ASTF_PARSE, STATE_ASTF_BUILD, STATE_ASTF_CLEANUP = range(5, 9)
    STATES_MAP = {
        STATE_IDLE: "IDLE",
        STATE_STREAMS: "IDLE",
        STATE_TX: "TRANSMITTING",
        STATE_PAUSE: "PAUSE",
        STATE_PCAP_TX: "TRANSMITTING",
        STATE_ASTF_LOADED: "LOADED",
        STATE_ASTF_PARSE: "PARSING",
        STATE_ASTF_BUILD: "BUILDING",
        STATE_ASTF_CLEANUP: "CLEANUP",
    }

    # Attributes of TRex's ports for their server connection, which does not exist here.
    rpc = Unsupported("client commands run in this process")
    transmit = Unsupported("client commands run in this process")
    transmit_batch = Unsupported("client commands run in this process")
    status = Unsupported("use get_formatted_info()")
    ticket_id = Unsupported("use is_async_results_ready()")
    last_async_results = Unsupported("use get_async_results()")
    last_factor_type = Unsupported("use get_profile()")
    next_available_id = Unsupported("add_streams() returns the stream IDs")
    service_mask = Unsupported("is_service_filtered_mode_on() reports the one filter")
    tx_stopped_ts = Unsupported("is_profile_active() returns whether all has arrived")
    #: A port can have several profiles at a time.
    is_dynamic = True
    #: Properties are always current.
    synced = True

    def __init__(self, client: Any, number: int) -> None:
        self._client = client
        self.port_id = number

    @property
    def _link(self) -> Port:
        found: Port | None = self._client.links.get(self.port_id)
        if found is None:
            known = ", ".join(map(str, self._client.links)) or "none: not connected"
            raise TRexArgumentError("port", self.port_id, known)
        return found

    # State.

    @property
    def info(self) -> dict[str, Any]:
        """Properties of the port."""
        return self._link.info()

    @property
    def state(self) -> int:
        """State as a number."""
        link = self._link
        if link.is_active:
            return self.STATE_PAUSE if link.is_paused else self.STATE_TX
        return self.STATE_STREAMS if link.streams else self.STATE_IDLE

    @property
    def streams(self) -> dict[int, Any]:
        """Streams by ID."""
        return self._link.streams

    @property
    def handler(self) -> str:
        """Not empty while the client has acquired the port."""
        return self.get_owner() if self.is_acquired() else ""

    @property
    def owner(self) -> str:
        """Owner of the port."""
        return self.get_owner()

    @property
    def service_mode(self) -> bool:
        """Whether the port is in service mode."""
        return self._link.is_service

    @property
    def service_mode_filtered(self) -> bool:
        """Whether the port is in filtered service mode."""
        return self._link.service_filtered

    @property
    def profile_state_list(self) -> dict[str, int]:
        """State of each profile as a number."""
        return {name: self._state_of(one) for name, one in self._link.profiles.items()}

    @property
    def profile_stream_list(self) -> dict[str, list[int]]:
        """Stream IDs of each profile."""
        return {name: list(one.streams) for name, one in self._link.profiles.items()}

    @property
    def ctx(self) -> TRexCtx:
        """User, session and connection of the client."""
        found: TRexCtx = self._client.ctx
        return found

    @property
    def has_rx_streams(self) -> bool:
        """Whether a stream is measured."""
        return self.has_rx_enabled()

    @property
    def profile(self) -> dict[str, Any] | None:
        """Same as `get_profile`."""
        return self.get_profile()

    @property
    def stats(self) -> PortCounters:
        """Same as `get_stats`."""
        return self.get_stats()

    @property
    def xstats(self) -> PortCounters:
        """Same as `get_xstats`."""
        return self.get_xstats()

    def get_owner(self) -> str:
        """Returns the user's name if the port is acquired, else an empty string."""
        return str(self._client.get_connection_info()["username"]) if self.is_acquired() else ""

    def is_acquired(self) -> bool:
        """Returns whether the client has acquired the port."""
        return self._link.is_acquired

    def is_up(self) -> bool:
        """Returns whether the interface has a carrier."""
        return bool(self._link.read_properties()["has_carrier"])

    def is_virtual(self) -> bool:
        """Returns whether the interface is virtual."""
        return bool(self._link.properties["is_virtual"])

    def is_active(self) -> bool:
        """Returns whether the port sends or is paused."""
        return self._link.is_active

    def is_transmitting(self) -> bool:
        """Returns whether the port sends."""
        return self._link.is_active and not self._link.is_paused

    def is_paused(self) -> bool:
        """Returns whether all its traffic is paused."""
        return self._link.is_paused

    def is_writeable(self) -> bool:
        """Returns True: streams can be added, except to profiles that are sending."""
        return True

    def is_sync(self) -> bool:
        """Returns True: properties are always current."""
        return True

    def is_profile_active(self, profile_id: str) -> bool:
        """Returns whether a profile sends or is paused."""
        found = self._link.profiles.get(profile_id)
        return found is not None and found.is_active

    def is_link_change_supported(self) -> bool:
        """Returns False: the system sets the link state."""
        return False

    def is_prom_supported(self) -> bool:
        """Returns True: the port supports promiscuous mode."""
        return True

    def is_prom_enabled(self) -> bool:
        """Returns whether promiscuous mode is on."""
        return self._link.is_prom_enabled()

    def is_mult_enabled(self) -> bool:
        """Returns whether multicast mode is on."""
        return self._link.is_mult_enabled()

    def is_service_mode_on(self) -> bool:
        """Returns whether the port is in service mode."""
        return self._link.is_service

    def is_service_filtered_mode_on(self) -> bool:
        """Returns whether the port is in filtered service mode."""
        return self._link.service_filtered

    def support_set_service_mode(self) -> bool:
        """Returns True: the port supports service mode."""
        return True

    def is_l3_mode(self) -> bool:
        """Returns whether the next hop has an IPv4 address."""
        return self._link.layer.mode == "ipv4"

    def has_ipv6(self) -> bool:
        """Returns whether `conf_ipv6` has enabled an address."""
        return self._link.has_own_ipv6

    def is_resolved(self) -> bool:
        """Returns whether the Ethernet address of the next hop is known."""
        return self._link.is_resolved()

    def get_speed_bps(self) -> float:
        """Returns the line speed in bits per second."""
        return self._link.speed_bps

    def get_speed_gbps(self) -> float:
        """Returns the line speed in Gb/s."""
        return self._link.speed_bps / 1e9

    def get_port_state_name(self) -> str:
        """Returns TRex's name of the state."""
        return self.STATES_MAP[self.state]

    def get_port_cores(self) -> list[int]:
        """Returns no cores, because its threads run on any core."""
        return []

    def get_layer_cfg(self) -> dict[str, Any]:
        """Returns the addresses: `ether`, `ipv4` and `ipv6`."""
        return self._link.get_layer_cfg()

    def get_vlan_cfg(self) -> list[int]:
        """Returns the VLAN, or the outer and the inner one."""
        return list(self._link.vlan)

    def get_ts_attr(self) -> dict[str, Any]:
        """Returns the attributes in the format of TRex's server."""
        link = self._link
        return {
            "layer_cfg": link.get_layer_cfg(),
            "vlan": {"tags": list(link.vlan)},
            "promiscuous": {"enabled": link.is_prom_enabled()},
            "multicast": {"enabled": link.is_mult_enabled()},
            "link": {"up": self.is_up()},
            "speed": self.get_speed_gbps(),
            "rx_filter_mode": "hw",
            "vxlan_fs": [],
        }

    def get_formatted_info(self, sync: bool = True) -> dict[str, Any]:
        """Returns the properties of the port."""
        return self._link.info()

    def get_port_status(self) -> str:
        """Returns the properties as text."""
        return values(f"port {self.port_id}", self._link.info())

    # Counters.

    def get_stats(self) -> PortCounters:
        """Returns the counters, as `get_stats` of the client."""
        number = self.port_id
        read_counters = lambda: dict(self._client.get_stats([number])[number])  # noqa: E731
        return PortCounters(f"port {number}", read_counters)

    get_port_stats = get_stats

    def get_xstats(self) -> PortCounters:
        """Returns the kernel's counters of the interface."""
        return PortCounters(
            f"port {self.port_id}", lambda: dict(self._client.get_xstats(self.port_id))
        )

    get_port_xstats = get_xstats

    # Owners.

    def acquire(self, force: bool = False) -> RC:
        """Acquires the port."""
        return self._run_command(self._client._acquire_ports, self.port_id, force)

    def release(self) -> RC:
        """Releases the port."""
        return self._run_command(self._client._release_ports, self.port_id)

    # Streams.

    def get_stream(self, stream_id: int) -> Any:
        """Returns a stream by ID, None if it does not exist."""
        return self.streams.get(stream_id)

    def get_all_streams(self) -> dict[int, Any]:
        """Returns the streams by ID."""
        return self.streams

    def add_streams(self, streams_list: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Adds streams. Returns their IDs."""
        return self._run_command(
            self._client.add_streams, streams_list, self._profile_key(profile_id)
        )

    def remove_streams(self, stream_id_list: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Removes streams by ID."""
        return self._run_command(
            self._client.remove_streams, stream_id_list, self._profile_key(profile_id)
        )

    def remove_all_streams(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Removes all streams of a profile, or of all profiles with `*`."""
        return self._run_command(self._client.remove_all_streams, self._profile_key(profile_id))

    def has_rx_enabled(self) -> bool:
        """Returns whether a stream is measured."""
        return any(stream.has_flow_stats() for stream in self.streams.values())

    def has_profile_rx_enabled(self, profile_id: str) -> bool:
        """Returns whether a stream of a profile is measured."""
        found = self._link.profiles.get(profile_id)
        streams = {} if found is None else found.streams
        return any(stream.has_flow_stats() for stream in streams.values())

    def has_rx_delay_expired(self, profile_id: str, rx_delay_ms: float) -> bool:
        """Returns whether the frames of a profile had time to arrive.

        A profile is active until then, whatever the given time.
        """
        return not self.is_profile_active(profile_id)

    def remove_rx_filters(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Does nothing: the measurement of a profile ends with it."""
        return RC_OK()

    def get_port_profiles(self, state: str = "all") -> list[PortProfileID]:
        """Returns the profiles that are `active`, `transmitting`, `paused`, with `streams`, or
        `all`.
        """
        found = (PortProfileID(name) for name in self._client.get_profiles_with_state(state))
        return [one for one in found if one.port_id == self.port_id]

    def generate_loaded_profiles(self) -> str:
        """Returns the profiles as text: states and stream IDs."""
        rows = [
            (name, profile.state, ", ".join(map(str, profile.streams)) or "-")
            for name, profile in self._link.profiles.items()
        ]
        title = f"Port {self.port_id}:"
        return table(title, _PROFILE_HEADERS, rows, f"{title} no profiles")

    def generate_loaded_streams_sum(self, stream_id_list: Any, table_format: bool = True) -> Any:
        """Returns streams, all or with these IDs: as text, or without `table_format` by ID."""
        of = {
            number: name
            for name, profile in self._link.profiles.items()
            for number in profile.streams
        }
        chosen = set(stream_id_list or of)
        streams = {number: it for number, it in sorted(self.streams.items()) if number in chosen}
        if not streams or not table_format:
            return streams
        rows = [
            (
                str(number),
                stream.get_name() or "-",
                of[number],
                str(stream.get_pkt_len()),
                stream.get_mode(),
                stream.get_rate(),
                stream.get_next() or "-",
            )
            for number, stream in streams.items()
        ]
        return table(f"Port {self.port_id}:", _STREAM_HEADERS, rows, "")

    # Streams.

    def start(
        self,
        mul: Any,
        duration: float,
        force: bool,
        mask: int | None,
        start_at_ts: float = 0,
        profile_id: str = DEFAULT_PROFILE_ID,
    ) -> RC:
        """Starts a profile at once.

        `mul` is the text of a multiplier, or a dictionary of `type`, `value` and `op`. `mask` has
        no effect.
        """
        return self._run_command(
            lambda: self._client.start_stl(
                [self._profile_key(profile_id)], _multiplier(mul), force, duration
            )
        )

    def stop(self, force: bool = False, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Stops a profile."""
        return self._run_command(self._client.stop_stl, [self._profile_key(profile_id)])

    def pause(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Pauses a profile."""
        return self._run_command(self._client.pause, [self._profile_key(profile_id)])

    def resume(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Resumes a profile."""
        return self._run_command(self._client.resume, [self._profile_key(profile_id)])

    def update(self, mul: Any, force: bool, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Changes the rate of a profile."""
        return self._run_command(
            lambda: self._client.update_stl(
                [self._profile_key(profile_id)], _multiplier(mul, allow_update=True), False, force
            )
        )

    def pause_streams(self, stream_ids: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Pauses streams."""
        return self._run_command(
            self._client.pause_streams, self._profile_key(profile_id), stream_ids
        )

    def resume_streams(self, stream_ids: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Resumes streams."""
        return self._run_command(
            self._client.resume_streams, self._profile_key(profile_id), stream_ids
        )

    def update_streams(
        self, mul: Any, force: bool, stream_ids: Any, profile_id: str = DEFAULT_PROFILE_ID
    ) -> RC:
        """Changes the rate of streams."""
        return self._run_command(
            lambda: self._client.update_streams(
                self._profile_key(profile_id), _multiplier(mul), force, stream_ids
            )
        )

    def push_packets(self, pkts: Any, force: bool, ipg_usec: float) -> RC:
        """Sends packets one after the other."""
        return self._run_command(self._client.push_packets, pkts, self.port_id, force, ipg_usec)

    def push_remote(
        self,
        pcap_filename: str,
        ipg_usec: float | None,
        speedup: float,
        count: int,
        duration: float,
        is_dual: bool,
        slave_handler: Any,
        min_ipg_usec: float | None,
    ) -> RC:
        """Sends a capture.

        `slave_handler` has no effect: with `is_dual`, the neighbour port must belong to the client
        too.
        """
        return self._run_command(
            lambda: self._client.push_remote(
                pcap_filename,
                self.port_id,
                ipg_usec,
                speedup,
                count,
                duration,
                is_dual,
                min_ipg_usec,
            )
        )

    def validate(self) -> RC:
        """Returns the maximum load of the streams, as `get_profile`."""
        if not self.streams:
            return RC_ERR(f"port {self.port_id} has no streams; call add_streams() first")
        return self._run_command(self.get_profile)

    def get_profile(self) -> dict[str, Any] | None:
        """Returns `rate`, the maximum load of the streams; None without streams."""
        link = self._link
        if not link.streams:
            return None
        load = max_load(link.streams, link.stream_parameters(), Multiplier(1.0))
        return {
            "rate": {
                "max_pps": load[0],
                "max_bps_l2": load[1],
                "max_bps_l1": load[2],
                "max_line_util": 100 * load[2] / link.speed_bps,
            }
        }

    def print_profile(self, mult: Any, duration: float) -> None:
        """Prints the maximum load of the streams, without and with a multiplier."""
        link, profile = self._link, self.get_profile()
        if profile is None:
            return
        load = max_load(link.streams, link.stream_parameters(), Multiplier.parse(_multiplier(mult)))
        requested = (*load, 100 * load[2] / link.speed_bps)
        rows = [
            (name, base, rate) for (name, base), rate in zip(profile["rate"].items(), requested)
        ]
        print(table(f"Port {self.port_id}", ("rate", "base", "requested"), rows, ""))

    # Addresses, modes and attributes.

    def set_service_mode(self, enabled: bool, filtered: bool, mask: Any) -> RC:
        """Switches service mode on or off."""
        return self._run_command(
            self._client.set_service_mode, self.port_id, enabled, filtered, mask
        )

    def set_l2_mode(self, dst_mac: str) -> RC:
        """Sets the destination Ethernet address."""
        return self._run_command(self._client.set_l2_mode, self.port_id, dst_mac)

    def set_l3_mode(self, src_addr: str, dst_addr: str, resolved_mac: str | None = None) -> RC:
        """Sets the addresses of the port and its next hop.

        Resolves the next hop, unless `resolved_mac` is its Ethernet address.
        """
        if resolved_mac is None:
            return self._run_command(self._client.set_l3_mode, self.port_id, src_addr, dst_addr)
        return self._run_command(
            self._client._set_next_hop, self.port_id, src_addr, dst_addr, resolved_mac
        )

    def invalidate_arp(self) -> RC:
        """Clears the Ethernet address of the next hop. `resolve` finds it again."""
        link = self._link
        if not self.is_l3_mode():
            return RC_ERR(f"port {self.port_id} has no next hop; set one with set_l3_mode()")
        link.layer.resolved = None
        return RC_OK()

    def conf_ipv6(self, enabled: bool, src_ipv6: str | None) -> RC:
        """Sets or removes the IPv6 address."""
        return self._run_command(self._client.conf_ipv6, self.port_id, enabled, src_ipv6)

    def set_vlan(self, vlan: Any) -> RC:
        """Sets the VLANs of its requests, answers and pings."""
        return self._run_command(self._client.set_vlan, self.port_id, vlan)

    def set_attr(self, **kwargs: Any) -> RC:
        """Sets attributes: `promiscuous` and `multicast`. Others return an error."""
        attributes = {name: value for name, value in kwargs.items() if value is not None}
        unknown = [name for name in attributes if name not in _ATTRIBUTES]
        if unknown:
            known = ", ".join(_ATTRIBUTES)
            return RC_ERR(f"port {self.port_id} has no attribute {unknown[0]} to set, but {known}")
        attributes_set = {_ATTRIBUTES[name]: value for name, value in attributes.items()}
        return self._run_command(lambda: self._client.set_port_attr(self.port_id, **attributes_set))

    # Forwarded frames and nodes.

    def set_rx_queue(self, size: int) -> RC:
        """Starts to keep the last received frames."""
        return self._run_command(self._client.set_rx_queue, self.port_id, size)

    def remove_rx_queue(self) -> RC:
        """Stops keeping frames."""
        return self._run_command(self._client.remove_rx_queue, self.port_id)

    def get_rx_queue_pkts(self) -> RC:
        """Removes and returns the frames in the queue: `binary`, `ts` (seconds since 1970) and so
        on.

        Returns an error if the port is not in service mode.
        """
        link = self._link
        if not link.is_service:
            return RC_ERR(
                f"port {link.number} is not in service mode; call set_service_mode() first"
            )
        return RC_OK([] if link.rx_queue is None else link.rx_queue.pop_frames())

    def start_capture_port(self, endpoint: str, bpf_filter: str | None = None) -> RC:
        """Connects the port to a ZeroMQ socket."""
        return self._run_command(
            self._client.start_capture_port, self.port_id, endpoint, bpf_filter
        )

    def stop_capture_port(self) -> RC:
        """Disconnects the port from the ZeroMQ socket."""
        return self._run_command(self._client.stop_capture_port, self.port_id)

    def set_capture_port_bpf_filter(self, bpf_filter: str | None) -> RC:
        """Sets the filter of frames to the socket."""
        return self._run_command(self._client.set_capture_port_bpf_filter, self.port_id, bpf_filter)

    def set_namespace_start(self, json_str_commands: Any) -> RC:
        """Executes commands for nodes, from an `NSCmds` or its JSON."""
        return self._run_command(self._client._execute, self.port_id, json_str_commands)

    def is_async_results_ready(self) -> bool:
        """Returns whether there are results of commands for nodes."""
        return bool(self._client.is_async_results_ready(self.port_id))

    def get_async_results(self, timeout: int | None = None, cb: Any = None) -> Any:
        """Returns the result of each command for nodes."""
        try:
            return self._client.wait_for_async_results(self.port_id, timeout, cb)
        except TRexError as error:
            return RC_ERR(str(error))

    # Methods of TRex's server connection.

    def ok(self, data: Any = "") -> RC:
        """Returns a successful result."""
        return RC_OK(data)

    def err(self, msg: str) -> RC:
        """Returns an error result for this port."""
        return RC_ERR(f"Port {self.port_id} : *** {msg}")

    def sync(self) -> RC:
        """Does nothing: properties are always current."""
        return RC_OK()

    def sync_streams(self) -> RC:
        """Does nothing: streams are always current."""
        return RC_OK()

    sync_shared = _server_message("sync_shared")
    sync_port_streams = _server_message("sync_port_streams")
    state_from_name = _server_message("state_from_name")
    state_from_name_dynamic = _server_message("state_from_name_dynamic")
    update_ts_attr = _server_message("update_ts_attr")
    async_event_port_acquired = _server_message("async_event_port_acquired")
    async_event_port_attr_changed = _server_message("async_event_port_attr_changed")
    async_event_port_job_done = _server_message("async_event_port_job_done")
    async_event_port_paused = _server_message("async_event_port_paused")
    async_event_port_released = _server_message("async_event_port_released")
    async_event_port_resumed = _server_message("async_event_port_resumed")
    async_event_port_started = _server_message("async_event_port_started")
    async_event_port_stopped = _server_message("async_event_port_stopped")
    async_event_profile_job_done = _server_message("async_event_profile_job_done")
    async_event_profile_paused = _server_message("async_event_profile_paused")
    async_event_profile_resumed = _server_message("async_event_profile_resumed")
    async_event_profile_started = _server_message("async_event_profile_started")
    async_event_profile_stopped = _server_message("async_event_profile_stopped")

    # Internal methods.

    def _profile_key(self, profile_id: str) -> str:
        return f"{self.port_id}.{profile_id}"

    def _state_of(self, profile: Profile) -> int:
        if profile.is_active:
            return self.STATE_PAUSE if profile.is_paused else self.STATE_TX
        return self.STATE_STREAMS if profile.streams else self.STATE_IDLE

    def _run_command(self, command: Callable[..., Any], *arguments: Any) -> RC:
        """Calls a command of the client and converts its error to a result."""
        try:
            found = command(*arguments)
        except TRexError as error:
            return RC_ERR(str(error))
        return found if isinstance(found, RC) else RC_OK("" if found is None else found)


def _multiplier(mul: Any, allow_update: bool = False) -> str:
    """Returns the text of a multiplier."""
    if not isinstance(mul, Mapping):
        return str(mul)
    unit, sign = _UNITS.get(mul.get("type", "")), _SIGNS.get(mul.get("op", "abs"))
    if unit is None or sign is None or (sign and not allow_update):
        raise TRexArgumentError("mul", dict(mul), f"type: {', '.join(_UNITS)}; op: abs, add, sub")
    return f"{sign}{mul.get('value')}{unit}"
