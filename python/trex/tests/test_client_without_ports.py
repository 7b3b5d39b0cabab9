"""The client without ports."""

from __future__ import annotations

import inspect
import threading
import time

import pytest

from trex.client import captures, configuration
from trex.client.counters import _histogram
from trex.client.multiplier import Multiplier
from trex.stl.api import STLClient, STLError

# Methods of TRex's client.
METHODS = """
acquire add_profile add_streams any_port clear_events clear_pgid_stats clear_stats
clear_stl_profiles clear_tpg_stats clear_tpg_tx_stats clear_tpg_unknown_tags clear_vlan conf_ipv6
connect create_service_ctx disable_tpg disconnect enable_tpg endpoint_cb_rsync
fetch_capture_packets get_acquired_ports get_active_pgids get_active_ports get_all_ports
get_capture_status get_connection_info get_console_methods get_events get_global_cfg get_info
get_mode get_paused_ports get_pgid_stats get_port get_port_attr get_port_count get_port_info
get_profiles_with_state get_resolvable_ports get_resolved_ports get_server_supported_cmds
get_server_system_info get_server_version get_service_enabled_ports get_service_filtered_ports
get_stats get_tpg_stats get_tpg_status get_tpg_tags get_tpg_tx_stats get_tpg_unknown_tags
get_transmitting_ports get_util_stats get_verbose get_warnings get_xstats has_events init
is_all_ports_acquired is_async_results_ready is_connected is_traffic_active logger map_ports
namespace_remove_all pause pause_streams ping_ip ping_rpc_server pop_event probe_server
push_packets push_pcap push_remote release remove_all_captures remove_all_streams remove_rx_queue
remove_streams reset resolve resume resume_streams scan6 server_shutdown service_mode
set_bird_node set_capture_port_bpf_filter set_global_cfg set_l2_mode set_l3_mode set_namespace
set_namespace_start set_port_attr set_rx_queue set_service_mode set_service_mode_base set_timeout
set_verbose set_vlan start start_capture start_capture_port stop stop_capture stop_capture_port
system_info update update_streams update_tpg_tags validate_profile_input wait_for_async_results
wait_on_traffic
""".split()


def test_every_trex_method_exists():
    assert len(METHODS) == 113
    for name in METHODS:
        assert inspect.getdoc(getattr(STLClient, name)), name


def test_client_has_no_ports_before_connect():
    client = STLClient(server="somewhere", username="me", verbose_level="none")
    assert client.get_mode() == "STL" and client.get_all_ports() == []
    assert client.get_connection_info()["server"] == "somewhere"
    client.set_timeout(5)
    for call in (client.start, client.get_stats, client.reset, client.get_port_info):
        with pytest.raises(STLError, match="not connected"):
            call()
    with pytest.raises(STLError, match="verbose|level"):
        client.set_verbose("loud")
    client.disconnect()


@pytest.fixture
def clean_environment(monkeypatch, tmp_path):
    for name in (configuration.PORTS, configuration.SPEED):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "trex_cfg.yaml"
    monkeypatch.setenv(configuration.FILE, str(file))
    return file


def test_ports_come_from_the_environment(clean_environment, monkeypatch):
    monkeypatch.setenv(configuration.PORTS, "veth0, netns/b:veth1")
    monkeypatch.setenv(configuration.SPEED, "1G")
    found = configuration.load()
    assert {n: port.interface for n, port in found.ports.items()} == {
        0: "veth0",
        1: "netns/b:veth1",
    }
    assert found.speed == "1G"
    monkeypatch.setenv(configuration.PORTS, "dummy,dummy,veth2,dummy")
    assert {n: it.interface for n, it in configuration.load().ports.items()} == {2: "veth2"}
    for value in (" , ", "dummy,dummy"):
        monkeypatch.setenv(configuration.PORTS, value)
        with pytest.raises(STLError, match="has no interface"):
            configuration.load()


