"""Type stubs of the native module, written in Rust (crates/python)."""

from os import PathLike
from typing import Any, TypedDict

__version__: str

Folder = str | PathLike[str]

def check(plan: str, folder: Folder) -> None:
    """Raises PlanError if a plan in YAML or JSON is invalid.

    Here and below, relative paths in the plan start at `folder`.
    """

def document(plan: str) -> str:
    """Converts a plan in YAML or JSON to JSON, without validation."""

def frames(plan: str, folder: Folder, count: int, speed: str) -> list[tuple[str, int, bytes]]:
    """Returns the first frames of each flow: name, ns since the start, bytes without FCS."""

def simulation(
    plan: str,
    folder: Folder,
    output: Folder,
    packets: int | None,
    duration: str | None,
    speed: str,
    multiplier: str,
) -> list[tuple[str, str, int, int]]:
    """Writes a plan's frames to captures. Returns name, file, frames and bytes of each port."""

def line_rate(speed: str, frame_size: int) -> float:
    """Returns the maximum frame rate of a speed, with preamble and inter-frame gap."""

def headers() -> list[tuple[str, str, list[str], str | None]]:
    """Returns the headers of packets: name, description, field names, name of the item list."""

def interface(name: str) -> dict[str, Any]:
    """Returns the properties of an interface. None for what its driver does not report."""

class Lease:
    """Keeps other processes from transmitting on an interface until it is released or deleted."""

    def release(self) -> None:
        """Unlocks the interface as soon as no run of this process uses it."""

def lease(interface: str) -> Lease:
    """Locks an interface. Runs of this process can still use it.

    Raises RunError with the process if another process has locked it.
    """

class Host:
    """A host on untagged Ethernet that answers ARP, neighbour discovery and pings.

    Its IPv4 and IPv6 addresses have a prefix length: `10.0.0.1/24`. Raises ValueError for an
    invalid address.
    """

    def __init__(self, mac: str, addresses: list[str]) -> None: ...
    def answer(self, frame: bytes) -> bytes | None:
        """Returns the answer to a frame, None if it needs no answer. Frames are without FCS."""

    def announcements(self) -> list[bytes]:
        """Returns gratuitous ARP frames and unsolicited neighbour advertisements."""

class How(TypedDict):
    """Options of a run, as strings in the syntax of the command line."""

    duration: str | None
    backend: str
    workers: int
    catch_up: str
    multiplier: str
    tolerance_percent: float
    force_interface: bool
    shares_ports: bool
    is_visible: bool
    per_vlan: bool

class Run:
    """A run of a plan.

    It ends with its last frame, when it is stopped, or when no object refers to it.
    """

    def __init__(self, plan: str, folder: Folder, interfaces: dict[str, str], how: How) -> None: ...
    @property
    def flows(self) -> list[str]:
        """Names of the plan's flows."""

    @property
    def load(self) -> list[float]:
        """CPU load of the workers in each of the last seconds in percent, the latest first."""

    def wait_started(self) -> None:
        """Waits until the run sends, or is over."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end, at most `timeout_s` seconds. Returns whether the run is over."""

    def stop(self) -> None:
        """Stops the run. Returns at once."""

    def send_command(self, flows: list[str], order: str, value: str | None = None) -> None:
        """Sends a command to flows by name: pause, resume, start, stop, rate or scale."""

    def progress(self) -> dict[str, Any] | None:
        """Returns what the run has sent so far. None before the first frame."""

    def measured(self, flow: str) -> str | None:
        """Returns the current measurements of a flow: a JSON list with an object for each port.

        None if the run has not begun or has ended.
        """

    def result(self) -> str:
        """Returns the result as a wirestorm.result/2 document."""

class EmulationHow(TypedDict):
    """Options of an emulation, as strings in the syntax of the command line.

    Without `drain_timeout`, open connections have unlimited time to finish. `drain_timeout_flag` is
    the caller's name of that option in notes; None omits the note.
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
    shares_ports: bool
    is_visible: bool
    verify_checksums: bool

# Tunnels of clients: first and last client, first TEID and its step for each next client, the
# endpoint of the clients and the other one, and the UDP source port. Port 0 copies the source port
# of the inner packet.
Tunnels = tuple[str, str, int, int, str, str, int]

class Emulation:
    """A run of clients and servers.

    It ends when they are done, when it is stopped, or when no object refers to it.
    """

    def __init__(
        self, plan: str, folder: Folder, interfaces: dict[str, str], how: EmulationHow
    ) -> None: ...
    def wait_started(self) -> None:
        """Waits until the clients and servers run, or the run is over."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the end, at most `timeout_s` seconds. Returns whether the run is over."""

    def end_load(self) -> None:
        """Stops opening connections, as at the end of the duration. Returns at once."""

    def stop(self) -> None:
        """Stops the run, whatever is open. Returns at once."""

    def set_load(self, factor: str) -> None:
        """Multiplies the initial loads: rates, numbers of concurrent flows, throughputs."""

    def switch_clients(self, ranges: list[tuple[str, str]], on: bool) -> None:
        """Switches ranges of clients, by first and last address, off or on.

        A client that is off opens no connections. Its open connections continue.
        """

    def change_tunnels(self, tunnels: list[Tunnels]) -> None:
        """Replaces the tunnels of clients on all ports that have tunnels."""

    def clients(self, addresses: list[str]) -> list[bool | None]:
        """Returns for each address whether its client is on. None if it belongs to no client."""

    def progress(self) -> dict[str, Any] | None:
        """Returns elapsed_s and the counters of ports by name. None before the run has begun."""

    def reports(self, detail: str) -> str | None:
        """Returns the current reports of the ports: a JSON list as in the result.

        `detail` is `port`, `templates` (also each template), or `all` (also times and series).
        Omitted parts are empty. None if the run has not begun or has ended.
        """

    def result(self) -> str:
        """Returns the result as a wirestorm.result/2 document."""

class TrexGateway(TypedDict):
    """A range of clients by IPv4 address, and the Ethernet header and VLANs of their frames."""

    first: str
    last: str
    vlan: list[int]
    source: str | None
    destination: str

class TrexPort(TypedDict):
    """A TRex port: its interface, and the next hop, VLANs and tunnels of its clients.

    The outer VLAN comes first. `gateways` override the next hop and VLANs for their clients.
    """

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
    """Starts a stateful TRex profile on its ports, numbered 0, 1 and so on.

    Clients run on the even ports whose bit in `client_mask` is set, servers on the odd ports.
    Clients in `off` open no flows until they are switched on.
    """

class Terms(TypedDict):
    """Parameters to convert TRex streams.

    Rate multiplier, line speed in bit/s, source and destination MAC address.
    """

    multiplier: str
    speed: str
    source: str
    destination: str

def trex_load(streams: str, terms: Terms) -> tuple[float, float, float]:
    """Returns the maximum load of TRex streams: frames/s, bit/s at layer 2 and at layer 1."""

def trex_start(streams: str, terms: Terms, interface: str, receive: str | None, how: How) -> Run:
    """Starts to send TRex streams from an interface. The interface `receive` receives them."""

def trex_update(run: Run, streams: str, terms: Terms) -> None:
    """Changes the rates of some or all streams of a run."""
