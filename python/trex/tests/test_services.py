"""Services on a port. The kernel or a DHCP server answers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from trex.common.services.trex_service import Service, ServiceFilter
from trex.common.services.trex_service_ap import ServiceApJoinWLC
from trex.common.services.trex_service_arp import ServiceARP
from trex.common.services.trex_service_dhcp import ServiceDHCP
from trex.common.services.trex_service_icmp import ServiceICMP
from trex.common.services.trex_service_ipv6 import ServiceICMPv6, ServiceIPv6Scan
from trex.common.services.trex_service_IPv6ND import ServiceIPv6ND
from trex.stl.api import IP, UDP, Ether, PacketBuffer, STLError

LIMIT_S = 60


@pytest.fixture
def context(client):
    """Port 0, in service mode."""
    client.set_service_mode(0)
    return client.create_service_ctx(0)


@pytest.fixture
def dhcp_server(peer, dnsmasq):
    """A DHCP server at port 1, with 20 addresses."""
    peer.add_addresses("10.9.9.1/24")
    options = ["--no-ping", "--log-dhcp", "--leasefile-ro", "--domain=example.org"]
    with dnsmasq(*options, "--dhcp-range=10.9.9.50,10.9.9.69,1h") as log:
        yield log


def test_arp_services_run_concurrently(context, peer):
    peer.add_addresses("10.9.9.2/24")
    services = [ServiceARP(context, "10.9.9.2", src_ip=f"10.9.9.{n}") for n in range(10, 60)]
    silent = ServiceARP(context, "10.9.9.3", src_ip="10.9.9.10", timeout_sec=0.5)
    before = time.monotonic()
    context.run([*services, silent])
    # The run waits only for the neighbour that does not answer.
    assert 0.5 <= time.monotonic() - before
    for service in services:
        record = service.get_record()
        assert record and record.dst_mac == peer.mac and record.dst_ip == "10.9.9.2"
        assert str(record) == f"10.9.9.2 is at {peer.mac}"
    assert not silent.get_record() and silent.get_record().dst_mac is None


def test_services_send_at_the_given_rate(context, peer):
    peer.add_addresses("10.9.9.2/24")
    services = [ServiceARP(context, "10.9.9.2", src_ip=f"10.9.9.{n}") for n in range(10, 60)]
    before = time.monotonic()
    context.run(services, pps=100)
    assert time.monotonic() - before > 0.4
    assert all(service.get_record() for service in services)


def test_services_use_vlans(client, context):
    client.set_service_mode(1)
    client.acquire(1)
    for vlan, fmt in ((5, None), ([6, 7], None), ([6, 7], "QQ")):
        client.set_namespace(1, "remove_all")
        tpids = [0x8100] * 2 if fmt else None
        mac = "00:00:00:01:00:07"
        client.set_namespace(1, "add_node", mac=mac)
        client.set_namespace(1, "set_vlan", mac=mac, vlans=vlan, tpids=tpids)
        client.set_namespace(1, "set_ipv4", mac=mac, ipv4="10.9.9.2", dg="10.9.9.254")
        client.set_namespace(1, "set_ipv6", mac=mac, enable=True, src_ipv6="2001:db8::2")
        services = ServiceARP(context, "10.9.9.2", "10.9.9.1", vlan=vlan, fmt=fmt)
        searched = ServiceIPv6ND(context, "2001:db8::2", "2001:db8::1", vlan=vlan, fmt=fmt)
        elsewhere = ServiceARP(context, "10.9.9.2", "10.9.9.1", vlan=99, timeout_sec=0.3)
        context.run([services, searched, elsewhere])
        assert services.get_record().dst_mac == searched.get_record().dst_mac == mac
        assert not elsewhere.get_record()


def test_ping_size_and_time(client, context, peer):
    peer.add_addresses("10.9.9.2/24")
    client.set_l3_mode(0, "10.9.9.1", "10.9.9.2")
    ping = ServiceICMP(context, "10.9.9.2", pkt_size=200)
    lost = ServiceICMP(context, "10.9.9.3", timeout_sec=0.3)
    context.run([ping, lost])
    record = ping.get_record()
    assert record.state == ServiceICMP.PINGRecord.SUCCESS and record.state == record.SUCCESS
    assert (record.responder_ip, record.ttl, record.pkt_size) == ("10.9.9.2", 64, 200)
    assert 0 < record.rtt < 1000 and record["rtt"] == record.rtt
    assert str(record).startswith("Reply from 10.9.9.2: bytes=200, time=")
    assert lost.get_record().state == record.TIMEOUT
    client.set_l2_mode(0, peer.mac)
    with pytest.raises(STLError, match="port 0 has no IPv4 address"):
        ServiceICMP(context, "10.9.9.2")


def test_ipv6_neighbour_is_resolved_and_verifies(context, peer):
    peer.add_addresses("2001:db8::2/64")
    # The kernel probes a neighbour entry after this delay.
    peer.set(f"ipv6/neigh/{peer.interface}/delay_first_probe_time", 1)
    found = ServiceIPv6ND(context, "2001:db8::2", "2001:db8::1", verify_timeout=4)
    silent = ServiceIPv6ND(context, "2001:db8::3", "2001:db8::1", retries=1, timeout=0.3)
    echo = ServiceICMPv6(context, "2001:db8::2", dst_mac=peer.mac)
    # The kernel solicits the source of its pings.
    context.port_obj.has_own_ipv6, context.port_obj.own_ipv6 = True, "2001:db8::1"
    echo.src_ip = "2001:db8::1"
    context.run([found, silent, echo])
    record = found.get_record()
    assert record and record.is_resolved() and record.dst_mac == peer.mac
    assert record.state == "REACHABLE" and record.neighbor_verifications >= 1
    assert not silent.get_record() and silent.get_record().state == "UNREACHABLE"
    assert echo.get_record()["status"] == "success"
    unnamed = ServiceIPv6ND(context, "2001:db8::2")
    context.run(unnamed)
    assert unnamed.get_record().dst_mac == peer.mac
    scan = ServiceIPv6Scan(context, "ff02::1", timeout=1)
    context.run(scan)
    assert peer.mac in [one["mac"] for one in scan.get_record()]


def test_dhcp_clients_acquire_and_release_leases(context, dhcp_server, capsys):
    macs = [f"02:00:00:00:01:{n:02x}" for n in range(10)]
    clients = [ServiceDHCP(mac, verbose_level=ServiceDHCP.INFO) for mac in macs]
    context.run(clients)
    leases = [client.get_record() for client in clients]
    assert all(client.state == "BOUND" for client in clients), capsys.readouterr().out
    assert len({lease.client_ip for lease in leases}) == 10
    for mac, lease in zip(macs, leases):
        assert lease.client_mac == mac and lease.client_ip.startswith("10.9.9.")
        assert (lease.server_ip, lease.subnet) == ("10.9.9.1", "255.255.255.0")
        assert (lease.domain, lease.lease) == ("example.org", 3600)
        assert lease.server_mac == context.client.links[1].source
    assert str(leases[0]).startswith(f"ip: {leases[0].client_ip}, server_ip: 10.9.9.1, subnet:")
    pings = [ServiceICMP(context, lease.server_ip, src_ip=lease.client_ip) for lease in leases[:1]]
    context.run(pings)
    context.run(clients)
    assert all(client.get_record() is None for client in clients)
    deadline = time.monotonic() + LIMIT_S
    while sum("DHCPRELEASE" in line for line in dhcp_server) < 10:
        assert time.monotonic() < deadline, "".join(dhcp_server)
        time.sleep(0.01)
    # The server knows the released leases.
    assert not any("unknown lease" in line for line in dhcp_server)
    message = capsys.readouterr().out
    assert f"DHCP: {macs[0]}: 10.9.9.1 offers {leases[0].client_ip}" in message


def test_dhcp_client_gives_up_without_a_server(context, monkeypatch, capsys):
    monkeypatch.setattr("trex.services.dhcp._REPLY_TIMEOUT_S", 0.1)
    client = ServiceDHCP("02:00:00:00:01:01")
    context.run(client)
    assert client.state == "INIT" and client.get_record() is None
    assert "nobody offers an address" in capsys.readouterr().out
    with pytest.raises(STLError, match="'mac' cannot be 'me'"):
        ServiceDHCP("me")


class Filter(ServiceFilter):
    """Filter for UDP to the ports of the services."""

    def __init__(self):
        self.services = []

    def add(self, service):
        self.services.append(service)

    def lookup(self, pkt):
        return [it for it in self.services if Ether(pkt)[UDP].dport == it.port]

    def get_bpf_filter(self):
        return "udp"


class ScriptService(Service):
    """A script's service: sends a frame, then waits for the expected number of frames."""

    def __init__(self, port, sends=(), expects=0, fails=False):
        super().__init__()
        self.port, self.sends, self.expects, self.fails = port, sends, expects, fails
        self.frames, self.times = [], []
        self.is_running = threading.Event()

    def get_filter_type(self):
        return Filter

    def run(self, pipe):
        if self.fails:
            self.err("it went wrong")
        assert (yield pipe.async_wait_for_pkt(time_sec=0)) == []
        self.is_running.set()
        for packet in self.sends:
            sent = yield pipe.async_tx_pkt(packet)
            self.times.append(sent["ts"])
        yield pipe.async_wait(0.1)
        while len(self.frames) < self.expects:
            frames = yield pipe.async_wait_for_pkt(time_sec=LIMIT_S, limit=2)
            assert 1 <= len(frames) <= 2
            self.frames += frames


