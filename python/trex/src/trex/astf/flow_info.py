"""Samples of single flows, under TRex's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Numbers of TCP states in BSD's stack.
_STATES = {
    name: number
    for number, name in enumerate(
        (
            *("CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "CLOSE-WAIT"),
            *("FIN-WAIT-1", "CLOSING", "LAST-ACK", "FIN-WAIT-2", "TIME-WAIT"),
        )
    )
}
# TRex reports round-trip times and their variation shifted, as BSD's stack keeps them.
_ROUND_TRIP_SHIFT, _VARIATION_SHIFT = 5, 4
_NO_THRESHOLD = 0xFFFFFFFF
# Negotiated options, as TRex writes them.
_OPTIONS = {"timestamps": "/timestamps", "sack": "/sack", "ecn": "/ecn"}


def flows_of(
    ports: Iterable[Mapping[str, Any]], interval_s: float
) -> Iterable[tuple[str, int, dict[str, Any]]]:
    """Yields samples of connections: the ends of the flow, the sample number and its fields."""
    for port in ports:
        for flow in port["connections"]["sampled_flows"]:
            for sample in flow["samples"]:
                number = round(sample["at_s"] / interval_s)
                yield f"{flow['local']}-{flow['remote']}", number, _info(flow, sample)


def _info(flow: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a sample: times in milliseconds, lengths in bytes."""
    threshold = sample["ssthresh"]
    is_open = sample["state"] != "SYN-SENT"
    sent = sample["acknowledged_bytes"] + sample["bytes_in_flight"] - sample["unsent"]
    return {
        "origin": flow["side"],
        "duration": round((sample["at_s"] - flow["start_s"]) * 1e3),
        "state": _STATES.get(sample["state"], 0),
        "rto": sample["rto_us"] // 1000,
        "rtt": ((sample["rtt_us"] or 0) << _ROUND_TRIP_SHIFT) // 1000,
        "rttvar": ((sample["rttvar_us"] or 0) << _VARIATION_SHIFT) // 1000,
        "snd_ssthresh": _NO_THRESHOLD if threshold is None else threshold,
        "snd_cwnd": sample["cwnd"],
        "snd_wnd": sample["send_window"],
        # Sequence numbers relative to the SYN.
        "snd_nxt": 1 + sent,
        "rcv_nxt": 1 + sample["received_bytes"] if is_open else 0,
        "snd_mss": sample["mss"],
        "rcv_mss": sample["mss"],
        "rcv_space": sample["receive_window"],
        "snd_rexmitpack": sample["retransmitted"],
        "rcv_ooopack": sample["out_of_order"],
        # Programs read received data at once, so that the window never closes.
        "snd_zerowin": 0,
        **_negotiated(sample),
    }


def _negotiated(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the negotiated options, and the peer's idle time if it is known."""
    found: dict[str, Any] = {}
    options = "".join(text for name, text in _OPTIONS.items() if sample[name])
    if sample["send_window_scale"] is not None:
        options += "/wscale"
        found.update(snd_wscale=sample["send_window_scale"], rcv_wscale=sample["receive_window_scale"])
    if sample["idle_ms"] is not None:
        found["last_data_recv"] = sample["idle_ms"]
    return {"options": options, **found}
