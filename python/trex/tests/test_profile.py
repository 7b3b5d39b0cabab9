"""Profiles from files and their documents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import frame, instructions

import trex
from trex.stl.api import (
    IP,
    UDP,
    Ether,
    STLError,
    STLFlowLatencyStats,
    STLPktBuilder,
    STLProfile,
    STLStream,
    STLTaggedPktGroupTagConf,
    STLTXCont,
    STLTXSingleBurst,
)


def load(path: Path, **arguments):
    return STLProfile.load(str(path), **arguments).to_json()


def test_profile_gets_direction_and_tunables(profiles):
    streams = load(profiles / "udp_sizes.py", direction=1, tunables=["--sizes", "100,200,300"])
    assert [s["mode"]["rate"]["value"] for s in streams] == [100, 200, 300]
    assert [len(frame(s)) for s in streams] == [100, 200, 300]
    assert {(frame(s)[IP].src, frame(s)[IP].dst) for s in streams} == {("10.2.0.1", "10.1.0.1")}


def test_keyword_arguments_become_tunables(profiles):
    assert len(load(profiles / "udp_sizes.py", sizes="64")) == 1


def test_default_stream(profiles):
    (stream, _) = load(profiles / "udp_sizes.py")
    assert set(stream) == {
        "action_count",
        "core_id",
        "enabled",
        "flags",
        "flow_stats",
        "isg",
        "mode",
        "packet",
        "self_start",
        "start_paused",
        "vm",
    }
    assert stream["flags"] == 0
    assert stream["core_id"] == -1
    assert stream["flow_stats"] == {"enabled": False}
    assert stream["vm"] == {"instructions": []}
    assert stream["mode"] == {"type": "continuous", "rate": {"type": "pps", "value": 60}}


def test_unset_addresses_do_not_depend_on_the_machine():
    packet = frame(STLStream().to_json())
    assert (packet.dst, packet.src) == ("00:00:00:01:00:00", "00:00:00:02:00:00")
    assert (packet[IP].src, packet[IP].dst) == ("16.0.0.1", "48.0.0.1")


def test_default_addresses_apply_after_earlier_use_of_scapy():
    script = (
        "from scapy.all import IP, Ether\n"
        "Ether() / IP()\n"
        "import trex.stl.api\n"
        "print(Ether().src, IP().src)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(trex.__file__).parents[1])},
    )
    assert run.stdout == "00:00:00:02:00:00 16.0.0.1\n", run.stderr


def test_chained_bursts_with_programs(profiles):
    many, few = load(profiles / "clients.py", port_id=2)
    assert (many["name"], many["next"], few["name"]) == ("many", "few", "few")
    assert (many["self_start"], few["self_start"], few["isg"]) == (True, False, 12.5)
    assert many["mode"] == {
        "type": "single_burst",
        "total_pkts": 30,
        "rate": {"type": "percentage", "value": 10},
    }
    assert few["flow_stats"] == {
        "enabled": True,
        "rule_type": "stats",
        "stream_id": 42,
        "vxlan": False,
        "ieee_1588": False,
    }
    # The source address is the packet's, the destination address is the port's.
    assert many["flags"] == 1
    assert few["vm"]["cache"] == 20
    client, port = instructions(many, "flow_var")
    assert client == {
        "type": "flow_var",
        "name": "client",
        "size": 4,
        "op": "inc",
        "init_value": 0x1000000A,
        "min_value": 0x1000000A,
        "max_value": 0x10000013,
        "step": 2,
        "split_to_cores": True,
        "next_var": None,
    }
    assert port["value_list"] == [7, 9, 11]
    assert not {"init_value", "min_value", "max_value"} & set(port)
    assert [w["pkt_offset"] for w in instructions(many, "write_flow_var")] == [30, 8, 38]
    assert instructions(many, "write_mask_flow_var")[0]["pkt_offset"] == 14
    assert instructions(many, "fix_checksum_ipv4") == [
        {"type": "fix_checksum_ipv4", "pkt_offset": 18}
    ]
    assert instructions(few, "fix_checksum_hw") == [
        {"type": "fix_checksum_hw", "l2_len": 18, "l3_len": 20, "l4_type": 11}
    ]


@pytest.mark.parametrize("name", ["udp_sizes.py", "clients.py", "ranges_hlt.py"])
def test_json_loads_again(profiles, tmp_path, name):
    streams = load(profiles / name)
    path = tmp_path / "streams.json"
    path.write_text(json.dumps(streams))
    assert load(path) == streams


def test_json_keeps_initial_values_and_measurements():
    from trex.stl.api import STLVM

    program = STLVM()
    program.var("x", 1, 9, size=1, op="inc", init_value=5)
    program.tuple_var("t", "1.0.0.1", "1.0.0.9", 1, 2, limit_flows=3, flags=1)
    stream = STLStream(
        packet=STLPktBuilder(pkt=Ether() / IP() / UDP(), vm=program),
        flow_stats=STLFlowLatencyStats(pg_id=3, ieee_1588=True),
    )
    assert stream.clone().to_json() == stream.to_json()


def test_streams_nested_in_yaml_are_found(tmp_path):
    path = tmp_path / "nested.yaml"
    stream = STLStream(name="a").to_json()
    del stream["name"]
    path.write_text(json.dumps([{"name": "a", "stream": stream}]))
    assert load(path) == STLProfile([STLStream(name="a")]).to_json()


def test_profile_error_has_its_line(profiles):
    with pytest.raises(STLError, match=r"broken\.py, line 3: ZeroDivisionError"):
        load(profiles / "broken.py")


def test_unknown_tunables_are_an_error(profiles, capsys):
    with pytest.raises(STLError, match=r"udp_sizes\.py.* rejects its tunables: --colour red"):
        load(profiles / "udp_sizes.py", tunables=["--colour", "red"])


def test_profile_that_prints_its_help_is_none(profiles, capsys):
    assert STLProfile.load(str(profiles / "udp_sizes.py"), tunables=["--help"]) is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("pass", r"p\.py: get_streams\(\) returned None, expected a list of streams"),
        ("raise SystemExit('no key')", r"p\.py: get_streams\(\) exits the process: no key"),
    ],
)
def test_profile_without_streams_is_an_error(tmp_path, body, reason):
    path = tmp_path / "p.py"
    path.write_text(f"class P:\n  def get_streams(self, **kw): {body}\nregister = P\n")
    with pytest.raises(STLError, match=reason):
        load(path)


def test_loading_restores_the_module_path(profiles):
    before = list(sys.path)
    load(profiles / "clients.py")
    with pytest.raises(STLError):
        load(profiles / "broken.py")
    assert sys.path == before


def test_profile_can_have_the_name_of_a_standard_module(profiles, tmp_path):
    import random

    path = tmp_path / "random.py"
    path.write_text((profiles / "clients.py").read_text())
    assert len(load(path)) == 2
    assert sys.modules["random"] is random


def test_tags_are_loaded_from_python_and_json(tmp_path):
    tags = [{"type": "Dot1Q", "value": {"vlan": 7}}]
    (tmp_path / "tags.json").write_text(json.dumps(tags))
    (tmp_path / "tags.py").write_text(
        "class Tags:\n"
        "    def get_tpg_conf(self, tunables, **kwargs):\n"
        "        return [{'type': 'Dot1Q', 'value': {'vlan': int(tunables[1])}}]\n"
        "def register():\n"
        "    return Tags()\n"
    )
    for arguments in ({"vlan": 7}, {"tunables": ["--vlan", "7"]}):
        assert STLTaggedPktGroupTagConf.load(str(tmp_path / "tags.py"), **arguments) == tags
    assert STLTaggedPktGroupTagConf.load(str(tmp_path / "tags.json")) == tags
    with pytest.raises(STLError):
        STLTaggedPktGroupTagConf.load(str(tmp_path / "tags.txt"))


def test_invalid_profiles_are_rejected(profiles, tmp_path):
    for name, text in (("a.json", "{"), ("a.yaml", "- ["), ("a.txt", ""), ("b.json", "{}")):
        (tmp_path / name).write_text(text)
        with pytest.raises(STLError):
            load(tmp_path / name)
    with pytest.raises(STLError, match=r"has no get_streams\(\), which stateless profiles have"):
        load(profiles / "stateful_pages.py")
    with pytest.raises(STLError, match="no such file"):
        load(tmp_path / "absent.py")


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": STLTXCont(pps=1), "next": "x"},
        {"core_id": 1, "flow_stats": STLFlowLatencyStats(1)},
        {"isg": "1"},
        {"packet": "packet"},
    ],
)
def test_contradicting_streams_are_rejected(arguments):
    with pytest.raises(STLError):
        STLStream(**arguments)


@pytest.mark.parametrize(
    "rate", [{"pps": 0}, {"pps": 1, "percentage": 1}, {"percentage": 101}, {"bps_L1": "1"}]
)
def test_invalid_rates_are_rejected(rate):
    with pytest.raises(STLError):
        STLTXSingleBurst(**rate)


def test_mac_override_modes():
    def flags(packet, **arguments):
        return STLStream(packet=STLPktBuilder(**packet), **arguments).to_json()["flags"]

    both = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP()
    assert flags({"pkt": both}) == 0b011
    assert flags({"pkt_buffer": bytes(both)}) == 0
    assert flags({"pkt": both}, mac_src_override_by_pkt=False, mac_dst_override_mode=2) == 0b100
    assert flags({"pkt": both}, dummy_stream=True) == 0b1011