def test_services_of_a_script(client, context):
    client.set_service_mode(1)
    other = client.create_service_ctx(1)
    base = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    frames = [base / IP(dst="10.0.0.2") / UDP(dport=7) / bytes([n] * 40) for n in range(5)]
    frames.append(base / IP(dst="10.0.0.2") / UDP(dport=8) / bytes(40))
    first, second = ScriptService(7, expects=5), ScriptService(8, expects=1)
    sending = ScriptService(9, sends=frames)
    there = threading.Thread(target=other.run, args=([first, second],))
    began = time.time()
    there.start()
    assert first.is_running.wait(LIMIT_S) and second.is_running.wait(LIMIT_S)
    context.run(sending, pps=10_000)
    there.join(LIMIT_S)
    assert [one["pkt"] for one in first.frames] == [bytes(it) for it in frames[:5]]
    assert [one["pkt"] for one in second.frames] == [bytes(frames[5])]
    assert began < sending.times[0] <= first.frames[0]["ts"] < began + LIMIT_S
    assert sending.times == sorted(sending.times) and sending.frames == []


def test_packet_without_addresses_gets_the_ports(client, context):
    client.set_service_mode(1)
    client.set_l2_mode(0, "02:00:00:00:00:09")
    bare = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP() / UDP(dport=7))
    sends = [Ether() / IP() / UDP(dport=7), Ether(dst="02:00:00:00:00:05") / IP() / UDP(dport=7)]
    sends += [bare, PacketBuffer(bare), PacketBuffer(bare, port_src=True)]
    capture = client.start_capture(rx_ports=1, bpf_filter="udp")["id"]
    context.run(ScriptService(9, sends=sends))
    frames = []
    client.stop_capture(capture, frames)
    own, next_hop = client.links[0].source, "02:00:00:00:00:09"
    assert [(Ether(it["binary"]).src, Ether(it["binary"]).dst) for it in frames] == [
        (own, next_hop),
        (own, "02:00:00:00:00:05"),
        (own, next_hop),
        ("02:00:00:00:00:01", "02:00:00:00:00:02"),
        (own, "02:00:00:00:00:02"),
    ]
    with pytest.raises(STLError, match="'tx_pkt' is of type str"):
        context.run(ScriptService(9, sends=["text"]))


