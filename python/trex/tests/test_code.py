"""Streams as Python code, and the command that prints a profile."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

import trex
from trex.stl import dump
from trex.stl.api import (
    IP,
    UDP,
    Dot1Q,
    Ether,
    STLFlowLatencyStats,
    STLPktBuilder,
    STLProfile,
    STLStream,
    STLTaggedPktGroup,
)

# The length field is too small, so that no scapy header builds this frame.
ODD = bytes(Ether() / IP() / UDP() / b"data") + b"beyond"


@pytest.mark.parametrize(
    "profile",
    [
        lambda folder: STLProfile.load(str(folder / "clients.py")),
        lambda folder: STLProfile.load(str(folder / "ranges_hlt.py")),
        lambda folder: STLProfile.load(str(folder / "udp_sizes.py")),
        lambda folder: STLProfile(
            [
                STLStream(packet=STLPktBuilder(pkt_buffer=ODD), random_seed=9, core_id=2),
                STLStream(flow_stats=STLFlowLatencyStats(3, vxlan=True), enabled=False),
                STLStream(flow_stats=STLTaggedPktGroup(4), dummy_stream=True, name=5),
            ]
        ),
    ],
)
def test_code_creates_equal_streams(profiles, tmp_path, profile):
    streams = profile(profiles)
    path = tmp_path / "again.py"
    streams.dump_to_code(str(path))
    assert STLProfile.load(str(path)).to_json() == streams.to_json()


def test_code_has_names_of_fields_and_addresses(profiles):
    code = STLProfile.load(str(profiles / "clients.py")).dump_to_code()
    assert "pkt_offset='IP.src'" in code
    assert "'16.0.1.1'" in code
    assert "vm.fix_chksum_hw(l3_offset='IP', l4_offset='UDP', l4_type=11)" in code


def test_descriptions_of_a_stream():
    stream = STLStream(packet=STLPktBuilder(pkt=Ether() / Dot1Q() / IP()))
    assert stream.get_pkt_type() == "Ethernet:802.1Q:IP"
    assert stream.get_rate() == "1 pps"
    assert stream.get_pkt_len() == stream.get_pkt_len(count_crc=False) + 4
    assert STLStream(dummy_stream=True).get_mode() == "delay"


def test_dump_as_pkt_prints_every_packet(profiles, capsys):
    STLProfile.load(str(profiles / "clients.py")).dump_as_pkt()
    printed = capsys.readouterr().out
    assert "Stream Name: few" in printed
    assert "###[ UDP ]###" in printed


def test_dump_prints_only_the_document(profiles, tmp_path):
    profile = tmp_path / "talks.py"
    profile.write_text("print('hello')\n" + (profiles / "udp_sizes.py").read_text())
    source = Path(trex.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "trex.stl.dump", str(profile), "-t", "--sizes", "80"],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stderr
    expected = STLProfile.load(str(profiles / "udp_sizes.py"), tunables=["--sizes", "80"])
    assert json.loads(run.stdout) == expected.to_json()
    assert "hello" in run.stderr


def test_older_form_of_tunables(profiles, capsys):
    assert dump.main([str(profiles / "udp_sizes.py"), "-t", "sizes=80"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
    # With the flag before each tunable, the last value of a name counts.
    assert dump.main([str(profiles / "udp_sizes.py"), "-t", "sizes=80", "-t", "sizes=70"]) == 0
    [stream] = json.loads(capsys.readouterr().out)
    assert len(base64.b64decode(stream["packet"]["binary"])) == 70


def test_dump_fails_with_the_reason(profiles, capsys):
    assert dump.main([str(profiles / "broken.py")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ZeroDivisionError" in captured.err
