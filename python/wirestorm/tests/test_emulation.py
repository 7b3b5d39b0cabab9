"""Emulations on real interfaces: a veth pair between two namespaces."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import threading
import time

import pytest
from wirestorm_lab import ip

import wirestorm as ws

# Generous, because a busy machine is slow and that is no failure of these tests.
LIMIT_S = 60


def make_plan(**client: object) -> dict:
    """A plan that fetches pages of 5,000 bytes from `b` to `a`."""
    return {
        "ports": [{"name": "a"}, {"name": "b"}],
        "templates": [
            {
                "name": "pages",
                "group": "web",
                "client": {
                    "tx": "a",
                    "addresses": "10.0.0.1-10.0.0.9",
                    "servers": "10.0.1.1",
                    "load": {"rate": 200},
                    "program": [{"send": "please"}, {"receive": 5000}],
                    **client,
                },
                "server": {
                    "tx": "b",
                    "port": 80,
                    "program": [{"receive": 6}, {"send": {"text": "here", "size": 5000}}],
                },
            }
        ],
    }


def wait_until(condition) -> None:
    """Waits until `condition()` is true."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_result_counts_both_sides(lab):
    result = ws.emulate(make_plan(limit=50), lab.ports)
    assert (result.schema, result.kind) == ("wirestorm.result/2", "emulation")
    assert not result.interrupted and result.clock == "real"
    a, b = result.port("a"), result.port("b")
    ours, theirs = a.connections, b.connections
    flows = ours.flows
    assert (a.interface, flows.closed, flows.failed, flows.active) == (lab.a, 50, 0, 0)
    assert (ours.tcp["connects"], theirs.tcp["accepts"], ours.tcp["rcvbyte"]) == (50, 50, 250_000)
    assert a.tx.packets == b.rx.packets > 0 and b.tx.bytes == a.rx.bytes > 0
    connect = ours.times.connect
    assert connect.p50_ns and connect.max_ns
    assert connect.count == 50 and 0 < connect.p50_ns <= connect.max_ns
    assert ours.tls is None and a.impairment is None
    client, server = result.template("pages", "client"), result.template("pages", "server")
    assert (client.group, client.tcp["rcvbyte"]) == ("web", server.tcp["sndbyte"])
    assert (result.verdict.outcome, result.verdict.reasons) == ("met", [])
    with pytest.raises(KeyError):
        result.port("c")


def test_result_has_rows_a_table_and_json(lab):
    marks = [{"transaction": {it: "page"}} for it in ("start", "end")]
    steps = make_plan()["templates"][0]["client"]["program"]
    plan = make_plan(limit=5, program=[marks[0], *steps, marks[1]])
    plan["templates"][0]["tls"] = True
    plan["ports"][0]["impair"] = {"duplicate": "100%"}
    result = ws.emulate(plan, lab.ports)
    a = result.port("a")
    assert a.connections.tls.full_handshakes + a.connections.tls.resumed_handshakes == 5
    assert a.impairment is not None and a.impairment.duplicated > 0
    rows = result.records()
    assert [(row["port"], row["side"], row["tcp_connects"]) for row in rows] == [
        ("a", "client", 5),
        ("b", "server", 5),
    ]
    (page,) = result.template("pages", "client").transactions
    assert (page.name, page.started, page.time.count) == ("page", 5, 5)
    assert rows[0]["times_connect_count"] == 5 and rows[0]["flows_started"] == 5
    values = [value for row in rows for value in row.values()]
    assert all(it is None or isinstance(it, (str, int, float)) for it in values)
    port = result.port_records()[0]
    assert port["connections_flows_closed"] == port["connections_tcp_connects"] == 5
    assert port["tx_packets"] > 0 and "impairment_from_port" in port
    lines = str(result).splitlines()
    assert any(line.split()[:2] == ["a", "5"] for line in lines), lines
    assert max(map(len, lines)) <= 80
    assert "5 connections" in repr(result) and result._repr_html_().startswith("<pre>done in ")
    assert ws.Result.from_dict(json.loads(result.to_json())) == result


