"""The addresses of a header that a profile leaves open.

Stock scapy asks this machine's routes, neighbours and interfaces for them, so that the same profile
makes other bytes on another machine. A profile's packet is a template: its open MAC addresses are
the port's, and its open IP addresses are the ones profiles were written and measured with.

`install` sets them as the defaults of scapy's own classes, since that is what a profile uses,
wherever it builds its packets. It is done once, when `trex.stl.api` is imported.
"""

from __future__ import annotations

from typing import Any

from scapy.fields import Emph
from scapy.layers.dns import DNS
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Dot3, Ether
from scapy.packet import Packet

# A name server's question is a profile's to ask: an empty DNS header has none.
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

# Where scapy remembers the defaults of a class that it has built before.
_CACHES = ("class_default_fields", "class_default_fields_ref", "class_packetfields")


def install() -> None:
    """Sets the defaults. Doing it again changes nothing."""
    for layer, defaults in _DEFAULTS.items():
        for field in layer.fields_desc:
            if field.name in defaults:
                # `Emph` hands reads through to the field it wraps, but not writes.
                inner = field.fld if isinstance(field, Emph) else field
                inner.default = defaults[field.name]
    for cache in _CACHES:
        getattr(Packet, cache, {}).clear()
