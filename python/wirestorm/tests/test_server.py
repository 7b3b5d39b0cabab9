"""Runs on a server: `wirestorm serve` with the two interfaces of a veth pair."""

from __future__ import annotations

import os
import time

import pytest
from test_run import LIMIT_S, make_plan

import wirestorm as ws

PORTS = {"a": "left", "b": "right"}


def sent(run: ws.ServerRun, packets: int) -> ws.Progress:
    """Waits until the run has sent `packets` frames."""
    deadline = time.monotonic() + LIMIT_S
    while run.progress.packets < packets:
        assert time.monotonic() < deadline, run.progress
        time.sleep(0.01)
    return run.progress


def test_result_is_that_of_a_run_in_the_process(server):
    seen = []
    plan = make_plan(duration=ws.packets(300))
    result = server.run(plan, PORTS, progress=seen.append, name="night")
    assert (result.kind, result.flow("clients").packets) == ("streams", 300)
    assert result.port("b").rx.packets == 300
    assert seen and seen[-1].flows["clients"].packets <= 300
    assert server.runs()[0]["name"] == "night"
    found = server.find("night")
    assert found.state == "finished" and found.result().achieved.packets == 300
    assert "<html" in found.report()


def test_commands_change_a_run(server):
    run = server.start(make_plan(), PORTS)
    sent(run, 100)
    run.pause()
    paused = run.progress.packets
    run.resume()
    run.set_rate("5kpps", "clients")
    sent(run, paused + 1_000)
    run.scale(0.5)
    with pytest.raises(TimeoutError):
        run.wait(timeout=0.1)
    run.stop()
    result = run.wait(timeout=LIMIT_S)
    assert result.interrupted and result.flow("clients").rx == ["b"]
    # It has ended, so there is nothing to stop.
    run.stop()


def test_leases_belong_to_a_session(server):
    other = ws.Server(server.url, session="other")
    server.lease("left", ttl_s=60)
    left = next(port for port in server.ports() if port.name == "left")
    assert (left.link, left.session, left.runs) == ("up", "", [])
    with pytest.raises(ws.ServerError) as refused:
        other.lease("left")
    assert refused.value.code == "conflict" and "left" in str(refused.value)
    other.lease("left", force=True)
    other.release("left")
    server.lease("left")
    server.release("left")


def test_files_of_a_plan_are_uploaded(server, tmp_path):
    capture = tmp_path / "three.pcap"
    header = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    frame = bytes.fromhex("020000000002020000000001") + b"\x08\x00" + bytes(46)
    record = bytes(8) + len(frame).to_bytes(4, "little") * 2 + frame
    capture.write_bytes(header + 3 * record)
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "ports: [{name: a}, {name: b}]\n"
        "flows:\n- name: f\n  tx: a\n  rx: b\n  packet: [{capture: {file: three.pcap, number: 2}}]\n"
        "  rate: 1kpps\n  duration: {fixed_packets: 20}\n"
    )
    assert server.run(plan, PORTS).flow("f").packets == 20
    assert [name for name in os.listdir(tmp_path / "state/captures") if "three.pcap" in name]


def test_errors_name_the_place(server):
    with pytest.raises(ws.PlanError) as wrong:
        server.start(make_plan(rate="fast"), PORTS)
    assert "flows[0].rate" in str(wrong.value)
    with pytest.raises(ws.ServerError, match="nowhere"):
        server.start(make_plan(), {"a": "left", "b": "nowhere"})
    with pytest.raises(ws.ServerError) as missing:
        server.find("never")
    assert missing.value.code == "not_found"
    with pytest.raises(ws.ServerError, match="Connection refused"):
        ws.Server("127.0.0.1:1").ports()
    with pytest.raises(ValueError, match="expected HOST"):
        ws.Server("ftp://lab")
