"""What the tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from wirestorm_lab import Lab, veth_pair


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two interfaces that are connected."""
    with veth_pair() as found:
        yield found
