"""`CTRexHltApi`, alone and on a veth pair between two namespaces."""

from __future__ import annotations

import pytest
from stream_helpers import LIMIT_S, wait_until

from trex.stl.trex_stl_hltapi import (
    UDP,
    CStreamsPerPort,
    CTRexHltApi,
    Ether,
    check_res,
    print_brief_stats,
)

UDP_STREAM = {
    "mode": "create",
    "l3_protocol": "ipv4",
    "l4_protocol": "udp",
    "frame_size": 80,
    "rate_pps": 2000,
}


@pytest.fixture
def session(lab):
    found = CTRexHltApi()
    result = check_res(found.connect(device="somewhere", port_list="0 1", break_locks=True))
    assert result == {"status": 1, "log": None, "port_handle": {0: 0, 1: 1}}
    yield found
    if found.trex_client is not None:
        check_res(found.cleanup_session(port_handle="all"))


def burst(count, **arguments):
    return {**UDP_STREAM, "transmit_mode": "single_burst", "pkts_per_burst": count, **arguments}


def test_bidirectional_streams(session, capsys):
    arguments = burst(300, ip_src_mode="increment", ip_src_count=9, split_by_cores="single")
    result = session.traffic_config(
        **arguments,
        bidirectional=True,
        port_handle=0,
        port_handle2=1,
        mac_src="00:00:00:00:00:01",
        mac_dst="00:00:00:00:00:02",
        mac_src2="00:00:00:00:00:02",
        mac_dst2="00:00:00:00:00:01",
        udp_dst_port=12,
    )
    assert result == {"status": 1, "log": None, "stream_id": {0: 1, 1: 2}}
    streams = [list(session.trex_client.links[port].streams.values()) for port in (0, 1)]
    there, back = (Ether(stream[0].get_pkt()) for stream in streams)
    assert (there.src, there.dst, there[UDP].dport) == (back.dst, back.src, 12)
    known = CStreamsPerPort()
    known.add_streams_from_res(result)
    assert known.get_stream_list() == {0: [1], 1: [2]}

    assert check_res(session.traffic_control(action="sync_run", port_handle=[0, 1])) == {
        "status": 1,
        "log": None,
        "stopped": False,
    }
    check_res(session.wait_on_traffic(port_handle=[0, 1], timeout=LIMIT_S))
    assert session.traffic_control(action="poll", port_handle=[0, 1])["stopped"]
    stats = check_res(session.traffic_stats(mode="all", port_handle=[0, 1]))
    for port in (0, 1):
        for direction in ("tx", "rx"):
            counted = stats[port]["aggregate"][direction]
            assert counted["total_pkts"] == counted["pkt_count"] == 300
            assert counted["total_pkt_bytes"] == counted["pkt_byte_count"] == 300 * 80
            assert {"pkt_bit_rate", "pkt_rate", "total_pkt_rate"} <= set(counted)
    forth = stats[0]["stream"][1]["tx"], stats[1]["stream"][1]["rx"]
    assert all(it["total_pkts"] == 300 and it["total_pkts_bytes"] == 300 * 80 for it in forth)
    assert stats[0]["stream"][2]["tx"]["total_pkts"] == 0
    assert {"total_pkt_bit_rate", "line_rate_percentage"} <= set(stats[0]["stream"][1]["tx"])
    print_brief_stats(stats)
    assert capsys.readouterr().out.splitlines()[1].split() == ["TX:", "300", "300"]


def test_modify_disable_and_remove_streams(session):
    for expected in (1, 2):
        result = check_res(session.traffic_config(**burst(100), port_handle=0))
        assert result["stream_id"] == expected

    def sends():
        check_res(session.traffic_control(action="sync_run", port_handle=0))
        check_res(session.wait_on_traffic(0, LIMIT_S))
        (port,) = (it for name, it in session.traffic_stats(port_handle=0).items() if name == 0)
        return port["aggregate"]["tx"]["total_pkts"]

    change = {"mode": "modify", "port_handle": 0, "stream_id": 2}
    check_res(session.traffic_config(**change, pkts_per_burst=30))
    assert sends() == 130
    check_res(session.traffic_config(mode="disable", port_handle=0, stream_id=1))
    assert sends() == 30
    check_res(session.traffic_config(mode="enable", port_handle=0, stream_id="1-2"))
    check_res(session.traffic_config(mode="remove", port_handle=0, stream_id="2"))
    assert sends() == 100
    assert "has no stream 2" in session.traffic_config(**change)["log"]
    check_res(session.traffic_config(mode="remove", port_handle=0, stream_id="all"))
    assert "no streams" in session.traffic_control(action="run", port_handle=0)["log"]


