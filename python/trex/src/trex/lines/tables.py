"""Values and counters as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_GAP = "  "


def table(title: str, headers: Iterable[str], rows: Iterable[Iterable[Any]], empty: str) -> str:
    """Columns below their headers, or `empty` where there are no rows."""
    lines = [[str(number(value)) for value in row] for row in rows]
    if not lines:
        return empty
    lines.insert(0, list(headers))
    widths = [max(map(len, column)) for column in zip(*lines)]
    shown = (_GAP.join(text.ljust(width) for text, width in zip(line, widths)) for line in lines)
    return "\n".join([title, *(line.rstrip() for line in shown)])


def values(title: str, named: Mapping[str, Any]) -> str:
    """Values, each on a line by its name."""
    return "\n".join([title, *(f"  {name:<24} {number(value)}" for name, value in named.items())])


def sides(sections: Mapping[str, Mapping[str, float]]) -> str:
    """Counters of sections beside each other."""
    lines = [f"{'':<28} " + " ".join(f"{name:>20}" for name in sections)]
    for name in dict.fromkeys(name for section in sections.values() for name in section):
        shown = (f"{number(section.get(name, 0)):>20}" for section in sections.values())
        lines.append(f"{name:<28} " + " ".join(shown))
    return "\n".join(lines)


def number(value: Any) -> Any:
    """A number with its thousands apart, and three digits behind the point where it has any."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
