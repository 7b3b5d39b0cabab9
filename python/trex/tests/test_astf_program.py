"""Commands of stateful programs."""

from __future__ import annotations

import base64

import pytest

from trex.astf.api import (
    ASTFCmdConnect,
    ASTFCmdDelay,
    ASTFCmdJMPNZ,
    ASTFCmdSend,
    ASTFCmdSetTemplate,
    ASTFCmdSetVal,
    ASTFError,
    ASTFErrorMissingParam,
    ASTFErrorWrongType,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)


def document(program):
    """Returns the program's document and the profile's buffers."""
    addresses = ASTFIPGen(
        ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"])
    )
    template = ASTFTemplate(
        ASTFTCPClientTemplate(addresses, program=program),
        ASTFTCPServerTemplate(program=ASTFProgram(stream=program.stream)),
        tg_name="group",
    )
    found = ASTFProfile(addresses, templates=template).to_json()
    return found["program_list"][0], found["buf_list"]


def commands(*calls, stream=True):
    program = ASTFProgram(stream=stream)
    for method, *arguments in calls:
        getattr(program, method)(*arguments)
    return document(program)[0]["commands"]


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("connect",), {"name": "connect"}),
        (("accept",), {"name": "connect"}),
        (("reset",), {"name": "reset"}),
        (("wait_for_peer_close",), {"name": "nc"}),
        (("set_send_blocking", True), {"name": "tx_mode", "flags": 0}),
        (("set_send_blocking", False), {"name": "tx_mode", "flags": 1}),
        (("send", "ab"), {"name": "tx", "buf_index": 0}),
        (("recv", 7), {"name": "rx", "min_bytes": 7}),
        (("recv", 7, True), {"name": "rx", "min_bytes": 7, "clear": True}),
        (("delay", 10), {"name": "delay", "usec": 10}),
        (("delay", 2.5), {"name": "delay", "usec": 2.5}),
        (("delay_rand", 5, 9.5), {"name": "delay_rnd", "min_usec": 5, "max_usec": 9.5}),
        (("set_var", "v", 1 << 60), {"name": "set_var", "id": 0, "val": 1 << 60}),
        (("set_tick_var", "t"), {"name": "set_tick_var", "id": 0}),
        (("add_stats", 3, 9), {"name": "add_stats", "stats_id": 3, "val": 9}),
        (("add_stats", "b", 9), {"name": "add_stats", "stats_id": 1, "val": 9}),
        (("set_next_template", "group"), {"name": "set_template", "tg_id": 1}),
        (("exec_template",), {"name": "exec_template"}),
    ],
)
def test_commands_of_connections(call, expected):
    assert commands(call) == [expected]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("send_msg", b"ab"), {"name": "tx_msg", "buf_index": 0}),
        (("recv_msg", 2), {"name": "rx_msg", "min_pkts": 2}),
        (("recv_msg", 2, True), {"name": "rx_msg", "min_pkts": 2, "clear": True}),
        (("set_keepalive_msg", 3000), {"name": "keepalive", "msec": 3000}),
        (("set_keepalive_msg", 3000, True), {"name": "keepalive", "msec": 3000, "rx_mode": True}),
        (("close_msg",), {"name": "close_msg"}),
        (("delay", 10), {"name": "delay", "usec": 10}),
    ],
)
def test_commands_of_datagrams(call, expected):
    assert commands(call, stream=False) == [expected]


def test_receive_counters_add_up_until_cleared():
    found = commands(("recv", 10), ("recv", 5), ("recv", 1, True), ("recv", 4))
    assert [c["min_bytes"] for c in found] == [10, 15, 16, 4]
    found = commands(("recv_msg", 1), ("recv_msg", 2, True), ("recv_msg", 3), stream=False)
    assert [c["min_pkts"] for c in found] == [1, 3, 3]


