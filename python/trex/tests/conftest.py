"""Paths and fixtures of the tests."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from wirestorm_lab import Lab, ip, veth_pair

from trex.stl.api import Ether, Packet, STLClient

# Stand-ins for TRex's modules, without tests.
collect_ignore = ["regression"]

PROFILES = Path(__file__).parent / "profiles"


@pytest.fixture
def profiles() -> Path:
    """Folder of the profiles for tests."""
    return PROFILES


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Two connected interfaces, as ports 0 and 1."""
    pytest.importorskip("wirestorm", reason="the package wirestorm, which sends, is not installed")
    with veth_pair() as found:
        monkeypatch.setenv("WIRESTORM_TREX_PORTS", f"{found.a},{found.b}")
        yield found


@pytest.fixture
def hosts(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The interfaces of `lab` as hosts with addresses, each the other's gateway, by a
    trex_cfg.yaml.
    """
    file = tmp_path / "trex_cfg.yaml"
    file.write_text(
        f"""
- interfaces: ["{lab.a}", "{lab.b}"]
  port_info:
    - {{ip: 1.1.1.1, default_gw: 1.1.1.2}}
    - {{ip: 1.1.1.2, default_gw: 1.1.1.1}}
"""
    )
    monkeypatch.delenv("WIRESTORM_TREX_PORTS")
    monkeypatch.setenv("WIRESTORM_TREX_CFG", str(file))
    return lab


@pytest.fixture
def client(lab: Lab) -> Iterator[STLClient]:
    """A client with both ports acquired."""
    found = STLClient()
    found.connect()
    found.reset()
    yield found
    found.disconnect()


class Peer:
    """The kernel at port 1: a host with its usual tools."""

    def __init__(self, client: STLClient) -> None:
        interface = client.links[1].interface
        self.namespace, _, self.interface = interface.removeprefix("netns/").partition(":")
        self.mac = client.links[1].source

    def command(self, *arguments: str) -> list[str]:
        """Returns a command that runs in the namespace of port 1."""
        return ["ip", "netns", "exec", self.namespace, *arguments]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the namespace of port 1."""
        command = self.command(*arguments)
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def add_addresses(self, *addresses: str) -> None:
        """Adds addresses. The first IPv6 address enables IPv6."""
        for address in addresses:
            is_ipv6 = ":" in address
            if is_ipv6:
                self.set(f"ipv6/conf/{self.interface}/accept_dad", 0)
                self.set(f"ipv6/conf/{self.interface}/disable_ipv6", 0)
            flags = ["nodad"] if is_ipv6 else []
            ip("-n", self.namespace, "addr", "add", address, "dev", self.interface, *flags)

    def set(self, name: str, value: int) -> None:
        """Sets a kernel parameter below /proc/sys/net."""
        done = self.run("sh", "-c", f"echo {value} > /proc/sys/net/{name}")
        assert done.returncode == 0, done.stderr

    def pings(self, address: str) -> bool:
        """Returns whether an address answers one of three pings."""
        command = ["ping", "-c", "3", "-i", "0.3", "-W", "1", "-I", self.interface, address]
        return self.run(*command).returncode == 0

    def neighbour(self, address: str) -> str | None:
        """Returns the Ethernet address of a neighbour entry."""
        found = json.loads(ip("-n", self.namespace, "-j", "neigh", "show", "to", address))
        return found[0].get("lladdr") if found else None


@pytest.fixture
def peer(client: STLClient) -> Peer:
    """The kernel at port 1, which the client does not use otherwise."""
    return Peer(client)


@pytest.fixture
def dnsmasq(peer: Peer) -> Any:
    """Runs dnsmasq at port 1 with options, in a `with` block. Yields the server's log."""
    if shutil.which("dnsmasq") is None:
        pytest.skip("dnsmasq is not installed")

    @contextmanager
    def run(*options: str) -> Iterator[list[str]]:
        always = ["--no-daemon", "--conf-file=/dev/null", "--port=0"]
        command = peer.command("dnsmasq", *always, f"--interface={peer.interface}", *options)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            log: list[str] = []
            is_up = threading.Event()

            def read() -> None:
                assert server.stderr is not None
                for line in server.stderr:
                    log.append(line)
                    if ": started, version" in line:
                        is_up.set()

            reader = threading.Thread(target=read)
            reader.start()
            try:
                assert is_up.wait(60), "".join(log)
                yield log
            finally:
                server.terminate()
                reader.join()

    return run


def frame(document: dict[str, Any]) -> Packet:
    """Returns the packet of a stream's document."""
    return Ether(base64.b64decode(document["packet"]["binary"]))


def instructions(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Returns the instructions of a type in a stream's document."""
    return [i for i in document["vm"]["instructions"] if i["type"] == kind]
