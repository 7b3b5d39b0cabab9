"""Setup for TRex's stateful regression tests: a session with two ports."""

from __future__ import annotations

import os
import unittest

from trex.astf.api import ASTFClient


class CTRexScenario:
    """The setup."""

    astf_trex = ASTFClient()
    setup_name = "trex17"
    ports_map = {"bi": [(0, 1)]}
    scripts_path = os.path.join(os.environ.get("TREX_CORE", "."), "scripts")


class CASTFGeneral_Test(unittest.TestCase):
    """Base class that the regression tests expect."""

    astf_trex = CTRexScenario.astf_trex
    is_dummy_ports = is_vdev = is_vf_nics = is_virt_nics = False
    is_loopback = True

    @classmethod
    def get_driver_params(cls) -> dict[str, bool]:
        """Returns the limits of the ports' driver in TRex. Wirestorm's have none of them."""
        return {}

    def setUp(self) -> None:
        """Resets the ports before each test."""
        self.astf_trex.reset()

    def skip(self, reason: str) -> None:
        """Skips a test."""
        self.skipTest(reason)


CTRexScenario.astf_trex.connect()
