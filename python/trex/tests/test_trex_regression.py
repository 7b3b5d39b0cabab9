"""TRex's own regression tests of its client pass unmodified, with `regression/` as their setup.

`TREX_CORE` is the tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREX_CORE = os.environ.get("TREX_CORE")
TESTS = Path(TREX_CORE or ".").absolute() / "scripts/automation/regression"
LIMIT_S = 300

# The stateful tests that take less than a minute.
GROUPS = "astf_template_group_test.ASTFTemplateGroup_Test.test_astf_template_group"
# The others change port attributes behind the client's back, or require promiscuous ports, which
# are not necessary here.
TOPOLOGY = "astf_topo_test.ASTFTopology_Test.test_topo"
TOPOLOGY_TESTED = ("traffic", "save_load_and_coverage")
VLAN = "astf_vlan_test.ASTFVLAN_Test.test"
# The other one expects an error for two tags, which work here. The last one leaves its ports
# without a next hop.
VLAN_TESTED = ("traffic_vlan", "traffic_vlan_dynamic_profile", "latency_vlan", "ping_vlan")
VLAN_TESTED += ("resolve_vlan",)
GROUPS_TESTED = ("general", "load", "edge_cases", "edge_cases_dynamic_profile", "negative")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("stateless", ["stl_ns_test"]),
        ("stateless", ["stl_ipv6_test"]),
        ("stateless", ["stl_services_test"]),
        ("astf", [f"{GROUPS}_{name}" for name in GROUPS_TESTED]),
        ("astf", [f"{TOPOLOGY}_{name}" for name in TOPOLOGY_TESTED]),
        ("astf", [f"{VLAN}_{name}" for name in VLAN_TESTED]),
    ],
)
def test_trex_regression_tests_pass(hosts, monkeypatch, kind, names):
    tests = TESTS / f"{kind}_tests"
    if not tests.is_dir():
        pytest.skip("TREX_CORE names no tree of TRex with its regression tests")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path, str(tests)]))
    # Python searches the working directory first, so that this setup precedes TRex's own.
    done = subprocess.run(
        [sys.executable, "-m", "unittest", *names],
        cwd=Path(__file__).parent / "regression",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stderr and "Ran 0" not in done.stderr
