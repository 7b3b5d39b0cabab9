"""Clients with a server: `wirestorm serve --trex` on this machine.

`WIRESTORM_BINARY` is the command. The tests without it need no server.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tagged_cases import INVALID_CALLS, dot1q
from wirestorm_lab import veth_pair

from trex.astf.api import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFIPGenGlobal,
    ASTFProfile,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
)
from trex.remote.selection import host_and_port, uses_server
from trex.remote.stl import RemoteSTLClient
from trex.stl.api import (
    IP,
    UDP,
    Dot1Q,
    Ether,
    STLClient,
    STLError,
    STLFlowLatencyStats,
    STLPktBuilder,
    STLStream,
    STLTaggedPktGroup,
    STLTXCont,
    STLTXSingleBurst,
)

BINARY = os.environ.get("WIRESTORM_BINARY")
needs_binary = pytest.mark.skipif(
    BINARY is None, reason="WIRESTORM_BINARY names no command to serve with"
)
_LISTENING = re.compile(r"TRex's clients at ([\d.]+:\d+)")
# Longest wait for the server to listen, and for a condition.
_START_S, _WAIT_S = 30, 30


def serve(mode: str, folder: Path) -> Iterator[str]:
    """Runs a server on a pair of interfaces. Yields the address of its requests."""
    with veth_pair() as lab:
        command = [str(BINARY), "serve", "--listen", "127.0.0.1:0", "--trex", mode]
        command += ["--trex-port", "0", "--trex-async-port", "0"]
        command += ["--port", lab.a, "--port", lab.b]
        command += ["--state-dir", str(folder / "server"), "--runs-dir", str(folder / "runs")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            lines: list[str] = []
            found: list[str] = []
            is_up = threading.Event()

            def read() -> None:
                assert server.stderr is not None
                for line in server.stderr:
                    lines.append(line)
                    match = _LISTENING.search(line)
                    if match is not None:
                        found.append(match[1])
                        is_up.set()

            reader = threading.Thread(target=read)
            reader.start()
            try:
                assert is_up.wait(_START_S), "".join(lines)
                yield found[0]
            finally:
                server.terminate()
                reader.join()


@pytest.fixture
def stateless(tmp_path: Path) -> Iterator[STLClient]:
    """A client of a server for streams, with both ports."""
    for address in serve("stl", tmp_path):
        client = STLClient(server=f"tcp://{address}", username="ada")
        client.connect()
        client.reset()
        yield client
        client.disconnect()


@pytest.fixture
def stateful(tmp_path: Path) -> Iterator[ASTFClient]:
    """A client of a server for clients and servers."""
    for address in serve("astf", tmp_path):
        client = ASTFClient(server=f"tcp://{address}")
        client.connect()
        client.reset()
        yield client
        client.disconnect()


def packet() -> STLPktBuilder:
    """Returns a packet of 86 bytes."""
    frame = Ether() / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12) / (b"x" * 40)
    return STLPktBuilder(pkt=frame)


def wait_until(predicate: Any) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not predicate():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_script_uses_a_server_only_if_it_says_so(monkeypatch):
    for ports in (None, "veth0,veth1"):
        monkeypatch.delenv("WIRESTORM_TREX_PORTS", raising=False)
        if ports is not None:
            monkeypatch.setenv("WIRESTORM_TREX_PORTS", ports)
        for server in ("127.0.0.1", "localhost", "trex04", "10.0.0.1"):
            assert not uses_server((), {"server": server})
            assert type(STLClient(server=server)) is STLClient
        assert uses_server((), {"server": "tcp://127.0.0.1"})
        assert uses_server(("me", "tcp://127.0.0.1"), {})
    monkeypatch.setenv("WIRESTORM_TREX_PORTS", "server")
    client = STLClient(server="127.0.0.1")
    assert isinstance(client, RemoteSTLClient) and client.get_mode() == "STL"
    assert isinstance(client, STLClient)


def test_address_of_a_server():
    assert host_and_port("trex04", 4501) == ("trex04", 4501)
    assert host_and_port("tcp://10.0.0.1", 4501) == ("10.0.0.1", 4501)
    assert host_and_port("tcp://10.0.0.1:5000", 4501) == ("10.0.0.1", 5000)
    assert host_and_port("tcp://[::1]:5000", 4501) == ("[::1]", 5000)
    assert host_and_port("tcp://[::1]", 4501) == ("[::1]", 4501)
    assert host_and_port("::1", 4501) == ("::1", 4501)
    for wrong in ("tcp://", "tcp://a:b", "tcp://a:0", "tcp://a:70000"):
        with pytest.raises(STLError, match="expected HOST"):
            host_and_port(wrong, 4501)


def test_a_class_of_its_own_does_not_lose_its_methods():
    class Own(STLClient):
        pass

    class OwnRemote(RemoteSTLClient):
        pass

    assert type(Own()) is Own
    with pytest.raises(STLError, match="Own is derived from STLClient.*RemoteSTLClient"):
        Own(server="tcp://127.0.0.1")
    assert type(OwnRemote(server="tcp://127.0.0.1")) is OwnRemote


def test_without_a_server_the_error_names_the_address_and_the_command():
    pytest.importorskip("zmq")
    client = STLClient(server="tcp://127.0.0.1:1", sync_timeout=0.2, verbose_level="none")
    with pytest.raises(STLError, match=r"tcp://127.0.0.1:1: no answer.*wirestorm serve --trex"):
        client.connect()
    assert not client.is_connected()
    with pytest.raises(STLError, match="not connected"):
        client.get_stats()


@needs_binary
def test_burst_is_measured_by_the_server(stateless):
    burst = STLTXSingleBurst(total_pkts=200, pps=2000)
    latency = STLFlowLatencyStats(pg_id=5)
    number = stateless.add_streams(STLStream(packet=packet(), mode=burst, flow_stats=latency), 0)
    assert list(stateless.get_port(0).streams) == [number]
    stateless.clear_stats()
    stateless.start(ports=[0])
    stateless.wait_on_traffic(ports=[0, 1], timeout=_WAIT_S)
    stats = stateless.get_stats()
    assert (stats[0]["opackets"], stats[1]["ipackets"]) == (200, 200)
    assert stats["total"]["obytes"] == 200 * 86
    assert stats["flow_stats"][5]["rx_pkts"] == {0: 0, 1: 200, "total": 200}
    assert set(stats["latency"][5]["err_cntrs"].values()) == {0}
    assert stats["latency"][5]["latency"]["total_max"] > 0
    stateless.clear_stats()
    assert stateless.get_stats()["flow_stats"][5]["rx_pkts"]["total"] == 0
    assert any("job done" in event.msg for event in stateless.get_events())


@needs_binary
def test_continuous_traffic_is_paused_changed_and_stopped(stateless):
    stateless.add_streams([STLStream(packet=packet(), mode=STLTXCont(pps=100))], ["1.steady"])
    stateless.start(["1.steady"], mult="500pps")
    assert stateless.get_active_ports() == [1]
    assert stateless.get_profiles_with_state("transmitting") == ["1.steady"]
    with pytest.raises(STLError, match="is sending"):
        stateless.set_l2_mode(1, "02:00:00:00:00:01")
    stateless.pause(["1.steady"])
    assert stateless.get_paused_ports() == [1]
    stateless.resume(["1.steady"])
    stateless.update(["1.steady"], mult="2kpps")
    wait_until(lambda: stateless.get_stats()[1]["tx_pps"] > 1000)
    stateless.stop()
    assert stateless.get_active_ports() == []
    assert not stateless.is_traffic_active()
    with pytest.raises(STLError, match="no port is sending"):
        stateless.update(mult="+5%")


@needs_binary
def test_port_in_service_mode_captures_resolves_and_pings(stateless):
    with pytest.raises(STLError, match="not in service mode"):
        stateless.start_capture(rx_ports=1)
    stateless.set_service_mode()
    capture = stateless.start_capture(rx_ports=1, limit=10, bpf_filter="udp")
    stateless.push_packets([Ether() / IP() / UDP(dport=7)], ports=0)
    wait_until(lambda: stateless.get_capture_status()[capture["id"]]["count"] == 1)
    frames: list[Any] = []
    stateless.stop_capture(capture["id"], frames)
    assert Ether(frames[0]["binary"])[UDP].dport == 7
    assert Ether(frames[0]["binary"]).dst == stateless.get_port_info(1)[0]["hw_mac"]
    with pytest.raises(STLError, match="no answer for 192.0.2.1"):
        stateless.set_l3_mode(1, "192.0.2.2", "192.0.2.1")
    stateless.set_l3_mode(0, "192.0.2.1", "192.0.2.2")
    assert stateless.get_resolved_ports() == [0]
    stateless.resolve(1)
    (reply,) = stateless.ping_ip(0, "192.0.2.2", count=1)
    assert reply["status"] == "success"
    assert stateless.get_capture_status() == {}


@needs_binary
def test_second_client_takes_ports_by_force_and_reads_their_streams(stateless):
    stateless.add_streams(STLStream(name="a", packet=packet(), mode=STLTXCont(pps=10)), 0)
    address = stateless.get_connection_info()["server"]
    with_other = STLClient(server=address, username="bob", verbose_level="none")
    with_other.connect()
    with pytest.raises(STLError, match="already taken by 'ada'"):
        with_other.acquire()
    with_other.acquire(force=True)
    (stream,) = with_other.get_port(0).streams.values()
    assert stream.get_pkt() == packet().dump_pkt(encode=False)["binary"]
    assert any("taken by 'bob'" in event.msg for event in stateless.get_warnings())
    assert stateless.get_acquired_ports() == []
    with_other.release()
    with_other.disconnect()


def tagged(group, vlan, mode):
    """Returns a stream with packets of 72 bytes."""
    frame = Ether() / Dot1Q(vlan=vlan) / IP(src="16.0.0.1", dst="48.0.0.1") / UDP() / (b"x" * 26)
    return STLStream(
        packet=STLPktBuilder(pkt=frame), flow_stats=STLTaggedPktGroup(tpgid=group), mode=mode
    )


@needs_binary
def test_tagged_packet_groups_count_on_the_server(stateless):
    assert stateless.tpg_status == stateless.get_tpg_status()
    assert not stateless.tpg_status["enabled"]
    with pytest.raises(STLError, match="not enabled"):
        stateless.disable_tpg()
    tags = [dot1q(vlan) for vlan in range(1, 1201)]
    stateless.enable_tpg(4, tags, rx_ports=[1])
    assert stateless.get_tpg_status(port=0)["data"] == {
        "acquired_ports": [0, 1],
        "rx_ports": [1],
        "username": "ada",
        "num_tpgids": 4,
        "num_tags": 1200,
    }
    assert stateless.get_tpg_tags() == tags and stateless.get_tpg_tags(7, 9) == tags[7:9]
    burst = STLTXSingleBurst(total_pkts=100, pps=2000)
    vlans = (1, 600, 1201, 2)
    streams = [tagged(group, vlan, burst) for group, vlan in enumerate(vlans)]
    stateless.add_streams(streams, 0)
    stateless.start([0])
    stateless.wait_on_traffic([0], timeout=_WAIT_S)
    zero = dict.fromkeys(
        ("pkts", "bytes", "seq_err", "seq_err_too_big", "seq_err_too_small", "dup", "ooo"), 0
    )
    counted = {**zero, "pkts": 100, "bytes": 7600}
    found, next_tag = stateless.get_tpg_stats(1, 1, 0, 1200)
    assert found == {"1": {"1": {"0-598": zero, "599": counted, "600-1199": zero}}}
    assert next_tag == 1200
    found, next_tag = stateless.get_tpg_stats(1, 1, 0, 1200, max_sections=2)
    assert list(found["1"]["1"]) == ["0-598", "599"] and next_tag == 600
    of_unknown = {"pkts": 100, "bytes": 7600}
    found = stateless.get_tpg_stats(1, 2, 0, 0, unknown_tag=True, untagged=True)
    assert found == ({"1": {"2": {"untagged": zero, "unknown_tag": of_unknown}}}, None)
    assert stateless.get_tpg_unknown_tags(1) == {"1": [{"tag": dot1q(1201), "tpgid": 2}]}
    stateless.clear_tpg_unknown_tags(1)
    assert stateless.get_tpg_unknown_tags(1) == {"1": []}
    assert stateless.get_tpg_tx_stats(0, 1) == {"0": {"1": of_unknown}}
    stateless.clear_tpg_tx_stats(0, 1)
    assert stateless.get_tpg_tx_stats(0, 1)["0"]["1"]["pkts"] == 0
    found = stateless.get_tpg_stats(1, 2, 0, 1200, max_sections=0, unknown_tag=True)
    assert found == ({"1": {"2": {"unknown_tag": of_unknown}}}, 0)
    stateless.clear_tpg_stats(1, 1, tag_list=[599])
    assert stateless.get_tpg_stats(1, 1, 0, 1200)[0] == {"1": {"1": {"0-1199": zero}}}
    stateless.clear_tpg_stats(1, 3, 0, 1, tag_list=[])
    assert stateless.get_tpg_stats(1, 3, 1, 2)[0] == {"1": {"3": {"1": counted}}}
    stateless.clear_tpg_stats(1, 3, 0, 2, tag_list=[])
    assert stateless.get_tpg_stats(1, 3, 1, 2)[0] == {"1": {"3": {"1": zero}}}
    stateless.clear_tpg_stats(1, 2, 0, 0, unknown_tag=True)
    found = stateless.get_tpg_stats(1, 2, 0, 0, unknown_tag=True)[0]
    assert found["1"]["2"]["unknown_tag"]["pkts"] == 0
    changes = [{"type": None, "tag_id": 0}, {**dot1q(1), "tag_id": 1}]
    stateless.update_tpg_tags(changes, clear=True)
    assert stateless.get_tpg_tags(0, 2) == [None, dot1q(1)]
    assert stateless.get_tpg_stats(1, 0, 0, 1200)[0] == {"1": {"0": {"0-1199": zero}}}
    with pytest.raises(STLError, match="Vlan 1 already exists"):
        stateless.update_tpg_tags([{**dot1q(1), "tag_id": 5}])
    # A client that takes the ports by force ends the groups, and so does a release.
    address = stateless.get_connection_info()["server"]
    other = STLClient(server=address, username="bob", verbose_level="none")
    other.connect()
    other.reset()
    assert not stateless.get_tpg_status()["enabled"]
    other.enable_tpg(1, [])
    other.release()
    assert not other.get_tpg_status()["enabled"]
    other.disconnect()


@needs_binary
def test_invalid_calls_for_tagged_groups_are_those_of_local_ports(stateless):
    tags = [dot1q(1), dot1q(2)]
    stateless.enable_tpg(3, tags, rx_ports=[1])
    for call, message in INVALID_CALLS:
        with pytest.raises(STLError, match=message):
            call(stateless)
    assert stateless.get_tpg_tags() == tags


@needs_binary
def test_release_ends_no_groups_of_other_ports(stateless):
    stateless.release([1])
    stateless.enable_tpg(1, [dot1q(1)])
    # Another session of the same user.
    address = stateless.get_connection_info()["server"]
    other = STLClient(server=address, username="ada", verbose_level="none")
    other.connect()
    other.acquire([1])
    other.disconnect()
    assert stateless.get_tpg_status()["data"]["acquired_ports"] == [0]
    stateless.acquire([1])
    stateless.release([1])
    assert stateless.get_tpg_status()["enabled"]
    stateless.release([0])
    assert not stateless.get_tpg_status()["enabled"]


@needs_binary
def test_methods_for_local_interfaces_name_the_alternative(stateless):
    with pytest.raises(STLError, match=r"map_ports\(\) is not possible with a server"):
        stateless.map_ports()
    with pytest.raises(STLError, match=r"mode|STL"):
        ASTFClient(server=stateless.get_connection_info()["server"]).connect()


def profile() -> ASTFProfile:
    """Returns a profile with a request and a response."""
    client, server = ASTFProgram(), ASTFProgram()
    client.send("request" * 10)
    client.recv(100)
    server.recv(70)
    server.send("x" * 100)
    pools = ASTFIPGen(
        glob=ASTFIPGenGlobal(ip_offset="1.0.0.0"),
        dist_client=ASTFIPGenDist(ip_range=["16.0.0.1", "16.0.0.9"], distribution="seq"),
        dist_server=ASTFIPGenDist(ip_range=["48.0.0.1", "48.0.0.9"], distribution="seq"),
    )
    template = ASTFTemplate(
        client_template=ASTFTCPClientTemplate(program=client, ip_gen=pools, cps=10),
        server_template=ASTFTCPServerTemplate(program=server, assoc=ASTFAssociationRule(port=80)),
        tg_name="pages",
    )
    return ASTFProfile(default_ip_gen=pools, templates=template)


@needs_binary
def test_profile_runs_on_the_server_with_latency_traffic(stateful):
    stateful.load_profile(profile())
    assert stateful.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
    stateful.start(mult=5, duration=2, latency_pps=100)
    assert stateful.is_traffic_active()
    (found,) = stateful.get_clients_info(["16.0.0.1"]).data().values()
    assert found == {"Found": 1, "state": "Active"}
    stateful.update(10)
    stateful.wait_on_traffic(timeout=_WAIT_S)
    stats = stateful.get_stats()
    client, server = (stats["traffic"][side] for side in ("client", "server"))
    assert client["tcps_connects"] > 20
    assert client["tcps_sndbyte"] == server["tcps_rcvbyte"] == 70 * client["tcps_connects"]
    assert not stateful.is_traffic_stats_error(stats["traffic"])[0]
    assert stateful.get_tg_names() == ["pages"]
    pages = stateful.get_traffic_tg_stats("pages")["pages"]
    assert pages["client"]["tcps_connects"] == client["tcps_connects"]
    for port in (0, 1):
        assert stats["latency"][port]["stats"]["m_pkt_ok"] > 100
        assert stats["latency"][port]["stats"]["m_seq_error"] == 0
    stateful.clear_stats()
    assert "tcps_connects" not in stateful.get_traffic_stats()["client"]


@needs_binary
def test_latency_traffic_runs_without_a_profile(stateful):
    stateful.start_latency(mult=200)
    stateful.update_latency(500)
    wait_until(lambda: stateful.get_latency_stats()[1]["hist"]["cnt"] > 50)
    with pytest.raises(STLError, match="should stop latency first"):
        stateful.start_latency()
    stateful.stop_latency()
    with pytest.raises(STLError, match="not active"):
        stateful.update_latency(5)


@needs_binary
def test_wrong_profile_is_an_error_of_the_start(stateful):
    with pytest.raises(STLError, match="there is no profile other"):
        stateful.start(pid_input="other")
    stateful.load_profile({"templates": []})
    with pytest.raises(STLError, match="cannot start profile _"):
        stateful.start()
