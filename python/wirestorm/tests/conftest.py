"""Fixtures of the tests."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from wirestorm_lab import Lab, veth_pair

import wirestorm as ws

BINARY = os.environ.get("WIRESTORM_BINARY")
LIMIT_S = 60


@pytest.fixture(autouse=True, scope="session")
def ctrl_c() -> None:
    """Makes Ctrl-C interrupt the tests and their processes.

    A script in the background ignores SIGINT, and some tests would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two connected interfaces."""
    with veth_pair() as found:
        yield found


@pytest.fixture
def server(lab, tmp_path: Path) -> Iterator[ws.Server]:
    """A server with the ports `left` and `right`."""
    if BINARY is None:
        pytest.skip("WIRESTORM_BINARY names no binary")
    command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--state-dir", str(tmp_path / "state")]
    command += ["--runs-dir", str(tmp_path / "runs")]
    command += ["--port", f"left={lab.a}", "--port", f"right={lab.b}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert line.startswith("wirestorm: serving at http://"), line
        yield ws.Server(line.split()[-1])
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT_S)
