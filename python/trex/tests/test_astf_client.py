"""The stateful client with profiles on a veth pair between two namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from ipaddress import ip_address
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from stream_helpers import LIMIT_S, burst, continuous, wait_until
from wirestorm_lab import ip

from trex.addresses import ip2int
from trex.astf import stateful_run
from trex.astf.api import (
    ASTFAssociationRule,
    ASTFClient,
    ASTFErrorBadTG,
    ASTFGlobalInfo,
    ASTFIPGen,
    ASTFIPGenDist,
    ASTFProfile,
    ASTFProfileLight,
    ASTFProgram,
    ASTFTCPClientTemplate,
    ASTFTCPServerTemplate,
    ASTFTemplate,
    ASTFTopology,
    TopoGW,
    TRexError,
    TRexTimeoutError,
)
from trex.astf.trex_astf_client import Tunnel
from trex.astf.tunnels_topo import TunnelsTopo
from trex.client.hosts import tags_of
from trex.client.packet_socket import PacketSocket
from trex.services.arp import ServiceARP
from trex.services.context import run_services

# Counters that TRex has in `global`.
GLOBAL = (
    *("active_flows", "active_sockets", "bw_per_core", "cpu_util", "cpu_util_raw", "open_flows"),
    *("platform_factor", "rx_bps", "rx_core_pps", "rx_cpu_util", "rx_drop_bps", "rx_pps"),
    *("socket_util", "tx_expected_bps", "tx_expected_cps", "tx_expected_pps", "tx_pps", "tx_bps"),
    *("tx_cps", "total_servers", "total_clients", "total_alloc_error", "queue_full"),
)
REQUEST, ANSWER = b"GET /", b"here it is"
POOL = ASTFIPGen(
    dist_client=ASTFIPGenDist(ip_range=["16.0.0.1", "16.0.0.9"]),
    dist_server=ASTFIPGenDist(ip_range=["48.0.0.1", "48.0.0.3"]),
)


@pytest.fixture
def client(lab):
    """A client with both ports acquired."""
    found = ASTFClient()
    found.connect()
    found.reset()
    yield found
    found.disconnect()


def template(port: int = 80, is_tcp: bool = True, delay_us: int = 0, **arguments) -> ASTFTemplate:
    """A template with a request and a delayed response."""
    asks, answers = ASTFProgram(stream=is_tcp), ASTFProgram(stream=is_tcp)
    group, answer = arguments.pop("tg_name", None), arguments.pop("answer", ANSWER)
    if is_tcp:
        asks.send(REQUEST)
        asks.recv(len(answer))
        answers.recv(len(REQUEST))
    else:
        asks.send_msg(REQUEST)
        asks.recv_msg(1)
        answers.recv_msg(1)
    if delay_us:
        answers.delay(delay_us)
    if is_tcp:
        answers.send(answer)
    else:
        answers.send_msg(answer)
    return ASTFTemplate(
        ASTFTCPClientTemplate(POOL, program=asks, port=port, **arguments),
        ASTFTCPServerTemplate(program=answers, assoc=ASTFAssociationRule(port=port)),
        tg_name=group,
    )


def profile(*templates: ASTFTemplate) -> ASTFProfile:
    """Returns a profile of templates."""
    return ASTFProfile(POOL, templates=list(templates))


def test_counters_of_both_sides_have_trex_names(client):
    client.load_profile(profile(template(limit=40, cps=200), template(53, False, limit=7, cps=50)))
    assert client.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()
    clients, servers = stats["traffic"]["client"], stats["traffic"]["server"]
    for side, opened_name in ((clients, "tcps_connattempt"), (servers, "tcps_accepts")):
        assert side[opened_name] == side["tcps_connects"] == side["tcps_closed"] == 40
        assert side["m_active_flows"] == side["m_est_flows"] == 0
        assert side["m_traffic_duration"] > 0.1
    assert clients["tcps_sndbyte"] == servers["tcps_rcvbyte"] == 40 * len(REQUEST)
    assert clients["tcps_rcvackbyte"] == servers["tcps_rcvbyte"]
    assert servers["tcps_sndbyte"] == clients["tcps_rcvbyte"] == 40 * len(ANSWER)
    assert clients["udps_connects"] == servers["udps_accepts"] == clients["udps_closed"] == 7
    assert clients["udps_sndpkt"] == servers["udps_rcvpkt"] == 7
    assert "tcps_sndrexmitpack" not in clients and "udps_connects" not in servers
    assert client.is_traffic_stats_error(stats["traffic"]) == (False, {"client": {}, "server": {}})
    assert stats[0]["opackets"] == stats[1]["ipackets"] > 40
    assert stats[0]["ibytes"] == stats[1]["obytes"]
    assert stats["total"]["opackets"] == stats[0]["opackets"] + stats[1]["opackets"]
    assert stats["global"]["open_flows"] == 47 and not client.get_warnings()
    everything = client.get_traffic_stats(skip_zero=False)["client"]
    assert (
        everything["tcps_reas_hist_other"] == everything["err_cwf"] == 0 and len(everything) > 127
    )


def test_rates_and_states_are_visible_and_the_load_can_change(client):
    client.load_profile(profile(template(cps=50, delay_us=10_000)))
    client.start(mult=2)
    assert client.get_profiles_state() == {"_": "STATE_TX"} and client.get_active_ports() == [0, 1]
    wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_connects", 0) > 30)
    report = client.get_traffic_stats()["client"]
    assert report["m_tx_pps_r"] > 0 and report["m_rx_bw_l7_r"] > 0 and report["m_avg_size"] > 0
    assert client.get_stats()[0]["tx_pps"] > 0

    def opened_in(seconds: float) -> float:
        before, since = client.get_traffic_stats()["client"]["tcps_connattempt"], time.monotonic()
        time.sleep(seconds)
        opened = client.get_traffic_stats()["client"]["tcps_connattempt"] - before
        return opened / (time.monotonic() - since)

    client.update(20)
    # 1000 per second; a busy machine must only exceed the previous 100.
    assert opened_in(0.5) > 300
    client.update(0.2)
    assert opened_in(0.5) < 100
    with pytest.raises(TRexError, match="profile _ is running"):
        client.start()
    with pytest.raises(TRexError, match="profile _ is running"):
        client.load_profile(profile(template()))
    with pytest.raises(TRexTimeoutError):
        client.wait_on_traffic(timeout=0.1)
    client.stop()
    assert client.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
    assert (
        client.get_active_ports() == [] and client.get_traffic_stats()["client"]["m_tx_pps_r"] == 0
    )
    with pytest.raises(TRexError, match="profile _ is not running"):
        client.update(1)


def test_open_flows_finish_or_are_dropped_at_the_end(client):
    client.load_profile(profile(template(cps=100, delay_us=700_000)))
    client.start(duration=0.3)
    client.wait_on_traffic(timeout=LIMIT_S)
    ended = client.get_traffic_stats()["client"]
    assert ended["tcps_closed"] == ended["tcps_connattempt"] >= 30 and "tcps_testdrops" not in ended
    client.start(duration=0.5, mult=3, nc=True)
    client.wait_on_traffic(timeout=LIMIT_S)
    dropped = client.get_traffic_stats()["client"]
    # Only of this run.
    assert dropped["tcps_testdrops"] == dropped["tcps_closed"] == dropped["tcps_connattempt"]
    # 150, give or take on a busy machine.
    assert 100 < dropped["tcps_connattempt"] < 250
    assert dropped["m_active_flows"] == 0


def test_t_duration_limits_the_end_of_flows(client):
    client.load_profile(profile(template(cps=100, delay_us=60_000_000)))
    began = time.monotonic()
    client.start(duration=0.3, t_duration=0.3)
    client.wait_on_traffic(timeout=LIMIT_S)
    assert client.get_traffic_stats()["client"]["tcps_testdrops"] > 10
    # Without a duration it is the length of the whole run.
    client.start(t_duration=0.5)
    client.wait_on_traffic(timeout=LIMIT_S)
    assert 20 < client.get_traffic_stats()["client"]["tcps_testdrops"] < 150
    assert time.monotonic() - began < 30


def test_warning_about_dropped_flows_names_t_duration(client):
    client.load_profile(profile(template(cps=100, delay_us=60_000_000)))

    def warnings_of(**how) -> str:
        client.clear_events()
        client.start(**how)
        client.wait_on_traffic(timeout=LIMIT_S)
        return str([it.msg for it in client.get_warnings()])

    message = warnings_of(duration=0.3, t_duration=0.3)
    assert "0.3 s after the load ended: t_duration of start() sets this time" in message
    assert "--" not in message
    # These options request the drop, so that there is no warning.
    for how in ({"duration": 0.3, "nc": True}, {"t_duration": 0.3}):
        assert "unfinished" not in warnings_of(**how)
        assert client.get_traffic_stats()["client"]["tcps_testdrops"] > 10


def test_clear_stats(client):
    client.load_profile(profile(template(limit=20, cps=200)))
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    client.clear_stats()
    stats = client.get_stats()
    assert "tcps_connects" not in stats["traffic"]["client"]
    assert stats["total"]["opackets"] == 0
    assert "tcps_connects" not in client.get_traffic_stats(is_sum=True)["server"]
    # A restarted profile resets its counters, also in the sum.
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    assert client.get_traffic_stats(is_sum=True)["server"]["tcps_connects"] == 20
    client.clear_profile()
    assert "tcps_connects" not in client.get_traffic_stats(is_sum=True)["server"]


def test_duration_follows_the_engine_clock(client):
    client.load_profile(profile(template(cps=100)))
    before = time.monotonic()
    client.start()
    run = client._single_profile("_").run
    for _ in range(3):
        report = run._run.progress()["elapsed_s"]
        found = client.get_traffic_stats()["client"]["m_traffic_duration"]
        assert report <= found <= time.monotonic() - before
        # The next progress of the engine.
        wait_until(lambda then=report: run._run.progress()["elapsed_s"] > then)
    client.stop()
    assert found < client.get_traffic_stats()["client"]["m_traffic_duration"]


def test_tunables_can_be_a_dictionary_or_a_list(client, profiles):
    file = str(profiles / "stateful_pages.py")
    expected = r"'tunables' cannot be '--size 3'; it can be a dictionary .*, or a list of the words"
    with pytest.raises(TRexError, match=expected):
        client.load_profile(file, tunables="--size 3")
    for load in (client.topo_load, client.tunnels_topo_load):
        with pytest.raises(TRexError, match="'tunables' cannot be .* a dictionary"):
            load("topology.py", tunables="--size 3")
    for tunables in (None, {}, [], ()):
        client.load_profile(file, tunables=tunables)


def test_template_groups_have_their_own_counters(client):
    client.load_profile(
        profile(
            template(80, limit=10, cps=100, tg_name="pages"),
            template(81, limit=30, cps=300, tg_name="more"),
            template(82, is_tcp=False, limit=5, cps=100, tg_name="more"),
            template(83, limit=1),
        )
    )
    assert client.get_tg_names() == ["pages", "more"]
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_traffic_tg_stats(["pages", "more"])
    assert list(stats) == ["pages", "more"]
    assert stats["pages"]["client"]["tcps_connattempt"] == 10
    assert stats["more"]["server"]["tcps_accepts"] == 30
    assert stats["more"]["client"]["udps_sndpkt"] == 5 and "udps_sndpkt" not in stats["pages"]
    assert client.get_traffic_stats()["client"]["tcps_connattempt"] == 41
    assert (
        client.get_traffic_tg_stats("pages", skip_zero=False)["pages"]["server"]["err_no_syn"] == 0
    )
    duration = client.get_traffic_stats()["client"]["m_traffic_duration"]
    assert {side["m_traffic_duration"] for it in stats.values() for side in it.values()} == {
        duration
    }
    for names in ("others", []):
        with pytest.raises(ASTFErrorBadTG, match="pages, more"):
            client.get_traffic_tg_stats(names)


def test_latency_add_on_measures_datagrams(client):
    asks, answers = (ASTFProgram(stream=False, addon="latency") for _ in range(2))
    asks.set_var("times", 3)
    asks.set_label("again:")
    asks.send_msg(REQUEST)
    asks.delay(20_000)
    asks.jmp_nz("times", "again:")
    answers.recv_msg(1)
    answers.delay(5_000)
    answers.send_msg(ANSWER)
    answers.recv_msg(3)
    measured = ASTFTemplate(
        ASTFTCPClientTemplate(POOL, program=asks, limit=10, cps=100),
        ASTFTCPServerTemplate(program=answers),
        tg_name="latency",
    )
    plain = template(53, False, limit=1, tg_name="plain")
    client.load_profile(profile(measured, plain))
    client.start()
    names = ("min_time", "max_time", "total_time")
    # The measurement is visible during the run.
    wait_until(lambda: "total_pkts" in client.get_traffic_tg_stats("latency")["latency"]["server"])
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_traffic_tg_stats(["latency", "plain"])
    # The server expects no other datagrams, and nothing expects the client's.
    for side, count, pause in (("client", 10, 5_000), ("server", 30, 0)):
        section = stats["latency"][side]
        assert (section["measure_cnt"], section["total_pkts"]) == (1, count)
        minimum, maximum, total = (section.get(name, 0) for name in names)
        assert (
            pause <= minimum <= maximum < 1_000_000 and count * minimum <= total <= count * maximum
        )
        assert section["udps_rcvpkt"] == count
        assert not {*names, "measure_cnt", "total_pkts"} & set(stats["plain"][side])
    assert stats["latency"]["client"]["udps_sndbyte"] == 30 * (12 + len(REQUEST))


def test_files_documents_and_tunables(client, profiles, tmp_path):
    path = str(profiles / "stateful_pages.py")
    client.load_profile(path, tunables={"pages": 1, "page-size": 700})
    client.start(duration=0.6, nc=True)
    client.wait_on_traffic(timeout=LIMIT_S)
    clients = client.get_traffic_stats()["client"]
    assert clients["tcps_rcvbyte"] % 700 == 0 and clients["tcps_connects"] >= 1
    client.load_profile(path, tunables=["--pages", "2"])
    document = ASTFProfile.load(path).to_json()
    saved = tmp_path / "profile.json"
    saved.write_text(json.dumps(document))
    for form in (document, ASTFProfileLight(document), str(saved)):
        client.load_profile(form)
        assert client.get_tg_names() == ["pages"]
    with pytest.raises(TRexError, match=r"cannot load profile: .*broken.py"):
        client.load_profile(str(profiles / "broken.py"))
    client.clear_profile()
    assert client.get_profiles_state() == {"_": "STATE_IDLE"}
    with pytest.raises(TRexError, match="profile _ is not loaded"):
        client.start()


@pytest.mark.parametrize(
    ("vlan", "is_ipv6", "below_ip"),
    [
        (None, True, b"\x86\xdd"),
        (7, False, b"\x81\x00\x00\x07\x08\x00"),
        ([7, 8], False, b"\x88\xa8\x00\x07\x81\x00\x00\x08\x08\x00"),
    ],
)
def test_traffic_over_ipv6_and_in_a_vlan(client, vlan, is_ipv6, below_ip):
    client.load_profile(profile(template(limit=5, cps=100)))
    client.set_vlan([0, 1], vlan)
    client.set_service_mode()
    capture = client.start_capture(tx_ports=0, rx_ports=[0, 1])
    client.start(ipv6=is_ipv6)
    client.wait_on_traffic(timeout=LIMIT_S)
    packets: list = []
    client.stop_capture(capture["id"], packets)
    # Skips neighbour discovery, which is not part of the profile.
    packets = [it for it in packets if it["binary"][len(below_ip) + 10 :][:2] != b"\x08\x06"]
    # Port 1 receives exactly what port 0 sends.
    seen = {
        (port, origin): sorted(it["binary"] for it in packets if (it["port"], it["origin"]) == key)
        for key in ((0, "TX"), (0, "RX"), (1, "RX"))
        for port, origin in [key]
    }
    assert seen[0, "RX"] and seen[0, "TX"] == seen[1, "RX"]
    assert {packet["binary"][12 : 12 + len(below_ip)] for packet in packets} == {below_ip}
    assert client.get_traffic_stats()["server"]["tcps_accepts"] == 5


def captured(client, run) -> list[bytes]:
    """Returns the frames that both ports receive during `run`."""
    client.set_service_mode()
    capture = client.start_capture(rx_ports=[0, 1])
    run()
    client.wait_on_traffic(timeout=LIMIT_S)
    packets: list = []
    client.stop_capture(capture["id"], packets)
    return [bytes(packet["binary"]) for packet in packets]


def tunnels_of(frames: list[bytes], at: int) -> set[tuple[str, str, int]]:
    """Returns endpoints and TEIDs of tunnels over IPv4 whose inner packets have a client with this
    last byte.
    """
    found = set()
    for frame in frames:
        outer = IP(frame[14:])
        assert outer[UDP].dport == 2152 and len(outer) == outer.len, outer
        message = bytes(outer[UDP].payload)
        assert message[:2] == b"\x30\xff"
        inner = (IP if message[8] >> 4 == 4 else IPv6)(message[8:])
        if at in (ip_address(it).packed[-1] for it in (inner.src, inner.dst)):
            found.add((outer.src, outer.dst, int.from_bytes(message[4:8], "big")))
    return found


@pytest.mark.parametrize("is_ipv6", [False, True])
def test_clients_are_in_tunnels(client, is_ipv6):
    topology = TunnelsTopo()
    topology.add_tunnel_ctx(
        "16.0.0.0", "16.0.0.255", 1, 1, 5000, 4, 1, "1.1.1.11", "12.2.2.2", True
    )
    client.activate_tunnel(tunnel_type=1, activate=True, loopback=True)
    client.tunnels_topo_load(topology)
    with pytest.raises(TRexError, match="already loaded"):
        client.tunnels_topo_load(topology)
    client.tunnels_topo_show()
    client.load_profile(profile(template(limit=18, cps=100)))
    frames = captured(client, lambda: client.start(ipv6=is_ipv6))
    assert client.get_traffic_stats()["server"]["tcps_accepts"] == 18
    there, back = ("1.1.1.11", "12.2.2.2"), ("12.2.2.2", "1.1.1.11")
    assert tunnels_of(frames, 5) == {(*there, 6), (*back, 6)}
    # The offset behind Ethernet, IPv4, UDP and GTP-U.
    assert {frame[50] >> 4 for frame in frames} == {6 if is_ipv6 else 4}
    stats = client.get_dynamic_traffic_stats()
    sent = stats["client"]["m_tunnel_encapsulated"]
    assert sent > 18 and stats["server"]["m_tunnel_decapsulated"] == sent
    assert not client.is_dynamic_traffic_stats_error(stats)[0]
    assert "m_err_tunnel_dir" in client.get_dynamic_traffic_stats(skip_zero=False)["server"]
    client.clear_dynamic_traffic_stats()
    assert client.get_dynamic_traffic_stats() == {"client": {}, "server": {}}
    client.reset()
    client.tunnels_topo_clear()
    client.activate_tunnel(1, False)
    client.load_profile(profile(template(limit=1, cps=100)))
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    assert client.get_dynamic_traffic_stats(skip_zero=False) == {"client": {}, "server": {}}


def test_client_records_apply_during_the_run(client):
    client.activate_tunnel(1, True, loopback=True)
    client.load_profile(profile(template(cps=200)))

    def run_with_records() -> None:
        client.start()
        with pytest.raises(TRexError, match="is running; call stop"):
            client.activate_tunnel(1, False)
        # No client has a tunnel yet.
        drops = "m_err_tunnel_no_context"
        wait_until(lambda: client.get_dynamic_traffic_stats()["client"].get(drops, 0))
        assert client.get_traffic_stats()["client"].get("tcps_connects", 0) == 0
        assert client.is_dynamic_traffic_stats_error(client.get_dynamic_traffic_stats())[0]
        first = ip2int("16.0.0.1")
        ends = ("11.11.0.1", "1.1.1.11", 5000)
        records = {first + place: Tunnel(*ends, 7 + place, 4) for place in range(9)}
        client.update_tunnel_client_record(records, 1)
        # All clients have opened flows by then.
        wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_connects", 0) > 30)
        ends = "--src_ip 11.11.0.2 --dst_ip 1.1.1.11 --sport 0"
        client.update_clients_tunnel(f"--c_start 16.0.0.5 --c_end 16.0.0.5 --teid 99 {ends}")
        info = client.get_clients_info([first]).data()
        assert info[str(first)]["tunnel_type"] == "GTP"
        client.stop()

    frames = captured(client, run_with_records)
    assert tunnels_of(frames, 4) == {("11.11.0.1", "1.1.1.11", 10), ("1.1.1.11", "11.11.0.1", 10)}
    assert ("11.11.0.1", "1.1.1.11", 11) in tunnels_of(frames, 5)
    warnings_of = str([it.msg for it in client.get_warnings()])
    assert "frames were not sent, for neither sender nor receiver has a tunnel" in warnings_of


def test_inactive_clients_open_no_first_flow(client, monkeypatch):
    topology = TunnelsTopo()
    ends = (5000, 4, 1, "1.1.1.11", "12.2.2.2")
    topology.add_tunnel_ctx("16.0.0.0", "16.0.0.255", 1, 1, *ends, False)
    client.activate_tunnel(1, True)
    client.tunnels_topo_load(topology)
    client.load_profile(profile(template(cps=500)))

    class SlowEngine:
        """The engine, with a delay after the start of a run."""

        @staticmethod
        def trex_emulate(*arguments):
            run = engine.trex_emulate(*arguments)
            run.wait_started()
            time.sleep(0.2)
            return run

    engine = stateful_run.native()
    monkeypatch.setattr(stateful_run, "native", lambda: SlowEngine)
    client.start()
    wait_until(lambda: client.get_traffic_stats()["client"].get("flows_skipped", 0) > 10)
    assert "tcps_connattempt" not in client.get_traffic_stats()["client"]
    client.stop()


def test_tunnel_topologies_load_from_files(client, tmp_path):
    fields = {
        **{"src_start": "16.0.0.0", "src_end": "16.0.0.9", "initial_teid": 0, "teid_jump": 1},
        **{"sport": 0, "version": 6, "tunnel_type": 1, "src_ip": "fd00::1", "dst_ip": "fd00::2"},
        "activate": False,
    }
    document = {"tunnels": [fields], "latency": []}
    python = tmp_path / "tunnels.py"
    python.write_text(
        "from trex.astf.tunnels_topo import TunnelsTopo\n\n\ndef get_topo(last):\n"
        f"    return TunnelsTopo.from_data({document!r} | {{'latency': []}})\n"
    )
    saved = tmp_path / "tunnels.json"
    saved.write_text(json.dumps(document))
    client.activate_tunnel(1, True)
    for path, tunables in ((python, {"last": 1}), (saved, {})):
        client.tunnels_topo_load(str(path), tunables)
        assert client.tunnels_topo.get_data() == document
        client.tunnels_topo_clear()
    client.tunnels_topo_load(str(saved))
    # The clients are off until they are switched on.
    client.load_profile(profile(template(cps=100)))
    client.start(duration=0.3, nc=True)
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_traffic_stats()["client"]
    assert "tcps_connattempt" not in stats and stats["flows_skipped"] >= 1
    client.tunnels_topo_clear()
    for change, message in (
        ({"version": 4}, "'fd00::1' is no IPv4 address"),
        ({"tunnel_type": 2}, "Invalid Tunnel Type: 2"),
        ({"src_end": "15.0.0.1"}, "src_start is above src_end"),
        ({"initial_teid": -1}, "initial_teid -1 is not a number from 0"),
    ):
        saved.write_text(json.dumps({"tunnels": [{**fields, **change}]}))
        with pytest.raises(TRexError, match=message):
            client.tunnels_topo_load(str(saved))
    overlapping = TunnelsTopo.from_data({"tunnels": [fields, {**fields, "src_start": "16.0.0.5"}]})
    with pytest.raises(TRexError, match="clients have two tunnels"):
        client.tunnels_topo_load(overlapping)


def test_profiles_have_ids(client):
    client.load_profile(profile(template(limit=3, cps=100)), pid_input="first")
    client.load_profile(profile(template(81, limit=4, cps=100)), pid_input="second")
    assert client.get_profiles() == ["_", "first", "second"]
    assert client.validate_profile_id_input("first second") == ["first", "second"]
    for name in ("first", "second"):
        client.start(pid_input=name)
        client.wait_on_traffic(timeout=LIMIT_S, profile_id=name)
    counts = [client.get_traffic_stats(pid_input=it)["client"] for it in ("first", "second")]
    assert [count["tcps_connects"] for count in counts] == [3, 4]
    assert client.get_traffic_stats(is_sum=True)["client"]["tcps_connects"] == 7
    client.stop(pid_input="first", is_remove=True)
    assert list(client.get_profiles_state()) == ["_", "second"]
    with pytest.raises(TRexError, match="there is no profile first; there are: _, second"):
        client.get_traffic_stats(pid_input="first")
    client.reset()
    assert client.sync() == {"_": client.STATE_IDLE}


def test_profiles_run_concurrently(client):
    pages, names = template(cps=100, delay_us=5_000), template(53, is_tcp=False, cps=50)
    client.load_profile(profile(pages), pid_input="pages")
    client.load_profile(profile(names), pid_input="names")
    client.load_profile(profile(template(cps=1)), pid_input="same")
    client.load_profile(profile(template(85)))
    client.start(pid_input="pages")
    client.start(pid_input="names", mult=2)
    assert client.get_profiles_state()["names"] == "STATE_TX"
    with pytest.raises(TRexError, match="both have a server at TCP port 80"):
        client.start(pid_input="same")
    with pytest.raises(TRexError, match="profile _ has the ports to itself"):
        client.start()

    def counter(pid: str, name: str, side: str = "client") -> float:
        return client.get_traffic_stats(pid_input=pid, skip_zero=False)[side][name]

    wait_until(
        lambda: counter("pages", "tcps_closed") > 50 and counter("names", "udps_closed") > 50
    )
    client.update(1, pid_input="names")
    client.stop(pid_input="names")
    assert client.get_profiles_state()["pages"] == "STATE_TX"
    # Neither profile resets connections of the other. The stop resets open ones.
    resets = [
        counter(pid, "tcps_rst_sent", side)
        for pid in ("pages", "names")
        for side in ("client", "server")
    ]
    assert resets == [0, 0, 0, 0]
    client.stop(pid_input="pages")
    for pid in ("pages", "names"):
        stats = client.get_traffic_stats(pid_input=pid)
        assert client.is_traffic_stats_error(stats) == (False, {"client": {}, "server": {}}), stats
    assert counter("pages", "udps_connects") == counter("names", "tcps_connattempt") == 0
    total = client.get_traffic_stats(is_sum=True)["client"]
    assert total["tcps_connattempt"] == counter("pages", "tcps_connattempt")
    assert total["udps_connects"] == counter("names", "udps_connects")
    message = [event.msg for event in client.get_events()]
    assert message.count("Moved to state: Loaded") == 1


def test_profiles_with_long_responses_run_concurrently(client):
    long = 32_000
    client.load_profile(profile(template(cps=20, answer=bytes(long))), pid_input="first")
    client.load_profile(profile(template(81, cps=20, answer=bytes(long))), pid_input="second")
    for pid in ("first", "second"):
        client.start(pid_input=pid)

    def received(pid: str) -> float:
        stats = client.get_traffic_stats(pid_input=pid, skip_zero=False)
        return stats["client"]["tcps_rcvbyte"]

    wait_until(lambda: min(received("first"), received("second")) >= 3 * long)
    client.stop(pid_input="*")
    for pid in ("first", "second"):
        clients = client.get_traffic_stats(pid_input=pid)["client"]
        assert "tcps_rexmttimeo" not in clients and "tcps_rexmttimeo_syn" not in clients, clients


def test_stop_opens_no_flows(client):
    # A flow is due every 10 ms. The clients wait for it when they are stopped.
    client.load_profile(profile(template(cps=100)))
    unfinished = []
    for _ in range(10):
        client.start()
        wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_closed", 0) > 2)
        # Stops between the start of a flow and the next one.
        time.sleep(0.004)
        client.stop()
        clients = client.get_traffic_stats()["client"]
        unfinished.append(clients["tcps_connattempt"] - clients["tcps_connects"])
    # On a busy machine, a stop can coincide with a start.
    assert unfinished.count(0) >= 9, unfinished


def test_warning_about_a_missed_load(client):
    client.load_profile(profile(template(cps=1_000)))
    client.start(mult=10_000, duration=0.5, nc=True)
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_traffic_stats()
    missed = stats["client"]["err_c_nf_throttled"]
    assert missed > 1_000_000
    is_wrong, errors = client.is_traffic_stats_error(stats)
    assert is_wrong and "no time left" in errors["client"]["err_c_nf_throttled"]
    warnings_of = [event.msg for event in client.get_warnings()]
    assert any("flows of its load did not start in time" in it for it in warnings_of), warnings_of


def test_rates_are_zero_after_the_end(client):
    client.load_profile(profile(template(cps=100, answer=bytes(10_000))))
    client.start(duration=0.5)
    rates = ("tx_bps", "tx_pps", "rx_bps", "rx_pps")
    wait_until(lambda: client.get_stats()["global"]["rx_bps"] > 1e6)
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_stats()
    assert {name: stats["global"][name] for name in rates} == dict.fromkeys(rates, 0.0)
    assert stats[0]["rx_util"] == stats["traffic"]["client"]["m_rx_bw_l7_r"] == 0.0


@pytest.mark.parametrize("duration", [0, -1, -0.5])
def test_run_without_duration_is_endless(client, duration):
    client.load_profile(profile(template(cps=100)))
    client.start(duration=duration)
    wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_closed", 0) > 10)
    assert client.get_profiles_state() == {"_": "STATE_TX"}
    client.stop()
    # Then t_duration ends the run.
    client.start(duration=duration, t_duration=0.2)
    client.wait_on_traffic(timeout=LIMIT_S)
    assert client.get_traffic_stats()["client"]["tcps_connects"] > 10


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duration": float("nan")}, "argument 'duration' cannot be nan; it can be seconds"),
        ({"duration": float("inf")}, "argument 'duration' cannot be inf; it can be seconds"),
        ({"duration": 10**400}, "argument 'duration' cannot be 1000"),
        ({"e_duration": "x"}, "argument 'e_duration' is of type str, not int or float"),
        ({"t_duration": "x"}, "argument 't_duration' is of type str, not int or float"),
        ({"dump_interval": "x"}, "argument 'dump_interval' is of type str, not int or float"),
        ({"dump_interval": -1}, "argument 'dump_interval' cannot be -1; it can be 0.001 or more"),
        ({"client_mask": -1}, "argument 'client_mask' cannot be -1; it can be a mask of 32 bits"),
        ({"client_mask": 1 << 40}, "argument 'client_mask' cannot be 1099511627776"),
        ({"client_mask": "x"}, "argument 'client_mask' is of type str, not int"),
        ({"ipv6": "yes"}, "argument 'ipv6' is of type str, not bool"),
        ({"latency_pps": -4}, "argument 'latency_pps' cannot be -4; it can be packets a second"),
        ({"mult": 1e30}, r"argument 'mult' cannot be 1e\+30; it can be more than 0"),
        ({"mult": float("nan")}, "argument 'mult' cannot be nan; it can be more than 0"),
    ],
)
def test_invalid_arguments_are_rejected_by_name(client, wrong, message):
    client.load_profile(profile(template(cps=100)))
    with pytest.raises(TRexError, match=message):
        client.start(**wrong)
    assert client.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}


def test_invalid_mult_is_reported_as_given(client):
    client.load_profile(profile(template(cps=100)))
    client.start(mult=3)
    with pytest.raises(TRexError, match=r"argument 'mult' cannot be 1e\+30; it can be more than 0"):
        client.update(1e30)
    client.stop()
    client.start(mult=1e-6)
    with pytest.raises(TRexError, match="argument 'mult' cannot be 5000; it can be near the 1e-06"):
        client.update(5_000)
    client.stop()
    with pytest.raises(TRexError, match="argument 'ports_mask' is of type str, not int"):
        client.start_latency(ports_mask="x")
    with pytest.raises(TRexError, match="stats have no 'client': expected what get_traffic_stats"):
        client.is_traffic_stats_error({})


def test_profile_that_exits_the_process_is_rejected(client, tmp_path):
    file = tmp_path / "ends.py"
    file.write_text("import sys\n\nsys.exit(4)\n")
    with pytest.raises(TRexError, match="ends.py, line 3: it exits the process"):
        client.load_profile(str(file))


def test_global_counters_match_trex(client):
    assert set(GLOBAL) <= set(client.get_stats()["global"])
    client.load_profile(profile(template(cps=60), template(53, False, cps=40)), pid_input="both")
    client.load_profile(profile(template(81, cps=10)), pid_input="one")
    client.start(mult=2, pid_input="both")
    client.start(pid_input="one")
    wait_until(lambda: client.get_stats()["global"]["tx_cps"] > 150)
    report = client.get_stats()["global"]
    assert report["tx_expected_cps"] == 2 * (60 + 40) + 10
    assert (report["total_clients"], report["total_servers"]) == (2 * 9, 2 * 3)
    assert (
        report["platform_factor"] == 1.0
        and report["total_alloc_error"] == report["socket_util"] == 0
    )
    client.update(mult=3, pid_input="both")
    assert client.get_stats()["global"]["tx_expected_cps"] == 3 * (60 + 40) + 10
    client.stop(pid_input="*")
    report = client.get_stats()["global"]
    assert not any(report[name] for name in ("tx_cps", "tx_expected_cps", "active_sockets"))


def test_notes_of_a_profile_become_warnings(client):
    tunables = ASTFGlobalInfo()
    tunables.tcp.delay_ack_msec = 4_000
    requests = ASTFProfile(POOL, default_c_glob_info=tunables, templates=template(limit=1, cps=100))
    client.load_profile(requests)
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    assert any("500 ms" in event.msg for event in client.get_warnings())


def test_e_duration_stops_unanswered_clients(lab, tmp_path, monkeypatch):
    file = tmp_path / "trex_cfg.yaml"
    file.write_text(
        f'- interfaces: ["{lab.a}", "dummy"]\n  port_info: [{{dest_mac: "02:00:00:00:00:09"}}]\n'
    )
    monkeypatch.delenv("WIRESTORM_TREX_PORTS")
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(file))
    with ASTFClient() as client:
        client.load_profile(profile(template(cps=20)))
        # The run lasts until SYNs have been retransmitted. Then nothing is left, with `nc` or
        # without.
        client.start(e_duration=1.5)
        client.wait_on_traffic(timeout=LIMIT_S)
        stats = client.get_stats()
        clients = stats["traffic"]["client"]
        assert clients["tcps_connattempt"] >= 5 and "tcps_connects" not in clients
        assert clients["m_traffic_duration"] < LIMIT_S / 2
        assert stats["traffic"]["server"].get("tcps_accepts") is None
        is_wrong, errors = client.is_traffic_stats_error(stats["traffic"])
        assert is_wrong and not errors["server"]
        assert set(errors["client"]) == {"tcps_rexmttimeo", "tcps_rexmttimeo_syn"}
        assert stats[0]["opackets"] >= 5
        with pytest.raises(TRexError, match="a pair of ports"):
            client.start(latency_pps=10)
        assert client.get_profiles_state() == {"_": "STATE_ASTF_LOADED"}
        # UDP flows count as established without an answer.
        client.load_profile(profile(template(53, is_tcp=False, cps=50)))
        client.start(e_duration=0.3, duration=1, nc=True)
        client.wait_on_traffic(timeout=LIMIT_S)
        assert client.get_traffic_stats()["client"]["udps_connects"] >= 40


def test_warning_about_unanswered_connections(lab, tmp_path, monkeypatch):
    file = tmp_path / "trex_cfg.yaml"
    file.write_text(
        f'- interfaces: ["{lab.a}", "dummy"]\n  port_info: [{{dest_mac: "02:00:00:00:00:09"}}]\n'
    )
    monkeypatch.delenv("WIRESTORM_TREX_PORTS")
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(file))
    settings = ASTFGlobalInfo()
    settings.tcp.keepinit = 2
    asks = ASTFProfile(POOL, settings, settings, templates=[template(cps=100, limit=20)])
    with ASTFClient() as client:
        client.load_profile(asks)
        client.start()
        client.wait_on_traffic(timeout=LIMIT_S)
        message = [it.msg for it in client.get_warnings()]
        assert (
            sum("of 20 connections started, 20 had no answer" in it for it in message) == 1
        )
        clients = client.get_traffic_stats()["client"]
        assert clients["tcps_conndrops"] == clients["tcps_closed"] == 20
        assert "tcps_drops" not in clients and "tcps_testdrops" not in clients


@pytest.mark.parametrize(("mask", "is_there"), [(4, True), (2, False), (3, False)])
def test_client_mask_selects_ports(lab, tmp_path, monkeypatch, mask, is_there):
    file = tmp_path / "trex_cfg.yaml"
    file.write_text(f'- interfaces: ["dummy", "dummy", "{lab.a}", "{lab.b}"]\n')
    monkeypatch.delenv("WIRESTORM_TREX_PORTS")
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(file))
    with ASTFClient() as client:
        client.load_profile(profile(template(cps=100)))
        client.start(client_mask=mask, duration=0.3)
        client.wait_on_traffic(timeout=LIMIT_S)
        assert ("tcps_connects" in client.get_traffic_stats()["client"]) == is_there


def test_ignored_hosts_get_no_resets(client):
    ips, macs = ["16.0.0.77", "17.0.0.1"], ["24:8a:07:a2:f3:80"]
    client.set_ignored_macs_ips(mac_list=macs, ip_list=ips)
    assert client.get_ignored_macs_ips() == {"ips": ips, "macs": macs}
    numbers = client.get_ignored_macs_ips(to_str=False)
    client.set_ignored_macs_ips(numbers["macs"], numbers["ips"], is_str=False)
    assert client.get_ignored_macs_ips() == {"ips": ips, "macs": macs}
    client.load_profile(profile(template(cps=20)))
    syn = Ether(src=client.links[0].source, dst=client.links[1].source)
    syn = bytes(syn / IP(src=ips[0], dst="48.0.0.1") / TCP(sport=1000, dport=81, flags="S"))

    def resets() -> int:
        client.start()
        wait_until(lambda: client.get_traffic_stats()["server"].get("tcps_accepts", 0) > 1)
        before = client.get_traffic_stats()["server"]["tcps_accepts"]
        with PacketSocket(client.links[0].interface) as socket:
            socket.send(syn)
        wait_until(lambda: client.get_traffic_stats()["server"]["tcps_accepts"] > before + 3)
        with pytest.raises(TRexError, match="profile _ is running"):
            client.set_ignored_macs_ips()
        # The stop also resets open connections.
        sent = client.get_traffic_stats()["server"].get("tcps_rst_sent", 0)
        client.stop()
        return sent

    assert resets() == 0
    client.set_ignored_macs_ips(ip_list=[], mac_list=[])
    assert client.get_ignored_macs_ips() == {"ips": [], "macs": []}
    assert resets() == 1


def test_topology_sets_the_next_hop_of_clients(hosts):
    own, gateway, other = "02:11:00:00:00:01", "02:22:00:00:00:07", "02:33:00:00:00:03"
    with ASTFClient() as client:
        first, second = client.links[0], client.links[1]
        second.hosts.add(gateway, tags_of([7]), ["1.1.1.7"])
        topology = ASTFTopology()
        topology.add_vif("0.1", own, src_ipv4="1.1.1.9", vlan=7)
        topology.add_gw("0.1", "16.0.0.1", "16.0.0.2", "1.1.1.7")
        topology.add_gw("0", "16.0.0.3", "16.0.0.3", "1.1.1.2")
        topology.add_gw("0", "16.0.0.4", "16.0.0.5", other)
        client.topo_load(topology)
        with pytest.raises(TRexError, match="a topology is loaded already"):
            client.topo_load(topology)

        def requests() -> str:
            context = client.create_service_ctx(1)
            question = ServiceARP(context, "1.1.1.9", "1.1.1.7", [7], gateway, timeout_sec=0.5)
            run_services(second, question)
            return question.get_record().dst_mac

        def went() -> dict[str, tuple[str, str, int]]:
            """Returns source MAC, destination MAC and VLAN of each client's frames."""
            client.set_service_mode()
            capture = client.start_capture(rx_ports=[1])
            client.load_profile(profile(template(cps=200, limit=18)))
            client.start()
            client.wait_on_traffic(timeout=LIMIT_S)
            assert client.get_traffic_stats()["server"]["tcps_connects"] == 18
            assert client.get_traffic_stats()["client"]["tcps_closed"] == 18
            packets: list = []
            client.stop_capture(capture["id"], packets)
            found = {}
            for packet in (Ether(one["binary"]) for one in packets):
                if TCP in packet and packet[TCP].dport == 80:
                    vlan = packet[Dot1Q].vlan if Dot1Q in packet else 0
                    found[packet[IP].src] = (packet.src, packet.dst, vlan)
            return found

        default = (first.source, second.source, 0)
        clients = [f"16.0.0.{number}" for number in range(1, 10)]
        # The topology has no effect before it is resolved.
        assert went() == dict.fromkeys(clients, default) and requests() is None
        client.topo_resolve()
        assert requests() == own
        expected = dict.fromkeys(clients, default)
        expected.update(dict.fromkeys(clients[:2], (own, gateway, 7)))
        expected.update(dict.fromkeys(clients[3:5], (first.source, other, 0)))
        assert went() == expected
        client.topo_clear()
        assert went() == dict.fromkeys(clients, default) and requests() is None
        for wrong, message in (
            (TopoGW("0", "16.0.0.1", "16.0.0.2", "1.1.1.99"), "do not answer: 1.1.1.99"),
            (TopoGW("0", "16.0.0.1", "16.0.0.2", "::1"), "no IPv6 address for its requests"),
            (TopoGW("2", "16.0.0.1", "16.0.0.2", other), "there is no such port"),
        ):
            with pytest.raises(TRexError, match=message):
                client.topo_load(ASTFTopology(gws=[wrong]))
                client.topo_resolve()
            client.topo_clear()


