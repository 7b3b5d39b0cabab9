"""Field-engine programs: variables of a stream and operations on them."""

from __future__ import annotations

import copy
from typing import Any

from trex.arguments import validate_type
from trex.errors import TRexError
from trex.stl.instructions import CTRexVmInsBase, build_error
from trex.stl.packet_operations import (
    Offset,
    STLVmFixChecksumHw,
    STLVmFixIcmpv6,
    STLVmFixIpv4,
    STLVmTrimPktSize,
    STLVmWrFlowVar,
    STLVmWrMaskFlowVar,
)
from trex.stl.variables import (
    CTRexVmDescBase,
    HasLayout,
    STLVmFlowVar,
    STLVmFlowVarRepeatableRandom,
    STLVmTupleGen,
    Value,
    Variable,
)


class CTRexScriptsBase:
    """Base of all programs of a packet builder."""

    def clone(self) -> Any:
        """Returns an independent copy."""
        return copy.deepcopy(self)


class STLScVmRaw(CTRexScriptsBase):
    """A program as a list of lines.

    :param cache_size: number of packets that are rendered once and then sent repeatedly
    """

    def __init__(
        self,
        list_of_commands: list[CTRexVmDescBase] | None = None,
        cache_size: int | None = None,
    ) -> None:
        validate_type("cache_size", cache_size, (type(None), int))
        self.commands = [] if list_of_commands is None else list_of_commands
        self.cache_size = cache_size

    def add_cmd(self, cmd: CTRexVmDescBase) -> None:
        """Appends a line."""
        self.commands.append(cmd)

    def instructions(self, packet: HasLayout) -> list[CTRexVmInsBase]:
        """Returns the instructions for a packet: the variables in the order of `next_var`, then the
        other lines in their order.
        """
        self._check_names()
        variables = {c.name: c for c in self.commands if isinstance(c, Variable)}
        ordered: list[CTRexVmDescBase] = list(_order_chained(variables))
        ordered += (c for c in self.commands if not isinstance(c, Variable))
        return [command.instruction(packet) for command in ordered]

    def _check_names(self) -> None:
        names: set[str] = set()
        for command in self.commands:
            for name in command.get_var_name():
                if name in names:
                    raise build_error(f"variable {name} is defined twice")
                names.add(name)
        for command in self.commands:
            name_read = command.get_var_ref()
            if name_read is not None and name_read not in names:
                raise build_error(f"variable {name_read} does not exist")


