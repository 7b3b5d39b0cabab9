"""Runs a file that a user wrote and hands its `register()` object on."""

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
    """The object that the file's `register()` returns.

    Inside the block the file's folder is on the module path, for what it imports from there. What
    the file or its object raises becomes a `TRexError` that says where in the file.
    """
    if not os.path.isfile(path):
        raise TRexError(f"there is no file '{path}'")
    path = os.path.abspath(path)
    folder, file = os.path.split(path)
    # A name of its own, or a profile called `random.py` would be everyone's `random`.
    name = f"trex_profile_{file.partition('.')[0]}"
    writes_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise TRexError(f"'{path}' is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        if not hasattr(module, "register") and hasattr(module, "get_topo"):
            raise TRexError(
                "this is no profile but a topology, for there is get_topo() and no register(): "
                "topo_load() or tunnels_topo_load() of ASTFClient load it"
            )
        if not hasattr(module, "register"):
            raise TRexError("there is no function register(), which is what a profile is found by")
        yield module.register()
    except TRexError as error:
        raise TRexError(f"{_place(error, path)}: {error}") from error
    except SystemExit as error:
        said = error.code if isinstance(error.code, str) else f"sys.exit({error.code})"
        raise TRexError(f"{_place(error, path)}: it ends the process: {said}") from error
    except Exception as error:
        raise TRexError(f"{_place(error, path)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
        sys.dont_write_bytecode = writes_bytecode


def function_of(described: Any, name: str, mode: str) -> Callable[..., Any]:
    """A registered object's function that a mode's profiles have. Raises where there is none."""
    function = getattr(described, name, None)
    if function is None:
        others = (
            "stateless ones get_streams()" if mode == "stateful" else "stateful ones get_profile()"
        )
        raise TRexError(
            f"what register() returns has no {name}(), which {mode} profiles have, and {others}"
        )
    return function


def _place(error: BaseException, path: str) -> str:
    """The last line of the file on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    return f"{path}, line {lines[-1]}" if lines else path
