"""Detection of connected ports: sends frames from each port and counts them at all others."""

from __future__ import annotations

import json
import time
from typing import Any

from trex.client.port import Port
from trex.client.transmission import call_engine, native, send_options

# For experiments (RFC 3692 section 2.1); hosts ignore it.
_ETHER_TYPE = 0x88B5
_RATE = "1kpps"


def connections(ports: list[Port], send_pkts: int) -> dict[str, Any]:
    """Returns the connections of ports.

    `map` has the port that received the frames of each port, None for no port. `bi` has pairs of
    ports that receive each other's frames. `unknown` has ports without a peer.
    """
    found: dict[int, int | None] = {
        port.number: _receiving_port(port, ports, send_pkts) for port in ports
    }
    pairs = [
        (one, other)
        for one, other in found.items()
        if other is not None and one < other and found.get(other) == one
    ]
    unknown = [one for one, other in found.items() if other is None]
    return {"map": found, "bi": pairs, "unknown": unknown}


def _receiving_port(port: Port, ports: list[Port], send_pkts: int) -> int | None:
    others = [other for other in ports if other is not port]
    if not others:
        return None
    ethernet = {
        "src": port.source,
        "dst": port.destination or "ff:ff:ff:ff:ff:ff",
        "ether_type": _ETHER_TYPE,
    }
    flow = {
        "name": "probe",
        "tx": str(port.number),
        "rx": [str(other.number) for other in others],
        "packet": [{"ethernet": ethernet}],
        "rate": _RATE,
        "duration": {"fixed_packets": send_pkts},
        "metrics": {"enable": True},
    }
    port_documents = [{"name": str(it.number), "location": it.interface} for it in [port, *others]]
    plan = json.dumps({"ports": port_documents, "flows": [flow]})
    run = call_engine(native().Run, plan, "", {}, send_options())
    while not run.wait(0.05):
        time.sleep(0)
    (report,) = json.loads(call_engine(run.result))["flows"]
    receivers = [int(it["port"]) for it in report["measured"] if it["received"] > 0]
    return receivers[0] if receivers else None
