"""States of profiles, and counters of all of them, on a veth pair."""

from __future__ import annotations

import threading
import time

import pytest
from stream_helpers import LIMIT_S, wait_until
from test_astf_client import client, profile, template  # noqa: F401
from wirestorm_lab import ip

from trex.astf.api import ASTFClient, ASTFErrorBadTG, TRexError, TRexTimeoutError
from trex.tunables import parse_tunables

pytestmark = pytest.mark.usefixtures("lab")
FOREVER_US = 60_000_000


@pytest.fixture
def loaded(client):  # noqa: F811
    """A client with a profile whose flows do not end."""
    client.load_profile(profile(template(cps=100, delay_us=FOREVER_US, tg_name="pages")))
    return client


def test_wait_for_states(loaded):
    assert loaded.apply_port_states() == 5 and loaded.state == loaded.STATE_ASTF_LOADED
    loaded.check_states([loaded.STATE_ASTF_LOADED])
    loaded.start()
    assert loaded.apply_port_states() == 2
    waiting = threading.Thread(
        target=loaded.check_states, args=([loaded.STATE_IDLE, loaded.STATE_ASTF_LOADED],)
    )
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    loaded.stop()
    waiting.join(LIMIT_S)
    assert not waiting.is_alive()


def test_wait_for_a_state_that_another_thread_brings(loaded):
    waiting = threading.Thread(
        target=loaded.wait_for_profile_state, args=("_", loaded.STATE_TX, LIMIT_S)
    )
    waiting.start()
    loaded.start()
    waiting.join(LIMIT_S)
    assert not waiting.is_alive() and loaded.state == loaded.STATE_TX
    loaded.stop()
    with pytest.raises(TRexTimeoutError):
        loaded.wait_for_profile_state("_", loaded.STATE_TX, timeout=0.1)


def test_wait_for_impossible_states_raises(loaded):
    between = loaded.transient_states
    for wait, message in (
        (lambda: loaded.wait_for_transient(), r"wait_for_profile_state\(\)"),
        (lambda: loaded.wait_for_transient("_"), "never|ever"),
        (lambda: loaded.wait_for_transient("nobody"), "there is no profile nobody"),
        (lambda: loaded.check_states(between), "no profile is ever in them"),
        (lambda: loaded.wait_for_profile_state("_", between[0], 1), "no profile is ever in them"),
        (lambda: loaded.wait_for_profile_state("_", 99, 1), "no profile is ever in them"),
    ):
        with pytest.raises(TRexError, match=message):
            wait()


def test_epochs_are_counted(lab):
    client = ASTFClient()  # noqa: F811
    assert client.epoch is None
    with pytest.raises(TRexError, match="not connected"):
        client.inc_epoch()
    client.connect()
    first = client.epoch
    client.inc_epoch()
    assert first is not None and client.epoch == first + 1
    client.disconnect()


def test_ids_select_one_profile(loaded):
    loaded.load_profile(profile(template(81)), pid_input="other")
    for command in (
        lambda: loaded.get_flow_info("*"),
        lambda: loaded.get_flow_info("_ other"),
        lambda: loaded.get_traffic_stats(pid_input="*"),
        lambda: loaded.get_tg_names("*"),
        lambda: loaded.wait_for_steady("*"),
        lambda: loaded.wait_for_profile_state("*", loaded.STATE_TX),
        lambda: loaded.clear_profile(pid_input=[["_"]]),
        lambda: loaded.load_profile(profile(template()), pid_input="*"),
        lambda: loaded.load_profile(profile(template()), pid_input="two words"),
        lambda: loaded.load_profile(profile(template()), pid_input=""),
    ):
        with pytest.raises(TRexError, match="(pid_input|profile_id)' cannot be"):
            command()
    assert loaded.get_profiles() == ["_", "other"]
    with pytest.raises(TRexError, match="duration"):
        loaded.get_flow_info(duration="long")


def test_update_of_all_running_profiles(loaded):
    with pytest.raises(TRexError, match="no profile is running"):
        loaded.update(2, pid_input="*")
    loaded.load_profile(profile(template(81, cps=10)), pid_input="one")
    loaded.start(pid_input="one")
    loaded.update(3, pid_input="*")
    assert loaded.get_stats()["global"]["tx_expected_cps"] == 30
    with pytest.raises(TRexError, match="profile _ is not running"):
        loaded.update(3, pid_input="_ one")


def test_global_flows_are_the_sum_of_profiles(loaded):
    loaded.load_profile(profile(template(81, cps=100, delay_us=FOREVER_US)), pid_input="one")
    loaded.start(pid_input="one", duration=60)
    wait_until(lambda: loaded.get_stats()["global"]["active_flows"] > 10)
    loaded.clear_stats(pid_input="*")
    stats = loaded.get_stats()["global"]
    assert stats["open_flows"] >= stats["active_flows"] == stats["active_sockets"] > 10
    # The default profile has no active flows.
    assert loaded.get_stats()["traffic"]["client"]["m_active_flows"] == 0


