"""Operations of the field engine on a packet."""

from __future__ import annotations

from typing import Union

from trex.arguments import validate_type
from trex.stl.instructions import (
    CTRexVmInsBase,
    CTRexVmInsFixHwCs,
    CTRexVmInsFixIcmpv6,
    CTRexVmInsFixIpv4,
    CTRexVmInsTrimPktSize,
    CTRexVmInsWrFlowVar,
    CTRexVmInsWrMaskFlowVar,
    build_error,
)
from trex.stl.variables import CTRexVmDescBase, HasLayout

Offset = Union[int, str]

_L3_LEN_MIN = 8


class _Write(CTRexVmDescBase):
    """Writes a variable at `pkt_offset` + `offset_fixup`."""

    def __init__(self, fv_name: str, pkt_offset: Offset, offset_fixup: int, is_big: bool) -> None:
        validate_type("fv_name", fv_name, str)
        validate_type("pkt_offset", pkt_offset, (int, str))
        validate_type("offset_fixup", offset_fixup, int)
        validate_type("is_big", is_big, bool)
        self.fv_name = fv_name
        self.pkt_offset = pkt_offset
        self.offset_fixup = offset_fixup
        self.is_big = is_big

    def get_var_ref(self) -> str | None:
        return self.fv_name

    def _offset(self, packet: HasLayout) -> int:
        offset = self.pkt_offset
        if isinstance(offset, str):
            offset = packet.layout().field_offset(offset)
        return offset + self.offset_fixup


class STLVmWrFlowVar(_Write):
    """Writes a variable plus `add_val` to the packet, in the variable's size.

    :param pkt_offset: a number of bytes, or a field: `IP.src`, `IP:1.src` in the second IP header
    :param offset_fixup: additional offset in bytes
    :param is_big: network byte order
    """

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Offset,
        offset_fixup: int = 0,
        add_val: int = 0,
        is_big: bool = True,
    ) -> None:
        super().__init__(fv_name, pkt_offset, offset_fixup, is_big)
        validate_type("add_val", add_val, int)
        self.add_val = add_val

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsWrFlowVar(self.fv_name, self._offset(packet), self.add_val, self.is_big)


class STLVmWrMaskFlowVar(_Write):
    """Writes some bits of a variable: `packet = packet & ~mask | (variable + add) << shift & mask`.

    :param pkt_cast_size: number of bytes that the mask covers: 1, 2 or 4
    :param shift: shift to the left, or to the right if negative
    """

    def __init__(
        self,
        fv_name: str,
        pkt_offset: Offset,
        pkt_cast_size: int = 1,
        mask: int = 0xFF,
        shift: int = 0,
        add_value: int = 0,
        offset_fixup: int = 0,
        is_big: bool = True,
    ) -> None:
        super().__init__(fv_name, pkt_offset, offset_fixup, is_big)
        for name, number in (("mask", mask), ("shift", shift), ("add_value", add_value)):
            validate_type(name, number, int)
        if pkt_cast_size not in (1, 2, 4):
            raise build_error(f"a mask covers 1, 2 or 4 bytes, not {pkt_cast_size}", code=-10)
        self.pkt_cast_size = pkt_cast_size
        self.mask = mask
        self.shift = shift
        self.add_value = add_value

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsWrMaskFlowVar(
            self.fv_name,
            self._offset(packet),
            self.pkt_cast_size,
            self.mask,
            self.shift,
            self.add_value,
            self.is_big,
        )


class STLVmTrimPktSize(CTRexVmDescBase):
    """Truncates the frame to the length, in bytes without FCS, in a 2-byte variable.

    The program must update the length fields of the headers.
    """

    def __init__(self, fv_name: str) -> None:
        validate_type("fv_name", fv_name, str)
        self.fv_name = fv_name

    def get_var_ref(self) -> str | None:
        return self.fv_name

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsTrimPktSize(self.fv_name)


class STLVmFixIpv4(CTRexVmDescBase):
    """Computes the checksum of an IPv4 header; `offset` is a number of bytes, `IP` or `IP:1`."""

    def __init__(self, offset: Offset) -> None:
        self.offset = offset

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsFixIpv4(_layer(packet, self.offset))


class STLVmFixChecksumHw(CTRexVmDescBase):
    """Leaves the IP and the transport checksum to the interface.

    :param l4_type: `CTRexVmInsFixHwCs.L4_TYPE_UDP`, `.L4_TYPE_TCP`, or `.L4_TYPE_IP` for none
    """

    def __init__(self, l3_offset: Offset, l4_offset: Offset, l4_type: int) -> None:
        self.l3_offset = l3_offset
        self.l4_offset = l4_offset
        self.l4_type = l4_type

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        l2_len = _layer(packet, self.l3_offset)
        l4_offset = _layer(packet, self.l4_offset)
        if self.l4_type == CTRexVmInsFixHwCs.L4_TYPE_IP and l4_offset == 0:
            return CTRexVmInsFixHwCs(l2_len, 0, self.l4_type)
        if l4_offset < l2_len + _L3_LEN_MIN:
            raise build_error(
                f"the transport header, at byte {l4_offset}, "
                f"does not come after the IP header at byte {l2_len}"
            )
        return CTRexVmInsFixHwCs(l2_len, l4_offset - l2_len, self.l4_type)


class STLVmFixIcmpv6(CTRexVmDescBase):
    """Computes the checksum of an ICMPv6 message."""

    def __init__(self, l3_offset: Offset, l4_offset: Offset) -> None:
        self.l3_offset = l3_offset
        self.l4_offset = l4_offset

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        l2_len = _layer(packet, self.l3_offset)
        return CTRexVmInsFixIcmpv6(l2_len, _layer(packet, self.l4_offset) - l2_len)


def _layer(packet: HasLayout, offset: Offset) -> int:
    return packet.layout().layer_offset(offset) if isinstance(offset, str) else offset
