"""Tagged packet groups, on a veth pair between two namespaces."""

from __future__ import annotations

import pytest
from stream_helpers import LIMIT_S, wait_until
from tagged_cases import INVALID_CALLS, dot1q

from trex.stl.api import (
    IP,
    UDP,
    Dot1Q,
    Ether,
    STLError,
    STLPktBuilder,
    STLStream,
    STLTaggedPktGroup,
    STLTXCont,
    STLTXSingleBurst,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

FCS = 4
ZERO_COUNTERS = dict.fromkeys(
    ("pkts", "bytes", "seq_err", "seq_err_too_big", "seq_err_too_small", "dup", "ooo"), 0
)


def qinq(outer, inner):
    return {"type": "QinQ", "value": {"vlans": [outer, inner]}}


def tagged(group, *vlans, mode=None, vm=None):
    layers = Ether()
    for vlan in vlans:
        layers = layers / Dot1Q(vlan=vlan)
    layers = layers / IP(src="16.0.0.1", dst="48.0.0.1") / UDP(dport=12, sport=1025) / bytes(40)
    return STLStream(
        packet=STLPktBuilder(pkt=layers, vm=vm),
        flow_stats=STLTaggedPktGroup(tpgid=group),
        mode=mode or STLTXSingleBurst(20, pps=10_000),
    )


def counted(frames, tags, **errors):
    size = 14 + 4 * tags + 20 + 8 + 40 + FCS
    return {**ZERO_COUNTERS, "pkts": frames, "bytes": frames * size, **errors}


def sends(client, *streams):
    client.remove_all_streams()
    client.add_streams(list(streams), ports=[0])
    client.start([0])
    client.wait_on_traffic([0], timeout=LIMIT_S)


def test_groups_are_counted_by_received_tag(client):
    client.enable_tpg(5, [qinq(1, 100), dot1q(1), dot1q(2), dot1q(3)], rx_ports=[1])
    status = client.get_tpg_status(port=0)
    assert status["enabled"] and status["data"]["rx_ports"] == [1]
    assert (status["data"]["num_tpgids"], status["data"]["num_tags"]) == (5, 4)
    streams = [tagged(0, 1, 100), tagged(1, 1), tagged(2, 2), tagged(3), tagged(4, 9)]
    sends(client, *streams)
    one = counted(20, 1)
    assert client.get_tpg_stats(1, 0, 0, 4)[0] == {
        "1": {"0": {"0": counted(20, 2), "1-3": ZERO_COUNTERS}}
    }
    found, behind = client.get_tpg_stats(1, 2, 0, 4)
    assert (
        found == {"1": {"2": {"0-1": ZERO_COUNTERS, "2": one, "3": ZERO_COUNTERS}}} and behind == 4
    )
    found, behind = client.get_tpg_stats(1, 2, 0, 4, max_sections=2)
    assert found == {"1": {"2": {"0-1": ZERO_COUNTERS, "2": one}}} and behind == 3
    plain = client.get_tpg_stats(1, 3, 0, 0, untagged=True)
    assert plain == ({"1": {"3": {"untagged": counted(20, 0)}}}, None)
    unknown, _ = client.get_tpg_stats(1, 4, 0, 4, unknown_tag=True)
    of_unknown = {"pkts": 20, "bytes": one["bytes"]}
    assert unknown == {"1": {"4": {"0-3": ZERO_COUNTERS, "unknown_tag": of_unknown}}}
    assert client.get_tpg_unknown_tags(1) == {"1": [{"tag": dot1q(9), "tpgid": 4}]}
    assert client.get_tpg_tx_stats(0, 1) == {"0": {"1": {"pkts": 20, "bytes": one["bytes"]}}}
    unknown = client.get_tpg_stats(1, 4, 0, 4, max_sections=0, unknown_tag=True)
    assert unknown == ({"1": {"4": {"unknown_tag": of_unknown}}}, 0)
    # They are not part of the flow statistics.
    assert set(client.get_pgid_stats()["flow_stats"]) == {"global"}
    assert client.get_active_pgids() == {"flow_stats": [], "latency": []}

    client.clear_tpg_stats(1, 2, 0, 3, tag_list=[])
    client.clear_tpg_tx_stats(0, 2)
    client.clear_tpg_unknown_tags(1)
    assert client.get_tpg_stats(1, 2, 0, 4)[0] == {"1": {"2": {"0-3": ZERO_COUNTERS}}}
    assert client.get_tpg_unknown_tags(1) == {"1": []}
    # A repeated transmission adds up, and is no gap.
    sends(client, *streams)
    assert client.get_tpg_stats(1, 2, 2, 3)[0] == {"1": {"2": {"2": one}}}
    assert client.get_tpg_stats(1, 1, 1, 2)[0] == {"1": {"1": {"1": counted(40, 1)}}}
    assert client.get_tpg_tx_stats(0, 1)["0"]["1"]["pkts"] == 40
    assert client.get_tpg_tx_stats(0, 2)["0"]["2"]["pkts"] == 20
    client.disable_tpg()
    assert not client.get_tpg_status()["enabled"]


def test_frames_with_other_tags_count_as_gaps(client):
    vlan = STLVmFlowVar(name="vlan", min_value=1, max_value=4, size=2, op="inc")
    written = STLVmWrFlowVar(fv_name="vlan", pkt_offset="Dot1Q.vlan")
    client.enable_tpg(1, [dot1q(number) for number in range(1, 5)], rx_ports=[1])
    sends(client, tagged(0, 1, vm=[vlan, written], mode=STLTXSingleBurst(40, pps=10_000)))
    stats = client.get_tpg_stats(1, 0, 0, 4)[0]["1"]["0"]
    # Sequence number 0 and every fourth one have VLAN 1.
    assert stats == {
        "0": counted(10, 1, seq_err=27, seq_err_too_big=9),
        "1": counted(10, 1, seq_err=28, seq_err_too_big=10),
        "2": counted(10, 1, seq_err=29, seq_err_too_big=10),
        "3": counted(10, 1, seq_err=30, seq_err_too_big=10),
    }


def test_tags_change_during_the_run(client):
    client.enable_tpg(1, [dot1q(7), dot1q(8)], rx_ports=[1])
    client.add_streams(tagged(0, 7, mode=STLTXCont(pps=2000)), ports=[0])
    client.start([0])

    def received(tag):
        (counts,) = client.get_tpg_stats(1, 0, tag, tag + 1)[0]["1"]["0"].values()
        return counts["pkts"]

    wait_until(lambda: received(0) > 100)
    assert client.get_tpg_stats(1, 0, 0, 1)[0]["1"]["0"]["0"]["seq_err"] == 0
    client.update_tpg_tags([{"type": None, "tag_id": 0}, {**dot1q(7), "tag_id": 1}])
    assert client.get_tpg_tags() == [None, dot1q(7)] and client.get_tpg_tags(1) == [dot1q(7)]
    before = received(0)
    wait_until(lambda: received(1) > 100)
    assert received(0) == before, "what came before the change stays with its tag"
    client.update_tpg_tags([{**dot1q(9), "tag_id": 0}], clear=True)
    assert received(0) == 0
    client.stop([0])
    total = client.get_tpg_tx_stats(0, 0)["0"]["0"]["pkts"]
    assert before + received(1) == total
    # Only frames received while enabled count.
    client.disable_tpg()
    client.enable_tpg(1, [dot1q(7)], rx_ports=[1])
    assert received(0) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *INVALID_CALLS,
        (lambda c: c.update_tpg_tags([{**dot1q(2), "tag_id": 0}]), "already is number 1"),
        (lambda c: c.update_tpg_tags([{**dot1q(7), "tag_id": 9}]), "tag_id 9"),
        (lambda c: c.update_tpg_tags([dot1q(7)]), "tag_id"),
    ],
)
def test_invalid_calls_for_tagged_groups_are_rejected(client, call, message):
    client.enable_tpg(3, [dot1q(1), dot1q(2)], rx_ports=[1])
    with pytest.raises(STLError, match=message):
        call(client)
    assert client.get_tpg_tags() == [dot1q(1), dot1q(2)]


@pytest.mark.parametrize(
    "tags", [[dot1q(0)], [dot1q(4095)], [{"type": "Dot1Q"}], [qinq(1, "2")], [{"type": None}], [3]]
)
def test_invalid_tags_are_rejected(client, tags):
    with pytest.raises(STLError, match="expected"):
        client.enable_tpg(1, tags)
    assert not client.get_tpg_status()["enabled"]


def test_groups_must_be_enabled(client):
    for call in (client.disable_tpg, client.get_tpg_tags):
        with pytest.raises(STLError, match="not enabled"):
            call()
    with pytest.raises(STLError, match="not enabled"):
        client.get_tpg_stats(1, 0, 0, 1)
    client.enable_tpg(1, [dot1q(1)])
    client.reset()
    assert not client.get_tpg_status()["enabled"], "who takes ports by force ends it"


def test_groups_end_with_one_of_their_ports(client):
    client.release([1])
    client.enable_tpg(1, [dot1q(1)])
    client.acquire([1])
    client.release([1])
    assert client.get_tpg_status()["enabled"]
    client.release([0])
    assert not client.get_tpg_status()["enabled"]