def test_ports_come_from_trex_cfg(clean_environment):
    clean_environment.write_text(
        """
- version: 2
  interfaces: [eth1, dummy, "netns/b:veth1"]
  port_bandwidth_gb: 25
  port_info:
    - dest_mac: [2, 0, 0, 0, 0, 1]
      src_mac: "02:00:00:00:00:02"
"""
    )
    found = configuration.load()
    assert sorted(found.ports) == [0, 2] and found.speed == "25G"
    assert found.ports[0].destination == "02:00:00:00:00:01"
    assert found.ports[0].source == "02:00:00:00:00:02"
    clean_environment.write_text(
        """
- interfaces: [eth1, eth2]
  port_info:
    - ip: 10.0.0.1
      default_gw: 10.0.0.254
    - ip: 10.1.0.1
      default_gw: 10.1.0.254
      vlan: 7
"""
    )
    first, second = configuration.load().ports.values()
    assert (first.address, first.gateway, first.vlan) == ("10.0.0.1", "10.0.0.254", ())
    assert second.vlan == (7,)
    one = "- interfaces: [eth1]\n  port_info: [{"
    for text, message in (
        (one + "ip: 10.0.0.1}]", r"port_info\[0\]: ip and default_gw require each other"),
        (one + "ip: 10, default_gw: 10.0.0.254}]", r"port_info\[0\].ip is 10, expected"),
        (one + "vlan: 5000}]", r"port_info\[0\]: vlan 5000"),
        (one + "vlan: 1.5}]", r"port_info\[0\].vlan is 1.5"),
        ('- interfaces: ["03:00.0"]', "the address of a device"),
        ('- interfaces: ["0000:03:00.0/1"]', "the address of a device"),
        ("- version: 2", "found no `interfaces`"),
        ("{", "no YAML"),
    ):
        clean_environment.write_text(text)
        with pytest.raises(STLError, match=message):
            configuration.load()
    clean_environment.unlink()
    with pytest.raises(STLError, match="WIRESTORM_TREX_PORTS=veth0,veth1"):
        STLClient().connect()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3, "")),
        ("0.5", (0.5, "")),
        ("23%", (23, "%")),
        ("10kpps", (10_000, "pps")),
        ("1.5Mbps", (1_500_000, "bps")),
        ("2gbpsl1", (2e9, "bpsl1")),
        ("100bps", (100, "bps")),
    ],
)
def test_multiplier_has_a_unit(text, expected):
    found = Multiplier.parse(text)
    assert (found.value, found.unit) == expected
    assert Multiplier.parse(str(found)) == found


@pytest.mark.parametrize("text", ["", "0", "x", "5m", "5%%", "-1", "1kpp", None, 3])
def test_invalid_multipliers_are_rejected(text):
    with pytest.raises(STLError, match="argument 'mult'"):
        Multiplier.parse(text)


def test_multiplier_changes_the_current_load():
    load = (1000.0, 512_000.0, 672_000.0)

    def applied(text, factor=1.0):
        found = Multiplier.parse(text, allow_update=True).apply_to(load, factor)
        return found.value, found.unit

    assert applied("+50%") == (1500.0, "pps")
    assert applied("-1kbps") == (511_000.0, "bps")
    assert applied("+1kbpsl1") == (673_000.0, "bpsl1")
    assert applied("-0.5", factor=2.0) == (1.5, "")
    assert applied("7kpps") == (7000.0, "pps")
    assert Multiplier.parse("10kpps").shared(4).value == 2500
    assert Multiplier.parse("50%").shared(2).value == 25
    assert Multiplier.parse("3").shared(2).value == 3


def test_delay_histogram_has_trex_ranges():
    buckets = [(-5, 1), (9_999, 1), (10_000, 2), (19_000, 1), (100_000, 1), (250_000, 4)]
    assert _histogram(buckets) == {0: 2, 10: 3, 100: 1, 200: 4}


def test_sending_requires_the_engine(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "wirestorm"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "wirestorm", None)
    monkeypatch.setenv(configuration.PORTS, "lo")
    with pytest.raises(STLError, match="pip install ./python/wirestorm"):
        STLClient().connect()


def test_capture_ends_while_frames_arrive(monkeypatch):
    class BusySocket:
        """A socket that always has a frame."""

        def __init__(self, *arguments, **kwargs):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def receive(self, predicate, timeout_s):
            time.sleep(0.001)
            return bytes(60)

    monkeypatch.setattr(captures, "PacketSocket", BusySocket)
    capture = captures.Capture(1, {0: "eth0"}, {1: "eth1"}, 10, "fixed", "", 0)
    ending = threading.Thread(target=capture.stop, daemon=True)
    ending.start()
    ending.join(20)
    assert not ending.is_alive()
    assert len(capture.pop_frames()) == 10 and capture.status()["state"] == "STOPPED"
