"""Latency traffic: ICMP between the two ports of a pair, independent of other traffic."""

from __future__ import annotations

import select
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from trex.client.packet_socket import PacketSocket
from trex.errors import TRexError

_REQUEST, _REPLY = 8, 0
_ETHERTYPE_IPV4, _ETHERTYPE_VLAN = 0x0800, 0x8100
_ICMP = 1
_TTL = 127
# Payload behind the ICMP header: magic bytes, session, sending port, sequence number, time.
_MARK = b"wslt"
_PAYLOAD = struct.Struct("!4sIHQQ")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_ECHO = struct.Struct("!BBHHH")
_ETHERNET_LENGTH = 14
_HEADERS_LENGTH = _ETHERNET_LENGTH + _IPV4.size + _ECHO.size
# Maximum packets per second of each port, because Python builds each packet.
RATE_MAX = 5_000
# Packets that are later than this are skipped.
_LATE_MAX_NS = 100_000_000
# Interval of checks for the end. After the last sent packet, reception continues for this time
# after each arrival, up to a limit.
_POLL_S = 0.05
_LAST_S_MAX = 1.0
_WINDOW_NS = 500_000_000
_ERRORS = (
    *("m_tx_pkt_err", "m_unsup_prot", "m_no_magic", "m_no_id", "m_seq_error", "m_l3_cs_err"),
    *("m_l4_cs_err", "m_length_error", "m_no_ipv4_option"),
)


class LatencyPort:
    """Sender and receiver of latency packets on a port."""

    def __init__(
        self,
        number: int,
        interface: str,
        macs: tuple[str, str],
        vlan: list[int],
        addresses: tuple[bytes, bytes],
        sends: bool = True,
    ) -> None:
        """:param macs: source and destination MAC address
        :param addresses: source and destination IPv4 address as bytes
        :param sends: whether the port sends, or only receives
        """
        self.number, self.sends = number, sends
        self.socket = PacketSocket(interface)
        self.socket.filter_icmp()
        self.socket.enable_timestamps()
        source, destination = (bytes.fromhex(mac.replace(":", "")) for mac in macs)
        tags = b"".join(struct.pack("!HH", _ETHERTYPE_VLAN, tag) for tag in vlan)
        self._ethernet = destination + source + tags + struct.pack("!H", _ETHERTYPE_IPV4)
        self._addresses = addresses
        self.stats = dict.fromkeys(("m_tx_pkt_ok", "m_pkt_ok", *_ERRORS), 0)
        self._next_sent = self._next_expected = 0
        self._sum_us = self._min_us = self._max_us = self._jitter_us = 0.0
        self._last_us: float | None = None
        self._window = [0, 0.0, 0.0]
        self._buckets: dict[int, int] = {}
        self._below_10 = 0

    def send(self, session: int) -> None:
        """Sends a packet with its departure time."""
        number, self._next_sent = self._next_sent, self._next_sent + 1
        length = _IPV4.size + _ECHO.size + _PAYLOAD.size
        head = [0x45, 0, length, number & 0xFFFF, 0, _TTL, _ICMP, 0, *self._addresses]
        head[7] = _checksum(_IPV4.pack(*head))
        kind = _REPLY if self.number % 2 else _REQUEST
        payload = _PAYLOAD.pack(_MARK, session, self.number, number, time.time_ns())
        echo = _ECHO.pack(kind, 0, 0, self.number, number & 0xFFFF) + payload
        echo = _ECHO.pack(kind, 0, _checksum(echo), self.number, number & 0xFFFF) + payload
        try:
            self.socket.send(self._ethernet + _IPV4.pack(*head) + echo)
            self.stats["m_tx_pkt_ok"] += 1
        except TRexError:
            self.stats["m_tx_pkt_err"] += 1

    def sent(self) -> tuple[int, int, int]:
        """Returns packets sent, their bytes without FCS, and failed packets."""
        packets = self.stats["m_tx_pkt_ok"]
        length = len(self._ethernet) + _IPV4.size + _ECHO.size + _PAYLOAD.size
        return packets, packets * length, self.stats["m_tx_pkt_err"]

    def record_received(self, session: int, peer: int) -> None:
        """Records the received packets."""
        for at_ns, frame in self.socket.received_with_time():
            # VLAN tags precede the EtherType.
            start = _HEADERS_LENGTH
            while frame[start - _IPV4.size - _ECHO.size - 2 :][:2] == b"\x81\x00":
                start += 4
            payload = frame[start : start + _PAYLOAD.size]
            if len(payload) < _PAYLOAD.size or payload[:4] != _MARK:
                continue
            _, packet_session, sender, number, sent_ns = _PAYLOAD.unpack(payload)
            if packet_session != session or sender != peer:
                self.stats["m_no_id"] += packet_session == session
                continue
            self._record(number, at_ns, (at_ns - sent_ns) / 1e3)

    def _record(self, number: int, at_ns: int, delay_us: float) -> None:
        # A clock step can make a delay negative.
        delay_us = max(delay_us, 0.0)
        self.stats["m_pkt_ok"] += 1
        if number != self._next_expected:
            self.stats["m_seq_error"] += 1
        self._next_expected = max(self._next_expected, number + 1)
        first = self._last_us is None
        self._min_us = delay_us if first else min(self._min_us, delay_us)
        self._max_us = max(self._max_us, delay_us)
        self._sum_us += delay_us
        if self._last_us is not None:
            # RFC 3550 section 6.4.1.
            self._jitter_us += (abs(delay_us - self._last_us) - self._jitter_us) / 16
        self._last_us = delay_us
        window = at_ns // _WINDOW_NS
        if window != self._window[0]:
            self._window = [window, 0.0, self._window[1]]
        self._window[1] = max(self._window[1], delay_us)
        if delay_us < 10:
            self._below_10 += 1
        else:
            scale = 10 ** (len(str(int(delay_us))) - 1)
            key = int(delay_us) // scale * scale
            self._buckets[key] = self._buckets.get(key, 0) + 1

    def report(self) -> dict[str, Any]:
        """Returns the measurements in TRex's format, times in microseconds."""
        count = self.stats["m_pkt_ok"]
        return {
            "hist": {
                "min_usec": self._min_us,
                "max_usec": self._max_us,
                "high_cnt": count - self._below_10,
                "cnt": count,
                "s_avg": self._sum_us / count if count else 0.0,
                "s_max": max(self._window[1:]),
                "histogram": [{"key": k, "val": v} for k, v in sorted(self._buckets.items())],
            },
            "stats": {**self.stats, "m_jitter": self._jitter_us, "m_rx_check": 0},
        }