def test_console_lines_call_their_methods(client, profiles, capsys, tmp_path):
    path = profiles / "stateful_pages.py"
    assert client.start_line(f"-f {path} -m 2 -d 5m --nc -t --pages 1 --page-size 700")
    client.wait_for_profile_state("_", client.STATE_TX, timeout=LIMIT_S)
    assert client.state == client.wait_for_steady() == client.STATE_TX
    wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_rcvbyte", 0) >= 700)
    client.update_line("-m 200 --pid _")
    # The limit would be a few hundred.
    wait_until(lambda: client.get_traffic_stats()["client"].get("udps_connects", 0) > 300)
    client.latency_line("start -m 100 --src 16.0.0.1 --dst 48.0.0.1")
    wait_until(lambda: client.get_latency_stats()[0]["stats"]["m_pkt_ok"] > 5)
    for line in ("show", "hist", "counters", "update -m 10", "stop"):
        assert client.latency_line(line)
    capsys.readouterr()
    client.show_stats_line("-a")
    assert "tcps_rcvbyte" in capsys.readouterr().out
    for line in ("", "-g", "-p --port 0", "--ps", "--za --pid _", "-l", "--lh", "--lc", "-c", "-x"):
        client.show_stats_line(line)
        assert capsys.readouterr().out, line
    client.profiles_line("")
    assert "STATE_TX" in capsys.readouterr().out
    client.template_group_line("names")
    assert "pages" in capsys.readouterr().out
    client.template_group_line("stats --name pages")
    assert "tcps_connects" in capsys.readouterr().out
    client.stop_line("--pid _")
    client.wait_for_profile_state("_", client.STATE_ASTF_LOADED, timeout=LIMIT_S)
    client.clear_stats_line("-a")
    assert "tcps_connects" not in client.get_traffic_stats()["client"]
    client.start_line(f"-f {path} --servers-only --pid others -d 1 -t pages=1")
    client.stop_line("--pid others --remove")
    assert client.get_profiles() == ["_"]
    client.black_list_line("set --ipv4 1.1.1.1 2.2.2.2 --upload")
    client.black_list_line("remove --ipv4 1.1.1.1")
    assert client.get_ignored_macs_ips()["ips"] == ["2.2.2.2"]
    client.black_list_line("clear --upload")
    client.service_line("")
    assert client.get_service_enabled_ports() == [0, 1]
    client.service_line("--off")
    saved = tmp_path / "topology.yaml"
    client.topo_load(ASTFTopology(gws=[TopoGW("0", "1.0.0.1", "1.0.0.9", "02:00:00:00:00:09")]))
    client.topo_line(f"save -f {saved}")
    for line in ("clear", f"load -f {saved}", "resolve", "show", "clear"):
        client.topo_line(line)
    for line, message in (
        (lambda: client.start_line("-m 2"), "required: -f"),
        (lambda: client.start_line(f"-f {path} --clients 1"), "--clients 1: there is no such port"),
        (lambda: client.start_line(f"-f {path} -d 10s"), "'10s' is not a time"),
        (lambda: client.start_line("-f 'x"), "No closing quotation"),
        (lambda: client.latency_line("start --src 1.1.1"), "'1.1.1' is no IPv4 address"),
        (lambda: client.stop_line("--pid nobody"), "there is no profile nobody"),
        (lambda: client.black_list_line("remove --ipv4 9.9.9.9"), "9.9.9.9 is not listed"),
        (lambda: client.tunnels_topo_line("load -f x.yaml"), "no such file: 'x.yaml'"),
        (lambda: client.activate_tunnel_line("--type vxlan"), "'vxlan' is no type of tunnels"),
        (lambda: client.update_clients_tunnel("--c_start 16.0.0.1"), "required: --c_end"),
    ):
        with pytest.raises(TRexError, match=message):
            line()


