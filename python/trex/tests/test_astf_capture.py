"""Captured conversations as programs of both sides."""

from __future__ import annotations

import base64

import pytest

from trex.astf.api import (
    ASTFAssociationRule,
    ASTFCapInfo,
    ASTFCmdDelay,
    ASTFCmdDelayRnd,
    ASTFError,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProgram,
)
from trex.stl.api import (
    ARP,
    ICMP,
    IP,
    TCP,
    UDP,
    Dot1Q,
    Ether,
    IPv6,
    IPv6ExtHdrDestOpt,
    PcapNgWriter,
    Raw,
    wrpcap,
)

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"


class Connection:
    """Builds packets of a TCP connection, by default with correct sequence numbers."""

    def __init__(self, lower_layers=None, first_sequence=1000):
        self.lower_layers = lower_layers or (
            lambda source, target: Ether() / IP(src=source, dst=target)
        )
        self.next = {"c": first_sequence, "s": 0xFFFFFF00}
        self.packets = []
        self.add("c", flags="S")
        self.add("s", flags="SA")
        self.add("c")

    def add(self, side, payload=b"", flags="A", sequence=None):
        there = side == "c"
        ends = (CLIENT, SERVER) if there else (SERVER, CLIENT)
        ports = (5000, 8080) if there else (8080, 5000)
        number = self.next[side] if sequence is None else sequence
        header = TCP(sport=ports[0], dport=ports[1], seq=number, flags=flags)
        self.packets.append(self.lower_layers(*ends) / header / Raw(payload))
        self.next[side] = (number + len(payload) + ("S" in flags or "F" in flags)) % (1 << 32)
        return self


def page():
    connection = Connection()
    connection.add("c", b"GET ").add("s").add("c", b"/").add("s", b"a" * 300).add("c")
    # The server's sequence numbers wrap here.
    connection.add("s", b"b" * 400).add("c", b"bye", flags="PA").add("s", flags="FA")
    return connection.add("c", flags="FA").add("s")


def write_capture(tmp_path, packets, name="talk.pcap"):
    path = str(tmp_path / name)
    wrpcap(path, packets)
    return path


def datagrams(*messages):
    """UDP packets of (side, microseconds since the previous one, payload)."""
    packets, usec = [], 1_700_000_000_000_000
    for side, gap, payload in messages:
        ends = (CLIENT, SERVER) if side == "c" else (SERVER, CLIENT)
        ports = (5000, 53) if side == "c" else (53, 5000)
        header = UDP(sport=ports[0], dport=ports[1])
        packet = Ether() / IP(src=ends[0], dst=ends[1]) / header / Raw(payload)
        usec += gap
        packet.time = usec / 1e6
        packets.append(packet)
    return packets


def addresses():
    return ASTFIPGen(
        ASTFIPGenDist(["16.0.0.1", "16.0.0.9"]), ASTFIPGenDist(["48.0.0.1", "48.0.0.9"])
    )


def document(*captures, **arguments):
    return ASTFProfile(addresses(), cap_list=list(captures), **arguments).to_json()


def sides(found):
    """Returns the commands of each side of the only template; those of `tx` with bytes."""
    (template,) = found["templates"]
    programs = [
        found["program_list"][template[f"{side}_template"]["program_index"]]
        for side in ("client", "server")
    ]
    return tuple([_short(c, found["buf_list"]) for c in p["commands"]] for p in programs)


def _short(command, buffers):
    values = {k: v for k, v in command.items() if k not in ("name", "buf_index")}
    if "buf_index" in command:
        return (command["name"], base64.b64decode(buffers[command["buf_index"]]))
    return (command["name"], *values.values())


PAGE_SIDES = (
    [("tx", b"GET /"), ("rx", 700), ("tx", b"bye")],
    [("rx", 5), ("tx", b"a" * 300 + b"b" * 400), ("rx", 8)],
)


