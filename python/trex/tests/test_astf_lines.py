"""Console lines of the stateful client for ports, streams and packet groups, on a veth pair."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.utils import wrpcap
from stream_helpers import LIMIT_S, burst, sent, wait_until

from trex.astf.api import ASTFClient, TRexError
from trex.stl.api import (
    STLFlowLatencyStats,
    STLPktBuilder,
    STLStream,
    STLTaggedPktGroup,
    STLTXSingleBurst,
)

PING = 64
PROFILE = str(Path(__file__).parent / "profiles/stateful_pages.py")


@pytest.fixture
def client(lab):
    """A client with both ports acquired."""
    found = ASTFClient()
    found.connect()
    found.reset()
    yield found
    found.disconnect()


@pytest.fixture
def host(hosts):
    """A client whose ports are hosts with addresses."""
    found = ASTFClient()
    found.connect()
    found.reset()
    yield found
    found.disconnect()


def output_of(capsys, line) -> str:
    """Returns the output of a line."""
    capsys.readouterr()
    line()
    printed: str = capsys.readouterr().out
    return printed


def test_connect_and_disconnect_lines(lab, capsys):
    client = ASTFClient()
    client.connect_line("-r")
    assert client.is_connected() and client.get_acquired_ports() == []
    client.connect_line("--force")
    assert client.get_acquired_ports() == [0, 1]
    output = output_of(capsys, lambda: client.map_line(""))
    assert "port 0 <--> port 1" in output and output.rstrip().endswith("Mapping unknown:")
    assert "the engine answers" in output_of(capsys, lambda: client.ping_line(""))
    assert "connected" in output_of(capsys, lambda: client.get_events_line("-i"))
    assert "connected" not in output_of(capsys, lambda: client.get_events_line("-w"))
    client.get_events_line("-c")
    assert not client.has_events()
    output = output_of(capsys, lambda: client.global_cfg_line("-t sched_max_stretch=3"))
    assert output == "sched_max_stretch = 3\n"
    client.release_line("-a")
    assert client.get_acquired_ports() == []
    for line, message in (
        (lambda: client.release_line(""), "none of these ports is acquired"),
        (lambda: client.map_line(""), "no port is acquired"),
        (lambda: client.set_port_attr_line("--prom on"), "no port is acquired"),
    ):
        with pytest.raises(TRexError, match=message):
            line()
    client.disconnect_line("")
    assert not client.is_connected()
    client.connect_line("")
    client.shutdown_line("--force")
    assert not client.is_connected()


def test_portattr_sets_and_prints_attributes(client, capsys):
    client.set_port_attr_line("-p 0 --prom on --mult on")
    assert client.links[0].is_prom_enabled() and not client.links[1].is_prom_enabled()
    client.set_port_attr_line("-p 0 --prom off")
    assert not client.links[0].is_prom_enabled() and client.links[0].is_mult_enabled()
    output = output_of(capsys, lambda: client.set_port_attr_line("-p 1"))
    assert "port 1" in output and "port 0" not in output and "prom" in output
    assert "Promiscuous:" in output_of(capsys, lambda: client.set_port_attr_line("--supp"))
    with pytest.raises(TRexError, match="ip link set"):
        client.set_port_attr_line("-a --link down")
    with pytest.raises(TRexError, match="ethtool --pause"):
        client.set_port_attr_line("--fc none")


def test_address_and_vlan_lines(client):
    client.set_l2_mode_line("-p 0 --dst 00:00:00:00:00:09")
    assert client.links[0].destination == "00:00:00:00:00:09"
    client.set_vlan_line("-p 0 -p 1 --vlan 7 8")
    assert client.links[0].vlan == client.links[1].vlan == [7, 8]
    client.set_vlan_line("-p 0 -c")
    assert client.links[0].vlan == [] and client.links[1].vlan == [7, 8]
    client.conf_ipv6_line("-p 1 -s 2001:db8::7")
    assert client.links[1].own_ipv6 == "2001:db8::7"
    client.conf_ipv6_line("-p 1 --auto-ipv6")
    assert client.links[1].has_own_ipv6 and client.links[1].own_ipv6 == ""
    client.conf_ipv6_line("-p 1 --off")
    assert not client.links[1].has_own_ipv6
    for line, message in (
        (lambda: client.set_l2_mode_line("-p 0 --dst 1.1.1.1"), "is no Ethernet address"),
        (lambda: client.set_l3_mode_line("-p 0 --src 1.1.1.1"), "required: --dst"),
        (lambda: client.set_vlan_line("-p 0"), "one of the arguments --vlan -c is required"),
        (lambda: client.set_vlan_line("-p 0 --vlan 1 2 3"), "at most two tags"),
        (lambda: client.conf_ipv6_line("-p 0 -s 1.1.1.1"), "is no IPv6 address"),
        (lambda: client.resolve_line(""), "no port has a next hop"),
        (lambda: client.ping_line("-p 0 -d nobody"), "'nobody' is no IP address"),
        (lambda: client.set_l2_mode_line("-p 9 --dst 00:00:00:00:00:09"), "ports"),
    ):
        with pytest.raises(TRexError, match=message):
            line()


def test_arp_and_ping_lines(host, capsys):
    output = output_of(capsys, lambda: host.resolve_line("-p 0 -r 2"))
    assert f"1.1.1.2 is {host.links[1].source}" in output
    output = output_of(capsys, lambda: host.ping_line(f"-p 0 -d 1.1.1.2 -n 2 -s {PING}"))
    assert output.count("1.1.1.2") == 2 and host.get_verbose() == "error"
    host.set_l3_mode_line("-p 0 --src 1.1.1.7 --dst 1.1.1.2")
    assert host.links[0].layer.resolved == host.links[1].source
    host.conf_ipv6_line("-p 1 -s 2001:db8::7")
    assert "IPv6 neighbours" in output_of(capsys, lambda: host.scan6_line("-p 0 -t 1"))
    with pytest.raises(TRexError, match="no answer for 1.1.1.99"):
        host.set_l3_mode_line("-p 0 --src 1.1.1.7 --dst 1.1.1.99")
    # A next hop without an answer is resolved again when it is needed.
    host.load_profile(PROFILE)
    with pytest.raises(TRexError, match="no answer for 1.1.1.99"):
        host.start(duration=1)


def test_pkt_line_takes_a_scapy_expression(client, capsys):
    client.set_service_mode()
    capture = client.start_capture(rx_ports=[1])
    client.pkt_line('-p 0 -s Ether(dst="00:00:00:00:00:09")/IP(ttl=3)/UDP(dport=9)')
    wait_until(lambda: client.get_capture_status()[capture["id"]]["count"] > 0)
    frames: list = []
    client.stop_capture(capture["id"], frames)
    (frame,) = [it for it in frames if it["binary"][:6] == bytes.fromhex("000000000009")]
    assert Ether(frame["binary"])[IP].ttl == 3 and Ether(frame["binary"])[UDP].dport == 9
    before = sent(client)
    output = output_of(capsys, lambda: client.pkt_line("-n -s Ether()/IP()"))
    assert "size: 34" in output and "dry run" in output and sent(client) == before
    assert "DHCP" in output_of(capsys, lambda: client.pkt_line("--layers"))
    for wrong in ("Ether(", "__import__('os')", "3"):
        with pytest.raises(TRexError, match="is not a scapy packet"):
            client.pkt_line(f"-s {wrong}")


def test_ns_line_adds_shows_and_removes_nodes(client, capsys):
    one, other = "00:00:00:01:00:07", "00:00:00:01:00:08"
    client.ns_line(f"add -p 0 --mac {one} --src 1.1.1.7 --dst 1.1.1.2 --vlan 5 --tpid 0x88A8")
    shared = client.set_namespace(0, "add_shared_ns")["result"]
    options = f"--shared-ns {shared} --subnet 24 --dst 1.1.2.1"
    client.ns_line(f"add -p 0 --mac {other} --src 1.1.2.7 --auto-ipv6 {options}")
    output = output_of(capsys, lambda: client.ns_line("show-nodes -p 0"))
    assert one in output and other in output
    output = output_of(capsys, lambda: client.ns_line(f"show-node -p 0 --mac {one}"))
    assert "'1.1.1.7'" in output and str(0x88A8) in output
    client.ns_line("clear-counters -p 0")
    client.ns_line("show-counters -p 0")
    client.ns_line(f"remove -p 0 --mac {one}")
    assert one not in output_of(capsys, lambda: client.ns_line("show-nodes -p 0"))
    client.ns_line("remove-all")
    assert output_of(capsys, lambda: client.ns_line("show-nodes -p 0")) == "no nodes\n"
    assert "show-counters" in output_of(capsys, lambda: client.ns_line(""))
    for line, message in (
        (f"remove -p 0 --mac {one}", one),
        (f"add -p 0 --mac {one} --src 1.1.1.7", "dg"),
        (f"add -p 0 --mac {one} --src 1.1.1.7 --dst 1.1.1.1 --subnet 33", "--subnet"),
    ):
        with pytest.raises(TRexError, match=message):
            client.ns_line(line)


def test_lines_show_pause_and_update_streams(client, profiles, capsys, tmp_path):
    path = profiles / "udp_sizes.py"
    output = output_of(capsys, lambda: client.start_stl_line(f"-f {path} -n -t --sizes 90"))
    assert "dry run" in output and client.get_active_ports() == []
    assert "Ethernet:IP:UDP" in output and " 94 " in output
    client.start_stl_line(f"-f {path} -p 0 --multiplier 100pps --sync -p 1")
    assert client.get_active_ports() == [0, 1]
    client.pause_line("-p 0")
    assert client.get_paused_ports() == [0]
    client.resume_line("")
    assert client.get_paused_ports() == []
    first = min(client.links[0].streams)
    client.pause_line(f"-p 0 -i {first}")
    client.resume_line(f"-p 0 -i {first}")
    client.update_stl_line("-m 200pps -t")
    client.update_stl_line(f"-p 0 -m 2 -i {first}")
    output = output_of(capsys, lambda: client.streams_line("-p 0"))
    assert "packet type" in output and len(output.splitlines()) == 4
    assert len(output_of(capsys, lambda: client.streams_line(f"-p 0 -i {first}")).splitlines()) == 3
    assert "No streams found" in output_of(capsys, lambda: client.streams_line("-i 99"))
    assert "STLPktBuilder(" in output_of(capsys, lambda: client.streams_line("-p 0 --code"))
    assert "port 0._" in output_of(capsys, lambda: client.profiles_line("-p 0"))
    code = tmp_path / "streams.py"
    client.streams_line(f"-p 0 --code {code}")
    streams = runpy.run_path(str(code))["register"]().get_streams()
    assert [it.get_pkt() for it in streams] == [
        it.get_pkt() for it in client.links[0].streams.values()
    ]
    client.streams_line(f"-a --code {tmp_path / 'both.py'}")
    assert sorted(it.name for it in tmp_path.glob("both*")) == ["both_port0.py", "both_port1.py"]
    for line, message in (
        (lambda: client.streams_line(f"-p 0 --code {code}"), "exists already"),
        (lambda: client.streams_line("-p 0 --code streams.txt"), "ends with .py"),
        (lambda: client.resume_line(""), "none of these is paused"),
        (lambda: client.pause_line("-i 1"), "-i selects streams of a single port"),
        (lambda: client.pause_line("-p zero"), "'zero' is neither a port"),
        (lambda: client.start_stl_line(f"-f {path} -p 0"), "is sending"),
    ):
        with pytest.raises(TRexError, match=message):
            line()
    client.stop_stl_line("-a --remove")
    assert client.get_active_ports() == [] and not client.links[0].streams
    with pytest.raises(TRexError, match="no port is transmitting"):
        client.pause_line("")


def test_push_line_sends_a_capture(client, tmp_path):
    capture = tmp_path / "capture.pcap"
    frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=9) / bytes(30)
    wrpcap(str(capture), [frame] * 4)
    for option in ("", "--remote"):
        before = sent(client)
        client.push_line(f"-f {capture} -p 0 -i 1000 --count 3 {option}")
        client.wait_on_traffic_stl([0], timeout=LIMIT_S)
        wait_until(lambda before=before: sent(client) == before + 12)
    with pytest.raises(TRexError, match="no such file"):
        client.push_line("-f nowhere.pcap -p 0")


def test_stats_line_shows_packet_groups(client, capsys):
    measured = burst(20, flow_stats=STLFlowLatencyStats(pg_id=7))
    client.add_streams(measured, ports=[0])
    client.start_stl([0])
    client.wait_on_traffic_stl([0], timeout=LIMIT_S)
    (row,) = output_of(capsys, lambda: client.stats_stl_line("-s")).splitlines()[2:]
    assert row.split()[:3] == ["7", "20", "20"]
    (row,) = output_of(capsys, lambda: client.stats_stl_line("-l")).splitlines()[2:]
    assert row.split()[0] == "7" and row.split()[6:] == ["0"] * 5
    assert "packet group 7" in output_of(capsys, lambda: client.stats_stl_line("--lh"))
    assert "opackets" in output_of(capsys, lambda: client.stats_stl_line("-p --port 0"))
    assert "no pools" in output_of(capsys, lambda: client.show_stats_line("-m"))
    assert "tx_pkts" in output_of(capsys, lambda: client.show_stats_line("-s"))


def test_tagged_packet_groups_by_lines(client, capsys, tmp_path):
    tags = [{"type": "Dot1Q", "value": {"vlan": vlan}} for vlan in (1, 2)]
    qinq = {"type": "QinQ", "value": {"vlans": [5, 6]}}
    file = tmp_path / "tags.json"
    file.write_text(json.dumps([*tags, qinq]))
    assert "is disabled" in output_of(capsys, lambda: client.show_tpg_status(""))
    client.tpg_enable(f"--num-tpgids 2 --tags {file} -p 1")
    output = output_of(capsys, lambda: client.show_tpg_status(""))
    assert "is enabled" in output and output.splitlines()[-1].split()[-3:] == ["[1]", "2", "3"]
    output = output_of(capsys, lambda: client.show_tpg_tags(""))
    assert "Dot1Q(2)" in output and "QinQ(5, 6)" in output and "[0-3)" in output
    layers = Ether() / Dot1Q(vlan=2) / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12)
    group = STLStream(
        packet=STLPktBuilder(pkt=layers / bytes(40)),
        flow_stats=STLTaggedPktGroup(tpgid=1),
        mode=STLTXSingleBurst(20, pps=10_000),
    )
    client.add_streams(group, ports=[0])

    def shown(line, *arguments: str) -> list[list[str]]:
        output = output_of(capsys, lambda: line(" ".join(arguments)))
        return [row.split() for row in output.splitlines()[2:]]

    def sends() -> None:
        client.start_stl([0])
        client.wait_on_traffic_stl([0], timeout=LIMIT_S)

    one, zeros = ["-p 1", "--tpgid 1"], ["0"] * 7
    sends()
    rows = shown(client.show_tpg_stats, *one, "--max-tag 3", "--unknown", "--untagged")
    assert rows[0] == ["0", *zeros] and rows[1][:2] == ["1", "20"] and rows[2] == ["2", *zeros]
    assert {row[0] for row in rows[3:]} == {"unknown", "untagged"}
    assert shown(client.show_tpg_tx_stats, "-p 0 --tpgid 1")[0][0] == "20"
    client.tpg_clear_tx_stats("-p 0 --tpgid 1")
    client.tpg_clear_stats(" ".join([*one, "--tag-list 1"]))
    assert shown(client.show_tpg_tx_stats, "-p 0 --tpgid 1") == [["0", "0"]]
    assert shown(client.show_tpg_stats, *one, "--max-tag 3") == [["0-2", *zeros]]

    client.tpg_update("--type Invalidate --tag_id 1")
    client.tpg_update("--type QinQ --value 7 8 --tag_id 0 --clear")
    tags_now = [row[1:] for row in shown(client.show_tpg_tags)]
    assert tags_now == [["QinQ(7,", "8)"], ["-"], ["QinQ(5,", "6)"]]
    sends()
    assert shown(client.show_tpg_unknown_stats, "-p 1") == [["1", "Dot1Q(2)"]]
    client.tpg_clear_unknown_stats("-p 1")
    output = output_of(capsys, lambda: client.show_tpg_unknown_stats("-p 1"))
    assert output == "No unknown tags found in port 1.\n"
    for line, message in (
        (lambda: client.tpg_update("--type Dot1Q --tag_id 1"), "Dot1Q has one VLAN"),
        (lambda: client.tpg_update("--type QinQ --value 1 --tag_id 1"), "QinQ has two VLANs"),
        (lambda: client.tpg_enable("--num-tpgids 2 --tags nowhere.txt"), "a .py or .json file"),
        (lambda: client.show_tpg_stats("-p 1 --tpgid 9 --max-tag 1"), "tpgid"),
        (lambda: client.tpg_clear_stats("-p 1 --tpgid 1"), "either max_tag or tag_list"),
    ):
        with pytest.raises(TRexError, match=message):
            line()
    client.tpg_disable("")
    assert client.tpg_status is not None and not client.tpg_status["enabled"]
