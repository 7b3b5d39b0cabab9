"""`STLClient`: TRex's stateless client."""

from __future__ import annotations

from typing import Any

from trex.client.port_commands import PortCommands
from trex.client.rc import RC
from trex.remote.selection import remote, uses_server
from trex.stl.console import Console
from trex.stl.port import STLPort
from trex.stl.stream_commands import StreamCommands
from trex.stl.tagged_group_commands import TaggedGroupCommands


class STLClient(Console, TaggedGroupCommands, StreamCommands):
    """TRex's stateless client, with the engine in this process.

    The environment defines the interfaces of ports 0, 1, ...: `WIRESTORM_TREX_PORTS` or a
    trex_cfg.yaml. Arguments of the constructor for a server have no effect, unless the client uses
    one: with `server="tcp://HOST"`, or `WIRESTORM_TREX_PORTS=server` in the environment.
    """

    def __new__(cls, *arguments: Any, **kwargs: Any) -> Any:
        if not uses_server(arguments, kwargs):
            return super().__new__(cls)
        return super().__new__(remote(cls, STLClient, "trex.remote.stl"))

    def get_mode(self) -> str:
        """Returns the mode."""
        return "STL"

    # Ports.

    def reset(self, ports: Any = None, restart: bool = False) -> None:
        """Acquires ports, stops their traffic, removes their streams, and clears their counters."""
        numbers = self._reset_streams(ports, restart)
        self.clear_stats(numbers)

    def acquire(self, ports: Any = None, force: bool = False, sync_streams: bool = True) -> None:
        """Acquires ports and locks their interfaces against other processes.

        Raises `TRexError` with the owner if another process has a port.

        :param force: also acquire ports of other clients of this process; ends tagged packet
            groups of the ports; has no effect on ports of other processes
        """
        self._acquire_ports(ports, force)

    def release(self, ports: Any = None) -> None:
        """Releases ports. Ends the tagged packet groups that have one of them."""
        self._release_ports(ports)

    def set_service_mode(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Marks ports as in service mode, in which a start requires `force`.

        The kernel answers ARP and pings for an interface's own addresses in both modes.
        """
        self.set_service_mode_base(ports, enabled, filtered, mask)

    # Traffic.

    def start(
        self,
        ports: Any = None,
        mult: str = "1",
        force: bool = False,
        duration: float = -1,
        total: bool = False,
        core_mask: Any = None,
        synchronized: bool = False,
    ) -> RC:
        """Same as `start_stl`."""
        return self.start_stl(ports, mult, force, duration, total, core_mask, synchronized)

    def stop(self, ports: Any = None, rx_delay_ms: int | None = None) -> None:
        """Same as `stop_stl`."""
        self.stop_stl(ports, rx_delay_ms)

    def update(
        self, ports: Any = None, mult: str = "1", total: bool = False, force: bool = False
    ) -> None:
        """Same as `update_stl`."""
        self.update_stl(ports, mult, total, force)

    def wait_on_traffic(
        self, ports: Any = None, timeout: float | None = None, rx_delay_ms: int | None = None
    ) -> None:
        """Same as `wait_on_traffic_stl`."""
        self.wait_on_traffic_stl(ports, timeout, rx_delay_ms)

    # Counters.

    def get_stats(self, ports: Any = None, sync_now: bool = True) -> dict[Any, Any]:
        """Returns counters of ports, their sum, totals, and those of packet groups."""
        self._require_session()
        self._record_results()
        stats = self._counters.ports(self._numbers(ports))
        stats.update(self._counters.groups())
        return stats

    def clear_stats(
        self,
        ports: Any = None,
        clear_global: bool = True,
        clear_flow_stats: bool = True,
        clear_latency_stats: bool = True,
        clear_xstats: bool = True,
    ) -> None:
        """Clears the counters."""
        self._require_session()
        numbers = self._numbers(ports, of_all=True)
        self._counters.clear(numbers)
        self._counters.clear_groups(clear_flow_stats, clear_latency_stats)

    def _port_commands(self, number: int) -> PortCommands:
        return STLPort(self, number)


def stl_map_ports(client: STLClient, ports: Any = None) -> dict[str, Any]:
    """Returns the connections of ports; see `STLClient.map_ports`."""
    return client.map_ports(ports)
