"""A port of `ASTFClient`."""

from __future__ import annotations

from trex.client.absent import Absent
from trex.client.port_commands import PortCommands


class ASTFPort(PortCommands):
    """A port with clients if its number is even, and with servers otherwise."""

    topo = Absent("topo_load() and topo_show() of the client have the topology")

    @property
    def state(self) -> int:
        """What it is doing, as a number: also what its stateful profiles do."""
        number = super().state
        if number in (self.STATE_TX, self.STATE_PAUSE):
            return number
        return int(self._client.apply_port_states())

    def is_client(self) -> bool:
        """Whether it has clients."""
        return self.port_id % 2 == 0

    def is_server(self) -> bool:
        """Whether it has servers."""
        return not self.is_client()