class LatencyTraffic:
    """Latency packets between ports, until they are stopped."""

    def __init__(
        self, ports: list[LatencyPort], pps: float, is_over: Callable[[], bool] | None = None
    ) -> None:
        """`is_over` returns whether the related profile has ended, which ends this traffic too."""
        self._ports = {port.number: port for port in ports}
        self._session = time.monotonic_ns() & 0xFFFFFFFF
        self._is_over = is_over or (lambda: False)
        #: Error that ended it early, if any.
        self.failure: str | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.set_rate(pps)
        self._thread = threading.Thread(target=self._run, name="latency", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether it is running."""
        return self._thread.is_alive()

    def set_rate(self, pps: float) -> None:
        """Sets the packets per second of each port."""
        self._interval_ns = round(1e9 / pps)

    def stop(self) -> None:
        """Stops and waits for packets in flight."""
        self._ended.set()
        self._thread.join()

    def report(self) -> dict[int, dict[str, Any]]:
        """Returns the counters and measurements of each port."""
        with self._lock:
            return {number: port.report() for number, port in self._ports.items()}

    def _run(self) -> None:
        try:
            due = time.monotonic_ns()
            while not self._ended.is_set() and not self._is_over():
                now = time.monotonic_ns()
                if now - due > _LATE_MAX_NS:
                    due = now
                with self._lock:
                    while due <= now:
                        for port in self._ports.values():
                            if port.sends:
                                port.send(self._session)
                        due += self._interval_ns
                self._receive(min((due - time.monotonic_ns()) / 1e9, _POLL_S))
            self._receive(_POLL_S, is_last=True)
        except TRexError as error:
            # Earlier measurements remain valid.
            self.failure = str(error)
        finally:
            for port in self._ports.values():
                port.socket.close()

    def _receive(self, timeout_s: float, is_last: bool = False) -> None:
        """Receives packets for a time, at the end as long as packets arrive."""
        sockets = {port.socket.fileno(): port for port in self._ports.values()}
        deadline = time.monotonic() + (_LAST_S_MAX if is_last else max(timeout_s, 0.0))
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select(list(sockets), [], [], min(left, _POLL_S))
            with self._lock:
                for found in ready:
                    port = sockets[found]
                    port.record_received(self._session, port.number ^ 1)
            if (is_last and not ready) or time.monotonic() >= deadline:
                return


def _checksum(data: bytes) -> int:
    """Returns the Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) & ~1]))
    if len(data) % 2:
        total += data[-1] << 8
    total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - ((total & 0xFFFF) + (total >> 16))
