"""What goes wrong, as exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirestorm.result import Result


class WirestormError(Exception):
    """Anything that wirestorm refuses or fails at."""


class PlanError(WirestormError, ValueError):
    """A plan that makes no sense.

    `errors` are all that is wrong with it, each with its place in the plan, such as
    `flows[0].packet[1].ipv4.src`, and a message that says what was found and what was expected.
    """

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(f"{path}: {message}" for path, message in self.errors)


class RunError(WirestormError):
    """A run that did not begin, or in which something went wrong.

    `result` is what was measured before; None where nothing was sent.
    """

    def __init__(self, message: str, result: Result | None = None) -> None:
        super().__init__(message, result)
        self.message = message
        self.result = result

    def __str__(self) -> str:
        return self.message


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run: sending has ended, and `result` is what was measured."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted; the exception's `result` is what was measured")
        self.result = result
