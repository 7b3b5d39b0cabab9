"""Nodes on a port. The kernel is at the other end."""

from __future__ import annotations

import time

import pytest

from trex.client.packet_socket import PacketSocket
from trex.common.stats.trex_ns import CNsStats
from trex.stl.api import (
    Ether,
    ICMPv6ND_RA,
    ICMPv6NDOptPrefixInfo,
    IPv6,
    NSCmds,
    STLError,
    generate_ipv6,
)

MAC = "00:00:00:01:00:07"
LIMIT_S = 60


def wait_until(condition):
    """Waits until `condition()` is true, with a time limit."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline


def run(client, commands, port=0, **arguments):
    client.set_namespace_start(port, commands)
    assert client.is_async_results_ready(port)
    return client.wait_for_async_results(port, **arguments)


def counters(client, port=0):
    commands = NSCmds()
    commands.counters_get_meta()
    commands.counters_get_values()
    meta, values = run(client, commands, port)
    stats = CNsStats()
    stats.set_meta_values(meta["result"]["data"], values["result"][""])
    return stats.get_values_stats()


def test_node_is_a_host(client, peer):
    peer.add_addresses("1.1.1.2/24", "2001:db8::2/64")
    commands = NSCmds()
    commands.clear_counters()
    commands.add_node(MAC)
    commands.set_ipv4(MAC, "1.1.1.3", "1.1.1.2")
    commands.set_ipv6(MAC, True, "2001:db8::3")
    commands.get_nodes()
    *done, nodes = run(client, commands)
    assert done == [None] * 4 and nodes == {"result": {"nodes": [MAC]}}
    # It announces its addresses when it is added.
    assert counters(client)["tx_broadcast_pkts"] >= 1 and counters(client)["tx_multicast_pkts"] >= 1
    for address in ("1.1.1.3", "2001:db8::3", "fe80::200:ff:fe01:7"):
        if address.startswith("fe80"):
            peer.add_addresses("fe80::2/64")
        assert peer.pings(address), address
        assert peer.neighbour(address) == MAC
    assert counters(client)["rx_unicast_pkts"] >= 3 and counters(client)["tx_unicast_pkts"] >= 3
    (info,) = client.set_namespace(0, "get_nodes_info", macs_list=[MAC])["result"]["nodes"]
    assert info["ether"] == {"src": MAC} and info["ipv4"] == {"src": "1.1.1.3", "dst": "1.1.1.2"}
    assert info["ipv6"] == {"enabled": True, "src": "2001:db8::3"}
    assert info["vlan"] == {"tags": [], "tpids": []} and info["is_bird"] is False
    commands = NSCmds()
    commands.clear_ipv4(MAC)
    commands.set_ipv6(MAC, False)
    run(client, commands)
    assert not peer.pings("1.1.1.3") and not peer.pings("2001:db8::3")
    client.set_namespace(0, "set_ipv4", mac=MAC, ipv4="1.1.1.4", dg="1.1.1.2")
    assert peer.pings("1.1.1.4")
    client.set_namespace(0, "set_vlan_filter", mac=MAC, is_no_tcp_udp=False, is_tcp_udp=True)
    assert not peer.pings("1.1.1.4")
    client.set_namespace(0, "set_vlan_filter", mac=MAC)
    assert peer.pings("1.1.1.4")
    client.set_namespace(0, "remove_node", mac=MAC)
    assert not peer.pings("1.1.1.4")
    assert client.set_namespace(0, "get_nodes") == {"result": {"nodes": []}}
    client.set_namespace(0, "clear_counters")
    assert counters(client) == {}
    zeros = client.set_namespace(0, "counters_get_values", zeros=True)["result"][""]
    assert len(zeros) == 12 and set(zeros.values()) == {0}


def test_port_pings_nodes_in_vlans(client):
    commands = NSCmds()
    commands.add_node(MAC)
    commands.set_ipv4(MAC, "1.1.1.3", "1.1.1.2")
    commands.set_vlan(MAC, [22, 23], [0x8100, 0x8100])
    commands.get_nodes_info([MAC])
    *_, info = run(client, commands)
    assert info["result"]["nodes"][0]["vlan"] == {"tags": [22, 23], "tpids": [0x8100, 0x8100]}
    with pytest.raises(STLError, match="no answer for 1.1.1.3"):
        client.set_l3_mode(1, "1.1.1.2", "1.1.1.3")
    client.set_namespace(0, "set_vlan", mac=MAC, vlans=[22, 23])
    client.set_l3_mode(1, "1.1.1.2", "1.1.1.3", vlan=[22, 23])
    (reply,) = client.ping_ip(1, "1.1.1.3", count=1)
    assert reply["status"] == "success" and client.links[1].destination == MAC
    client.set_namespace(0, "set_vlan", mac=MAC, vlans=[])
    client.set_l3_mode(1, "1.1.1.2", "1.1.1.3", vlan=[])


def test_many_nodes_answer(client, peer):
    peer.add_addresses("1.1.0.1/16")
    commands = NSCmds()
    for number in range(1, 201):
        mac = f"00:01:02:03:00:{number:02x}"
        commands.add_node(mac)
        commands.set_ipv4(mac, f"1.1.1.{number}", "1.1.0.1")
        commands.set_ipv6(mac, True)
    option = []
    results = run(client, commands, cb=option.append)
    assert results == [None] * 600
    assert (option[0]["exec_cmds"], option[0]["total_cmds"], option[0]["errs_cmds"]) == (
        600,
        600,
        0,
    )
    assert all(peer.pings(f"1.1.1.{number}") for number in (1, 100, 200))
    found = set()

    def all_found():
        found.update((one["mac"], one["ipv6"]) for one in client.scan6(1, timeout=1)[1])
        return len(found) >= 200

    wait_until(all_found)
    macs = [f"00:01:02:03:00:{number:02x}" for number in range(1, 201)]
    assert found == {(mac, generate_ipv6(mac)) for mac in macs}
    client.namespace_remove_all()
    assert not peer.pings("1.1.1.100") and client.links[0].hosts.counters()["tx_unicast_pkts"]


def test_node_takes_an_advertised_address(client, peer, dnsmasq):
    peer.add_addresses("fe80::1/64", "2001:db8::1/64")
    client.set_vlan(0, 5)
    client.conf_ipv6(0, True)
    with dnsmasq("--enable-ra", "--dhcp-range=2001:db8::,ra-only,64"):
        client.set_namespace(0, "add_node", mac="00:00:00:01:00:08")
        own = {"enable": True, "src_ipv6": "2001:db8::8"}
        client.set_namespace(0, "set_ipv6", mac="00:00:00:01:00:08", **own)
        client.set_namespace(0, "add_node", mac=MAC)
        client.set_namespace(0, "set_ipv6", mac=MAC, enable=True)
        address = "2001:db8::200:ff:fe01:7"
        wait_until(lambda: peer.pings(address))
    assert peer.neighbour(address) == MAC
    # Advertisements apply only to nodes without an address.
    peer.add_addresses("2001:db8:7::1/64")
    option = ICMPv6NDOptPrefixInfo(prefix="2001:db8:7::", prefixlen=64, A=1)
    to_all = Ether(dst="33:33:00:00:00:01") / IPv6(src="fe80::1", dst="ff02::1", hlim=255)
    with PacketSocket(client.links[1].interface) as router:
        router.send(bytes(to_all / ICMPv6ND_RA() / option))
    wait_until(lambda: peer.pings("2001:db8:7::200:ff:fe01:7"))
    assert peer.pings("2001:db8::8") and not peer.pings("2001:db8:7::200:ff:fe01:8")
    client.clear_vlan(0)
    assert not peer.pings(generate_ipv6(client.links[0].source, prefix="2001:db8"))


def test_shared_namespace(client, peer):
    peer.add_addresses("1.1.1.2/24")
    name = client.set_namespace(0, "add_shared_ns")["result"]
    commands = NSCmds()
    commands.add_node(MAC, shared_ns=name)
    commands.set_ipv4(MAC, "1.1.1.3", subnet=24, shared_ns=True)
    commands.set_ipv6(MAC, True, shared_ns=True)
    commands.set_dg(name, "1.1.1.2")
    commands.set_mtu(MAC, 1400)
    commands.get_nodes_info([MAC])
    *_, infos = run(client, commands)
    (info,) = infos["result"]["nodes"]
    assert info["ipv4"] == {"src": "1.1.1.3", "subnet": 24} and info["is-shared-ns"]
    assert info["mtu"] == 1400 and info["shared-ns"] == name
    assert peer.pings("1.1.1.3")
    with pytest.raises(STLError, match="set_ipv4: node .* is in a shared namespace"):
        client.set_namespace(0, "set_ipv4", mac=MAC, ipv4="1.1.1.3", dg="1.1.1.2")
    client.set_namespace(0, "remove_shared_ns", shared_ns=name)
    assert client.set_namespace(0, "get_nodes") == {"result": {"nodes": []}}
    assert not peer.pings("1.1.1.3")


def test_failed_command_does_not_stop_the_others(client):
    commands = NSCmds()
    commands.add_node(MAC)
    commands.add_node(MAC)
    commands.set_mtu(MAC, 1400)
    commands.add_node("00:00:00:01:00:08")
    client.set_namespace_start(0, commands)
    with pytest.raises(STLError, match="add_node: there is a node .* set_mtu: node .* is in no"):
        client.wait_for_async_results(0)
    assert len(client.set_namespace(0, "get_nodes")["result"]["nodes"]) == 2
    with pytest.raises(STLError, match="no commands were executed"):
        client.wait_for_async_results(0)
    assert not client.is_async_results_ready(0)
    for call, message in (
        (lambda: client.set_namespace(0, "fly"), "'method' cannot be 'fly'"),
        (lambda: client.set_namespace(0, "remove_node", mac="00:00:00:01:00:09"), "no node"),
        (lambda: client.set_namespace(0, "add_node", mac=MAC, shared_ns="x"), "there is a node"),
        (lambda: client.set_namespace(0, "set_dg", shared_ns="x", dg="1.1.1.1"), "namespace 'x'"),
        (lambda: client.set_namespace(0, "set_filter", mac=MAC, bpf_filter="udp"), "set_filter"),
        (lambda: client.set_namespace_start(0, "add_node"), "'ns_cmds' is of type str"),
        (lambda: client.set_bird_node(0, "00:00:00:01:00:0a"), "BIRD is not supported"),
        (lambda: NSCmds().add_node("01:00:00:00:00:01"), "the address of one node"),
        (lambda: NSCmds().set_ipv4(MAC, "1.1.1.3"), "needs dg"),
        (lambda: NSCmds().set_ipv4(MAC, "1.1.1.3", shared_ns=True), "needs a subnet"),
        (lambda: NSCmds().set_vlan(MAC, [1], [1, 2]), "1 vlans, and 2 tpids"),
        (lambda: NSCmds().set_ipv6(MAC, True, "nowhere"), "'src_ipv6'"),
    ):
        with pytest.raises(STLError, match=message):
            call()
    client.namespace_remove_all([0])
    assert client.set_namespace(0, "get_nodes")["result"]["nodes"] == []


def test_nodes_end_with_the_session(client, peer):
    peer.add_addresses("1.1.1.2/24")
    client.set_namespace(0, "add_node", mac=MAC)
    client.set_namespace(0, "set_ipv4", mac=MAC, ipv4="1.1.1.3", dg="1.1.1.2")
    assert peer.pings("1.1.1.3")
    client.disconnect()
    assert not peer.pings("1.1.1.3")
