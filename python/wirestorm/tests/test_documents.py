"""Runs the Python examples of the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENTS = ["README.md", "docs/guide/python.md", "python/wirestorm/README.md"]


def python_blocks(text: str) -> str:
    """Returns the Python blocks of a document, with each line at its line number."""
    lines, is_python = [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        lines.append(line if is_python and not fence else "")
        if fence:
            is_python = line == "```python"
    return "\n".join(lines)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_python_blocks_of_a_document_run(name, lab, tmp_path, monkeypatch):
    pytest.importorskip("scapy")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    source = python_blocks((ROOT / name).read_text())
    assert "ws.run(" in source
    # Interface names in the documents.
    source = source.replace('"eth1"', repr(lab.a)).replace('"eth2"', repr(lab.b))
    exec(compile(source, name, "exec"), {"__name__": "__main__"})


def test_python_blocks_of_the_server_guide_run(server, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    name = "docs/guide/server.md"
    source = python_blocks((ROOT / name).read_text())
    for document, port in [("localhost", server.url), ("eth1", "left"), ("eth2", "right")]:
        assert f'"{document}"' in source
        source = source.replace(f'"{document}"', repr(port))
    exec(compile(source, name, "exec"), {"__name__": "__main__"})
