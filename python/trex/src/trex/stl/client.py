"""`STLClient`: TRex's stateless client."""

from __future__ import annotations

from typing import Any

from trex.client.answers import RC
from trex.client.port_commands import PortCommands
from trex.stl.console import Console
from trex.stl.port import STLPort
from trex.stl.sending import Sending
from trex.stl.tagged import TaggedGroupCommands


class STLClient(Console, TaggedGroupCommands, Sending):
    """TRex's stateless client, with the engine in this process.

    The interfaces that are ports 0, 1, ... come from the environment: `WIRESTORM_TREX_PORTS` or a
    trex_cfg.yaml. Arguments are kept for scripts; there is no server.
    """

    def get_mode(self) -> str:
        """The mode."""
        return "STL"

    # Ports.

    def reset(self, ports: Any = None, restart: bool = False) -> None:
        """Takes ports, ends what they send, removes their streams, clears their counters."""
        numbers = self._reset_streams(ports, restart)
        self.clear_stats(numbers)

    def acquire(self, ports: Any = None, force: bool = False, sync_streams: bool = True) -> None:
        """Takes ports, and their interfaces from other processes. Raises `TRexError`, with
        the owner, if another one has a port.

        :param force: takes them from other clients of this process, too, and ends tagged packet
            groups; a port that another process has it cannot take
        """
        self._take(ports, force)

    def release(self, ports: Any = None) -> None:
        """Gives ports back, which ends tagged packet groups."""
        self._give_back(ports)

    def set_service_mode(
        self, ports: Any = None, enabled: bool = True, filtered: bool = False, mask: Any = None
    ) -> None:
        """Notes that ports are in service mode, in which nothing is started without `force`.

        The kernel answers ARP and pings to an interface's own addresses in either mode.
        """
        self.set_service_mode_base(ports, enabled, filtered, mask)

    # Sending.

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
        """As `start_stl`."""
        return self.start_stl(ports, mult, force, duration, total, core_mask, synchronized)

    def stop(self, ports: Any = None, rx_delay_ms: int | None = None) -> None:
        """As `stop_stl`."""
        self.stop_stl(ports, rx_delay_ms)

    def update(
        self, ports: Any = None, mult: str = "1", total: bool = False, force: bool = False
    ) -> None:
        """As `update_stl`."""
        self.update_stl(ports, mult, total, force)

    def wait_on_traffic(
        self, ports: Any = None, timeout: float | None = None, rx_delay_ms: int | None = None
    ) -> None:
        """As `wait_on_traffic_stl`."""
        self.wait_on_traffic_stl(ports, timeout, rx_delay_ms)

    # Counters.

    def get_stats(self, ports: Any = None, sync_now: bool = True) -> dict[Any, Any]:
        """Counters of ports, their sum, of the whole, of packet groups and their delays."""
        self._need_session()
        self._reap()
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
        """Counts from now on."""
        self._need_session()
        numbers = self._numbers(ports, of_all=True)
        self._counters.clear(numbers)
        self._counters.clear_groups(clear_flow_stats, clear_latency_stats)

    def _port_commands(self, number: int) -> PortCommands:
        return STLPort(self, number)


def stl_map_ports(client: STLClient, ports: Any = None) -> dict[str, Any]:
    """Which port is connected to which; see `STLClient.map_ports`."""
    return client.map_ports(ports)
