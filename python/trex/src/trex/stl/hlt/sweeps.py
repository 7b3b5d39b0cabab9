"""Header fields that change with each frame."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError
from trex.stl.variables import CTRexVmDescBase, STLVmFlowVar, get_max_by_size

_OPERATIONS = {"increment": "inc", "decrement": "dec"}


class Sweeps:
    """The program of a stream, built header by header.

    Fields that count the same way share a variable. It counts around the middle of its range, and
    each field adds the offset to its first value.
    """

    def __init__(self) -> None:
        self.commands: list[CTRexVmDescBase] = []
        self._counters: dict[tuple[str, int, int, int], str] = {}
        self._names: set[str] = set()

    def variable(
        self,
        field: str,
        size: int,
        mode: str,
        start: int,
        step: int,
        count: Any,
        random_name: str,
        counter_prefix: str = "",
    ) -> tuple[str, int] | None:
        """Returns the variable of a field and its offset; None if the field is fixed.

        :param field: argument of the value, for messages
        :param size: bytes of the field
        :param count: number of values
        :param counter_prefix: prefix of a counter's name; if empty, `inc` or `dec`
        """
        if mode == "fixed":
            return None
        steps = int(count) - 1
        if steps < 0:
            raise TRexError(f"{field}_count is {count}; expected at least 1")
        if mode == "random":
            name = self._unused_name(random_name)
            self.commands.append(
                STLVmFlowVar(name, size=size, op="random", max_value=get_max_by_size(size))
            )
            return name, 0
        if steps == 0:
            return None
        if step < 1:
            raise TRexError(f"{field}_step is {step}; expected at least 1")
        if mode not in _OPERATIONS:
            raise TRexError(f"{field}_mode is fixed, increment, decrement or random, not {mode}")
        operation = _OPERATIONS[mode]
        middle = get_max_by_size(size) // 2
        counter = (operation, size, steps, step)
        if counter not in self._counters:
            prefix = counter_prefix or operation
            name = self._unused_name(f"{prefix}_{size}_{steps}_{step}")
            self._counters[counter] = name
            down = steps * step if operation == "dec" else 0
            self.commands.append(
                STLVmFlowVar(
                    name,
                    size=size,
                    op=operation,
                    step=step,
                    min_value=middle - down,
                    max_value=middle - down + steps * step,
                )
            )
        return self._counters[counter], start - middle

    def _unused_name(self, name: str) -> str:
        """Returns the name, or a similar unused one."""
        free = name
        number = 1
        while free in self._names:
            number += 1
            free = f"{name}_{number}"
        self._names.add(free)
        return free
