"""Arguments of a stream, their defaults and notations."""

from __future__ import annotations

import re
import warnings
from typing import Any

from trex.errors import TRexError


def _varying(name: str, mode: str = "fixed") -> dict[str, Any]:
    return {f"{name}_mode": mode, f"{name}_step": 1, f"{name}_count": 1}


# Lengths are in bytes: of a frame with FCS, or from the IP header on for `l3_` names (except
# `l3_imix`).
DEFAULTS: dict[str, Any] = {
    # Operation on the stream.
    "mode": None,
    "split_by_cores": "split",
    "load_profile": None,
    "consistent_random": False,
    "ignore_macs": False,
    "disable_flow_stats": False,
    "flow_stats_id": None,
    "port_handle": None,
    "port_handle2": None,
    "bidirectional": False,
    "stream_id": None,
    "name": None,
    "direction": 0,
    # Schedule.
    "transmit_mode": "continuous",
    "rate_pps": None,
    "rate_bps": None,
    "rate_percent": 10,
    "pkts_per_burst": 1,
    "burst_loop_count": 1,
    "inter_burst_gap": 12,
    # Frame length.
    "length_mode": "fixed",
    "l3_imix1_size": 64,
    "l3_imix1_ratio": 7,
    "l3_imix2_size": 570,
    "l3_imix2_ratio": 4,
    "l3_imix3_size": 1518,
    "l3_imix3_ratio": 1,
    "l3_imix4_size": 9230,
    "l3_imix4_ratio": 0,
    "frame_size": 64,
    "frame_size_min": 64,
    "frame_size_max": 64,
    "frame_size_step": 1,
    "l3_length": None,
    "l3_length_min": 110,
    "l3_length_max": 238,
    "l3_length_step": 1,
    # Ethernet. Addresses with a suffix 2 are for the reverse direction.
    "l2_encap": "ethernet_ii",
    "mac_src": "00:00:01:00:00:01",
    "mac_dst": "00:00:00:00:00:00",
    "mac_src2": "00:00:01:00:00:01",
    "mac_dst2": "00:00:00:00:00:00",
    **_varying("mac_src"),
    **_varying("mac_dst"),
    **_varying("mac_src2"),
    **_varying("mac_dst2"),
    # VLAN tags: one value, or one for each tag.
    "vlan_user_priority": 1,
    **_varying("vlan_priority"),
    "vlan_id": 0,
    **_varying("vlan_id"),
    "vlan_cfi": 1,
    "vlan_protocol_tag_id": None,
    # IPv4.
    "l3_protocol": None,
    "ip_precedence": 0,
    "ip_tos_field": 0,
    "ip_mbz": 0,
    "ip_delay": 0,
    "ip_throughput": 0,
    "ip_reliability": 0,
    "ip_cost": 0,
    "ip_reserved": 0,
    "ip_dscp": 0,
    "ip_cu": 0,
    "ip_id": 0,
    "ip_fragment_offset": 0,
    "ip_ttl": 64,
    "ip_checksum": None,
    "ip_src_addr": "0.0.0.0",
    "ip_dst_addr": "192.0.0.1",
    **_varying("ip_src"),
    **_varying("ip_dst"),
    # IPv6.
    "ipv6_traffic_class": 0,
    "ipv6_flow_label": 0,
    "ipv6_length": None,
    "ipv6_next_header": None,
    "ipv6_hop_limit": 64,
    "ipv6_src_addr": "fe80:0:0:0:0:0:0:12",
    "ipv6_dst_addr": "fe80:0:0:0:0:0:0:22",
    **_varying("ipv6_src"),
    **_varying("ipv6_dst"),
    # TCP.
    "l4_protocol": None,
    "tcp_src_port": 1024,
    "tcp_dst_port": 80,
    "tcp_seq_num": 1,
    "tcp_ack_num": 1,
    "tcp_data_offset": 5,
    "tcp_fin_flag": 0,
    "tcp_syn_flag": 0,
    "tcp_rst_flag": 0,
    "tcp_psh_flag": 0,
    "tcp_ack_flag": 0,
    "tcp_urg_flag": 0,
    "tcp_window": 4069,
    "tcp_checksum": None,
    "tcp_urgent_ptr": 0,
    **_varying("tcp_src_port", "increment"),
    **_varying("tcp_dst_port", "increment"),
    # UDP.
    "udp_src_port": 1024,
    "udp_dst_port": 80,
    "udp_length": None,
    **_varying("udp_src_port", "increment"),
    **_varying("udp_dst_port", "increment"),
}

