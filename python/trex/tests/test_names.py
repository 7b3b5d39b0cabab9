"""Addresses and other helpers of the star import."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture
def api():
    names: dict = {}
    exec("from trex_stl_lib.api import *", names)
    return names


def test_star_import_has_the_names_of_profiles(api):
    for name in (
        "STLStream STLPktBuilder STLVM STLProfile STLError Ether IP UDP TCP IPv6 Dot1Q IPOption "
        "ARP DNS ICMPv6ND_NS bind_layers fragment ThreeBytesField FlagsField os sys json yaml "
        "string binascii random struct socket time re copy collections ipv4_str_to_num "
        "is_valid_ipv4 is_valid_ipv4_ret PCAPReader default_STLStream"
    ).split():
        assert name in api, name


def test_addresses_and_numbers(api):
    assert api["ip2int"]("10.0.0.1") == 0x0A000001
    assert api["int2ip"](0x0A000001) == "10.0.0.1"
    assert api["increase_ip"]("255.255.255.255", 2) == "0.0.0.1"
    assert api["increase_mac"]("00:00:00:00:00:ff") == "00:00:00:00:01:00"
    assert api["int2ipv6"](*api["ipv62int"]("2001:db8::7")) == "2001:db8::7"
    assert api["increase_ipv6"]("2001:db8::ffff:ffff:ffff:ffff") == "2001:db8:0:1::"
    assert api["compress_ipv6"]("2001:0db8:0:0:0:0:0:7") == "2001:db8::7"
    assert api["generate_ipv6"]("00:11:22:33:44:55") == "fe80::211:22ff:fe33:4455"
    assert api["generate_ipv6_solicited_node"]("fe80::1:2345:6789") == "ff02::1:ff45:6789"
    assert api["multicast_mac_from_ipv6"]("ff02::1:ff45:6789") == "33:33:ff:45:67:89"
    assert api["is_valid_mac"]("00:11:22:33:44:5F")
    assert not api["is_valid_mac"]("00:11:22:33-44:5F")
    assert not api["is_valid_ipv4"]("10.0.0")
    with pytest.raises(TypeError):
        api["is_valid_ipv4_ret"]("10.0.0.256")


def test_lists_and_number_formats(api):
    assert api["bitfield_to_list"](0b1010) == [1, 3]
    assert api["list_remove_dup"]([2, 1, 2]) == [2, 1]
    assert api["calc_bps_L1"](640, 1) == 800
    assert api["format_num"](1500.0, "pps") == "1.5 Kpps"
    assert sorted(["p10", "p2"], key=api["natural_sorted_key"]) == ["p2", "p10"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("trex.stl.trex_stl_streams", "STLStream"),
        ("trex.stl.trex_stl_packet_builder_scapy", "STLPktBuilder"),
        ("trex.stl.trex_stl_hltapi", "STLProfile"),
        ("trex.common.trex_exceptions", "TRexError"),
    ],
)
def test_older_locations_have_the_same_names(api, module, name):
    assert getattr(importlib.import_module(module), name) is api[name]
