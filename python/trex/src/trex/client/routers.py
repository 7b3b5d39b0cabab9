"""Stateless address autoconfiguration of IPv6 (RFC 4862)."""

from __future__ import annotations

import socket
import struct

from scapy.layers.inet6 import ICMPv6ND_RS, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import Ether

from trex.addresses import generate_ipv6, is_valid_ipv6_ret, multicast_mac_from_ipv6

_ALL_ROUTERS = "ff02::2"
_ETHERNET_LENGTH = 14
_IPV6 = 0x86DD
_ICMPV6 = 58
_IPV6_LENGTH = 40
# Router advertisements must come from the link: RFC 4861 section 6.1.2.
_HOP_LIMIT = 255
_ADVERTISEMENT = 134
_ADVERTISEMENT_LENGTH = 16
# RFC 4861 section 4.6.2: type, length in units of 8 bytes, prefix length, flags, valid lifetime,
# preferred lifetime, reserved, prefix.
_PREFIX = struct.Struct("!BBBBIII16s")
_PREFIX_TYPE = 3
_AUTONOMOUS = 0x40
_UNIT = 8
# Length of the prefix before an interface identifier from an Ethernet address.
_PREFIX_BITS = 64


def solicitation(mac: str) -> bytes:
    """Returns a router solicitation, without FCS."""
    header = Ether(src=mac, dst=multicast_mac_from_ipv6(_ALL_ROUTERS))
    packet = IPv6(src=generate_ipv6(mac), dst=_ALL_ROUTERS) / ICMPv6ND_RS()
    return bytes(header / packet / ICMPv6NDOptSrcLLAddr(lladdr=mac))


def prefixes(frame: bytes) -> list[bytes]:
    """Returns the prefixes for autoconfiguration in a router advertisement, 8 bytes each.

    Empty for any other frame.
    """
    packet = frame[_ETHERNET_LENGTH:]
    is_ipv6 = frame[12:_ETHERNET_LENGTH] == _IPV6.to_bytes(2, "big")
    message = packet[_IPV6_LENGTH:]
    if not is_ipv6 or len(message) < _ADVERTISEMENT_LENGTH or packet[6] != _ICMPV6:
        return []
    if packet[7] != _HOP_LIMIT or message[0] != _ADVERTISEMENT:
        return []
    found, options = [], message[_ADVERTISEMENT_LENGTH:]
    while len(options) >= 2 and options[1]:
        if options[0] == _PREFIX_TYPE and len(options) >= _PREFIX.size:
            _, _, bits, flags, valid, _, _, prefix = _PREFIX.unpack_from(options)
            if flags & _AUTONOMOUS and bits == _PREFIX_BITS and valid:
                found.append(prefix[: _PREFIX_BITS // 8])
        options = options[options[1] * _UNIT :]
    return found


def address(prefix: bytes, mac: str) -> str:
    """Returns the address of a host in a prefix."""
    interface = is_valid_ipv6_ret(generate_ipv6(mac))[len(prefix) :]
    return socket.inet_ntop(socket.AF_INET6, prefix + interface)
