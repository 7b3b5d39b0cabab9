"""Every profile of a TRex tree yields the same JSON as with TRex's own client.

`TREX_CORE` is the tree.
"""

from __future__ import annotations

from typing import Any

import cases as runner
from trex_tree import SCRIPTS, needs_tree, tree_directory, trex_results  # noqa: F401

pytestmark = needs_tree

# Files that are not profiles, or that need tunables.
NO_PROFILES = {"stl/imix_wlc.py", "stl/tpg_tags_conf.py"}

# Profiles whose packets differ from TRex's, with the reason.
OTHER_PACKETS = {
    "stl/udp_1pkt_frag.py": "scapy rounds the size of a fragment down since, not up",
}

TUNABLES = [
    ("stl/bench.py", "--vm var1 --size 128"),
    ("stl/bench.py", "--vm var2 --size imix"),
    ("stl/bench.py", "--vm random --size 1500 --flow fs --pg_id 5"),
    ("stl/bench.py", "--vm tuple --flow fsl --pg_id 9"),
    ("stl/bench.py", "--vm size"),
    ("stl/bench.py", "--vm cached --size 590"),
    ("stl/dependent_vars_all.py", "--op dec --size 2 --step 7"),
    ("stl/dependent_vars_all.py", "--op inc --size 8 --step 2"),
    ("stl/imix_wlc.py", "--src 1.1.1.1 --dst 2.2.2.2 --src_count 20 --port_count 50"),
    ("stl/flow_stats.py", "--pkt_type vlan --fsize 200 --pg_id 3 --num_streams 2"),
    ("stl/flow_stats.py", "--pkt_type qinq"),
    ("stl/udp_1pkt_src_ip_split_latency.py", "--fsize 100 --lfsize 90"),
    ("stl/bench_azure.py", "--vm var1 --size 700"),
    ("stl/flow_stats_latency.py", "--fsize 300 --pg_id 4"),
    ("stl/udp_1pkt_multi_stream.py", "--streams 5 --fsize 100"),
    ("stl/pcap.py", "--ipg_usec 100 --loop_count 0"),
    ("stl/pcap_with_vm.py", "--ipg_usec 3 --loop_count 2"),
    ("stl/pcap_with_vm.py", '--ip_src_range {"start":"10.0.0.1","end":"10.0.0.9"}'),
    ("stl/tpg_1tag_stream.py", "--pps 10 --burst-size 5 --vlans 3 --qinq"),
    ("stl/tpg_dot1q_vm.py", "--pps 5 --burst-size 7 --vlans 4"),
    ("stl/udp_1pkt_tuple_gen.py", "--packet_len 500"),
    ("stl/udp_for_benchmarks.py", "--packet_len 90 --stream_count 4"),
    ("stl/udp_1pkt_repeat_random.py", "--cache_size 0"),
    ("stl/udp_1pkt_src_ip_split_core_pinned.py", "--core_id 3 --cache_size 10"),
]

POSITIONS = [(0, 0), (1, 0), (1, 1), (0, 2), (1, 3)]


def compare(cases: list[dict[str, Any]]) -> int:
    """Asserts that both sides agree on each case that TRex accepts. Returns their number."""
    compared = 0
    for case, ours, theirs in zip(cases, runner.results(cases), trex_results(runner, cases)):
        if theirs is None:
            continue
        if case.get("profile") in OTHER_PACKETS:
            ours, theirs = without_packets(ours), without_packets(theirs)
        assert ours == theirs, case
        compared += 1
    return compared


def without_packets(profiles: Any) -> Any:
    return [[{**s, "packet": None} for s in streams] for streams in profiles]


def test_every_profile_in_both_directions_on_four_ports():
    files = {
        str(path.relative_to(SCRIPTS))
        for suffix in ("py", "yaml")
        for path in (SCRIPTS / "stl").rglob(f"*.{suffix}")
    } - NO_PROFILES
    assert files
    cases = [
        {"profile": file, "arguments": {"direction": direction, "port_id": port}}
        for file in sorted(files)
        for direction, port in POSITIONS
    ]
    assert compare(cases) == len(cases)


def test_profiles_with_tunables():
    cases = [
        {"profile": file, "arguments": {"direction": 0, "port_id": 0, "tunables": line.split()}}
        for file, line in TUNABLES
    ]
    assert compare(cases) == len(cases)


def test_captures():
    files = sorted(str(p.relative_to(SCRIPTS)) for p in (SCRIPTS / "stl").glob("*.pcap"))
    assert files
    variants: list[dict[str, Any]] = [
        {},
        {"speedup": 3.0, "loop_count": 0, "min_ipg_usec": 7.0},
        {"ipg_usec": 5.0, "src_mac_pcap": True, "dst_mac_pcap": True},
    ]
    cases = [{"pcap": file, "arguments": variant} for file in files for variant in variants]
    assert compare(cases) == len(cases)


def test_random_named_arguments():
    cases = runner.hlt_cases(1500)
    # The others are contradicting, and both clients reject them.
    assert compare(cases) > len(cases) / 3
