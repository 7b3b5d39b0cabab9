"""No import cycles between modules, including imports for types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2]


def modules(root: Path) -> dict[str, Path]:
    """Returns the files below a folder by module name."""
    named = {
        ".".join(file.relative_to(root).with_suffix("").parts): file for file in root.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): file for name, file in named.items()}


def imported(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yields the modules of a package that a file imports anywhere."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner & set(known)
            # Compiled modules are not files, and need nothing from their parent.
            if any(one not in known and not one.endswith("._native") for one in inner):
                yield node.module


@pytest.mark.parametrize("package", ["trex/src", "wirestorm/src"])
def test_imports_have_no_cycles(package):
    known = modules(PACKAGES / package)
    assert known
    graph = {
        name: {one for one in imported(file, known) if one in known and one != name}
        for name, file in known.items()
    }
    # A cycle raises an exception with its modules.
    TopologicalSorter(graph).prepare()
