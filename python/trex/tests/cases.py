"""Profiles and arguments for comparison with TRex's own client: JSON in, JSON out.

As a script it is the other side: it reads a list of cases from standard input and prints the result
of each. It uses only names that both clients have, and imports no other test module.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from typing import Any

# Fixed, so that both sides draw the same random values.
_SEED = 20


def results(cases: list[dict[str, Any]]) -> list[Any]:
    """Returns the streams of each case, or None if it is rejected."""
    return [_result(case) for case in cases]


def _result(case: dict[str, Any]) -> Any:
    from trex.stl.api import STLProfile
    from trex.stl.trex_stl_hltapi import STLHltStream

    random.seed(_SEED)
    try:
        if "hlt" in case:
            profile = STLProfile(STLHltStream(**case["hlt"]))
        elif "pcap" in case:
            profile = STLProfile.load_pcap(case["pcap"], **case["arguments"])
        else:
            profile = STLProfile.load(case["profile"], **case["arguments"])
        profiles = profile if isinstance(profile, tuple) else (profile,)
        return [p.to_json() for p in profiles]
    except Exception:
        return None


def hlt_cases(count: int) -> list[dict[str, Any]]:
    """Returns random arguments, many of which are compatible."""
    draw = random.Random(_SEED)
    return [{"hlt": _hlt(draw)} for _ in range(count)]


def _hlt(draw: random.Random) -> dict[str, Any]:
    arguments: dict[str, Any] = {}

    def add_sometimes(name: str, *values: Any, chance: float = 0.3) -> None:
        if draw.random() < chance:
            arguments[name] = draw.choice(values)

    # No varying length without an IP header: TRex's client fails on it.
    arguments["l3_protocol"] = draw.choice(["ipv4", "ipv4", "ipv6"])
    add_sometimes("l4_protocol", "tcp", "udp", chance=0.8)
    add_sometimes("direction", 0, 1)
    for field, starts, steps in (
        ("mac_src", ("00:11:22:33:44:55", "{00 11 22 33 44 66}"), (1, 3, "00:00:00:00:00:04")),
        ("mac_dst", ("0011.2233.4455", "00-11-22-33-44-77"), (1, 3, "00:00:00:00:00:04")),
        ("ip_src", ("10.0.0.1", "200.1.2.3"), (1, 3, "0.0.1.0")),
        ("ip_dst", ("10.0.0.9",), (1, 2)),
        ("ipv6_src", ("2001:db8::1",), (1, 3, "::10")),
        ("ipv6_dst", ("fe80::ff",), (1, 2)),
        ("tcp_src_port", (1, 9000), (1, 3)),
        ("tcp_dst_port", (443,), (1, 3)),
        ("udp_src_port", (1, 9000), (1, 3)),
        ("udp_dst_port", (53,), (1, 3)),
    ):
        add_sometimes(f"{field}_addr" if field.startswith("ip") else field, *starts, chance=0.5)
        add_sometimes(f"{field}_mode", "fixed", "increment", "decrement", "random", chance=0.5)
        add_sometimes(f"{field}_count", 1, 2, 50, "7", chance=0.6)
        add_sometimes(f"{field}_step", *steps)
    add_sometimes("vlan_id", 5, "7 8", [1, 2, 3], "{9 10}")
    add_sometimes("vlan_user_priority", 2, "3 4")
    add_sometimes("vlan_protocol_tag_id", "0x88a8", "88a8 8100")
    add_sometimes("vlan_id_mode", "increment", "increment fixed", chance=0.2)
    add_sometimes("vlan_id_count", 4, "3 5")
    add_sometimes(draw.choice(["tcp_fin_flag", "tcp_syn_flag", "tcp_ack_flag"]), 1)
    add_sometimes(draw.choice(["ip_precedence", "ip_dscp", "ip_delay", "ip_tos_field"]), 1, 5)
    add_sometimes("ip_ttl", 3)
    add_sometimes("ip_checksum", 77, chance=0.1)
    add_sometimes("ipv6_next_header", 17, chance=0.1)
    add_sometimes(
        "length_mode", "fixed", "auto", "increment", "decrement", "random", "imix", chance=0.5
    )
    add_sometimes("frame_size", 100, 1518)
    add_sometimes("l3_length", 100, 300)
    if draw.random() < 0.3:
        arguments.update(frame_size_min=110, frame_size_max=400)
    add_sometimes("frame_size_step", 5)
    add_sometimes("l3_imix4_ratio", 2)
    add_sometimes(draw.choice(["rate_pps", "rate_bps", "rate_percent"]), 7, 80.5, chance=0.6)
    add_sometimes("transmit_mode", "single_burst", "multi_burst")
    add_sometimes("pkts_per_burst", 10)
    add_sometimes("flow_stats_id", 7)
    add_sometimes("consistent_random", True, "yes")
    add_sometimes("ignore_macs", True, chance=0.1)
    return arguments


def main() -> None:
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        found = results(cases)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
