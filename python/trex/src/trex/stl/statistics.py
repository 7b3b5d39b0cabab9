"""Measurements of a stream at its receiver."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError


class STLFlowStatsInterface:
    """Measures a stream under a number, its packet group.

    :param vxlan: identify the stream by its inner header
    :param ieee_1588: timestamps of the interface
    """

    rule_type = ""

    def __init__(self, pg_id: int, vxlan: bool = False, ieee_1588: bool = False) -> None:
        self.fields: dict[str, Any] = {
            "enabled": True,
            "stream_id": pg_id,
            "vxlan": vxlan,
            "ieee_1588": ieee_1588,
            "rule_type": self.rule_type,
        }

    def to_json(self) -> dict[str, Any]:
        """Returns the stream's `flow_stats` member."""
        return dict(self.fields)

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLFlowStatsInterface | None:
        """Creates the measurement of a `flow_stats` member; None if it is disabled."""
        try:
            if not json_data["enabled"]:
                return None
            rule, number = json_data["rule_type"], json_data["stream_id"]
        except KeyError as missing:
            raise TRexError(f"flow_stats has no {missing}") from missing
        if rule == STLTaggedPktGroup.rule_type:
            return STLTaggedPktGroup(number)
        for kind in (STLFlowStats, STLFlowLatencyStats):
            if rule == kind.rule_type:
                vxlan = json_data.get("vxlan", False)
                return kind(number, vxlan, json_data.get("ieee_1588", False))
        raise TRexError(f"unknown flow_stats.rule_type '{rule}'")

    @staticmethod
    def defaults() -> dict[str, Any]:
        """Returns the `flow_stats` member of an unmeasured stream."""
        return {"enabled": False}


class STLFlowStats(STLFlowStatsInterface):
    """Counts a stream's frames and bytes."""

    rule_type = "stats"


class STLFlowLatencyStats(STLFlowStatsInterface):
    """Counts, and measures delay, jitter, loss and order."""

    rule_type = "latency"


class STLTaggedPktGroup(STLFlowStatsInterface):
    """Counts by VLAN tag and measures order. Uses the last 16 bytes of the frame."""

    rule_type = "tpg"

    def __init__(self, tpgid: int) -> None:
        super().__init__(tpgid)
