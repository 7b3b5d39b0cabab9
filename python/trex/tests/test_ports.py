"""Ports as scripts see them: `ports[0]` of a client."""

from __future__ import annotations

import pytest
from stream_helpers import LIMIT_S, burst, continuous, wait_until

from trex.astf.api import ASTFClient
from trex.stl.api import STLClient, STLError, STLFlowStats

# Fields of `get_port_info` in TRex's client.
INFO = """
arp cores description dest driver fc fc_supported grat_arp hw_mac index ipv6 is_fc_supported
is_ieee1588_supported is_led_supported is_link_supported is_prom_supported is_virtual
is_vxlan_supported layer_mode led_change_supported link link_change_supported mult numa pci_addr
prom prom_supported rx rx_filter_mode rx_queue speed src_ipv4 src_mac stack status supp_speeds vlan
vxlan_fs
""".split()


def test_port_has_all_information_of_trex(client):
    info = client.get_port_info(0)[0]
    assert set(INFO) <= set(info)
    assert {"flow_stats", "latency", "rx_bytes", "tpg"} <= set(info["rx"]["caps"])
    assert info["rx"]["counters"] == 1023 and info["is_vxlan_supported"] == "no"
    assert client.get_server_system_info()["ports"][0]["rx"] == info["rx"]
    assert client.ports[0].get_formatted_info() == info


def test_state_of_a_port(client):
    port = client.ports[0]
    assert (port.port_id, client.get_port(0).port_id, client.any_port.port_id) == (0, 0, 0)
    assert client.get_port(7) is None
    assert port.is_acquired() and port.is_up() and port.is_virtual() and port.is_writeable()
    assert port.get_owner() == port.owner == client.get_connection_info()["username"]
    assert not port.is_active() and port.get_port_state_name() == "IDLE"
    assert (port.get_speed_bps(), port.get_speed_gbps()) == (10e9, 10.0)
    (number,) = (port.add_streams([continuous(flow_stats=STLFlowStats(pg_id=4))]).data(),)
    assert port.state == port.STATE_STREAMS and list(port.get_all_streams()) == [number]
    assert port.has_rx_enabled() and port.has_profile_rx_enabled("_")
    assert not port.has_profile_rx_enabled("other")
    assert port.validate().data()["rate"]["max_pps"] == 1000
    assert port.start("2", -1, False, None)
    wait_until(lambda: port.get_stats().get_stats()["opackets"] > 0)
    assert port.is_transmitting() and port.is_active() and port.is_profile_active("_")
    assert [str(one) for one in port.get_port_profiles("active")] == ["0._"]
    assert port.profile_stream_list == {"_": [number]}
    assert not port.has_rx_delay_expired("_", 10)
    assert port.pause() and port.is_paused() and not port.is_transmitting()
    assert port.resume() and port.stop() and not port.is_active()
    assert port.remove_rx_filters() and port.get_xstats().get_stats()["tx_packets"] > 0
    assert "0._" not in port.generate_loaded_profiles() and "_" in port.generate_loaded_profiles()
    assert list(port.generate_loaded_streams_sum([number], table_format=False)) == [number]
    assert port.remove_streams([number]) and port.streams == {}


def test_errors_are_results(client):
    port = client.ports[0]
    assert (
        port.start("1", -1, False, None).err() == "port 0 has no streams; call add_streams() first"
    )
    assert not port.pause() and "not sending" in port.pause().err()
    port.add_streams([continuous(1000)])
    too_much = {"type": "percentage", "value": 200, "op": "abs"}
    assert "200.0 % of its 10 Gb/s" in port.start(too_much, -1, False, None).err()
    assert "type: raw" in port.start({"type": "furlongs", "value": 1}, -1, False, None).err()
    assert port.start({"type": "raw", "value": 3.0, "op": "abs"}, -1, False, None)
    assert not port.update({"type": "pps", "value": 1e9, "op": "add"}, False)
    assert port.update({"type": "percentage", "value": 10, "op": "sub"}, False)
    assert port.stop()
    assert "not in service mode" in port.get_rx_queue_pkts().err()
    assert "has no attribute colour" in port.set_attr(colour=1).err()
    assert "ip link set" in port.set_attr(link_status=False).err()
    assert port.set_attr(promiscuous=True) and port.is_prom_enabled()
    assert "no next hop" in port.invalidate_arp().err()
    assert port.release() and not port.is_acquired()
    assert "not acquired" in port.stop().err()
    assert port.acquire() and port.is_acquired()


def test_known_next_hop_needs_no_resolution(client):
    port = client.ports[0]
    assert port.set_l3_mode("1.1.1.1", "1.1.1.2", "02:00:00:00:00:09")
    assert port.is_l3_mode() and port.is_resolved()
    assert port.get_layer_cfg()["ether"]["dst"] == "02:00:00:00:00:09"
    assert port.invalidate_arp() and not port.is_resolved()
    assert not port.set_l3_mode("1.1.1.1", "nowhere", "02:00:00:00:00:09")


def test_messages_of_a_server_are_rejected(client):
    port = client.ports[0]
    for name in dir(port):
        if name.startswith("async_event_") or name in ("sync_shared", "state_from_name"):
            with pytest.raises(
                STLError, match=rf"port 0: {name}\(\) takes messages of TRex's server"
            ):
                getattr(port, name)("anything")


def test_port_of_an_ended_session_raises(lab):
    client = STLClient()
    client.connect()
    port = client.ports[0]
    client.disconnect()
    with pytest.raises(STLError, match="not connected"):
        port.is_active()


def test_ports_of_the_stateful_client_have_sides(lab):
    client = ASTFClient()
    client.connect()
    try:
        assert client.ports[0].is_client() and client.ports[1].is_server()
        assert client.ports[0].get_port_state_name() == "IDLE"
    finally:
        client.disconnect()


def test_events_have_the_wording_of_trex(client):
    client.add_streams(burst(10), ports=["0.first"])
    client.add_streams(continuous(), ports=["0.second"])
    client.clear_events()
    client.start(["0.first", "0.second"])
    seen = []

    def has_events(*texts):
        while (event := client.pop_event()) is not None:
            seen.append(event.msg)
        return all(text in seen for text in texts)

    wait_until(lambda: has_events("Profile 0.first job done"))
    assert "Profile 0.first has started" in seen and "Port 0 job done" not in seen
    client.pause("0.second")
    client.resume("0.second")
    client.stop("0.second")
    events = [
        f"Profile 0.second has {what}" for what in ("started", "paused", "resumed", "stopped")
    ]
    assert has_events(*events, "Port 0 has stopped")
    assert "Profile 0.second job done" not in seen
    client.wait_on_traffic(timeout=LIMIT_S)
    assert all(event.ev_type == "info" for event in client.get_info())
