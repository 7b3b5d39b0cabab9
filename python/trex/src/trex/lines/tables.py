"""Plain-text tables of values and counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_GAP = "  "


def table(title: str, headers: Iterable[str], rows: Iterable[Iterable[Any]], empty: str) -> str:
    """Formats rows in columns below headers, or returns `empty` without rows."""
    lines = [[str(number(value)) for value in row] for row in rows]
    if not lines:
        return empty
    lines.insert(0, list(headers))
    widths = [max(map(len, column)) for column in zip(*lines)]
    padded = (_GAP.join(text.ljust(width) for text, width in zip(line, widths)) for line in lines)
    return "\n".join([title, *(line.rstrip() for line in padded)])


def values(title: str, counters: Mapping[str, Any]) -> str:
    """Formats values, one a line with its name."""
    return "\n".join(
        [title, *(f"  {name:<24} {number(value)}" for name, value in counters.items())]
    )


def sides(sections: Mapping[str, Mapping[str, float]]) -> str:
    """Formats counters of several sections side by side."""
    lines = [f"{'':<28} " + " ".join(f"{name:>20}" for name in sections)]
    for name in dict.fromkeys(name for section in sections.values() for name in section):
        cells = (f"{number(section.get(name, 0)):>20}" for section in sections.values())
        lines.append(f"{name:<28} " + " ".join(cells))
    return "\n".join(lines)


def number(value: Any) -> Any:
    """Formats a number with thousands separators and at most three decimals."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
