"""A port of `ASTFClient`."""

from __future__ import annotations

from trex.client.port_commands import PortCommands
from trex.client.unsupported import Unsupported


class ASTFPort(PortCommands):
    """A port: with clients if its number is even, else with servers."""

    topo = Unsupported("use topo_load() and topo_show() of the client")

    @property
    def state(self) -> int:
        """State as a number, including stateful profiles."""
        number = super().state
        if number in (self.STATE_TX, self.STATE_PAUSE):
            return number
        return int(self._client.apply_port_states())

    def is_client(self) -> bool:
        """Returns whether the port has clients."""
        return self.port_id % 2 == 0

    def is_server(self) -> bool:
        """Returns whether the port has servers."""
        return not self.is_client()
