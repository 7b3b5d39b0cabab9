"""IPv4, IPv6 and MAC addresses as text, as bytes and as numbers."""

from __future__ import annotations

import re
import socket
import struct
from ipaddress import IPv6Address
from typing import Union

from trex.arguments import validate_type

Ipv4 = Union[str, int, bytes]
Ipv6 = Union[str, bytes]

_MAC = re.compile(r"[0-9a-f]{2}([-:])(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}\Z", re.IGNORECASE)


def is_valid_ipv4(addr: object) -> bool:
    """Whether it is an IPv4 address in dotted notation."""
    return _parses(socket.AF_INET, addr)


def is_valid_ipv6(addr: object) -> bool:
    """Whether it is an IPv6 address in text."""
    return _parses(socket.AF_INET6, addr)


def is_valid_mac(mac: str) -> bool:
    """Whether it is six pairs of hexadecimal digits, parted by colons or by dashes."""
    return _MAC.match(mac) is not None


def is_valid_ipv4_ret(ip_addr: Ipv4) -> bytes:
    """The four bytes of an address given as text, as a number or as bytes.

    Raises `TypeError` if it is none.
    """
    if isinstance(ip_addr, bytes) and len(ip_addr) == 4:
        return ip_addr
    try:
        if isinstance(ip_addr, int):
            return struct.pack("!I", ip_addr)
        if isinstance(ip_addr, str):
            return socket.inet_pton(socket.AF_INET, ip_addr)
    except (OSError, struct.error):
        pass
    raise TypeError(f"{ip_addr!r} is no IPv4 address")


def is_valid_ipv6_ret(ipv6_addr: Ipv6) -> bytes:
    """The sixteen bytes of an address given as text or as bytes. Raises `TypeError`."""
    if isinstance(ipv6_addr, bytes) and len(ipv6_addr) == 16:
        return ipv6_addr
    try:
        if isinstance(ipv6_addr, str):
            return socket.inet_pton(socket.AF_INET6, ipv6_addr)
    except OSError:
        pass
    raise TypeError(f"{ipv6_addr!r} is no IPv6 address")


def ipv4_str_to_num(ipv4_buffer: bytes) -> int:
    """The number of four bytes in network order."""
    return _number("ipv4_buffer", ipv4_buffer, 4)


def mac_str_to_num(mac_buffer: bytes) -> int:
    """The number of six bytes in network order."""
    return _number("mac_buffer", mac_buffer, 6)


def ip2int(ip: Ipv4) -> int:
    """An IPv4 address as a number."""
    return ipv4_str_to_num(is_valid_ipv4_ret(ip))


def int2ip(val: int) -> str:
    """The IPv4 address of a number, of which the low 32 bits count."""
    return socket.inet_ntoa(struct.pack("!I", val & 0xFFFFFFFF))


def ipv62int(ip: str) -> tuple[int, int]:
    """An IPv6 address as its upper and its lower 64 bits."""
    upper, lower = struct.unpack("!QQ", is_valid_ipv6_ret(ip))
    return upper, lower


def int2ipv6(a: int, b: int) -> str:
    """The IPv6 address of its upper and its lower 64 bits."""
    return socket.inet_ntop(socket.AF_INET6, struct.pack("!QQ", a, b))


def int2mac(val: int) -> str:
    """The MAC address of a number, of which the low 48 bits count."""
    return (val & 0xFFFFFFFFFFFF).to_bytes(6, "big").hex(":")


def increase_mac(mac_str: str | bytes, val: int = 1) -> str:
    """The MAC address that is `val` further; wraps at its end."""
    mac = bytes.fromhex(mac_str.replace(":", "")) if isinstance(mac_str, str) else mac_str
    return int2mac(mac_str_to_num(mac) + val)


def increase_ip(ip_str: Ipv4, val: int = 1) -> str:
    """The IPv4 address that is `val` further; wraps at its end."""
    return int2ip(ip2int(ip_str) + val)


def increase_ipv6(ipv6: str, val: int = 1) -> str:
    """The IPv6 address that is `val` further; wraps at its end."""
    number = int.from_bytes(is_valid_ipv6_ret(ipv6), "big") + val
    return str(IPv6Address(number % (1 << 128)))


def compress_ipv6(ipv6_addr: Ipv6) -> str:
    """The address in its shortest text (RFC 5952)."""
    return socket.inet_ntop(socket.AF_INET6, is_valid_ipv6_ret(ipv6_addr))


def generate_ipv6(mac_str: str, prefix: str = "fe80") -> str:
    """The address that a MAC address gives by modified EUI-64 (RFC 4291, appendix A)."""
    mac = bytes.fromhex(mac_str.replace(":", ""))
    eui = (bytes([mac[0] ^ 0x02]) + mac[1:3] + b"\xff\xfe" + mac[3:]).hex()
    groups = (format(int(eui[i : i + 4], 16), "x") for i in range(0, 16, 4))
    return f"{prefix}::{':'.join(groups)}"


def generate_ipv6_solicited_node(ipv6: Ipv6) -> str:
    """The solicited-node multicast address (RFC 4291, section 2.7.1)."""
    low = is_valid_ipv6_ret(ipv6)[-3:]
    solicited = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:-3] + low
    return socket.inet_ntop(socket.AF_INET6, solicited)


def multicast_mac_from_ipv6(ipv6: Ipv6) -> str:
    """The Ethernet address of an IPv6 multicast group (RFC 2464, section 7)."""
    return (b"\x33\x33" + is_valid_ipv6_ret(ipv6)[-4:]).hex(":")


def _parses(family: int, addr: object) -> bool:
    try:
        socket.inet_pton(family, addr)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return False
    return True


def _number(name: str, buffer: bytes, length: int) -> int:
    validate_type(name, buffer, bytes)
    if len(buffer) != length:
        raise ValueError(f"{name} has {len(buffer)} bytes, not {length}")
    return int.from_bytes(buffer, "big")
