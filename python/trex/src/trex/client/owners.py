"""Ownership of interfaces by clients of this process, and locks against other processes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from trex.client.port import Port
from trex.client.transmission import call_engine, native
from trex.errors import TRexError

# Owner port by interface. A weak reference, so that a deleted client owns nothing.
_owner_by_interface: weakref.WeakValueDictionary[str, Port] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def acquire(ports: Sequence[Port], force: bool) -> None:
    """Acquires ports for their client, all or none, and locks them against other processes.

    Raises `TRexError` if another client or process has one. With `force`, another client of this
    process loses the port and its traffic ends. A port of another process stays there.
    """
    with _lock:
        others = {
            port: other
            for port in ports
            if (other := _owner_by_interface.get(port.interface)) is not None
            and other is not port
            and other.is_acquired
        }
        if others and not force:
            names = ", ".join(f"port {port.number} ({port.interface})" for port in others)
            raise TRexError(
                f"another client of this process has {names}: release() them there, or take them "
                "with acquire(force=True) or reset()"
            )
        leases = [_lease(port, others.get(port), force) for port in ports]
        for other in others.values():
            other.is_acquired, other.lease = False, None
        for port, lease in zip(ports, leases):
            port.is_acquired, port.lease = True, lease
            _owner_by_interface[port.interface] = port
    for other in others.values():
        other.end_traffic()


def release(ports: Sequence[Port]) -> None:
    """Releases ports. Other processes can use them as soon as their traffic has ended."""
    with _lock:
        for port in ports:
            lease, port.lease, port.is_acquired = port.lease, None, False
            if lease is not None:
                lease.release()


def _lease(port: Port, other: Port | None, force: bool) -> Any:
    """Returns a lock of the interface: the port's own, the previous client's, or a new one."""
    current = port.lease or (None if other is None else other.lease)
    if current is not None:
        return current
    try:
        return call_engine(native().lease, port.interface)
    except TRexError as error:
        hint = "; force takes ports from clients of this process alone" if force else ""
        raise TRexError(f"port {port.number}: {error}{hint}") from error
