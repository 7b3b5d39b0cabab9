"""tcpdump expressions on frames with and without VLAN tags."""

from __future__ import annotations

import pytest
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from stream_helpers import wait_until
from wirestorm_lab import veth_pair

from trex.astf.api import ASTFClient
from trex.client.frame_filter import FrameFilter
from trex.client.packet_socket import PacketSocket
from trex.errors import TRexError

ADDRESSES = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
ADDRESSES_AD = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=0x88A8)
INNER = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=5, dport=6) / bytes(30)
ARPS = ARP(psrc="10.0.0.1", pdst="10.0.0.2") / bytes(18)
FRAMES = {
    "bare": bytes(ADDRESSES / INNER),
    "arp": bytes(ADDRESSES / ARPS),
    "vlan 30": bytes(ADDRESSES / Dot1Q(vlan=30, prio=5) / INNER),
    "vlan 31": bytes(ADDRESSES / Dot1Q(vlan=31) / INNER),
    "vlan 0": bytes(ADDRESSES / Dot1Q(vlan=0, prio=1) / INNER),
    "arp in vlan 30": bytes(ADDRESSES / Dot1Q(vlan=30) / ARPS),
    "vlan 30, vlan 31": bytes(ADDRESSES / Dot1Q(vlan=30) / Dot1Q(vlan=31) / INNER),
    "vlan 30 of 802.1ad": bytes(ADDRESSES_AD / Dot1AD(vlan=30) / Dot1Q(vlan=31) / INNER),
}
IN_VLANS = {name for name in FRAMES if "vlan" in name}
IN_30 = {name for name in IN_VLANS if "vlan 30" in name}
CASES = {
    "vlan 30": IN_30,
    "vlan 30 and ip": {"vlan 30"},
    "vlan 30 and udp port 6": {"vlan 30"},
    "vlan 30 and vlan 31": {"vlan 30, vlan 31", "vlan 30 of 802.1ad"},
    "vlan": IN_VLANS,
    "not vlan": {"bare", "arp"},
    "not vlan 30": set(FRAMES) - IN_30,
    "ip": {"bare"},
    "arp": {"arp"},
    "udp port 6 or (vlan and udp port 6)": {"bare", "vlan 30", "vlan 31", "vlan 0"},
    "ether src 02:00:00:00:00:01": set(FRAMES),
    "ether[14] & 0xe0 = 0xa0": {"vlan 30"},
    "greater 76": IN_VLANS - {"arp in vlan 30"},
    "": set(FRAMES),
}


def names_of(frames):
    """Returns the names of frames."""
    names = {frame: name for name, frame in FRAMES.items()}
    return {names.get(bytes(frame), bytes(frame).hex()) for frame in frames}


@pytest.mark.parametrize(("expression", "matching"), CASES.items())
def test_filter_matches_whole_frames(expression, matching):
    chosen = FrameFilter(expression)
    assert {name for name, frame in FRAMES.items() if chosen.matches(frame)} == matching


def test_invalid_expressions_are_rejected():
    with pytest.raises(TRexError, match="filter 'udq'"):
        FrameFilter("udq")


@pytest.mark.parametrize(("expression", "matching"), CASES.items())
def test_sockets_match_frames_with_removed_tags(lab, expression, matching):
    # The last frame shows that all earlier ones have arrived.
    last = bytes(ADDRESSES / IP(src="10.0.0.1", dst="10.0.0.2") / ICMP())
    with PacketSocket(lab.a) as source, PacketSocket(lab.b) as found, PacketSocket(lab.b) as all_:
        found.filter(expression)
        for frame in [*FRAMES.values(), last]:
            source.send(frame)
        assert all_.receive(lambda frame: frame == last, 60) is not None
        assert names_of(frame for frame in found.received() if frame != last) == matching


def test_filter_ignoring_tag_matches_tagged_frames(lab):
    with PacketSocket(lab.a) as source, PacketSocket(lab.b) as found:
        found.filter("vlan 31")
        found.filter_ignoring_tag("udp port 6")
        for frame in FRAMES.values():
            source.send(frame)
        source.send(FRAMES["bare"])
        frames = []

        def is_last(frame):
            frames.append(frame)
            return len(frames) > 1 and frame == FRAMES["bare"]

        assert found.receive(is_last, 60) is not None
        assert names_of(frames) == {"bare", "vlan 30", "vlan 31", "vlan 0"}


def test_captures_filter_both_directions(client):
    client.set_service_mode([0, 1])
    captures = {
        expression: client.start_capture(tx_ports=0, rx_ports=1, bpf_filter=expression)["id"]
        for expression in ("vlan 30", "not vlan", "vlan and arp", "ip")
    }
    everything = client.start_capture(rx_ports=1)["id"]
    client.push_packets([Ether(frame) for frame in FRAMES.values()], ports=0, force=True)
    client.wait_on_traffic(ports=0)
    wait_until(lambda: client.get_capture_status()[everything]["count"] == len(FRAMES))
    for expression, capture in captures.items():
        captured = []
        client.stop_capture(capture, captured)
        matching = CASES.get(expression, {"arp in vlan 30"})
        for origin in ("TX", "RX"):
            frames = [one["binary"] for one in captured if one["origin"] == origin]
            assert names_of(frames) == matching and len(frames) == len(matching), expression


def test_captures_of_the_stateful_client_filter_too(monkeypatch):
    with veth_pair() as lab, PacketSocket(lab.a) as source:
        monkeypatch.setenv("WIRESTORM_TREX_PORTS", f"{lab.a},{lab.b}")
        client = ASTFClient()
        client.connect()
        client.reset()
        capture = client.start_capture(rx_ports=1, bpf_filter="vlan 30")["id"]
        for frame in FRAMES.values():
            source.send(frame)
        wait_until(lambda: client.get_capture_status()[capture]["matched"] == len(IN_30))
        frames = []
        client.stop_capture(capture, frames)
        assert names_of(one["binary"] for one in frames) == IN_30
        client.disconnect()
