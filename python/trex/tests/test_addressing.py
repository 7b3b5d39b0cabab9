"""A port as a host: addresses, next hop, neighbours. The kernel is at the other end."""

from __future__ import annotations

import pytest

from trex.stl.api import STLClient, STLError, generate_ipv6


def test_neighbour_discovery_resolves_the_next_hop(client, peer):
    peer.add_addresses("2001:db8::2/64")
    client.set_l3_mode(0, "2001:db8::1", "2001:db8::2")
    assert client.links[0].destination == peer.mac
    assert client.get_resolved_ports() == client.get_resolvable_ports() == [0]
    info = client.get_port_attr(0)
    assert (info["layer_mode"], info["dest"], info["arp"]) == ("IPv6", "2001:db8::2", peer.mac)
    with pytest.raises(STLError, match=r"no answer for 2001:db8::3 \(neighbour discovery\)"):
        client.set_l3_mode(0, "2001:db8::1", "2001:db8::3")
    assert client.get_resolved_ports() == [] and not client.get_port(0).is_resolved()
    with pytest.raises(STLError, match="an address of IPv6, as src_ipv4 is"):
        client.set_l3_mode(0, "2001:db8::1", "10.0.0.1")
    with pytest.raises(STLError, match="port 1 has no next hop"):
        client.resolve(1)


def test_ping_over_ipv6(client, peer):
    peer.add_addresses("2001:db8::2/64")
    client.conf_ipv6(0, True, "2001:db8::1")
    first, second = client.ping_ip(0, "2001:db8::2", pkt_size=100, count=2, interval_sec=0)
    for reply in (first, second):
        assert (reply["status"], reply["src_ip"], reply["ttl"]) == ("success", "2001:db8::2", 64)
        assert 0 < reply["rtt"] < 1000
        assert reply["formatted_string"].startswith("Reply from 2001:db8::2: bytes=100, time=")
    (lost,) = client.ping_ip(0, "2001:db8::7", count=1, timeout=0.5)
    assert lost == {"status": "timeout", "formatted_string": "Request timed out."}
    # From the link-local address if the port has no other.
    client.conf_ipv6(0, False)
    (reply,) = client.ping_ip(0, "2001:db8::2", count=1)
    assert reply["status"] == "success"


def test_ping_reports_an_unreachable_host(client, peer):
    peer.add_addresses("10.9.9.2/24", "2001:db8::2/64")
    # A router without a route reports the destination as unreachable.
    peer.set("ipv4/ip_forward", 1)
    peer.set("ipv6/conf/all/forwarding", 1)
    client.set_l3_mode(0, "10.9.9.1", "10.9.9.2")
    (reply,) = client.ping_ip(0, "192.0.2.1", count=1)
    assert (reply["status"], reply.state) == ("unreachable", reply.UNREACHABLE)
    client.set_l3_mode(0, "2001:db8::1", "2001:db8::2")
    (reply,) = client.ping_ip(0, "2001:db8:7::1", count=1)
    assert reply["status"] == "unreachable"
    assert reply["formatted_string"] == "Reply from 2001:db8::2: Destination host unreachable"


def test_port_answers_for_its_addresses(client, peer):
    peer.add_addresses("10.9.9.2/24", "2001:db8::2/64")
    client.set_l3_mode(0, "10.9.9.1", "10.9.9.2")
    assert peer.pings("10.9.9.1") and peer.neighbour("10.9.9.1") == client.links[0].source
    assert not peer.pings("2001:db8::1")
    client.conf_ipv6(0, True, "2001:db8::1")
    assert peer.pings("2001:db8::1")
    assert peer.neighbour("2001:db8::1") == client.links[0].source
    cfg = client.get_port(0).get_layer_cfg()
    assert cfg["ipv4"] == {"state": "resolved", "src": "10.9.9.1", "dst": "10.9.9.2"}
    assert cfg["ipv6"] == {"enabled": True, "src": "2001:db8::1"}
    assert cfg["ether"] == {
        "src": client.links[0].source,
        "dst": peer.mac,
        "state": "configured",
    }
    client.conf_ipv6(0, False)
    assert client.get_port_attr(0)["ipv6"] == "off" and not peer.pings("2001:db8::1")
    client.set_l2_mode(0, "02:00:00:00:00:09")
    assert not peer.pings("10.9.9.1")


