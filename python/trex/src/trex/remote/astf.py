"""`ASTFClient` with a server."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from trex.arguments import check_bits, check_seconds, listify, validate_type
from trex.astf.client import ASTFClient
from trex.astf.counters import SECTIONS
from trex.astf.errors import ASTFErrorBadTG
from trex.astf.profile import ASTFProfile, ASTFProfileLight
from trex.astf.profile_commands import ALL_PROFILE_ID, DEFAULT_PROFILE_ID, Pids, parse_profile_ids
from trex.client.rc import RC, RC_OK
from trex.errors import TRexArgumentError, TRexError, TRexTimeoutError
from trex.remote.client import unsupported
from trex.remote.stl import LOCAL
from trex.remote.streams import RemoteStreamCommands
from trex.tunables import check_tunables

_STATES = (
    "STATE_IDLE",
    "STATE_ASTF_LOADED",
    "STATE_ASTF_PARSE",
    "STATE_ASTF_BUILD",
    "STATE_TX",
    "STATE_ASTF_CLEANUP",
    "STATE_ASTF_DELETE",
)
_LOADED, _SENDING = 1, 4
_TRANSIENT = (2, 3, 5, 6)
# Number of an event with the state of a profile.
_PROFILE_STATE = 60
# Interval of questions for a state. Length of the first fragment of a profile, and of the others.
_POLL_S = 0.05
_FIRST_FRAGMENT, _FRAGMENT = 1_000, 500_000
# Groups of an answer.
_GROUPS_MAX = 10


class RemoteASTFClient(RemoteStreamCommands, ASTFClient):
    """TRex's advanced stateful client, with the ports of a server."""

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self._context_handler = ""
        #: Descriptions of the counters, by number.
        self._described: list[dict[str, Any]] = []
        #: Counters when they were cleared, with their epochs: of profiles, and of their sum (None).
        self._traffic_base: dict[str | None, tuple[int, dict[str, dict[str, float]]]] = {}

    # The session.

    def connect(self) -> None:
        """Connects to the server."""
        super().connect()
        self._traffic_base, self._described = {}, []
        self.epoch = self.epoch or 1

    def _stop_all(self) -> None:
        if self._context_handler:
            self.stop(pid_input=ALL_PROFILE_ID)
            self.stop_latency()

    def inc_epoch(self) -> None:
        """Increments the epoch of the server."""
        self.epoch = self._context("inc_epoch")["epoch"]

    def reset(self, restart: bool = False) -> None:
        """Acquires all ports, stops all traffic, and clears profiles and counters."""
        self._require_session()
        if restart:
            raise TRexError("restart: not supported; the machine of the server sets its links")
        self.acquire(force=True)
        self.stop(pid_input=ALL_PROFILE_ID)
        self.stop_latency()
        self.clear_profile(pid_input=ALL_PROFILE_ID)
        self.stop_stl([f"{number}.*" for number in self.links])
        for number in self.links:
            self._change(number, "remove_all_streams", profile_id="*")
            self._port(number).profiles.clear()
        self.remove_all_captures()
        self._set_service(list(self.links), False, False, None)
        self.clear_stats()

    def acquire(self, force: bool = False) -> None:
        """Acquires all ports; with `force` also from other clients of the server."""
        self._acquire_ports(None, force)

    def release(self, force: bool = False) -> None:
        """Releases all ports."""
        self._release_ports(None)

    def _acquire_ports(self, ports: Any, force: bool) -> None:
        found = self._call("acquire", force=force, user=self._username, session_id=self._session_id)
        self._context_handler = found["handler"]
        for number, handler in found["ports"].items():
            port = self._port(int(number))
            port.handler, port.is_acquired = handler, True
            port.load_streams()

    def _release_ports(self, ports: Any) -> None:
        self._context("release")
        self._context_handler = ""
        for number in self.links:
            port = self._port(number)
            port.handler, port.is_acquired = "", False
            port.forget()

    def _context(self, method: str, **parameters: Any) -> Any:
        """Executes a command of the owner of all ports."""
        return self._call(method, handler=self._context_handler, **parameters)

    def _set_service(self, numbers: Any, enabled: bool, filtered: bool, mask: Any) -> None:
        more = {} if mask is None else {"mask": mask}
        self._context("service", enabled=enabled, filtered=filtered, **more)
        for number in self.links:
            self._port(number).refresh()

    def set_service_mode(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Switches service mode of all ports."""
        self._require_session()
        self._set_service(ports, enabled, filtered, mask)

    # Profiles.

    def sync(self) -> dict[str, int]:
        """Returns the state of each profile as a number."""
        found: dict[str, int] = self._call("sync", profile_id="sync")["state_profile"]
        return found

    @property
    def astf_profile_state(self) -> dict[str, int]:
        """State of each profile as a number."""
        return self.sync()

    @property
    def state(self) -> int:
        """Combined state of the profiles: transmitting if one of them is."""
        return int(self._call("sync")["state"])

    def get_profiles_state(self) -> dict[str, str]:
        """Returns the state of each profile."""
        return {name: _STATES[state] for name, state in self.sync().items()}

    def get_profiles(self, profiles_in_ports: bool = False) -> list[Any]:
        """Returns the IDs of all profiles, with `profiles_in_ports` also those of streams."""
        found: list[Any] = self._context("get_profile_list", profiles_in_ports=profiles_in_ports)
        return found

    def validate_profile_id_input(
        self, pid_input: Pids = DEFAULT_PROFILE_ID, start: bool = False
    ) -> list[str]:
        """Returns the given profile IDs, from a list or a text; `*` selects all."""
        names, known = parse_profile_ids(pid_input), self.sync()
        if ALL_PROFILE_ID in names:
            if start:
                raise TRexArgumentError("pid_input", pid_input, "identifiers to start, by name")
            return list(known)
        wrong = [name for name in names if name not in known]
        if wrong:
            raise TRexError(f"there is no profile {wrong[0]}; there are: {', '.join(known)}")
        return list(dict.fromkeys(names))

    def load_profile(
        self, profile: Any, tunables: Any = None, pid_input: str = DEFAULT_PROFILE_ID
    ) -> None:
        """Loads a profile: an `ASTFProfile`, a file in Python or JSON, or its document."""
        self._require_session()
        validate_type("pid_input", pid_input, str)
        if isinstance(profile, dict):
            profile = ASTFProfileLight(profile)
        elif not isinstance(profile, (ASTFProfile, ASTFProfileLight)):
            validate_type("profile", profile, str)
            is_line = isinstance(tunables, (list, tuple))
            kwargs = {"tunables": list(tunables)} if is_line else check_tunables(tunables)
            try:
                profile = ASTFProfile.load(profile, **kwargs)
            except Exception as error:
                raise TRexError(f"cannot load profile: {error}") from error
        if profile is None:
            # The profile has only printed its help.
            return
        text = profile.to_json_str()
        begin = 0
        while begin < len(text):
            end = begin + (_FRAGMENT if begin else _FIRST_FRAGMENT)
            more: dict[str, Any] = {}
            if begin == 0:
                more["frag_first"] = True
            if end >= len(text):
                more["frag_last"] = True
            elif begin == 0:
                more["md5"] = hashlib.md5(text.encode()).hexdigest()
            fragment = {"profile_id": pid_input, "fragment": text[begin:end]}
            found = self._context("profile_fragment", **fragment, **more)
            if found and found.get("matches_loaded"):
                break
            begin = end
        self._log_event(f"profile {pid_input} is loaded")

    def clear_profile(self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE_ID) -> None:
        """Removes profiles, except running ones."""
        for name in self.validate_profile_id_input(pid_input):
            if self.sync().get(name) == _SENDING:
                self._log_event(f"profile {name} is running, and stays", "warning")
                continue
            self._context("profile_clear", profile_id=name)
            while block and self.sync().get(name) in _TRANSIENT:
                time.sleep(_POLL_S)

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
        """Starts loaded profiles; see `ASTFClient`."""
        self._require_session()
        for name, value in (("duration", duration), ("t_duration", t_duration)):
            check_seconds(name, value)
        validate_type("ipv6", ipv6, bool)
        check_bits("client_mask", client_mask)
        for name in self.validate_profile_id_input(pid_input, start=True):
            self._traffic_base.pop(name, None)
            self.last_profile_error.pop(name, None)
            self._context(
                "start",
                profile_id=name,
                mult=mult,
                nc=nc,
                duration=duration,
                latency_pps=int(latency_pps),
                ipv6=ipv6,
                client_mask=client_mask,
                e_duration=e_duration,
                t_duration=t_duration,
                dump_interval=dump_interval,
            )
            while block and self.sync().get(name) in _TRANSIENT:
                time.sleep(_POLL_S)
            self._record_results()
            error = self.last_profile_error.get(name)
            if block and error:
                raise TRexError(f"cannot start profile {name}: {error}")

    def stop(
        self, block: bool = True, pid_input: Pids = DEFAULT_PROFILE_ID, is_remove: bool = False
    ) -> None:
        """Stops profiles at once and drops open flows; `is_remove` also removes the profiles."""
        names = self.validate_profile_id_input(pid_input)
        for name in names:
            self._context("stop", profile_id=name)
        while (block or is_remove) and any(self.sync().get(name) in _TRANSIENT for name in names):
            time.sleep(_POLL_S)
        self._record_results()
        if is_remove:
            self.clear_profile(pid_input=names)

    def update(self, mult: float, pid_input: Pids = DEFAULT_PROFILE_ID) -> None:
        """Changes the multiplier of profiles; `*` selects all that run."""
        states = self.sync()
        names = self.validate_profile_id_input(pid_input)
        if ALL_PROFILE_ID in parse_profile_ids(pid_input):
            names = [name for name in names if states.get(name) == _SENDING]
        for name in names:
            self._context("update", profile_id=name, mult=mult)

    def wait_on_traffic(self, timeout: float | None = None, profile_id: str | None = None) -> None:
        """Waits for the end of all profiles or of one.

        Raises `TRexTimeoutError` after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        names = self.validate_profile_id_input(profile_id or ALL_PROFILE_ID)
        while any(self.sync().get(name, 0) > _LOADED for name in names):
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise TRexTimeoutError(timeout)
            time.sleep(_POLL_S)
        self._record_results()

    def wait_for_profile_state(
        self, profile_id: str, wait_state: int, timeout: float | None = None
    ) -> None:
        """Waits until a profile is in a state, such as `STATE_TX`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.sync().get(profile_id) != wait_state:
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise TRexTimeoutError(timeout)
            time.sleep(_POLL_S)

    def is_traffic_active(self, ports: Any = None) -> bool:
        """Returns whether a profile or a port sends."""
        return self.state == _SENDING

    def _record_results(self) -> None:
        if not self._is_connected:
            return
        found = self._call("get_async_events", session_id=self._session_id)
        for event in found["data"]:
            data = event["data"]
            if event["type"] == _PROFILE_STATE and data.get("error"):
                name = data["profile_id"]
                self.last_error = self.last_profile_error[name] = data["error"]
                self._log_event(f"profile {name}: {data['error']}", "warning")

    # Latency traffic.

    def start_latency(
        self,
        mult: float = 1,
        src_ipv4: str = "16.0.0.1",
        dst_ipv4: str = "48.0.0.1",
        ports_mask: int = 0x7FFFFFFF,
        dual_ipv4: str = "1.0.0.0",
        port_ipv4_offset_s: str | None = None,
    ) -> None:
        """Sends ICMP between ports, with or without a running profile; see `ASTFClient`."""
        self._context(
            "start_latency",
            mult=mult,
            src_addr=src_ipv4,
            dst_addr=dst_ipv4,
            dual_port_addr=dual_ipv4,
            port_s_offset=port_ipv4_offset_s or dual_ipv4,
            mask=ports_mask,
        )

    def update_latency(self, mult: float = 1) -> None:
        """Changes the rate, in packets per second of each port."""
        self._context("update_latency", mult=mult)

    def stop_latency(self) -> None:
        """Stops latency traffic. The measurements remain."""
        self._context("stop_latency")

    def get_latency_stats(self, skip_zero: bool = True) -> dict[int, dict[str, Any]]:
        """Returns the measurements of latency traffic by receiving port."""
        found = self._call("get_latency_stats")["data"]
        prefix = "port-"
        return {
            int(name.removeprefix(prefix)): value
            for name, value in found.items()
            if name.startswith(prefix)
        }

    # Counters.

    def _counters_of(self, answer: dict[str, Any]) -> dict[str, dict[str, float]]:
        """Returns the counters of both sides by name."""
        if not self._described:
            data = self._call("get_counter_desc", profile_id=DEFAULT_PROFILE_ID)["data"]
            self._described = sorted(data, key=lambda it: it["id"])
        return {
            side: {it["name"]: answer.get(side, {}).get(str(it["id"]), 0) for it in self._described}
            for side in SECTIONS
        }

    def _relative(
        self,
        counts: dict[str, dict[str, float]],
        base: dict[str, dict[str, float]],
        skip_zero: bool,
    ) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for side in SECTIONS:
            section = found.setdefault(side, {})
            for it in self._described:
                name = it["name"]
                value = counts[side][name]
                if not it["abs"]:
                    value -= base.get(side, {}).get(name, 0)
                if value or it["zero"] or not skip_zero:
                    section[name] = value
        return found

    def get_traffic_stats(
        self, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> dict[str, dict[str, float]]:
        """Returns the counters of a profile's clients and servers since its start or the last
        clear.
        """
        name, answer = self._counter_values(pid_input, is_sum)
        epoch, base = self._traffic_base.get(name, (-1, {}))
        counts = self._counters_of(answer)
        return self._relative(counts, base if epoch == answer["epoch"] else {}, skip_zero)

    def _counter_values(self, pid_input: str, is_sum: bool) -> tuple[str | None, dict[str, Any]]:
        if is_sum:
            return None, self._call("get_total_counter_values")
        (name,) = self.validate_profile_id_input(pid_input)
        return name, self._call("get_counter_values", profile_id=name)

    def clear_traffic_stats(
        self, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> None:
        """Clears the counters."""
        name, answer = self._counter_values(pid_input, is_sum)
        self._traffic_base[name] = (answer["epoch"], self._counters_of(answer))

    def get_tg_names(self, pid_input: str = DEFAULT_PROFILE_ID) -> list[str]:
        """Returns the template groups of a profile."""
        found = self._call("get_tg_names", profile_id=pid_input, initialized=False)
        names: list[str] = found["tg_names"]
        return names

    def get_traffic_tg_stats(
        self, tg_names: Any, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Returns the counters of template groups since the start of their profile, by name."""
        validate_type("tg_names", tg_names, (list, str))
        described = self._call("get_tg_names", profile_id=pid_input, initialized=False)
        known, names = described["tg_names"], listify(tg_names)
        wrong = [name for name in names if name not in known]
        if wrong or not names:
            raise ASTFErrorBadTG(
                f"profile {pid_input} has no template group {wrong}; its groups: {known}"
            )
        found = {}
        for begin in range(0, len(names), _GROUPS_MAX):
            chosen = names[begin : begin + _GROUPS_MAX]
            ids = [known.index(name) + 1 for name in chosen]
            epoch = {"profile_id": pid_input, "epoch": described["epoch"]}
            answer = self._call("get_tg_id_stats", tg_ids=ids, **epoch)
            for name, number in zip(chosen, ids):
                counts = self._counters_of(answer[str(number)])
                found[name] = self._relative(counts, {}, skip_zero)
        return found

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
        self._record_results()
        stats = self._port_stats(self._numbers(ports, of_all=True))
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
        self._clear_ports(self._numbers(ports, of_all=True))
        if clear_traffic:
            for name in self.validate_profile_id_input(pid_input):
                self.clear_traffic_stats(name)
        self.clear_traffic_stats(is_sum=True)

    # Single clients.

    def _switch(self, ranges: list[tuple[int, int]], is_enable: bool) -> RC:
        validate_type("is_enable", is_enable, bool)
        attributes = [{"client_start_ip": first, "client_end_ip": last} for first, last in ranges]
        self._context("enable_disable_client", is_enable=is_enable, is_range=True, attr=attributes)
        return RC_OK({})

    def _query(self, numbers: list[int]) -> RC:
        attributes = [{"client_ip": number} for number in numbers]
        self._context("get_clients_info_start", is_range=False, attr=attributes)
        return RC_OK(self._context("get_clients_info_pull"))


for _name in (
    *LOCAL,
    *("topo_load", "topo_clear", "topo_resolve", "topo_show", "topo_save", "tunnels_topo_load"),
    *("tunnels_topo_clear", "tunnels_topo_show", "activate_tunnel", "update_tunnel_client_record"),
    *("get_flow_info", "set_ignored_macs_ips", "get_ignored_macs_ips", "wait_for_steady"),
    *("wait_for_transient", "check_states", "get_traffic_distribution", "enable_tpg"),
):
    if hasattr(RemoteASTFClient, _name):
        setattr(RemoteASTFClient, _name, unsupported(_name))
