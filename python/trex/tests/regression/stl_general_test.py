"""Setup for TRex's regression tests: a session with two connected ports."""

from __future__ import annotations

import shlex
import unittest

from trex.stl.api import STLClient, STLError


class Client(STLClient):
    """The session, with the console command that the tests use."""

    def set_l3_mode_line(self, line: str) -> None:
        """Parses `-p PORT --src ADDRESS --dst ADDRESS`. Ignores a missing answer."""
        words = shlex.split(line)
        given = dict(zip(words[::2], words[1::2]))
        try:
            self.set_l3_mode(int(given["-p"]), given["--src"], given["--dst"])
        except STLError as error:
            print(error)


class CTRexScenario:
    """The setup."""

    stl_trex = Client()
    ports_map = {"bi": [(0, 1)]}
    #: TRex's name of a setup with a loopback, for ping tests.
    setup_name = "trex17"
    stl_init_error = None


class CStlGeneral_Test(unittest.TestCase):
    """Base class that the regression tests expect."""

    is_vdev = False
    is_linux_stack = True
    is_loopback = True
    is_virt_nics = True
    stl_trex = CTRexScenario.stl_trex

    @staticmethod
    def is_connected() -> bool:
        """Returns whether the session is open."""
        return CTRexScenario.stl_trex.is_connected()

    def skip(self, reason: str) -> None:
        """Skips a test."""
        self.skipTest(reason)


CTRexScenario.stl_trex.connect()
CTRexScenario.stl_trex.acquire()
