"""`python -m trex SCRIPT`: runs a script with this package, even if the script uses a TRex tree.

A script that puts a TRex tree first on the module path would import that tree's client, which
connects to a server. Python does not search for modules that are already imported. Therefore this
module imports the package and its dependencies first, and then runs the script.
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

# TRex trees contain all of these, with older versions of scapy and yaml.
_OWN_MODULES = ("trex.stl.api", "trex.astf.api", "trex_stl_lib", "trex_astf_lib", "yaml")
# Packages whose modules in a tree are useful beside ours: examples and helpers. Other modules of a
# tree are parts of its client.
_COMPLETED = ("trex", "trex.utils")
_USAGE = """usage: python -m trex SCRIPT [ARGUMENT ...]

Runs a script for TRex with this package, also where the script puts a tree of TRex's first on the
module path: python -m trex trex-core/scripts/cps_ndr.py --help
"""


class _TrexTreeFinder(MetaPathFinder):
    """Finds modules that this package lacks in a TRex tree on the module path."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the module's spec. Python asks this finder last, after its own."""
        parent = name.rpartition(".")[0]
        if parent not in _COMPLETED:
            return None
        for package in dict.fromkeys(("trex", parent)):
            module = sys.modules[package]
            # Existing entries stay first.
            module.__path__ = extend_path(module.__path__, package)
        return PathFinder.find_spec(name, sys.modules[parent].__path__, target)


def main(arguments: list[str] | None = None) -> int:
    """Runs the script. Returns 0, or 2 after a message if the script does not exist.

    Exceptions and exits of the script pass through.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    script = words[0]
    if not os.path.isfile(script):
        print(
            f"error: no such file: '{script}'; the first argument is the path of a script",
            file=sys.stderr,
        )
        return 2
    for name in _OWN_MODULES:
        importlib.import_module(name)
    folder = os.path.dirname(os.path.abspath(script))
    if getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    else:
        # Python sets the working directory here; for a script it would be the script's folder.
        sys.path[0] = folder
    tree = _find_tree(folder)
    if tree is not None:
        sys.path.append(tree)
    sys.meta_path.append(_TrexTreeFinder())
    sys.argv[:] = words
    runpy.run_path(script, run_name="__main__")
    return 0


def _find_tree(folder: str) -> str | None:
    """Returns the folder that contains the package `trex` of a script, None if it is in none.

    The examples of a TRex tree import each other from there.
    """
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        if name == "trex":
            return folder
    return None


if __name__ == "__main__":
    sys.exit(main())
