"""Variables of the field engine."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import Any, Union

from trex.addresses import ip2int
from trex.arguments import validate_type
from trex.stl.instructions import (
    CTRexVmInsBase,
    CTRexVmInsFlowVar,
    CTRexVmInsFlowVarRandLimit,
    CTRexVmInsTupleGen,
    build_error,
)
from trex.stl.layout import PacketLayout

Value = Union[int, str]

_VALUE_LIST_LEN_MAX = 0xFFFF


class HasLayout(ABC):
    """Provides the layout of a program's packet, for names of fields."""

    @abstractmethod
    def layout(self) -> PacketLayout:
        """Returns the layout of the packet."""


class CTRexVmDescBase(ABC):
    """A line of a program, as a profile writes it."""

    def get_var_ref(self) -> str | None:
        """Returns the variable that the line reads."""
        return None

    def get_var_name(self) -> list[str]:
        """Returns the variables that the line declares."""
        return []

    @abstractmethod
    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        """Returns the instruction for a packet, with field names converted to offsets."""


class Variable(CTRexVmDescBase):
    """A variable that can advance another one when it wraps (`next_var`)."""

    def __init__(self, name: str, size: int, split_to_cores: bool, next_var: str | None) -> None:
        validate_type("name", name, str)
        valid_fv_size(size)
        validate_type("split_to_cores", split_to_cores, bool)
        validate_type("next_var", next_var, (type(None), str))
        if next_var == name:
            raise build_error(f"variable {name} cannot be its own next_var")
        self.name = name
        self.size = size
        self.split_to_cores = split_to_cores
        self.next_var = next_var

    def get_var_name(self) -> list[str]:
        return [self.name]


