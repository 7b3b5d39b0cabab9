"""`python -m trex SCRIPT`, with a small stand-in for a TRex tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 60
INTERACTIVE = "automation/trex_control_plane/interactive"
SCRIPT = """
import pathlib, sys
tree = pathlib.Path(__file__).parent / "automation/trex_control_plane/interactive"
sys.path.insert(0, str(tree))
sys.path.insert(0, str(pathlib.Path(__file__).parent / "external_libs"))
import beside, scapy, trex, yaml
from trex.astf.api import ASTFClient
from trex_stl_lib.api import STLClient
from trex.examples import shown
from trex.utils import parsing, text_opts
print(__name__, sys.argv[1:], beside.NAME, shown.NAME, parsing.NAME)
for module in (trex, text_opts, scapy, yaml, sys.modules["trex_stl_lib"]):
    assert not module.__file__.startswith(str(tree.parents[2])), module
assert ASTFClient.__module__ == "trex.astf.client"
try:
    import trex.stl.only_there
except ImportError as error:
    print(error)
sys.exit(3)
"""


@pytest.fixture
def tree(tmp_path):
    """Returns its folder of scripts. Modules that this package also has fail in the tree."""
    fails = "raise Exception('this is of the tree')"
    client = f"{INTERACTIVE}/trex"
    files = {
        **dict.fromkeys((f"{client}/__init__.py", f"{client}/astf/__init__.py"), fails),
        **dict.fromkeys((f"{client}/stl/__init__.py", f"{client}/utils/text_opts.py"), fails),
        **dict.fromkeys(("external_libs/yaml.py", "external_libs/scapy/__init__.py"), fails),
        f"{INTERACTIVE}/trex_stl_lib/__init__.py": fails,
        f"{client}/stl/only_there.py": fails,
        f"{client}/utils/__init__.py": "",
        f"{client}/utils/parsing.py": "NAME = 'parsing'",
        f"{client}/examples/__init__.py": "",
        f"{client}/examples/shown.py": "NAME = 'shown'",
        f"{client}/examples/other.py": "import trex.examples.shown as it\nprint(it.NAME)",
        "beside.py": "NAME = 'beside'",
        "script.py": SCRIPT,
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def run(*words, cwd):
    """Returns the result of `python -m trex`."""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "trex", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, cwd=cwd, env=paths
    )


def test_script_imports_this_package_before_its_tree(tree, tmp_path_factory):
    done = run(tree / "script.py", "-m", "5", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.returncode == 3, done.stdout + done.stderr
    first, second = done.stdout.splitlines()
    assert first == "__main__ ['-m', '5'] beside shown parsing"
    assert second == "No module named 'trex.stl.only_there'"


def test_script_in_a_tree_imports_its_neighbours(tree):
    done = run(f"{INTERACTIVE}/trex/examples/other.py", cwd=tree)
    assert (done.returncode, done.stdout) == (0, "shown\n"), done.stderr


def test_missing_script_prints_usage(tmp_path):
    done = run(cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("usage: python -m trex SCRIPT")
    assert run("--help", cwd=tmp_path).stdout == done.stderr
    done = run("nothing.py", cwd=tmp_path)
    assert done.returncode == 2 and "no such file: 'nothing.py'" in done.stderr


def test_trex_scripts_with_their_own_path_run(lab):
    if "TREX_CORE" not in os.environ:
        pytest.skip("TREX_CORE names no tree of trex-core")
    scripts = Path(os.environ["TREX_CORE"]).absolute() / "scripts"
    short = ("--min-cps=100", "--max-cps=1k", "--ramp-up=3", "--udp-percent=50")
    done = run("cps_ndr.py", "--max-iterations=2", *short, cwd=scripts)
    assert done.returncode == 0 and "iteration #2" in done.stdout, done.stdout + done.stderr
    examples = f"{INTERACTIVE}/trex/examples/astf"
    done = run(f"{examples}/astf_example.py", "-d", "1", cwd=scripts)
    assert "Test has passed :-)" in done.stdout, done.stdout + done.stderr
