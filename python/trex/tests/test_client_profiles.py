"""Several concurrent profiles on a port, on a veth pair between two namespaces."""

from __future__ import annotations

import time

import pytest
from stream_helpers import LIMIT_S, burst, continuous, sent, wait_until, wait_until_idle

from trex.stl.api import STLError, STLFlowLatencyStats, STLFlowStats


def group(client, number):
    return client.get_pgid_stats([number])["flow_stats"][number]


def test_profiles_of_a_port_run_concurrently(client):
    client.clear_stats()
    client.add_streams(continuous(1000, flow_stats=STLFlowStats(pg_id=1)), ports="0.first")
    client.start("0.first")
    wait_until(lambda: group(client, 1)["rx_pkts"][1] > 50)
    second = burst(300, pps=500, size=80, flow_stats=STLFlowLatencyStats(pg_id=2))
    client.add_streams(second, "0.second")
    client.start("0.second")
    assert client.get_profiles_with_state("transmitting") == ["0.first", "0.second"]
    client.wait_on_traffic("0.second", timeout=LIMIT_S)
    assert client.get_profiles_with_state("active") == ["0.first"]
    counted = group(client, 2)
    assert counted["tx_pkts"]["total"] == counted["rx_pkts"][1] == 300
    latency = client.get_stats()["latency"][2]
    assert set(latency["err_cntrs"].values()) == {0}
    assert sum(latency["latency"]["histogram"].values()) == 300
    # Once more, while the first one is running.
    before = group(client, 1)["rx_pkts"][1]
    client.start("0.second")
    client.wait_on_traffic("0.second", timeout=LIMIT_S)
    assert group(client, 2)["rx_pkts"][1] == 300
    wait_until(lambda: group(client, 1)["rx_pkts"][1] > before + 50)
    client.stop("0.first")
    assert client.get_active_ports() == []
    first = group(client, 1)
    assert first["tx_pkts"][0] == first["rx_pkts"][1]
    stats = client.get_stats()
    assert stats[0]["opackets"] == stats[1]["ipackets"] == first["tx_pkts"][0] + 2 * 300
    assert stats[0]["obytes"] == stats[1]["ibytes"]


@pytest.mark.parametrize("is_measured", [(False, True), (True, False), (False, False)])
def test_profiles_with_and_without_packet_groups_run_together(client, is_measured):
    client.clear_stats()
    for number, measured in enumerate(is_measured):
        statistics = STLFlowStats(pg_id=number) if measured else None
        client.add_streams(burst(2000, pps=2000, flow_stats=statistics), f"0.{number}")
        client.start(f"0.{number}")
    client.wait_on_traffic(["0.0", "0.1"], timeout=LIMIT_S)
    stats = client.get_stats()
    assert stats[0]["opackets"] == stats[1]["ipackets"] == 4000 and stats[0]["oerrors"] == 0
    for number, measured in enumerate(is_measured):
        if measured:
            assert stats["flow_stats"][number]["rx_pkts"][1] == 2000


def test_profiles_pause_and_change_separately(client):
    for name, number in (("a", 1), ("b", 2)):
        client.add_streams(continuous(500, flow_stats=STLFlowStats(pg_id=number)), f"0.{name}")
    client.start(["0.a", "0.b"])
    wait_until(lambda: all(group(client, number)["rx_pkts"][1] > 20 for number in (1, 2)))
    client.pause("0.a")
    assert client.get_profiles_with_state("paused") == ["0.a"]
    assert client.get_port_info(0)[0]["status"] == "TRANSMITTING"
    # The counters include frames queued ahead of their time.
    goes_on = group(client, 2)["tx_pkts"][0]
    wait_until(lambda: group(client, 2)["tx_pkts"][0] > goes_on + 250)
    held, goes_on = (group(client, number)["tx_pkts"][0] for number in (1, 2))
    wait_until(lambda: group(client, 2)["tx_pkts"][0] > goes_on + 50)
    assert group(client, 1)["tx_pkts"][0] == held
    client.pause("0.b")
    assert client.get_paused_ports() == [0]
    wait_until_idle(client)
    client.update("0.a", mult="20kpps")
    client.resume("0.a")
    before, began = group(client, 1)["tx_pkts"][0], time.monotonic()
    wait_until(lambda: group(client, 1)["tx_pkts"][0] > before + 5000)
    assert 5000 / (time.monotonic() - began) > 1500, "more than three times what it had"
    client.stop("0.a")
    with pytest.raises(STLError, match=r"profile 0\.a is not sending"):
        client.update("0.a", mult="2")
    client.remove_all_streams("0.a")
    with pytest.raises(STLError, match=r"profile 0\.b is sending"):
        client.remove_all_streams("0.b")
    client.resume("0.b")
    before = sent(client)
    wait_until(lambda: sent(client) > before + 20)
    client.stop("0.*")
    assert client.get_active_ports() == []


def test_conflicting_profiles_are_rejected(client, monkeypatch):
    client.add_streams(continuous(flow_stats=STLFlowStats(pg_id=5)), "0.a")
    client.add_streams(continuous(flow_stats=STLFlowStats(pg_id=5)), "0.b")
    client.start("0.a")
    with pytest.raises(STLError, match=r"profile 0\.a is sending and uses packet groups \[5\]"):
        client.start("0.b")
    with pytest.raises(STLError, match=r"profile 0\.a is sending"):
        client.start("0.a")
    client.start("0.a", force=True)
    monkeypatch.setattr(client.links[0], "_speed", "1M")
    client.add_streams(continuous(1200), "0.c")
    # Each takes more than half of a megabit.
    with pytest.raises(STLError, match="smaller mult"):
        client.start("0.c")
    client.stop("0.a")
    client.start("0.c")
    client.stop("0.c")


def test_both_ports_send_several_profiles(client):
    names = ["0.a", "0.b", "1.a", "1.b"]
    for number, name in enumerate(names):
        client.add_streams(burst(500, 2000, flow_stats=STLFlowStats(pg_id=number)), name)
    client.start(names)
    client.wait_on_traffic(names, timeout=LIMIT_S)
    for number, name in enumerate(names):
        counted = group(client, number)
        port = int(name[0])
        assert counted["tx_pkts"][port] == counted["rx_pkts"][1 - port] == 500