# Arguments without a default, which are read only if given.
_OPTIONAL = ("pg_id", "save_to_yaml", "save_to_pcap")

_MACS = ("mac_src", "mac_dst", "mac_src2", "mac_dst2")
_MAC_STEPS = ("mac_src_step", "mac_dst_step", "mac_src2_step", "mac_dst2_step")
_FCS_LEN = 4
_TRUE = (True, 1, "1", "true", "yes", "y", "enable", "enabled")

_TAG_ARGUMENTS = tuple(name for name in DEFAULTS if name.startswith("vlan_"))


class Arguments(dict[str, Any]):
    """All arguments of one stream. `names_set` has the names that the user passed."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(DEFAULTS)
        self.names_set = frozenset(arguments)
        for name, value in arguments.items():
            if name in DEFAULTS or name in _OPTIONAL:
                self[name] = value
            else:
                warnings.warn(f"argument '{name}' is not supported", stacklevel=4)
        self._normalise_macs()

    def number(self, name: str) -> int:
        """Returns an integer argument, which can be text."""
        try:
            return int(self[name])
        except (TypeError, ValueError) as error:
            raise TRexError(f"{name} is a whole number, not {self[name]!r}") from error

    def frame_len(self, name: str) -> int:
        """Returns a frame length without FCS, from an argument that includes it."""
        return self.number(name) - _FCS_LEN

    def flag(self, name: str) -> bool:
        """Returns whether an argument is true, in any of its notations."""
        value = self[name]
        return (value.lower() if isinstance(value, str) else value) in _TRUE

    def reverse_direction(self) -> None:
        """Applies `direction`: exchanges the addresses for the reverse direction."""
        if self.number("direction") == 0:
            return
        self["mac_src"], self["mac_dst"] = self["mac_src2"], self["mac_dst2"]
        family = {"ipv4": "ip", "ipv6": "ipv6"}.get(self["l3_protocol"])
        if family is None:
            return
        for suffix in ("addr", "mode", "step", "count"):
            src, dst = f"{family}_src_{suffix}", f"{family}_dst_{suffix}"
            self[src], self[dst] = self[dst], self[src]

    def tags(self) -> list[dict[str, Any]]:
        """Returns the `vlan_` arguments of each tag, outermost first; empty if none is given.

        The longest argument determines the number of tags. Shorter ones use their defaults.
        """
        if self["l2_encap"] != "ethernet_ii_vlan" and self.names_set.isdisjoint(_TAG_ARGUMENTS):
            return []
        values = {name: _to_list(name, self[name]) for name in _TAG_ARGUMENTS}
        return [
            {n: v[tag] if tag < len(v) else DEFAULTS[n] for n, v in values.items()}
            for tag in range(max(map(len, values.values())))
        ]

    def _normalise_macs(self) -> None:
        for name in _MACS + _MAC_STEPS:
            value = self[name]
            if value is None or (name in _MAC_STEPS and isinstance(value, int)):
                continue
            self[name] = _mac(name, value)


def _mac(name: str, value: Any) -> str:
    """Converts a MAC address in any common notation to colons."""
    groups = re.split(r"[-:.\s]+", value.strip("{} ")) if isinstance(value, str) else []
    digits = [g.zfill(2) for g in groups] if len(groups) == 6 else groups
    text = "".join(digits)
    if not re.fullmatch(r"[0-9a-fA-F]{12}", text):
        raise TRexError(
            f"{name} is {value!r}; write a MAC address as 01:23:45:67:89:10, 01-23-45-67-89-10, "
            "0123.4567.8910 or {01 23 45 67 89 10}"
        )
    return ":".join(text[i : i + 2] for i in range(0, 12, 2))


def _to_list(name: str, value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if value is None or isinstance(value, int):
        return [value]
    if isinstance(value, str):
        return value.strip("{} ").split()
    raise TRexError(f"{name} is a value, several parted by spaces, or a list, not {value!r}")
