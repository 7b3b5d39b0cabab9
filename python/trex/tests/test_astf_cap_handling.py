"""Captures of one conversation, packet by packet."""

from __future__ import annotations

import ast
import os
import socket
from pathlib import Path

import pytest
from scapy.layers.inet import TCP, UDP
from scapy.utils import rdpcap
from test_astf_capture import CLIENT, SERVER, datagrams, page, write_capture

from trex.astf.api import ASTFError, TRexError
from trex.astf.cap_handling import (
    CPacketData,
    CPcapFixTime,
    CPktWithTime,
    is_udp_pcap,
    pcap_cut_udp,
    pcap_reader,
)


def read(path):
    """Returns the content of a capture."""
    reader = pcap_reader(path)
    reader.analyze()
    return reader


def test_reader_returns_a_connection_packet_by_packet(tmp_path, capsys):
    reader = read(write_capture(tmp_path, page().packets))
    assert reader.is_tcp() and (reader.s_port, reader.d_port) == (5000, 8080)
    assert (reader.c_ip, reader.s_ip) == (socket.inet_aton(CLIENT), socket.inet_aton(SERVER))
    assert reader.c_tcp_win == reader.s_tcp_win == 8192
    assert reader.payload_len == len(b"GET /bye") + 700
    assert len(reader.pkts) == len(reader.pkt_times) == len(page().packets)
    assert reader.pkt_dirs[:4] == ["c", "s", "c", "c"] and reader.pkts[0].is_empty()
    reader.condense_pkt_data()
    assert [(it.direction, it.payload) for it in reader.pkts] == [
        ("c", b"GET /"),
        ("s", b"a" * 300 + b"b" * 400),
        ("c", b"bye"),
    ]
    reader.dump()
    output = capsys.readouterr().out
    assert "Client TCP window:8192" in output and "s - len 700" in output


def test_captures_are_compared(tmp_path):
    one = read(write_capture(tmp_path, datagrams(("c", 0, b"a"), ("s", 9, b"b")), "one.pcap"))
    path = write_capture(tmp_path, datagrams(("c", 0, b"a"), ("s", 9, b"c")), "other.pcap")
    other = read(path)
    longer = read(write_capture(tmp_path, datagrams(("c", 0, b"a")) * 3, "longer.pcap"))
    assert not one.is_tcp() and one.c_tcp_win == -1
    assert one.is_same_pkts(one) == -1 and one.is_same_pkts(other) == 1
    assert one.is_same_pkts(longer) == -2
    # The reader of an unchanged file comes from the cache.
    assert pcap_reader(path) is other
    write_capture(tmp_path, datagrams(("c", 0, b"a"), ("s", 9, b"b")), "other.pcap")
    os.utime(path, ns=(1, 1))
    assert one.is_same_pkts(read(path)) == -1
    with pytest.raises(ASTFError, match="No such file"):
        pcap_reader("nowhere.pcap")
    with pytest.raises(ASTFError, match="cannot join data"):
        CPacketData("c", b"a") + CPacketData("s", b"b")
    assert (CPacketData("c", b"a") + CPacketData("c", b"b")).payload == b"ab"


def test_datagrams_are_truncated(tmp_path, capsys):
    path = write_capture(
        tmp_path, datagrams(("c", 0, b"question"), ("s", 50_000, b"yes"), ("c", 9, b""))
    )
    assert is_udp_pcap(path)
    out = str(tmp_path / "cut.pcap")
    pcap_cut_udp(4, path, out, verbose=True)
    assert "pkt 0 pld size is 8, exceeding by 4" in capsys.readouterr().out
    packets = rdpcap(out)
    assert [bytes(it[UDP].payload)[: it[UDP].len - 8] for it in packets] == [b"ques", b"yes", b""]
    # Lengths and checksums match the truncated data.
    assert bytes(packets[0]) == bytes(datagrams(("c", 0, b"ques"))[0])
    assert float(packets[1].time - packets[0].time) == pytest.approx(0.05)
    with pytest.raises(ASTFError, match="packet 1: it is not of UDP"):
        pcap_cut_udp(4, write_capture(tmp_path, page().packets), out)
    assert not is_udp_pcap(write_capture(tmp_path, page().packets))


def test_fix_timing_moves_packets_by_a_quarter_round_trip(tmp_path, capsys):
    packets = page().packets
    for number, packet in enumerate(packets):
        packet.time = 100 + 0.020 * number
    path, out = write_capture(tmp_path, packets), str(tmp_path / "moved.pcap")
    moved = CPcapFixTime(path)
    moved.fix_timing(out)
    assert moved.rtt == pytest.approx(0.020) and moved.rtt_syn_ack_ack == pytest.approx(0.020)
    assert "RTT is 20 msec" in capsys.readouterr().out
    times = {bytes(it): float(it.time) for it in rdpcap(out)}
    assert len(times) == len(packets)
    for packet in packets:
        way = 1 if packet[TCP].sport == 5000 else -1
        assert times[bytes(packet)] == pytest.approx(float(packet.time) + way * 0.005)
    assert moved.pkts == sorted(moved.pkts, key=lambda it: it.ts)
    assert CPktWithTime(1.5, b"x").ts == 1.5 and "1.5" in repr(CPktWithTime(1.5, b"x"))


def test_captures_with_unknown_timing_are_rejected(tmp_path):
    def check_rejected(packets, message):
        path = write_capture(tmp_path, packets, "refused.pcap")
        with pytest.raises(TRexError, match=message):
            CPcapFixTime(path).fix_timing(str(tmp_path / "out.pcap"))

    packets = page().packets
    check_rejected(packets[:1], "no SYN\\+ACK")
    check_rejected(packets[2:], "packet 1 has no SYN")
    check_rejected(datagrams(("c", 0, b"a")), "packet 1 is not of TCP")
    for number, packet in enumerate(packets):
        packet.time = 100 + 0.004 * number
    check_rejected(packets, "4 ms, which is below 10")
    for packet in packets:
        packet.time = 100 + 25 * (packet.time - 100)
    packets[-1][TCP].dport = 9
    check_rejected(packets, "belongs to another connection")


def test_names_match_trex():
    tree = os.environ.get("TREX_CORE")
    if tree is None:
        pytest.skip("TREX_CORE names no tree of TRex to compare with")
    parts = "scripts/automation/trex_control_plane/interactive/trex/astf/cap_handling.py"
    source = ast.parse((Path(tree) / parts).read_text())
    import trex.astf.cap_handling as ours

    for node in source.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            assert hasattr(ours, node.name), node.name