def test_traffic_runs_until_stop(session, profiles):
    imix = {"length_mode": "imix", "rate_pps": 700, "l3_imix3_size": 200, "l3_imix2_size": 100}
    check_res(session.traffic_config(**{**UDP_STREAM, **imix}, port_handle=0))
    loaded = {"mode": "create", "load_profile": str(profiles / "udp_sizes.py")}
    check_res(session.traffic_config(**loaded, port_handle=1))
    assert not check_res(session.traffic_control(action="run", port_handle=[0, 1]))["stopped"]

    def received(port):
        return session.traffic_stats(port_handle=port)[port]["aggregate"]["rx"]["total_pkts"]

    wait_until(lambda: received(0) > 0 and received(1) > 100)
    # The counters of the stream cover each size.
    assert session.traffic_stats(mode="streams", port_handle=1)[1]["stream"][1]["rx"]["total_pkts"]
    assert session.wait_on_traffic(0, timeout=0.1)["status"] == 0
    assert check_res(session.traffic_control(action="stop"))["stopped"]
    check_res(session.traffic_control(action="reset", port_handle=[0, 1]))
    assert session.trex_client.links[0].streams == {}


def test_small_frames_are_counted_by_their_headers(session):
    tcp = burst(10, l4_protocol="tcp", frame_size=64)
    assert check_res(session.traffic_config(**tcp, port_handle=0))["stream_id"] == 1
    check_res(session.traffic_control(action="run", port_handle=0))
    check_res(session.wait_on_traffic(0, LIMIT_S))
    stats = session.traffic_stats(mode="streams", port_handle=1)[1]["stream"][1]
    assert stats["rx"]["total_pkts"] == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.traffic_config(mode="make", port_handle=0), "mode 'make'"),
        (lambda s: s.traffic_config(mode="create", port_handle="x"), "ports 'x'"),
        (lambda s: s.traffic_config(mode="modify", port_handle=0), "stream_id"),
        (lambda s: s.traffic_config(mode="remove", port_handle=0, stream_id="4-2"), "counts down"),
        (lambda s: s.traffic_config(**UDP_STREAM, bidirectional=True, port_handle=0), "ports None"),
        (lambda s: s.traffic_config(**UDP_STREAM, ip_tos_field="x", port_handle=0), "ip_tos_field"),
        (lambda s: s.traffic_control(action="jump", port_handle=0), "action 'jump'"),
        (lambda s: s.traffic_stats(mode="some", port_handle=0), "mode 'some'"),
        (lambda s: s.interface_config(0, mode="some"), "mode 'some'"),
        (lambda s: s.interface_config(7), "ports"),
    ],
)
def test_invalid_calls_return_error_results(session, call, message):
    result = call(session)
    assert result["status"] == 0 and result["log"].startswith("[ERR] ") and message in result["log"]


def test_cleanup_session(session):
    check_res(session.interface_config(0))
    check_res(session.traffic_config(**burst(5), port_handle=0))
    check_res(session.interface_config(0, mode="destroy"))
    assert session.trex_client.links[0].streams == {}
    check_res(session.cleanup_session(maintain_lock=True))
    assert session.trex_client is None


def test_calls_require_a_session(monkeypatch):
    session = CTRexHltApi()
    for call in (session.traffic_control, session.traffic_stats, session.cleanup_session):
        assert "not connected" in call()["log"]
    monkeypatch.setenv("WIRESTORM_TREX_PORTS", " ")
    assert "has no interface" in session.connect()["log"]
    with pytest.raises(SystemExit, match="not connected"):
        check_res(session.traffic_stats())