def test_console_lines_for_streams(client, profiles, capsys):
    client.start_stl_line(f"-f {profiles / 'udp_sizes.py'} -p 0 -m 100pps")
    assert client.get_active_ports() == [0]
    client.update_stl_line("-p 0 -m 200pps")
    client.stats_stl_line("-p --port 0")
    assert "opackets" in capsys.readouterr().out
    client.stop_stl_line("-p 0")
    assert client.get_active_ports() == []


def test_flow_info_of_single_flows(client):
    assert client.get_flow_info() == {} and client.get_flow_info(index=3) == {"next_index": 3}
    client.load_profile(profile(template(cps=10, limit=1, delay_us=60_000_000)))
    client.start(dump_interval=0.1)
    wait_until(lambda: len(client.get_flow_info()) == 2)
    by_side = {info["origin"]: (ends, info) for ends, (info,) in client.get_flow_info().items()}
    ends, info = by_side["client"]
    assert ends.startswith("16.0.0.1:") and ends.endswith("-48.0.0.1:80")
    # Established, with no data in flight.
    assert info["state"] == 4 and info["snd_nxt"] == len(REQUEST) + 1 and info["rcv_nxt"] == 1
    assert info["options"] == "/timestamps/sack/wscale" and info["snd_wscale"] >= 0
    assert info["rcv_space"] >= 32_768 >> 1 and info["rcv_mss"] == info["snd_mss"]
    assert info["last_data_recv"] >= 0 and info["snd_zerowin"] == 0 and info["rcv_wscale"] >= 0
    assert info["rcv_ooopack"] == 0
    assert info["duration"] > 0 and info["rtt"] >= 0 and info["snd_cwnd"] >= info["snd_mss"] > 500
    assert by_side["server"][1]["rcv_nxt"] == len(REQUEST) + 1
    samples = client.get_flow_info(duration=0.5)[ends]
    assert 2 <= len(samples) <= 10
    assert [it["duration"] for it in samples] == sorted(it["duration"] for it in samples)
    report = client.get_flow_info(index=0)
    later = client.get_flow_info(index=report["next_index"], duration=0.3)
    assert len(report[ends]) >= 3 and 1 <= len(later[ends]) <= 8
    assert later[ends][0]["duration"] > report[ends][-1]["duration"]
    client.stop()


