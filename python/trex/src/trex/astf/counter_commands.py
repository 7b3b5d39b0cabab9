"""Counters of profiles: traffic, template groups, single flows."""

from __future__ import annotations

import time
from typing import Any

from trex.addresses import int2ip, ip2int, is_valid_ipv4
from trex.arguments import check_seconds, listify, validate_type
from trex.astf.counters import SECTIONS, errors_of, section_counters
from trex.astf.errors import ASTFErrorBadTG
from trex.astf.flow_info import flows_of
from trex.astf.loaded_profile import sum_counts
from trex.astf.profile_commands import DEFAULT_PROFILE_ID, ProfileCommands
from trex.client.counters import Rates
from trex.errors import TRexArgumentError

_IPV4_MASK = 0xFFFFFFFF


class CounterCommands(ProfileCommands):
    """Commands for counters of profiles."""

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self._sum_rates = Rates()
        self._global_rates = Rates()

    def get_traffic_stats(
        self, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False
    ) -> dict[str, dict[str, float]]:
        """Returns the counters of a profile's clients and servers since its start or the last
        clear.

        `client` and `server` have TRex's names. `skip_zero` omits zeros. `is_sum` adds all
        profiles.
        """
        self._require_session()
        self._record_results()
        if is_sum:
            profiles = list(self._profiles_by_id.values())
            base, rates = sum_counts(it.sum_base for it in profiles), self._sum_rates
        else:
            profiles = [self._single_profile(pid_input)]
            base, rates = profiles[0].base, profiles[0].rates
        counts = sum_counts(profile.counts() for profile in profiles)
        runs = [profile.run for profile in profiles if profile.run is not None]
        running = [profile.run for profile in profiles if profile.is_running and profile.run]
        # The sum includes profiles that have ended, so that it has no common start.
        since = None if is_sum else min((run.started for run in running), default=None)
        found = {
            side: section_counters(
                counts[side],
                base.get(side, {}),
                rates if running else None,
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
        """Clears the counters."""
        self._require_session()
        if is_sum:
            for profile in self._profiles_by_id.values():
                profile.sum_base = profile.counts()
            return
        for profile in self._select_profiles(pid_input):
            profile.base = profile.counts()

    def is_traffic_stats_error(self, stats: Any) -> tuple[bool, dict[str, dict[str, str]]]:
        """Returns whether `get_traffic_stats` reports errors, and the errors by section."""
        return errors_of(stats)

    def _global_flows(self) -> dict[str, float]:
        """Returns the global counters of flows of all profiles, and their target rates."""
        counts = sum_counts(it.counts() for it in self._profiles_by_id.values())["client"]
        running = [it for it in self._profiles_by_id.values() if it.is_running]
        targets = [it.target_load() for it in running]
        opened = counts["tcps_connattempt"] + counts["udps_connects"]
        return {
            "active_flows": counts["m_active_flows"],
            "active_sockets": counts["m_active_flows"],
            "open_flows": opened,
            "tx_cps": self._global_rates.rate("begun", opened) if running else 0.0,
            "tx_expected_cps": sum(it.flows_per_second for it in targets),
            "total_clients": sum(it.clients for it in targets),
            "total_servers": sum(it.servers for it in targets),
            "total_alloc_error": counts["err_c_tuple_err"],
        }

    def _begin_rates(self) -> None:
        """Restarts the rates of all profiles, because none was running before."""
        self._sum_rates, self._global_rates = Rates(), Rates()
        self.get_traffic_stats(is_sum=True)
        self._global_flows()

    def get_tg_names(self, pid_input: str = DEFAULT_PROFILE_ID) -> list[str]:
        """Returns the template groups of a profile."""
        self._require_session()
        return list(self._single_profile(pid_input).groups)

    def get_traffic_tg_stats(
        self, tg_names: Any, skip_zero: bool = True, pid_input: str = DEFAULT_PROFILE_ID
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Returns the counters of template groups since the start of their profile, by name.

        Raises `ASTFErrorBadTG` for an unknown group.
        """
        self._require_session()
        validate_type("tg_names", tg_names, (list, str))
        profile = self._single_profile(pid_input)
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
        elapsed = 0.0 if profile.run is None else profile.run.elapsed()
        for name in names:
            found[name] = {
                side: section_counters(
                    counts[name, side], {}, rates, (name, side), since, skip_zero
                )
                for side in SECTIONS
            }
            for section in found[name].values():
                if elapsed or not skip_zero:
                    section["m_traffic_duration"] = elapsed
        return found

    def get_flow_info(
        self, profile_id: str = DEFAULT_PROFILE_ID, duration: float = 0, index: int | None = None
    ) -> dict[str, Any]:
        """Returns samples of connections: of each side of a pair of ports one flow at a time.

        The keys are the ends of a flow (`16.0.0.1:1024-48.0.0.1:80`). The values are lists of
        `origin`, `state`, `options`, `rtt`, `rto`, `snd_cwnd`, `snd_ssthresh` and so on, as in
        TRex.

        The result has the last sample of each flow, or all samples within `duration` seconds. With
        `index`, it has all samples from that number on, and `next_index` for the next call.
        """
        self._require_session()
        check_seconds("duration", duration)
        validate_type("index", index, (int, type(None)))
        run, first = self._single_profile(profile_id).run, index or 0
        if run is None:
            return {} if index is None else {"next_index": first}
        least = int(run.elapsed() / run.interval) if index is None else first
        deadline = time.monotonic() + duration
        while time.monotonic() < deadline and not run.wait():
            pass
        samples = list(flows_of(run.ports(with_templates=True).values(), run.interval))
        found: dict[str, Any] = {}
        for endpoints, number, info in samples:
            if index is None and not duration:
                found[endpoints] = [info]
            elif number >= least:
                found.setdefault(endpoints, []).append(info)
        if index is not None:
            found["next_index"] = max((number + 1 for _, number, _ in samples), default=first)
        return found

    def get_traffic_distribution(
        self, start_ip: str, end_ip: str, dual_ip: str, seq_split: bool
    ) -> dict[int, dict[int, dict[str, str]]]:
        """Returns the client addresses of each port in a pool, by port and core.

        A port has one thread, core 0, with all addresses; `seq_split` has no effect.
        """
        self._require_session()
        numbers = []
        for name, address in (("start_ip", start_ip), ("end_ip", end_ip), ("dual_ip", dual_ip)):
            if not is_valid_ipv4(address):
                raise TRexArgumentError(name, address, "an address of IPv4")
            numbers.append(ip2int(address))
        start, end, dual = numbers
        if start > end:
            raise TRexArgumentError("end_ip", end_ip, f"{start_ip} or an address behind it")
        return {
            number: {
                0: {
                    "start": int2ip((start + number // 2 * dual) & _IPV4_MASK),
                    "end": int2ip((end + number // 2 * dual) & _IPV4_MASK),
                }
            }
            for number in self.links
            if number % 2 == 0
        }
