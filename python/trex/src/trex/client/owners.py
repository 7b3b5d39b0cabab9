"""Which client has which interface: several of this process may have opened the same ports, and
other processes may use them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from trex.client.port import Port
from trex.client.transmission import asked, native
from trex.errors import TRexError

# By interface, the port of the client that took it last. A client that is forgotten has none.
_taken: weakref.WeakValueDictionary[str, Port] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def take(ports: Sequence[Port], force: bool) -> None:
    """Gives ports to their client, all of them or none, and keeps other processes from them.

    Raises `TRexError` where somebody else has one. With `force` another client of this process
    loses it, and what it sends there ends: nobody else could end it. What another process has it
    keeps.
    """
    with _lock:
        others = {
            port: other
            for port in ports
            if (other := _taken.get(port.interface)) is not None
            and other is not port
            and other.is_acquired
        }
        if others and not force:
            names = ", ".join(f"port {port.number} ({port.interface})" for port in others)
            raise TRexError(
                f"another client of this process has {names}: let it release() them, or take them "
                "from it with acquire(force=True) or reset()"
            )
        leases = [_lease(port, others.get(port), force) for port in ports]
        for other in others.values():
            other.is_acquired, other.lease = False, None
        for port, lease in zip(ports, leases):
            port.is_acquired, port.lease = True, lease
            _taken[port.interface] = port
    for other in others.values():
        other.end_traffic()


def give_back(ports: Sequence[Port]) -> None:
    """Ports are nobody's from now on, and other processes may have them once nothing is sent."""
    with _lock:
        for port in ports:
            lease, port.lease, port.is_acquired = port.lease, None, False
            if lease is not None:
                lease.release()


def _lease(port: Port, other: Port | None, force: bool) -> Any:
    """The lock of a port's interface: its own, that of the client that loses it, or a new one."""
    held = port.lease or (None if other is None else other.lease)
    if held is not None:
        return held
    try:
        return asked(native().lease, port.interface)
    except TRexError as error:
        why = "; force takes ports from clients of this process alone" if force else ""
        raise TRexError(f"port {port.number}: {error}{why}") from error
