"""Counters of a client in TRex's format."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from trex.client import hdr_histogram
from trex.client.port import Port
from trex.client.transmission import Transmission

# Bytes of the FCS, and bytes on the wire beside a frame with FCS.
_FCS = 4
_WIRE_OVERHEAD = 20
# Minimum age of the sample that a rate refers to, in seconds.
_SAMPLE_S = 0.1
_COUNTER_NAMES = ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors")
_FLOW_COUNTER_NAMES = ("tx_pkts", "tx_bytes", "rx_pkts", "rx_bytes")
# Flow counters and expected rates in `global`, which are zero for streams.
_FLOW_COUNTERS_ZERO: dict[str, float] = {
    **dict.fromkeys(("active_flows", "open_flows", "active_sockets"), 0),
    **dict.fromkeys(("total_clients", "total_servers", "total_alloc_error"), 0),
    **dict.fromkeys(("tx_cps", "tx_expected_bps", "tx_expected_cps", "tx_expected_pps"), 0.0),
    # A client can use its ports again for each server, so their utilisation is not defined.
    "socket_util": 0.0,
}
# Counters of a stream in a transmission.
_FLOW_COUNTERS = ("packets", "bytes", "received", "received_bytes", "duplicated")


class Rates:
    """Growth rates of counters."""

    def __init__(self) -> None:
        self._samples: dict[Any, tuple[float, float, float]] = {}

    def rate(
        self, key: Any, value: float, since: float | None = None, now: float | None = None
    ) -> float:
        """Returns the rate per second since the previous sample. `now` is the time of `value`.

        The first rate refers to zero at `since`; it is 0 without `since`.
        """
        now = time.monotonic() if now is None else now
        first = (now, value, 0.0) if since is None else (since, 0.0, 0.0)
        then, before, rate = self._samples.get(key, first)
        if value < before:
            # The counter was cleared.
            then, before, rate = now, value, 0.0
        elif now - then >= _SAMPLE_S:
            then, before, rate = now, value, (value - before) / (now - then)
        self._samples[key] = (then, before, rate)
        return rate

    def discard(self, predicate: Callable[[Any], bool]) -> None:
        """Removes the samples of matching keys."""
        self._samples = {key: it for key, it in self._samples.items() if not predicate(key)}


class Counters:
    """Counters of ports and packet groups since they were cleared."""

    def __init__(self, ports: dict[int, Port]) -> None:
        self._ports = ports
        self._rates = Rates()
        self._group_rates = Rates()
        self._base: dict[int, dict[str, int]] = {}
        self._flow_base: dict[tuple[int, int, str], int] = {}
        self._error_base: dict[tuple[int, str], int] = {}
        self._cpu = (time.monotonic(), _cpu_s())

    def clear(self, ports: Iterable[int]) -> None:
        """Clears the counters of ports."""
        for number in ports:
            self._base[number] = self._raw(self._ports[number])

    def clear_groups(self, flow_stats: bool, latency: bool) -> None:
        """Clears the counters of packet groups."""
        if flow_stats:
            self._flow_base = {}
            self._flow_base = self._flow_counts()
        if latency:
            self._error_base = {
                (group, name): value
                for group, members in self._members().items()
                for member in members
                if member.kind == "latency"
                for name, value in _errors(member.transmission.measured(member.number)).items()
            }

    def begin(self, groups: Iterable[int | None]) -> None:
        """Clears packet groups before a transmission starts, and restarts their rates."""
        started = set(groups)
        self._flow_base = {k: v for k, v in self._flow_base.items() if k[0] not in started}
        self._error_base = {k: v for k, v in self._error_base.items() if k[0] not in started}
        self._group_rates.discard(lambda key: key[0] in started)
        for port in self._ports.values():
            self._port(port)

    def end(self) -> None:
        """Restarts the rates of ports whose traffic has ended."""
        self._rates.discard(lambda key: not self._ports[key[0]].is_active)
        for port in self._ports.values():
            self._port(port)

    def ports(self, numbers: Iterable[int]) -> dict[Any, Any]:
        """Returns the counters of ports, their sum and the global counters."""
        # One reading of each port, so that the sums agree with the ports.
        readings = {number: self._port(port) for number, port in self._ports.items()}
        stats: dict[Any, Any] = {number: readings[number] for number in numbers}
        total: dict[str, float] = {}
        for counters in stats.values():
            for name, value in counters.items():
                total[name] = total.get(name, 0) + value
        stats["total"] = total
        stats["global"] = self._global(list(readings.values()))
        return stats

    def groups(self, only: Iterable[int] | None = None) -> dict[str, Any]:
        """Returns `flow_stats` and `latency` of packet groups, or of `only` these."""
        selected = None if only is None else set(only)
        counts = self._flow_counts()
        flow_stats: dict[Any, Any] = {}
        latency: dict[Any, Any] = {}
        for group, members in self._members().items():
            if selected is not None and group not in selected:
                continue
            flow_stats[group] = self._group(group, members, counts)
            measured = [it for it in members if it.kind == "latency"]
            if measured:
                latency[group] = self._latency(group, measured[0])
        none: dict[Any, int] = dict.fromkeys([*self._ports, "total"], 0)
        flow_stats["global"] = {"rx_err": dict(none), "tx_err": dict(none)}
        latency["global"] = {"bad_hdr": 0, "old_flow": 0}
        return {"flow_stats": flow_stats, "latency": latency}

    def active_groups(self) -> dict[str, list[int]]:
        """Returns the packet groups of started streams."""
        found: dict[str, set[int]] = {"flow_stats": set(), "latency": set()}
        for group, members in self._members().items():
            for member in members:
                found["latency" if member.kind == "latency" else "flow_stats"].add(group)
        return {kind: sorted(groups) for kind, groups in found.items()}

    # Ports.

    def _raw(self, port: Port) -> dict[str, int]:
        counters = port.read_properties()["counters"]
        packets, size, failed = port.sent()
        return {
            "opackets": packets,
            "ipackets": counters["rx_packets"],
            "obytes": size + _FCS * packets,
            "ibytes": counters["rx_bytes"] + port.uncounted_bytes + _FCS * counters["rx_packets"],
            "oerrors": failed,
            "ierrors": counters["rx_errors"] + counters["rx_missed"],
        }

    def _port(self, port: Port) -> dict[str, float]:
        raw, base = self._raw(port), self._base.get(port.number, {})
        counters: dict[str, float] = {
            name: raw[name] - base.get(name, 0) for name in _COUNTER_NAMES
        }
        for direction, letter in (("tx", "o"), ("rx", "i")):
            pps = self._rates.rate((port.number, direction), raw[f"{letter}packets"])
            bps = 8 * self._rates.rate((port.number, direction, "bytes"), raw[f"{letter}bytes"])
            if direction == "tx" and not port.is_active:
                pps = bps = 0.0
            bps_l1 = bps + pps * _WIRE_OVERHEAD * 8
            util = 100 * bps_l1 / port.speed_bps
            counters.update(
                {
                    f"{direction}_pps": pps,
                    f"{direction}_bps": bps,
                    f"{direction}_bps_L1": bps_l1,
                    f"{direction}_util": util,
                }
            )
        return counters

    def _global(self, ports: list[dict[str, float]]) -> dict[str, float]:
        """Returns the counters of all ports and of the process, from one reading of the ports."""

        def total(name: str) -> float:
            return sum(port[name] for port in ports)

        now, cpu_s = time.monotonic(), _cpu_s()
        then, before_s = self._cpu
        cpus = len(os.sched_getaffinity(0))
        util = 100 * (cpu_s - before_s) / max(now - then, 1e-9) / cpus
        self._cpu = (now, cpu_s)
        busy = util / 100 * cpus
        return {
            **_FLOW_COUNTERS_ZERO,
            "cpu_util": min(util, 100.0),
            "cpu_util_raw": util,
            "platform_factor": 1.0,
            "rx_cpu_util": 0.0,
            "bw_per_core": total("tx_bps") / 1e9 / busy if busy > 0 else 0.0,
            "rx_core_pps": 0.0,
            "queue_full": 0,
            "tx_bps": total("tx_bps"),
            "tx_pps": total("tx_pps"),
            "rx_bps": total("rx_bps"),
            "rx_pps": total("rx_pps"),
            "rx_drop_bps": max(total("tx_bps") - total("rx_bps"), 0.0),
        }

    # Packet groups.

    def _members(self) -> dict[int, list[_Member]]:
        """Returns the started streams of each packet group."""
        found: dict[int, list[_Member]] = {}
        for port in self._ports.values():
            for transmission in port.transmissions():
                for number, stream in transmission.streams.items():
                    group, kind = stream.get_pg_id(), stream.get_flow_stats_type()
                    if group is not None and kind in ("stats", "latency"):
                        member = _Member(port, transmission, number, kind)
                        found.setdefault(group, []).append(member)
        return found

    def _flow_counts(self) -> dict[tuple[int, int, str], int]:
        """Returns counters since the last clear, by group, port and name."""
        counts: dict[tuple[int, int, str], int] = {}
        flows_by_run: dict[int, dict[int, dict[str, int]]] = {}

        def add(group: int, port: int, name: str, value: int) -> None:
            key = (group, port, name)
            counts[key] = counts.get(key, 0) + value

        for group, members in self._members().items():
            for port, transmission, number, _ in members:
                flows = flows_by_run.setdefault(id(transmission), transmission.flows())
                flow = flows.get(number, dict.fromkeys(_FLOW_COUNTERS, 0))
                add(group, port.number, "tx_pkts", flow["packets"])
                add(group, port.number, "tx_bytes", flow["bytes"] + _FCS * flow["packets"])
                if transmission.receiver is not None:
                    received = flow["received"] + flow["duplicated"]
                    size = flow["received_bytes"] + _FCS * received
                    add(group, transmission.receiver, "rx_pkts", received)
                    add(group, transmission.receiver, "rx_bytes", size)
        return {key: value - self._flow_base.get(key, 0) for key, value in counts.items()}

    def _group(
        self, group: int, members: list[_Member], counts: dict[tuple[int, int, str], int]
    ) -> dict[str, Any]:
        found: dict[str, dict[Any, float]] = {}
        for name in _FLOW_COUNTER_NAMES:
            found[name] = {port: counts.get((group, port, name), 0) for port in self._ports}
        # While a transmission is running.
        active = next((it.transmission for it in members if not it.transmission.is_done()), None)
        for direction in ("tx", "rx"):
            pps, bps, bps_l1 = {}, {}, {}
            for port in self._ports:
                rates = []
                for name in (f"{direction}_pkts", f"{direction}_bytes"):
                    since = None if active is None else active.started
                    now = None if active is None else active.counters_time()
                    value = found[name][port]
                    rate = self._group_rates.rate((group, port, name), value, since, now)
                    rates.append(0.0 if active is None else rate)
                pps[port], bps[port] = rates[0], 8 * rates[1]
                bps_l1[port] = bps[port] + pps[port] * _WIRE_OVERHEAD * 8
            found.update(
                {f"{direction}_pps": pps, f"{direction}_bps": bps, f"{direction}_bps_l1": bps_l1}
            )
        for values in found.values():
            values["total"] = sum(values.values())
        return found

    def _latency(self, group: int, member: _Member) -> dict[str, Any]:
        """Returns the errors of a latency stream since the last clear, and its delays."""
        measured = member.transmission.measured(member.number)
        errors = _errors(measured)
        for name, value in errors.items():
            errors[name] = value - self._error_base.get((group, name), 0)
        return {"err_cntrs": errors, "latency": _delays(measured)}


class _Member(NamedTuple):
    """A stream of a packet group."""

    port: Port
    transmission: Transmission
    number: int
    kind: str


def _errors(measured: dict[str, Any] | None) -> dict[str, int]:
    counters = measured or dict.fromkeys(("lost", "reordered", "duplicated", "too_late", "gaps"), 0)
    return {
        # While frames are in flight, `lost` counts only the frames known to be missing.
        "dropped": counters["lost"],
        "out_of_order": counters["reordered"] + counters["too_late"],
        "dup": counters["duplicated"],
        "seq_too_high": counters["gaps"],
        "seq_too_low": counters["reordered"] + counters["too_late"] + counters["duplicated"],
    }


def _delays(measured: dict[str, Any] | None) -> dict[str, Any]:
    """Returns delays in microseconds, as TRex does, but with decimals."""
    if measured is None:
        values = dict.fromkeys(("average", "jitter", "total_max", "total_min", "last_max"), 0.0)
        return {**values, "histogram": {}, "hdrh": hdr_histogram.encoded([])}
    delay = measured["delay"]
    return {
        "average": (delay["mean_ns"] or 0) / 1e3,
        "jitter": measured["jitter_ns"] / 1e3,
        "total_max": (delay["max_ns"] or 0) / 1e3,
        "total_min": (delay["min_ns"] or 0) / 1e3,
        "last_max": _last_max_us(measured),
        "histogram": _histogram(delay["buckets"]),
        "hdrh": hdr_histogram.encoded(delay["buckets"]),
    }


def _last_max_us(measured: dict[str, Any]) -> float:
    """Returns the maximum delay of the last interval with received frames."""
    series = measured["series"] or {"delay_max_ns": []}
    maxima = [value for value in series["delay_max_ns"] if value is not None]
    return maxima[-1] / 1e3 if maxima else 0.0


def _histogram(buckets: list[tuple[int, int]]) -> dict[int, int]:
    """Counts delays by TRex's lower bounds: 0, 10, 20, ..., 100, 200, ... microseconds."""
    found: dict[int, int] = {}
    for start_ns, count in buckets:
        us = max(start_ns // 1000, 0)
        scale = 10 ** max(len(str(us)) - 1, 1)
        key = us // scale * scale
        found[key] = found.get(key, 0) + count
    return found


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system
