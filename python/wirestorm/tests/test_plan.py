"""Plans from objects, files and Scapy packets."""

from __future__ import annotations

import datetime
import ipaddress
import json
from pathlib import Path

import pytest

import wirestorm as ws

ROOT = Path(__file__).parents[3]
# Plans of flows only. The other examples are plans of clients and servers.
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.yaml") if "\nflows:\n" in path.read_text()
)


def make_plan(*packet: ws.Header, **arguments: object) -> ws.Plan:
    """A plan with one flow of this packet."""
    plan = ws.Plan()
    plan.add_flow("flow", plan.add_port("port"), packet, **arguments)
    return plan


def field(plan: ws.Plan, count: int, start: int, end: int) -> list[int]:
    """Returns the integers in a byte range of the plan's first frames."""
    return [int.from_bytes(frame.data[start:end], "big") for frame in ws.frames(plan, count)]


def test_objects_convert_to_the_plan():
    plan = ws.Plan()
    left, right = plan.add_port("left", "eth1", speed="10G"), plan.add_port("right")
    packet = [
        ws.ethernet(dst="02:00:00:00:00:02"),
        ws.ipv4(src=ws.increment("10.0.0.1", 250), dst=ipaddress.ip_address("192.0.2.1")),
        ws.tcp(ctl_syn=1, options=[ws.Header("mss", value=1460)]),
        ws.payload(text="hello"),
    ]
    plan.add_flow(
        "clients",
        left,
        packet,
        rx=[right],
        size={"frame": 128},
        rate="100kpps",
        duration=datetime.timedelta(seconds=30),
        start_delay=0.001,
        measure=True,
    )
    assert plan.to_dict() == {
        "ports": [{"name": "left", "location": "eth1", "speed": "10G"}, {"name": "right"}],
        "flows": [
            {
                "name": "clients",
                "tx": "left",
                "rx": ["right"],
                "packet": [
                    {"ethernet": {"dst": "02:00:00:00:00:02"}},
                    {
                        "ipv4": {
                            "src": {"increment": {"start": "10.0.0.1", "count": 250}},
                            "dst": "192.0.2.1",
                        }
                    },
                    {"tcp": {"ctl_syn": 1, "options": [{"mss": {"value": 1460}}]}},
                    {"payload": {"text": "hello"}},
                ],
                "size": {"frame": 128},
                "rate": "100kpps",
                "duration": "30000000000ns",
                "start_delay": "1000000ns",
                "metrics": {"enable": True},
            }
        ],
    }
    plan.check()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_plan_of_a_file_survives_load_and_save(example, tmp_path):
    plan = ws.Plan.load(example)
    saved = tmp_path / "plan.json"
    plan.save(saved)
    assert ws.frames(saved, 20) == ws.frames(example, 20)
    assert ws.Plan.load(saved) == plan


def test_examples_exist():
    assert len(EXAMPLES) >= 3


def test_patterns_yield_their_values():
    def ports(pattern: ws.Pattern, count: int) -> list[int]:
        plan = make_plan(ws.ethernet(), ws.ipv4(), ws.udp(dst_port=pattern))
        return field(plan, count, 36, 38)

    assert ports(ws.values(80, 443), 3) == [80, 443, 80]
    assert ports(ws.increment(5, 3, step=2), 4) == [5, 7, 9, 5]
    assert ports(ws.decrement(5, 2), 3) == [5, 4, 5]
    random_ports = ports(ws.random(10, 12, seed=4), 60)
    assert set(random_ports) == {10, 11, 12}
    assert ports(ws.random(10, 12, seed=4, count=3), 6) == random_ports[:3] * 2
    weighted = ports(ws.weighted({1: 1, 2: 0, 3: 5}), 60)
    assert set(weighted) == {1, 3} and weighted.count(3) > weighted.count(1)


def test_field_with_after_waits_for_another():
    udp = ws.udp(src_port=ws.values(1, 2), dst_port=ws.values(7, 8, after="udp.src_port"))
    plan = make_plan(ws.ethernet(), ws.ipv4(), udp)
    assert field(plan, 4, 34, 38) == [1 << 16 | 7, 2 << 16 | 7, 1 << 16 | 8, 2 << 16 | 8]


