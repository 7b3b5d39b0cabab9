"""Two clients of one process that open the same ports."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest
from stream_helpers import continuous, wait_until

from trex.astf.api import ASTFClient, ASTFProfile
from trex.errors import TRexError
from trex.stl.api import STLClient


@pytest.fixture
def other(client):
    """A client that has opened the ports of `client`."""
    found = STLClient()
    found.connect()
    yield found
    found.disconnect()


@pytest.fixture
def profile(profiles):
    """A stateful profile."""
    return ASTFProfile.load(str(profiles / "stateful_pages.py"))


def test_acquire_rejects_ports_of_another_client(client, other):
    client.release([1])
    with pytest.raises(TRexError, match=r"another client of this process has port 0 \(netns/"):
        other.acquire()
    assert other.get_acquired_ports() == [], "all of them or none"
    other.acquire([1])
    with pytest.raises(TRexError, match="has port 1"):
        client.acquire()
    # Acquiring its own ports again is fine.
    client.acquire([0])
    client.disconnect()
    other.acquire()
    assert other.get_acquired_ports() == [0, 1]


def test_force_takes_ports_from_another_client(client, other):
    client.add_streams(continuous(), ports=[0])
    client.start([0])
    wait_until(lambda: client.get_stats()[0]["opackets"] > 0)
    other.acquire([0], force=True)
    assert (client.get_acquired_ports(), other.get_acquired_ports()) == ([1], [0])
    assert not client.get_port(0).is_active()
    with pytest.raises(TRexError, match="port 0 is not acquired"):
        client.start([0])
    client.acquire([0], force=True)
    assert (client.get_acquired_ports(), other.get_acquired_ports()) == ([0, 1], [])


def test_deleted_client_owns_nothing(client):
    client.disconnect()
    deleted = STLClient()
    deleted.connect()
    deleted.acquire()
    del deleted
    gc.collect()
    client.connect()
    client.acquire()
    assert client.get_acquired_ports() == [0, 1]


def test_loss_of_ports_stops_stateful_profiles(client, profile):
    first, second = ASTFClient(), ASTFClient()
    for one in (first, second):
        one.connect()
    try:
        first.reset()
        first.load_profile(profile)
        first.start()
        with pytest.raises(TRexError, match="another client of this process"):
            second.acquire()
        second.reset()
        second.load_profile(profile)
        second.start()
        assert second.get_profiles_state() == {"_": "STATE_TX"}
        assert not first.is_traffic_active()
    finally:
        for one in (first, second):
            one.disconnect()


def test_start_conflict_names_this_process(client, profile):
    first, second = ASTFClient(), ASTFClient()
    first.connect()
    first.reset()
    first.load_profile(profile)
    first.start()
    run = first._single_profile("_").run
    first.release()
    try:
        second.connect()
        second.acquire()
        second.load_profile(profile)
        with pytest.raises(TRexError, match="is in use by this process: stop") as caught:
            second.start()
        assert f"process {os.getpid()}" not in str(caught.value)
        assert "another Wirestorm" not in str(caught.value) and "kill" not in str(caught.value)
    finally:
        run.stop()
        wait_until(run.is_done)
        second.disconnect()
        first.disconnect()


OTHER = """
import os, sys
from trex.stl.api import STLClient, STLError
client = STLClient()
client.connect()
for line in sys.stdin:
    try:
        eval(line, {"client": client})
        print("done", flush=True)
    except STLError as error:
        print(error, flush=True)
"""


@pytest.fixture
def process(client):
    """Another process with its own client. It evaluates an expression and answers."""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", OTHER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": paths}
    with subprocess.Popen(command, **pipes) as found:

        def run(expression):
            found.stdin.write(expression + "\n")
            found.stdin.flush()
            return found.stdout.readline().strip()

        run.pid = found.pid
        yield run
        found.stdin.close()


def test_acquire_rejects_ports_of_another_process(client, process):
    output = process("client.acquire()")
    assert f"port 0: interface {client.links[0].interface} is in use" in output
    assert f"process {os.getpid()};" in output
    output = process("client.acquire(force=True)")
    assert f"process {os.getpid()};" in output and "clients of this process alone" in output
    client.release([1])
    assert process("client.acquire([1])") == "done"
    with pytest.raises(TRexError, match=f"port 1: .* in use .* process {process.pid};"):
        client.acquire([1])
    assert client.get_acquired_ports() == [0]
    client.add_streams(continuous(), ports=[0])
    client.start([0])
    assert "port 0" in process("client.acquire([0])")
    client.stop([0])
    assert process("client.disconnect()") == "done"
    client.acquire()
    client.disconnect()
    assert process("client.connect()") == process("client.acquire()") == "done"
