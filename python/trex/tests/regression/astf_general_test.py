"""What TRex's stateful regression tests find their setup in: a session with two ports."""

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
    """What they ask of the setup."""

    astf_trex = CTRexScenario.astf_trex
    is_dummy_ports = is_vdev = is_vf_nics = is_virt_nics = False
    is_loopback = True

    @classmethod
    def get_driver_params(cls) -> dict[str, bool]:
        """What the ports' driver does not do, in TRex: nothing of it is asked of drivers here."""
        return {}

    def setUp(self) -> None:
        """Each begins with nothing."""
        self.astf_trex.reset()

    def skip(self, reason: str) -> None:
        """Leaves a test out."""
        self.skipTest(reason)


CTRexScenario.astf_trex.connect()