def test_progress_is_visible_and_loads_change_during_the_run(lab):
    plan = make_plan(load={"concurrent": 2})
    plan["templates"][0]["client"]["program"].append({"delay": "10min"})
    with ws.start_emulation(plan, lab.ports) as running:
        wait_until(lambda: running.progress.ports["a"].connects == 2)
        a, b = running.ports()
        assert (a.name, a.connections.flows.active, a.connections.flows.active_max) == ("a", 2, 2)
        assert b.templates[0].side == "server" and b.connections.tcp["accepts"] == 2
        running.set_load(3.5)
        wait_until(lambda: running.progress.ports["a"].active == 7)
        running.set_load(1)
        assert not running.is_done
        running.stop()
        result = running.wait()
    assert result.interrupted and result.port("a").connections.flows.active == 7
    assert result.verdict.outcome == "interrupted"
    with pytest.raises(ws.RunError, match="has ended"):
        running.ports()


def test_tunnels_change_during_the_run(lab):
    plan = make_plan(load={"rate": 200})
    # No client has a tunnel at the start.
    plan["ports"] = [{"name": name, "tunnels": []} for name in ("a", "b")]
    with ws.start_emulation(plan, lab.ports) as running:
        wait_until(lambda: running.ports()[0].tunnels.no_tunnel > 0)
        assert running.progress.ports["a"].connects == 0
        ends = {"source": "fd00::1", "destination": "fd00::2"}
        running.change_tunnels("10.0.0.1-10.0.0.9", teid=5, **ends)
        wait_until(lambda: running.progress.ports["a"].connects > 0)
        running.change_tunnels("10.0.0.1", teid=9, source_port=2152, **ends)
        with pytest.raises(ValueError, match="expected an ascending range"):
            running.change_tunnels("10.0.0.9-10.0.0.1", teid=5, **ends)
        with pytest.raises(ValueError, match="10.0.0.9 is 4294967296, more than 4294967295"):
            running.change_tunnels("10.0.0.1-10.0.0.9", teid=2**32 - 8, **ends)
        with pytest.raises(ValueError, match="expected one family"):
            running.change_tunnels("10.0.0.1", teid=5, source="fd00::1", destination="1.1.1.1")
        running.stop()
        result = running.wait()
    a, b = result.port("a").tunnels, result.port("b").tunnels
    assert a.encapsulated > 0 and b.dropped == 0
    assert a.dropped == a.no_tunnel and b.decapsulated > 0
    assert f"port a: {a.no_tunnel} frames dropped: no usable tunnel" in result.verdict.reasons


def set_link(interface: str, state: str) -> None:
    """Sets an interface of a namespace up or down."""
    namespace, _, name = interface.removeprefix("netns/").partition(":")
    ip("-n", namespace, "link", "set", name, state)


def test_verdict_reports_link_outages(lab):
    with ws.start_emulation(make_plan(), lab.ports) as running:
        wait_until(lambda: running.progress.ports["a"].connects > 10)
        set_link(lab.a, "down")
        wait_until(lambda: running.ports()[0].down_s > 0.1)
        set_link(lab.a, "up")
        opened = running.progress.ports["a"].connects
        wait_until(lambda: running.progress.ports["a"].connects > opened)
        running.stop()
        result = running.wait()
    a = result.port("a")
    assert a.down_s > 0.1 and a.outages == 1
    assert result.verdict.outcome == "fell_short"
    assert "port a: 1 outage of the interface" in result.verdict.reasons
    assert any(line.startswith("  outages   1, ") for line in str(result).splitlines())


def test_verdict_reports_connections_without_a_matching_server(lab):
    plan = make_plan(limit=5)
    plan["templates"][0]["server"]["first_bytes"] = "GET "
    result = ws.emulate(plan, lab.ports)
    assert result.port("b").connections.flows.no_match == 5
    assert "port b: 5 flows not started or not accepted" in result.verdict.reasons


def test_verdict_reports_unanswered_clients(lab):
    plan = make_plan(limit=5, ethernet={"dst": "02:00:00:00:00:99"})
    plan["templates"][0].pop("server")
    plan["ports"] = [{"name": "a"}]
    result = ws.emulate(plan, {"a": lab.a}, duration="300ms", drain_timeout="100ms")
    assert "template pages: no connection was established" in result.verdict.reasons


def test_verdict_reports_failures_in_time_wait(lab):
    plan = make_plan(limit=5, program=[{"send": "please"}, {"receive": 4}, {"expect": "gone"}])
    plan["templates"][0]["tcp"] = {"time_wait": "60s"}
    result = ws.emulate(plan, lab.ports, drain_timeout="100ms")
    flows = result.port("a").connections.flows
    assert flows.failed + flows.time_wait_failed == 5, flows
    assert "port a: 5 flows failed" in result.verdict.reasons


