"""Descriptions of ranges, for older scripts. `vm` contains the programs of packets."""

from __future__ import annotations

from typing import ClassVar

from trex.addresses import ip2int
from trex.stl.instructions import build_error
from trex.stl.vm import CTRexScriptsBase


class CTRexScFieldRangeBase(CTRexScriptsBase):
    """A field and its changes."""

    FILED_TYPES: ClassVar[list[str]] = ["inc", "dec", "rand"]

    def __init__(self, field_name: str, field_type: str) -> None:
        if field_type not in self.FILED_TYPES:
            raise build_error(
                f"a field does one of {', '.join(self.FILED_TYPES)}, not {field_type}"
            )
        self.field_name = field_name
        self.field_type = field_type


class CTRexScFieldRangeValue(CTRexScFieldRangeBase):
    """A range of numbers."""

    def __init__(self, field_name: str, field_type: str, min_value: int, max_value: int) -> None:
        super().__init__(field_name, field_type)
        _check_ascending(min_value, max_value)
        self.min_value = min_value
        self.max_value = max_value


class CTRexScIpv4SimpleRange(CTRexScFieldRangeBase):
    """A range of IPv4 addresses."""

    def __init__(self, field_name: str, field_type: str, min_ip: str, max_ip: str) -> None:
        super().__init__(field_name, field_type)
        _check_ascending(ip2int(min_ip), ip2int(max_ip), one=True)
        self.min_ip = min_ip
        self.max_ip = max_ip


class CTRexScIpv4TupleGen(CTRexScriptsBase):
    """Addresses and ports of clients."""

    FLAGS_ULIMIT_FLOWS: ClassVar[int] = 1

    def __init__(
        self,
        min_ipv4: str,
        max_ipv4: str,
        num_flows: int = 100000,
        min_port: int = 1025,
        max_port: int = 65535,
        flags: int = 0,
    ) -> None:
        _check_ascending(ip2int(min_ipv4), ip2int(max_ipv4), one=True)
        self.min_ip = min_ipv4
        self.max_ip = max_ipv4
        self.num_flows = num_flows
        self.min_port = min_port
        self.max_port = max_port
        self.flags = flags


class CTRexScTrimPacketSize(CTRexScriptsBase):
    """A range of frame lengths."""

    def __init__(
        self,
        field_type: str = "rand",
        min_pkt_size: int | None = None,
        max_pkt_size: int | None = None,
    ) -> None:
        if min_pkt_size is not None and max_pkt_size is not None:
            _check_ascending(min_pkt_size, max_pkt_size)
        self.field_type = field_type
        self.min_pkt_size = min_pkt_size
        self.max_pkt_size = max_pkt_size


def _check_ascending(lowest: int, highest: int, one: bool = False) -> None:
    if lowest > highest or (lowest == highest and not one):
        raise build_error(f"{lowest} to {highest} is not a range")
