"""Every stateful profile of a TRex tree yields the same JSON as with TRex's own client.

`TREX_CORE` is the tree.
"""

from __future__ import annotations

from typing import Any

import astf_cases as runner
from trex_tree import SCRIPTS, needs_tree, tree_directory, trex_results  # noqa: F401

pytestmark = needs_tree

# Files that TRex rejects: topologies and invalid examples.
REFUSED = {
    "astf/gtpu_topo.py",
    "astf/gtpu_topo_latency.py",
    "astf/http_by_l7_percent.py",
    "astf/http_simple_rss.py",
    "astf/param_mss_err2.py",
    "astf/udp_rtp.py",
    "astf/udp_topo.py",
    "astf/wrapping_it_up_example.py",
}

TUNABLES = [
    ("astf/emix2.py", "--traffic_per 0.5 --s_delay 90000"),
    ("astf/emix2.py", "--s_delay 2000000"),
    ("astf/ftp_multiple_flows_sim.py", "--fsize 10 --nflows 50 --tinc 60"),
    ("astf/ftp_multiple_flows_sim.py", "--fsize 3 --speed 100"),
    ("astf/http_eflow.py", "--size 100 --loop 7 --mss 900"),
    ("astf/http_eflow2.py", "--size 100 --loop 7 --win 512 --pipe 1"),
    ("astf/http_eflow3.py", "--size 100 --loop 7 --win 512 --pipe 1"),
    ("astf/http_eflow4.py", "--size 9 --send_time 10 --recv_time 11 --win 64 --mss 1000"),
    ("astf/http_high_active_flows.py", "--size 7 --delay 9"),
    ("astf/http_manual_cli_tunable.py", "--size 3"),
    ("astf/http_manual_cli_tunable_4k.py", "--size 5"),
    ("astf/http_simple_port_tunable.py", "--port 8080"),
    ("astf/long_keepalive.py", "--keep_alive 9 --delay 8"),
    ("astf/param_no_delay_counter.py", "--no_delay_counter 5000 --initwnd 4"),
    ("astf/shared_port.py", "--proto tcp --temp ip"),
    ("astf/shared_port.py", "--proto udp --temp payload"),
    ("astf/udp_latency.py", "--interval 2 --attempts 3"),
    ("astf/video_stream.py", "--video_time 20 --chunk_time 2 --buffer_time 6"),
]

VARIANTS: list[dict[str, Any]] = [
    {"cps": 3, "limit": 7, "cont": True, "tg_name": "group"},
    {"port": 4000, "s_delay": [500]},
    {"s_delay": [1000, 2_000_000]},
    # Last, because TRex keeps truncated data for later cases.
    {"udp_mtu": 100},
]


def compare(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Asserts that both sides agree on each case that TRex accepts. Returns these cases."""
    compared = []
    for case, ours, theirs in zip(cases, runner.results(cases), trex_results(runner, cases)):
        if theirs is not None:
            assert ours == theirs, case
            compared.append(case)
    return compared


def test_every_profile():
    files = {str(path.relative_to(SCRIPTS)) for path in (SCRIPTS / "astf").glob("*.py")}
    assert files
    cases = [{"profile": file, "tunables": []} for file in sorted(files)]
    assert {case["profile"] for case in compare(cases)} == files - REFUSED


def test_profiles_with_tunables():
    cases = [{"profile": file, "tunables": line.split()} for file, line in TUNABLES]
    assert compare(cases) == cases


def test_every_capture():
    files = sorted(
        str(path) for name in ("cap2", "avl") for path in (SCRIPTS / name).glob("*.pcap")
    )
    assert files
    cases = [{"capture": file, "arguments": variant} for file in files for variant in VARIANTS]
    # The others have several flows or missing packets, and are rejected.
    assert len(compare(cases)) > len(cases) / 2


def test_random_programs():
    cases = runner.program_cases(500)
    # The others use unknown names, and both clients reject them.
    assert len(compare(cases)) > len(cases) / 3
