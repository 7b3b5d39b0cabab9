"""Writes `src/wirestorm/reports.py` from the schema of a run's result.

python tools/make_reports.py
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src/wirestorm/reports.py"
SCHEMA = Path(__file__).parents[3] / "schemas/wirestorm.run.1.json"

_BEGIN = '''"""What a run reports; made by tools/make_reports.py from schemas/wirestorm.run.1.json.

Times are in seconds or nanoseconds as their names say, rates per second, lengths without FCS unless
the name says L1 (with FCS, preamble and inter-packet gap) or L2 (with FCS).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional
'''

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_ROOT = "RunReport"


def source() -> str:
    """The module's text."""
    schema = json.loads(SCHEMA.read_text())
    classes = [_class(name, of) for name, of in schema["$defs"].items()]
    return "\n\n".join([_BEGIN, *classes, _class(_ROOT, schema)])


def _class(name: str, schema: dict[str, Any]) -> str:
    lines = ["@dataclass(frozen=True)", f"class {name}:", *_text(schema["description"]), ""]
    # Those that are always there, in the order in which they are written.
    for member in schema["required"]:
        of = schema["properties"][member]
        kind = _type(of)
        # Not shown: hundreds of numbers, which a summary stands beside.
        hidden = " = field(repr=False)" if member == "buckets" else ""
        lines += [f"    {member}: {kind}{hidden}", *_text(of.get("description", ""))]
    return "\n".join(lines) + "\n"


def _text(text: str) -> list[str]:
    quoted = f'"""{" ".join(text.split())}"""'
    return textwrap.wrap(quoted, 100, initial_indent="    ", subsequent_indent="    ")


def _type(of: dict[str, Any]) -> str:
    if "$ref" in of:
        return str(of["$ref"]).rpartition("/")[2]
    if "anyOf" in of:
        (kind,) = [_type(one) for one in of["anyOf"] if one != {"type": "null"}]
        return f"Optional[{kind}]"
    if isinstance(of["type"], list):
        (kind,) = [one for one in of["type"] if one != "null"]
        return f"Optional[{_type({**of, 'type': kind})}]"
    if of["type"] == "array" and "prefixItems" in of:
        return f"tuple[{', '.join(map(_type, of['prefixItems']))}]"
    if of["type"] == "array":
        return f"list[{_type(of['items'])}]"
    return _TYPES[of["type"]]


if __name__ == "__main__":
    TARGET.write_text(source())
