"""TRex's own regression tests of its client pass, unmodified, with `regression/` as their setup.

`TREX_CORE` names the tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREX_CORE = os.environ.get("TREX_CORE")
TESTS = Path(TREX_CORE or ".").absolute() / "scripts/automation/regression/stateless_tests"
LIMIT_S = 300

pytestmark = pytest.mark.skipif(
    not TESTS.is_dir(), reason="TREX_CORE names no tree of TRex with its regression tests"
)


@pytest.mark.parametrize("name", ["stl_ns_test", "stl_ipv6_test", "stl_services_test"])
def test_regression_tests_of_trex_pass(lab, monkeypatch, tmp_path, name):
    file = tmp_path / "trex_cfg.yaml"
    file.write_text(
        f"""
- interfaces: ["{lab.a}", "{lab.b}"]
  port_info:
    - {{ip: 1.1.1.1, default_gw: 1.1.1.2}}
    - {{ip: 1.1.1.2, default_gw: 1.1.1.1}}
"""
    )
    monkeypatch.delenv("WIRESTORM_TREX_PORTS")
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(file))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path, str(TESTS)]))
    # Python looks in the working directory first: this setup comes before TRex's own.
    done = subprocess.run(
        [sys.executable, "-m", "unittest", name],
        cwd=Path(__file__).parent / "regression",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stderr and "Ran 0" not in done.stderr