def test_limit_with_cont_bounds_concurrent_flows(client):
    # 200 per second for 200 ms each would be 40 concurrent flows.
    client.load_profile(profile(template(cps=200, limit=5, cont=True, delay_us=200_000)))
    client.start(duration=2)
    active = []
    while client.is_traffic_active():
        active.append(client.get_traffic_stats()["client"]["m_active_flows"])
    client.wait_on_traffic(timeout=LIMIT_S)
    stats = client.get_traffic_stats()["client"]
    # 25 per second, and connections in TIME-WAIT.
    assert max(active) >= 5 and 20 < stats["tcps_connects"] <= 55, stats
    assert stats["flows_skipped"] + stats["tcps_connects"] == pytest.approx(400, abs=60)
    assert client.is_traffic_stats_error(client.get_traffic_stats())[0] is False


def test_clients_switch_off_and_on(client):
    client.load_profile(profile(template(cps=300), template(53, False, cps=300)))
    assert client.set_client_enable(["16.0.0.1"], False)
    assert "there are no clients to switch" in str([it.msg for it in client.get_warnings()])
    client.set_service_mode()
    client.start()
    first = ip2int("16.0.0.1")

    def states(*numbers: int) -> list[str]:
        report = client.get_clients_info(list(numbers)).data()
        return [report[str(number)].get("state", "none") for number in numbers]

    assert states(first, first + 8, first + 9) == ["Active", "Active", "none"]
    # All but two clients.
    assert client.set_client_enable_range(first, first + 6, False)
    assert states(first, first + 6, first + 7) == ["Inactive", "Inactive", "Active"]
    # Workers check every 20 ms, and open flows end soon.
    wait_until(lambda: sources_in(client, 0.2) == {"16.0.0.8", "16.0.0.9"})
    assert client.set_client_enable([first + 7, "16.0.0.9"], False)
    wait_until(lambda: client.get_traffic_stats()["client"].get("flows_skipped", 0) > 10)
    wait_until(lambda: client.get_traffic_stats()["client"]["m_active_flows"] == 0)
    opened = client.get_traffic_stats()["client"]["tcps_connattempt"]
    assert client.set_client_enable_range("16.0.0.1", "16.0.0.255", True)
    report = client.get_clients_info_range("16.0.0.0", "16.0.0.1").data()
    assert report == {str(first - 1): {"Found": 0}, str(first): {"Found": 1, "state": "Active"}}
    wait_until(lambda: client.get_traffic_stats()["client"]["tcps_connattempt"] > opened + 50)
    client.stop()
    assert states(first) == ["none"]