class STLVmFlowVar(Variable):
    """A variable that counts up (`inc`), counts down (`dec`) or is random (`random`).

    :param init_value: first value; default: the lowest, or the highest for `dec`
    :param min_value: lowest value, as a number or an IPv4 address
    :param max_value: highest value, inclusive
    :param size: 1, 2, 4 or 8 bytes
    :param step: step of a counter
    :param value_list: up to 65,535 values instead of the range
    :param split_to_cores: each core uses its share of the values instead of all
    :param next_var: variable that advances only when this one wraps
    """

    def __init__(
        self,
        name: str,
        init_value: Value | None = None,
        min_value: Value = 0,
        max_value: Value = 255,
        size: int = 4,
        step: Value = 1,
        op: str = "inc",
        value_list: list[Value] | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        super().__init__(name, size, split_to_cores, next_var)
        valid_fv_ops(op)
        if next_var is not None and op == "random":
            raise build_error(
                f"variable {name} is random: it never wraps to make {next_var} advance"
            )
        self.op = op
        self.step = convert_val(step)
        if self.step <= 0:
            raise build_error(f"the step of variable {name} is {self.step}; expected more than 0")
        self.init_value: int | None = None
        self.min_value: int | None = None
        self.max_value: int | None = None
        self.value_list: list[int] | None = None
        if value_list is not None:
            if len(value_list) > _VALUE_LIST_LEN_MAX:
                raise build_error(
                    f"variable {name} lists {len(value_list)} values, "
                    f"more than {_VALUE_LIST_LEN_MAX}"
                )
            self.value_list = convert_val_list(value_list)
            valid_fv_var_sizes(size, self.value_list)
            return
        self.min_value = lowest = convert_val(min_value)
        self.max_value = highest = convert_val(max_value)
        if init_value is None:
            first = highest if op == "dec" else lowest
        else:
            first = convert_val(init_value)
        self.init_value = first
        valid_fv_var_sizes(size, [lowest, highest, first, self.step])
        valid_fv_min_max(lowest, highest)
        valid_fv_init(first, lowest, highest)
        valid_fv_cycle(lowest, highest, self.step, op)

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsFlowVar(
            name=self.name,
            size=self.size,
            op=self.op,
            init_value=self.init_value,
            min_value=self.min_value,
            max_value=self.max_value,
            step=self.step,
            value_list=self.value_list,
            split_to_cores=self.split_to_cores,
            next_var=self.next_var,
        )


class STLVmFlowVarRepeatableRandom(Variable):
    """A random variable that repeats after `limit` values.

    :param limit: number of values before it repeats
    :param seed: seed; random from 1 to 32,000 if None
    :param max_value: highest value; the maximum of the size if None
    """

    def __init__(
        self,
        name: str,
        size: int = 4,
        limit: int = 100,
        seed: int | None = None,
        min_value: Value | None = 0,
        max_value: Value | None = None,
        split_to_cores: bool = True,
        next_var: str | None = None,
    ) -> None:
        super().__init__(name, size, split_to_cores, next_var)
        if limit <= 0:
            raise build_error(f"the limit of variable {name} is {limit}; expected more than 0")
        self.limit = limit
        self.seed = random.randint(1, 32000) if seed is None else seed
        self.min_value = 0 if min_value is None else convert_val(min_value)
        self.max_value = get_max_by_size(size) if max_value is None else convert_val(max_value)
        valid_fv_var_sizes(size, [self.min_value, self.max_value])
        valid_fv_min_max(self.min_value, self.max_value)

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsFlowVarRandLimit(
            name=self.name,
            size=self.size,
            limit=self.limit,
            seed=self.seed,
            min_value=self.min_value,
            max_value=self.max_value,
            split_to_cores=self.split_to_cores,
            next_var=self.next_var,
        )


class STLVmTupleGen(CTRexVmDescBase):
    """Pairs of an address, `NAME.ip`, and a port, `NAME.port`: clients and their connections.

    :param limit_flows: number of pairs before they repeat
    :param flags: 1 for ports beyond their limits
    """

    def __init__(
        self,
        name: str,
        ip_min: Value = "0.0.0.1",
        ip_max: Value = "0.0.0.10",
        port_min: int = 1025,
        port_max: int = 65535,
        limit_flows: int = 100000,
        flags: int = 0,
    ) -> None:
        validate_type("name", name, str)
        for argument, number in (
            ("port_min", port_min),
            ("port_max", port_max),
            ("limit_flows", limit_flows),
            ("flags", flags),
        ):
            validate_type(argument, number, int)
        self.name = name
        self.ip_min = convert_val(ip_min)
        self.ip_max = convert_val(ip_max)
        self.port_min = port_min
        self.port_max = port_max
        self.limit_flows = limit_flows
        self.flags = flags

    def get_var_name(self) -> list[str]:
        return [f"{self.name}.ip", f"{self.name}.port"]

    def instruction(self, packet: HasLayout) -> CTRexVmInsBase:
        return CTRexVmInsTupleGen(
            name=self.name,
            ip_min=self.ip_min,
            ip_max=self.ip_max,
            port_min=self.port_min,
            port_max=self.port_max,
            limit_flows=self.limit_flows,
            flags=self.flags,
        )


def convert_val(val: Any) -> int:
    """Converts a number or an IPv4 address to an integer."""
    if isinstance(val, int):
        return val
    if isinstance(val, str):
        return ip2int(val)
    raise build_error(f"{val!r} is neither a number nor an IPv4 address")


def convert_val_list(val: Any) -> list[int]:
    """Converts numbers and IPv4 addresses to integers."""
    if not isinstance(val, list):
        raise build_error(f"{val!r} is not a list of values")
    return [convert_val(value) for value in val]


def check_for_int(val: object) -> None:
    """Raises `TRexTypeError` unless `val` is an integer."""
    validate_type("val", val, int)


def get_max_by_size(size: int) -> int:
    """Returns the highest value of `size` bytes."""
    return (1 << 8 * size) - 1


def valid_fv_size(size: int) -> None:
    """Raises unless `size` is valid for a variable."""
    if size not in CTRexVmInsFlowVar.VALID_SIZES:
        raise build_error(f"a variable has 1, 2, 4 or 8 bytes, not {size}")


def valid_fv_ops(op: str) -> None:
    """Raises unless `op` is a valid operation."""
    if op not in CTRexVmInsFlowVar.OPERATIONS:
        raise build_error(
            f"a variable does one of {', '.join(CTRexVmInsFlowVar.OPERATIONS)}, not {op}"
        )


def valid_fv_var_sizes(size: int, vars: list[int]) -> None:
    """Raises unless each value fits in `size` bytes."""
    for value in vars:
        if not 0 <= value <= get_max_by_size(size):
            raise build_error(f"{value} does not fit in a variable of {size} bytes")


def valid_fv_min_max(min_value: int, max_value: int) -> None:
    """Raises if the range is empty."""
    if min_value > max_value:
        raise build_error(f"the highest value, {max_value}, is below the lowest, {min_value}")


def valid_fv_init(init_value: int, min_value: int, max_value: int) -> None:
    """Raises unless the first value is in the range."""
    if not min_value <= init_value <= max_value:
        raise build_error(
            f"the first value, {init_value}, is not within {min_value} to {max_value}"
        )


def valid_fv_cycle(min_value: int, max_value: int, step: int, op: str) -> None:
    """Raises if the range cannot be extended to a multiple of the step.

    The engine extends such a range: upwards for `inc`, downwards for `dec`.
    """
    missing = -(max_value - min_value + 1) % step
    room = {"inc": get_max_by_size(8) - max_value, "dec": min_value}.get(op, missing)
    if missing > room:
        raise build_error(
            f"{min_value} to {max_value} is not a multiple of the step {step}, "
            "and there is no room to extend it"
        )
