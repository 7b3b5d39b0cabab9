"""`wirestorm sim` runs stateful profiles, and all their flows end as expected.

`WIRESTORM_BINARY` is the command. If `TREX_CORE` is a TRex tree, all its profiles run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BINARY, TREX_CORE = os.environ.get("WIRESTORM_BINARY"), os.environ.get("TREX_CORE")

pytestmark = pytest.mark.skipif(
    BINARY is None, reason="WIRESTORM_BINARY names no command to run profiles with"
)

PAGES = Path(__file__).parent / "profiles/stateful_pages.py"
SCRIPTS = Path(TREX_CORE or ".").absolute() / "scripts"

# Profiles of tunnels and topologies, invalid ones, one without its capture, one whose capture
# repeats itself, and one with two templates for the same flows.
REFUSED = {
    "gtpu_topo",
    "gtpu_topo_latency",
    "http_by_l7_percent",
    "http_simple_rss",
    "param_mss_err",
    "param_mss_err2",
    "udp_rtp",
    "udp_topo",
    "wrapping_it_up_example",
}


def simulated(profile: Path, *options: str, cwd: Path | None = None) -> dict | None:
    """Returns the result of one second of a profile; None if it is rejected."""
    run = subprocess.run(
        [BINARY or "", "sim", str(profile), "--full", "-d", "1", "--json", "-", *options],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env={**os.environ, "WIRESTORM_PYTHON": sys.executable},
    )
    if run.returncode not in (0, 3):
        assert run.returncode == 2, run.stderr
        return None
    return json.loads(run.stdout)


def failed(result: dict) -> int:
    """Returns the flows on all ports that failed or were not opened."""
    names = ("failed", "flow_table_full", "no_free_tuple", "no_flow", "no_template", "malformed")
    return sum(flows[name] for flows in flows_of(result) for name in names)


def flows_of(result: dict) -> list[dict[str, int]]:
    """Returns the flow counters of each port."""
    return [port["connections"]["flows"] for port in result["ports"]]


def test_profile_with_tcp_and_udp_runs() -> None:
    result = simulated(PAGES, "-m", "4", "-t", "--pages", "2", "--page-size", "1000")
    assert result is not None
    clients, servers = (port["connections"] for port in result["ports"])
    assert failed(result) == 0
    assert clients["tcp"]["connects"] == servers["tcp"]["accepts"] > 0
    assert clients["tcp"]["rcvbyte"] == 2 * 1000 * clients["tcp"]["connects"]
    # One per second, times four.
    assert clients["udp"]["sndpkt"] == servers["udp"]["rcvpkt"] == 4
    assert clients["udp"]["rcvbyte"] == 4 * len(b"\x12\x34 who?")


@pytest.mark.skipif(TREX_CORE is None, reason="TREX_CORE names no tree of TRex")
def test_all_profiles_of_trex_run() -> None:
    wrong = {}
    profiles = sorted((SCRIPTS / "astf").glob("*.py"))
    assert len(profiles) > 80
    for profile in profiles:
        result = simulated(profile, cwd=SCRIPTS)
        if result is None or profile.stem in REFUSED:
            if result is not None or profile.stem not in REFUSED:
                wrong[profile.stem] = "is refused" if result is None else "is not refused"
        elif failed(result) and ".reset(" not in profile.read_text():
            wrong[profile.stem] = flows_of(result)
    assert not wrong