def test_last_32_bits_identify_clients_over_ipv6(client):
    client.load_profile(profile(template(cps=300)))
    client.start(ipv6=True)
    wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_connects", 0) > 5)
    client.set_client_enable_range("16.0.0.1", "16.0.0.9", False)
    wait_until(lambda: client.get_traffic_stats()["client"].get("flows_skipped", 0) > 10)
    number = str(ip2int("16.0.0.5"))
    assert client.get_clients_info(["16.0.0.5"]).data()[number]["state"] == "Inactive"
    client.stop()


def sources_in(client: ASTFClient, seconds: float) -> set[str]:
    """Returns the clients that open connections within `seconds`."""
    capture = client.start_capture(tx_ports=0)
    time.sleep(seconds)
    packets: list = []
    client.stop_capture(capture["id"], packets)
    requests = (Ether(it["binary"]) for it in packets)
    return {it[IP].src for it in requests if TCP in it and it[TCP].flags == "S"}


def test_latency_traffic_runs_with_a_profile_or_alone(client):
    client.load_profile(profile(template(cps=200)))
    client.start(duration=1.5, latency_pps=200)
    wait_until(lambda: client.get_latency_stats()[1]["stats"]["m_pkt_ok"] > 50)
    with pytest.raises(TRexError, match="latency traffic is running"):
        client.start_latency()
    client.load_profile(profile(template(81, cps=1)), pid_input="beside")
    with pytest.raises(TRexError, match="latency traffic is running"):
        client.start(pid_input="beside", latency_pps=1)
    assert client.get_profiles_state()["beside"] == "STATE_ASTF_LOADED"
    client.wait_on_traffic(timeout=LIMIT_S, profile_id="_")
    wait_until(lambda: not client._latency.is_active)
    stats = client.get_stats()
    assert stats[0]["opackets"] == stats[1]["ipackets"]
    assert stats[1]["opackets"] == stats[0]["ipackets"]
    measured = stats["latency"]
    assert set(measured) == {0, 1}
    for number, port in measured.items():
        counters, delays = port["stats"], port["hist"]
        other = measured[number ^ 1]["stats"]
        assert counters["m_pkt_ok"] == delays["cnt"] == other["m_tx_pkt_ok"] <= 400
        assert counters["m_seq_error"] == counters["m_no_id"] == counters["m_tx_pkt_err"] == 0
        assert 0 < delays["min_usec"] <= delays["s_avg"] <= delays["max_usec"]
        below_10 = delays["cnt"] - delays["high_cnt"]
        assert below_10 + sum(it["val"] for it in delays["histogram"]) == delays["cnt"]
    client.set_vlan([0, 1], 9)
    client.start_latency(mult=20)
    wait_until(lambda: client.get_latency_stats()[0]["stats"]["m_pkt_ok"] >= 1)
    # A duplicate packet does not count as received.
    client.set_service_mode()
    capture = client.start_capture(rx_ports=1)
    wait_until(lambda: client.get_capture_status()[capture["id"]]["count"] > 0)
    packets: list = []
    client.stop_capture(capture["id"], packets)
    with PacketSocket(client.links[0].interface) as socket:
        socket.send(packets[0]["binary"])
    wait_until(lambda: client.get_latency_stats()[1]["stats"]["m_seq_error"] == 1)
    client.update_latency(500)
    wait_until(lambda: client.get_latency_stats()[0]["stats"]["m_pkt_ok"] > 100)
    client.stop_latency()
    report = client.get_latency_stats()[1]["stats"]
    assert report["m_seq_error"] == 1
    assert report["m_pkt_ok"] - 1 == client.get_latency_stats()[0]["stats"]["m_tx_pkt_ok"]
    with pytest.raises(TRexError, match="start_latency"):
        client.update_latency(3)
    for wrong in ({"mult": 0}, {"mult": 10**6}, {"src_ipv4": "nobody"}, {"ports_mask": 1 << 9}):
        with pytest.raises(TRexError):
            client.start_latency(**wrong)


