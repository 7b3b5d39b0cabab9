"""Where clients say what happens: `ScreenLogger` prints it, a script's own does what it likes."""

from __future__ import annotations

import sys
import threading
from typing import Any

from trex.errors import TRexArgumentError
from trex.utils.text_opts import format_text


class Logger:
    """Messages by how much they matter.

    A subclass has `_write(msg, newline)` and `_flush()`, which are called by one thread at a time.
    """

    #: The levels, each of which says what those before it say.
    VERBOSES = {"none": 0, "critical": 1, "error": 2, "warning": 3, "info": 4, "debug": 5}

    def __init__(self, verbose: str = "error") -> None:
        self.set_verbose(verbose)
        self.write_lock = threading.RLock()

    def set_verbose(self, verbose: str) -> None:
        """Says so much from now on."""
        if verbose not in Logger.VERBOSES:
            raise TRexArgumentError("verbose", verbose, ", ".join(Logger.VERBOSES))
        self.level = Logger.VERBOSES[verbose]
        self.verbose = verbose

    def get_verbose(self) -> str:
        """How much it says."""
        return self.verbose

    def critical(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Says what must not be missed."""
        self._log(msg, "critical", newline, flush)

    def error(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Says what failed."""
        self._log(msg, "error", newline, flush)

    def warning(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Says what fell short."""
        self._log(msg, "warning", newline, flush)

    def info(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Says what else happened."""
        self._log(msg, "info", newline, flush)

    def debug(self, msg: Any, newline: bool = True, flush: bool = False) -> None:
        """Says what is of use to those who look for errors."""
        self._log(msg, "debug", newline, flush)

    def async_log(self, msg: Any, level: int = VERBOSES["info"], newline: bool = True) -> None:
        """Says what happened beside a command; `level` is a number of `VERBOSES`."""
        self._log(msg, level, newline)

    def urgent_async_log(self, msg: Any, newline: bool = True) -> None:
        """Says what happened beside a command and must not be missed."""
        self._log(msg, "critical", newline, flush=True)

    def pre_cmd(self, desc: str) -> None:
        """Says what is going to be done; `post_cmd` goes on in that line."""
        self.info(format_text(f"\n{desc:<60}", "bold"), newline=False, flush=True)

    def post_cmd(self, rc: Any) -> None:
        """Says whether it was done."""
        words = ("[SUCCESS]\n", "green") if rc else ("[FAILED]\n", "red")
        self.info(format_text(words[0], words[1], "bold"))

    def log_cmd(self, desc: str) -> None:
        """Says what was done."""
        self.pre_cmd(desc)
        self.post_cmd(True)

    def suppress(self, verbose: str = "warning") -> Suppressed:
        """In a `with` block, says so much."""
        return Suppressed(self, verbose)

    # As scripts for older versions have it.
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


class Suppressed:
    """A logger that says less for a while."""

    def __init__(self, logger: Logger, verbose: str) -> None:
        self._logger, self._verbose = logger, verbose

    def __enter__(self) -> None:
        self._before = self._logger.get_verbose()
        self._logger.set_verbose(self._verbose)

    def __exit__(self, *exception: object) -> None:
        self._logger.set_verbose(self._before)


class ScreenLogger(Logger):
    """Prints."""

    def _write(self, msg: Any, newline: bool) -> None:
        print(msg, end="\n" if newline else "")

    def _flush(self) -> None:
        sys.stdout.flush()
