"""IPv4, IPv6 and MAC addresses as text, bytes and integers."""

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
    """Returns whether `addr` is an IPv4 address in dotted notation."""
    return _is_address(socket.AF_INET, addr)


def is_valid_ipv6(addr: object) -> bool:
    """Returns whether `addr` is an IPv6 address in text form."""
    return _is_address(socket.AF_INET6, addr)


def is_valid_mac(mac: str) -> bool:
    """Returns whether `mac` is six pairs of hexadecimal digits, separated by colons or dashes."""
    return _MAC.match(mac) is not None


def is_valid_ipv4_ret(ip_addr: Ipv4) -> bytes:
    """Returns the four bytes of an address given as text, integer or bytes.

    Raises `TypeError` for anything else.
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
    """Returns the 16 bytes of an address given as text or bytes. Raises `TypeError` otherwise."""
    if isinstance(ipv6_addr, bytes) and len(ipv6_addr) == 16:
        return ipv6_addr
    try:
        if isinstance(ipv6_addr, str):
            return socket.inet_pton(socket.AF_INET6, ipv6_addr)
    except OSError:
        pass
    raise TypeError(f"{ipv6_addr!r} is no IPv6 address")


def ipv4_str_to_num(ipv4_buffer: bytes) -> int:
    """Converts four bytes in network order to an integer."""
    return _number("ipv4_buffer", ipv4_buffer, 4)


def mac_str_to_num(mac_buffer: bytes) -> int:
    """Converts six bytes in network order to an integer."""
    return _number("mac_buffer", mac_buffer, 6)


def ip2int(ip: Ipv4) -> int:
    """Converts an IPv4 address to an integer."""
    return ipv4_str_to_num(is_valid_ipv4_ret(ip))


def int2ip(val: int) -> str:
    """Converts the low 32 bits of an integer to an IPv4 address."""
    return socket.inet_ntoa(struct.pack("!I", val & 0xFFFFFFFF))


def ipv62int(ip: str) -> tuple[int, int]:
    """Returns the upper and the lower 64 bits of an IPv6 address."""
    upper, lower = struct.unpack("!QQ", is_valid_ipv6_ret(ip))
    return upper, lower


def int2ipv6(a: int, b: int) -> str:
    """Returns the IPv6 address with these upper and lower 64 bits."""
    return socket.inet_ntop(socket.AF_INET6, struct.pack("!QQ", a, b))


def int2mac(val: int) -> str:
    """Converts the low 48 bits of an integer to a MAC address."""
    return (val & 0xFFFFFFFFFFFF).to_bytes(6, "big").hex(":")


def increase_mac(mac_str: str | bytes, val: int = 1) -> str:
    """Adds `val` to a MAC address. Wraps at the end of the address space."""
    mac = bytes.fromhex(mac_str.replace(":", "")) if isinstance(mac_str, str) else mac_str
    return int2mac(mac_str_to_num(mac) + val)


def increase_ip(ip_str: Ipv4, val: int = 1) -> str:
    """Adds `val` to an IPv4 address. Wraps at the end of the address space."""
    return int2ip(ip2int(ip_str) + val)


def increase_ipv6(ipv6: str, val: int = 1) -> str:
    """Adds `val` to an IPv6 address. Wraps at the end of the address space."""
    number = int.from_bytes(is_valid_ipv6_ret(ipv6), "big") + val
    return str(IPv6Address(number % (1 << 128)))


def compress_ipv6(ipv6_addr: Ipv6) -> str:
    """Returns the canonical text form of an address (RFC 5952)."""
    return socket.inet_ntop(socket.AF_INET6, is_valid_ipv6_ret(ipv6_addr))


def generate_ipv6(mac_str: str, prefix: str = "fe80") -> str:
    """Returns the address that a MAC address yields by modified EUI-64 (RFC 4291, appendix A)."""
    mac = bytes.fromhex(mac_str.replace(":", ""))
    eui = (bytes([mac[0] ^ 0x02]) + mac[1:3] + b"\xff\xfe" + mac[3:]).hex()
    groups = (format(int(eui[i : i + 4], 16), "x") for i in range(0, 16, 4))
    return f"{prefix}::{':'.join(groups)}"


def generate_ipv6_solicited_node(ipv6: Ipv6) -> str:
    """Returns the solicited-node multicast address (RFC 4291, section 2.7.1)."""
    low = is_valid_ipv6_ret(ipv6)[-3:]
    solicited = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:-3] + low
    return socket.inet_ntop(socket.AF_INET6, solicited)


def multicast_mac_from_ipv6(ipv6: Ipv6) -> str:
    """Returns the Ethernet address of an IPv6 multicast group (RFC 2464, section 7)."""
    return (b"\x33\x33" + is_valid_ipv6_ret(ipv6)[-4:]).hex(":")


def _is_address(family: int, addr: object) -> bool:
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
