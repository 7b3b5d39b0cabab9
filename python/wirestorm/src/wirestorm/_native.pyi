"""The native part, written in Rust (crates/python)."""

from os import PathLike
from typing import Any, TypedDict

__version__: str

Folder = str | PathLike[str]

def check(plan: str, folder: Folder) -> None:
    """Raises PlanError where a plan in YAML or JSON makes no sense.

    Here and below, captures that it names are found from `folder`.
    """

def document(plan: str) -> str:
    """A plan in YAML or JSON as JSON, not yet understood."""

def frames(plan: str, folder: Folder, count: int, speed: str) -> list[tuple[str, int, bytes]]:
    """The first frames of each flow: its name, nanoseconds since its start, bytes without FCS."""

def simulation(
    plan: str,
    folder: Folder,
    output: Folder,
    packets: int | None,
    duration: str | None,
    speed: str,
    multiplier: str,
) -> list[tuple[str, str, int, int]]:
    """Writes what a plan would send to captures; for each port its name, file, frames, bytes."""

def line_rate(speed: str, frame_size: int) -> float:
    """Frames a second that a wire carries at most, with preamble and inter-packet gap."""

def headers() -> list[tuple[str, str, list[str], str | None]]:
    """The headers that a packet can have: name, what it is, its fields, and its list of items."""

def interface(name: str) -> dict[str, Any]:
    """What is known of an interface at this moment; what its driver does not tell is None."""

class Lease:
    """Keeps other processes from transmitting on an interface until it is released or forgotten."""

    def release(self) -> None:
        """Lets others have the interface, as soon as no run of this process is there."""

def lease(interface: str) -> Lease:
    """Locks an interface. Runs of this process still start there. Raises RunError, with the
    process, if another process has it."""

class Host:
    """A host on an Ethernet, without VLAN tags, that answers ARP, neighbour discovery and pings.

    Its addresses, of both families, have the length of their network's prefix: `10.0.0.1/24`.
    Raises ValueError where one is none.
    """

    def __init__(self, mac: str, addresses: list[str]) -> None: ...
    def answer(self, frame: bytes) -> bytes | None:
        """The frame that answers a frame, None where there is nothing to answer; without FCS."""

    def announcements(self) -> list[bytes]:
        """Frames that tell all neighbours where its addresses are."""

class How(TypedDict):
    """How a run sends, in the words of the command line's flags."""

    duration: str | None
    backend: str
    workers: int
    catch_up: str
    multiplier: str
    tolerance_percent: float
    force_interface: bool
    beside_others: bool
    is_visible: bool
    per_vlan: bool

class Run:
    """A run of a plan.

    It ends with its last frame, when it is stopped, or when nothing refers to it any more.
    """

    def __init__(self, plan: str, folder: Folder, interfaces: dict[str, str], how: How) -> None: ...
    @property
    def flows(self) -> list[str]:
        """The names of its flows."""

    @property
    def load(self) -> list[float]:
        """Percent of a CPU that the workers took in each of the last seconds, the latest first."""

    def wait_started(self) -> None:
        """Waits until frames leave, or nothing will."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end, at most so many seconds; returns whether it has come."""

    def stop(self) -> None:
        """Ends sending; returns at once."""

    def give(self, flows: list[str], order: str, value: str | None = None) -> None:
        """Asks something of flows, by name: pause, resume, start, stop, rate, scale."""

    def progress(self) -> dict[str, Any] | None:
        """What has been sent so far, None before the first frame."""

    def measured(self, flow: str) -> str | None:
        """What was measured so far of a flow: a list in JSON, with an object for each port.

        None of a run that has not begun or has ended.
        """

    def result(self) -> str:
        """The result as a document of the form wirestorm.result/2."""

