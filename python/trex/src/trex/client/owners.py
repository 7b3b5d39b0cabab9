"""Which client of this process has which interface: several may have opened the same ports."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

from trex.client.port import Port
from trex.errors import TRexError

# By interface, the port of the client that took it last. A client that is forgotten has none.
_taken: weakref.WeakValueDictionary[str, Port] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def take(ports: Sequence[Port], force: bool) -> None:
    """Gives ports to their client, all of them or none.

    Raises `TRexError` where another client has one. With `force` that client loses it, and what it
    sends there ends: nobody else could end it.
    """
    with _lock:
        others = [
            (port, other)
            for port in ports
            if (other := _taken.get(port.interface)) is not None
            and other is not port
            and other.is_acquired
        ]
        if others and not force:
            names = ", ".join(f"port {port.number} ({port.interface})" for port, _ in others)
            raise TRexError(
                f"another client of this process has {names}: let it release() them, or take them "
                "from it with acquire(force=True) or reset()"
            )
        for _, other in others:
            other.is_acquired = False
        for port in ports:
            port.is_acquired = True
            _taken[port.interface] = port
    for _, other in others:
        other.end_traffic()


def give_back(ports: Sequence[Port]) -> None:
    """Ports are nobody's from now on."""
    with _lock:
        for port in ports:
            port.is_acquired = False
