"""The client on a veth pair between two namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stream_helpers import LIMIT_S, burst, continuous, packet, sent, wait_until, wait_until_idle
from wirestorm_lab import ip

from trex.stl.api import (
    ARP,
    ICMP,
    IP,
    TCP,
    UDP,
    Dot1Q,
    Ether,
    IPv6,
    PacketBuffer,
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLStream,
    STLTXMultiBurst,
    STLTXSingleBurst,
    TRexTimeoutError,
    stl_map_ports,
)


def test_script_runs_unmodified(lab):
    script = Path(__file__).parent / "scripts/bidirectional.py"
    # Search path of the packages, installed or not.
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, script]
    done = subprocess.run(command, env=paths, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    first_line, *lost = done.stdout.splitlines()
    stats = json.loads(first_line)
    assert lost == ["lost 0", "lost 0"]
    assert 100 <= stats["opackets"] <= 5000
    # A busy machine can be slower.
    assert all("below the target" in warning for warning in stats["warnings"])


@pytest.mark.parametrize(
    ("script", "speed", "message"),
    [
        ("stl_flow_stats", "10G", "passed :-)"),
        ("stl_flow_latency_stats", "10G", "passed :-)"),
        ("stl_simple_burst", "10G", "passed :-)"),
        # It takes 30 % of the line, more than any machine can send.
        ("stl_imix", "100M", "passed :-)"),
        ("stl_tpg_stats --qinq --pps 100", "10G", "passed :-)"),
        ("tpg_tag_update_example", "10G", "passed successfully"),
        ("hlt_udp_simple -d 1", "10G", "Done"),
    ],
)
def test_trex_scripts_run_unmodified(lab, script, speed, message, monkeypatch):
    if "TREX_CORE" not in os.environ:
        pytest.skip("TREX_CORE names no tree of trex-core")
    name, *arguments = script.split()
    tree = Path(os.environ["TREX_CORE"])
    folder = "scripts/automation/trex_control_plane/interactive/trex/examples/stl"
    monkeypatch.setenv("WIRESTORM_TREX_SPEED", speed)
    command = [sys.executable, tree / folder / f"{name}.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    lost = [line for line in done.stdout.splitlines() if line.startswith("packets lost")]
    was_only_slow = "below the target" in done.stdout and all(" 0 pkts" in line for line in lost)
    assert message in done.stdout or was_only_slow, done.stdout + done.stderr


def test_counters_match_trex(client):
    client.add_streams([burst(200), burst(100, size=100)], ports=0)
    client.add_streams(STLStream(packet=packet(), mode=STLTXMultiBurst(5, 1000.0, 4)), ports=[1])
    client.clear_stats()
    client.start([0, 1])
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()
    assert (stats[0]["opackets"], stats[1]["ipackets"]) == (300, 300)
    assert stats[0]["obytes"] == stats[1]["ibytes"] == 200 * 64 + 100 * 104
    assert (stats[1]["opackets"], stats[0]["ipackets"], stats[1]["obytes"]) == (20, 20, 20 * 64)
    assert stats["total"]["opackets"] == 320 and stats["total"]["oerrors"] == 0
    assert set(stats[0]) == {
        *("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors"),
        *("tx_bps", "tx_pps", "tx_bps_L1", "tx_util", "rx_bps", "rx_pps", "rx_bps_L1", "rx_util"),
    }
    assert {"cpu_util", "queue_full", "tx_pps", "rx_drop_bps"} <= set(stats["global"])
    assert stats["flow_stats"]["global"]["rx_err"] == {0: 0, 1: 0, "total": 0}
    client.clear_stats()
    assert sent(client) == 0 and client.get_stats([1])[1]["ipackets"] == 0
    assert client.get_xstats(0)["rx_packets"] >= 20


def test_packet_group_has_counters_and_delays(client):
    client.add_streams(burst(300, flow_stats=STLFlowStats(pg_id=5)), ports=[0])
    client.add_streams(burst(50, flow_stats=STLFlowStats(pg_id=5)), ports=[0])
    client.add_streams(burst(200, size=80, flow_stats=STLFlowLatencyStats(pg_id=7)), ports=[0])
    client.clear_stats()
    client.start(ports=[0])
    assert client.get_active_pgids() == {"flow_stats": [5], "latency": [7]}
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()
    counted = stats["flow_stats"][5]
    assert counted["tx_pkts"] == {0: 350, 1: 0, "total": 350}
    assert counted["rx_pkts"] == {0: 0, 1: 350, "total": 350}
    assert counted["tx_bytes"]["total"] == counted["rx_bytes"][1] == 350 * 64
    latency = stats["latency"][7]
    assert latency["err_cntrs"] == {
        "dropped": 0,
        "out_of_order": 0,
        "dup": 0,
        "seq_too_high": 0,
        "seq_too_low": 0,
    }
    delay = latency["latency"]
    assert 0 < delay["total_min"] <= delay["average"] <= delay["total_max"]
    assert sum(delay["histogram"].values()) == 200
    assert all(key < 10 or str(key)[1:].strip("0") == "" for key in delay["histogram"])
    only = client.get_pgid_stats([7])
    assert set(only["flow_stats"]) == {7, "global"} and set(only["latency"]) == {7, "global"}
    client.clear_pgid_stats()
    assert client.get_pgid_stats()["flow_stats"][5]["tx_pkts"]["total"] == 0


def test_packet_group_has_rates_during_the_run(client):
    client.add_streams(continuous(2000, flow_stats=STLFlowStats(pg_id=1)), ports=[0])
    client.start([0])
    wait_until(lambda: client.get_pgid_stats()["flow_stats"][1]["rx_pkts"][1] > 200)
    time.sleep(0.5)
    found = client.get_pgid_stats()["flow_stats"][1]
    assert found["tx_pps"][0] > 100 and found["rx_bps_l1"][1] > found["rx_bps"][1] > 0
    port = client.get_stats()[0]
    assert port["tx_pps"] > 100 and port["tx_bps_L1"] > port["tx_bps"] > 0
    client.stop()
    assert client.get_pgid_stats()["flow_stats"][1]["tx_pps"][0] == 0
    assert client.get_stats()[0]["tx_pps"] == 0


def test_rates_are_current(client):
    client.add_streams(burst(5000, pps=50_000), ports=[0])
    client.start([0])
    client.wait_on_traffic(timeout=LIMIT_S)
    client.remove_all_streams()
    client.add_streams(continuous(100), ports=[0])
    client.start([0])
    time.sleep(1)
    stats = client.get_stats()
    # Excludes earlier traffic.
    assert 1 <= stats[0]["tx_pps"] <= 200 and 1 <= stats[1]["rx_pps"] <= 200
    assert stats["global"]["tx_pps"] == pytest.approx(stats[0]["tx_pps"])
    client.stop()
    time.sleep(0.2)
    client.get_stats()
    time.sleep(0.2)
    assert client.get_stats()[1]["rx_pps"] == 0


def test_single_streams_pause_and_change_as_in_trex(client):
    number, other = client.add_streams([burst(9999, pps=100), continuous(100)], ports=[0])
    client.start([0])
    with pytest.raises(STLError, match="only continuous streams"):
        client.pause_streams(0, [other])
    with pytest.raises(STLError, match="port 1 is not sending"):
        client.pause_streams([0, 1], [other])
    client.stop()
    client.remove_streams(number, ports=[0])
    client.start([0])
    client.add_streams(continuous(100), ports=[1])
    client.start([1])
    with pytest.raises(STLError, match="one port, or one profile of it"):
        client.pause_streams([0, 1], [other])
    with pytest.raises(STLError, match="200.0 % of its 10 Gb/s"):
        client.update_streams(0, "200%", stream_ids=[other])
    with pytest.raises(STLError, match="numbers of streams"):
        client.update_streams(0, "2", stream_ids=[number])
    with pytest.raises(STLError, match="200.0 % of its 10 Gb/s"):
        client.update([0], "200%")
    with pytest.raises(STLError, match="less than what is sent"):
        client.update([0], "1mpps-")
    client.update([0], "50%+")
    client.pause_streams(0, [other])
    client.resume_streams("0._", [other])


def test_lost_frames_count_as_dropped(client):
    client.add_streams(burst(100, flow_stats=STLFlowLatencyStats(pg_id=3), size=80), ports=[0])
    # The frames go to port 1, but this client expects them at port 0.
    client.links[1].interface, client.links[0].interface = (
        client.links[0].interface,
        client.links[0].interface,
    )
    client.start([0])
    client.wait_on_traffic(timeout=LIMIT_S)
    errors = client.get_stats()["latency"][3]["err_cntrs"]
    # No later frame arrived that would have shown a gap.
    assert errors["dropped"] == 100 and errors["seq_too_high"] == 0


def test_small_frames_are_counted_by_their_headers(client):
    """As in TRex, by the IPv4 identification or the IPv6 flow label."""
    short = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / TCP() / bytes(6)
    tagged = Ether() / Dot1Q(vlan=7) / IP() / TCP() / bytes(2)
    newer = Ether() / IPv6() / TCP()
    frames = {1: (short, 300), 2: (tagged, 200), 3: (newer, 100), 4: (short, 50)}
    streams = [
        STLStream(
            packet=STLPktBuilder(pkt=frame),
            mode=STLTXSingleBurst(count, pps=2000),
            flow_stats=STLFlowStats(pg_id=group),
        )
        for group, (frame, count) in frames.items()
    ]
    # With further streams, with and without statistics.
    streams += [burst(70), burst(80, flow_stats=STLFlowStats(pg_id=5))]
    client.add_streams(streams, ports=[0])
    client.start([0])
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()
    for group, (frame, count) in frames.items():
        counted = stats["flow_stats"][group]
        assert (counted["tx_pkts"][0], counted["rx_pkts"][1]) == (count, count), group
        assert counted["rx_bytes"][1] == counted["tx_bytes"][0] == count * (len(frame) + 4)
    assert stats["flow_stats"][5]["rx_pkts"][1] == 80
    assert stats[0]["opackets"] == 800


def test_concurrent_profiles_have_different_signatures(client):
    short = STLPktBuilder(pkt=Ether() / IP() / TCP() / bytes(6))
    for group, name in ((1, "one"), (2, "other")):
        stream = STLStream(
            packet=short,
            mode=STLTXSingleBurst(100 * group, pps=500),
            flow_stats=STLFlowStats(pg_id=group),
        )
        client.add_streams(stream, ports=[f"0.{name}"])
    client.start(["0.one", "0.other"])
    client.wait_on_traffic(timeout=LIMIT_S)
    counted = client.get_pgid_stats()["flow_stats"]
    assert [counted[group]["rx_pkts"][1] for group in (1, 2)] == [100, 200]


def test_update_and_pause(client):
    first, second = client.add_streams([continuous(), continuous()], ports=[0])
    client.start([0])
    wait_until(lambda: sent(client) > 100)
    client.pause([0])
    assert client.get_paused_ports() == [0] and client.get_transmitting_ports() == []
    wait_until_idle(client)
    with pytest.raises(STLError, match="paused already"):
        client.pause([0])
    client.update([0], mult="100kpps")
    before, began = sent(client), time.monotonic()
    client.resume([0])
    wait_until(lambda: sent(client) > before + 20_000)
    # More than the 2,000 of the streams themselves.
    assert (sent(client) - before) / (time.monotonic() - began) > 3000
    client.update([0], mult="-99.98%")
    time.sleep(0.5)
    before = sent(client)
    time.sleep(1)
    assert 1 <= sent(client) - before <= 60
    client.pause_streams(0, [first, second])
    wait_until_idle(client)
    client.update_streams(0, mult="1kpps", stream_ids=[second])
    client.resume_streams(0, [second])
    before = sent(client)
    wait_until(lambda: sent(client) > before + 100)
    client.stop([0])
    assert not client.is_traffic_active() and client.get_active_ports() == []
    with pytest.raises(STLError, match="not sending"):
        client.update([0], mult="2")


def test_start_can_be_repeated_and_forced(client):
    client.add_streams(continuous(), ports=[0, 1])
    client.start([0])
    client.start([1])
    wait_until(lambda: sent(client, 0) > 10 and sent(client, 1) > 10)
    with pytest.raises(STLError, match="port 0 is sending"):
        client.start([0])
    client.start([0], force=True, duration=0.2)
    client.wait_on_traffic([0], timeout=LIMIT_S)
    assert client.get_active_ports() == [1]
    with pytest.raises(TRexTimeoutError):
        client.wait_on_traffic([1], timeout=0.1)
    client.reset()
    assert client.get_active_ports() == [] and sent(client) == 0
    assert client.get_port_info(0)[0]["status"] == "IDLE"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ports": [5]}, "'ports' cannot be [5]; it can be 0, 1"),
        ({"ports": [0, 0]}, "duplicate port"),
        ({"mult": "fast"}, "argument 'mult' cannot be 'fast'"),
        ({"mult": "+5%"}, "argument 'mult' cannot be '+5%'"),
        ({"mult": "200%"}, "need 200.0 % of its 10 Gb/s"),
        ({"mult": 5}, "'mult' is of type int"),
        ({"core_mask": 9}, "CORE_MASK_SPLIT"),
        ({"core_mask": [1, 2]}, "2 masks for 1 ports"),
        ({"synchronized": True}, "lack their neighbours"),
        ({"ports": [1]}, "port 1 has no streams"),
        ({"ports": "0.*"}, "named"),
    ],
)
def test_invalid_start_is_rejected(client, arguments, message):
    client.add_streams(continuous(), ports=[0])
    if arguments.get("ports") == "0.*":
        # A port's other profiles have no streams.
        arguments, message = {"ports": "0.other"}, "has no streams"
    with pytest.raises(STLError) as caught:
        client.start(**{"ports": [0], **arguments})
    assert message in str(caught.value)
    assert client.get_active_ports() == []


def test_start_reports_conflicts(client):
    client.add_streams(continuous(), ports=[0])
    client.set_service_mode([0])
    assert client.get_service_enabled_ports() == [0]
    with pytest.raises(STLError, match="service mode"):
        client.start([0])
    client.set_service_mode([0], enabled=False)
    client.release([0])
    with pytest.raises(STLError, match="not acquired"):
        client.start([0])
    client.acquire([0])
    small = STLStream(
        packet=STLPktBuilder(pkt=Ether() / IP() / UDP(), build_raw=False),
        flow_stats=STLFlowStats(pg_id=1),
    )
    client.remove_all_streams()
    client.add_streams(small, ports=[0])
    client.start([0], duration=0.1)
    client.stop()
    client.remove_all_streams()
    full = STLPktBuilder(pkt=Ether() / IP() / TCP() / bytes(6))
    client.add_streams(STLStream(packet=full, flow_stats=STLFlowLatencyStats(pg_id=1)), ports=[0])
    with pytest.raises(STLError, match=r"port 0: streams\[0\].*found 60 bytes, expected at least 72"):
        client.start([0])
    client.remove_all_streams()
    arp = STLPktBuilder(pkt=Ether() / ARP() / bytes(18))
    client.add_streams(STLStream(packet=arp, flow_stats=STLFlowStats(pg_id=1)), ports=[0])
    with pytest.raises(STLError, match=r"flow_stats.*statistics of ARP.*leave it out"):
        client.start([0])
    client.remove_all_streams()
    client.add_streams(continuous(), ports=[0])
    namespace = client.links[1].interface.partition(":")[0].removeprefix("netns/")
    ip("-n", namespace, "link", "set", "veth1", "down")
    with pytest.raises(STLError, match="no carrier"):
        client.start([0])


def test_streams_are_added_and_removed_by_id(client, profiles):
    assert client.add_streams(continuous(), ports=[0]) == 1
    assert client.add_streams([continuous(), continuous(stream_id=9)], ports=[0]) == [2, 9]
    with pytest.raises(STLError, match="already has a stream 9"):
        client.add_streams(continuous(stream_id=9), ports=[0])
    client.remove_streams([1, 9], ports=[0])
    with pytest.raises(STLError, match="has no stream 1"):
        client.remove_streams(1, ports=[0])
    assert list(client.get_port(0).streams) == [2]
    client.remove_all_streams()
    assert client.get_profiles_with_state("streams") == []
    client.add_profile(str(profiles / "clients.py"), ports=[0, "1.other"])
    assert client.get_profiles_with_state("streams") == ["0._", "1.other"]
    client.clear_stl_profiles()
    with pytest.raises(STLError, match="'streams' cannot be"):
        client.add_streams("x", ports=[0])


def test_push_packets_and_pcap(client, tmp_path):
    from trex.stl.api import wrpcap

    layers = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP() / UDP() / bytes(30)
    client.clear_stats()
    client.push_packets([layers, bytes(layers), PacketBuffer(layers, port_src=True)], ports=[0])
    assert sent(client) == 3 and client.get_stats()[1]["ipackets"] == 3
    assert client.get_profiles_with_state("streams") == []
    capture = tmp_path / "capture.pcap"
    wrpcap(str(capture), [layers] * 4)
    client.push_pcap(str(capture), ports=[0], ipg_usec=1000, count=3)
    client.wait_on_traffic([0], timeout=LIMIT_S)
    assert sent(client) == 3 + 4 * 3
    back = Ether(src=layers.dst, dst=layers.src) / IP() / UDP() / bytes(30)
    wrpcap(str(capture), [layers, back, back])
    client.remove_all_streams()
    client.clear_stats()
    client.push_remote(str(capture), ports=[0], ipg_usec=1000, is_dual=True)
    client.wait_on_traffic(timeout=LIMIT_S)
    assert (sent(client, 0), sent(client, 1)) == (1, 2)


def test_pushed_packets_get_the_ports_addresses_by_default(client):
    named = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP() / UDP() / bytes(30)
    unnamed = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / bytes(30)
    own = client.links[0]
    ports = bytes.fromhex((own.destination + own.source).replace(":", ""))
    client.set_service_mode(ports=[1])
    capture = client.start_capture(rx_ports=[1], limit=10)["id"]
    pushed = [named, unnamed, bytes(named), PacketBuffer(named), PacketBuffer(named, True, True)]
    client.push_packets(pushed, ports=0, force=True)
    client.wait_on_traffic(ports=0)
    frames = []
    client.stop_capture(capture, output=frames)
    addresses = bytes(named)[:12]
    assert [one["binary"][:12] for one in frames] == [addresses, ports, ports, addresses, ports]


def test_capture_of_received_frames_in_service_mode(client, tmp_path):
    from trex.stl.api import rdpcap

    def frame(number):
        ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        return ether / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(dport=number) / bytes(30)

    with pytest.raises(STLError, match="not in service mode"):
        client.start_capture(rx_ports=[1])
    client.set_service_mode([0, 1])
    everything = client.start_capture(rx_ports=[1])["id"]
    last = client.start_capture(rx_ports=1, limit=2, mode="cyclic", snaplen=20)["id"]
    chosen = client.start_capture(rx_ports=1, limit=1, bpf_filter="udp port 3 or udp port 4")["id"]
    frames = [frame(number) for number in range(1, 6)]
    frames[0] = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / Dot1Q(vlan=7, prio=2)
    frames[0] = frames[0] / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / bytes(30)
    client.push_packets(frames, ports=0, force=True)
    client.wait_on_traffic(ports=0)
    received = []
    client.stop_capture(everything, output=received)
    assert [one["binary"] for one in received] == [bytes(one) for one in frames]
    assert all(one["port"] == 1 and one["origin"] == "RX" for one in received)
    wait_until(lambda: client.get_capture_status()[chosen]["matched"] == 2)
    assert client.get_capture_status()[chosen]["count"] == 1
    captured = []
    client.fetch_capture_packets(chosen, captured)
    assert [one["binary"] for one in captured] == [bytes(frames[2])]
    file = tmp_path / "last.pcap"
    client.stop_capture(last, str(file))
    assert [bytes(one) for one in rdpcap(str(file))] == [bytes(one)[:20] for one in frames[3:]]
    client.remove_all_captures()
    assert client.get_capture_status() == {}
    for arguments in ({}, {"rx_ports": []}, {"rx_ports": 1, "bpf_filter": "udq"}):
        with pytest.raises(STLError):
            client.start_capture(**arguments)
    with pytest.raises(STLError, match="capture_id"):
        client.stop_capture(chosen)


def test_map_ports(client):
    found = {"map": {0: 1, 1: 0}, "bi": [(0, 1)], "unknown": []}
    assert stl_map_ports(client) == found
    client.disconnect()
    os.environ["WIRESTORM_TREX_PORTS"] = os.environ["WIRESTORM_TREX_PORTS"].partition(",")[0]
    client.connect()
    assert client.map_ports() == {"map": {0: None}, "bi": [], "unknown": [0]}


def test_resolve_and_ping_the_next_hop(client):
    namespace = client.links[1].interface.partition(":")[0].removeprefix("netns/")
    ip("-n", namespace, "addr", "add", "10.9.9.2/24", "dev", "veth1")
    client.set_l3_mode(0, "10.9.9.1", "10.9.9.2")
    mac = client.get_port_info(1)[0]["hw_mac"]
    assert client.get_port_attr(0)["arp"] == mac and client.get_resolved_ports() == [0]
    first, second = client.ping_ip(0, "10.9.9.2", count=2, interval_sec=0)
    assert first["status"] == second["status"] == "success" and first["ttl"] == 64
    (lost,) = client.ping_ip(0, "10.9.9.7", count=1)
    assert lost["status"] == "timeout"
    with pytest.raises(STLError, match="no answer for 10.9.9.3"):
        client.set_l3_mode(0, "10.9.9.1", "10.9.9.3")
    client.set_l2_mode(0, "02:00:00:00:00:07")
    assert client.get_resolvable_ports() == []
    with pytest.raises(STLError, match="dst_mac"):
        client.set_l2_mode(0, "nowhere")


def test_promiscuous_mode(client):
    def port_info():
        namespace = client.links[0].interface.partition(":")[0].removeprefix("netns/")
        (link,) = json.loads(ip("-n", namespace, "-d", "-j", "link", "show", "veth0"))
        return link

    def promiscuity():
        return port_info()["promiscuity"]

    client.set_port_attr([0], promiscuous=True)
    assert promiscuity() == 1 and client.get_port_attr(0)["prom"] == "on"
    client.set_port_attr([0], promiscuous=False)
    assert promiscuity() == 0 and client.get_port_attr(0)["prom"] == "off"
    client.set_port_attr([0], multicast=True)
    assert port_info()["allmulti"] == 1 and client.get_port_attr(0)["mult"] == "on"
    client.set_port_attr([0], multicast=False)
    assert port_info()["allmulti"] == 0 and client.get_port_attr(0)["mult"] == "off"
    client.set_port_attr([0], promiscuous=True)
    client.disconnect()
    client.connect()
    assert promiscuity() == 0
    client.acquire()
    for attribute in ({"link_up": False}, {"led_on": True}, {"flow_ctrl": 0}):
        with pytest.raises(STLError, match="ip link|ethtool"):
            client.set_port_attr([0], **attribute)


def test_client_is_a_context_manager(lab):
    with STLClient() as client:
        assert client.is_connected() and client.is_all_ports_acquired()
        assert client.get_port_count() == 2 and client.get_all_ports() == [0, 1]
        client.add_streams(continuous(), ports=[0])
        client.start([0])
        assert client.is_traffic_active()
    assert not client.is_connected()
    with pytest.raises(STLError, match="not connected"):
        client.get_stats()
    with STLClient() as client:
        # The client has released the interface.
        client.add_streams(burst(1), ports=[0])
        client.start([0])


def test_deleted_interface_causes_a_warning(client):
    client.add_streams(continuous(), ports=[0])
    client.start([0])
    wait_until(lambda: sent(client) > 10)
    namespace = client.links[0].interface.partition(":")[0].removeprefix("netns/")
    ip("-n", namespace, "link", "set", "veth0", "down")
    client.wait_on_traffic([0], timeout=LIMIT_S)
    assert any("veth0" in warning.msg for warning in client.get_warnings())
    client.clear_events()
    assert not client.has_events()


def test_received_frames_match_the_streams(client, tmp_path):
    """The received frames match the profile, including the port's addresses."""
    namespace = client.links[1].interface.partition(":")[0].removeprefix("netns/")
    file = tmp_path / "arrived.pcap"
    command = ["ip", "netns", "exec", namespace, "tcpdump", "-i", "veth1", "-w", str(file)]
    # Without port 1, nothing counts and consumes its frames.
    client.links.pop(1)
    with subprocess.Popen([*command, "-U", "-c", "3", "icmp"], stderr=subprocess.PIPE) as capture:
        wait_until(lambda: b"listening on" in capture.stderr.readline())
        echo = Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / ICMP(seq=5) / bytes(20)
        client.links[0].destination = "02:00:00:00:00:09"
        stream = STLStream(packet=STLPktBuilder(pkt=echo), mode=STLTXSingleBurst(3, pps=1000))
        client.add_streams(stream, ports=[0])
        client.start([0])
        assert capture.wait(timeout=LIMIT_S) == 0
    from trex.stl.api import rdpcap

    frames = rdpcap(str(file))
    assert len(frames) == 3
    assert all(it[Ether].dst == "02:00:00:00:00:09" for it in frames)
    assert all(it[Ether].src == client.links[0].source for it in frames)
    assert all(bytes(it[IP]).startswith(bytes(echo[IP])) for it in frames)