@pytest.mark.parametrize("sender", [0, 1])
def test_other_port_measures_latency_traffic(client, sender):
    client.start_latency(mult=100, ports_mask=1 << sender)
    wait_until(lambda: client.get_latency_stats()[1 - sender]["stats"]["m_pkt_ok"] > 5)
    client.stop_latency()
    report = client.get_latency_stats()
    stats = report[sender]["stats"], report[1 - sender]["stats"]
    assert stats[0]["m_tx_pkt_ok"] == stats[1]["m_pkt_ok"] == report[1 - sender]["hist"]["cnt"] > 5
    assert stats[0]["m_pkt_ok"] == stats[1]["m_tx_pkt_ok"] == 0


def test_warning_about_failed_latency_traffic(client):
    client.start_latency(mult=50)
    wait_until(lambda: client.get_latency_stats()[1]["stats"]["m_pkt_ok"] > 3)
    namespace, _, interface = client.links[1].interface.removeprefix("netns/").partition(":")
    ip("-n", namespace, "link", "set", interface, "down")
    wait_until(lambda: "latency traffic has ended" in str([it.msg for it in client.get_warnings()]))
    wait_until(lambda: not client._latency.is_active)
    assert client.get_latency_stats()[1]["stats"]["m_pkt_ok"] > 3


