"""Latency traffic: delays between ports, measured with ICMP packets."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from trex.addresses import int2ip, ip2int, is_valid_ipv4
from trex.arguments import check_bits, validate_type
from trex.astf.latency import RATE_MAX, LatencyPort, LatencyTraffic
from trex.client.session import Session
from trex.errors import TRexArgumentError, TRexError

_IPV4_MASK = 0xFFFFFFFF


class LatencyCommands(Session):
    """Commands for latency traffic."""

    def __init__(self, *arguments: Any, **kwargs: Any) -> None:
        super().__init__(*arguments, **kwargs)
        self._latency: LatencyTraffic | None = None

    def start_latency(
        self,
        mult: float = 1,
        src_ipv4: str = "16.0.0.1",
        dst_ipv4: str = "48.0.0.1",
        ports_mask: int = 0x7FFFFFFF,
        dual_ipv4: str = "1.0.0.0",
        port_ipv4_offset_s: str | None = None,
    ) -> None:
        """Sends ICMP between ports, with or without a running profile.

        :param mult: packets per second of each port
        :param src_ipv4: address of port 0
        :param dst_ipv4: address of port 1
        :param ports_mask: bit mask of sending ports; the other port of the pair measures
        :param dual_ipv4: address offset for each further pair of ports
        :param port_ipv4_offset_s: the offset for odd ports, if it differs
        """
        self._require_session()
        check_bits("ports_mask", ports_mask)
        rate = latency_rate("mult", mult)
        offsets = (dual_ipv4, port_ipv4_offset_s or dual_ipv4)
        self._start_latency(rate, (src_ipv4, dst_ipv4), offsets, ports_mask, None)

    def update_latency(self, mult: float = 1) -> None:
        """Changes the rate, in packets per second of each port."""
        self._require_session()
        if self._latency is None or not self._latency.is_active:
            raise TRexError("no latency traffic is running; call start_latency() first")
        self._latency.set_rate(latency_rate("mult", mult))

    def stop_latency(self) -> None:
        """Stops latency traffic. The measurements remain."""
        self._require_session()
        if self._latency is not None:
            self._latency.stop()

    def get_latency_stats(self, skip_zero: bool = True) -> dict[int, dict[str, Any]]:
        """Returns the measurements of latency traffic by receiving port.

        `hist` has one-way delays in microseconds, from the send call to the kernel's receive
        timestamp. `stats` has counters and `m_jitter` (RFC 3550).
        """
        self._require_session()
        return {} if self._latency is None else self._latency.report()

    # Internal methods.

    def _start_latency(
        self,
        rate: float,
        addresses: tuple[str, str],
        offsets: tuple[str, str],
        mask: int,
        is_over: Callable[[], bool] | None,
    ) -> None:
        check_latency_addresses(addresses, offsets)
        ends: list[LatencyPort] = []
        sending = self._check_latency(mask)
        for number in self._acquired_ports(sorted({end for it in sending for end in (it, it ^ 1)})):
            port = self.links[number]
            own, other = (
                socket.inet_aton(
                    int2ip((ip2int(address) + number // 2 * ip2int(offset)) & _IPV4_MASK)
                )
                for address, offset in zip(addresses, offsets)
            )
            pair = (own, other) if number % 2 == 0 else (other, own)
            macs = (port.source, port.destination or "ff:ff:ff:ff:ff:ff")
            interface, sends = port.interface, number in sending
            ends.append(LatencyPort(number, interface, macs, port.vlan, pair, sends))
        for end in ends:
            self.links[end.number].begin_latency(end)
        self._latency = LatencyTraffic(ends, rate, is_over)

    def _check_latency(self, mask: int) -> list[int]:
        """Returns the ports that send latency traffic. Raises if it is running, or if no port can
        send.
        """
        if self._latency is not None and self._latency.is_active:
            raise TRexError("latency traffic is running; call stop_latency() first")
        paired = [it for it in self.links if it ^ 1 in self.links]
        if not paired:
            raise TRexError(
                "latency traffic requires a pair of ports: 0 and 1, or 2 and 3, and so on"
            )
        found = [it for it in paired if mask >> it & 1]
        if not found:
            raise TRexError(f"ports_mask {mask:#x} has no bit of a port that has another: {paired}")
        return found

    def _record_results(self) -> None:
        super()._record_results()
        if self._latency is not None and self._latency.failure is not None:
            self._log_event(f"latency traffic has ended: {self._latency.failure}", "warning")
            self._latency.failure = None


def check_latency_addresses(addresses: tuple[str, str], offsets: tuple[str, str]) -> None:
    """Raises unless all are IPv4 addresses."""
    names = ("src_ipv4", "dst_ipv4", "dual_ipv4", "port_ipv4_offset_s")
    for name, address in zip(names, addresses + offsets):
        if not is_valid_ipv4(address):
            raise TRexArgumentError(name, address, "an address of IPv4")


def latency_rate(name: str, pps: float) -> float:
    """Returns packets per second. Raises if the value is out of range."""
    validate_type(name, pps, (int, float))
    if not 0 < pps <= RATE_MAX:
        raise TRexArgumentError(name, pps, f"packets a second, up to {RATE_MAX}")
    return float(pps)
