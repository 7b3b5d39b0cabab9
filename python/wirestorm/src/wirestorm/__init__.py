"""Network traffic generator: plans, runs and results.

>>> import wirestorm as ws
>>> plan = ws.Plan()
>>> left, right = plan.add_port("left", "eth1"), plan.add_port("right", "eth2")
>>> packet = [ws.ethernet(dst="02:00:00:00:00:02"), ws.ipv4(dst="192.0.2.1"), ws.udp(dst_port=53)]
>>> flow = plan.add_flow("clients", left, packet, rx=right, size=128, rate="10kpps", duration="1s")
>>> print(ws.run(plan))

See docs/guide/python.md in the repository for a guide.
"""

from wirestorm import headers as _headers
from wirestorm._native import __version__
from wirestorm.emulation import (
    ActiveEmulation,
    EmulationCount,
    EmulationProgress,
    emulate,
    start_emulation,
)
from wirestorm.errors import Interrupted, PlanError, RunError, WirestormError
from wirestorm.header import Header, capture, payload
from wirestorm.headers import *  # noqa: F403
from wirestorm.patterns import Pattern, decrement, increment, random, values, weighted
from wirestorm.plan import Flow, Plan, Port, bursts, packets
from wirestorm.result import Result
from wirestorm.run import (
    ActiveRun,
    FlowCount,
    Frame,
    Progress,
    SimulatedPort,
    frames,
    line_rate,
    run,
    simulate,
    start,
)
from wirestorm.server import Server, ServerError, ServerPort, ServerRun

__all__ = [
    "__version__",
    "bursts",
    "capture",
    "decrement",
    "emulate",
    "ActiveEmulation",
    "EmulationCount",
    "EmulationProgress",
    "Flow",
    "FlowCount",
    "Frame",
    "frames",
    "Header",
    "increment",
    "Interrupted",
    "line_rate",
    "packets",
    "Pattern",
    "payload",
    "Plan",
    "PlanError",
    "Port",
    "Progress",
    "random",
    "Result",
    "run",
    "RunError",
    "ActiveRun",
    "simulate",
    "Server",
    "ServerError",
    "ServerPort",
    "ServerRun",
    "SimulatedPort",
    "start",
    "start_emulation",
    "values",
    "weighted",
    "WirestormError",
]
__all__ += _headers.__all__