def test_payloads_and_sizes():
    plan = make_plan(ws.custom(bytes(14)), ws.payload(fixed=b"\x01\x02"), size={"frame": 64})
    (frame,) = ws.frames(plan, 1)
    assert frame.data == bytes(14) + b"\x01\x02" * 25
    assert len(ws.frames(make_plan(ws.ethernet(), ws.payload(), size=100), 1)[0].data) == 96
    with pytest.raises(TypeError, match="text, bytes"):
        ws.payload(text="a", bytes=b"b")


def test_capture_path_is_relative_to_the_plan(tmp_path, monkeypatch):
    folder = tmp_path / "captures"
    folder.mkdir()
    udp = [ws.ethernet(), ws.ipv4(src="10.0.0.9"), ws.udp(dst_port=ws.increment(5, 9))]
    ws.simulate(make_plan(*udp), folder / "udp.pcap", packets=3)
    fields = {"ipv4.src": ws.increment("10.0.0.1", 2)}
    plan = make_plan(ws.capture("udp.pcap", 3, fields))
    plan.folder = folder
    assert field(plan, 2, 26, 30) == [0x0A000001, 0x0A000002]
    assert field(plan, 1, 36, 38) == [7]
    plan.save(folder / "plan.json")
    monkeypatch.chdir("/")
    assert ws.Plan.load(folder / "plan.json").to_dict() == plan.to_dict()
    assert ws.frames(folder / "plan.json", 2) == ws.frames(plan, 2)
    with pytest.raises(ws.PlanError, match="udp.pcap"):
        make_plan(ws.capture("udp.pcap")).check()


def test_durations_are_times_packets_or_bursts():
    def duration(value: object) -> object:
        return make_plan(ws.ethernet(), duration=value).to_dict()["flows"][0]["duration"]

    assert duration("30s") == "30s"
    assert duration(0.25) == "250000000ns"
    assert duration(ws.packets(7)) == {"fixed_packets": 7}
    bursts = ws.bursts(3, packets=10, gap="1ms")
    assert duration(bursts) == {"burst": {"bursts": 3, "packets": 10, "inter_burst_gap": "1ms"}}
    make_plan(ws.ethernet(), duration=bursts).check()


def test_plan_error_lists_all_errors_with_their_paths():
    plan = make_plan(ws.ipv4(src="10.0.0.300"), rate="fast")
    plan.add_port("port")
    with pytest.raises(ws.PlanError) as caught:
        plan.check()
    paths = [path for path, _ in caught.value.errors]
    assert paths == ["ports[1]", "flows[0].packet[0].ipv4.src", "flows[0].rate"]
    assert 'found "10.0.0.300", expected an IPv4 address' in str(caught.value)
    with pytest.raises(ws.PlanError, match="^no/such/plan.yaml: No such file"):
        ws.frames("no/such/plan.yaml")
    with pytest.raises(ws.PlanError, match="invalid YAML"):
        ws.Plan.from_yaml("flows: [")
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, ws.WirestormError)


def test_simulation_writes_the_frames_of_the_plan(tmp_path):
    from scapy.all import rdpcap

    plan = ws.Plan()
    for name in ("a", "b"):
        packet = [ws.ethernet(), ws.ipv4(), ws.udp(src_port=ws.increment(1, 1000))]
        plan.add_flow(name, plan.add_port(name), packet, rate="1kpps")
    simulated = ws.simulate(plan, tmp_path / "out.pcap", duration=0.01)
    assert [(it.port, it.file.name, it.packets) for it in simulated] == [
        ("a", "out.a.pcap", 10),
        ("b", "out.b.pcap", 10),
    ]
    packets = rdpcap(str(simulated[0].file))
    assert [packet.sport for packet in packets] == list(range(1, 11))
    assert float(packets[1].time - packets[0].time) == pytest.approx(0.001)
    (_, faster) = ws.simulate(plan, tmp_path / "out.pcap", duration="10ms", multiplier="3kpps")
    assert faster.packets == 30
    with pytest.raises(ValueError, match='multiplier "x": expected a factor'):
        ws.simulate(plan, tmp_path / "out.pcap", packets=1, multiplier="x")
    with pytest.raises(ValueError, match="requires an end"):
        ws.simulate(plan, tmp_path / "out.pcap")
    with pytest.raises(ws.RunError, match="no/such/folder"):
        ws.simulate(plan, "/no/such/folder/out.pcap", packets=1)


