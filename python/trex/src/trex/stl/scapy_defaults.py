"""Default addresses of headers.

Unmodified scapy takes them from this machine's routes, neighbours and interfaces, so that a profile
builds other bytes on another machine. A profile's packet is a template: its unset MAC addresses are
the port's, and its unset IP addresses are TRex's defaults.

`install` sets them in scapy's own classes, because profiles use these to build packets.
`trex.stl.api` calls it once.
"""

from __future__ import annotations

from typing import Any

from scapy.fields import Emph
from scapy.layers.dns import DNS
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot3, Ether
from scapy.packet import Packet

# An empty DNS header has no question; a profile adds it.
_DEFAULTS: dict[type[Packet], dict[str, Any]] = {
    Ether: {"dst": "00:00:00:01:00:00", "src": "00:00:00:02:00:00"},
    Dot3: {"dst": "00:00:00:00:00:00", "src": "00:00:00:00:00:00"},
    ARP: {
        "hwsrc": "00:00:00:00:00:00",
        "psrc": "16.0.0.1",
        "hwdst": "00:00:00:00:00:00",
        "pdst": "0.0.0.0",
    },
    IP: {"src": "16.0.0.1", "dst": "48.0.0.1"},
    IPv6: {"src": "::2", "dst": "::1"},
    DNS: {"qd": []},
}

# Caches of scapy for the defaults of a class.
_CACHES = ("class_default_fields", "class_default_fields_ref", "class_packetfields")


def install() -> None:
    """Sets the defaults. A second call has no effect."""
    for layer, defaults in _DEFAULTS.items():
        for field in layer.fields_desc:
            if field.name in defaults:
                # `Emph` forwards reads to its field, but not writes.
                inner = field.fld if isinstance(field, Emph) else field
                inner.default = defaults[field.name]
    for cache in _CACHES:
        getattr(Packet, cache, {}).clear()
