"""Runs on real interfaces: a veth pair between two namespaces."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import wirestorm as ws

# Generous, because a busy machine is slow and that is no failure of these tests.
LIMIT_S = 60


def make_plan(**arguments: object) -> ws.Plan:
    """Returns a plan with one flow from `a` to `b`."""
    plan = ws.Plan()
    a, b = plan.add_port("a"), plan.add_port("b")
    packet = [
        ws.ethernet(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"),
        ws.ipv4(src=ws.increment("10.0.0.1", 250), dst="192.0.2.1"),
        ws.udp(dst_port=53),
    ]
    plan.add_flow("clients", a, packet, **{"rx": b, "size": 128, "rate": "1kpps", **arguments})
    return plan


def endless_run(lab) -> ws.ActiveRun:
    """Starts a run without an end."""
    return ws.start(make_plan(), lab.ports)


def sent(running: ws.ActiveRun, packets: int) -> ws.Progress:
    """Waits until the run has sent `packets` frames."""
    deadline = time.monotonic() + LIMIT_S
    while running.progress.packets < packets:
        assert time.monotonic() < deadline, running.progress
        time.sleep(0.01)
    return running.progress


def test_result_counts_sent_and_received_frames(lab):
    plan = make_plan(duration=ws.packets(500))
    plan.add_flow("back", "b", [ws.ethernet(), ws.ipv4()], rx="a", duration=ws.packets(70))
    result = ws.run(plan, lab.ports, tolerance_percent=100)
    assert (result.schema, result.kind) == ("wirestorm.result/2", "streams")
    assert not result.interrupted and result.times.elapsed_s > 0.4
    assert result.achieved.packets == 570 and result.target.tolerance_ppm == 1e6
    clients = result.flow("clients")
    assert (clients.tx, clients.rx, clients.packets, clients.bytes) == ("a", ["b"], 500, 62_000)
    assert (clients.target_pps, clients.target_bps, clients.target_layer) == (1000, None, None)
    a, b = result.port("a"), result.port("b")
    assert (a.interface, a.tx.packets, a.tx.failed) == (lab.a, 500, 0)
    assert (b.rx.packets, b.rx.bytes, b.rx.lost) == (500, 62_000, 0)
    assert (b.tx.packets, a.rx.packets) == (70, 70)
    gaps = a.tx.departures.gaps
    assert gaps.count > 0 and gaps.buckets[0][1] > 0
    assert (result.verdict.outcome, result.verdict.reasons) == ("met", [])
    with pytest.raises(KeyError):
        result.flow("other")


def test_rate_error_above_the_tolerance_falls_short(lab):
    # No veth pair reaches this rate.
    plan = make_plan(rate="100G-l2", size=64)
    result = ws.run(plan, lab.ports, duration=0.2, tolerance_percent=5)
    assert result.verdict.outcome == "fell_short"
    (off,) = [reason for reason in result.verdict.reasons if reason.startswith("flow clients: ")]
    assert "off its target (tolerance 5 %)" in off
    assert any(line.startswith("fell short: ") for line in str(result).splitlines())
    for nonsense in (-1, float("nan")):
        with pytest.raises(ValueError, match="tolerance_percent"):
            ws.run(plan, lab.ports, tolerance_percent=nonsense)


def test_result_has_rows_a_table_and_json(lab):
    result = ws.run(make_plan(duration=ws.packets(100)), lab.ports)
    (row,) = result.records()
    assert row["name"] == "clients" and row["rx"] == "b" and row["packets"] == 100
    a, b = result.port_records()
    assert a["interface"] == lab.a and b["rx_packets"] == 100 and a["tx_departures_gaps_count"] > 0
    values = [*row.values(), *a.values(), *b.values()]
    assert all(it is None or isinstance(it, (str, int, float)) for it in values)
    lines = str(result).splitlines()
    assert any(line.startswith("clients ") and " 100 " in line for line in lines)
    assert f"port b on {lab.b}" in lines and max(map(len, lines)) <= 80
    assert "1 flow, 100 packets" in repr(result)
    assert result._repr_html_().startswith("<pre>done in ")
    assert ws.Result.from_dict(json.loads(result.to_json())) == result


def test_measured_flow_has_delays_and_a_row_for_each_port(lab):
    plan = make_plan(duration=ws.packets(300), measure=True)
    plan.add_flow("lost", "a", [ws.ethernet(), ws.ipv4()], rx="a", measure=True, duration="0.1s")
    result = ws.run(plan, lab.ports, tolerance_percent=100)
    clients, lost = result.flows
    (measured,) = clients.measured
    assert (clients.lost, measured.received, measured.reordered) == (0, 300, 0)
    delay = measured.delay
    assert 0 < delay.min_ns <= delay.p50_ns <= delay.max_ns and delay.count == 300
    # 100 per second for 0.1 s. They go to b, not to a.
    assert (lost.packets, lost.lost) == (100, 100)
    assert result.verdict.outcome == "fell_short"
    assert "flow lost: 100 frames lost" in result.verdict.reasons
    rows = result.records()
    assert [(row["name"], row["measured_port"]) for row in rows] == [
        ("clients", "b"),
        ("lost", "a"),
    ]
    assert rows[0]["measured_delay_p50_ns"] == delay.p50_ns
    lines = str(result).splitlines()
    assert any(line.split()[:3] == ["clients", "300", "0"] for line in lines), lines
    assert max(map(len, lines)) <= 80
    assert ws.Result.from_dict(json.loads(result.to_json())) == result
    series = measured.series
    assert (sum(series.received), sum(series.ipdv_count)) == (300, 299)
    highest, lowest = filter(None, series.delay_max_ns), filter(None, series.delay_min_ns)
    assert (max(highest), min(lowest)) == (delay.max_ns, delay.min_ns)


def test_results_of_earlier_versions_are_read(lab):
    result = ws.run(make_plan(duration=ws.packets(100), measure=True), lab.ports)
    document = json.loads(result.to_json())
    series = document["flows"][0]["measured"][0]["series"]
    for later in ["received", "duplicated", "delay_min_ns", "pdv_max_ns", "ipdv_count"]:
        del series[later]
    again = ws.Result.from_dict(document).flows[0].measured[0].series
    assert again.packets == result.flows[0].measured[0].series.packets
    assert again.pdv_max_ns == [] and again.jitter_ns


def test_measurements_are_visible_during_the_run_and_by_vlan_tag(lab):
    plan = make_plan()
    tagged = [
        ws.ethernet(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"),
        ws.vlan(id=ws.values(7, 8)),
        *plan.flows[0].packet[1:],
    ]
    plan.add_flow("tagged", "a", tagged, rx="b", size=128, rate="1kpps", measure=True)
    running = ws.start(plan, lab.ports, per_vlan=True)
    with running:
        assert running.measured("clients") == []
        deadline = time.monotonic() + LIMIT_S
        while not (measured := running.measured("tagged")) or measured[0].received < 50:
            assert time.monotonic() < deadline
        assert measured[0].delay.count >= 50 and measured[0].delay.min_ns > 0
        assert running.progress.flows["tagged"].received_bytes % 124 == 0
        with pytest.raises(ValueError, match="none of the run's flows"):
            running.measured("other")
    (measured,) = running.wait().flow("tagged").measured
    seven, eight = measured.tags
    assert (seven.vlans, eight.vlans) == ([7], [8])
    assert seven.packets + eight.packets == measured.received
    assert seven.bytes == 124 * seven.packets
    # Every second frame has the other tag.
    assert seven.gaps == seven.missing == seven.packets - 1
    with pytest.raises(ws.RunError, match="has ended"):
        running.measured("tagged")
    assert (
        "measured_tags"
        not in ws.Result.from_dict(json.loads(running.wait().to_json())).records()[0]
    )


def test_ports_with_addresses_resolve_each_other(lab):
    plan = ws.Plan()
    a = plan.add_port("a", addresses="198.18.0.1/24")
    b = plan.add_port("b", addresses=["198.18.0.2/24"])
    packet = [ws.ethernet(src="auto", dst="auto"), ws.ipv4(dst="198.18.0.2"), ws.udp()]
    plan.add_flow("found", a, packet, rx=b, duration=ws.packets(20), measure=True)
    assert ws.Plan.from_dict(plan.to_dict()).to_dict() == plan.to_dict()
    result = ws.run(plan, lab.ports)
    assert (result.flow("found").packets, result.flow("found").lost) == (20, 0)
    plan.flows[0].packet[1].fields["dst"] = "198.18.0.3"
    with pytest.raises(ws.RunError, match="198.18.0.3"):
        ws.run(plan, lab.ports)


def test_verdict_reports_lost_frames(lab):
    # Port a receives nothing: its frames go to b.
    plan = make_plan(rx=["a", "b"], duration=ws.packets(50))
    verdict = ws.run(plan, lab.ports, tolerance_percent=100).verdict
    assert (verdict.outcome, verdict.reasons) == ("fell_short", ["port a: 50 frames lost"])


def test_run_reports_progress_and_releases_the_gil(lab):
    progress_reports, ticks, done = [], [], threading.Event()

    def tick() -> None:
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick)
    ticker.start()
    result = ws.run(make_plan(), lab.ports, duration=1, progress=progress_reports.append)
    done.set()
    ticker.join()
    assert 100 <= result.flow("clients").packets <= 1000
    counts = [progress.flows["clients"].packets for progress in progress_reports]
    assert len(counts) >= 3 and counts == sorted(counts) and 0 < counts[-1] <= 1000
    assert progress_reports[-1].bytes == progress_reports[-1].packets * 124
    # With the GIL held there would be no ticks during each wait of 50 ms.
    gaps = [after - before for before, after in zip(ticks, ticks[1:])]
    assert sum(gap for gap in gaps if gap > 0.04) < sum(gaps) / 2, gaps


def test_background_run_continues_until_stop(lab):
    running = endless_run(lab)
    with running:
        before = sent(running, 50)
        assert not running.is_done and before.elapsed_s > 0
        with pytest.raises(TimeoutError):
            running.wait(timeout=0.1)
        running.stop()
        result = running.wait(timeout=LIMIT_S)
    assert running.is_done and result.interrupted and result.verdict.outcome != "met"
    assert result.flow("clients").packets >= before.packets
    assert result.port("b").rx.packets == result.port("a").tx.packets


def test_commands_change_flows_during_the_run(lab):
    plan = make_plan()
    plan.add_flow("later", "a", [ws.ethernet(), ws.ipv4()], rate="100pps", start="triggered")

    def count(name: str) -> int:
        return running.progress.flows[name].packets

    def wait_for_growth(name: str, by: int) -> None:
        before, deadline = count(name), time.monotonic() + LIMIT_S
        while count(name) < before + by:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def check_stopped(name: str) -> None:
        # Commands take 25 ms, frames queued at the port 20 ms, counters 100 ms.
        time.sleep(0.5)
        before = count(name)
        time.sleep(0.5)
        assert count(name) == before

    with ws.start(plan, lab.ports) as running:
        wait_for_growth("clients", 20)
        assert count("later") == 0
        running.pause("clients")
        check_stopped("clients")
        running.start("later")
        wait_for_growth("later", 5)
        running.stop("later")
        check_stopped("later")
        running.scale(20, "clients")
        running.resume("clients")
        # More than the plan's rate allows in this time.
        before, began = count("clients"), time.monotonic()
        wait_for_growth("clients", 10_000)
        assert count("clients") - before > 1200 * (time.monotonic() - began)
        running.set_rate("10pps", "clients")
        time.sleep(0.5)
        before = count("clients")
        time.sleep(1)
        assert 1 <= count("clients") - before <= 20
        with pytest.raises(ValueError, match="none of the run's flows"):
            running.pause("nobody")
        for rate in ("50%", "fast"):
            with pytest.raises(ValueError, match="such as|percentage"):
                running.set_rate(rate, "clients")
        with pytest.raises(ValueError, match="greater than 0"):
            running.scale(0, "clients")


def test_progress_of_a_measured_flow_counts_received_frames(lab):
    with ws.start(make_plan(measure=True), lab.ports) as running:
        sent(running, 100)
        deadline = time.monotonic() + LIMIT_S
        while (flow := running.progress.flows["clients"]).received < 50:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert (flow.duplicated, flow.reordered) == (0, 0) and flow.delay_mean_ns > 0
        running.stop()
        (measured,) = running.wait(timeout=LIMIT_S).flow("clients").measured
    assert measured.port == "b" and measured.delay.min_ns > 0


def test_exception_in_the_block_ends_the_run(lab):
    with pytest.raises(RuntimeError, match="on purpose"), endless_run(lab) as running:
        raise RuntimeError("on purpose")
    assert running.is_done


def test_exception_in_a_callback_ends_the_run(lab):
    def fail(progress: ws.Progress) -> None:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        ws.run(make_plan(), lab.ports, progress=fail)
    # The run has released the interface.
    ws.run(make_plan(duration=ws.packets(1)), lab.ports)


def test_run_without_references_ends(lab):
    running = endless_run(lab)
    sent(running, 10)
    del running
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            ws.run(make_plan(duration=ws.packets(1)), lab.ports)
            return
        except ws.RunError:
            # The thread of the run holds the interface for some milliseconds more.
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_ctrl_c_stops_a_run_and_keeps_its_result(lab):
    script = f"""
