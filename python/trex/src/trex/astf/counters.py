"""Counters of clients and servers, under TRex's names."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from trex.client.counters import Rates
from trex.errors import TRexError

SECTIONS = ("client", "server")

# A section also has the engine's other TCP and UDP counters: resets (`tcps_rst_received`) and tail
# loss probes, which TRex does not count.
_TCP = (
    *("connattempt", "accepts", "connects", "closed", "segstimed", "rttupdated", "delack"),
    *("sndtotal", "sndpack", "sndbyte", "sndbyte_ok", "sndctrl", "sndacks", "rcvtotal", "rcvpack"),
    *("rcvbyte", "rcvackpack", "rcvackbyte", "rcvackbyte_of", "rcvoffloads", "preddat", "drops"),
    *("conndrops", "timeoutdrop", "rexmttimeo", "rexmttimeo_syn", "persisttimeo", "keeptimeo"),
    *("keepprobe", "keepdrops", "testdrops", "sndrexmitpack", "sndrexmitbyte", "sndprobe"),
    *("sndurg", "sndwinup", "rcvbadsum", "rcvbadoff", "rcvshort", "rcvduppack", "rcvdupbyte"),
    *("rcvpartduppack", "rcvpartdupbyte", "rcvoopackdrop", "rcvoobytesdrop", "rcvoopack"),
    *("rcvoobyte", "rcvpackafterwin", "rcvbyteafterwin", "rcvafterclose", "rcvwinprobe"),
    *("rcvdupack", "rcvacktoomuch", "rcvwinupd", "pawsdrop", "predack", "persistdrop", "badsyn"),
    *("reasalloc", "reasfree", "reas_hist_4", "reas_hist_16", "reas_hist_100", "reas_hist_other"),
    *("nombuf", "sack_recovery_episode", "sack_rexmits", "sack_rexmit_bytes", "sack_rcv_blocks"),
    *("sack_send_blocks", "sack_sboverflow", "ecn_ce", "ecn_ect0", "ecn_ect1", "ecn_shs"),
    "ecn_rcwnd",
)
_UDP = (
    *("accepts", "connects", "closed", "sndbyte", "sndpkt", "rcvbyte", "rcvpkt", "keepdrops"),
    *("nombuf", "pkt_toobig"),
)
_FLOW_TABLE = (
    *("rss_redirect_rx", "rss_redirect_tx", "rss_redirect_drops", "rss_redirect_queue_full"),
    *("ignored_macs", "ignored_ips", "err_cwf", "err_no_syn", "err_len_err"),
    *("err_fragments_ipv4_drop", "err_no_tcp_udp", "err_no_template", "err_no_memory", "err_dct"),
    *("err_l3_cs", "err_l4_cs", "err_redirect_rx", "redirect_rx_ok", "err_rx_throttled"),
    *("err_c_nf_throttled", "err_c_tuple_err", "err_s_nf_throttled", "err_flow_overflow"),
    *("defer_template", "err_defer_no_template"),
)
_APPLICATION = (
    *("user_counter_A", "user_counter_B", "user_counter_C", "user_counter_D"),
    *("flows_total", "flows_other"),
    # Flows that were skipped because of the concurrency limit (`limit` with `cont`), or because all
    # clients were off. TRex does not count them.
    "flows_skipped",
)
# Counters of the add-on `latency` in microseconds, for template groups that use it.
_LATENCY = ("min_time", "max_time", "measure_cnt", "total_time", "total_pkts")
# Shown even if zero, and not reset when counters are cleared.
_STATES = ("m_active_flows", "m_est_flows")
_RATES = (
    *("m_tx_bw_l7_r", "m_tx_bw_l7_total_r", "m_rx_bw_l7_r", "m_tx_pps_r", "m_rx_pps_r"),
    *("m_avg_size", "m_tx_ratio"),
)
_COUNTED = (
    *(f"tcps_{name}" for name in _TCP),
    *(f"udps_{name}" for name in _UDP),
    *_APPLICATION,
    *_FLOW_TABLE,
)

# Counters of errors, and their descriptions.
ERRORS = {
    "tcps_conndrops": "embryonic connections dropped",
    "tcps_timeoutdrop": "connections dropped by a retransmission timeout",
    "tcps_rexmttimeo": "retransmission timeouts",
    "tcps_rexmttimeo_syn": "retransmission timeouts of SYN",
    "tcps_persisttimeo": "persist timeouts",
    "tcps_persistdrop": "connections dropped by a persist timeout",
    "tcps_keeptimeo": "keepalive timeouts, and timeouts of the handshake",
    "tcps_keepprobe": "keepalive probes sent",
    "tcps_keepdrops": "connections dropped by a keepalive timeout or in the handshake",
    "tcps_sndrexmitpack": "data segments retransmitted",
    "tcps_sndrexmitbyte": "data bytes retransmitted",
    "tcps_sndprobe": "window probes sent",
    "tcps_sndurg": "segments sent with URG only",
    "tcps_rcvbadsum": "segments received with a bad checksum",
    "tcps_rcvbadoff": "segments received with a bad data offset",
    "tcps_rcvshort": "truncated segments received",
    "tcps_rcvduppack": "duplicate segments received",
    "tcps_rcvdupbyte": "bytes received in duplicate segments",
    "tcps_rcvpartduppack": "segments received with some duplicate data",
    "tcps_rcvpartdupbyte": "duplicate bytes received in partly duplicate segments",
    "tcps_rcvoopackdrop": "out-of-order segments dropped: no space",
    "tcps_rcvoobytesdrop": "bytes in out-of-order segments dropped: no space",
    "tcps_rcvoopack": "out-of-order segments received",
    "tcps_rcvoobyte": "bytes received out of order",
    "tcps_rcvpackafterwin": "segments received with data beyond the window",
    "tcps_rcvbyteafterwin": "bytes received beyond the window",
    "tcps_rcvafterclose": "segments received after the peer's FIN",
    "tcps_rcvwinprobe": "window probes received",
    "tcps_rcvdupack": "duplicate acknowledgements received",
    "tcps_rcvacktoomuch": "acknowledgements received for data not sent",
    "tcps_rcvwinupd": "window updates received",
    "tcps_pawsdrop": "segments dropped by PAWS",
    "tcps_badsyn": "segments received with an unexpected SYN",
    "tcps_reasalloc": "reassembly queues allocated",
    "tcps_reasfree": "reassembly queues freed",
    "tcps_reas_hist_4": "reassembly queues with up to 4 segments",
    "tcps_reas_hist_16": "reassembly queues with up to 16 segments",
    "tcps_reas_hist_100": "reassembly queues with up to 100 segments",
    "tcps_reas_hist_other": "reassembly queues with more than 100 segments",
    "tcps_nombuf": "segments dropped: no memory",
    "tcps_sack_recovery_episode": "SACK recovery episodes",
    "tcps_sack_rexmits": "segments retransmitted in SACK recovery",
    "tcps_sack_rexmit_bytes": "bytes retransmitted in SACK recovery",
    "tcps_sack_rcv_blocks": "segments received with SACK blocks",
    "tcps_sack_send_blocks": "segments sent with SACK blocks",
    "tcps_sack_sboverflow": "SACK blocks dropped: no space",
    "udps_keepdrops": "UDP flows dropped by an idle timeout",
    "udps_nombuf": "datagrams dropped: no memory",
    "udps_pkt_toobig": "datagrams too big for a frame",
    "rss_redirect_drops": "packets dropped between cores",
    "err_cwf": "packets to clients without a flow",
    "err_no_syn": "packets to servers without a flow and without SYN",
    "err_len_err": "packets with a bad length",
    "err_fragments_ipv4_drop": "IP fragments that were not reassembled",
    "err_no_template": "flows to ports without a server",
    "err_no_memory": "flows not started: no memory",
    "err_dct": "flows not started: the addresses and ports are in use",
    "err_l3_cs": "packets with a bad IP checksum",
    "err_l4_cs": "corrupt or truncated packets",
    "err_redirect_rx": "packets not forwarded to their core",
    "err_c_nf_throttled": "client flows not started: no time left",
    "err_c_tuple_err": "flows not started: no client has a free port",
    "err_s_nf_throttled": "server flows throttled",
    "err_flow_overflow": "flows not started or accepted: too many exist",
    "err_defer_no_template": "connections whose first bytes match no server",
}

# Causes of fragments that were not reassembled.
_FRAGMENTS_LOST = ("fragments_incomplete", "fragments_overlapping", "fragments_no_room")

Counts = dict[str, int]


def total_counts(reports: Iterable[Mapping[str, Any]], is_over: bool) -> Counts:
    """Returns the summed counters of ports or templates of one side.

    `is_over`: the run has ended, so that its open connections were dropped. As in TRex, these are
    not errors and count only in `tcps_testdrops`.
    """
    sums = dict.fromkeys((*_STATES, *_COUNTED), 0)
    # Connections in TIME-WAIT, which both sides have closed.
    waiting = 0

    def add(name: str, value: int) -> None:
        sums[name] = sums.get(name, 0) + value

    for report in reports:
        for prefix, counters in (("tcps", "tcp"), ("udps", "udp"), ("user_counter", "counters")):
            for name, value in report[counters].items():
                add(f"{prefix}_{name}", value)
        for name, value in _flow_counters(report).items():
            add(name, value)
        flows = report["flows"]
        waiting += flows["time_wait"] if "time_wait" in flows else flows["waiting"]
        # Ports have no add-on, nor do all templates.
        if report.get("datagram_latency"):
            _add_latency(sums, report["datagram_latency"])
    tcp, udp = _open(sums)
    sums["m_active_flows"] = 0 if is_over else sums["m_active_flows"]
    unanswered = sums["tcps_connattempt"] + sums["tcps_accepts"]
    unanswered -= sums["tcps_connects"] + sums["tcps_conndrops"]
    sums["m_est_flows"] = max(sums["m_active_flows"] - max(unanswered, 0) - waiting, 0)
    if is_over:
        sums["tcps_testdrops"] += max(tcp - waiting, 0)
        sums["tcps_closed"] += tcp
        sums["udps_closed"] += udp
    return sums


def _add_latency(sums: Counts, stamped: Mapping[str, Any]) -> None:
    """Adds the measurements of a template with the add-on `latency`.

    TRex adds the minimum and maximum of each core, and counts the cores (`measure_cnt`). Here the
    minimum and maximum are those of all cores, and the count is 1, so that quotients have the same
    meaning.
    """
    for name in _LATENCY:
        sums.setdefault(name, 0)
    if not stamped["datagrams"]:
        return
    least = stamped["min_us"]
    sums["min_time"] = min(sums["min_time"], least) if sums["measure_cnt"] else least
    sums["max_time"] = max(sums["max_time"], stamped["max_us"])
    sums["measure_cnt"] = 1
    sums["total_time"] += stamped["total_us"]
    sums["total_pkts"] += stamped["datagrams"]


def _flow_counters(report: Mapping[str, Any]) -> dict[str, int]:
    """Returns the flow counters of a port or template under TRex's names."""
    flows = report["flows"]
    return {
        "m_active_flows": flows["active"],
        "flows_total": flows["flows_total"],
        "flows_other": flows["flows_other"],
        "flows_skipped": flows["skipped"] + flows["clients_disabled"],
        "err_flow_overflow": flows["flow_table_full"],
        "err_c_tuple_err": flows["no_free_tuple"],
        "err_c_nf_throttled": flows["late"],
        "err_cwf" if report["side"] == "client" else "err_no_syn": flows.get("no_flow", 0),
        "err_no_template": flows.get("no_template", 0),
        "err_defer_no_template": flows.get("no_match", 0),
        "err_fragments_ipv4_drop": sum(flows.get(name, 0) for name in _FRAGMENTS_LOST),
        "err_l4_cs": flows.get("malformed", 0),
        "err_no_tcp_udp": flows.get("other_protocol", 0),
    }


