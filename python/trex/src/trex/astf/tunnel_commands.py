"""GTP-U tunnels of clients: activation, records and counters."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from trex.addresses import int2ip, ip2int
from trex.arguments import validate_type
from trex.astf import tunnels_topo
from trex.astf.counters import SECTIONS
from trex.astf.loaded_profile import Profile
from trex.astf.profile_commands import DEFAULT_PROFILE_ID, ProfileCommands
from trex.astf.stateful_run import Tunnels
from trex.astf.tunnels_topo import TunnelsTopo, check_ends, check_number, check_type
from trex.errors import TRexError
from trex.tunables import check_tunables

#: Maximum number of records of single clients, equal to the engine's maximum of ranges.
RECORDS_MAX = 1 << 20

# TRex's names, the engine's counters, and the description of an error. A counter without a cause in
# the engine stays 0.
_COUNTERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "m_tunnel_encapsulated": (("encapsulated",), ""),
    "m_tunnel_decapsulated": (("decapsulated",), ""),
    "m_err_tunnel_drops": (("dropped",), "frames dropped"),
    "m_err_tunnel_no_context": (("no_tunnel",), "frames of clients without a tunnel"),
    "m_err_tunnel_dir": ((), "frames in the wrong direction"),
    "m_err_pkt_null": ((), "missing frames"),
    "m_err_buf_addr_null": ((), "frames without memory"),
    "m_err_l3_hdr": (("bad_ip", "fragments"), "frames with a wrong header of IP, or fragments"),
    "m_err_headroom": (("too_long",), "frames too long with a tunnel's headers"),
    "m_err_l4_hdr": (("not_udp", "bad_checksum"), "frames that are not of UDP, or damaged"),
    "m_err_buf_len": ((), "frames with too little memory"),
    "m_err_dst_port": (("other_port",), "datagrams to another port than that of GTP-U"),
    "m_err_gtpu_type": (("other_message",), "GTP-U messages other than packets"),
    "m_err_data_len": (("truncated",), "truncated frames"),
    "m_encapsulated_hdr": (("inner_not_ip", "not_ecn_capable"), "invalid inner packets"),
}


class Tunnel:
    """A tunnel of a client for `update_tunnel_client_record`."""

    def __init__(self, sip: str, dip: str, sport: int, teid: int, version: int) -> None:
        """:param sip: endpoint of the client
        :param dip: remote endpoint
        :param sport: UDP source port; 0: source port of the inner packet
        :param teid: tunnel endpoint identifier
        :param version: outer IP version: 4 or 6
        """
        self.sip = sip
        self.dip = dip
        self.sport = sport
        self.teid = teid
        self.version = version


class TunnelCommands(ProfileCommands):
    """Commands for tunnels."""

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self.tunnels_topo = TunnelsTopo(self)
        self._has_tunnels = self._is_loopback = False
        # Tunnels of single clients, by address as an integer.
        self._records: dict[int, Tunnel] = {}
        self._dynamic_base: dict[str, dict[str, dict[str, int]]] = {}

    def tunnels_topo_load(self, topology: Any, tunables: Any = None) -> None:
        """Loads tunnels: a `TunnelsTopo`, or a file in Python (`get_topo()`), JSON or YAML.

        Profiles that start later use them, if `activate_tunnel` has activated tunnels.
        """
        self._require_session()
        if not self.tunnels_topo.is_empty():
            raise TRexError("Tunnels topology is already loaded, clear it first")
        loaded = tunnels_topo.load(topology, check_tunables(tunables))
        loaded.check()
        if loaded.is_empty():
            raise TRexError("Loaded topology is empty!")
        self.tunnels_topo = TunnelsTopo(self, loaded.tunnel_ctxs, loaded.tunnel_latency)

    def tunnels_topo_clear(self) -> None:
        """Removes the loaded tunnels."""
        self._require_session()
        self.tunnels_topo = TunnelsTopo(self)

    def tunnels_topo_show(self) -> None:
        """Prints the loaded tunnels."""
        self._require_session()
        if self.tunnels_topo.is_empty():
            print("there are no tunnels")
            return
        print(f"{'clients':<33}{'TEID':<12}{'step':<6}{'port':<7}tunnel")
        for it in self.tunnels_topo.tunnel_ctxs:
            clients = f"{it.src_start} - {it.src_end}"
            ends = f"{it.src_ip} - {it.dst_ip}{'' if it.activate else ' (clients off)'}"
            print(f"{clients:<33}{it.initial_teid:<12}{it.teid_jump:<6}{it.sport:<7}{ends}")

    def update_tunnel_client_record(
        self, client_list: Mapping[int, Tunnel], tunnel_type: int
    ) -> None:
        """Sets the tunnels of clients, by address as an integer; also during a run."""
        self._require_session()
        check_type(tunnel_type)
        if not self._has_tunnels:
            raise TRexError("tunnels are off; call activate_tunnel() first")
        records = {_number(client): tunnel for client, tunnel in client_list.items()}
        for client, tunnel in records.items():
            _check(client, tunnel)
        new = sum(client not in self._records for client in records)
        if len(self._records) + new > RECORDS_MAX:
            raise TRexError(f"more than {RECORDS_MAX:,} clients with tunnels of their own")
        changed = _ranges(records)
        for run in self._running():
            run.change_tunnels(changed)
        self._records.update(records)

    def is_tunnel_supported(self, tunnel_type: int = 1) -> dict[str, Any]:
        """Returns whether a type of tunnel is supported: only GTP-U, 1."""
        self._require_session()
        try:
            check_type(tunnel_type)
        except TRexError as error:
            return {"is_tunnel_supported": False, "error_msg": str(error)}
        return {"is_tunnel_supported": True, "error_msg": ""}

    def activate_tunnel(
        self, tunnel_type: int = 1, activate: bool = True, loopback: bool = False
    ) -> bool:
        """Activates or deactivates tunnels for profiles that start later.

        With `loopback`, servers use the tunnels too, in the other direction, for two ports on one
        cable. Deactivation removes the records of single clients.
        """
        self._require_session()
        check_type(tunnel_type)
        validate_type("activate", activate, bool)
        validate_type("loopback", loopback, bool)
        if self._running():
            raise TRexError("a profile is running; call stop() first")
        self._has_tunnels, self._is_loopback = activate, activate and loopback
        if not activate:
            self._records.clear()
        return True

    def get_dynamic_traffic_stats(
        self, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> dict[str, dict[str, int]]:
        """Returns the counters of tunnels since the start of a profile or the last clear."""
        self._require_session()
        found: dict[str, dict[str, int]] = {side: {} for side in SECTIONS}
        for pid, counts in self._dynamic(pid_input, is_sum).items():
            base = self._dynamic_base.get(pid, {})
            for side, values in counts.items():
                for name, value in values.items():
                    value -= base.get(side, {}).get(name, 0)
                    found[side][name] = found[side].get(name, 0) + value
        if skip_zero:
            for side, values in found.items():
                found[side] = {name: value for name, value in values.items() if value}
        return found

    def is_dynamic_traffic_stats_error(
        self, stats: Any, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> tuple[bool, dict[str, dict[str, str]]]:
        """Returns whether `get_dynamic_traffic_stats` reports errors, and the errors by section."""
        found = {
            side: {
                name: description
                for name, (_, description) in _COUNTERS.items()
                if description and stats.get(side, {}).get(name, 0)
            }
            for side in SECTIONS
        }
        return any(found.values()), found

    def clear_dynamic_traffic_stats(
        self, pid_input: str | None = None, clear_all: bool = False
    ) -> None:
        """Clears the counters of a profile or of all."""
        self._require_session()
        counts = self._dynamic(pid_input or DEFAULT_PROFILE_ID, clear_all or pid_input is None)
        self._dynamic_base.update(counts)

    # Internal methods.

    def _tunnels_of(self, number: int) -> list[Tunnels] | None:
        """Returns the tunnels of a port in the engine's format; None if it has none."""
        if not self._has_tunnels or (number % 2 and not self._is_loopback):
            return None
        loaded = [
            Tunnels(
                *(it.src_start, it.src_end, it.initial_teid, it.teid_jump),
                *(it.src_ip, it.dst_ip, it.sport),
            )
            for it in self.tunnels_topo.tunnel_ctxs
        ]
        return [*loaded, *_ranges(self._records)]

    def _clients_off(self) -> list[tuple[str, str]]:
        """Returns the clients that open no flows from the start."""
        if not self._has_tunnels:
            return []
        topology = self.tunnels_topo.tunnel_ctxs
        return [(it.src_start, it.src_end) for it in topology if not it.activate]

    def _begin_tunnels(self, pid: str) -> None:
        """Clears the counters of a profile that has started."""
        self._dynamic_base.pop(pid, None)

    def _tunnel_lookup(self) -> Callable[[int], bool]:
        """Returns a function that checks whether a client has a tunnel."""
        if not self._has_tunnels:
            return lambda number: False
        topology = self.tunnels_topo.tunnel_ctxs
        ranges = sorted((ip2int(it.src_start), ip2int(it.src_end)) for it in topology)
        firsts = [first for first, _ in ranges]
        # Ranges can overlap, so that an earlier one can end later.
        lasts = list(accumulate((last for _, last in ranges), max))

        def has_tunnel(number: int) -> bool:
            following = bisect_right(firsts, number)
            return number in self._records or (following > 0 and number <= lasts[following - 1])

        return has_tunnel

    def _dynamic(self, pid_input: str, is_all: bool) -> dict[str, dict[str, dict[str, int]]]:
        """Returns the counters of profiles since their start, by section."""
        known = self._profiles_by_id
        if not is_all and pid_input not in known:
            raise TRexError(f"there is no profile {pid_input}; there are: {', '.join(known)}")
        return {pid: _counts(known[pid]) for pid in (known if is_all else [pid_input])}


