"""The native host, which answers frame by frame."""

from __future__ import annotations

import pytest

from wirestorm._native import Host

# ARP request: who has 10.0.0.1? Tell 10.0.0.2 at 02:00:00:00:00:02.
REQUEST = bytes.fromhex(
    "ffffffffffff 020000000002 0806 0001 0800 06 04 0001020000000002 0a000002 000000000000 0a000001"
) + bytes(18)


def test_host_answers_for_its_addresses():
    host = Host("02:00:00:00:00:01", ["10.0.0.1/24", "2001:db8::1"])
    answer = host.answer(REQUEST)
    assert answer is not None
    # An ARP reply to the sender of the request, with the requested address.
    assert answer[:6] == REQUEST[6:12] and answer[20:22] == bytes([0, 2])
    assert answer[22:32] == bytes.fromhex("020000000001 0a000001")
    assert host.answer(answer) is None and host.answer(b"") is None
    assert Host("02:00:00:00:00:01", ["10.0.0.3"]).answer(REQUEST) is None
    assert len(host.announcements()) == 2


def test_invalid_addresses_are_rejected():
    with pytest.raises(ValueError, match='mac "me"'):
        Host("me", [])
    with pytest.raises(ValueError, match='address "10.0.0.1/33": expected an address'):
        Host("02:00:00:00:00:01", ["10.0.0.1/33"])
