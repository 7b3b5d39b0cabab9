"""Header fields that change from frame to frame."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError
from trex.stl.variables import CTRexVmDescBase, STLVmFlowVar, get_max_by_size

_OPERATIONS = {"increment": "inc", "decrement": "dec"}


class Sweeps:
    """The program of a stream, which grows header by header.

    Variables that count the same way are one variable: it counts around the middle of its size, and
    each field adds the distance to where it starts itself.
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
        """The variable of a field and what is to be added to it; None if the field is fixed.

        :param field: the argument that says the value, for messages
        :param size: bytes of the field
        :param count: how many values there are
        :param counter_prefix: what a counter's name begins with; if empty, `inc` or `dec`
        """
        if mode == "fixed":
            return None
        steps = int(count) - 1
        if steps < 0:
            raise TRexError(f"{field}_count is {count}; it has to be at least 1")
        if mode == "random":
            name = self._free(random_name)
            self.commands.append(
                STLVmFlowVar(name, size=size, op="random", max_value=get_max_by_size(size))
            )
            return name, 0
        if steps == 0:
            return None
        if step < 1:
            raise TRexError(f"{field}_step is {step}; it has to be at least 1")
        if mode not in _OPERATIONS:
            raise TRexError(f"{field}_mode is fixed, increment, decrement or random, not {mode}")
        operation = _OPERATIONS[mode]
        middle = get_max_by_size(size) // 2
        counter = (operation, size, steps, step)
        if counter not in self._counters:
            prefix = counter_prefix or operation
            name = self._free(f"{prefix}_{size}_{steps}_{step}")
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

    def _free(self, name: str) -> str:
        """The name, or the next one like it that no variable has."""
        free = name
        number = 1
        while free in self._names:
            number += 1
            free = f"{name}_{number}"
        self._names.add(free)
        return free
