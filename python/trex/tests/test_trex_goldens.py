"""`wirestorm sim` writes the captures that TRex's simulator regression expects.

`TREX_CORE` is the tree, which lists the profile of each capture. `WIRESTORM_BINARY` is the command.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TREX_CORE, BINARY = os.environ.get("TREX_CORE"), os.environ.get("WIRESTORM_BINARY")

pytestmark = pytest.mark.skipif(
    TREX_CORE is None or BINARY is None,
    reason="TREX_CORE and WIRESTORM_BINARY name no tree of TRex and no command to compare",
)

SCRIPTS = Path(TREX_CORE or ".").absolute() / "scripts"
REGRESSION = SCRIPTS / "automation/regression/functional_tests/stl_basic_tests.py"

TOLERANCE_NS = 5_000

ADDRESSES_AND_PORTS = [range(24, 30), range(34, 36)]
PADDING = [range(52, 60)]

# Random bytes, which cover their whole range here, and checksums over them; uninitialised padding
# in TRex's frames; the mark of an earlier version.
DIFFERENCES = {
    "dependent_field_engine_vars": [range(44, 45)],
    "split_var_to_cores": [range(34, 38)],
    "syn_attack": ADDRESSES_AND_PORTS,
    "syn_attack_fix_cs_hw": [*ADDRESSES_AND_PORTS, range(50, 52)],
    "udp_1pkt_simple_mac_dst": PADDING,
    "udp_1pkt_simple_mac_src": PADDING,
    "udp_1pkt_simple_mac_dst_src": PADDING,
    "udp_1pkt_repeat_random": [range(24, 26), range(30, 34)],
    "hlt_udp_random_ports": [range(34, 38)],
    "hlt_ip_ranges": [range(24, 26), range(30, 34)],
    "hlt_vlans_vm": [range(26, 28)],
    "hlt_ipv6_ranges": [range(16, 17)],
}

# The lengths are random there.
LENGTH_DIFFERENCES = {"udp_rand_len_9k": [range(16, 18), range(24, 26), range(38, 40)]}

# Captures that are older than their profiles, which build longer or shorter frames.
OLDER = {"flow_stats", "flow_stats_latency"}


def cases() -> list[tuple[str, str, dict[str, int], str]]:
    """Returns profile, options, tunables and capture of each comparison."""
    text = REGRESSION.read_text() if REGRESSION.is_file() else ""
    found = []
    quoted = r"[\"']([^\"']*)[\"']"
    rows = rf"^\s*\[{quoted},\s*{quoted},\s*True(?:,\s*(None|\{{.*?\}}))?\s*\]"
    for profile, options, tunables in re.findall(rows, text, re.MULTILINE):
        named = dict(re.findall(r"'(\w+)': (\d+)", tunables))
        found.append((profile, options, named, Path(profile).stem))
    for operation in ("inc", "dec"):
        for size in (1, 2):
            for step in (1, 2):
                named = {"size": size, "step": step, "op": operation}
                capture = f"dependent_vars_all_{operation}_{size}_{step}"
                for cores in (1, 2):
                    options = f"-m 1 -l 50 -c {cores}"
                    found.append(("dependent_vars_all.py", options, named, capture))
    return [case for case in found if case[3] not in OLDER]


def frames(path: Path) -> list[tuple[int, bytes]]:
    """Returns times in nanoseconds, and bytes."""
    data = path.read_bytes()
    scale = {0xA1B2C3D4: 1_000, 0xA1B23C4D: 1}[struct.unpack_from("<I", data)[0]]
    found, offset = [], 24
    while offset < len(data):
        seconds, fraction, length, _ = struct.unpack_from("<IIII", data, offset)
        offset += 16
        found.append((seconds * 10**9 + fraction * scale, data[offset : offset + length]))
        offset += length
    return found


def compared(frame: bytes, capture: str) -> bytes:
    """Returns a frame without the bytes that can differ."""
    found = bytearray(frame)
    for bytes_ in DIFFERENCES.get(capture, LENGTH_DIFFERENCES.get(capture, [])):
        found[bytes_.start : bytes_.stop] = bytes(len(bytes_))
    return bytes(found[:60]) if capture in LENGTH_DIFFERENCES else bytes(found)


def test_regression_exists():
    assert len(cases()) > 70


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case[3]} {case[1]}")
def test_frames_and_times_match_trex(case, tmp_path):
    profile, options, tunables, capture = case
    output = tmp_path / "out.pcap"
    command = [str(BINARY), "sim", f"stl/{profile}", "-o", str(output), *options.split()]
    for name, value in tunables.items():
        command += ["-t", f"{name}={value}"]
    environment = {**os.environ, "WIRESTORM_PYTHON": sys.executable}
    run = subprocess.run(
        command, cwd=SCRIPTS, capture_output=True, text=True, timeout=60, env=environment
    )
    assert run.returncode == 0, run.stderr
    ours, left = frames(output), frames(SCRIPTS / "exp" / f"{capture}.pcap")
    assert len(ours) == len(left)
    for time, frame in ours:
        # Frames with equal times can have any order.
        same = [
            place
            for place, (other_time, other) in enumerate(left)
            if abs(time - other_time) <= TOLERANCE_NS
            and compared(frame, capture) == compared(other, capture)
        ]
        assert same, f"at {time} ns: {frame.hex()}, TRex's first there {left[0][1].hex()}"
        del left[same[0]]
