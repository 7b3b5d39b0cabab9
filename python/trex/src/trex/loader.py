"""Loads a user's file and yields its `register()` object."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trex.errors import TRexError


@contextmanager
def registered(path: str) -> Iterator[Any]:
    """Yields the object that the file's `register()` returns.

    Within the block, the file's folder is on the module path for its imports. An exception of the
    file or its object becomes a `TRexError` with the line in the file.
    """
    if not os.path.isfile(path):
        raise TRexError(f"no such file: '{path}'")
    path = os.path.abspath(path)
    folder, file = os.path.split(path)
    # A unique module name, so that a profile `random.py` does not replace the module `random`.
    name = f"trex_profile_{file.partition('.')[0]}"
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise TRexError(f"'{path}' is not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        if not hasattr(module, "register") and hasattr(module, "get_topo"):
            raise TRexError(
                "this is a topology, not a profile: it has get_topo() and no register(); "
                "load it with topo_load() or tunnels_topo_load() of ASTFClient"
            )
        if not hasattr(module, "register"):
            raise TRexError("the profile has no function register()")
        yield module.register()
    except TRexError as error:
        raise TRexError(f"{_location(error, path)}: {error}") from error
    except SystemExit as error:
        reason = error.code if isinstance(error.code, str) else f"sys.exit({error.code})"
        raise TRexError(f"{_location(error, path)}: it exits the process: {reason}") from error
    except Exception as error:
        raise TRexError(f"{_location(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
        sys.dont_write_bytecode = writes_bytecode


def find_function(registered_object: Any, name: str, mode: str) -> Callable[..., Any]:
    """Returns the function of a registered object for a mode. Raises if it does not exist."""
    function = getattr(registered_object, name, None)
    if function is None:
        others = (
            "stateless ones have get_streams()"
            if mode == "stateful"
            else "stateful ones have get_profile()"
        )
        raise TRexError(
            f"the object of register() has no {name}(), which {mode} profiles have; {others}"
        )
    return function


def _location(error: BaseException, path: str) -> str:
    """Returns the path, with the last line of the file in the error's traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    return f"{path}, line {lines[-1]}" if lines else path