def test_variables_and_time_variables_have_separate_numbers():
    assert commands(
        ("set_tick_var", "start"),
        ("set_var", "a", 1),
        ("set_var", "b", 2),
        ("set_tick_var", "later"),
        ("set_var", "a", 3),
        ("add_var", "b", -4),
        ("add_tick_var", "later", 0.5),
        ("add_tick_stats", "D", "later"),
    ) == [
        {"name": "set_tick_var", "id": 0},
        {"name": "set_var", "id": 0, "val": 1},
        {"name": "set_var", "id": 1, "val": 2},
        {"name": "set_tick_var", "id": 1},
        {"name": "set_var", "id": 0, "val": 3},
        {"name": "add_var", "id": 1, "val": -4},
        {"name": "add_tick_var", "id": 1, "duration": 0.5},
        {"name": "add_tick_stats", "stats_id": 3, "var_id": 1},
    ]


def test_jumps_work_in_both_directions():
    assert commands(
        ("set_var", "n", 5),
        ("set_tick_var", "t"),
        ("set_label", "again"),
        ("jmp_nz", "n", "again"),
        ("jmp_dp", "t", "end", 2),
        ("jmp", "again"),
        ("jmp_lt", "n", "end", 1),
        ("jmp_gt", "n", "end", 2),
        ("jmp_eq", "n", "end", 3),
        ("jmp_ge", "n", "end", 4),
        ("jmp_le", "n", "end", 5),
        ("jmp_ne", "n", "end", -6),
        ("set_label", "end"),
    )[2:] == [
        {"name": "jmp_nz", "id": 0, "offset": 0},
        {"name": "jmp_dp", "id": 0, "offset": 8, "duration": 2.0},
        {"name": "jmp_cmp", "offset": -2},
        {"name": "jmp_cmp", "id": 0, "offset": 6, "cmp_op": "lt", "cmp_val": 1},
        {"name": "jmp_cmp", "id": 0, "offset": 5, "cmp_op": "gt", "cmp_val": 2},
        {"name": "jmp_cmp", "id": 0, "offset": 4, "cmp_op": "eq", "cmp_val": 3},
        {"name": "jmp_cmp", "id": 0, "offset": 3, "cmp_op": "ge", "cmp_val": 4},
        {"name": "jmp_cmp", "id": 0, "offset": 2, "cmp_op": "le", "cmp_val": 5},
        {"name": "jmp_cmp", "id": 0, "offset": 1, "cmp_op": "ne", "cmp_val": -6},
    ]


def test_buffers_are_bytes_or_ascii_with_optional_fill():
    program = ASTFProgram()
    program.send(b"\xff\x00")
    program.send("text")
    program.send("text", size=4)
    program.send("text", size=9)
    program.send(b"text", size=9, fill="xy")
    program.send("", size=9, fill=b"\x00")
    found, buffers = document(program)
    assert [c["buf_index"] for c in found["commands"]] == [0, 1, 1, 2, 3, 4]
    text = base64_of(b"text")
    assert buffers == [
        base64_of(b"\xff\x00"),
        text,
        {"base": text, "size": 9},
        {"base": text, "size": 9, "fill": base64_of(b"xy")},
        {"base": "", "size": 9, "fill": base64_of(b"\x00")},
    ]
    assert program.total_send_bytes == 2 + 4 + 4 + 9 + 9 + 9


def test_delay_follows_each_chunk():
    program = ASTFProgram()
    program.send_chunk("abcde", 2, 10)
    found, buffers = document(program)
    assert [c["name"] for c in found["commands"]] == ["tx", "delay"] * 3
    assert buffers == [base64_of(b"ab"), base64_of(b"cd"), base64_of(b"e")]
    at_once = ASTFProgram()
    at_once.send_chunk("abcde", 4, 0)
    assert [c.name for c in at_once.commands] == ["tx", "tx"]


def test_document_marks_udp_and_measured_programs():
    assert document(ASTFProgram(stream=False, addon="latency"))[0] == {
        "commands": [],
        "stream": False,
        "addon": "latency",
    }


