"""Small helpers that scripts reach through the star import."""

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
    """The name of the user who runs this."""
    return getpass.getuser()


def get_number(input: Any) -> int | None:
    """It as a whole number, None if it is none."""
    try:
        return int(input)
    except (TypeError, ValueError):
        return None


def try_int(i: Any) -> Any:
    """It as a whole number if it is one, else as it is."""
    number = get_number(i)
    return i if number is None else number


def filter_none(seq: Iterable[Any]) -> list[Any]:
    """What is not None."""
    return [x for x in seq if x is not None]


def all_none(seq: Iterable[Any]) -> bool:
    """Whether there is nothing but None in it."""
    return not filter_none(seq)


def list_intersect(l1: Iterable[Any], l2: Iterable[Any]) -> list[Any]:
    """What is in both, in the order of the first."""
    other = list(l2)
    return [x for x in l1 if x in other]


def list_difference(l1: Iterable[Any], l2: Iterable[Any]) -> list[Any]:
    """What is in the first only, in its order."""
    other = list(l2)
    return [x for x in l1 if x not in other]


def list_xor(l1: Iterable[Any], l2: Iterable[Any]) -> list[Any]:
    """What is in one of them only, in no order."""
    return list(set(l1) ^ set(l2))


def list_remove_dup(values: Iterable[Any]) -> list[Any]:
    """Each value once, where it came first."""
    seen: list[Any] = []
    for value in values:
        if value not in seen:
            seen.append(value)
    return seen


def has_dup(values: list[Any]) -> bool:
    """Whether a value is in it twice."""
    return len(values) > len(set(values))


def is_sub_list(l1: Iterable[Any], l2: Iterable[Any]) -> bool:
    """Whether all of the first is in the second."""
    return set(l1) <= set(l2)


def bitfield_to_list(bf: int) -> list[int]:
    """The places of the bits that are set, lowest first."""
    return [place for place in range(bf.bit_length()) if bf >> place & 1]


def bitfield_to_str(bf: int) -> str:
    """The places of the bits that are set as text, a dash for none."""
    return ", ".join(map(str, bitfield_to_list(bf))) or "-"


def calc_bps_L1(bps: float, pps: float) -> float:
    """The bit rate with preamble and gap (20 bytes a frame) of a layer 2 bit rate."""
    return bps + pps * 20 * 8 if bps and pps else 0


def sec_split_usec(ts: float) -> tuple[int, int]:
    """Whole seconds and the microseconds beyond them."""
    seconds = int(ts)
    return seconds, int((ts - seconds) * 1e6)


def round_float(f: Any) -> Any:
    """A float with two digits behind the point, anything else as it is."""
    return round(f, 2) if isinstance(f, float) else f


def safe_ord(c: str | int) -> int:
    """The number of a character or of a byte."""
    if isinstance(c, int):
        return c
    if isinstance(c, str):
        return ord(c)
    raise TypeError(f"{c!r} is neither a character nor a byte")


def natural_sorted_key(val: str) -> list[Any]:
    """A key that sorts `port2` before `port10`."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", val)]


def parse_ports_from_profiles(ports: Any) -> list[int]:
    """The port numbers of `PORT` and `PORT.PROFILE`, each once."""
    return sorted({int(str(port).split(".")[0]) for port in listify(ports)})


def format_num(size: Any, suffix: str = "", compact: bool = True, opts: object = None) -> str:
    """A number for people: `1.5 Kpps`. `opts` (colours of a terminal) changes nothing."""
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
    """Draws identifiers of small letters and digits."""

    def __init__(self, length: int = 8) -> None:
        self.length = length

    def __next__(self) -> str:
        return "".join(random.choices(string.ascii_lowercase + string.digits, k=self.length))

    next = __next__


class PassiveTimer:
    """Tells whether a time has passed; None never passes."""

    def __init__(self, timeout_sec: float | None = None) -> None:
        self._begin = time.monotonic()
        self._timeout = timeout_sec

    def has_expired(self) -> bool:
        """Whether the timeout is over."""
        return self._timeout is not None and time.monotonic() - self._begin > self._timeout

    def has_elapsed(self, timegap: float) -> bool:
        """Whether that many seconds went by since it last said so."""
        if time.monotonic() - self._begin <= timegap:
            return False
        self._begin = time.monotonic()
        return True


class Profiler_Context:
    """Prints where the time in a `with` block went."""

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
