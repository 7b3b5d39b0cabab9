"""Writes the dataclasses of results, `src/wirestorm/reports.py`, from their schema.

python tools/make_reports.py
"""

from __future__ import annotations

import json
import keyword
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src/wirestorm"
SCHEMAS = Path(__file__).parents[3] / "schemas"

_SCHEMA = "wirestorm.result.2.json"
# The class of the whole document.
_ROOT = "RunResult"

_BEGIN = f'''"""What a run reports, by schemas/{_SCHEMA}; made by tools/make_reports.py.

Times are in seconds or nanoseconds as their names say, rates per second, lengths without FCS unless
the name says L1 (with FCS, preamble and inter-packet gap) or L2 (with FCS).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Optional
'''

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def sources() -> dict[Path, str]:
    """The module and its text."""
    schema = json.loads((SCHEMAS / _SCHEMA).read_text())
    definitions = {**schema["$defs"], _ROOT: schema}
    parts = [_word(name, of) or _class(name, of) for name, of in definitions.items()]
    return {PACKAGE / "reports.py": "\n\n".join([_BEGIN, *parts])}


def _word(name: str, schema: dict[str, Any]) -> str | None:
    """The values of a word of the vocabulary; None of what is no such word."""
    if "oneOf" not in schema:
        return None
    values = {one["const"]: one["description"] for one in schema["oneOf"]}
    told = " ".join(f"`{value}`: {text}" for value, text in values.items())
    lines = textwrap.wrap(f'"""{schema["description"]} {told}"""', 100)
    return "\n".join([f"{name} = {_literal(values)}", *lines]) + "\n"


def _class(name: str, schema: dict[str, Any]) -> str:
    lines = ["@dataclass(frozen=True)", f"class {name}:", *_text(schema["description"]), ""]
    # Those that are always there, in the order in which they are written.
    for member in schema["required"]:
        of = schema["properties"][member]
        kind = _type(of)
        # Not shown: hundreds of numbers, which a summary stands beside.
        hidden = " = field(repr=False)" if member == "buckets" else ""
        lines += [f"    {_field(member)}: {kind}{hidden}", *_text(of.get("description", ""))]
    # Those that are there where there is something to say.
    for member in sorted(schema["properties"].keys() - schema["required"]):
        of = schema["properties"][member]
        named = f"    {_field(member)}: {_type(of)} = {_none(of)}"
        lines += [named, *_text(of.get("description", ""))]
    return "\n".join(lines) + "\n"


def _field(member: str) -> str:
    """The name of a member's field, which a keyword of Python cannot be."""
    return f"{member}_" if keyword.iskeyword(member) else member


def _text(text: str) -> list[str]:
    quoted = f'"""{" ".join(text.split())}"""'
    return textwrap.wrap(quoted, 100, initial_indent="    ", subsequent_indent="    ")


def _type(of: dict[str, Any]) -> str:
    if "$ref" in of:
        return str(of["$ref"]).rpartition("/")[2]
    if "anyOf" in of:
        (kind,) = [_type(one) for one in of["anyOf"] if one != {"type": "null"}]
        return f"Optional[{kind}]"
    if "enum" in of:
        kind = _literal(value for value in of["enum"] if value is not None)
        return f"Optional[{kind}]" if None in of["enum"] else kind
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


def _literal(values: Iterable[str]) -> str:
    return f"Literal[{', '.join(map(json.dumps, values))}]"


def _none(of: dict[str, Any]) -> str:
    """What a member is where there is nothing to say."""
    kind = _type(of).partition("[")[0]
    return f"field(default_factory={kind})" if kind in ("list", "dict") else "None"


if __name__ == "__main__":
    for path, text in sources().items():
        path.write_text(text)
