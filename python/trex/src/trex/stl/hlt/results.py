"""Results of HLTAPI calls: dictionaries with a `status`, 1 or 0, and a `log`."""

from __future__ import annotations

import sys
import time
from typing import Any

_MARK = "[ERR] "


class HLT_OK(dict[str, Any]):
    """Result of a successful call."""

    def __init__(self, init_dict: Any = (), **values: Any) -> None:
        super().__init__(status=1, log=None)
        self.update(init_dict, **values)


class HLT_ERR(dict[str, Any]):
    """Result of a failed call, with the reason in `log`."""

    def __init__(self, log: Any = "unknown", **values: Any) -> None:
        text = log if str(log).startswith(_MARK) else f"{_MARK}{log}"
        super().__init__(status=0, log=text, **values)


def is_true(value: Any) -> bool:
    """Returns whether a value is true, in any of its notations."""
    text = value.lower() if isinstance(value, str) else value
    return text in (True, 1, "1", "true", "enable", "enabled", "yes", "y")


def error(err: Any = None) -> None:
    """Prints an error and exits the program."""
    sys.exit(HLT_ERR("unknown" if err is None else err)["log"])


def check_res(res: dict[str, Any]) -> dict[str, Any]:
    """Returns a successful result. Exits the program for an error."""
    if res["status"] == 0:
        error(res["log"])
    return res


def print_brief_stats(res: dict[Any, Any]) -> None:
    """Prints the frames of each port in a result of `traffic_stats`."""
    ports = [port for port in res if isinstance(port, int)]
    print("   " + "".join(f"{f'Port{port}':>15}" for port in ports))
    for direction in ("tx", "rx"):
        counts = (res[port]["aggregate"][direction]["total_pkts"] for port in ports)
        print(f"{direction.upper()}:" + "".join(f"{count:>15}" for count in counts))


def wait_with_progress(seconds: int) -> None:
    """Waits and prints a dot for each second."""
    for _ in range(seconds):
        time.sleep(1)
        print(".", end="", flush=True)
    print()
