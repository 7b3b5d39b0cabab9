"""Nodes on ports, which TRex has in network namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trex.arguments import validate_type
from trex.client.nodes import Nodes
from trex.client.ns_commands import NSCmdResult, NSCmds
from trex.client.rc import RC, RC_OK
from trex.client.session import Session
from trex.errors import TRexArgumentError, TRexError, TRexTypeError


class Namespaces(Session):
    """Commands for nodes: hosts on a port with their own addresses.

    They answer ARP, neighbour discovery and pings until the session ends; see `trex.client.nodes`.
    """

    def set_namespace_start(self, port: int, ns_cmds: NSCmds) -> RC:
        """Executes commands. `wait_for_async_results` returns their results."""
        if not isinstance(ns_cmds, NSCmds):
            raise TRexTypeError("ns_cmds", type(ns_cmds), NSCmds)
        return self._execute(port, ns_cmds)

    def is_async_results_ready(self, port: int) -> bool:
        """Returns whether there are results of commands."""
        return self._nodes(port).has_results

    def wait_for_async_results(
        self,
        port: int,
        timeout: int | None = None,
        cb: Callable[[dict[str, int]], Any] | None = None,
    ) -> list[Any]:
        """Returns the result of each command: None, or a dictionary with `result`.

        Raises `TRexError` if a command failed. `timeout` has no effect, because commands execute at
        once. `cb` is called with the number of commands.
        """
        if timeout is not None:
            validate_type("timeout", timeout, int)
        results = self._nodes(port).pop_results()
        if results is None:
            raise TRexError(
                f"port {port}: no commands were executed; call set_namespace_start() first"
            )
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
        """Executes a command by its name in `NSCmds`, and returns its result."""
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
        """Removes all nodes of ports."""
        self._require_session()
        for number in self._acquired_ports(ports):
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
        """Raises `TRexError`, because BIRD is not supported."""
        self.set_namespace(node_port, "add_node", mac=mac, is_bird=True)

    def _execute(self, port: int, commands: Any) -> RC:
        """Executes commands, from an `NSCmds` or its `get_json`."""
        text = commands.get_json() if isinstance(commands, NSCmds) else commands
        self._nodes(port).execute(text)
        return RC_OK({"ticket_id": port})

    def _nodes(self, port: int) -> Nodes:
        self._require_session()
        validate_type("port", port, int)
        (number,) = self._acquired_ports(port)
        return self.links[number].nodes
