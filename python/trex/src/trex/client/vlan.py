"""VLAN tags of a port's own frames and of its services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Packet

from trex.errors import TRexError

_FORMATS = {"Q": Dot1Q, "D": Dot1AD}
_DEFAULT_FORMATS = {1: "Q", 2: "DQ"}


class VLAN:
    """Up to two VLAN IDs from 1 to 4095, the outer one first. True if there is a tag."""

    def __init__(self, vlan: int | Iterable[int] | VLAN | None) -> None:
        self._is_default = vlan is None
        if isinstance(vlan, VLAN):
            self._is_default = vlan.is_default()
        self.tags = () if vlan is None else (vlan,) if isinstance(vlan, int) else tuple(vlan)
        if len(self.tags) > 2:
            raise TRexError(f"vlan {list(self.tags)}: at most two tags are possible")
        for tag in self.tags:
            if not isinstance(tag, int) or isinstance(tag, bool) or not 0 < tag < 4096:
                raise TRexError(f"vlan {tag!r}: expected a number of 1 to 4095")

    def __bool__(self) -> bool:
        return bool(self.tags)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tags)

    def get_tags(self) -> tuple[int, ...]:
        """Returns the tags, the outer one first."""
        return self.tags

    def is_default(self) -> bool:
        """Returns whether the tags are the default."""
        return self._is_default

    def get_desc(self) -> str:
        """Returns a description of the tags."""
        names = {1: "VLAN", 2: "QinQ"}
        return f"{names[len(self.tags)]} '{'/'.join(map(str, self.tags))}'" if self.tags else ""

    @staticmethod
    def extract(scapy_pkt: Packet) -> list[int]:
        """Returns the VLAN IDs of a packet, the outer one first."""
        tags, layer = [], scapy_pkt.payload
        while isinstance(layer, (Dot1Q, Dot1AD)):
            tags.append(layer.vlan)
            layer = layer.payload
        return tags

    @staticmethod
    def extract_without_priority(scapy_pkt: Packet) -> tuple[int, ...]:
        """Like `extract`, without priority tags (VLAN ID 0)."""
        return tuple(tag for tag in VLAN.extract(scapy_pkt) if tag)

    def embed(self, scapy_pkt: Packet, fmt: str | None = None) -> Packet:
        """Inserts the tags into a packet and returns it.

        `fmt` has a letter for each tag: `Q` is IEEE 802.1Q, `D` is 802.1ad. The default is `Q` for
        one tag and `DQ` for two.
        """
        if not self.tags:
            return scapy_pkt
        fmt = fmt or _DEFAULT_FORMATS[len(self.tags)]
        if len(fmt) != len(self.tags) or any(letter not in _FORMATS for letter in fmt):
            raise TRexError(f"fmt {fmt!r}: expected {len(self.tags)} letters of Q and D")
        inner = scapy_pkt.payload
        for letter, tag in zip(reversed(fmt), reversed(self.tags)):
            inner = _FORMATS[letter](vlan=tag) / inner
        # The EtherType must follow the new payload.
        scapy_pkt.fields.pop("type", None)
        scapy_pkt.remove_payload()
        scapy_pkt.add_payload(inner)
        return scapy_pkt
