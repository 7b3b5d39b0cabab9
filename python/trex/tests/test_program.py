"""Field-engine programs, and the packet offsets of their instructions."""

from __future__ import annotations

import pytest

from trex.stl.api import (
    ICMP,
    IP,
    STLVM,
    TCP,
    UDP,
    VXLAN,
    CTRexPacketBuildException,
    Dot1Q,
    Ether,
    IPOption,
    IPv6,
    Padding,
    Raw,
    STLIPRange,
    STLPktBuilder,
    STLScVmRaw,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTrimPktSize,
    STLVmWrFlowVar,
)
from trex.stl.layout import PacketLayout, field_name

OPTIONS = Ether() / Dot1Q() / Dot1Q() / IP(options=IPOption(b"\x07\x07\x04\0\0\0\0")) / TCP() / "x"
TUNNEL = Ether() / IPv6() / UDP() / VXLAN() / Ether() / IP() / ICMP()


@pytest.mark.parametrize(
    ("packet", "field", "offset"),
    [
        (OPTIONS, "Ether.src", 6),
        (OPTIONS, "Ethernet.dst", 0),
        (OPTIONS, "Dot1Q.vlan", 14),
        (OPTIONS, "802|1Q:1.vlan", 18),
        (OPTIONS, "Dot1Q.type", 16),
        (OPTIONS, "IP.frag", 28),
        (OPTIONS, "IP.src", 34),
        (OPTIONS, "TCP.sport", 50),
        (OPTIONS, "TCP.window", 64),
        (OPTIONS, "Raw.load", 70),
        (TUNNEL, "IPv6.fl", 15),
        (TUNNEL, "IPv6.dst", 38),
        (TUNNEL, "Ether:1.src", 76),
        (TUNNEL, "ICMP.id", 108),
    ],
)
def test_fields_are_found_by_name(packet, field, offset):
    layout = PacketLayout(packet)
    assert layout.field_offset(field) == offset
    # The name of the field at an offset leads to the same offset.
    assert layout.field_offset(field_name(layout.field_at(offset))) == offset


@pytest.mark.parametrize(
    "field", ["UDP.sport", "IP:1.src", "IP.source", "IP", "IP.a.b", "IP:x.src"]
)
def test_unknown_fields_are_rejected(field):
    with pytest.raises(CTRexPacketBuildException):
        PacketLayout(OPTIONS).field_offset(field)


def program(*commands):
    builder = STLPktBuilder(pkt=Ether() / IP() / UDP(), vm=STLScVmRaw(list(commands)))
    return builder.get_vm_data()["instructions"]


def test_dependent_variables_are_ordered_and_not_split():
    lines = program(
        STLVmFlowVar("last"),
        STLVmFlowVarRepeatableRandom("middle", size=1, seed=3, next_var="last"),
        STLVmWrFlowVar("last", 20),
        STLVmFlowVar("alone"),
        STLVmFlowVar("first", next_var="middle"),
    )
    assert [line["name"] for line in lines] == ["alone", "first", "middle", "last", "last"]
    split = {line["name"]: line.get("split_to_cores") for line in lines[:4]}
    assert split == {"alone": True, "first": True, "middle": False, "last": False}


@pytest.mark.parametrize(
    "commands",
    [
        lambda: [STLVmFlowVar("a", next_var="b"), STLVmFlowVar("b", next_var="a")],
        lambda: [STLVmFlowVar("a", next_var="b")],
        lambda: [STLVmFlowVar("a", next_var="a")],
        lambda: [STLVmFlowVar("a", next_var="b", op="random"), STLVmFlowVar("b")],
        lambda: [
            STLVmFlowVar("a", next_var="c"),
            STLVmFlowVar("b", next_var="c"),
            STLVmFlowVar("c"),
        ],
        lambda: [STLVmFlowVar("a"), STLVmFlowVar("a")],
        lambda: [STLVmWrFlowVar("a", 20)],
        lambda: [STLVmTrimPktSize("a")],
        lambda: [STLVmFlowVar("a", size=3)],
        lambda: [STLVmFlowVar("a", size=1, max_value=256)],
        lambda: [STLVmFlowVar("a", min_value=9, max_value=8)],
        lambda: [STLVmFlowVar("a", init_value=9, max_value=8)],
        lambda: [STLVmFlowVar("a", step=0)],
        lambda: [STLVmFlowVar("a", op="add")],
        lambda: [STLVmFlowVar("a", op="dec", min_value=0, max_value=9, step=3)],
        lambda: [STLVmFlowVar("a", size=1, value_list=[256])],
    ],
)
def test_invalid_programs_are_rejected(commands):
    with pytest.raises(CTRexPacketBuildException):
        program(*commands())


def test_counter_starts_at_its_end_of_the_range():
    up, down = program(
        STLVmFlowVar("up", min_value=3, max_value=8),
        STLVmFlowVar("down", min_value=3, max_value=8, op="dec"),
    )
    assert (up["init_value"], down["init_value"]) == (3, 8)


def test_program_works_with_different_packets():
    vm = STLVM()
    vm.var("a", 0, 9, size=2, op="inc", next_var="b")
    vm.var("b", 0, 9, size=2, op="inc")
    vm.write("a", "UDP.sport")
    plain = STLPktBuilder(pkt=Ether() / IP() / UDP(), vm=vm).get_vm_data()
    tagged = STLPktBuilder(pkt=Ether() / Dot1Q() / IP() / UDP(), vm=vm).get_vm_data()
    assert plain["instructions"][2]["pkt_offset"] == 34
    assert tagged["instructions"][2]["pkt_offset"] == 38
    assert vm.commands[1].split_to_cores


def test_a_range_of_addresses_is_a_program():
    vm = STLIPRange(dst={"start": "10.0.0.1", "end": "10.0.0.9", "step": 2})
    lines = STLPktBuilder(pkt=Ether() / IP(), vm=vm).get_vm_data()["instructions"]
    assert [line["type"] for line in lines] == ["flow_var", "write_flow_var", "fix_checksum_ipv4"]
    assert lines[1]["pkt_offset"] == 30


def test_dissection_drops_bytes_behind_the_ip_length():
    padded = bytes(Ether() / IP() / UDP()) + b"\0" * 4
    by_offset = STLPktBuilder(pkt_buffer=padded, vm=[STLVmFlowVar("a"), STLVmWrFlowVar("a", 26)])
    by_name = STLPktBuilder(
        pkt_buffer=padded, vm=[STLVmFlowVar("a"), STLVmWrFlowVar("a", "IP.src")]
    )
    unchanged = STLPktBuilder(pkt_buffer=padded, build_raw=True, remove_fcs=False)
    assert by_offset.get_pkt_len() == unchanged.get_pkt_len() == 46
    assert by_name.get_pkt_len() == 42
    assert isinstance(unchanged.pkt.lastlayer(), Padding)


def test_pkt_and_pkt_buffer_exclude_each_other():
    with pytest.raises(CTRexPacketBuildException):
        STLPktBuilder(pkt=Ether(), pkt_buffer=b"x")
    with pytest.raises(CTRexPacketBuildException):
        STLPktBuilder().compile()
    assert STLPktBuilder(pkt=Ether() / Raw("x")).pkt_layers_desc() == "Ethernet:Raw"