def test_command_objects():
    program = ASTFProgram(
        commands=[
            ASTFCmdConnect(),
            ASTFCmdSetVal("n", 2),
            ASTFCmdSend(b"ab"),
            ASTFCmdJMPNZ("n", 0, "end"),
            ASTFCmdSetTemplate("group"),
        ]
    )
    program.set_label("end")
    program.vars["n"] = 0
    assert document(program) == (
        {
            "commands": [
                {"name": "connect"},
                {"name": "set_var", "id": 0, "val": 2},
                {"name": "tx", "buf_index": 0},
                {"name": "jmp_nz", "id": 0, "offset": 2},
                {"name": "set_template", "tg_id": 1},
            ]
        },
        [base64_of(b"ab")],
    )
    assert len(ASTFProgram(commands=ASTFCmdDelay(5)).commands) == 1


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ([("jmp", "absent")], r"command 0 \(jmp_cmp\): no set_label\('absent'\)"),
        ([("jmp_nz", "v", "l"), ("set_label", "l")], r"command 0 \(jmp_nz\): no set_var\('v', "),
        ([("add_var", "v", 1)], r"\(add_var\): no set_var\('v', ...\) of the program"),
        ([("set_var", "v", 1), ("add_tick_var", "v", 1)], r"no set_tick_var\('v', ...\)"),
        ([("add_tick_stats", "A", "t")], r"no set_tick_var\('t', ...\)"),
        ([("set_label", "l"), ("set_label", "l")], "label 'l' already is at command 0"),
        ([("connect",), ("send_msg", "a")], r"command 1 \(tx_msg\) is of UDP, and .* of TCP: ASTF"),
        ([("send", "\u20ac")], "has '\u20ac' at 0, which is not ASCII: give it as bytes"),
        ([("send", "a", 5, "\u20ac")], "argument 'fill' of ASTFProgram.send has"),
        ([("send_chunk", "abc", 0, 1)], "'chunk_size' .* is 0, not 1 or more"),
        ([("delay", -1)], "'usec' of ASTFProgram.delay is -1, not 0 or more"),
        ([("delay_rand", 5, 4)], "min_usec of ASTFProgram.delay_rand is 5, above max_usec, 4"),
        ([("add_stats", "E", 1)], "'stats_id' .* is 'E', not A to D or 0 to 3"),
        ([("add_stats", 4, 1)], "'stats_id' .* is 4, not A to D or 0 to 3"),
        ([("add_stats", "", 1)], "'stats_id' .* is '', not A to D"),
        ([("jmp_cmp", "v", "l", "lte", 1)], "cmp_op .* is 'lte', which is none of lt, gt"),
        ([("recv", -1)], "'bytes' of ASTFProgram.recv is -1, not 0 or more"),
    ],
)
def test_invalid_programs_are_rejected(calls, reason):
    with pytest.raises(ASTFError, match=reason):
        commands(*calls)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("send", 5), "'buf' of ASTFProgram.send is of type int, expected type bytes or str"),
        (("recv", "5"), "'bytes' of ASTFProgram.recv is of type str, expected type int"),
        (("delay", "5"), "'usec' of ASTFProgram.delay is of type str"),
        (("set_var", 0, 5), "'var_id' of ASTFProgram.set_var is of type int"),
        (("set_send_blocking", 1), "'block' .* is of type int, expected type bool"),
    ],
)
def test_arguments_of_wrong_types_are_rejected(call, reason):
    with pytest.raises(ASTFErrorWrongType, match=reason):
        commands(call)


def test_missing_arguments_and_invalid_sides_are_rejected():
    with pytest.raises(ASTFErrorMissingParam, match=r"ASTFProgram.send needs 'buf'"):
        ASTFProgram().send(None)
    with pytest.raises(ASTFError, match="'side' of ASTFProgram is 'x', not 'c' or 's'"):
        ASTFProgram(file="a.pcap", side="x")
    with pytest.raises(ASTFErrorWrongType, match="'commands' of ASTFProgram is of type str"):
        ASTFProgram(commands=["connect"])
