"""Patterns: values of a field that change with each frame.

>>> from wirestorm import increment, ipv4
>>> ipv4(src=increment("10.0.0.1", 250), dst="192.0.2.1")
ipv4(src=increment(start='10.0.0.1', count=250), dst='192.0.2.1')

All patterns of a flow advance with every frame. With `after="ipv4.src"`, a field advances only when
that field has completed its cycle. See also `restart_after` and `masked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wirestorm._plan_values import Scalar, plan_value


@dataclass(frozen=True)
class Pattern:
    """A pattern: its form and content, in the words of a plan."""

    form: str
    content: Any
    after: str | None = None
    modifiers: dict[str, Any] = field(default_factory=dict)

    def restart_after(self, count: int) -> Pattern:
        """Restarts the pattern after `count` values, and with it the fields that wait for it."""
        return replace(self, modifiers={**self.modifiers, "restart_after": count})

    def masked(
        self, mask: Scalar | None = None, *, shift: int = 0, value: Scalar | None = None
    ) -> Pattern:
        """Changes only the bits of `mask`, with values shifted left by `shift` bits.

        A negative `shift` shifts right. The other bits are those of `value`.
        """
        part = {"mask": mask, "shift": shift, "value": value}
        changes = {name: it for name, it in part.items() if it is not None}
        return replace(self, modifiers={**self.modifiers, **changes})

    def to_plan(self) -> dict[str, Any]:
        """Returns the pattern in the form of a plan."""
        document = {self.form: plan_value(self.content), **plan_value(self.modifiers)}
        if self.after is not None:
            document["after"] = self.after
        return document

    def __repr__(self) -> str:
        if isinstance(self.content, dict):
            arguments = [f"{name}={value!r}" for name, value in self.content.items()]
        else:
            arguments = [repr(value) for value in self.content]
        if self.after is not None:
            arguments.append(f"after={self.after!r}")
        modifiers = f" with {self.modifiers}" if self.modifiers else ""
        return f"{self.form}({', '.join(arguments)}){modifiers}"


def values(*items: Scalar, after: str | None = None) -> Pattern:
    """These values, round robin."""
    return Pattern("values", list(items), after)


def increment(start: Scalar, count: int, *, step: Scalar = 1, after: str | None = None) -> Pattern:
    """`count` values from `start`, in steps of `step`; then it restarts."""
    return _counter("increment", start, count, step, after)


def decrement(start: Scalar, count: int, *, step: Scalar = 1, after: str | None = None) -> Pattern:
    """`count` values from `start` downwards, in steps of `step`; then it restarts."""
    return _counter("decrement", start, count, step, after)


def random(
    min: Scalar | None = None,
    max: Scalar | None = None,
    *,
    seed: int | None = None,
    count: int | None = None,
    after: str | None = None,
) -> Pattern:
    """Random values from `min` to `max`, by default the field's whole range.

    The same `seed` gives the same values. With `count`, the sequence repeats after that number.
    """
    content = {"min": min, "max": max, "seed": seed, "count": count}
    arguments = {name: value for name, value in content.items() if value is not None}
    return Pattern("random", arguments, after)


def weighted(
    choices: Mapping[Scalar, int] | list[tuple[Scalar, int]],
    *,
    seed: int | None = None,
    after: str | None = None,
) -> Pattern:
    """Random choice by weight: `{443: 8, 80: 2}`."""
    pairs = [list(pair) for pair in (choices.items() if isinstance(choices, Mapping) else choices)]
    content: dict[str, Any] = {"choices": pairs}
    if seed is not None:
        content["seed"] = seed
    return Pattern("weighted", content, after)


def _counter(form: str, start: Scalar, count: int, step: Scalar, after: str | None) -> Pattern:
    content: dict[str, Any] = {"start": start, "count": count}
    if step != 1:
        content["step"] = step
    return Pattern(form, content, after)