def test_invalid_services_are_rejected(client, context):
    with pytest.raises(STLError, match="it went wrong"):
        context.run([ScriptService(7), ScriptService(8, fails=True)])

    class Plain(ScriptService):
        def run(self, pipe):
            return None

    class Yielding(ScriptService):
        def run(self, pipe):
            yield 5

    for services, message in (
        ([], "the list is empty"),
        ("arp", "expected a Service"),
        (Plain(7), "must yield"),
        (Yielding(7), "a service yielded 5"),
    ):
        with pytest.raises(STLError, match=message):
            context.run(services)
    with pytest.raises(STLError, match="'pps' cannot be 0"):
        context.run(ScriptService(7), pps=0)
    with pytest.raises(STLError, match=r"CAPWAP.*are not supported"):
        ServiceApJoinWLC(None)
    client.set_service_mode(0, enabled=False)
    with pytest.raises(STLError, match="not in service mode"):
        context.run(ScriptService(7))
    with pytest.raises(STLError, match="cannot be .5.; it can be 0, 1"):
        client.create_service_ctx(5)
    client.disconnect()
    with pytest.raises(STLError, match="not connected"):
        context.run(ScriptService(7))
    # The context belongs to the port, whatever the session.
    client.connect()
    client.reset()
    client.set_service_mode(0)
    context.run(ScriptService(7))


