"""What counters become under TRex's names. Nothing is sent."""

from __future__ import annotations

import time

from trex.astf.counters import counts_of, section_of
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
