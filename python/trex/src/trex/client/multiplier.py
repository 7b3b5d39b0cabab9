"""Multipliers of rates: `3`, `23%`, `10kpps`, `1gbps`, `1gbpsl1`; `+5%`, `-1mpps`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from trex.errors import TRexArgumentError

# TRex accepts the sign behind the unit.
_FORM = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(|%|[kmg]?(?:pps|bps|bpsl1))([+-]?)", re.IGNORECASE
)
_SCALES = {"k": 1e3, "m": 1e6, "g": 1e9}
_FORMS = "a factor such as 2, 50%, 10kpps, 1gbps or 1gbpsl1"


@dataclass(frozen=True)
class Multiplier:
    """A value with its unit (none for a factor), and an optional change of the current rate."""

    value: float
    unit: str = ""
    sign: int = 0

    @classmethod
    def parse(cls, text: object, allow_update: bool = False) -> Multiplier:
        """Parses a multiplier; with `allow_update` also a change of the current rate: `+5%`,
        `-1mpps`.

        Raises `TRexArgumentError` if it is invalid.
        """
        found = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
        expected = f"{_FORMS}, also with + or -" if allow_update else _FORMS
        signs = "" if found is None else found[1] + found[4]
        if found is None or len(signs) > 1 or (signs and not allow_update):
            raise TRexArgumentError("mult", text, expected)
        unit, scale = found[3].lower(), 1.0
        if unit[:1] in _SCALES:
            unit, scale = unit[1:], _SCALES[unit[0]]
        value = float(found[2]) * scale
        if value == 0:
            raise TRexArgumentError("mult", text, f"{expected}; more than 0")
        return cls(value, unit, {"": 0, "+": 1, "-": -1}[signs])

    def shared(self, ports: int) -> Multiplier:
        """Returns the share of each of `ports` ports that send the rate together."""
        return replace(self, value=self.value / ports) if self.unit else self

    def apply_to(self, load: tuple[float, float, float], factor: float) -> Multiplier:
        """Applies a change to the current load (frames, bits at layer 2 and layer 1 per second).

        `factor` is the current multiplier, for changes without a unit.
        """
        if not self.sign:
            return self
        change = self.sign * self.value
        if self.unit == "%":
            return Multiplier(load[0] * (1 + change / 100), "pps")
        if not self.unit:
            return Multiplier(factor + change)
        return Multiplier(load[("pps", "bps", "bpsl1").index(self.unit)] + change, self.unit)

    def __str__(self) -> str:
        return f"{self.value:.9f}".rstrip("0").rstrip(".") + self.unit
