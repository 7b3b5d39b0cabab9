"""Streams from named arguments."""

from __future__ import annotations

import pytest
from conftest import frame, instructions

from trex.stl.api import IP, TCP, UDP, Dot1Q, IPv6, STLError, STLProfile
from trex.stl.trex_stl_hltapi import STLHltStream


def stream(**arguments):
    return STLHltStream(**arguments).to_json()


def test_default_stream_has_a_tenth_of_the_line_rate():
    document = stream()
    assert document["mode"]["rate"] == {"type": "percentage", "value": 10.0}
    assert len(frame(document)) == 60
    assert frame(document).src == "00:00:01:00:00:01"
    assert document["flags"] == 0b011


def test_headers_match_the_arguments(profiles):
    (document,) = STLProfile.load(str(profiles / "ranges_hlt.py")).to_json()
    packet = frame(document)
    assert len(packet) == 96
    assert (packet[Dot1Q].vlan, packet[Dot1Q].payload.vlan) == (5, 6)
    assert packet[TCP].flags == "SA"
    assert document["mode"]["rate"] == {"type": "pps", "value": 10.0}


def test_fields_count_from_their_first_value(profiles):
    (document,) = STLProfile.load(str(profiles / "ranges_hlt.py")).to_json()
    variables = {v["name"]: v for v in instructions(document, "flow_var")}
    source, port = instructions(document, "write_flow_var")
    first = variables[source["name"]]["init_value"] + source["add_value"]
    last = variables[source["name"]]["max_value"] + source["add_value"]
    assert (first, last) == (0x0A000001, 0x0A000004)
    assert variables[port["name"]]["init_value"] + port["add_value"] == 80
    assert variables[port["name"]]["min_value"] + port["add_value"] == 78
    assert instructions(document, "fix_checksum_ipv4")


def test_direction_exchanges_the_addresses():
    ends = {"ip_src_addr": "1.0.0.1", "ip_dst_addr": "2.0.0.1", "mac_src2": "00:00:00:00:00:22"}
    packet = frame(stream(l3_protocol="ipv4", direction=1, **ends))
    assert (packet[IP].src, packet[IP].dst, packet.src) == (
        "2.0.0.1",
        "1.0.0.1",
        "00:00:00:00:00:22",
    )


@pytest.mark.parametrize(
    "mac", ["00:11:22:aa:bb:cc", "00-11-22-AA-BB-CC", "0011.22aa.bbcc", "{0 11 22 aa bb cc}"]
)
def test_mac_address_notations(mac):
    assert frame(stream(mac_src=mac)).src == "00:11:22:aa:bb:cc"


def test_imix_divides_the_rate_by_frames():
    rates = {"l3_imix1_ratio": 3, "l3_imix2_ratio": 1, "l3_imix3_ratio": 0}
    streams = STLHltStream(length_mode="imix", rate_pps=100, **rates)
    assert [s.get_pkt_len() for s in streams] == [64, 570]
    assert [s.to_json()["mode"]["rate"]["value"] for s in streams] == [75, 25]


def test_length_fields_follow_the_frame_length():
    document = stream(
        l3_protocol="ipv4",
        l4_protocol="udp",
        length_mode="increment",
        frame_size_min=100,
        frame_size_max=200,
        vlan_id=3,
    )
    (length,) = instructions(document, "flow_var")
    assert (length["min_value"], length["max_value"]) == (96, 196)
    writes = {w["pkt_offset"]: w["add_value"] for w in instructions(document, "write_flow_var")}
    assert writes == {20: -18, 42: -38}
    assert len(frame(document)) == 196


def test_counters_that_differ_in_direction_are_not_shared():
    document = stream(
        l3_protocol="ipv4",
        l4_protocol="udp",
        vlan_id="1 2 3",
        vlan_id_mode="increment random random",
        vlan_id_count="2",
        udp_src_port_mode="decrement",
        udp_src_port_count=2,
    )
    variables = {v["name"]: v["op"] for v in instructions(document, "flow_var")}
    vlans = [variables[w["name"]] for w in instructions(document, "write_mask_flow_var")]
    ports = [variables[w["name"]] for w in instructions(document, "write_flow_var")]
    assert vlans == ["inc", "random", "random"]
    assert ports == ["dec"]


def test_ipv6_counts_in_its_low_bytes():
    document = stream(
        l3_protocol="ipv6",
        ipv6_dst_addr="2001:db8::5",
        ipv6_dst_mode="increment",
        ipv6_dst_count=3,
        ipv6_dst_step="::2",
    )
    (write,) = instructions(document, "write_flow_var")
    assert write["pkt_offset"] == 14 + 24 + 12
    assert instructions(document, "flow_var")[0]["step"] == 2
    assert frame(document)[IPv6].dst == "2001:db8::5"


def test_type_of_service_has_one_interpretation():
    def tos(**arguments):
        return frame(stream(l3_protocol="ipv4", **arguments))[IP].tos

    assert tos(ip_precedence=5) == 5 << 5
    assert tos(ip_precedence=1, ip_tos_field=2, ip_mbz=1) == 1 << 5 | 2 << 1 | 1
    assert tos(ip_precedence=1, ip_delay=1) == 1 << 5 | 1 << 4
    assert tos(ip_dscp=46, ip_cu=1) == 46 << 2 | 1
    for mixed in ({"ip_dscp": 1, "ip_delay": 1}, {"ip_precedence": 1, "ip_dscp": 1}):
        with pytest.raises(STLError):
            tos(**mixed)


def test_statistics_require_an_ip_header():
    assert stream(flow_stats_id=5)["flow_stats"] == {"enabled": False}
    assert stream(flow_stats_id=5, l3_protocol="ipv4")["flow_stats"]["stream_id"] == 5


@pytest.mark.parametrize(
    "arguments",
    [
        {"rate_pps": 1, "rate_bps": 1},
        {"rate_percent": 101},
        {"transmit_mode": "sometimes"},
        {"l3_protocol": "ipx"},
        {"l4_protocol": "udp"},
        {"frame_size": 30, "l3_protocol": "ipv4"},
        {"length_mode": "odd"},
        {"mac_src": "nonsense"},
        {"split_by_cores": "some", "mac_src_mode": "random"},
        {"mac_src_mode": "increment", "mac_src_count": 0},
    ],
)
def test_contradicting_arguments_are_rejected(arguments):
    with pytest.raises(STLError):
        stream(**arguments)


def test_unknown_argument_causes_a_warning():
    with pytest.warns(UserWarning, match="colour"):
        assert frame(stream(colour="red", l3_protocol="ipv4", l4_protocol="udp"))[UDP].dport == 80