import json, sys, wirestorm as ws
plan = ws.Plan.from_dict(json.loads({make_plan().to_json()!r}))
def tell(progress):
    if progress.packets > 20:
        print("sending", flush=True)
try:
    ws.run(plan, {lab.ports!r}, progress=tell)
except KeyboardInterrupt as interrupted:
    print("result", interrupted.result.interrupted, interrupted.result.flow("clients").packets)
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "sending\n"
        os.kill(child.pid, signal.SIGINT)
        message, _ = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0
    word, interrupted, packets = message.splitlines()[-1].split()
    assert (word, interrupted) == ("result", "True") and int(packets) > 20


def test_runs_that_cannot_send_fail_before_the_first_frame(lab):
    for ports, message in (
        ({"a": "netns/none:veth0", "b": lab.b}, "netns/none"),
        ({"a": "nothing0", "b": lab.b}, "there is no interface nothing0"),
        ({"b": lab.b}, 'port "a" has no interface: bind it with ports={"a": "INTERFACE"}'),
    ):
        with pytest.raises(ws.RunError) as caught:
            ws.run(make_plan(), ports)
        assert message in str(caught.value) and caught.value.result is None
    with pytest.raises(ws.RunError, match="exceeds the maximum"):
        ws.run(make_plan(size=9000), lab.ports)
    with pytest.raises(ws.PlanError, match=r"flows\[0\]\.tx"):
        ws.run({"ports": [], "flows": [{"name": "x", "tx": "a", "packet": []}]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ports": {"c": "eth1"}}, "none of the plan's ports: a, b"),
        ({"duration": "soon"}, "a time with its unit"),
        ({"backend": "dpdk"}, "expected auto, af_packet"),
        ({"workers": 0}, "1 to 64"),
        ({"catch_up": "never"}, "never"),
    ],
)
def test_invalid_arguments_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        ws.run(make_plan(), **arguments)


def test_deleted_interface_ends_the_run_with_its_result(lab):
    with endless_run(lab) as running:
        sent(running, 20)
        namespace = lab.a.partition(":")[0].removeprefix("netns/")
        subprocess.run(["ip", "-n", namespace, "link", "del", "veth0"], check=True, timeout=30)
        with pytest.raises(ws.RunError) as caught:
            running.wait(timeout=LIMIT_S)
    assert "veth0" in str(caught.value)
    assert caught.value.result.flow("clients").packets >= 20
