"""Lists of ignored addresses."""

from __future__ import annotations

from typing import Any

from trex.addresses import ip2int, is_valid_ipv4, is_valid_mac
from trex.errors import TRexArgumentError

# TRex's limit.
_COUNT_MAX = 1000
_HEX_DIGITS = 12


def ignored(macs: Any, ips: Any, is_text: bool) -> dict[str, list[int]]:
    """Returns the addresses as distinct integers. Raises `TRexArgumentError` for an invalid one."""
    return {
        "macs": _numbers("mac_list", macs, _mac if is_text else _is_below(48)),
        "ips": _numbers("ip_list", ips, _ip if is_text else _is_below(32)),
    }


def _numbers(name: str, value: Any, read: Any) -> list[int]:
    entries = list(value or [])
    if len(entries) > _COUNT_MAX:
        raise TRexArgumentError(name, f"{len(entries)} addresses", f"{_COUNT_MAX} at most")
    found = []
    for entry in entries:
        number = read(entry)
        if number is None:
            raise TRexArgumentError(name, entry, "addresses, as is_str requires: text or numbers")
        found.append(number)
    return sorted(set(found))


def _mac(text: Any) -> int | None:
    """Parses text with colons, or twelve digits."""
    if not isinstance(text, str):
        return None
    digits = text.replace(":", "")
    if not is_valid_mac(text) and (len(text) != _HEX_DIGITS or text != digits):
        return None
    try:
        return int(digits, 16)
    except ValueError:
        return None


def _ip(text: Any) -> int | None:
    return ip2int(text) if is_valid_ipv4(text) else None


def _is_below(bits: int) -> Any:
    return lambda number: number if type(number) is int and 0 <= number < 1 << bits else None
