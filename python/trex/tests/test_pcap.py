"""Captures as profiles."""

from __future__ import annotations

import pytest

from trex.stl.api import (
    IP,
    TCP,
    UDP,
    Ether,
    Graph,
    PcapNgWriter,
    STLError,
    STLPktBuilder,
    STLProfile,
    STLVmFixIpv4,
    wrpcap,
)

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


def packets():
    there = Ether(src=A, dst=B) / IP(src="10.0.0.1", dst="10.0.0.2") / TCP()
    back = Ether(src=B, dst=A) / IP(src="10.0.0.2", dst="10.0.0.1") / TCP()
    timed = []
    for packet, usec in ((there, 0), (back, 250), (there / "data", 1000), (back, 4000)):
        packet = packet.copy()
        packet.time = 100 + usec / 1e6
        timed.append(packet)
    return timed


@pytest.fixture
def capture(tmp_path):
    path = tmp_path / "talk.pcap"
    wrpcap(str(path), packets())
    return str(path)


def streams(profile):
    return profile.to_json()


def test_packets_keep_the_captured_order_and_gaps(capture):
    profile = STLProfile.load_pcap(capture, loop_count=3)
    assert [s["name"] for s in streams(profile)] == [1, 2, 3, 4]
    assert [s["next"] for s in streams(profile)] == [2, 3, 4, 1]
    assert [s["isg"] for s in streams(profile)] == pytest.approx([0, 250, 750, 3000])
    assert [s["self_start"] for s in streams(profile)] == [True, False, False, False]
    assert [s["action_count"] for s in streams(profile)] == [0, 0, 0, 3]
    assert all(s["flags"] == 0 for s in streams(profile))
    assert [s.get_pkt() for s in profile.get_streams()] == [bytes(p) for p in packets()]


def test_gaps_can_be_set_divided_and_limited(capture):
    def gaps(**arguments):
        return [s["isg"] for s in streams(STLProfile.load_pcap(capture, **arguments))]

    assert gaps(ipg_usec=10, speedup=2) == [5] * 4
    assert gaps(speedup=2) == pytest.approx([0, 125, 375, 1500])
    assert gaps(min_ipg_usec=500) == pytest.approx([500, 500, 750, 3000])


def test_mac_addresses_and_bytes_of_the_capture(capture):
    profile = STLProfile.load_pcap(
        capture,
        src_mac_pcap=True,
        dst_mac_pcap=True,
        packet_hook=lambda data: data + b"!",
        vm=[STLVmFixIpv4("IP")],
    )
    first = profile.get_streams()[0]
    assert first.to_json()["flags"] == 0b011
    assert first.to_json()["vm"]["instructions"][0]["pkt_offset"] == 14


@pytest.mark.parametrize("mode", ["MAC", "IP"])
def test_capture_splits_by_direction(capture, mode):
    there, back = STLProfile.load_pcap(capture, split_mode=mode, loop_count=2)
    assert [s.get_pkt() for s in there.get_streams() if not s.is_dummy()] == [
        bytes(p) for p in packets()[::2]
    ]
    # This side ends 3 ms before the whole, and waits that long before it restarts.
    first, wait, last = there.to_json()
    assert (first["isg"], last["isg"], wait["isg"]) == pytest.approx((1000, 1000, 3000))
    assert (last["next"], wait["next"], wait["action_count"]) == ("delay_stream", 1, 2)
    assert [s["isg"] for s in back.to_json()] == pytest.approx([1250, 3750])


def test_capture_without_two_sides_is_rejected():
    graph = Graph()
    graph.add(4, 3)
    graph.add(1, 2)
    graph.add(3, 2)
    assert graph.split() == ({4, 2}, {3, 1})
    graph.add(1, 4)
    assert graph.split()
    graph.add(1, 3)
    with pytest.raises(STLError):
        graph.split()


def test_pcapng_and_nanoseconds_are_read(tmp_path):
    times = {}
    for name, writer in (
        ("nano.pcap", lambda path: wrpcap(path, packets(), nano=True)),
        ("new.pcapng", write_pcapng),
    ):
        path = str(tmp_path / name)
        writer(path)
        times[name] = [s["isg"] for s in streams(STLProfile.load_pcap(path))]
    for isg in times.values():
        assert isg == pytest.approx([0, 250, 750, 3000], abs=2)


def write_pcapng(path):
    writer = PcapNgWriter(path)
    for packet in packets():
        writer.write(packet)
    writer.close()


def test_invalid_captures_are_rejected(tmp_path, capture):
    text = tmp_path / "text.pcap"
    text.write_text("no capture")
    with pytest.raises(STLError):
        STLProfile.load_pcap(str(text))
    with pytest.raises(STLError):
        STLProfile.load_pcap(str(tmp_path / "absent.pcap"))
    for arguments in ({"speedup": 0}, {"loop_count": -1}, {"ipg_usec": 0}, {"split_mode": "port"}):
        with pytest.raises(STLError):
            STLProfile.load_pcap(capture, **arguments)
    one_way = str(tmp_path / "one_way.pcap")
    wrpcap(one_way, [Ether(src=A, dst=B) / IP() / UDP()])
    with pytest.raises(STLError, match="one direction"):
        STLProfile.load_pcap(one_way, split_mode="MAC")


def test_packet_builder_takes_the_first_packet_of_a_capture(capture):
    builder = STLPktBuilder(pkt=capture)
    assert builder.dump_pkt(encode=False)["binary"] == bytes(packets()[0])
