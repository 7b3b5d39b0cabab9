"""What is measured of a stream where it is received."""

from __future__ import annotations

from typing import Any

from trex.errors import TRexError


class STLFlowStatsInterface:
    """Measures a stream under a number, its packet group.

    :param vxlan: the stream is told by its inner header
    :param ieee_1588: the interface stamps the frames
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
        """The stream's `flow_stats` member."""
        return dict(self.fields)

    @staticmethod
    def from_json(json_data: dict[str, Any]) -> STLFlowStatsInterface | None:
        """What a `flow_stats` member measures, None if nothing."""
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
        raise TRexError(f"there is no flow_stats.rule_type '{rule}'")

    @staticmethod
    def defaults() -> dict[str, Any]:
        """The `flow_stats` member of a stream that is not measured."""
        return {"enabled": False}


class STLFlowStats(STLFlowStatsInterface):
    """Counts a stream's frames and bytes."""

    rule_type = "stats"


class STLFlowLatencyStats(STLFlowStatsInterface):
    """Counts, and measures delay, jitter, loss and order."""

    rule_type = "latency"


class STLTaggedPktGroup(STLFlowStatsInterface):
    """Counts by VLAN tag and measures order; takes the last 16 bytes of the frame."""

    rule_type = "tpg"

    def __init__(self, tpgid: int) -> None:
        super().__init__(tpgid)
