"""Decorators and assertions."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any


def nottest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function that is not a test."""
    return function


def assert_raises(*arguments: Any, **kwargs: Any) -> Any:
    """Same as in `unittest`."""
    return unittest.TestCase().assertRaises(*arguments, **kwargs)
