"""A TRex tree for comparison, in `TREX_CORE`.

Its client runs in another process, with the scapy of the tree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TREX_CORE = os.environ.get("TREX_CORE")
SCRIPTS = Path(TREX_CORE or ".").absolute() / "scripts"

needs_tree = pytest.mark.skipif(
    TREX_CORE is None, reason="TREX_CORE names no tree of TRex to compare with"
)


@pytest.fixture(scope="module", autouse=True)
def tree_directory() -> Iterator[None]:
    """Changes to the tree's folder, because some of its profiles open captures there."""
    before = os.getcwd()
    os.chdir(SCRIPTS)
    yield
    os.chdir(before)


def trex_results(runner: ModuleType, cases: list[dict[str, Any]]) -> list[Any]:
    """Returns the results of TRex's client for cases; `runner` is the script that runs it."""
    client = SCRIPTS / "automation/trex_control_plane/interactive"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(runner.__file__)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=SCRIPTS,
        env={**os.environ, "PYTHONPATH": str(client)},
    )
    if sys.version_info >= (3, 12) and "ModuleNotFoundError" in run.stderr:
        # Newer versions of Python lack modules that it uses. Any other error is a failure.
        missing = run.stderr.strip().splitlines()[-1]
        pytest.skip(f"TRex's client does not run on this Python: {missing}")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
