"""Exceptions of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirestorm.result import Result


class WirestormError(Exception):
    """Base class of the package's exceptions."""


class PlanError(WirestormError, ValueError):
    """An invalid plan.

    `errors` lists all errors. Each is a pair of a path in the plan, such as
    `flows[0].packet[1].ipv4.src`, and a message with the value found and the value expected.
    """

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(f"{path}: {message}" for path, message in self.errors)


class RunError(WirestormError):
    """A run that did not begin, or in which an error occurred.

    `result` has the measurements until the error; None if nothing was sent.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message, result)
        self.message = message
        self.result = result

    def __str__(self) -> str:
        return self.message


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a run. `result` has the measurements until then."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted; the exception's `result` has the measurements")
        self.result = result
