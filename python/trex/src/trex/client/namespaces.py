"""Nodes on ports, as TRex has them in network namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trex.arguments import validate_type
from trex.client.answers import RC, RC_OK
from trex.client.nodes import Nodes
from trex.client.ns_commands import NSCmdResult, NSCmds
from trex.client.session import Session
from trex.errors import TRexArgumentError, TRexError, TRexTypeError


class Namespaces(Session):
    """Commands for nodes: hosts on a port, each with addresses of its own, that answer ARP,
    neighbour discovery and pings for as long as the session lasts; see `trex.client.nodes`."""

    def set_namespace_start(self, port: int, ns_cmds: NSCmds) -> RC:
        """Carries out commands; `wait_for_async_results` tells what came of them."""
        if not isinstance(ns_cmds, NSCmds):
            raise TRexTypeError("ns_cmds", type(ns_cmds), NSCmds)
        return self._execute(port, ns_cmds)

    def is_async_results_ready(self, port: int) -> bool:
        """Whether commands were carried out whose results were not taken."""
        return self._nodes(port).has_results

    def wait_for_async_results(
        self,
        port: int,
        timeout: int | None = None,
        cb: Callable[[dict[str, int]], Any] | None = None,
    ) -> list[Any]:
        """What came of each command: None, or a dictionary of `result`; raises `TRexError` where
        one failed. `timeout` has no effect, for they were carried out at once; `cb` is called with
        how many they were."""
        if timeout is not None:
            validate_type("timeout", timeout, int)
        results = self._nodes(port).take()
        if results is None:
            raise TRexError(f"port {port}: no commands are under way: set_namespace_start() first")
        errors = NSCmdResult(results).errors()
        if callable(cb):
            count = len(results)
            cb(
                {
                    "ticket_id": port,
                    "total_cmds": count,
                    "exec_cmds": count,
                    "errs_cmds": len(errors),
                }
            )
        if errors:
            raise TRexError("; ".join(errors))
        return results

    def set_namespace(self, port: int, method: str, **args: Any) -> Any:
        """Carries out one command, by the name of its method of `NSCmds`; what came of it."""
        commands = NSCmds()
        command = getattr(commands, method, None)
        if method.startswith("_") or not callable(command):
            known = sorted(name for name in vars(NSCmds) if not name.startswith("_"))
            raise TRexArgumentError("method", method, ", ".join(known))
        command(**args)
        self.set_namespace_start(port, commands)
        (result,) = self.wait_for_async_results(port)
        return result

    def namespace_remove_all(self, ports: Any = None) -> None:
        """Takes all nodes of ports away."""
        self._need_session()
        for number in self._owned(ports):
            self.links[number].nodes.remove_all()

    def set_bird_node(
        self,
        node_port: int,
        mac: str,
        ipv4: str | None = None,
        ipv4_subnet: int | None = None,
        ipv6_enabled: bool | None = None,
        ipv6: str | None = None,
        ipv6_subnet: int | None = None,
        vlans: Any = None,
        tpids: Any = None,
        mtu: int | None = None,
    ) -> None:
        """Raises `TRexError`: BIRD is not there."""
        self.set_namespace(node_port, "add_node", mac=mac, is_bird=True)

    def _execute(self, port: int, commands: Any) -> RC:
        """Carries out commands, an `NSCmds` or what its `get_json` gives."""
        text = commands.get_json() if isinstance(commands, NSCmds) else commands
        self._nodes(port).execute(text)
        return RC_OK({"ticket_id": port})

    def _nodes(self, port: int) -> Nodes:
        self._need_session()
        validate_type("port", port, int)
        (number,) = self._owned(port)
        return self.links[number].nodes
