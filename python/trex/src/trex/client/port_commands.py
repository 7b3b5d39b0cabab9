"""A port as TRex's scripts see it: what it is doing, and commands that answer instead of raising.

Each command is the client's own of that name, for this port. `ports[0]` and `get_port(0)` of a
client have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from trex.client.absent import Absent
from trex.client.answers import RC, RC_ERR, RC_OK
from trex.client.context import TRexCtx
from trex.client.multiplier import Multiplier
from trex.client.profile_id import DEFAULT_PROFILE_ID, PortProfileID
from trex.client.transmission import load_of
from trex.errors import TRexArgumentError, TRexError
from trex.lines.tables import table, values

if TYPE_CHECKING:
    from trex.client.port import Port, Profile

# How TRex's objects write multipliers: their types, and what they do to the rate of now.
_UNITS = {"raw": "", "percentage": "%", "pps": "pps", "bps": "bps", "bpsl1": "bpsl1"}
_SIGNS = {"abs": "", "add": "+", "sub": "-"}
_PROFILE_HEADERS = ("Profile ID", "state", "stream ID")
_STREAM_HEADERS = ("ID", "name", "profile", "length", "mode", "rate", "next")
_NO_SERVER = (
    "there is no server that would send it: the port's state is that of the engine in this process"
)
# What TRex calls the attributes of a port, and what `set_port_attr` does.
_ATTRIBUTES = {
    "promiscuous": "promiscuous",
    "multicast": "multicast",
    "link_status": "link_up",
    "led_status": "led_on",
    "flow_ctrl_mode": "flow_ctrl",
    "vxlan_fs": "vxlan_fs",
}


def _told_by_server(name: str) -> Callable[..., NoReturn]:
    """A method that takes what TRex's server sends, which raises `TRexError`."""

    def method(self: PortCommands, *arguments: Any, **named: Any) -> NoReturn:
        what = f"{name}() takes what TRex's server sends"
        raise TRexError(f"port {self.port_id}: {what}: {_NO_SERVER}")

    method.__name__ = name
    method.__doc__ = "Raises `TRexError`: there is no server."
    return method


class PortCounters:
    """Counters of a port."""

    def __init__(self, title: str, counted: Callable[[], dict[str, Any]]) -> None:
        self._title = title
        self._counted = counted

    def get_stats(self) -> dict[str, Any]:
        """The counters by name."""
        return self._counted()

    def to_table(self) -> str:
        """The same as text."""
        return values(self._title, self._counted())


