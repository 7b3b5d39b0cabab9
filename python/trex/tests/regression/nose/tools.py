"""Marks and checks."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any


def nottest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks what is no test."""
    return function


def assert_raises(*arguments: Any, **named: Any) -> Any:
    """As `unittest` has it."""
    return unittest.TestCase().assertRaises(*arguments, **named)
