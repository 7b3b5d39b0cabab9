"""Reports during a run, on a veth pair between two namespaces."""

from __future__ import annotations

import time

import pytest
from stream_helpers import LIMIT_S, burst, continuous, wait_until

from trex.client.packet_socket import PacketSocket
from trex.stl.api import STLError, STLFlowLatencyStats, STLFlowStats, rdpcap


def test_delays_are_visible_during_the_run(client):
    stream = continuous(2000, flow_stats=STLFlowLatencyStats(pg_id=7))
    client.add_streams(stream, ports=[0])
    client.start([0])

    def latency():
        return client.get_stats()["latency"][7]

    wait_until(lambda: sum(latency()["latency"]["histogram"].values()) > 200)
    found = latency()
    delay = found["latency"]
    assert 0 < delay["total_min"] <= delay["average"] <= delay["total_max"]
    assert 0 < delay["last_max"] <= delay["total_max"] and delay["jitter"] >= 0
    assert set(found["err_cntrs"].values()) == {0}
    before = sum(delay["histogram"].values())
    wait_until(lambda: sum(latency()["latency"]["histogram"].values()) > before)
    assert client.get_pgid_stats([7])["latency"][7]["latency"]["total_max"] >= delay["total_max"]
    client.stop()
    counted = client.get_stats()["flow_stats"][7]
    assert sum(latency()["latency"]["histogram"].values()) == counted["rx_pkts"][1]


def test_duplicates_are_visible_during_the_run(client):
    client.set_service_mode([0])
    capture = client.start_capture(tx_ports=[0], limit=5)["id"]
    client.add_streams(continuous(2000, flow_stats=STLFlowLatencyStats(pg_id=3)), ports=[0])
    client.start([0], force=True)

    def errors():
        return client.get_pgid_stats([3])["latency"][3]["err_cntrs"]

    wait_until(lambda: client.get_pgid_stats([3])["flow_stats"][3]["rx_pkts"][1] > 100)
    sent: list = []
    client.fetch_capture_packets(capture, sent)
    assert len(sent) == 5 and set(errors().values()) == {0}
    with PacketSocket(client.links[0].interface) as wire:
        for frame in sent:
            wire.send(frame["binary"])
    wait_until(lambda: errors()["dup"] == 5)
    assert errors() == {**dict.fromkeys(errors(), 0), "dup": 5, "seq_too_low": 5}
    client.clear_pgid_stats()
    assert set(errors().values()) == {0}
    client.stop()
    assert set(errors().values()) == {0}


def test_packet_group_rates_cover_the_time_between_two_calls(client):
    client.add_streams(continuous(2000, flow_stats=STLFlowStats(pg_id=1)), ports=[0])
    client.start([0])

    def counted():
        return client.get_pgid_stats()["flow_stats"][1]

    wait_until(lambda: counted()["rx_pkts"][1] > 200)
    before, began = counted(), time.monotonic()
    wait_until(lambda: counted()["rx_pkts"][1] > before["rx_pkts"][1] + 3000)
    after, took_s = counted(), time.monotonic() - began
    for direction, port in (("tx", 0), ("rx", 1)):
        rate = (after[f"{direction}_pkts"][port] - before[f"{direction}_pkts"][port]) / took_s
        # Counters are at most 100 ms old.
        assert after[f"{direction}_pps"][port] == pytest.approx(rate, rel=0.3)
        assert after[f"{direction}_bps"][port] == pytest.approx(
            after[f"{direction}_pps"][port] * 64 * 8
        )
    assert after["rx_bytes"][1] == 64 * after["rx_pkts"][1]
    client.stop()


def test_util_stats_report_cpu_load(client):
    idle = client.get_util_stats()
    assert idle == {"cpu": [{"ports": [-1, -1], "history": [0.0] * 20}], "mbuf_stats": {}}
    client.add_streams(continuous(5000), ports=[0])
    client.start([0])
    wait_until(lambda: client.get_util_stats()["cpu"][0]["history"][0] > 0)
    (core,) = client.get_util_stats()["cpu"]
    assert core["ports"] == [0, -1] and len(core["history"]) == 20
    assert all(0 <= load <= 150 for load in core["history"])
    client.stop()
    assert client.get_util_stats() == idle


def test_capture_of_sent_frames(client, tmp_path):
    client.set_service_mode([0, 1])
    leaving = client.start_capture(tx_ports=[0], limit=50)["id"]
    both = client.start_capture(tx_ports=0, rx_ports=1, bpf_filter="udp dst port 12")["id"]
    other = client.start_capture(tx_ports=[1])["id"]
    client.add_streams(burst(20, size=80, flow_stats=STLFlowStats(pg_id=1)), ports=[0])
    client.start([0], force=True)
    client.wait_on_traffic([0], timeout=LIMIT_S)
    wait_until(lambda: client.get_capture_status()[leaving]["count"] == 20)
    assert client.get_capture_status()[leaving]["filter"] == {"tx": 1, "rx": 0, "bpf": ""}
    first: list = []
    client.fetch_capture_packets(leaving, first, pkt_count=5)
    assert len(first) == 5 and client.get_capture_status()[leaving]["count"] == 15
    assert all(it["origin"] == "TX" and it["port"] == 0 for it in first)
    assert all(len(it["binary"]) == 80 for it in first)
    wait_until(lambda: client.get_capture_status()[both]["count"] == 40)
    captured: list = []
    client.stop_capture(both, output=captured)
    sent, received = (
        [it["binary"] for it in captured if it["origin"] == direction] for direction in ("TX", "RX")
    )
    assert sent == received and sent[:5] == [it["binary"] for it in first]
    file = tmp_path / "left.pcap"
    client.stop_capture(leaving, str(file))
    assert [bytes(it) for it in rdpcap(str(file))] == sent[5:]
    nothing: list = []
    client.stop_capture(other, output=nothing)
    assert nothing == []


def test_capture_rejects_ports_that_bypass_the_taps(client):
    client.add_streams(continuous(), ports=[0])
    client.start([0])
    client.links[0].is_service = True
    with pytest.raises(STLError, match="port 0 sends past the kernel's taps"):
        client.start_capture(tx_ports=[0])
    client.stop()
    assert client.get_capture_status() == {}
