"""What TRex's regression tests find their setup in: a session, and two ports that are connected."""

from __future__ import annotations

import shlex
import unittest

from trex.stl.api import STLClient, STLError


class Client(STLClient):
    """The session, with the one command of the console that they use."""

    def set_l3_mode_line(self, line: str) -> None:
        """`-p PORT --src ADDRESS --dst ADDRESS`; that nobody answers is no failure."""
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
    #: The one that has the ports in a loop, for which tests of pings are.
    setup_name = "trex17"
    stl_init_error = None


class CStlGeneral_Test(unittest.TestCase):
    """What they ask of the setup."""

    is_vdev = False
    is_linux_stack = True
    is_loopback = True
    is_virt_nics = True
    stl_trex = CTRexScenario.stl_trex

    @staticmethod
    def is_connected() -> bool:
        """Whether the session is open."""
        return CTRexScenario.stl_trex.is_connected()

    def skip(self, reason: str) -> None:
        """Leaves a test out."""
        self.skipTest(reason)


CTRexScenario.stl_trex.connect()
CTRexScenario.stl_trex.acquire()
