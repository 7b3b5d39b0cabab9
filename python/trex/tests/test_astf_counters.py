"""Conversion of counters to TRex's names. Sends nothing."""

from __future__ import annotations

import time

from trex.astf.counters import ERRORS, section_counters, total_counts
from trex.client.counters import Rates


def test_rates_of_a_section_share_one_time(monkeypatch):
    times = iter(range(1, 1_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(times)))
    counts, rates = total_counts([], False), Rates()
    for sent in (1_000, 5_000, 6_000):
        counts["tcps_sndbyte_ok"] = counts["tcps_rcvackbyte"] = sent
        counts["tcps_sndtotal"] = sent // 100
        section = section_counters(counts, {}, rates, "client", 0.0, True)
        assert section["m_tx_ratio"] == section["m_avg_size"] == 100.0


def test_connections_dropped_by_stop_are_no_errors():
    names = ("flows_total", "flows_other", "skipped", "clients_disabled", "flow_table_full", "no_free_tuple")
    # Of ten flows two are closed, one has failed, three are open, two in TIME-WAIT, two in
    # SYN-SENT.
    flows = {**dict.fromkeys((*names, "late"), 0), "active": 7, "time_wait": 2}
    tcp = {"connattempt": 10, "connects": 7, "conndrops": 1, "closed": 3}
    port = {"side": "client", "flows": flows, "tcp": tcp, "udp": {}, "counters": {}}
    running = total_counts([port], is_over=False)
    assert (running["m_active_flows"], running["m_est_flows"]) == (7, 3)
    ended = total_counts([port], is_over=True)
    assert ended["m_active_flows"] == ended["m_est_flows"] == 0
    assert (ended["tcps_closed"], ended["tcps_testdrops"]) == (10, 5)
    assert (ended["tcps_drops"], ended["tcps_conndrops"]) == (0, 1)
    assert not {"tcps_drops", "tcps_testdrops"} & set(ERRORS)
    # Reports of templates have another name for TIME-WAIT.
    flows["waiting"] = flows.pop("time_wait")
    assert total_counts([port], is_over=True) == ended


def test_latency_counters_exist_only_with_the_add_on():
    names = ("flows_total", "flows_other", "skipped", "clients_disabled", "flow_table_full", "no_free_tuple")
    flows = dict.fromkeys((*names, "late", "active", "waiting"), 0)
    counted = {"name": "0", "side": "client", "flows": flows, "tcp": {}, "udp": {}, "counters": {}}

    def latency_report(*times):
        """Returns the counters of templates with these times of datagrams."""
        stamped = [
            {
                "datagrams": len(it),
                "total_us": sum(it),
                "min_us": min(it, default=None),
                "max_us": max(it, default=None),
            }
            for it in times
        ]
        counts = total_counts([{**counted, "datagram_latency": it} for it in stamped], False)
        return tuple(counts.get(name) for name in measured)

    measured = ("min_time", "max_time", "measure_cnt", "total_time", "total_pkts")
    assert not set(measured) & set(total_counts([counted], False))
    assert latency_report() == (None,) * 5
    assert latency_report([]) == (0,) * 5
    assert latency_report([], [30, 20], [], [70]) == (20, 70, 1, 120, 3)
    assert latency_report([0, 9], [4]) == (0, 9, 1, 13, 3)
