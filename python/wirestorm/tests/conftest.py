"""What the tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from wirestorm_lab import Lab, veth_pair


@pytest.fixture(autouse=True, scope="session")
def ctrl_c() -> None:
    """Ctrl-C interrupts the tests and what they start, also where it is ignored, as in the
    background of a script: then some would wait for ever."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two interfaces that are connected."""
    with veth_pair() as found:
        yield found