class EmulationHow(TypedDict):
    """How clients and servers work, in the words of the command line's flags.

    Without a `drain_timeout` what is open in the end has all the time that it takes; `drain_timeout_flag` is how
    the caller knows it, for the note on what did not end within it, or nothing where that is not
    to be told.
    """

    duration: str | None
    drain_timeout: str | None
    drain_timeout_flag: str | None
    link_down_timeout: str
    rx_coalesce: str
    interval: str
    follow: int
    backend: str
    multiplier: str
    flows_max: int
    seed: int | None
    force_interface: bool
    beside_others: bool
    is_visible: bool
    verify_checksums: bool

# Tunnels of clients: the first and the last of them, the first one's identifier and what is added
# for each next one, the end at the clients and the other one, and the port of UDP, 0 for that of
# the packet within.
Tunnels = tuple[str, str, int, int, str, str, int]

class Emulation:
    """A run of clients and servers.

    It ends when they are done, when it is stopped, or when nothing refers to it any more.
    """

    def __init__(
        self, plan: str, folder: Folder, interfaces: dict[str, str], how: EmulationHow
    ) -> None: ...
    def wait_started(self) -> None:
        """Waits until its clients and servers work, or nothing will."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end, at most so many seconds; returns whether it has come."""

    def end_load(self) -> None:
        """Makes no more connections, as at the end of the duration; returns at once."""

    def stop(self) -> None:
        """Ends all of it, whatever is open; returns at once."""

    def set_load(self, factor: str) -> None:
        """Multiplies the loads that it began with: rates, flows that are held, throughputs."""

    def switch_clients(self, ranges: list[tuple[str, str]], on: bool) -> None:
        """Switches clients off, or on again, by ranges of a first and a last address.

        One that is off makes no connections, and those that it has go on.
        """

    def change_tunnels(self, tunnels: list[Tunnels]) -> None:
        """Gives clients other tunnels than they have, on all ports that have any."""

    def clients(self, addresses: list[str]) -> list[bool | None]:
        """Of each address whether it is that of a client that is on; None where it is none."""

    def progress(self) -> dict[str, Any] | None:
        """How far it is, None before it has begun."""

    def reports(self, detail: str) -> str | None:
        """What each port has counted by now: as in the result, a list in JSON.

        `detail`: of the `port` as such, of its `templates` too, or `all`, which has times and
        series as well; what is left out is empty. None of a run that has not begun, or has ended.
        """

    def result(self) -> str:
        """The result as a document of the form wirestorm.result/2."""

class TrexGateway(TypedDict):
    """Clients, by their addresses of IPv4, and what is below IP in their frames."""

    first: str
    last: str
    vlan: list[int]
    source: str | None
    destination: str

class TrexPort(TypedDict):
    """A port of TRex's: its interface, and of clients where their frames go, and in which VLANs
    (the outer one first), but for those that gateways are told of."""

    interface: str
    destination: str | None
    vlan: list[int]
    gateways: list[TrexGateway]
    tunnels: list[Tunnels] | None

def trex_emulate(
    profile: str,
    ports: list[TrexPort | None],
    ipv6: bool,
    client_mask: int,
    off: list[tuple[str, str]],
    how: EmulationHow,
) -> Emulation:
    """Starts a stateful profile of TRex's on its ports, which are 0, 1 and so on.

    Clients on those even ones that have their bit in `client_mask`, and servers on the odd ones.
    Clients that are `off` make no flows until they are switched on.
    """

class Terms(TypedDict):
    """How TRex's streams are understood.

    What their rates are multiplied by, bits a second of the line, and the addresses of the port
    and of the one that it sends to.
    """

    multiplier: str
    speed: str
    source: str
    destination: str

def trex_load(streams: str, terms: Terms) -> tuple[float, float, float]:
    """What TRex's streams send together at most: frames a second, bits a second (L2, L1)."""

def trex_start(streams: str, terms: Terms, interface: str, receive: str | None, how: How) -> Run:
    """Starts sending TRex's streams from an interface; `receive` is where they should arrive."""

def trex_update(run: Run, streams: str, terms: Terms) -> None:
    """Sends TRex's streams, some or all of a run's, at other rates from now on."""