class STLVM(STLScVmRaw):
    """A program that is built line by line."""

    def __init__(self) -> None:
        super().__init__()

    def var(
        self,
        name: str,
        min_value: Any,
        max_value: Any,
        size: int,
        op: str,
        step: Value = 1,
        split_to_cores: bool = True,
        next_var: str | None = None,
        **k: Any,
    ) -> None:
        """Declares a variable: see `STLVmFlowVar`."""
        self.add_cmd(
            STLVmFlowVar(
                name,
                min_value=min_value,
                max_value=max_value,
                size=size,
                op=op,
                step=step,
                split_to_cores=split_to_cores,
                next_var=next_var,
                **k,
            )
        )

    def repeatable_random_var(
        self,
        fv_name: str,
        size: int,
        limit: int,
        seed: int | None = None,
        min_value: Value | None = None,
        max_value: Value | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        """Declares a variable: see `STLVmFlowVarRepeatableRandom`."""
        self.add_cmd(
            STLVmFlowVarRepeatableRandom(
                fv_name, size, limit, seed, min_value, max_value, split_to_cores, next_var
            )
        )

    def tuple_var(
        self,
        name: str,
        ip_min: Value,
        ip_max: Value,
        port_min: int,
        port_max: int,
        limit_flows: int = 0,
        **k: Any,
    ) -> None:
        """Declares pairs of address and port: see `STLVmTupleGen`."""
        self.add_cmd(STLVmTupleGen(name, ip_min, ip_max, port_min, port_max, limit_flows, **k))

    def write(
        self,
        fv_name: str,
        pkt_offset: Offset,
        offset_fixup: int = 0,
        add_val: int = 0,
        byte_order: str = "big",
    ) -> None:
        """Writes a variable: see `STLVmWrFlowVar`."""
        big = byte_order == "big"
        self.add_cmd(STLVmWrFlowVar(fv_name, pkt_offset, offset_fixup, add_val, big))

    def write_mask(
        self,
        fv_name: str,
        pkt_offset: Offset,
        pkt_cast_size: int,
        mask: int,
        shift: int = 0,
        offset_fixup: int = 0,
        add_val: int = 0,
        byte_order: str = "big",
    ) -> None:
        """Writes some bits of a variable: see `STLVmWrMaskFlowVar`."""
        self.add_cmd(
            STLVmWrMaskFlowVar(
                fv_name,
                pkt_offset,
                pkt_cast_size,
                mask,
                shift,
                add_val,
                offset_fixup,
                byte_order == "big",
            )
        )

    def trim(self, fv_name: str) -> None:
        """Truncates the frame: see `STLVmTrimPktSize`."""
        self.add_cmd(STLVmTrimPktSize(fv_name))

    def fix_chksum(self, offset: Offset = "IP") -> None:
        """Computes the IPv4 checksum: see `STLVmFixIpv4`."""
        self.add_cmd(STLVmFixIpv4(offset))

    def fix_chksum_hw(self, l3_offset: Offset, l4_offset: Offset, l4_type: int) -> None:
        """Leaves checksums to the interface: see `STLVmFixChecksumHw`."""
        self.add_cmd(STLVmFixChecksumHw(l3_offset, l4_offset, l4_type))

    def fix_chksum_icmpv6(self, l3_offset: Offset, l4_offset: Offset) -> None:
        """Computes the ICMPv6 checksum: see `STLVmFixIcmpv6`."""
        self.add_cmd(STLVmFixIcmpv6(l3_offset, l4_offset))

    def set_cached(self, cache_size: int) -> None:
        """Sets the number of packets that are rendered once and then sent repeatedly."""
        validate_type("cache_size", cache_size, int)
        self.cache_size = cache_size


def STLIPRange(
    src: dict[str, Any] | None = None,
    dst: dict[str, Any] | None = None,
    fix_chksum: bool = True,
) -> list[CTRexVmDescBase]:
    """Returns lines that count IPv4 addresses up. Each range is `{"start", "end", "step"}`."""
    program: list[CTRexVmDescBase] = []
    for name, addresses in (("src", src), ("dst", dst)):
        if addresses:
            program.append(
                STLVmFlowVar(
                    name,
                    min_value=addresses["start"],
                    max_value=addresses["end"],
                    size=4,
                    op="inc",
                    step=addresses["step"],
                )
            )
            program.append(STLVmWrFlowVar(name, pkt_offset=f"IP.{name}"))
    if fix_chksum:
        program.append(STLVmFixIpv4("IP"))
    return program


def program_from_json(document: dict[str, Any]) -> STLVM:
    """Creates the program of a stream's `vm` member. Raises `KeyError` for a missing member."""
    program = STLVM()
    if "cache" in document:
        program.set_cached(document["cache"])
    if not isinstance(document["instructions"], list):
        raise TRexError("vm.instructions is not a list")
    for instruction in document["instructions"]:
        program.add_cmd(_line_from_json(instruction))
    return program


def _line_from_json(entry: dict[str, Any]) -> CTRexVmDescBase:
    kind = entry["type"]
    if kind == "flow_var":
        return STLVmFlowVar(
            entry["name"],
            init_value=entry.get("init_value"),
            min_value=entry.get("min_value", 0),
            max_value=entry.get("max_value", 0),
            size=entry["size"],
            step=entry["step"],
            op=entry["op"],
            value_list=entry.get("value_list"),
            split_to_cores=entry.get("split_to_cores", True),
            next_var=entry.get("next_var"),
        )
    if kind == "flow_var_rand_limit":
        return STLVmFlowVarRepeatableRandom(
            entry["name"],
            size=entry["size"],
            limit=entry["limit"],
            seed=entry["seed"],
            min_value=entry["min_value"],
            max_value=entry["max_value"],
            split_to_cores=entry.get("split_to_cores", True),
            next_var=entry.get("next_var"),
        )
    if kind == "tuple_flow_var":
        return STLVmTupleGen(
            entry["name"],
            entry["ip_min"],
            entry["ip_max"],
            entry["port_min"],
            entry["port_max"],
            entry["limit_flows"],
            entry.get("flags", 0),
        )
    if kind == "write_flow_var":
        return STLVmWrFlowVar(
            entry["name"],
            entry["pkt_offset"],
            add_val=entry["add_value"],
            is_big=entry["is_big_endian"],
        )
    if kind == "write_mask_flow_var":
        return STLVmWrMaskFlowVar(
            entry["name"],
            entry["pkt_offset"],
            entry["pkt_cast_size"],
            entry["mask"],
            entry["shift"],
            entry["add_value"],
            is_big=entry["is_big_endian"],
        )
    if kind == "trim_pkt_size":
        return STLVmTrimPktSize(entry["name"])
    if kind == "fix_checksum_ipv4":
        return STLVmFixIpv4(entry["pkt_offset"])
    if kind in ("fix_checksum_hw", "fix_checksum_icmpv6"):
        l3_offset = entry["l2_len"]
        l4_offset = l3_offset + entry["l3_len"]
        if kind == "fix_checksum_icmpv6":
            return STLVmFixIcmpv6(l3_offset, l4_offset)
        # Offset 0 stands for no transport header.
        l4_offset = l4_offset if entry["l3_len"] else 0
        return STLVmFixChecksumHw(l3_offset, l4_offset, entry["l4_type"])
    raise TRexError(f"vm.instructions: unknown instruction type '{kind}'")


def _order_chained(variables: dict[str, Variable]) -> list[Variable]:
    """Returns the variables, each followed by the one that it advances.

    A variable that another one advances is the same on each core: it is never split.
    """
    before: dict[str, str] = {}
    for variable in variables.values():
        following = variable.next_var
        if following is None:
            continue
        if following not in variables:
            raise build_error(
                f"variable {following} does not exist, {variable.name} has it as next_var"
            )
        if following in before:
            raise build_error(
                f"{before[following]} and {variable.name} both have {following} as next_var"
            )
        before[following] = variable.name
        variables[following].split_to_cores = False
    ordered: list[Variable] = []
    for variable in variables.values():
        if variable.name in before:
            continue
        ordered.append(variable)
        while ordered[-1].next_var is not None:
            ordered.append(variables[ordered[-1].next_var])
    if len(ordered) != len(variables):
        raise build_error("next_var of the variables forms a cycle")
    return ordered
