"""Messages of clients through loggers of scripts."""

from __future__ import annotations

import pytest

from trex.common.trex_exceptions import TRexError
from trex.common.trex_logger import Logger, ScreenLogger
from trex.stl.api import STLClient


class RecordingLogger(Logger):
    """Logger that keeps its messages."""

    def __init__(self, *arguments, **kwargs):
        super().__init__(*arguments, **kwargs)
        self.messages = []

    def _write(self, msg, newline):
        self.messages.append((msg, newline))

    def _flush(self):
        self.messages.append("flushed")


def test_level_filters_messages():
    logger = RecordingLogger()
    assert (logger.get_verbose(), logger.level) == ("error", 2)
    for level in ("critical", "error", "warning", "info", "debug"):
        getattr(logger, level)(level)
    assert logger.messages == [("critical", True), ("error", True)]
    logger.set_verbose("warning")
    logger.messages.clear()
    logger.async_log("beside")
    logger.async_log("beside", Logger.VERBOSES["warning"], newline=False)
    logger.urgent_async_log("at once")
    assert logger.messages == [("beside", False), ("at once", True), "flushed"]
    logger.set_verbose("none")
    logger.messages.clear()
    logger.urgent_async_log("at once")
    assert logger.messages == []
    with pytest.raises(TRexError, match="'verbose' cannot be 'loud'"):
        logger.set_verbose("loud")


def test_commands_are_logged_and_can_be_suppressed():
    logger = RecordingLogger("info")
    with logger.suppress():
        logger.log_cmd("Resetting")
        logger.warning("warned")
    assert logger.messages == [("warned", True)] and logger.get_verbose() == "info"
    with logger.supress("none"):
        logger.critical("nothing")
    logger.messages.clear()
    logger.pre_cmd("Resetting")
    logger.post_cmd(False)
    (before, has_newline), flushed, (after, _) = logger.messages
    assert "Resetting" in before and not has_newline and flushed == "flushed"
    assert "[FAILED]" in after


def test_screen_logger_prints(capsys):
    logger = ScreenLogger("info")
    logger.info("one, ", newline=False)
    logger.info("two", flush=True)
    logger.debug("three")
    assert capsys.readouterr().out == "one, two\n"


def test_logger_requires_a_write_method():
    with pytest.raises(NotImplementedError):
        Logger().error("message")


def test_clients_log_events(lab, capsys):
    logger = RecordingLogger("debug")
    client = STLClient(logger=logger)
    assert client.logger is logger and client.get_verbose() == logger.get_verbose() == "error"
    client.connect()
    assert logger.messages == []
    client.set_verbose("info")
    client.disconnect()
    assert logger.messages == [("disconnected", True)]
    client._log_event("too slow", "warning")
    client.set_verbose("warning")
    client._log_event("too slow again", "warning")
    client._log_event("nothing")
    assert logger.messages[1:] == [("too slow", True), ("too slow again", True)]
    assert capsys.readouterr().out == ""
    assert isinstance(STLClient().logger, ScreenLogger)
