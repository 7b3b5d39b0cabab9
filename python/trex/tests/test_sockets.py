"""Frames of ports in queues and through ZeroMQ."""

from __future__ import annotations

import sys
import time

import pytest

from trex.stl.api import IP, UDP, Dot1Q, Ether, STLError

LIMIT_S = 60


def frame(number, **tag):
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    inner = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(dport=number) / bytes(30)
    return bytes(ether / Dot1Q(**tag) / inner if tag else ether / inner)


def push(client, frames):
    client.push_packets([Ether(one) for one in frames], ports=0, force=True)


def wait_until(condition):
    """Waits until `condition()` is true, with a time limit."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_queue_keeps_the_last_received_frames(client):
    client.set_service_mode([0, 1])
    client.set_rx_queue(1, size=3)
    frames = [frame(1), frame(2), frame(3, vlan=7, prio=2), frame(4)]
    push(client, frames)
    port = client.get_port(1)
    wait_until(lambda: client.get_port_attr(1)["rx_queue"] == "[3 / 3]")
    wait_until(lambda: client.links[1].rx_queue._frames[-1]["binary"] == frames[-1])
    answer = port.get_rx_queue_pkts()
    assert answer.good() and [one["binary"] for one in answer.data()] == frames[1:]
    assert all(one["port"] == 1 and one["origin"] == "RX" for one in answer.data())
    assert port.get_rx_queue_pkts().data() == []
    client.set_service_mode(1, enabled=False)
    assert "not in service mode" in port.get_rx_queue_pkts().err()
    client.remove_rx_queue([0, 1])
    assert client.get_port_attr(1)["rx_queue"] == "off"
    for size in (0, "5"):
        with pytest.raises(STLError, match="'size'"):
            client.set_rx_queue(1, size=size)
    client.set_rx_queue()
    client.reset()
    assert client.get_port_attr(0)["rx_queue"] == "off"


@pytest.fixture
def pair(tmp_path):
    """A ZeroMQ socket and its endpoint."""
    zmq = pytest.importorskip("zmq")
    with zmq.Context() as context, context.socket(zmq.PAIR) as socket:
        socket.linger = 0
        socket.rcvtimeo = socket.sndtimeo = LIMIT_S * 1000
        socket.bind(f"ipc://{tmp_path}/port")
        yield socket, f"ipc://{tmp_path}/port"


def test_capture_port_forwards_in_both_directions(client, pair):
    socket, endpoint = pair
    with pytest.raises(STLError, match="port 1 is not in service mode"):
        client.start_capture_port(1, endpoint)
    client.set_service_mode([0, 1])
    chosen = "udp port 2 or (vlan 7 and udp port 3)"
    client.start_capture_port(1, endpoint, bpf_filter=chosen)
    push(client, [frame(1), frame(2), frame(3, vlan=7), frame(4)])
    assert [socket.recv(), socket.recv()] == [frame(2), frame(3, vlan=7)]
    client.set_capture_port_bpf_filter(1, "udp port 4")
    push(client, [frame(3), frame(4, vlan=7), frame(4)])
    assert socket.recv() == frame(4)
    client.set_capture_port_bpf_filter(1, "vlan")
    push(client, [frame(3), frame(4, vlan=8)])
    assert socket.recv() == frame(4, vlan=8)
    client.set_capture_port_bpf_filter(1, "")
    push(client, [frame(5)])
    assert socket.recv() == frame(5)
    capture = client.start_capture(rx_ports=0, bpf_filter="udp")["id"]
    sent = [frame(number) for number in range(100)]
    for one in sent:
        socket.send(one)
    wait_until(lambda: client.get_capture_status()[capture]["count"] == 100)
    frames = []
    client.stop_capture(capture, frames)
    assert [one["binary"] for one in frames] == sent
    with pytest.raises(STLError, match="port 1 has a capture port"):
        client.start_capture_port(1, endpoint)
    with pytest.raises(STLError, match="port 1 has a capture port"):
        client.set_service_mode(1, enabled=False)
    with pytest.raises(STLError, match="filter 'udq'"):
        client.set_capture_port_bpf_filter(1, "udq")
    client.stop_capture_port(1)
    client.stop_capture_port(1)
    client.set_service_mode(1, enabled=False)
    client.set_service_mode(1)
    with pytest.raises(STLError, match="port 1 has no capture port"):
        client.set_capture_port_bpf_filter(1, "")
    for wrong in ({"endpoint": "nowhere"}, {"endpoint": endpoint, "bpf_filter": "udq"}):
        with pytest.raises(STLError, match="nowhere|udq"):
            client.start_capture_port(1, **wrong)
    client.start_capture_port(1, endpoint)
    client.reset()
    assert client.links[1].capture_port is None


def test_missing_pyzmq_error_has_the_package(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "zmq", None)
    client.set_service_mode(1)
    with pytest.raises(STLError, match=r"pip install 'wirestorm-trex\[zmq\]'"):
        client.start_capture_port(1, "ipc:///nowhere")


def test_endpoint_cb_rsync_copies_the_file(client, tmp_path):
    source, target = tmp_path / "capture.pcap", tmp_path / "copy.pcap"
    source.write_bytes(b"frames")
    copy = client.endpoint_cb_rsync(str(target))
    assert copy(f"file://{source}?pcapng") == 0 and target.read_bytes() == b"frames"
    assert copy("tcp://somewhere:5") == 0
    with pytest.raises(STLError, match="No such file"):
        copy(f"file://{tmp_path}/nothing")
