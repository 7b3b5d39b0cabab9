"""What counters become under TRex's names. Nothing is sent."""

from __future__ import annotations

import time

from trex.astf.counters import ERRORS, counts_of, section_of
from trex.client.counters import Rates


def test_shares_of_rates_are_those_of_one_time(monkeypatch):
    times = iter(range(1, 1_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(times)))
    counts, rates = counts_of([], False), Rates()
    for sent in (1_000, 5_000, 6_000):
        counts["tcps_sndbyte_ok"] = counts["tcps_rcvackbyte"] = sent
        counts["tcps_sndtotal"] = sent // 100
        section = section_of(counts, {}, rates, "client", 0.0, True)
        assert section["m_tx_ratio"] == section["m_avg_size"] == 100.0


def test_what_a_stop_cuts_off_is_no_failure_of_connections():
    names = ("flows_total", "flows_other", "skipped", "switched_off", "overflow", "tuple_in_use")
    # Ten were begun: two are closed, one has failed; three are open, two in TIME-WAIT, and two ask.
    flows = {**dict.fromkeys((*names, "late"), 0), "active": 7, "time_wait": 2}
    tcp = {"connattempt": 10, "connects": 7, "conndrops": 1, "closed": 3}
    port = {"side": "client", "flows": flows, "tcp": tcp, "udp": {}, "counters": {}}
    meanwhile = counts_of([port], is_over=False)
    assert (meanwhile["m_active_flows"], meanwhile["m_est_flows"]) == (7, 3)
    ended = counts_of([port], is_over=True)
    assert ended["m_active_flows"] == ended["m_est_flows"] == 0
    assert (ended["tcps_closed"], ended["tcps_testdrops"]) == (10, 5)
    assert (ended["tcps_drops"], ended["tcps_conndrops"]) == (0, 1)
    assert not {"tcps_drops", "tcps_testdrops"} & set(ERRORS)
    # Templates tell of TIME-WAIT by another name.
    flows["waiting"] = flows.pop("time_wait")
    assert counts_of([port], is_over=True) == ended


def test_what_an_add_on_has_measured_is_told_of_those_who_have_it():
    names = ("flows_total", "flows_other", "skipped", "switched_off", "overflow", "tuple_in_use")
    flows = dict.fromkeys((*names, "late", "active", "waiting"), 0)
    counted = {"name": "0", "side": "client", "flows": flows, "tcp": {}, "udp": {}, "counters": {}}

    def told(*times):
        """Of templates whose datagrams took so long."""
        stamped = [
            {
                "datagrams": len(it),
                "total_us": sum(it),
                "min_us": min(it, default=None),
                "max_us": max(it, default=None),
            }
            for it in times
        ]
        counts = counts_of([{**counted, "stamped": it} for it in stamped], False)
        return tuple(counts.get(name) for name in measured)

    measured = ("min_time", "max_time", "measure_cnt", "total_time", "total_pkts")
    assert not set(measured) & set(counts_of([counted], False))
    assert told() == (None,) * 5
    assert told([]) == (0,) * 5
    assert told([], [30, 20], [], [70]) == (20, 70, 1, 120, 3)
    assert told([0, 9], [4]) == (0, 9, 1, 13, 3)