class PortCommands:
    """A port. Commands return an `RC`: false, with the reason, if they are refused."""

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

    # What TRex's ports have of their connection to a server, which is not there.
    rpc = Absent("the commands of a client are carried out in this process")
    transmit = Absent("the commands of a client are carried out in this process")
    transmit_batch = Absent("the commands of a client are carried out in this process")
    status = Absent("get_formatted_info() has what is known of a port")
    ticket_id = Absent("is_async_results_ready() tells whether commands have results")
    last_async_results = Absent("get_async_results() takes the results of commands")
    last_factor_type = Absent("get_profile() has what streams send")
    next_available_id = Absent("add_streams() returns the numbers of streams")
    service_mask = Absent("is_service_filtered_mode_on() reports the one filter")
    tx_stopped_ts = Absent("is_profile_active() returns whether all has arrived")
    #: There may be several profiles at a time.
    is_dynamic = True
    #: Facts are always current.
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

    # What it is.

    @property
    def info(self) -> dict[str, Any]:
        """What is known of it."""
        return self._link.info()

    @property
    def state(self) -> int:
        """What it is doing, as a number."""
        link = self._link
        if link.is_active:
            return self.STATE_PAUSE if link.is_paused else self.STATE_TX
        return self.STATE_STREAMS if link.streams else self.STATE_IDLE

    @property
    def streams(self) -> dict[int, Any]:
        """Its streams by number."""
        return self._link.streams

    @property
    def handler(self) -> str:
        """Not empty while the client has it."""
        return self.get_owner() if self.is_acquired() else ""

    @property
    def owner(self) -> str:
        """Who has it."""
        return self.get_owner()

    @property
    def service_mode(self) -> bool:
        """Whether it is in service mode."""
        return self._link.is_service

    @property
    def service_mode_filtered(self) -> bool:
        """Whether it is in filtered service mode."""
        return self._link.service_filtered

    @property
    def profile_state_list(self) -> dict[str, int]:
        """The state of each of its profiles, as a number."""
        return {name: self._state_of(one) for name, one in self._link.profiles.items()}

    @property
    def profile_stream_list(self) -> dict[str, list[int]]:
        """The numbers of each profile's streams."""
        return {name: list(one.streams) for name, one in self._link.profiles.items()}

    @property
    def ctx(self) -> TRexCtx:
        """Who is connected with what."""
        found: TRexCtx = self._client.ctx
        return found

    @property
    def has_rx_streams(self) -> bool:
        """Whether one of its streams is measured."""
        return self.has_rx_enabled()

    @property
    def profile(self) -> dict[str, Any] | None:
        """As `get_profile`."""
        return self.get_profile()

    @property
    def stats(self) -> PortCounters:
        """As `get_stats`."""
        return self.get_stats()

    @property
    def xstats(self) -> PortCounters:
        """As `get_xstats`."""
        return self.get_xstats()

    def get_owner(self) -> str:
        """Who has it: the user's name, nobody's where it is free."""
        return str(self._client.get_connection_info()["username"]) if self.is_acquired() else ""

    def is_acquired(self) -> bool:
        """Whether the client has it."""
        return self._link.is_acquired

    def is_up(self) -> bool:
        """Whether its interface has a carrier."""
        return bool(self._link.look()["has_carrier"])

    def is_virtual(self) -> bool:
        """Whether its interface is one of software alone."""
        return bool(self._link.facts["is_virtual"])

    def is_active(self) -> bool:
        """Whether it sends, or is held."""
        return self._link.is_active

    def is_transmitting(self) -> bool:
        """Whether it sends."""
        return self._link.is_active and not self._link.is_paused

    def is_paused(self) -> bool:
        """Whether all that it sends is held."""
        return self._link.is_paused

    def is_writeable(self) -> bool:
        """Whether it can be given streams: profiles that are sending cannot, others can."""
        return True

    def is_sync(self) -> bool:
        """Whether facts are current: always."""
        return True

    def is_profile_active(self, profile_id: str) -> bool:
        """Whether one of its profiles sends, or is held."""
        found = self._link.profiles.get(profile_id)
        return found is not None and found.is_active

    def is_link_change_supported(self) -> bool:
        """Whether `set_attr` sets its link: the system does."""
        return False

    def is_prom_supported(self) -> bool:
        """Whether it can hear every frame."""
        return True

    def is_prom_enabled(self) -> bool:
        """Whether `set_port_attr` lets it hear every frame."""
        return self._link.is_prom_enabled()

    def is_mult_enabled(self) -> bool:
        """Whether `set_port_attr` lets it hear frames to every group."""
        return self._link.is_mult_enabled()

    def is_service_mode_on(self) -> bool:
        """Whether it is in service mode."""
        return self._link.is_service

    def is_service_filtered_mode_on(self) -> bool:
        """Whether it is in filtered service mode."""
        return self._link.service_filtered

    def support_set_service_mode(self) -> bool:
        """Whether it can be in service mode."""
        return True

    def is_l3_mode(self) -> bool:
        """Whether its next hop is named by an address of IPv4."""
        return self._link.layer.mode == "ipv4"

    def has_ipv6(self) -> bool:
        """Whether `conf_ipv6` has given it an address."""
        return self._link.has_own_ipv6

    def is_resolved(self) -> bool:
        """Whether it knows the Ethernet address of its next hop."""
        return self._link.is_resolved()

    def get_speed_bps(self) -> float:
        """Bits a second of its line."""
        return self._link.speed_bps

    def get_speed_gbps(self) -> float:
        """The same in Gb/s."""
        return self._link.speed_bps / 1e9

    def get_port_state_name(self) -> str:
        """What it is doing, in TRex's word."""
        return self.STATES_MAP[self.state]

    def get_port_cores(self) -> list[int]:
        """The cores that send: none, for its threads run wherever the system lets them."""
        return []

    def get_layer_cfg(self) -> dict[str, Any]:
        """Its addresses: of `ether`, `ipv4` and `ipv6`."""
        return self._link.get_layer_cfg()

    def get_vlan_cfg(self) -> list[int]:
        """The VLAN in which it asks, or the outer and the inner one."""
        return list(self._link.vlan)

    def get_ts_attr(self) -> dict[str, Any]:
        """Its attributes, as TRex's server tells them."""
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
        """What is known of it, for people."""
        return self._link.info()

    def get_port_status(self) -> str:
        """The same as text."""
        return values(f"port {self.port_id}", self._link.info())

    # Counters.

    def get_stats(self) -> PortCounters:
        """Its counters, as `get_stats` of the client has them."""
        number = self.port_id
        counted = lambda: dict(self._client.get_stats([number])[number])  # noqa: E731
        return PortCounters(f"port {number}", counted)

    get_port_stats = get_stats

    def get_xstats(self) -> PortCounters:
        """What the kernel has counted at its interface."""
        return PortCounters(
            f"port {self.port_id}", lambda: dict(self._client.get_xstats(self.port_id))
        )

    get_port_xstats = get_xstats

    # Owners.

    def acquire(self, force: bool = False) -> RC:
        """Takes it."""
        return self._answer(self._client._take, self.port_id, force)

    def release(self) -> RC:
        """Gives it back."""
        return self._answer(self._client._give_back, self.port_id)

    # Streams.

    def get_stream(self, stream_id: int) -> Any:
        """A stream by its number, None if there is none."""
        return self.streams.get(stream_id)

    def get_all_streams(self) -> dict[int, Any]:
        """Its streams by number."""
        return self.streams

    def add_streams(self, streams_list: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Adds streams; their numbers."""
        return self._answer(self._client.add_streams, streams_list, self._one(profile_id))

    def remove_streams(self, stream_id_list: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Removes streams by their numbers."""
        return self._answer(self._client.remove_streams, stream_id_list, self._one(profile_id))

    def remove_all_streams(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Removes all streams of a profile, or with `*` of all."""
        return self._answer(self._client.remove_all_streams, self._one(profile_id))

    def has_rx_enabled(self) -> bool:
        """Whether one of its streams is measured."""
        return any(stream.has_flow_stats() for stream in self.streams.values())

    def has_profile_rx_enabled(self, profile_id: str) -> bool:
        """Whether a stream of a profile is measured."""
        found = self._link.profiles.get(profile_id)
        streams = {} if found is None else found.streams
        return any(stream.has_flow_stats() for stream in streams.values())

    def has_rx_delay_expired(self, profile_id: str, rx_delay_ms: float) -> bool:
        """Whether what a profile sent has had the time to arrive. A profile is active until then,
        whatever the time that is given."""
        return not self.is_profile_active(profile_id)

    def remove_rx_filters(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Nothing is left to do: what a profile measures ends with it."""
        return RC_OK()

    def get_port_profiles(self, state: str = "all") -> list[PortProfileID]:
        """Its profiles: `active`, `transmitting`, `paused`, with `streams`, or `all`."""
        found = (PortProfileID(name) for name in self._client.get_profiles_with_state(state))
        return [one for one in found if one.port_id == self.port_id]

    def generate_loaded_profiles(self) -> str:
        """Its profiles as text: their states and the numbers of their streams."""
        rows = [
            (name, profile.state, ", ".join(map(str, profile.streams)) or "-")
            for name, profile in self._link.profiles.items()
        ]
        title = f"Port {self.port_id}:"
        return table(title, _PROFILE_HEADERS, rows, f"{title} no profiles")

    def generate_loaded_streams_sum(self, stream_id_list: Any, table_format: bool = True) -> Any:
        """Its streams of these numbers, or all: as text, or without `table_format` by number."""
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

    # Sending.

    def start(
        self,
        mul: Any,
        duration: float,
        force: bool,
        mask: int | None,
        start_at_ts: float = 0,
        profile_id: str = DEFAULT_PROFILE_ID,
    ) -> RC:
        """Starts a profile. `mul`: the text of a multiplier, or a dictionary of `type`, `value` and
        `op`; `mask` has no effect, and it starts now."""
        return self._answer(
            lambda: self._client.start_stl(
                [self._one(profile_id)], _multiplier(mul), force, duration
            )
        )

    def stop(self, force: bool = False, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Ends what a profile sends."""
        return self._answer(self._client.stop_stl, [self._one(profile_id)])

    def pause(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Holds what a profile sends."""
        return self._answer(self._client.pause, [self._one(profile_id)])

    def resume(self, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Lets go on what was held."""
        return self._answer(self._client.resume, [self._one(profile_id)])

    def update(self, mul: Any, force: bool, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Sends at another rate."""
        return self._answer(
            lambda: self._client.update_stl(
                [self._one(profile_id)], _multiplier(mul, allow_update=True), False, force
            )
        )

    def pause_streams(self, stream_ids: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Holds streams."""
        return self._answer(self._client.pause_streams, self._one(profile_id), stream_ids)

    def resume_streams(self, stream_ids: Any, profile_id: str = DEFAULT_PROFILE_ID) -> RC:
        """Lets streams go on."""
        return self._answer(self._client.resume_streams, self._one(profile_id), stream_ids)

    def update_streams(
        self, mul: Any, force: bool, stream_ids: Any, profile_id: str = DEFAULT_PROFILE_ID
    ) -> RC:
        """Sends streams at another rate."""
        return self._answer(
            lambda: self._client.update_streams(
                self._one(profile_id), _multiplier(mul), force, stream_ids
            )
        )

    def push_packets(self, pkts: Any, force: bool, ipg_usec: float) -> RC:
        """Sends packets one after the other."""
        return self._answer(self._client.push_packets, pkts, self.port_id, force, ipg_usec)

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
        """Sends a capture; `slave_handler` has no effect: with `is_dual` the neighbour is the
        client's, or this is refused."""
        return self._answer(
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
        """What its streams send together at most, as `get_profile` has it."""
        if not self.streams:
            return RC_ERR(f"port {self.port_id} has no streams: add_streams() first")
        return self._answer(self.get_profile)

    def get_profile(self) -> dict[str, Any] | None:
        """`rate`: what its streams send together at most; None without streams."""
        link = self._link
        if not link.streams:
            return None
        load = load_of(link.streams, link.terms(), Multiplier(1.0))
        return {
            "rate": {
                "max_pps": load[0],
                "max_bps_l2": load[1],
                "max_bps_l1": load[2],
                "max_line_util": 100 * load[2] / link.speed_bps,
            }
        }

    def print_profile(self, mult: Any, duration: float) -> None:
        """Prints what its streams send together at most: as they are, and by a multiplier."""
        link, profile = self._link, self.get_profile()
        if profile is None:
            return
        wanted = load_of(link.streams, link.terms(), Multiplier.parse(_multiplier(mult)))
        asked = (*wanted, 100 * wanted[2] / link.speed_bps)
        rows = [(name, rate, other) for (name, rate), other in zip(profile["rate"].items(), asked)]
        print(table(f"Port {self.port_id}", ("rate", "base", "requested"), rows, ""))

    # Addresses, modes and attributes.

    def set_service_mode(self, enabled: bool, filtered: bool, mask: Any) -> RC:
        """Puts it into service mode, or out of it."""
        return self._answer(self._client.set_service_mode, self.port_id, enabled, filtered, mask)

    def set_l2_mode(self, dst_mac: str) -> RC:
        """Sends its frames to an Ethernet address."""
        return self._answer(self._client.set_l2_mode, self.port_id, dst_mac)

    def set_l3_mode(self, src_addr: str, dst_addr: str, resolved_mac: str | None = None) -> RC:
        """Gives it an address, and sends its frames to the next hop of another one, which is asked
        for unless `resolved_mac` tells its Ethernet address."""
        if resolved_mac is None:
            return self._answer(self._client.set_l3_mode, self.port_id, src_addr, dst_addr)
        return self._answer(
            self._client._set_next_hop, self.port_id, src_addr, dst_addr, resolved_mac
        )

    def invalidate_arp(self) -> RC:
        """Forgets the Ethernet address of its next hop; `resolve` asks for it again."""
        link = self._link
        if not self.is_l3_mode():
            return RC_ERR(f"port {self.port_id} has no next hop: set_l3_mode() gives it one")
        link.layer.resolved = None
        return RC_OK()

    def conf_ipv6(self, enabled: bool, src_ipv6: str | None) -> RC:
        """Gives it an IPv6 address, or takes it away."""
        return self._answer(self._client.conf_ipv6, self.port_id, enabled, src_ipv6)

    def set_vlan(self, vlan: Any) -> RC:
        """The VLAN in which it asks, answers and pings."""
        return self._answer(self._client.set_vlan, self.port_id, vlan)

    def set_attr(self, **kwargs: Any) -> RC:
        """Sets attributes: `promiscuous`, `multicast`; others say who sets them."""
        wanted = {name: value for name, value in kwargs.items() if value is not None}
        unknown = [name for name in wanted if name not in _ATTRIBUTES]
        if unknown:
            known = ", ".join(_ATTRIBUTES)
            return RC_ERR(f"port {self.port_id} has no attribute {unknown[0]} to set, but {known}")
        named = {_ATTRIBUTES[name]: value for name, value in wanted.items()}
        return self._answer(lambda: self._client.set_port_attr(self.port_id, **named))

    # Frames handed on, and nodes.

    def set_rx_queue(self, size: int) -> RC:
        """Keeps the last frames that arrive."""
        return self._answer(self._client.set_rx_queue, self.port_id, size)

    def remove_rx_queue(self) -> RC:
        """Keeps no frames any more."""
        return self._answer(self._client.remove_rx_queue, self.port_id)

    def get_rx_queue_pkts(self) -> RC:
        """The frames in its queue, which it has no more: `binary`, `ts` (seconds since 1970) and so
        on. Refused where it is not in service mode."""
        link = self._link
        if not link.is_service:
            return RC_ERR(f"port {link.number} is not in service mode: set_service_mode() first")
        return RC_OK([] if link.rx_queue is None else link.rx_queue.take())

    def start_capture_port(self, endpoint: str, bpf_filter: str | None = None) -> RC:
        """Connects it to a ZeroMQ socket."""
        return self._answer(self._client.start_capture_port, self.port_id, endpoint, bpf_filter)

    def stop_capture_port(self) -> RC:
        """Ends that."""
        return self._answer(self._client.stop_capture_port, self.port_id)

    def set_capture_port_bpf_filter(self, bpf_filter: str | None) -> RC:
        """Sends only what matches to the socket from now on."""
        return self._answer(self._client.set_capture_port_bpf_filter, self.port_id, bpf_filter)

    def set_namespace_start(self, json_str_commands: Any) -> RC:
        """Carries out commands for nodes: an `NSCmds`, or the JSON of one."""
        return self._answer(self._client._execute, self.port_id, json_str_commands)

    def is_async_results_ready(self) -> bool:
        """Whether commands for nodes were carried out whose results were not taken."""
        return bool(self._client.is_async_results_ready(self.port_id))

    def get_async_results(self, timeout: int | None = None, cb: Any = None) -> Any:
        """What came of each command for nodes."""
        try:
            return self._client.wait_for_async_results(self.port_id, timeout, cb)
        except TRexError as error:
            return RC_ERR(str(error))

    # What TRex's server and its connection do.

    def ok(self, data: Any = "") -> RC:
        """An answer that all went well."""
        return RC_OK(data)

    def err(self, msg: str) -> RC:
        """An answer that something went wrong here."""
        return RC_ERR(f"Port {self.port_id} : *** {msg}")

    def sync(self) -> RC:
        """Does nothing: facts are always current."""
        return RC_OK()

    def sync_streams(self) -> RC:
        """The same of streams."""
        return RC_OK()

    sync_shared = _told_by_server("sync_shared")
    sync_port_streams = _told_by_server("sync_port_streams")
    state_from_name = _told_by_server("state_from_name")
    state_from_name_dynamic = _told_by_server("state_from_name_dynamic")
    update_ts_attr = _told_by_server("update_ts_attr")
    async_event_port_acquired = _told_by_server("async_event_port_acquired")
    async_event_port_attr_changed = _told_by_server("async_event_port_attr_changed")
    async_event_port_job_done = _told_by_server("async_event_port_job_done")
    async_event_port_paused = _told_by_server("async_event_port_paused")
    async_event_port_released = _told_by_server("async_event_port_released")
    async_event_port_resumed = _told_by_server("async_event_port_resumed")
    async_event_port_started = _told_by_server("async_event_port_started")
    async_event_port_stopped = _told_by_server("async_event_port_stopped")
    async_event_profile_job_done = _told_by_server("async_event_profile_job_done")
    async_event_profile_paused = _told_by_server("async_event_profile_paused")
    async_event_profile_resumed = _told_by_server("async_event_profile_resumed")
    async_event_profile_started = _told_by_server("async_event_profile_started")
    async_event_profile_stopped = _told_by_server("async_event_profile_stopped")

    # For the commands above.

    def _one(self, profile_id: str) -> str:
        return f"{self.port_id}.{profile_id}"

    def _state_of(self, profile: Profile) -> int:
        if profile.is_active:
            return self.STATE_PAUSE if profile.is_paused else self.STATE_TX
        return self.STATE_STREAMS if profile.streams else self.STATE_IDLE

    def _answer(self, command: Callable[..., Any], *arguments: Any) -> RC:
        """What a command of the client gives; a refusal is an answer."""
        try:
            found = command(*arguments)
        except TRexError as error:
            return RC_ERR(str(error))
        return found if isinstance(found, RC) else RC_OK("" if found is None else found)


def _multiplier(mul: Any, allow_update: bool = False) -> str:
    """The text of a multiplier."""
    if not isinstance(mul, Mapping):
        return str(mul)
    unit, sign = _UNITS.get(mul.get("type", "")), _SIGNS.get(mul.get("op", "abs"))
    if unit is None or sign is None or (sign and not allow_update):
        raise TRexArgumentError("mul", dict(mul), f"type: {', '.join(_UNITS)}; op: abs, add, sub")
    return f"{sign}{mul.get('value')}{unit}"
