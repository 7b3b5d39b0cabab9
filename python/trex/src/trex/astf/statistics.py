"""Counters as parts of a client, as in TRex: the same data under other names."""

from __future__ import annotations

from typing import Any

from trex.astf.errors import ASTFErrorBadTG
from trex.astf.profile_commands import DEFAULT_PROFILE_ID
from trex.lines.tables import sides, values


class TrafficStats:
    """`traffic_stats` of a client: counters of profiles."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def reset(self) -> None:
        """Does nothing, because nothing is stored here."""

    def get_stats(
        self,
        skip_zero: bool = True,
        pid_input: str = DEFAULT_PROFILE_ID,
        is_sum: bool = False,
        is_dynamic: bool = False,
    ) -> dict[str, dict[str, float]]:
        """Returns `get_traffic_stats`, or `get_dynamic_traffic_stats`."""
        client = self._client
        query = client.get_dynamic_traffic_stats if is_dynamic else client.get_traffic_stats
        found: dict[str, dict[str, float]] = query(skip_zero, pid_input, is_sum)
        return found

    def clear_stats(self, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False) -> None:
        """Clears the counters."""
        self._client.clear_traffic_stats(pid_input, is_sum)

    def clear_dynamic_stats(
        self, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = False, clear_all: bool = False
    ) -> None:
        """Clears the counters of tunnels."""
        self._client.clear_dynamic_traffic_stats(pid_input, clear_all or is_sum)

    def get_tg_names(self, pid_input: str = DEFAULT_PROFILE_ID) -> list[str]:
        """Returns the template groups of a profile."""
        names: list[str] = self._client.get_tg_names(pid_input)
        return names

    def get_traffic_tg_stats(
        self,
        tg_names: Any,
        skip_zero: bool = True,
        for_table: bool = False,
        pid_input: str = DEFAULT_PROFILE_ID,
    ) -> dict[str, Any]:
        """Returns the counters of template groups by name; `for_table` has no effect."""
        found: dict[str, Any] = self._client.get_traffic_tg_stats(tg_names, skip_zero, pid_input)
        return found

    def is_traffic_stats_error(self, stats: Any) -> tuple[bool, dict[str, dict[str, str]]]:
        """Returns whether counters report errors, and the errors."""
        found: tuple[bool, dict[str, dict[str, str]]] = self._client.is_traffic_stats_error(stats)
        return found

    def is_dynamic_stats_error(
        self, stats: Any, pid_input: str = DEFAULT_PROFILE_ID, is_sum: bool = True
    ) -> tuple[bool, dict[str, dict[str, str]]]:
        """Like `is_traffic_stats_error`, for tunnels."""
        found: tuple[bool, dict[str, dict[str, str]]]
        found = self._client.is_dynamic_traffic_stats_error(stats, pid_input, is_sum)
        return found

    def to_table(
        self,
        with_zeroes: bool = False,
        tgid: int = 0,
        pid_input: str = DEFAULT_PROFILE_ID,
        is_sum: bool = False,
        is_dynamic: bool = False,
    ) -> str:
        """Returns the counters as text: of a profile, or of its template group number `tgid`, from
        1.
        """
        if not tgid:
            return sides(self.get_stats(not with_zeroes, pid_input, is_sum, is_dynamic))
        names = self.get_tg_names(pid_input)
        if not 0 < tgid <= len(names):
            raise ASTFErrorBadTG(
                f"profile {pid_input} has no template group number {tgid}: it has {len(names)}"
            )
        name = names[tgid - 1]
        return sides(self.get_traffic_tg_stats(name, not with_zeroes, pid_input=pid_input)[name])


class LatencyStats:
    """`latency_stats` of a client: measurements of latency traffic."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def reset(self) -> None:
        """Does nothing, because nothing is stored here."""

    def get_stats(self, skip_zero: bool = True) -> dict[int, dict[str, Any]]:
        """Returns `get_latency_stats`."""
        found: dict[int, dict[str, Any]] = self._client.get_latency_stats(skip_zero)
        return found

    def to_table_main(self) -> str:
        """Returns the delays as text."""
        return self._table(
            lambda stats: {k: v for k, v in stats["hist"].items() if k != "histogram"}
        )

    def histogram_to_table(self) -> str:
        """Returns the histograms of delays as text."""
        return self._table(
            lambda stats: {str(it["key"]): it["val"] for it in stats["hist"]["histogram"]}
        )

    def counters_to_table(self) -> str:
        """Returns the packet counters as text."""
        return self._table(lambda stats: stats["stats"])

    def _table(self, select: Any) -> str:
        ports = self.get_stats()
        if not ports:
            return "no latency traffic was sent"
        return "\n".join(values(f"port {number}", select(stats)) for number, stats in ports.items())
