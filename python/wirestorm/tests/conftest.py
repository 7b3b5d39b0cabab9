"""Fixtures of the tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from wirestorm_lab import Lab, veth_pair


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