def test_connection_becomes_messages_of_both_sides(tmp_path):
    found = document(ASTFCapInfo(file=write_capture(tmp_path, page().packets), cps=2.5))
    assert sides(found) == PAGE_SIDES
    (template,) = found["templates"]
    assert template["client_template"]["port"] == 8080
    assert template["client_template"]["cps"] == 2.5
    assert template["server_template"]["assoc"] == [{"port": 8080}]


def test_template_has_the_arguments_of_the_capture(tmp_path):
    path = write_capture(tmp_path, page().packets)
    rule = ASTFAssociationRule(port=81, ip_start="48.0.0.1", ip_end="48.0.0.4")
    found = document(
        ASTFCapInfo(file=path, port=80, limit=5, cont=True, tg_name="a"),
        ASTFCapInfo(file=path, assoc=rule),
    )
    # Equal conversations share their programs.
    assert len(found["program_list"]) == 2
    first, second = found["templates"]
    assert first["client_template"]["port"] == first["server_template"]["assoc"][0]["port"] == 80
    assert (first["client_template"]["limit"], first["tg_id"]) == (5, 1)
    assert first["client_template"]["cps"] == 1
    assert second["client_template"]["port"] == 81
    assert second["server_template"]["assoc"] == [rule.to_json()]


@pytest.mark.parametrize(
    "lower_layers",
    [
        lambda source, target: Ether() / Dot1Q(vlan=5) / IP(src=source, dst=target),
        lambda source, target: (
            Ether(type=0x88A8) / Dot1Q(vlan=5) / Dot1Q(vlan=6) / IP(src=source, dst=target)
        ),
        lambda source, target: Ether() / IPv6(src=f"::{source}", dst=f"::{target}"),
        lambda source, target: (
            Ether() / IPv6(src=f"::{source}", dst=f"::{target}") / IPv6ExtHdrDestOpt()
        ),
        lambda source, target: Ether() / IP(src="127.0.0.1", dst="127.0.0.1"),
    ],
    ids=["vlan", "two vlans", "ipv6", "ipv6 with options", "one host"],
)
def test_headers_below_tcp_do_not_matter(tmp_path, lower_layers):
    connection = Connection(lower_layers).add("c", b"one").add("s", b"two")
    assert sides(document(ASTFCapInfo(file=write_capture(tmp_path, connection.packets)))) == (
        [("tx", b"one"), ("rx", 3)],
        [("rx", 3), ("tx", b"two")],
    )


def test_padding_is_ignored_and_offloaded_packets_are_complete(tmp_path):
    connection = Connection().add("c", b"one").add("s", b"two")
    padded = [Ether(bytes(packet) + bytes(6)) for packet in connection.packets]
    offloaded = [
        Ether() / IP(src=p[IP].src, dst=p[IP].dst, len=0) / p[TCP] for p in connection.packets
    ]
    for packets in (padded, offloaded):
        path = write_capture(tmp_path, packets)
        assert sides(document(ASTFCapInfo(file=path)))[0] == [("tx", b"one"), ("rx", 3)]


def test_pcapng_is_read(tmp_path):
    path = str(tmp_path / "talk.pcapng")
    writer = PcapNgWriter(path)
    for packet in page().packets:
        writer.write(packet)
    writer.close()
    assert sides(document(ASTFCapInfo(file=path))) == PAGE_SIDES


def test_server_that_sends_first_waits_for_the_connection(tmp_path):
    connection = Connection().add("s", b"220").add("c", b"EHLO")
    assert sides(document(ASTFCapInfo(file=write_capture(tmp_path, connection.packets)))) == (
        [("rx", 3), ("tx", b"EHLO")],
        [("connect",), ("tx", b"220"), ("rx", 4)],
    )


def test_data_with_fin_and_repeated_syn_are_accepted(tmp_path):
    connection = (
        Connection().add("c", b"one").add("s", b"two", flags="FA").add("c", flags="FA").add("s")
    )
    packets = [connection.packets[0], *connection.packets]
    assert sides(document(ASTFCapInfo(file=write_capture(tmp_path, packets))))[1] == [
        ("rx", 3),
        ("tx", b"two"),
    ]


