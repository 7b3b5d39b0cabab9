"""What asking for a neighbour came to."""

from __future__ import annotations


class NeighbourRecord:
    """Where an address is; false if nobody answered for it."""

    dst_ip: str
    dst_mac: str | None

    def __bool__(self) -> bool:
        return self.dst_mac is not None

    def __str__(self) -> str:
        if self.dst_mac is None:
            return f"nobody answers for {self.dst_ip}"
        return f"{self.dst_ip} is at {self.dst_mac}"
