"""Loggers of clients. `ScreenLogger` prints messages; scripts can subclass `Logger`."""

from __future__ import annotations

import sys
import threading
from typing import Any

from trex.errors import TRexArgumentError
from trex.utils.text_opts import format_text


class Logger:
    """Filters messages by level.

    A subclass implements `_write(msg, newline)` and `_flush()`. Only one thread calls them at a
    time.
    """

    #: Levels by number. Each one includes the lower ones.
    VERBOSES = {"none": 0, "critical": 1, "error": 2, "warning": 3, "info": 4, "debug": 5}

    def __init__(self, verbose: str = "error") -> None:
        self.set_verbose(verbose)
        self.write_lock = threading.RLock()

    def set_verbose(self, verbose: str) -> None:
        """Sets the level."""
        if verbose not in Logger.VERBOSES:
            raise TRexArgumentError("verbose", verbose, ", ".join(Logger.VERBOSES))
        self.level = Logger.VERBOSES[verbose]
        self.verbose = verbose

    def get_verbose(self) -> str:
        """Returns the level."""
        return self.verbose

    def critical(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Logs a critical message."""
        self._log(msg, "critical", newline, flush)

    def error(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Logs an error."""
        self._log(msg, "error", newline, flush)

    def warning(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Logs a warning."""
        self._log(msg, "warning", newline, flush)

    def info(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Logs an informational message."""
        self._log(msg, "info", newline, flush)

    def debug(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Logs a debug message."""
        self._log(msg, "debug", newline, flush)

    def async_log(self, msg: Any, level: int = VERBOSES["info"], newline: bool = True) -> None:
        """Logs an asynchronous event. `level` is a number of `VERBOSES`."""
        self._log(msg, level, newline)

    def urgent_async_log(self, msg: Any, newline: bool = True) -> None:
        """Logs a critical asynchronous event."""
        self._log(msg, "critical", newline, flush=True)

    def pre_cmd(self, desc: str) -> None:
        """Logs the beginning of a command, without a newline. `post_cmd` completes the line."""
        self.info(format_text(f"\n{desc:<60}", "bold"), newline=False, flush=True)

    def post_cmd(self, rc: Any) -> None:
        """Logs the outcome of a command."""
        words = ("[SUCCESS]\n", "green") if rc else ("[FAILED]\n", "red")
        self.info(format_text(words[0], words[1], "bold"))

    def log_cmd(self, desc: str) -> None:
        """Logs a successful command."""
        self.pre_cmd(desc)
        self.post_cmd(True)

    def suppress(self, verbose: str = "warning") -> SuppressedLevel:
        """Lowers the level within a `with` block."""
        return SuppressedLevel(self, verbose)

    # The misspelling of older scripts.
    supress = suppress

    def _log(self, msg: Any, level: str | int, newline: bool = True, flush: bool = False) -> None:
        number = Logger.VERBOSES[level] if isinstance(level, str) else level
        if self.level < number:
            return
        with self.write_lock:
            self._write(msg, newline)
            if flush:
                self._flush()

    def _write(self, msg: Any, newline: bool) -> None:
        raise NotImplementedError("_write")

    def _flush(self) -> None:
        raise NotImplementedError("_flush")


class SuppressedLevel:
    """Context manager that lowers the level of a logger."""

    def __init__(self, logger: Logger, verbose: str) -> None:
        self._logger, self._verbose = logger, verbose

    def __enter__(self) -> None:
        self._previous_level = self._logger.get_verbose()
        self._logger.set_verbose(self._verbose)

    def __exit__(self, *exception: object) -> None:
        self._logger.set_verbose(self._previous_level)


class ScreenLogger(Logger):
    """Logger that prints to standard output."""

    def _write(self, msg: Any, newline: bool) -> None:
        print(msg, end="\n" if newline else "")

    def _flush(self) -> None:
        sys.stdout.flush()