def test_line_rates_match_rfc_5180():
    assert int(ws.line_rate("10G", 64)) == 14_880_952
    assert int(ws.line_rate("100M", 1280)) == 9_615
    for arguments in (("10", 3), ("fast", 64)):
        with pytest.raises(ValueError):
            ws.line_rate(*arguments)


def test_scapy_packets_keep_every_byte():
    scapy = pytest.importorskip("scapy.all")
    ether = scapy.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    ipv4 = scapy.IP(src="10.0.0.1", dst="10.0.0.2", tos=5, flags="DF", ttl=9)
    tcp = scapy.TCP(sport=5, dport=80, flags="SEC", seq=7)
    known = [
        ether / ipv4 / scapy.UDP(sport=5, dport=53) / b"hello",
        ether / ipv4 / tcp / (b"x" * 100),
        ether / scapy.Dot1Q(vlan=7, prio=3) / ipv4 / scapy.UDP(),
        ether / scapy.Dot1AD(vlan=9) / scapy.Dot1Q(vlan=7) / ipv4 / scapy.UDP(),
        ether / scapy.IPv6(src="2001:db8::1", dst="2001:db8::2", fl=9) / scapy.UDP() / b"hello",
        ether / ipv4 / scapy.ICMP(id=3, seq=4) / b"ping",
        ether / scapy.ARP(pdst="10.0.0.9"),
        ether / scapy.LLC() / b"hello",
    ]
    others = [
        # Packets that headers cannot describe exactly become bytes.
        ether / scapy.IP(src="10.0.0.1", dst="10.0.0.2", chksum=7) / scapy.UDP(),
        ether / ipv4 / scapy.TCP(options=[("MSS", 1460)]),
    ]
    for packet in known + others:
        flow = ws.Flow.from_scapy("flow", packet, "port")
        (frame,) = ws.frames(ws.Plan([ws.Port("port")], [flow]), 1)
        assert frame.data == bytes(packet).ljust(60, b"\0"), packet.summary()
        is_known = packet in known
        assert (flow.packet[0].name != "custom") is is_known, packet.summary()


def test_fields_of_a_scapy_packet_can_vary():
    scapy = pytest.importorskip("scapy.all")
    ether = scapy.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    packet = ether / scapy.IP(src="10.0.0.1", dst="10.0.0.2") / scapy.UDP() / b"hello"
    sources = {"ipv4.src": ws.increment("10.0.0.1", 3)}
    flow = ws.Flow.from_scapy("flow", packet, "port", vary=sources, rate="10pps")
    frames = ws.frames(ws.Plan([ws.Port("port")], [flow]), 3)
    found = [scapy.Ether(frame.data) for frame in frames]
    assert [it[scapy.IP].src for it in found] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    # Checksums are correct in every frame.
    assert all(it == scapy.Ether(it.__class__(bytes(it)).build()) for it in found)
    for path in ("tcp.dst_port", "ipv4"):
        with pytest.raises(ws.PlanError, match=r"a field of the packet: ethernet\.\*"):
            ws.Flow.from_scapy("flow", packet, "port", vary={path: 1})
    packet[scapy.IP].chksum = 7
    with pytest.raises(ws.PlanError, match=r"cannot vary ipv4\.src"):
        ws.Flow.from_scapy("flow", packet, "port", vary=sources)


def test_repr_is_the_expression_that_creates_the_object():
    header = ws.ipv4(src=ws.increment("10.0.0.1", 250), dst="192.0.2.1")
    assert repr(header) == "ipv4(src=increment(start='10.0.0.1', count=250), dst='192.0.2.1')"
    assert repr(ws.values(1, 2, after="ipv4.src")) == "values(1, 2, after='ipv4.src')"
    assert header == ws.Header("ipv4", json.loads(json.dumps(header.to_plan()))["ipv4"])


def test_patterns_can_be_masked_and_restart():
    source = ws.increment("0.0.0.254", 4).masked("0.255.0.0", shift=16, value="10.0.3.1")
    plan = make_plan(
        ws.ethernet(),
        ws.ipv4(src=source),
        ws.udp(
            src_port=ws.increment(5, 100).restart_after(3),
            dst_port=ws.random(1, 1000, after="udp.src_port"),
        ),
    )
    assert [it >> 16 & 255 for it in field(plan, 4, 26, 30)] == [254, 255, 0, 1]
    assert {it & 0xFF00FFFF for it in field(plan, 4, 26, 30)} == {0x0A000301}
    assert field(plan, 4, 34, 36) == [5, 6, 7, 5]
