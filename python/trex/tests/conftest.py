"""Paths and helpers that the tests share."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from trex.stl.api import Ether, Packet

PROFILES = Path(__file__).parent / "profiles"


@pytest.fixture
def profiles() -> Path:
    """The folder of the profiles that the tests bring along."""
    return PROFILES


def frame(document: dict[str, Any]) -> Packet:
    """The packet of a stream's document, dissected."""
    return Ether(base64.b64decode(document["packet"]["binary"]))


def instructions(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The instructions of a kind in a stream's document."""
    return [i for i in document["vm"]["instructions"] if i["type"] == kind]
