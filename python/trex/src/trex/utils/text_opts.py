"""Text for terminals."""

from __future__ import annotations

from trex.utilities import format_num

__all__ = ["format_num", "format_text"]

_CODES = {
    "bold": 1,
    "underline": 4,
    "black": 30,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
    "white": 37,
}


def format_text(text: object, *args: str) -> str:
    """Formats text in colours and styles: `format_text("done", "green", "bold")`."""
    codes = ";".join(str(_CODES[style]) for style in args if style in _CODES)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else str(text)