def test_older_names_are_the_same():
    from trex_stl_lib.services.trex_stl_service import STLService
    from trex_stl_lib.services.trex_stl_service_arp import STLServiceARP
    from trex_stl_lib.services.trex_stl_service_dhcp import STLServiceDHCP
    from trex_stl_lib.services.trex_stl_service_icmp import STLServiceICMP
    from trex_stl_lib.services.trex_stl_service_IPv6ND import STLServiceIPv6ND

    assert (STLService, STLServiceARP, STLServiceDHCP) == (Service, ServiceARP, ServiceDHCP)
    assert (STLServiceICMP, STLServiceIPv6ND) == (ServiceICMP, ServiceIPv6ND)


def run_example(name, answers="", status=0):
    if "TREX_CORE" not in os.environ:
        pytest.skip("TREX_CORE names no tree of trex-core")
    folder = "scripts/automation/trex_control_plane/interactive/trex/examples/stl"
    script = Path(os.environ["TREX_CORE"]) / folder / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script],
        # Search path of the packages, installed or not.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input=answers,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_trex_dhcp_script_runs_unmodified(lab, dhcp_server, client):
    client.disconnect()
    message = run_example("stl_dhcp_example", "3\n\n\n\n")
    assert message.count("DHCP: ip: 10.9.9.") == 3 and "ICMP" in message
    assert sum("DHCPRELEASE" in line for line in dhcp_server) == 3


def test_trex_ipv6_script_runs_unmodified(peer, client):
    peer.add_addresses("fe80::2/64")
    client.disconnect()
    message = run_example("stl_ipv6_tools")
    assert "fe80::2" in message and "Reply from fe80::2" in message and "Done." in message


def test_trex_arp_script_runs_unmodified(peer, client):
    peer.add_addresses("1.1.1.1/24")
    client.disconnect()
    # It sends requests in VLANs without hosts.
    message = run_example("stl_multiple_arps", status=1)
    assert message.count("failed to ARP resolve") == 4


def test_trex_neighbour_script_runs_unmodified(peer, client):
    peer.add_addresses("2001:db8::1:1/64")
    client.disconnect()
    message = run_example("stl_simple_nd")
    assert message.count("Found NA for 2001:db8::1:1") == 10, message
    assert "Test has passed" in message or "below the target" in message


def test_trex_node_script_runs_unmodified(client):
    client.disconnect()
    message = run_example("namespace_example")
    assert "{'result': {'nodes': ['00:01:02:03:04:05']}}" in message