def test_link_down_timeout_ends_the_run(lab):
    with ws.start_emulation(make_plan(), lab.ports, link_down_timeout="300ms") as running:
        wait_until(lambda: running.progress.ports["a"].connects > 10)
        set_link(lab.a, "down")
        with pytest.raises(ws.RunError, match=r"it stayed down for 0\.3 s"):
            running.wait(timeout=20)
    with pytest.raises(ValueError, match='link_down_timeout "soon": expected a time'):
        ws.start_emulation(make_plan(), lab.ports, link_down_timeout="soon")


def test_tunnels_that_exceed_the_reserved_room_are_rejected(lab):
    unchanged = {"clients": "10.0.0.1-10.0.0.8", "teid": 1, "src": "1.1.1.1", "dst": "1.1.1.2"}
    plan = make_plan(load={"rate": 200})
    plan["ports"] = [{"name": name, "tunnels": [unchanged]} for name in ("a", "b")]
    ends = {"source": "fd00::1", "destination": "fd00::2"}
    with ws.start_emulation(plan, lab.ports) as running:
        with pytest.raises(ValueError, match='port "a": tunnels over IPv6 need 20 bytes more'):
            running.change_tunnels("10.0.0.1", teid=5, **ends)
        running.change_tunnels("10.0.0.1", teid=5, source="1.1.1.3", destination="1.1.1.2")
        wait_until(lambda: running.progress.ports["a"].connects > 20)
        running.stop()
        tunnels = running.wait().port("a").tunnels
    assert tunnels.too_long == 0
    # Reserved room is available to other tunnels.
    others = {**unchanged, "clients": "10.0.0.9", "src": "fd00::1", "dst": "fd00::2"}
    plan["ports"] = [{"name": name, "tunnels": [unchanged, others]} for name in ("a", "b")]
    with ws.start_emulation(plan, lab.ports) as running:
        running.change_tunnels("10.0.0.1-10.0.0.9", teid=5, **ends)
        wait_until(lambda: running.progress.ports["a"].connects > 20)
        running.stop()
        tunnels = running.wait().port("a").tunnels
    assert tunnels.too_long == 0


def test_clients_switch_off_and_on(lab):
    plan = make_plan(load={"rate": 200})
    plan["templates"][0]["client"]["addresses"] = "10.0.0.1-10.0.0.2"

    def clients():
        return running.ports()[0].connections

    with ws.start_emulation(plan, lab.ports) as running:
        wait_until(lambda: running.progress.ports["a"].connects >= 4)
        running.switch_clients("10.0.0.1-10.0.0.2", on=False)
        wait_until(lambda: clients().flows.clients_disabled > 0)
        opened = clients().tcp["connattempt"]
        wait_until(lambda: clients().flows.clients_disabled > 20)
        assert clients().tcp["connattempt"] == opened
        running.switch_clients("10.0.0.2", on=True)
        wait_until(lambda: clients().tcp["connattempt"] > opened + 10)
        with pytest.raises(ValueError, match="expected an ascending range"):
            running.switch_clients("10.0.0.9-10.0.0.1", on=False)
        with pytest.raises(ValueError, match="expected an IP address"):
            running.switch_clients("pages", on=False)
        running.end_load()
        result = running.wait()
    assert result.port("a").connections.flows.failed == 0 and result.verdict.outcome == "met"


def test_follow_samples_single_flows(lab):
    def sampled():
        return [port.connections.sampled_flows for port in running.ports()]

    plan = make_plan(load={"concurrent": 3})
    plan["templates"][0]["client"]["program"].append({"delay": "10min"})
    with ws.start_emulation(plan, lab.ports, follow=2, interval="50ms") as running:
        wait_until(lambda: [len(port) for port in sampled()] == [2, 2])
        wait_until(lambda: all(len(it.samples) > 3 for port in sampled() for it in port))
        (clients, _), servers = sampled()
    assert (clients.template, clients.side, clients.transport) == ("pages", "client", "tcp")
    assert clients.remote == "10.0.1.1:80" and {it.local for it in servers} == {"10.0.1.1:80"}
    last = clients.samples[-1]
    # The server has sent everything and has closed its side.
    assert (last.state, last.received_bytes, last.retransmitted) == ("CLOSE-WAIT", 5_000, 0)
    assert last.rtt_us and last.cwnd >= last.mss > 500
    assert last.timestamps and last.sack and not last.ecn and last.receive_window == 32_768
    assert last.send_window_scale is not None and last.receive_window_scale is not None
    with pytest.raises(ValueError, match="follow 1001"):
        ws.start_emulation(plan, lab.ports, follow=1001)