def _open(sums: Counts) -> tuple[int, int]:
    """Returns the open TCP connections and UDP flows."""
    found = []
    for prefix, begin in (("tcps", "connattempt"), ("udps", "connects")):
        opened = sums[f"{prefix}_{begin}"] + sums[f"{prefix}_accepts"]
        found.append(max(opened - sums[f"{prefix}_closed"], 0))
    return found[0], found[1]


def section_counters(
    counts: Counts,
    base: Counts,
    rates: Rates | None,
    key: Any,
    since: float | None,
    skip_zero: bool,
) -> dict[str, float]:
    """Returns a section for scripts, counted from `base`.

    `rates` has the rates of `key` since its start; None after its end.
    """
    found: dict[str, float] = {name: counts[name] for name in _STATES}
    found.update(_rates(counts, rates, key, since))
    for name, value in counts.items():
        if name not in _STATES:
            value -= base.get(name, 0)
            if value or not skip_zero:
                found[name] = value
    return found


def _rates(counts: Counts, rates: Rates | None, key: Any, since: float | None) -> dict[str, float]:
    if rates is None:
        return dict.fromkeys(_RATES, 0.0)

    # A single time for all rates, because they are divided by each other.
    now = time.monotonic()

    def rate(sample: str, *names: str) -> float:
        return rates.rate((key, sample), sum(counts[name] for name in names), since, now)

    sent = ("tcps_sndbyte_ok", "tcps_sndrexmitbyte", "udps_sndbyte")
    acked = rate("acked", "tcps_rcvackbyte", "udps_sndbyte")
    total = rate("sent", *sent)
    received = rate("received", "tcps_rcvbyte", "udps_rcvbyte")
    tx_pps = rate("tx", "tcps_sndtotal", "udps_sndpkt")
    rx_pps = rate("rx", "tcps_rcvtotal", "udps_rcvpkt")
    packets = tx_pps + rx_pps
    return {
        "m_tx_bw_l7_r": 8 * acked,
        "m_tx_bw_l7_total_r": 8 * total,
        "m_rx_bw_l7_r": 8 * received,
        "m_tx_pps_r": tx_pps,
        "m_rx_pps_r": rx_pps,
        "m_avg_size": (total + received) / packets if packets > 0 else 0.0,
        "m_tx_ratio": 100 * acked / total if total > 0 else 0.0,
    }


def errors_of(stats: Mapping[str, Mapping[str, float]]) -> tuple[bool, dict[str, dict[str, str]]]:
    """Returns whether counters report errors, and the errors by section."""
    missing = [section for section in SECTIONS if section not in stats]
    if missing:
        raise TRexError(f"stats have no {missing[0]!r}: expected what get_traffic_stats() returned")
    found = {
        section: {
            name: description for name, description in ERRORS.items() if stats[section].get(name, 0)
        }
        for section in SECTIONS
    }
    return any(found.values()), found