def _counts(profile: Profile) -> dict[str, dict[str, int]]:
    ports = {} if profile.run is None else profile.run.ports()
    found: dict[str, dict[str, int]] = {side: {} for side in SECTIONS}
    for name, port in ports.items():
        counted = port.get("tunnels")
        side = found["server" if name.startswith("servers") else "client"]
        for counter, (causes, _) in _COUNTERS.items() if counted else ():
            side[counter] = side.get(counter, 0) + sum(counted[cause] for cause in causes)
    return found


def _number(client: Any) -> int:
    if isinstance(client, int) and not isinstance(client, bool) and 0 <= client <= 0xFFFFFFFF:
        return client
    raise TRexError(f"client {client!r}: expected an address of IPv4 as a number")


def _check(client: int, tunnel: Any) -> None:
    context = f"the tunnel of {int2ip(client)}"
    for name, most in (("teid", 0xFFFFFFFF), ("sport", 0xFFFF)):
        check_number(context, name, getattr(tunnel, name, None), most)
    check_ends(context, *(getattr(tunnel, name, None) for name in ("version", "sip", "dip")))


def _ranges(records: Mapping[int, Tunnel]) -> list[Tunnels]:
    """Merges records into ranges with consecutive addresses and TEIDs."""
    found: list[tuple[int, int, Tunnel]] = []
    for client in sorted(records):
        tunnel = records[client]
        if found:
            first, last, one = found[-1]
            ends = (tunnel.sip, tunnel.dip, tunnel.sport)
            counts = tunnel.teid == one.teid + client - first
            if client == last + 1 and counts and ends == (one.sip, one.dip, one.sport):
                found[-1] = (first, client, one)
                continue
        found.append((client, client, tunnel))
    return [
        Tunnels(int2ip(first), int2ip(last), it.teid, 1, it.sip, it.dip, it.sport)
        for first, last, it in found
    ]
