"""Loggers. The code is in `trex.logger`."""

from trex.logger import Logger, ScreenLogger

__all__ = ["Logger", "ScreenLogger"]
