"""Methods of TRex's client for what the engine does not have, each of which says so."""

from __future__ import annotations

from typing import Any, NoReturn

from trex.errors import TRexError

_TAGS = "tagged packet groups are not there: STLFlowStats and STLFlowLatencyStats measure streams"
_NAMESPACES = (
    "namespaces with hosts in them are made with `ip netns` and `ip link`: a port needs none, for "
    "it can be in any namespace (netns/NAME:veth0)"
)
_SOCKETS = (
    "frames of a port are not handed on through sockets: start_capture keeps those that arrive at "
    "a port in service mode"
)
_SERVICES = "services (DHCP, IPv6 neighbours and so on) are not there"
_IPV6 = "IPv6 neighbours are not asked: set_l2_mode gives a port the address of its next hop"
_MEMORY = "the engine has no pools of packet memory: get_stats()['global'] has the CPU's load"


class Absent:
    """Raises `TRexError` where something does not exist; what removes it has nothing to do."""

    # Tagged packet groups.

    def enable_tpg(self, num_tpgids: int, tags: Any, rx_ports: Any = None) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def disable_tpg(self, username: str | None = None, surpress_log: bool = False) -> None:
        """There are none to disable."""

    def get_tpg_status(self, username: str | None = None, port: int | None = None) -> Any:
        """None are enabled."""
        return {"enabled": False}

    def update_tpg_tags(self, new_tags: Any, clear: bool = False) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_tags(
        self,
        min_tag: int = 0,
        max_tag: int | None = None,
        username: str | None = None,
        port: int | None = None,
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_stats(
        self,
        port: int,
        tpgid: int,
        min_tag: int,
        max_tag: int,
        max_sections: int = 50,
        unknown_tag: bool = False,
        untagged: bool = False,
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def clear_tpg_stats(
        self,
        port: int,
        tpgid: int,
        min_tag: int = 0,
        max_tag: int | None = None,
        tag_list: Any = None,
        unknown_tag: bool = False,
        untagged: bool = False,
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_tx_stats(self, port: int, tpgid: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def clear_tpg_tx_stats(self, port: int, tpgid: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def get_tpg_unknown_tags(self, port: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    def clear_tpg_unknown_tags(self, port: int) -> NoReturn:
        """Not there."""
        raise TRexError(_TAGS)

    # Namespaces with hosts in them.

    def set_namespace_start(self, port: int, ns_cmds: Any) -> NoReturn:
        """Not there."""
        raise TRexError(_NAMESPACES)

    def wait_for_async_results(
        self, port: int, timeout: float | None = None, cb: Any = None
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_NAMESPACES)

    def set_namespace(self, port: int, method: str, **args: Any) -> NoReturn:
        """Not there."""
        raise TRexError(_NAMESPACES)

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
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_NAMESPACES)

    def is_async_results_ready(self, port: int) -> NoReturn:
        """Not there."""
        raise TRexError(_NAMESPACES)

    def namespace_remove_all(self, ports: Any = None) -> None:
        """There are none to remove."""

    # Ports as sockets.

    def endpoint_cb_rsync(self, output: Any) -> NoReturn:
        """Not there."""
        raise TRexError(_SOCKETS)

    def start_capture_port(
        self, port: int, endpoint: str, bpf_filter: str | None = None
    ) -> NoReturn:
        """Not there."""
        raise TRexError(_SOCKETS)

    def stop_capture_port(self, port: int) -> None:
        """None is started."""

    def set_capture_port_bpf_filter(self, port: int, bpf_filter: str) -> NoReturn:
        """Not there."""
        raise TRexError(_SOCKETS)

    def set_rx_queue(self, ports: Any = None, size: int = 1000) -> NoReturn:
        """Not there."""
        raise TRexError(_SOCKETS)

    def remove_rx_queue(self, ports: Any = None) -> None:
        """There is none to remove."""

    # Services.

    def create_service_ctx(self, port: int) -> NoReturn:
        """Not there."""
        raise TRexError(_SERVICES)

    def conf_ipv6(self, port: int, enabled: bool, src_ipv6: str | None = None) -> None:
        """Only to switch it off, which it is."""
        if enabled:
            raise TRexError(_IPV6)

    def scan6(self, ports: Any = None, timeout: float = 3, verbose: bool = False) -> NoReturn:
        """Not there."""
        raise TRexError(_IPV6)

    def get_util_stats(self) -> NoReturn:
        """Not there."""
        raise TRexError(_MEMORY)