def test_link_local_address_follows_the_mac_address(client, peer):
    client.conf_ipv6(0, True)
    assert client.get_port_attr(0)["ipv6"] == "auto" and client.get_port(0).has_ipv6()
    peer.add_addresses("fe80::2/64")
    assert peer.pings(generate_ipv6(client.links[0].source))
    with pytest.raises(STLError, match="'src_ipv6' cannot be 'nowhere'"):
        client.conf_ipv6(0, True, "nowhere")


def test_port_in_a_vlan_answers_only_there(client):
    client.set_vlan([0, 1], [7, 9])
    client.conf_ipv6(0, True, "2001:db8::1")
    client.conf_ipv6(1, True, "2001:db8::2")
    (reply,) = client.ping_ip(0, "2001:db8::2", count=1)
    assert reply["status"] == "success" and client.get_port(0).get_vlan_cfg() == [7, 9]
    client.set_vlan(1, 7)
    (reply,) = client.ping_ip(0, "2001:db8::2", count=1, timeout=0.5)
    assert reply["status"] == "timeout"
    (reply,) = client.ping_ip(0, "2001:db8::2", count=1, vlan=7)
    assert reply["status"] == "success"
    client.clear_vlan()
    assert client.get_port(1).get_vlan_cfg() == []
    for wrong in (0, 4096, [1, 2, 3], "5"):
        with pytest.raises(STLError, match="vlan"):
            client.set_vlan(0, wrong)


def test_scan6_finds_neighbours(client, peer, capsys):
    assert client.scan6([0], timeout=0.3) == {0: []}
    peer.add_addresses("fe80::2/64")
    (found,) = client.scan6(0, timeout=2, verbose=True)[0]
    assert found == {"type": "Host", "mac": peer.mac, "ipv6": "fe80::2"}
    assert f"Host    {peer.mac}  fe80::2" in capsys.readouterr().out
    peer.set("ipv6/conf/all/forwarding", 1)
    assert client.scan6(0, timeout=2)[0] == [{**found, "type": "Router"}]


def test_scan6_finds_the_other_port(client):
    client.conf_ipv6(1, True, "2001:db8::2")
    found = client.scan6([0, 1], timeout=2)
    assert [one["mac"] for one in found[0]] == [client.links[1].source]
    assert found[1] == []
    client.disconnect()


def test_trex_cfg_makes_ports_hosts(lab, monkeypatch, tmp_path):
    file = tmp_path / "trex_cfg.yaml"
    addresses = [("10.9.9.1", "10.9.9.2"), ("10.9.9.2", "10.9.9.1")]
    ports = "".join(f"    - {{ip: {own}, default_gw: {other}}}\n" for own, other in addresses)
    interfaces = f"['{lab.a}', '{lab.b}']"
    file.write_text(f"- interfaces: {interfaces}\n  port_info:\n{ports}")
    monkeypatch.delenv("WIRESTORM_TREX_PORTS")
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(file))
    with STLClient() as client:
        assert client.get_resolved_ports() == [0, 1]
        assert client.links[0].destination == client.links[1].source
        (reply,) = client.ping_ip(0, "10.9.9.2", count=1)
        assert reply["status"] == "success"
    file.write_text(file.read_text().replace("default_gw: 10.9.9.2", "default_gw: 10.9.9.7"))
    with STLClient() as client:
        assert client.get_resolved_ports() == [1] and client.links[0].destination is None
        message = [event.msg for event in client.get_events()]
        assert "port 0: no answer for 10.9.9.7 (ARP); resolve() tries again" in message