def test_open_connections_finish_after_end_load(lab):
    with ws.start_emulation(make_plan(), lab.ports) as running:
        wait_until(lambda: running.progress.ports["a"].connects >= 10)
        running.end_load()
        result = running.wait(timeout=LIMIT_S)
    a = result.port("a").connections
    assert not result.interrupted and a.flows.closed == a.tcp["connects"] >= 10


def test_servers_answer_requests_in_flight_at_the_end(lab):
    plan = make_plan()
    plan["ports"][0]["impair"] = {"delay": "50ms"}
    # No connection has reached the server at the end of the duration.
    result = ws.emulate(plan, lab.ports, duration="10ms", drain_timeout="30s")
    a = result.port("a").connections
    assert 1 <= a.flows.closed == a.tcp["connattempt"] and a.flows.failed == 0, a.flows
    assert a.tcp["rexmttimeo_syn"] == 0 and result.times.elapsed_s < LIMIT_S / 2


@pytest.mark.parametrize("verifies", [False, True])
def test_verify_checksums_drops_frames_with_partial_checksums(lab, verifies):
    # A Linux host leaves checksums to its interface. A veth passes such frames on unchanged.
    namespace, _, interface = lab.b.removeprefix("netns/").partition(":")
    ip("-n", namespace, "addr", "add", "10.0.0.2/24", "dev", interface)
    plan = make_plan()
    plan["ports"] = [{"name": "b", "addresses": "10.0.0.1/24"}]
    del plan["templates"][0]["client"]
    asks = "import socket; socket.create_connection(('10.0.0.1', 80), timeout=0.5)"
    command = ["ip", "netns", "exec", namespace, "python3", "-c", asks]
    ports = {"b": lab.a}
    with ws.start_emulation(plan, ports, backend="af_xdp", verify_checksums=verifies) as running:
        connected = [subprocess.run(command, capture_output=True).returncode == 0 for _ in range(3)]
        running.stop()
        result = running.wait()
    flows = result.port("b").connections.flows
    assert (any(connected), flows.malformed > 0) == (not verifies, verifies)


def test_progress_callback_runs_and_duration_ends_the_load(lab):
    progress_reports: list[ws.EmulationProgress] = []
    result = ws.emulate(
        make_plan(),
        lab.ports,
        duration="0.5s",
        multiplier=0.5,
        interval=0.1,
        progress=progress_reports.append,
    )
    assert result.port("a").connections.series.interval_s == 0.1
    opened = result.template("pages", "client").flows["started"]
    # 50, or a few more on a busy machine.
    assert 50 <= opened < 75 and progress_reports and set(progress_reports[-1].ports) == {"a", "b"}
    assert {one.name for one in dataclasses.fields(progress_reports[-1].ports["a"])} >= {
        "connects",
        "active",
    }


def test_ctrl_c_stops_the_emulation_and_keeps_its_result(lab):
    running = ws.start_emulation(make_plan(), lab.ports)
    wait_until(lambda: running.progress.ports["a"].connects >= 5)
    timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(ws.Interrupted) as caught:
        running.wait()
    timer.join()
    assert caught.value.result.interrupted
    assert caught.value.result.port("a").connections.tcp["connects"] >= 5


def test_invalid_plans_and_arguments_are_rejected(lab, tmp_path):
    plan = make_plan(load={"rate": -1})
    with pytest.raises(ws.PlanError) as caught:
        ws.emulate(plan, lab.ports)
    assert [path for path, _ in caught.value.errors] == ["templates[0].client.load.rate"]
    with pytest.raises(ws.RunError, match='port "b" has no interface: bind it with ports='):
        ws.emulate(make_plan(), {"a": lab.a})
    with pytest.raises(ValueError, match='"c" is none of the plan'):
        ws.emulate(make_plan(), {**lab.ports, "c": "eth1"})
    with pytest.raises(ws.PlanError, match="nowhere.yaml"):
        ws.emulate(tmp_path / "nowhere.yaml")
    with pytest.raises(ValueError, match="interval"):
        ws.emulate(make_plan(), lab.ports, interval="1us")
    with pytest.raises(ValueError, match="flows_max 0: expected 1 to"):
        ws.emulate(make_plan(), lab.ports, flows_max=0)
    with pytest.raises(ValueError, match="factor"):
        ws.emulate(make_plan(), lab.ports, multiplier=0)
    with ws.start_emulation(make_plan(), lab.ports) as running:
        for factor in (0, -1, 2.0**33):
            with pytest.raises((ValueError, ws.PlanError)):
                running.set_load(factor)
