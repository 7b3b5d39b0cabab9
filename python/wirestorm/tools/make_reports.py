"""Writes the dataclasses of results, in `src/wirestorm`, from their schemas.

python tools/make_reports.py
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src/wirestorm"
SCHEMAS = Path(__file__).parents[3] / "schemas"

_BEGIN = '''"""What {what} reports, by schemas/{schema}; made by tools/make_reports.py.

Times are in seconds or nanoseconds as their names say, {units}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional
'''

_OF_RUNS = """rates per second, lengths without FCS unless
the name says L1 (with FCS, preamble and inter-packet gap) or L2 (with FCS)."""
# The module, what reports, its schema, units, and the class of the whole.
_MODULES = [
    ("reports.py", "a run", "wirestorm.run.1.json", _OF_RUNS, "RunReport"),
    (
        "emulation_reports.py",
        "an emulation",
        "wirestorm.emulation.1.json",
        "bytes of frames without FCS.",
        "EmulationReport",
    ),
]

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def sources() -> dict[Path, str]:
    """The modules' texts."""
    found = {}
    for module, what, name, units, root in _MODULES:
        schema = json.loads((SCHEMAS / name).read_text())
        begin = _BEGIN.format(what=what, schema=name, units=units)
        classes = [_class(name, of) for name, of in schema["$defs"].items()]
        found[PACKAGE / module] = "\n\n".join([begin, *classes, _class(root, schema)])
    return found


def _class(name: str, schema: dict[str, Any]) -> str:
    lines = ["@dataclass(frozen=True)", f"class {name}:", *_text(schema["description"]), ""]
    # Those that are always there, in the order in which they are written.
    for member in schema["required"]:
        of = schema["properties"][member]
        kind = _type(of)
        # Not shown: hundreds of numbers, which a summary stands beside.
        hidden = " = field(repr=False)" if member == "buckets" else ""
        lines += [f"    {member}: {kind}{hidden}", *_text(of.get("description", ""))]
    # Those that are there where there is something to say.
    for member in sorted(schema["properties"].keys() - schema["required"]):
        of = schema["properties"][member]
        lines += [f"    {member}: {_type(of)} = {_none(of)}", *_text(of.get("description", ""))]
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
    if of["type"] == "object":
        return f"dict[str, {_type(of['additionalProperties'])}]"
    if of["type"] == "array" and "prefixItems" in of:
        return f"tuple[{', '.join(map(_type, of['prefixItems']))}]"
    if of["type"] == "array":
        return f"list[{_type(of['items'])}]"
    return _TYPES[of["type"]]


def _none(of: dict[str, Any]) -> str:
    """What a member is where there is nothing to say."""
    kind = _type(of).partition("[")[0]
    return f"field(default_factory={kind})" if kind in ("list", "dict") else "None"


if __name__ == "__main__":
    for path, text in sources().items():
        path.write_text(text)
