"""Writes `src/wirestorm/headers.py` from the headers that the native module knows.

python tools/make_headers.py
"""

from __future__ import annotations

from pathlib import Path

from wirestorm import _native

TARGET = Path(__file__).parents[1] / "src/wirestorm/headers.py"

_BEGIN = '''"""Headers of packets, outermost first; made by tools/make_headers.py.

A field that is not given is filled in: lengths, checksums and numbers of next protocols follow from
the rest of the packet. What is given is kept, so frames can be wrong on purpose:
`ipv4(header_checksum="bad")`. A field can vary from frame to frame: see `wirestorm.patterns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from wirestorm._plain import Scalar
from wirestorm.header import Header, given
from wirestorm.patterns import Pattern

Field = Optional[Union[Scalar, Pattern, bytes, dict[str, Any]]]
Items = Optional[Sequence[Union[Header, dict[str, Any]]]]
'''


def sources() -> dict[Path, str]:
    """The module's text."""
    found = _native.headers()
    names = "".join(f'    "{name}",\n' for name, *_ in found)
    text = f"{_BEGIN}\n__all__ = [\n{names}]\n" + "".join(_function(*it) for it in found)
    return {TARGET: text}


def _function(name: str, description: str, fields: list[str], items: str | None) -> str:
    arguments = [f"    {field}: Field = None,\n" for field in fields]
    if items:
        arguments.append(f"    {items}: Items = None,\n")
    # The only field of a header is the header.
    star = "" if len(arguments) == 1 else "    *,\n"
    return (
        f"\n\ndef {name}(\n{star}{''.join(arguments)}) -> Header:\n"
        f'    """{description}."""\n'
        f'    return Header("{name}", given(locals()))\n'
    )


if __name__ == "__main__":
    for path, text in sources().items():
        path.write_text(text)
