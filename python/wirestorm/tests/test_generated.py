"""Generated modules match their tools, the native module and the schema."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["make_headers", "make_reports"])
def test_generated_module_is_up_to_date(name):
    path = PACKAGE / f"tools/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for module, text in tool.sources().items():
        assert module.read_text() == text, f"run: python {path.relative_to(PACKAGE)}"
