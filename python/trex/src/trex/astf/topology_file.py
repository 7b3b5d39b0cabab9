"""Topology files: Python with a function `get_topo()`, JSON or YAML."""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import yaml

from trex.arguments import validate_type
from trex.errors import TRexError

T = TypeVar("T")


def load(
    topology: Any, kind: type[T], from_data: Callable[[Any], T], tunables: Mapping[str, Any]
) -> T:
    """Returns a topology object, or loads one from a file; `from_data` converts a document."""
    if isinstance(topology, kind):
        return topology
    validate_type("topology", topology, str)
    suffix = os.path.splitext(topology)[1]
    if suffix not in (".py", ".json", ".yaml"):
        raise TRexError(f"'{topology}' is no topology: it ends in none of .py, .json, .yaml")
    if not os.path.isfile(topology):
        raise TRexError(f"no such file: '{topology}'")
    try:
        if suffix == ".py":
            return _from_python(topology, kind, tunables)
        with open(topology) as file:
            return from_data(json.load(file) if suffix == ".json" else yaml.safe_load(file))
    except TRexError as error:
        raise TRexError(f"'{topology}': {error}") from error
    except Exception as error:
        raise TRexError(f"'{topology}': {type(error).__name__}: {error}") from error


def _from_python(path: str, kind: type[T], tunables: Mapping[str, Any]) -> T:
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        found = runpy.run_path(path)
        if "get_topo" not in found:
            raise TRexError("there is no function get_topo(), which makes the topology")
        made = found["get_topo"](**tunables)
    finally:
        sys.path.remove(folder)
    if not isinstance(made, kind):
        raise TRexError(f"get_topo() returned {type(made).__name__}, which is no {kind.__name__}")
    return made
