"""Router advertisements, frame by frame."""

from __future__ import annotations

from scapy.layers.inet6 import ICMPv6ND_RA, ICMPv6NDOptMTU, ICMPv6NDOptPrefixInfo

from trex.client import routers
from trex.stl.api import Ether, IPv6, generate_ipv6

MAC = "00:00:00:01:00:07"


def advertisement(hlim=255, **prefix):
    option = ICMPv6NDOptPrefixInfo(**{"prefix": "2001:db8::", "prefixlen": 64, "A": 1, **prefix})
    other = ICMPv6NDOptPrefixInfo(prefix="2001:db8:1::", prefixlen=64, A=1)
    header = Ether() / IPv6(src="fe80::1", dst="ff02::1", hlim=hlim)
    return bytes(header / ICMPv6ND_RA() / option / ICMPv6NDOptMTU() / other)


def networks(frame):
    return [routers.address(prefix, MAC) for prefix in routers.prefixes(frame)]


def test_host_has_an_address_in_each_autonomous_prefix():
    first, second = "2001:db8::200:ff:fe01:7", "2001:db8:1:0:200:ff:fe01:7"
    assert networks(advertisement()) == [first, second]
    for wrong in ({"A": 0}, {"prefixlen": 48}, {"validlifetime": 0}):
        assert networks(advertisement(**wrong)) == [second]
    assert networks(advertisement(hlim=64)) == []


def test_random_bytes_are_ignored():
    frame = advertisement()
    for length in range(len(frame)):
        assert len(networks(frame[:length])) <= 1 or length > len(frame) - 32
        for value in (0, 255):
            routers.prefixes(frame[:length] + bytes([value]) + frame[length + 1 :])


def test_solicitation_goes_to_all_routers():
    solicitation = Ether(routers.solicitation(MAC))
    assert (solicitation.dst, solicitation.src, solicitation[IPv6].dst) == (
        "33:33:00:00:00:02",
        MAC,
        "ff02::2",
    )
    assert (solicitation[IPv6].src, solicitation[IPv6].hlim) == (generate_ipv6(MAC), 255)
