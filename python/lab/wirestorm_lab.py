"""Two connected interfaces for the tests of the Python packages.

Each interface is in its own network namespace, in which only the test sends frames.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

# Name of a test's namespace: wspy-PID-SIDE.
_PREFIX = "wspy"
_LIMIT_S = 30


@dataclass(frozen=True)
class Lab:
    """The two interfaces, by their wirestorm names."""

    a: str
    b: str

    @property
    def ports(self) -> dict[str, str]:
        """Returns the interfaces of a plan's ports `a` and `b`."""
        return {"a": self.a, "b": self.b}


def ip(*arguments: str) -> str:
    """Runs `ip` and returns its output."""
    command = ["ip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


@contextmanager
def veth_pair() -> Iterator[Lab]:
    """Yields a veth pair between two namespaces. Skips the test without root privileges."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make network namespaces")
    _remove_leftovers()
    names = [f"{_PREFIX}-{os.getpid()}-{side}" for side in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
            # Before the interface exists: with IPv6 it would send frames as soon as it is up.
            setting = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"
            ip("netns", "exec", name, "sh", "-c", setting)
        first, second = names
        ip("-n", first, "link", "add", "veth0", "type", "veth", "peer", "veth1", "netns", second)
        ip("-n", first, "link", "set", "veth0", "up")
        ip("-n", second, "link", "set", "veth1", "up")
        yield Lab(f"netns/{first}:veth0", f"netns/{second}:veth1")
    finally:
        for name in names:
            _remove(name)


def _remove(name: str) -> None:
    subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=_LIMIT_S)


def _remove_leftovers() -> None:
    """Removes the namespaces of killed tests."""
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        parts = name.split("-")
        if parts[0] == _PREFIX and len(parts) == 3 and not Path(f"/proc/{parts[1]}").exists():
            _remove(name)
