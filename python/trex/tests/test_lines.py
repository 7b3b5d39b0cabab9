"""Console lines of the stateless client, on a veth pair."""

from __future__ import annotations

from pathlib import Path

import pytest
from stream_helpers import LIMIT_S, sent, wait_until

from trex.stl.api import STLClient, TRexError

PROFILE = str(Path(__file__).parent / "profiles/udp_sizes.py")


def output_of(capsys, line) -> str:
    """Returns the output of a line."""
    capsys.readouterr()
    line()
    printed: str = capsys.readouterr().out
    return printed


def test_start_update_and_stop_lines(client, capsys):
    client.start_line(f"-f {PROFILE} -p 0 -m 100pps -t size=100")
    wait_until(lambda: sent(client) > 0)
    assert "0" in output_of(capsys, lambda: client.profiles_line("-p 0"))
    client.pause_line("-p 0")
    client.resume_line("-p 0")
    client.update_line("-p 0 -m 200pps")
    assert "tx_pps" in output_of(capsys, lambda: client.show_stats_line("--port 0 -p"))
    client.stop_line("-p 0 --remove")
    client.wait_on_traffic(timeout=LIMIT_S)
    assert client.get_active_ports() == [] and client.get_port(0).streams == {}
    client.clear_stats_line("-p 0")
    assert sent(client) == 0
    with pytest.raises(TRexError, match="update: no port is transmitting"):
        client.update_line("-m 2")


def test_acquire_and_release_lines(client):
    client.release_line("-p 1")
    assert client.get_acquired_ports() == [0]
    with pytest.raises(TRexError, match=r"acquire: ports \[0\] are acquired already"):
        client.acquire_line("-p 0")
    client.acquire_line("")
    assert client.get_acquired_ports() == [0, 1]
    client.service_line("-p 0 --bgp")
    assert client.get_service_filtered_ports() == [0]
    client.service_line("-p 0 --off")
    client.reset_line("-p 0 1")
    client.release_line("-a")
    with pytest.raises(TRexError, match="none of these ports is acquired"):
        client.release_line("-a")


def test_invalid_line_prints_its_usage(lab):
    with pytest.raises(TRexError, match="usage: start"):
        STLClient().start_line("--nonsense")
