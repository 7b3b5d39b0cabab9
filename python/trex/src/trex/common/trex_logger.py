"""What clients say goes through these; they live in `trex.logger`."""

from trex.logger import Logger, ScreenLogger

__all__ = ["Logger", "ScreenLogger"]
