"""Single flows, as the engine has followed them, in TRex's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# States of TCP by their numbers in BSD's stack.
_STATES = {
    name: number
    for number, name in enumerate(
        (
            *("CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "CLOSE-WAIT"),
            *("FIN-WAIT-1", "CLOSING", "LAST-ACK", "FIN-WAIT-2", "TIME-WAIT"),
        )
    )
}
# TRex tells round trips and how they vary as BSD's stack keeps them: shifted.
_ROUND_TRIP_SHIFT, _VARIATION_SHIFT = 5, 4
_NO_THRESHOLD = 0xFFFFFFFF


def flows_of(
    ports: Iterable[Mapping[str, Any]], interval_s: float
) -> Iterable[tuple[str, int, dict[str, Any]]]:
    """Connections that were followed: each by its ends, the number of a look, and what was seen."""
    for port in ports:
        for flow in port["followed"]:
            for sample in flow["samples"]:
                number = round(sample["at_s"] / interval_s)
                yield f"{flow['own']}-{flow['peer']}", number, _info(flow, sample)


def _info(flow: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    """Times in milliseconds, lengths in bytes."""
    threshold = sample["ssthresh"]
    return {
        "origin": flow["side"],
        "duration": round((sample["at_s"] - flow["began_s"]) * 1e3),
        "state": _STATES.get(sample["state"], 0),
        "rto": sample["rto_us"] // 1000,
        "rtt": ((sample["rtt_us"] or 0) << _ROUND_TRIP_SHIFT) // 1000,
        "rttvar": ((sample["rttvar_us"] or 0) << _VARIATION_SHIFT) // 1000,
        "snd_ssthresh": _NO_THRESHOLD if threshold is None else threshold,
        "snd_cwnd": sample["cwnd"],
        "snd_wnd": sample["send_window"],
        "snd_nxt": sample["acknowledged_bytes"] + sample["backlog"] - sample["unsent"],
        "rcv_nxt": sample["received_bytes"],
        "snd_mss": sample["mss"],
        "snd_rexmitpack": sample["retransmitted"],
    }
