"""A tree of TRex to compare with, which `TREX_CORE` names.

Its client runs in a process of its own, on the scapy it brings along.
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
def in_the_tree() -> Iterator[None]:
    """Some of its profiles name captures from there."""
    before = os.getcwd()
    os.chdir(SCRIPTS)
    yield
    os.chdir(before)


def of_trex(runner: ModuleType, cases: list[dict[str, Any]]) -> list[Any]:
    """What TRex's client makes of the cases; `runner`, as a script, is what asks it."""
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
        # It uses modules that newer versions of Python do not have; all else is a failure.
        missing = run.stderr.strip().splitlines()[-1]
        pytest.skip(f"TRex's client does not run on this Python: {missing}")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
