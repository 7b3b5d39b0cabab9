"""Delays as an HdrHistogram."""

from __future__ import annotations

import base64
import struct
import zlib

from stream_helpers import LIMIT_S, burst

from trex.client import hdr_histogram
from trex.stl.api import STLFlowLatencyStats

# hdrh.histogram of the package hdrhistogram 0.10.3 encodes 0, 5 (3 times), 2048, 999000 (7) and
# 10000000 (twice) in HdrHistogram(1, 10000000, 3) as this text.
KNOWN = "HISTFAAAACx4nJNpmSzMwMDAywABzFCaEUzOmNZg/wEiwMTO9lmeaXcfI99xExYAmh8Hrw=="


def decoded(text: str) -> tuple[tuple[int, int, int], dict[int, int]]:
    """Returns the digits, the lowest and highest value, and the counts by index."""
    outer = base64.b64decode(text)
    cookie, length = struct.unpack(">ii", outer[:8])
    assert cookie == 0x1C849314 and length == len(outer) - 8
    inner = zlib.decompress(outer[8:])
    cookie, length, offset, digits, low, high, ratio = struct.unpack(">iiiiqqd", inner[:40])
    assert (cookie, length, offset, ratio) == (0x1C849313, len(inner) - 40, 0, 1.0)
    counts: dict[int, int] = {}
    place, value, bits = 0, 0, 0
    for byte in inner[40:]:
        value |= (byte & 0x7F) << bits
        bits += 7
        if byte & 0x80:
            continue
        number = value >> 1 if value % 2 == 0 else -(value >> 1) - 1
        if number < 0:
            place -= number
        else:
            counts[place] = number
            place += 1
        value = bits = 0
    return (digits, low, high), counts


def test_encoding_matches_other_encoders():
    values = [(5_999, 3), (2_048_000, 1), (999_000_000, 7), (10_000_000_000, 2), (-4, 1)]
    assert hdr_histogram.encoded(values) == KNOWN
    beyond = [*values, (10_000_001_000, 5)]
    assert hdr_histogram.encoded(beyond) == KNOWN, "longer than 10 s"


def test_empty_histogram():
    assert decoded(hdr_histogram.encoded([])) == ((3, 1, 10_000_000), {})


def test_stream_delays_are_encoded(client):
    client.add_streams(burst(200, flow_stats=STLFlowLatencyStats(pg_id=3), size=80), ports=[0])
    client.start([0])
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()["latency"][3]["latency"]
    bounds, counts = decoded(stats["hdrh"])
    assert bounds == (3, 1, 10_000_000)
    assert sum(counts.values()) == sum(stats["histogram"].values()) == 200
