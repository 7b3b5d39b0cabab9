"""ARP and ping from a port."""

from __future__ import annotations

import time
from typing import Any

from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

from trex.client.packet_socket import PacketSocket

_ANSWER_S = 1.0
_ANY = "00:00:00:00:00:00"
_ALL = "ff:ff:ff:ff:ff:ff"
_ECHO_REPLY = 0


def resolve(
    interface: str, source: str, src_ipv4: str, dst_ipv4: str, vlan: list[int], retries: int
) -> str | None:
    """Who has an address, by ARP; None where nobody answers."""
    request = ARP(op="who-has", hwsrc=source, psrc=src_ipv4, hwdst=_ANY, pdst=dst_ipv4)
    frame = bytes(_tagged(Ether(src=source, dst=_ALL), vlan) / request)

    def is_answer(data: bytes) -> bool:
        found = Ether(data)
        return ARP in found and found[ARP].op == 2 and found[ARP].psrc == dst_ipv4

    with PacketSocket(interface) as port:
        for _ in range(retries + 1):
            port.send(frame)
            answer = port.receive(is_answer, _ANSWER_S)
            if answer is not None:
                return str(Ether(answer)[ARP].hwsrc)
    return None


def ping(
    interface: str,
    addresses: tuple[str, str],
    src_ipv4: str,
    dst_ipv4: str,
    vlan: list[int],
    pkt_size: int,
    count: int,
    interval_sec: float,
) -> list[dict[str, Any]]:
    """Sends echo requests between two addresses of Ethernet; what came of each."""
    source, destination = addresses
    results = []
    with PacketSocket(interface) as port:
        for number in range(1, count + 1):
            header = _tagged(Ether(src=source, dst=destination), vlan) / IP(
                src=src_ipv4, dst=dst_ipv4
            )
            echo = header / ICMP(id=1, seq=number)
            frame = bytes(echo / Raw(bytes(max(pkt_size - len(echo), 0))))

            def is_answer(data: bytes, number: int = number) -> bool:
                found = Ether(data)
                if ICMP not in found or found[IP].src != dst_ipv4:
                    return False
                return found[ICMP].type == _ECHO_REPLY and found[ICMP].seq == number

            began = time.monotonic()
            port.send(frame)
            answer = port.receive(is_answer, _ANSWER_S)
            rtt_ms = (time.monotonic() - began) * 1e3
            if answer is None:
                result: dict[str, Any] = {
                    "status": "timeout",
                    "formatted_string": f"Request timed out after {_ANSWER_S:.0f} s",
                }
            else:
                reply = Ether(answer)
                said = f"Reply from {dst_ipv4}: bytes={len(answer)}, time={rtt_ms:.2f}ms"
                result = {
                    "status": "success",
                    "rtt": rtt_ms,
                    "ttl": reply[IP].ttl,
                    "formatted_string": f"{said}, TTL={reply[IP].ttl}",
                }
            results.append(result)
            if number < count:
                time.sleep(max(interval_sec - (time.monotonic() - began), 0))
    return results


def _tagged(ethernet: Packet, vlan: list[int]) -> Packet:
    for identifier in vlan:
        ethernet = ethernet / Dot1Q(vlan=identifier)
    return ethernet
