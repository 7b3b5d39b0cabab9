"""`STLClient` with a server."""

from __future__ import annotations

from typing import Any

from trex.remote.client import unsupported
from trex.remote.streams import RemoteStreamCommands
from trex.remote.tagged_groups import RemoteTaggedGroups
from trex.stl.client import STLClient


class RemoteSTLClient(RemoteTaggedGroups, RemoteStreamCommands, STLClient):
    """TRex's stateless client, with the ports of a server."""

    def acquire(self, ports: Any = None, force: bool = False, sync_streams: bool = True) -> None:
        """Acquires ports; with `force` also those of other clients of the server, whose tagged
        packet groups end.
        """
        self._require_session()
        if force:
            self._end_groups(self._numbers(ports, of_all=True))
        self._acquire_stl(ports, force, sync_streams)

    def _acquire_ports(self, ports: Any, force: bool) -> None:
        self.acquire(ports, force)

    def _release_ports(self, ports: Any) -> None:
        # The server releases no port with groups. Another session of the user may have the groups.
        self._discard_groups(self._acquired_ports(ports))
        super()._release_ports(ports)

    def get_stats(self, ports: Any = None, sync_now: bool = True) -> dict[Any, Any]:
        """Returns counters of ports, their sum, totals, and those of packet groups."""
        self._record_results()
        stats = self._port_stats(self._numbers(ports))
        groups = self._groups([])
        return {**stats, "flow_stats": groups["flow_stats"], "latency": groups["latency"]}

    def clear_stats(
        self,
        ports: Any = None,
        clear_global: bool = True,
        clear_flow_stats: bool = True,
        clear_latency_stats: bool = True,
        clear_xstats: bool = True,
    ) -> None:
        """Clears the counters."""
        self._clear_ports(self._numbers(ports, of_all=True))
        self.clear_pgid_stats(clear_flow_stats, clear_latency_stats)


#: Methods that work on interfaces of this machine.
LOCAL = (
    *("map_ports", "set_namespace", "set_namespace_start", "namespace_remove_all"),
    *("set_bird_node", "wait_for_async_results", "is_async_results_ready"),
)
for _name in LOCAL:
    setattr(RemoteSTLClient, _name, unsupported(_name))
