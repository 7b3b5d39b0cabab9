"""Delays as an HdrHistogram in its interchange format, version 2, like TRex's server.

TRex's histograms count whole microseconds from 1 to 10,000,000 with three significant digits
(`HDRH_*` in its `time_histogram.h`). Readers such as `hdrh.histogram` decode the text.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable

LOWEST_US = 1
HIGHEST_US = 10_000_000
SIGNIFICANT_DIGITS = 3

# For three digits: 2 * 10^3 values with their own count, rounded up to a power of two.
_SUB_BUCKETS_BITS = 11
_SUB_BUCKETS = 1 << _SUB_BUCKETS_BITS
_HALF_BITS = _SUB_BUCKETS_BITS - 1
_HALF = 1 << _HALF_BITS
# Cookies of version 2, with the word size for counts in LEB128.
_ENCODING = 0x1C849303 | 0x10
_COMPRESSION = 0x1C849304 | 0x10
# Cookie, length of the counts, normalizing offset, digits, lowest and highest value, conversion
# ratio.
_HEADER = struct.Struct(">iiiiqqd")
_OUTER = struct.Struct(">ii")
# The last byte of a count holds eight bits.
_LEB128_BYTES_MAX = 9


def encoded(counted_ns: Iterable[tuple[float, int]]) -> str:
    """Encodes values in nanoseconds with their counts.

    As in TRex, values above 10 s are dropped. Negative values (from different clocks) count as 0.
    """
    counts: dict[int, int] = {}
    for nanoseconds, count in counted_ns:
        microseconds = max(int(nanoseconds) // 1000, 0)
        if microseconds <= HIGHEST_US:
            index = _bucket(microseconds)
            counts[index] = counts.get(index, 0) + count
    data = b"".join(_runs(counts))
    header = (_ENCODING, len(data), 0, SIGNIFICANT_DIGITS, LOWEST_US, HIGHEST_US, 1.0)
    compressed = zlib.compress(_HEADER.pack(*header) + data)
    return base64.b64encode(_OUTER.pack(_COMPRESSION, len(compressed)) + compressed).decode()


def _bucket(value: int) -> int:
    """Returns the index of a value's count."""
    bucket = max(value.bit_length() - _SUB_BUCKETS_BITS, 0)
    return ((bucket + 1) << _HALF_BITS) + (value >> bucket) - _HALF


def _runs(counts: dict[int, int]) -> Iterable[bytes]:
    """Encodes the counts up to the last one; a run of zeros is one negative number.

    As in TRex, the encoding has at least the count of 0.
    """
    next_index = 0
    for index in sorted(counts):
        if index > next_index:
            yield _zig_zag(next_index - index)
        yield _zig_zag(counts[index])
        next_index = index + 1
    if not counts:
        yield _zig_zag(-1)


def _zig_zag(number: int) -> bytes:
    """Encodes an integer in LEB128 with the sign in the lowest bit (ZigZag)."""
    value = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while len(found) < _LEB128_BYTES_MAX - 1 and value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value & 0xFF)
    return bytes(found)
