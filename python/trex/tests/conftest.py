"""Paths and helpers that the tests share."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wirestorm_lab import Lab, veth_pair

from trex.stl.api import Ether, Packet, STLClient

PROFILES = Path(__file__).parent / "profiles"


@pytest.fixture
def profiles() -> Path:
    """The folder of the profiles that the tests bring along."""
    return PROFILES


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Two interfaces that are connected, as ports 0 and 1."""
    pytest.importorskip("wirestorm", reason="the package wirestorm, which sends, is not installed")
    with veth_pair() as found:
        monkeypatch.setenv("WIRESTORM_TREX_PORTS", f"{found.a},{found.b}")
        yield found


@pytest.fixture
def client(lab: Lab) -> Iterator[STLClient]:
    """A client that has both ports."""
    found = STLClient()
    found.connect()
    found.reset()
    yield found
    found.disconnect()


def frame(document: dict[str, Any]) -> Packet:
    """The packet of a stream's document, dissected."""
    return Ether(base64.b64decode(document["packet"]["binary"]))


def instructions(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The instructions of a kind in a stream's document."""
    return [i for i in document["vm"]["instructions"] if i["type"] == kind]