def test_program_is_of_the_given_side(tmp_path):
    path = write_capture(tmp_path, page().packets)
    client, server = (ASTFProgram(file=path, side=side) for side in "cs")
    assert [c.name for c in client.commands] == ["tx", "rx", "tx"]
    assert [c.name for c in server.commands] == ["rx", "tx", "rx"]
    assert client.payload_len == server.payload_len == 708
    assert (client.total_send_bytes, server.total_send_bytes) == (8, 700)


def test_capture_path_is_relative_to_the_profile(tmp_path, monkeypatch):
    folder = tmp_path / "profiles"
    folder.mkdir()
    write_capture(folder, page().packets, "page.pcap")
    path = folder / "page.py"
    path.write_text(
        "from trex.astf.api import *\n\n"
        "class Page:\n"
        "    def get_profile(self, tunables, **kwargs):\n"
        "        pools = ASTFIPGen(ASTFIPGenDist(['1.0.0.1', '1.0.0.2']),\n"
        "                          ASTFIPGenDist(['2.0.0.1', '2.0.0.2']))\n"
        "        return ASTFProfile(pools, cap_list=ASTFCapInfo(file='page.pcap'))\n\n"
        "def register():\n"
        "    return Page()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert sides(ASTFProfile.load(str(path)).to_json()) == PAGE_SIDES
    # Without a running profile, relative to the working directory.
    assert len(ASTFProgram(file="profiles/page.pcap").commands) == 3


def test_datagrams_are_answers_or_follow_a_delay(tmp_path):
    packets = datagrams(
        ("c", 0, b"q1"),
        ("c", 50, b"q2"),
        ("c", 51, b"q3"),
        ("s", 900_000, b"a1"),
        ("s", 10_000, b"a2"),
        ("c", 20_000, b"q4"),
        ("c", 400_000, b"q5"),
        ("s", 5, b"a3"),
    )
    found = document(ASTFCapInfo(file=write_capture(tmp_path, packets)))
    client, server = sides(found)
    # Like TRex, differences of seconds in floating point, truncated to microseconds.
    assert [c[0] for c in client] == ["tx_msg"] * 2 + ["delay"] + [
        "tx_msg",
        "rx_msg",
        "tx_msg",
        "delay",
        "tx_msg",
        "rx_msg",
    ]
    assert [c[1] for c in client if c[0] == "delay"] == pytest.approx([51, 400_000], abs=1)
    assert [c[1] for c in client if c[0] == "rx_msg"] == [2, 3]
    assert [c[0] for c in server] == ["rx_msg", "tx_msg", "delay", "tx_msg", "rx_msg", "tx_msg"]
    assert [c[1] for c in server if c[0] == "rx_msg"] == [3, 5]
    assert all(p["stream"] is False for p in found["program_list"])


def test_long_pauses_are_limited_and_set_keepalives(tmp_path):
    packets = datagrams(("c", 0, b"q1"), ("c", 2_000_000, b"q2"), ("s", 10, b"a"))
    client, server = sides(document(ASTFCapInfo(file=write_capture(tmp_path, packets))))
    keepalive = ("keepalive", 1_400_000)
    pause = ("delay", 700_000)
    # The client has it twice, as in TRex: its own, and a copy from the server's.
    assert client == [
        keepalive,
        keepalive,
        ("tx_msg", b"q1"),
        pause,
        ("tx_msg", b"q2"),
        ("rx_msg", 1),
    ]
    assert server == [keepalive, ("rx_msg", 2), ("tx_msg", b"a")]


def test_s_delay_precedes_each_answer(tmp_path):
    connection = Connection().add("c", b"1").add("s", b"2").add("c", b"3").add("s", b"4")
    path = write_capture(tmp_path, connection.packets)
    client, server = sides(document(ASTFCapInfo(file=path, s_delay=ASTFCmdDelay(500))))
    assert client == [("tx", b"1"), ("rx", 1), ("tx", b"3"), ("rx", 2)]
    wait = ("delay", 500)
    assert server == [("rx", 1), wait, ("tx", b"2"), ("rx", 2), wait, ("tx", b"4")]
    # The profile's delay applies to captures without their own.
    own = ASTFCapInfo(file=path, port=1, s_delay=ASTFCmdDelayRnd(1, 9))
    found = document(own, ASTFCapInfo(file=path, port=2), s_delay=ASTFCmdDelay(500))
    names = [[c["name"] for c in p["commands"]] for p in found["program_list"]]
    assert names[1] == ["rx", "delay_rnd", "tx", "rx", "delay_rnd", "tx"]
    assert names[2] == ["rx", "delay", "tx", "rx", "delay", "tx"]


def test_s_delay_of_datagrams_sets_keepalives(tmp_path):
    packets = datagrams(("c", 0, b"q"), ("s", 10, b"a1"), ("s", 10, b"a2"))
    path = write_capture(tmp_path, packets)
    for s_delay, expected in (
        (ASTFCmdDelay(899_999), []),
        (ASTFCmdDelay(900_000), [("keepalive", 1350)]),
        (ASTFCmdDelayRnd(5, 2_000_000), [("keepalive", 3000)]),
    ):
        client, server = sides(document(ASTFCapInfo(file=path, s_delay=s_delay)))
        assert client == [*expected, ("tx_msg", b"q"), ("rx_msg", 2)]
        assert server[: len(expected)] == expected
        # Before the first answer, not between the two.
        assert [c[0] for c in server[len(expected) :]] == [
            "rx_msg",
            s_delay.name,
            "tx_msg",
            "tx_msg",
        ]


def test_udp_mtu_truncates_datagrams(tmp_path):
    path = write_capture(tmp_path, datagrams(("c", 0, b"x" * 100), ("s", 10, b"y" * 58)))
    own = ASTFCapInfo(file=path, udp_mtu=142)
    by_profile = document(ASTFCapInfo(file=path), udp_mtu=100)
    assert sides(document(own))[0] == [("tx_msg", b"x" * 100), ("rx_msg", 1)]
    assert sides(by_profile)[0] == [("tx_msg", b"x" * 58), ("rx_msg", 1)]
    assert sides(by_profile)[1] == [("rx_msg", 1), ("tx_msg", b"y" * 58)]
    # The MTU of one capture does not affect another.
    found = document(ASTFCapInfo(file=path, udp_mtu=52), ASTFCapInfo(file=path, port=54))
    assert [len(base64.b64decode(b)) for b in found["buf_list"]] == [10, 10, 100, 58]
    with pytest.raises(ASTFError, match="udp_mtu is 42, which leaves no payload"):
        document(ASTFCapInfo(file=path, udp_mtu=42))


def test_l7_percent_divides_flows_by_payload(tmp_path):
    # TRex uses the sizes as percents, whatever the given percents are.
    small = write_capture(tmp_path, Connection().add("c", b"x" * 100).packets, "small.pcap")
    large = write_capture(tmp_path, Connection().add("s", b"x" * 300).packets, "large.pcap")
    found = document(
        ASTFCapInfo(file=small, l7_percent=25, port=1),
        ASTFCapInfo(file=large, l7_percent=75.0, port=2),
    )
    rates = [t["client_template"]["cps"] for t in found["templates"]]
    assert rates == pytest.approx([50, 50])
    found = document(
        ASTFCapInfo(file=small, l7_percent=50, port=1),
        ASTFCapInfo(file=large, l7_percent=50, port=2),
    )
    rates = [t["client_template"]["cps"] for t in found["templates"]]
    assert rates == pytest.approx([75, 25])
    for first, second, reason in (
        ({"l7_percent": 50}, {"l7_percent": 49}, "are 99 together, not 100"),
        ({"l7_percent": 100}, {"cps": 1}, r"l7_percent is given, but not of '.*large\.pcap'"),
    ):
        with pytest.raises(ASTFError, match=reason):
            document(
                ASTFCapInfo(file=small, port=1, **first), ASTFCapInfo(file=large, port=2, **second)
            )


def test_l7_percent_requires_payload(tmp_path):
    path = write_capture(tmp_path, datagrams(("c", 0, b""), ("s", 5, b"")))
    assert sides(document(ASTFCapInfo(file=path)))[0] == [("tx_msg", b""), ("rx_msg", 1)]
    with pytest.raises(ASTFError, match="has no payload to have l7_percent of: give it cps"):
        document(ASTFCapInfo(file=path, l7_percent=100))


def test_port_of_a_capture_and_of_a_template_conflict(tmp_path):
    path = write_capture(tmp_path, page().packets)
    with pytest.raises(ASTFError, match="templates 0 and 1 both have a server at TCP port 8080"):
        document(ASTFCapInfo(file=path), ASTFCapInfo(file=path))
    udp = write_capture(tmp_path, datagrams(("c", 0, b"q"), ("s", 1, b"a")), "udp.pcap")
    assert document(ASTFCapInfo(file=path), ASTFCapInfo(file=udp, port=8080))


def invalid_capture(name):
    """Returns a capture that is not a complete conversation, and its error."""
    packets = page().packets
    other = Ether() / IP(src=CLIENT, dst="10.0.0.3") / UDP(sport=5000, dport=53)
    elsewhere = packets[3].copy()
    elsewhere[TCP].dport = 81
    fragment = packets[3].copy()
    fragment[IP].flags = "MF"
    no_tcp_header = packets[3].copy()
    no_tcp_header[TCP].dataofs = 4
    no_ip_header = packets[3].copy()
    no_ip_header[IP].ihl = 4
    short = Ether(bytes(packets[3])[:40])
    return {
        "late": (packets[3:], "packet 1: a connection begins with SYN and SYN.ACK"),
        "answer first": (packets[1:], r"packet 1: a SYN\+ACK without a SYN before it"),
        "two": (
            packets + Connection().packets,
            "another SYN after the SYN.ACK: the capture holds two",
        ),
        "repeated": (
            packets[:4] + packets[3:],
            "packet 5: its TCP sequence number is 1001, and 1005",
        ),
        "missing": (
            packets[:5] + packets[6:],
            "packet 7: its TCP sequence number is 1006, and 1005",
        ),
        "other ports": ([*packets[:3], elsewhere], "packet 4: it belongs to another conversation"),
        "other host": (datagrams(("c", 0, b"q")) + [other], "packet 2: it belongs to another"),
        "both": (packets[:3] + datagrams(("c", 0, b"q")), "packet 4: .* in both TCP and UDP"),
        "arp": ([Ether() / ARP()], r"packet 1: it is neither IPv4 nor IPv6 \(EtherType 0x0806\)"),
        "icmp": ([Ether() / IP() / ICMP()], r"packet 1: it is neither TCP nor UDP \(protocol 1\)"),
        "fragment": ([*packets[:3], fragment], "packet 4: it is a fragment of an IPv4 packet"),
        "short": ([*packets[:3], short], "packet 4: too short for its headers"),
        "tcp": ([*packets[:3], no_tcp_header], "packet 4: its TCP header has 16 bytes, not 20"),
        "ip": ([*packets[:3], no_ip_header], "packet 4: its IPv4 header has 16 bytes, not 20"),
        "silent": (packets[:3], "has no data: neither side sends anything"),
        "link": ([IP() / UDP()], "packet 1: its link type is 228, not 1"),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "late", "answer first", "two", "repeated", "missing", "other ports", "other host", "both",
        "arp", "icmp", "fragment", "short", "tcp", "ip", "silent", "link",
    ],
)  # fmt: skip
def test_invalid_conversations_report_the_packet(tmp_path, name):
    packets, reason = invalid_capture(name)
    path = write_capture(tmp_path, packets)
    with pytest.raises(ASTFError, match=reason) as error:
        ASTFProgram(file=path)
    assert path in str(error.value)


def test_files_that_are_not_captures_are_rejected(tmp_path):
    text = tmp_path / "a.pcap"
    text.write_text("no capture")
    with pytest.raises(ASTFError, match=r"a\.pcap' is not a capture"):
        ASTFProgram(file=str(text))
    with pytest.raises(ASTFError, match=r"no such file: '.*b\.pcap'"):
        ASTFProgram(file=str(tmp_path / "b.pcap"))
