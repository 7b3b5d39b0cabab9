"""Transmission modes: rate and duration of a stream."""

from __future__ import annotations

from typing import Any

from trex.arguments import check_positive, validate_type, verify_exclusive_arg
from trex.errors import TRexArgumentError, TRexError

RATES = ("pps", "bps_L1", "bps_L2", "percentage")


class STLTXMode:
    """Rate of a stream; one frame per second by default.

    :param pps: frames per second
    :param bps_L1: bits per second with preamble and inter-frame gap (20 bytes a frame)
    :param bps_L2: bits per second of frames with FCS
    :param percentage: share of the port's speed, above 0 and up to 100
    """

    kind = ""

    def __init__(
        self,
        pps: float | None = None,
        bps_L1: float | None = None,
        bps_L2: float | None = None,
        percentage: float | None = None,
    ) -> None:
        rates = [pps, bps_L1, bps_L2, percentage]
        if rates == [None] * len(rates):
            rates[0] = pps = 1.0
        verify_exclusive_arg(rates)
        rate, value = next((n, v) for n, v in zip(RATES, rates) if v is not None)
        validate_type(rate, value, (int, float))
        check_positive(rate, value)
        if percentage is not None and percentage > 100:
            raise TRexArgumentError("percentage", percentage, "up to 100")
        self.fields: dict[str, Any] = {
            "rate": {"type": rate, "value": value},
            "type": self.kind,
        }

    def to_json(self) -> dict[str, Any]:
        """Returns the stream's `mode` member."""
        return {**self.fields, "rate": dict(self.fields["rate"])}

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLTXMode:
        """Creates the mode from a stream's document."""
        try:
            mode = json_data["mode"]
            rate = mode["rate"]
            if rate["type"] not in RATES:
                raise TRexError(f"mode.rate.type is one of {', '.join(RATES)}, not {rate['type']}")
            value = {rate["type"]: rate["value"]}
            if mode["type"] == STLTXCont.kind:
                return STLTXCont(**value)
            if mode["type"] == STLTXSingleBurst.kind:
                return STLTXSingleBurst(mode["total_pkts"], **value)
            if mode["type"] == STLTXMultiBurst.kind:
                return STLTXMultiBurst(mode["pkts_per_burst"], mode["ibg"], mode["count"], **value)
        except KeyError as missing:
            raise TRexError(f"mode has no {missing}") from missing
        raise TRexError(f"unknown mode.type '{mode['type']}'")


class STLTXCont(STLTXMode):
    """Sends until it is stopped."""

    kind = "continuous"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def __str__(self) -> str:
        return "Continuous"


class STLTXSingleBurst(STLTXMode):
    """Sends `total_pkts` frames."""

    kind = "single_burst"

    def __init__(self, total_pkts: int = 1, **kwargs: Any) -> None:
        if not isinstance(total_pkts, int):
            raise TRexArgumentError("total_pkts", total_pkts, "a whole number")
        super().__init__(**kwargs)
        self.fields["total_pkts"] = total_pkts

    def __str__(self) -> str:
        return "Single Burst"


class STLTXMultiBurst(STLTXMode):
    """Sends `count` bursts of `pkts_per_burst` frames, `ibg` microseconds apart."""

    kind = "multi_burst"

    def __init__(
        self, pkts_per_burst: int = 1, ibg: float = 0.0, count: int = 1, **kwargs: Any
    ) -> None:
        if not isinstance(pkts_per_burst, int):
            raise TRexArgumentError("pkts_per_burst", pkts_per_burst, "a whole number")
        if not isinstance(ibg, (int, float)):
            raise TRexArgumentError("ibg", ibg, "a number of microseconds")
        if not isinstance(count, int):
            raise TRexArgumentError("count", count, "a whole number")
        super().__init__(**kwargs)
        self.fields.update(pkts_per_burst=pkts_per_burst, ibg=ibg, count=count)

    def __str__(self) -> str:
        return "Multi Burst"
