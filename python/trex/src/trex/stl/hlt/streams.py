"""Streams from named arguments."""

from __future__ import annotations

from typing import Any

import yaml

from trex.errors import TRexError
from trex.files import writing
from trex.stl.hlt.arguments import Arguments
from trex.stl.hlt.packets import packet_builder
from trex.stl.modes import STLTXCont, STLTXMode, STLTXMultiBurst, STLTXSingleBurst
from trex.stl.statistics import STLFlowStats
from trex.stl.streams import STLStream

_RATES = {"rate_pps": "pps", "rate_bps": "bps_L2", "rate_percent": "percentage"}
_IMIX = ("l3_imix1", "l3_imix2", "l3_imix3", "l3_imix4")
_IMIX_SIZE_MIN = 32
# Preamble, start-of-frame delimiter and inter-frame gap (IEEE 802.3), in bytes a frame.
_LINE_OVERHEAD = 20


def STLHltStream(**user_kwargs: Any) -> STLStream | list[STLStream]:
    """Returns the stream of the arguments in `trex.stl.hlt.arguments`.

    With `length_mode="imix"`, returns a list of streams, one for each size. Raises `STLError` for
    contradicting arguments.
    """
    arguments = Arguments(user_kwargs)
    rate = _rate(arguments)
    if arguments["length_mode"] == "imix":
        return _imix(arguments, rate, user_kwargs)
    stream = STLStream(
        packet=packet_builder(arguments),
        random_seed=int(arguments.flag("consistent_random")),
        flow_stats=_statistics(arguments),
        mode=_mode(arguments, rate),
    )
    if isinstance(arguments.get("save_to_yaml"), str):
        path = arguments["save_to_yaml"]
        with writing(path), open(path, "w") as file:
            yaml.safe_dump([stream.to_json()], file)
    return stream


def _rate(arguments: Arguments) -> str:
    """Returns the argument with the rate."""
    rate_names = [name for name in _RATES if name in arguments.names_set]
    if len(rate_names) > 1:
        raise TRexError(f"{', '.join(rate_names)} exclude each other")
    rate = rate_names[0] if rate_names else "rate_percent"
    if rate == "rate_percent" and float(arguments[rate]) > 100:
        raise TRexError(f"rate_percent is {arguments[rate]}, more than 100")
    return rate


def _mode(arguments: Arguments, rate: str) -> STLTXMode:
    value = {_RATES[rate]: float(arguments[rate])}
    mode = arguments["transmit_mode"]
    if mode == "continuous":
        return STLTXCont(**value)
    if mode == "single_burst":
        return STLTXSingleBurst(arguments.number("pkts_per_burst"), **value)
    if mode == "multi_burst":
        return STLTXMultiBurst(
            arguments.number("pkts_per_burst"),
            float(arguments["inter_burst_gap"]),
            arguments.number("burst_loop_count"),
            **value,
        )
    raise TRexError(f"transmit_mode is continuous, single_burst or multi_burst, not {mode}")


def _statistics(arguments: Arguments) -> STLFlowStats | None:
    if arguments["l3_protocol"] is None or arguments.flag("disable_flow_stats"):
        return None
    number = arguments.get("pg_id", arguments["flow_stats_id"])
    return STLFlowStats(number) if number else None


def _imix(arguments: Arguments, rate: str, user_kwargs: dict[str, Any]) -> list[STLStream]:
    """Returns a stream for each size, with rates that yield the ratios of frames."""
    shares: dict[str, int] = {}
    for imix in _IMIX:
        size, ratio = arguments.number(f"{imix}_size"), arguments.number(f"{imix}_ratio")
        if size < _IMIX_SIZE_MIN:
            raise TRexError(f"{imix}_size is {size}; expected at least {_IMIX_SIZE_MIN}")
        weight = {"rate_pps": 1, "rate_bps": size, "rate_percent": size + _LINE_OVERHEAD}[rate]
        shares[imix] = ratio * weight
    total = float(sum(shares.values()))
    if total == 0:
        raise TRexError("length_mode is imix, and the ratio of every size is 0")
    streams: list[STLStream] = []
    for imix, share in shares.items():
        if share <= 0:
            continue
        one = {
            **user_kwargs,
            "length_mode": "fixed",
            "frame_size": arguments[f"{imix}_size"],
            rate: float(arguments[rate]) * share / total,
        }
        if isinstance(one.get("save_to_yaml"), str):
            suffix = imix.replace("l3_", "_")
            one["save_to_yaml"] = one["save_to_yaml"].replace(".yaml", f"{suffix}.yaml")
        stream = STLHltStream(**one)
        streams += stream if isinstance(stream, list) else [stream]
    return streams
