"""Result of a neighbour resolution."""

from __future__ import annotations


class NeighbourRecord:
    """Address of a neighbour. False without a reply."""

    dst_ip: str
    dst_mac: str | None

    def __bool__(self) -> bool:
        return self.dst_mac is not None

    def __str__(self) -> str:
        if self.dst_mac is None:
            return f"no reply for {self.dst_ip}"
        return f"{self.dst_ip} is at {self.dst_mac}"