def test_global_rates_restart_with_a_profile(client):  # noqa: F811
    client.load_profile(profile(template(cps=1_000, limit=600)))
    client.start()
    client.wait_on_traffic(timeout=LIMIT_S)
    assert client.get_stats()["global"]["tx_cps"] == 0.0
    client.load_profile(profile(template(81, cps=50)), pid_input="one")
    client.start(pid_input="one")
    fastest = [0.0, 0.0]
    until_s = time.monotonic() + 0.6
    while time.monotonic() < until_s:
        fastest[0] = max(fastest[0], client.get_stats()["global"]["tx_cps"])
        stats = client.get_traffic_stats(is_sum=True)["client"]
        fastest[1] = max(fastest[1], stats["m_tx_pps_r"])
        time.sleep(0.02)
    client.stop(pid_input="*")
    # 50 flows per second of some packets each, whatever happened before.
    assert 0 < fastest[0] < 300 and 0 < fastest[1] < 2_000


def test_earlier_counters_do_not_lower_rates(client):  # noqa: F811
    client.load_profile(profile(template(cps=100)))
    client.start()
    wait_until(lambda: client.get_stats()["global"]["tx_cps"] > 10)
    client.stop()
    time.sleep(2)
    client.start(mult=10)
    time.sleep(0.5)
    # Averaged over the seconds since then it would be about 200.
    assert client.get_stats()["global"]["tx_cps"] > 500
    client.stop()


def test_rejected_restart_stops_nothing(loaded):
    loaded.start()
    with pytest.raises(TRexError, match="restart"):
        loaded.reset(restart=True)
    assert loaded.state == loaded.STATE_TX


def test_impossible_latency_traffic_is_rejected_before_the_start(loaded):
    document = profile(template()).to_json()
    for pool in document["ip_gen_dist_list"]:
        pool.pop("ip_start")
    loaded.load_profile(document)
    with pytest.raises(TRexError, match=r"no pools of addresses .* start_latency\(\)"):
        loaded.start(latency_pps=10)
    assert loaded.state == loaded.STATE_ASTF_LOADED
    with pytest.raises(TRexError, match="ports_mask 0x0"):
        loaded.start_latency(ports_mask=0)


def test_statistics_objects_of_the_client(loaded):
    loaded.start(latency_pps=100)
    wait_until(lambda: loaded.get_latency_stats()[1]["stats"]["m_pkt_ok"] > 5)
    traffic, latency = loaded.traffic_stats, loaded.latency_stats
    wait_until(lambda: traffic.get_stats()["client"].get("tcps_connects", 0) > 10)
    assert traffic.get_tg_names() == ["pages"]
    assert traffic.get_traffic_tg_stats("pages")["pages"]["client"]["tcps_connects"] > 10
    assert "tcps_connects" in traffic.to_table() and "tcps_connects" in traffic.to_table(tgid=1)
    assert "err_cwf" in traffic.to_table(with_zeroes=True)
    with pytest.raises(ASTFErrorBadTG, match="number 2: it has 1"):
        traffic.to_table(tgid=2)
    assert traffic.get_stats(is_dynamic=True) == {"client": {}, "server": {}}
    assert not traffic.is_dynamic_stats_error(traffic.get_stats(is_dynamic=True))[0]
    traffic.clear_dynamic_stats(clear_all=True)
    assert latency.get_stats()[1]["stats"]["m_pkt_ok"] > 5
    for table, name in (
        (latency.to_table_main(), "s_avg"),
        (latency.histogram_to_table(), "port 1"),
        (latency.counters_to_table(), "m_jitter"),
    ):
        assert name in table
    loaded.stop()
    assert not traffic.is_traffic_stats_error(traffic.get_stats())[0]
    traffic.clear_stats()
    assert "tcps_connects" not in traffic.get_stats()["client"]
    traffic.reset()
    latency.reset()


def test_client_keeps_the_error_of_a_failed_run(loaded):
    loaded.start()
    wait_until(lambda: loaded.get_traffic_stats()["client"].get("tcps_connects", 0) > 0)
    assert loaded.last_error == "" and loaded.last_profile_error == {}
    interface = loaded.links[0].interface
    namespace, _, name = interface.removeprefix("netns/").partition(":")
    ip("-n", namespace, "link", "del", name)
    wait_until(lambda: loaded.state == loaded.STATE_ASTF_LOADED)
    warned = [event.msg for event in loaded.get_warnings()]
    assert f"{interface} is gone" in loaded.last_error
    assert loaded.last_profile_error == {"_": loaded.last_error}
    # Once for each end of the pair, whichever thread reports it first.
    stats = [f"profile _: {it}" for it in loaded.last_error.split("; ")]
    assert len(stats) == 2
    assert [it for it in warned if "is gone" in it] == stats


def test_booleans_of_older_tunables():
    assert parse_tunables(["fast=on,slow=False,name=one,size=0x10"]) == {
        "fast": True,
        "slow": False,
        "name": "one",
        "size": 16,
    }
