"""Instructions of the field engine, as in a stream's JSON.

Each object is an entry of `vm.instructions`, with its members as attributes. Profiles use the
descriptions in `variables` and `writes`, which become instructions for a packet.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from trex.arguments import validate_type
from trex.errors import CTRexPacketBuildException


@dataclass
class CTRexVmInsBase:
    """An instruction. `type` is its name."""

    type: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type == "int":
                validate_type(field.name, getattr(self, field.name), int)
            elif field.type == "str":
                validate_type(field.name, getattr(self, field.name), str)

    def to_json(self) -> dict[str, Any]:
        """Returns the entry of the JSON document."""
        return {"type": self.type, **vars(self)}


@dataclass
class CTRexVmInsFlowVar(CTRexVmInsBase):
    """A variable of `size` bytes that counts or is random, over a range or a list.

    With a list, the range (`init_value`, `min_value`, `max_value`) is None, and the other way
    round.
    """

    type: ClassVar[str] = "flow_var"
    OPERATIONS: ClassVar[list[str]] = ["inc", "dec", "random"]
    VALID_SIZES: ClassVar[list[int]] = [1, 2, 4, 8]

    name: str
    size: int
    op: str
    init_value: int | None
    min_value: int | None
    max_value: int | None
    step: int
    value_list: list[int] | None = None
    split_to_cores: bool = True
    next_var: str | None = None

    def to_json(self) -> dict[str, Any]:
        absent = (
            ("value_list",) if self.value_list is None else ("init_value", "min_value", "max_value")
        )
        return {k: v for k, v in super().to_json().items() if k not in absent}


@dataclass
class CTRexVmInsFlowVarRandLimit(CTRexVmInsBase):
    """A random variable that repeats after `limit` values."""

    type: ClassVar[str] = "flow_var_rand_limit"
    VALID_SIZES: ClassVar[list[int]] = [1, 2, 4, 8]

    name: str
    size: int
    limit: int
    seed: int
    min_value: int
    max_value: int
    split_to_cores: bool = True
    next_var: str | None = None


@dataclass
class CTRexVmInsTupleGen(CTRexVmInsBase):
    """Pairs of an address (`NAME.ip`) and a port (`NAME.port`)."""

    type: ClassVar[str] = "tuple_flow_var"

    name: str
    ip_min: int
    ip_max: int
    port_min: int
    port_max: int
    limit_flows: int
    flags: int = 0


@dataclass
class CTRexVmInsWrFlowVar(CTRexVmInsBase):
    """Writes a variable plus `add_value` in the variable's size."""

    type: ClassVar[str] = "write_flow_var"

    name: str
    pkt_offset: int
    add_value: int = 0
    is_big_endian: bool = True


@dataclass
class CTRexVmInsWrMaskFlowVar(CTRexVmInsBase):
    """Writes the masked bits of a variable, shifted left (or right if negative)."""

    type: ClassVar[str] = "write_mask_flow_var"

    name: str
    pkt_offset: int
    pkt_cast_size: int
    mask: int
    shift: int
    add_value: int
    is_big_endian: bool = True


@dataclass
class CTRexVmInsTrimPktSize(CTRexVmInsBase):
    """Truncates the frame to the length in the variable."""

    type: ClassVar[str] = "trim_pkt_size"

    name: str


@dataclass
class CTRexVmInsFixIpv4(CTRexVmInsBase):
    """Computes the checksum of the IPv4 header at `pkt_offset`."""

    type: ClassVar[str] = "fix_checksum_ipv4"

    pkt_offset: int


@dataclass
class CTRexVmInsFixHwCs(CTRexVmInsBase):
    """Leaves the IP and transport checksums to the interface; lengths in bytes."""

    type: ClassVar[str] = "fix_checksum_hw"
    L4_TYPE_UDP: ClassVar[int] = 11
    L4_TYPE_TCP: ClassVar[int] = 13
    L4_TYPE_IP: ClassVar[int] = 17

    l2_len: int
    l3_len: int
    l4_type: int


@dataclass
class CTRexVmInsFixIcmpv6(CTRexVmInsBase):
    """Computes the checksum of an ICMPv6 message; lengths in bytes."""

    type: ClassVar[str] = "fix_checksum_icmpv6"

    l2_len: int
    l3_len: int


def build_error(message: str, code: int = -11) -> CTRexPacketBuildException:
    """Returns the exception for a program that cannot be built."""
    return CTRexPacketBuildException(code, message)