def test_warning_about_a_link_outage(client):
    client.load_profile(profile(template(cps=200)))
    client.start()
    wait_until(lambda: client.get_traffic_stats()["client"].get("tcps_connects", 0) > 5)
    interface = client.links[0].interface
    namespace, _, name = interface.removeprefix("netns/").partition(":")
    ip("-n", namespace, "link", "set", name, "down")
    run = client._profiles_by_id["_"].run
    wait_until(lambda: run.port(0)["down_s"] > 0.1)
    ip("-n", namespace, "link", "set", name, "up")
    opened = client.get_traffic_stats()["client"]["tcps_connects"]
    wait_until(lambda: client.get_traffic_stats()["client"]["tcps_connects"] > opened)
    client.stop()
    message = [it.msg for it in client.get_warnings() if interface in it.msg]
    assert sum(f"{interface} was down for " in it for it in message) == 1
    assert sum("frames were not sent" in it for it in message) == 1


def test_errors_and_warnings_of_runs(client):
    document = profile(template()).to_json()
    document["templates"][0]["client_template"]["port"] = 70_000
    client.load_profile(document)
    with pytest.raises(
        TRexError, match=r"cannot start profile _: templates\[0\]\.client_template\.port"
    ):
        client.start()
    client.load_profile(profile(template()))
    for arguments in ({"mult": 0}, {"mult": "2"}, {"duration": "long"}, {"pid_input": "*"}):
        with pytest.raises(TRexError):
            client.start(**arguments)
    client.release()
    with pytest.raises(TRexError, match="port 0 is not acquired"):
        client.start()
    for command in (
        lambda: client.topo_load("topology.py"),
        lambda: client.activate_tunnel(2, True),
        lambda: client.update_tunnel_client_record({1: Tunnel("1.1.1.1", "2.2.2.2", 0, 1, 4)}, 1),
        lambda: client.set_client_enable([-1], False),
        lambda: client.set_client_enable_range("16.0.0.9", "16.0.0.1", True),
        lambda: client.get_clients_info(["clients"]),
        lambda: client.set_ignored_macs_ips(ip_list=["1.1.1"]),
        lambda: client.set_ignored_macs_ips(mac_list=[-1], is_str=False),
    ):
        with pytest.raises(TRexError, match=" "):
            command()
    assert client.is_tunnel_supported() == {"is_tunnel_supported": True, "error_msg": ""}
    assert not client.is_tunnel_supported(2)["is_tunnel_supported"]
    with pytest.raises(TRexError, match="'end_ip' cannot be '16.0.0.0'; it can be 16.0.0.9 or an"):
        client.get_traffic_distribution("16.0.0.9", "16.0.0.0", "1.0.0.0", False)
    distribution = client.get_traffic_distribution("16.0.0.0", "16.0.0.255", "1.0.0.0", False)
    assert distribution == {0: {0: {"start": "16.0.0.0", "end": "16.0.0.255"}}}
    client.disconnect()
    with pytest.raises(TRexError, match="not connected"):
        client.start()


