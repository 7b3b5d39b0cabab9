"""`python -m trex SCRIPT`: runs a script with this package, wherever the script looks for TRex's.

A script that puts a tree of TRex's first on the module path would import the client of that tree,
which looks for a server. What was imported before is not looked for again, so this package and
what it depends on are imported here, and then the script runs as if Python had been given it.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pkgutil import extend_path
from types import ModuleType

# Trees have all of these of their own, scapy and yaml in older versions.
_OURS = ("trex.stl.api", "trex.astf.api", "trex_stl_lib", "trex_astf_lib", "yaml")
# The packages of which trees have modules that are of use beside ours: examples and helpers. What
# they have elsewhere is parts of their client.
_COMPLETED = ("trex", "trex.utils")
_USAGE = """usage: python -m trex SCRIPT [ARGUMENT ...]

Runs a script for TRex with this package, also where the script puts a tree of TRex's first on the
module path: python -m trex trex-core/scripts/cps_ndr.py --help
"""


class _InTrees(MetaPathFinder):
    """Finds modules that this package has not in a tree on the module path."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Asked last, after all has been looked for where this package is."""
        parent = name.rpartition(".")[0]
        if parent not in _COMPLETED:
            return None
        for package in dict.fromkeys(("trex", parent)):
            module = sys.modules[package]
            # What is there stays first.
            module.__path__ = extend_path(module.__path__, package)
        return PathFinder.find_spec(name, sys.modules[parent].__path__, target)


def main(arguments: list[str] | None = None) -> int:
    """Runs the script: 0, or 2 after a message on standard error where there is none. How the
    script ends the process is not caught."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    script = words[0]
    if not os.path.isfile(script):
        print(f"error: there is no file '{script}': give a script's path first", file=sys.stderr)
        return 2
    for name in _OURS:
        importlib.import_module(name)
    folder = os.path.dirname(os.path.abspath(script))
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    else:
        # Python has put the working directory there, where it puts the folder of a script.
        sys.path[0] = folder
    tree = _tree_of(folder)
    if tree is not None:
        sys.path.append(tree)
    sys.meta_path.append(_InTrees())
    sys.argv[:] = words
    runpy.run_path(script, run_name="__main__")
    return 0


def _tree_of(folder: str) -> str | None:
    """Where a script within a package `trex` would find that package: the examples of a tree import
    others of it."""
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        if name == "trex":
            return folder
    return None


if __name__ == "__main__":
    sys.exit(main())
