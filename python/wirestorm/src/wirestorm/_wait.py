"""Waiting for the end of a background run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# Longest wait before Python checks for signals.
_POLL_S = 0.05
# Interval of progress callbacks.
_PROGRESS_S = 0.1


class _Run(Protocol):
    def wait(self, timeout_s: float | None = None) -> bool: ...
    def stop(self) -> None: ...


def wait_for_end(
    run: _Run, timeout: float | None, on_progress: Callable[[], object] | None
) -> bool:
    """Waits for the end of a run. Returns whether Ctrl-C stopped it.

    :param timeout: seconds; raises `TimeoutError` after that time
    :param on_progress: callback, called about ten times a second
    """
    waited = reported_at = 0.0
    try:
        while not run.wait(_POLL_S):
            waited += _POLL_S
            if timeout is not None and waited >= timeout:
                raise TimeoutError(f"the run has not ended after {timeout} s")
            if on_progress is not None and waited - reported_at >= _PROGRESS_S:
                reported_at = waited
                on_progress()
    except KeyboardInterrupt:
        run.stop()
        run.wait()
        return True
    return False
