"""Helpers that scripts get through the star import."""

from __future__ import annotations

import cProfile
import getpass
import pstats
import random
import re
import string
import time
from collections.abc import Iterable
from typing import Any

from trex.arguments import listify


def get_current_user() -> str:
    """Returns the name of the current user."""
    return getpass.getuser()


def get_number(input: Any) -> int | None:
    """Returns `input` as an integer, None if it is not one."""
    try:
        return int(input)
    except (TypeError, ValueError):
        return None


def try_int(i: Any) -> Any:
    """Returns `i` as an integer if it is one, else unchanged."""
    number = get_number(i)
    return i if number is None else number


def filter_none(seq: Iterable[Any]) -> list[Any]:
    """Returns the items that are not None."""
    return [x for x in seq if x is not None]


def all_none(seq: Iterable[Any]) -> bool:
    """Returns whether all items are None."""
    return not filter_none(seq)


def list_intersect(l1: Iterable[Any], l2: Iterable[Any]) -> list[Any]:
    """Returns the items that are in both, in the order of the first."""
    other = list(l2)
    return [x for x in l1 if x in other]


def list_difference(l1: Iterable[Any], l2: Iterable[Any]) -> list[Any]:
    """Returns the items that are only in the first, in its order."""
    other = list(l2)
    return [x for x in l1 if x not in other]


def list_xor(l1: Iterable[Any], l2: Iterable[Any]) -> list[Any]:
    """Returns the items that are in exactly one of them, in any order."""
    return list(set(l1) ^ set(l2))


def list_remove_dup(values: Iterable[Any]) -> list[Any]:
    """Removes duplicates; the first occurrence stays."""
    seen: list[Any] = []
    for value in values:
        if value not in seen:
            seen.append(value)
    return seen


def has_dup(values: list[Any]) -> bool:
    """Returns whether a value occurs twice."""
    return len(values) > len(set(values))


def is_sub_list(l1: Iterable[Any], l2: Iterable[Any]) -> bool:
    """Returns whether the second contains all items of the first."""
    return set(l1) <= set(l2)


def bitfield_to_list(bf: int) -> list[int]:
    """Returns the positions of the set bits, lowest first."""
    return [position for position in range(bf.bit_length()) if bf >> position & 1]


def bitfield_to_str(bf: int) -> str:
    """Formats the positions of the set bits; a dash for none."""
    return ", ".join(map(str, bitfield_to_list(bf))) or "-"


def calc_bps_L1(bps: float, pps: float) -> float:
    """Adds preamble and inter-frame gap (20 bytes a frame) to a layer 2 bit rate."""
    return bps + pps * 20 * 8 if bps and pps else 0


def sec_split_usec(ts: float) -> tuple[int, int]:
    """Splits a time into whole seconds and microseconds."""
    seconds = int(ts)
    return seconds, int((ts - seconds) * 1e6)


def round_float(f: Any) -> Any:
    """Rounds a float to two decimals; returns any other value unchanged."""
    return round(f, 2) if isinstance(f, float) else f


def safe_ord(c: str | int) -> int:
    """Returns the code of a character, or a byte as it is."""
    if isinstance(c, int):
        return c
    if isinstance(c, str):
        return ord(c)
    raise TypeError(f"{c!r} is neither a character nor a byte")


def natural_sorted_key(val: str) -> list[Any]:
    """Returns a sort key that puts `port2` before `port10`."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", val)]


def parse_ports_from_profiles(ports: Any) -> list[int]:
    """Returns the port numbers of `PORT` and `PORT.PROFILE`, sorted, without duplicates."""
    return sorted({int(str(port).split(".")[0]) for port in listify(ports)})


def format_num(size: Any, suffix: str = "", compact: bool = True, opts: object = None) -> str:
    """Formats a number with a unit prefix: `1.5 Kpps`. `opts` (terminal colours) has no effect."""
    if isinstance(size, str):
        return "N/A"
    unit = ""
    if compact:
        for unit in ("", "K", "M", "G", "T", "P"):
            if abs(size) < 1000 or unit == "P":
                break
            size /= 1000
    if not isinstance(size, float):
        text = f"{size:,}"
    elif compact:
        text = f"{round(size, 2):g}"
    else:
        text = f"{size:.2f}"
    return f"{text} {unit}{suffix}" if unit or suffix else text


class random_id_gen:
    """Generates identifiers of lower-case letters and digits."""

    def __init__(self, length: int = 8) -> None:
        self.length = length

    def __next__(self) -> str:
        return "".join(random.choices(string.ascii_lowercase + string.digits, k=self.length))

    next = __next__


class PassiveTimer:
    """A timer that is checked on demand; None never expires."""

    def __init__(self, timeout_sec: float | None = None) -> None:
        self._begin = time.monotonic()
        self._timeout = timeout_sec

    def has_expired(self) -> bool:
        """Returns whether the timeout has expired."""
        return self._timeout is not None and time.monotonic() - self._begin > self._timeout

    def has_elapsed(self, timegap: float) -> bool:
        """Returns whether `timegap` seconds have passed since the last True."""
        if time.monotonic() - self._begin <= timegap:
            return False
        self._begin = time.monotonic()
        return True


class Profiler_Context:
    """Profiles a `with` block and prints the result."""

    def __init__(self, lines: int | None = None, sortby: str | None = None) -> None:
        self._lines = lines
        self._sort = sortby or "time"
        self._profile = cProfile.Profile()

    def __enter__(self) -> Profiler_Context:
        self._profile.enable()
        return self

    def __exit__(self, *exc: object) -> None:
        self._profile.disable()
        stats = pstats.Stats(self._profile).sort_stats(self._sort)
        stats.print_stats(*([self._lines] if self._lines else []))