def test_streams_and_profiles_exclude_each_other(client):
    assert client.get_mode() == "ASTF" and client.get_server_version()["mode"] == "ASTF"
    client.load_profile(profile(template(cps=100)))
    client.add_streams(burst(200), ports=0)
    client.start_stl(ports=0)
    client.wait_on_traffic_stl(ports=0)
    assert client.get_stats()[0]["opackets"] == 200
    client.add_streams(continuous(), ports=1)
    client.start_stl(ports=1)
    with pytest.raises(TRexError, match="port 1 is sending streams"):
        client.start()
    client.stop_stl(ports=1)
    client.start_stl(ports=1)
    with pytest.raises(TRexError, match="streams are sent there, and counted"):
        client.start_capture(rx_ports=0)
    client.stop_stl(ports=1)
    # A capture sees traffic that starts later, also without service mode.
    capture = client.start_capture(rx_ports=0)
    client.start_stl(ports=1)
    wait_until(lambda: client.get_capture_status()[capture["id"]]["matched"] > 10)
    client.stop_stl(ports=1)
    client.stop_capture(capture["id"])
    client.start()
    with pytest.raises(TRexError, match="past the kernel's taps"):
        client.start_capture(rx_ports=1)
    with pytest.raises(TRexError, match="port 0 is sending"):
        client.remove_all_streams(0) or client.push_packets([bytes(60)], ports=0)
    client.stop()


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("astf_example.py -d 1", "Test has passed :-)"),
        ("astf_example.py -d 1 -f astf/udp_pcap.py", "Test has passed :-)"),
        ("astf_example.py -d 1 -f astf/http_manual_commands_loop.py", "Test has passed :-)"),
        (
            "astf_ndr_bench_tool.py -t 1 -x 1 --high-mult 9 --low-mult 1 --latency-pps 50 "
            "--max-latency 1000000 --lat-tolerance 50",
            "Bench Run has finished :-)",
        ),
    ],
)
def test_trex_examples_run_unmodified(lab, example, message):
    if "TREX_CORE" not in os.environ:
        pytest.skip("TREX_CORE names no tree of trex-core")
    scripts = Path(os.environ["TREX_CORE"]).absolute() / "scripts"
    tree = scripts / "automation/trex_control_plane/interactive"
    name, *options = example.split()
    command = [sys.executable, str(tree / "trex/examples/astf" / name), *options]
    # The tree comes last; examples import each other from it.
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(tree)])}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, cwd=scripts, env=paths
    )
    assert message in done.stdout, done.stdout + done.stderr
