"""What a run reports, by schemas/wirestorm.result.2.json; made by tools/make_reports.py.

Times are in seconds or nanoseconds as their names say, rates per second, lengths without FCS unless
the name says L1 (with FCS, preamble and inter-packet gap) or L2 (with FCS).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Optional


@dataclass(frozen=True)
class Achieved:
    """What was sent, all ports together."""

    packets: int
    """Frames that left."""
    bytes: int
    """Their bytes without FCS."""
    pps: float
    """Frames per second."""
    bps_l1: float
    """Layer-1 bits a second."""
    bps_l2: float
    """Layer-2 bits a second, with FCS."""
    bps_frames: float
    """Bits a second of the frames without FCS, as tcpreplay counts them."""
    failed: int
    """Frames that did not leave because a port refused them, those in `refused` included."""
    refused: RefusedReport
    """Frames that were not given to a port, and why."""
    truncated: int
    """Frames that left shorter than they were on the wire."""
    retried: RetriedReport
    """Attempts that were repeated because a queue was full or the interface busy."""
    unsent: int
    """Frames that were not sent because they were late, still queued at an interruption, or the
    interface was down."""
    flows: Optional[ReplayFlows]
    """Flows of a replayed capture; null where they were not counted."""
    stamped: Optional[str]
    """Where departures were stamped; null where several ports differ."""
    departures: Optional[DepartureReport]
    """How departures kept to the schedule; null where all was sent as fast as it goes."""
    rate_error_ppm: Optional[float]
    """How far the rate was from the target, in millionths, pauses not counted; null where there is
    no target for all ports together."""
    passes: Optional[int]
    """Passes over the captures that were completed; null of other runs than replays."""
    filtered: Optional[int]
    """Packets of the captures that a filter kept back; null of other runs than replays."""
    underruns: Optional[int]
    """Times that a worker found nothing read yet; null of other runs than replays."""


ClockKind = Literal["real", "virtual"]
"""The clock that a run follows. `real`: The machine's own. `virtual`: A simulation's: time passes
as fast as it is computed."""


@dataclass(frozen=True)
class ConnectionsReport:
    """Connections of a port's clients and servers, and their UDP flows."""

    flows: FlowCountsReport
    """What became of them, and of packets without one."""
    series: FlowSeries
    """Time series."""
    sampled_flows: list[SampledFlow]
    """Those that were sampled."""
    tcp: dict[str, int]
    """TCP counters, by BSD's names: TRex's are the same with `tcps_` before them."""
    udp: dict[str, int]
    """UDP counters, by TRex's names without `udps_` before them."""
    counters: dict[str, int]
    """Counters of programs, A to D: TRex's `user_counter_A` and so on."""
    times: TimesReport
    """Connection times."""
    tls: Optional[TlsReport]
    """TLS, where any of them have it."""
    http1: Optional[Http1Report]
    """Messages of HTTP/1.1, where any of their programs parse them."""
    http2: Optional[Http2Report]
    """HTTP/2, where any of them have it."""


@dataclass(frozen=True)
class DepartureReport:
    """How departures kept to the schedule."""

    stamped: str
    """Where departures were timestamped."""
    start_delay_ns: int
    """Delay of the first frame after its planned time, in nanoseconds."""
    shifted_ns: int
    """Total shift of the schedule after the start, in nanoseconds."""
    regained_ns: int
    """Part of the shift that shorter gaps recovered, in nanoseconds."""
    lateness_max_ns: int
    """Maximum lateness of a frame, in nanoseconds."""
    gaps: HistogramReport
    """Inter-departure times."""
    gap_errors: HistogramReport
    """Absolute error of the inter-departure times."""


@dataclass(frozen=True)
class DeviceReport:
    """One device."""

    name: str
    """Its name: `eth0@1`."""
    interface: str
    """Its interface: `eth0`."""
    thread: int
    """The number of the pktgen thread that it was added to."""
    backend: Optional[str]
    """What carried its frames; null where it sent none."""
    backend_reason: Optional[str]
    """Why that backend."""
    packets: int
    """Frames that left."""
    bytes: int
    """Their bytes without FCS."""
    pps: float
    """Frames per second."""
    bps_l1: float
    """Layer-1 bits a second."""
    bps_l2: float
    """Layer-2 bits a second, with FCS."""
    bps_frames: float
    """Bits a second of the frames without FCS, as tcpreplay counts them."""
    failed: int
    """Frames that did not leave because a port refused them, those in `refused` included."""
    refused: RefusedReport
    """Frames that were not given to a port, and why."""
    truncated: int
    """Frames that left shorter than they were on the wire."""
    retried: RetriedReport
    """Attempts that were repeated because a queue was full or the interface busy."""
    unsent: int
    """Frames that were not sent because they were late, still queued at an interruption, or the
    interface was down."""
    flows: Optional[ReplayFlows]
    """Flows of a replayed capture; null where they were not counted."""
    stamped: Optional[str]
    """Where departures were stamped; null where several ports differ."""
    departures: Optional[DepartureReport]
    """How departures kept to the schedule; null where all was sent as fast as it goes."""
    elapsed_s: float
    """From the common start to its end, in seconds."""
    idle_s: float
    """The part of it in which the device waited."""
    target_pps: Optional[float]
    """Frames a second that were asked for; null where it was as fast as it goes, or bits."""
    target_bps: Optional[float]
    """Bits a second of frames without FCS that were asked for; null where it was as fast as it
    goes, or frames."""
    rate_error_ppm: Optional[float]
    """How far the rate was from the target, in millionths, by the gaps between departures."""
    result: str
    """Text after `Result: ` in the device file."""


@dataclass(frozen=True)
class DeviceRun:
    """What one `start` came to."""

    devices: list[DeviceReport]
    """Each device, thread by thread."""
    stopped: bool
    """Whether the script or a signal stopped it before its end."""


@dataclass(frozen=True)
class DistributionReport:
    """How values in nanoseconds are spread."""

    count: int
    """Number of values."""
    min_ns: Optional[int]
    """Minimum."""
    mean_ns: Optional[float]
    """Mean."""
    p50_ns: Optional[int]
    """Median."""
    p90_ns: Optional[int]
    """90th percentile."""
    p99_ns: Optional[int]
    """99th percentile."""
    p99_9_ns: Optional[int]
    """99.9th percentile."""
    p99_99_ns: Optional[int]
    """99.99th percentile."""
    max_ns: Optional[int]
    """Maximum."""
    buckets: list[tuple[int, int]] = field(repr=False)
    """Lower bound and count of each non-empty bucket."""


@dataclass(frozen=True)
class FailureReport:
    """Flows whose program failed at one step, for one cause."""

    step: str
    """The step, such as `program[2].expect`."""
    cause: str
    """Cause."""
    flows: int
    """Number of flows."""
    offset: Optional[int]
    """Offset of the first difference in bytes, if known."""
    expected: Optional[str]
    """Expected pattern or bytes; non-printable bytes are escaped."""
    found: str
    """Received bytes."""
    found_is_known: bool
    """Whether the received bytes were recorded."""


@dataclass(frozen=True)
class FlowCountsReport:
    """Connections of a port, and flows of UDP."""

    active: int
    """Open flows at the end: the sum of `syn_sent`, `time_wait` and `unfinished`."""
    syn_sent: int
    """Connections without an answer to SYN yet."""
    time_wait: int
    """Connections in TIME-WAIT."""
    time_wait_failed: int
    """Connections in TIME-WAIT whose program or TLS failed."""
    unfinished: int
    """Established flows that have not finished."""
    active_max: int
    """Maximum concurrent flows, including TIME-WAIT."""
    closed: int
    """Connections closed by both sides, and UDP flows whose program ended."""
    failed: int
    """Flows that ended otherwise; the sum of the ten that follow."""
    refused: int
    """Connections refused (RST in answer to SYN) and UDP flows to closed ports."""
    unreachable: int
    """Flows ended by ICMP unreachable."""
    reset: int
    """Connections reset by the peer."""
    reset_after_close: int
    """Connections that the peer closed, and reset when it got more: after an idle timeout, for
    example."""
    unanswered: int
    """Connections without an answer to SYN."""
    timed_out: int
    """Connections ended by the retransmission timeout."""
    keepalive_timeout: int
    """Connections ended by the keepalive timeout."""
    session_failed: int
    """Connections whose TLS or HTTP/2 session failed."""
    program_failed: int
    """Flows whose program failed: received data did not match."""
    idle: int
    """UDP flows ended by the idle timeout."""
    aborted: int
    """Connections reset by the local program."""
    expected_resets: int
    """Connections reset by the peer as the program expects."""
    reconnected: int
    """Connections that replaced one that the server had closed between two requests."""
    reset_at_end: int
    """Connections that were open when the run ended, and were reset."""
    left_open: int
    """Connections that were open when the run ended, and could not be reset in time."""
    overflow: int
    """Flows rejected because the flow table was full."""
    tuple_in_use: int
    """Flows not started: no free address and port."""
    skipped: int
    """Flows skipped because `at_most` was reached."""
    late: int
    """Flows not started within 1 s of their due time, or before the end."""
    switched_off: int
    """Flows skipped because all clients were disabled."""
    no_flow: int
    """Segments and datagrams without a flow."""
    foreign_mac: int
    """Unmatched packets to a foreign MAC address; not answered."""
    martian: int
    """Unmatched packets with martian addresses or UDP port 0; not answered."""
    no_template: int
    """SYNs to ports without a listener."""
    no_match: int
    """Connections whose first bytes match no server."""
    too_long: int
    """Segments not sent: longer than a frame."""
    flows_total: int
    """Child flows that programs started."""
    flows_other: int
    """Child flows of another template."""
    fragments: int
    """IP fragments received."""
    reassembled: int
    """Packets reassembled."""
    fragments_incomplete: int
    """Reassembly timeouts (60 s, or end of the run)."""
    fragments_overlapping: int
    """Packets dropped because fragments overlap (RFC 5722)."""
    fragments_no_room: int
    """Packets dropped because the reassembly buffer was full."""
    too_big: int
    """ICMP Packet Too Big received."""
    unreachable_heard: int
    """ICMP destination unreachable received."""
    unreachable_sent: int
    """ICMP port or protocol unreachable sent, at most 1,000 per second."""
    time_exceeded_sent: int
    """ICMP reassembly time exceeded sent."""
    damaged: int
    """Malformed or truncated packets."""
    other_protocol: int
    """Packets of unsupported IP protocols (not ARP, ND or ICMP echo)."""


@dataclass(frozen=True)
class FlowReport:
    """One flow."""

    name: str
    """Name in the plan."""
    tx: str
    """Port that sends the flow."""
    rx: list[str]
    """Ports that receive the flow."""
    packets: int
    """Frames sent."""
    bytes: int
    """Their bytes without FCS."""
    unsent: int
    """Frames dropped because they were late."""
    pps: float
    """Frames per second."""
    bps_l1: float
    """Layer-1 bits a second."""
    bps_l2: float
    """Layer-2 bits a second, with FCS."""
    target_pps: Optional[float]
    """Frames a second that were asked for; null where it was as fast as it goes, or bits."""
    target_bps: Optional[float]
    """Target rate in bit/s; null for top speed or a frame rate."""
    target_layer: Optional[str]
    """What `target_bps` counts: `frames`, `l2` or `l1`."""
    rate_error_ppm: Optional[float]
    """Relative rate error in parts per million; only for continuous flows without commands."""
    lost: Optional[int]
    """Lost frames; null if the flow is not measured."""
    loss_percent: Optional[float]
    """Lost frames in percent of sent frames."""
    measured: list[MeasuredReport]
    """Measurement of each receiving port."""


@dataclass(frozen=True)
class FlowSample:
    """A connection at a moment."""

    at_s: float
    """Time in seconds since the start of the run."""
    state: str
    """TCP state (RFC 9293)."""
    mss: int
    """Maximum segment size in bytes."""
    cwnd: int
    """The congestion window, in bytes."""
    ssthresh: Optional[int]
    """Slow start threshold in bytes; null before the first loss."""
    send_window: int
    """Send window in bytes."""
    receive_window: int
    """Receive window in bytes."""
    send_scale: Optional[int]
    """Send window scale; null without window scaling."""
    receive_scale: Optional[int]
    """Receive window scale."""
    timestamps: bool
    """Whether TCP timestamps are in use."""
    sack: bool
    """Use SACK (RFC 2018)."""
    ecn: bool
    """Whether ECN is in use."""
    silent_ms: Optional[int]
    """Time since the last received segment in milliseconds; null without keepalive and
    timestamps."""
    backlog: int
    """Unacknowledged bytes."""
    unsent: int
    """Bytes not sent yet."""
    rtt_us: Optional[int]
    """Smoothed RTT in microseconds; null before the first sample."""
    rttvar_us: Optional[int]
    """RTT variation in microseconds."""
    rtt_min_us: Optional[int]
    """Minimum RTT in microseconds."""
    rto_us: int
    """The retransmission timeout in microseconds."""
    retransmitted: int
    """Retransmitted data segments, at most 255 per millisecond."""
    out_of_order: int
    """Out-of-order data segments received, at most 255 per millisecond."""
    acknowledged_bytes: int
    """Payload bytes acknowledged."""
    received_bytes: int
    """Payload bytes received in sequence."""


@dataclass(frozen=True)
class FlowSeries:
    """What happened to flows over time, in intervals of equal length from the start of the run."""

    interval_s: float
    """Interval length in seconds."""
    last_s: float
    """Length of the last interval in seconds."""
    opened: list[int]
    """Flows started in each interval."""
    held: list[int]
    """Concurrent flows at the end of each interval, without TIME-WAIT."""
    closed: list[int]
    """Flows closed in each interval, including resets by the program."""
    failed: list[int]
    """Flows failed in each interval."""
    sent_bytes: list[int]
    """Payload bytes sent in each interval, without retransmissions."""
    acknowledged_bytes: list[int]
    """Payload bytes acknowledged in each interval (TCP)."""
    sent_goodput_bps: list[float]
    """Transmit goodput in bit/s."""
    received_bytes: list[int]
    """Payload bytes received in sequence in each interval."""
    goodput_bps: list[float]
    """Receive goodput in bit/s."""


@dataclass(frozen=True)
class GroupReport:
    """The clients or the servers of all templates of a group, told as those of one template are."""

    templates: int
    """Number of templates in the group."""
    name: str
    """Name in the plan."""
    group: Optional[str]
    """Group in the plan."""
    side: str
    """`client` or `server`."""
    flows: dict[str, int]
    """Flow counts by name. `active_max` of a group is the sum over its templates, an upper
    bound."""
    series: FlowSeries
    """Time series."""
    tcp: dict[str, int]
    """TCP counters."""
    udp: dict[str, int]
    """UDP counters."""
    counters: dict[str, int]
    """Program counters."""
    times: TimesReport
    """Connection times."""
    stamped: Optional[StampedReport]
    """Datagram latency (TRex add-on `latency`)."""
    transactions: list[TransactionReport]
    """Transactions in program order."""
    failures: list[FailureReport]
    """Program failures by step and cause."""
    tls: Optional[TlsReport]
    """TLS statistics."""
    http1: Optional[Http1Report]
    """HTTP/1.1 statistics."""
    http2: Optional[Http2Report]
    """HTTP/2 statistics."""


@dataclass(frozen=True)
class HistogramReport:
    """A histogram in nanoseconds; of nothing, its quantiles are null."""

    count: int
    """Number of values."""
    p50_ns: Optional[int]
    """Median."""
    p90_ns: Optional[int]
    """90th percentile."""
    p99_ns: Optional[int]
    """99th percentile."""
    p99_9_ns: Optional[int]
    """99.9th percentile."""
    max_ns: Optional[int]
    """Maximum."""
    buckets: list[tuple[int, int]] = field(repr=False)
    """Lower bound and count of each non-empty bucket."""


@dataclass(frozen=True)
class HostFacts:
    """The machine that ran a run."""

    name: str
    """File name."""
    kernel: str
    """The release of its kernel, as `uname -r` prints it."""
    architecture: str
    """The architecture of the program."""
    cpus: int
    """CPUs that the run could use."""


@dataclass(frozen=True)
class Http1Report:
    """Messages of HTTP/1.1, within TLS or not, that programs have received as such."""

    requests: int
    """Requests received by servers."""
    responses: dict[str, int]
    """Final responses received by clients, by status class (`2xx`)."""
    missing: int
    """Responses not received completely because the connection failed."""


@dataclass(frozen=True)
class Http2Report:
    """What became of HTTP/2."""

    requests: int
    """Requests sent by clients or received by servers."""
    responses: dict[str, int]
    """Responses sent by servers or received by clients, by status class (`2xx`)."""
    resets: int
    """Streams reset."""
    failures: dict[str, int]
    """Failed HTTP/2 connections by cause."""


@dataclass(frozen=True)
class ImpairmentReport:
    """Frames that a port was to send on an impaired link. Every frame that entered, and every copy,
    is in exactly one of `lost`, `queue_dropped`, `no_room`, `delivered` and `held`."""

    from_: Optional[str]
    """The port that frames came from, where they arrived at another one."""
    entered: int
    """Frames that entered the link."""
    entered_bytes: int
    """Their bytes without FCS."""
    lost: int
    """Frames lost at random."""
    duplicated: int
    """Duplicates created."""
    corrupted: int
    """Frames with a flipped bit."""
    queue_dropped: int
    """Frames dropped because the queue was full."""
    no_room: int
    """Frames dropped because the delay buffer was full."""
    delivered: int
    """Frames and copies that left the link."""
    delivered_bytes: int
    """Their bytes without FCS."""
    reordered: int
    """Those of them that left behind a frame that had entered later."""
    held: int
    """Frames and copies still on the link at the end, which were dropped."""
    unfit: int
    """Frames that did not enter: longer than this port takes, or shorter than a header."""
    lateness: Optional[HistogramReport]
    """How late frames left, compared with the impairments asked for; null where the link is part of
    the sending port."""


Kind = Literal["replay", "streams", "emulation", "impair", "pktgen"]
"""The kind of a run. `replay`: Captures are replayed. `streams`: The flows of a plan of streams are
sent. `emulation`: Clients and servers are emulated. `impair`: Two interfaces are joined by an
impaired link. `pktgen`: A pktgen script runs."""


@dataclass(frozen=True)
class LatencyReport:
    """Questions of a port to one host: round-trip delays (RFC 2681)."""

    port: str
    """Source port."""
    target: str
    """Destination address."""
    protocol: str
    """Probe protocol: `icmp` or `udp`."""
    target_port: Optional[int]
    """UDP destination port."""
    rate_pps: float
    """Target rate in probes per second."""
    sent: int
    """Probes sent."""
    received: int
    """Probes answered."""
    lost: int
    """Probes not answered within 1 s."""
    duplicated: int
    """Duplicate replies."""
    reordered: int
    """Replies reordered (RFC 4737)."""
    unsent: int
    """Probes that could not be sent in time."""
    round_trip: DistributionReport
    """Round-trip time (RFC 2681)."""
    jitter_ns: int
    """Interarrival jitter of round trips in nanoseconds (RFC 3550 section 6.4.1)."""


@dataclass(frozen=True)
class MeasuredReport:
    """What was measured of a flow on one port."""

    port: str
    """The port's name in the plan."""
    received: int
    """Distinct frames received."""
    received_bytes: int
    """Bytes received without FCS, duplicates included."""
    missing: int
    """Frames before the last received one that have not arrived."""
    gaps: int
    """Loss periods (RFC 3357)."""
    duplicated: int
    """Duplicates (RFC 5560)."""
    reordered: int
    """Frames that arrived after one sent later (RFC 4737 section 3.3)."""
    reordering_extent_max: int
    """Maximum reordering extent in frames (RFC 4737 section 4.2)."""
    n_reordered: list[int]
    """n-reordered frames for each n from 1 (RFC 4737 section 5); TCP treats n = 3 as loss."""
    too_late: int
    """Frames outside the sequence window: late or duplicate."""
    corrupt: Optional[int]
    """Frames with a changed payload; null if payloads were not compared."""
    stale: int
    """Frames of an earlier run; counted nowhere else."""
    pps: float
    """Received frames per second."""
    delay: DistributionReport
    """One-way delay."""
    pdv: VariationReport
    """Packet delay variation: delay minus the minimum delay (RFC 5481 section 4.2)."""
    ipdv: DistributionReport
    """Inter-packet delay variation: difference to the previous frame's delay (RFC 5481 section
    4.1)."""
    jitter_ns: int
    """Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); maximum of all workers."""
    series: Optional[SeriesReport]
    """Time series."""
    tags: list[TagReport]
    """Received frames for each VLAN."""


Outcome = Literal["met", "failed", "fell_short", "interrupted"]
"""What came of a run. `met`: All that was asked for was done. `failed`: Something failed while it
ran; what was measured before stands. `fell_short`: It ran, but fell short of what was asked for, or
frames or connections were lost. `interrupted`: It was stopped before its end, and had not fallen
short by then."""


@dataclass(frozen=True)
class PortReport:
    """One port."""

    name: str
    """Its name in the plan; its interface where the plan has no names."""
    interface: str
    """Its interface, or the file that it wrote."""
    backend: Optional[str]
    """What carried the frames that it sent; null where it sent none."""
    backend_reason: Optional[str]
    """Why that backend."""
    tx: Optional[TransmitReport]
    """What it sent; null where it was not to send."""
    rx: Optional[ReceiveReport]
    """What arrived; null where arrivals were not counted."""
    connections: Optional[ConnectionsReport]
    """Connections of its clients and servers, and their UDP flows."""
    templates: list[TemplateReport]
    """The clients or servers of each template that it has."""
    impairment: Optional[ImpairmentReport]
    """What happened to the frames that it was to send on an impaired link."""
    tunnels: Optional[TunnelsReport]
    """What happened to frames in tunnels."""
    outages: int
    """How often the interface was down."""
    down_s: float
    """How long it was down, in seconds; 0 too where that was over before it was noticed."""
    cpu_s: Optional[float]
    """CPU time of the worker of this port, in seconds; null where workers serve several ports."""
    ingress_cpu_s: Optional[float]
    """CPU time that a program at the interface's ingress took on the CPUs of the senders, in
    seconds. Known where the kernel measures it (`sysctl kernel.bpf_stats_enabled=1`)."""


@dataclass(frozen=True)
class QueueReport:
    """What arrived on one queue or CPU."""

    queue: int
    """The CPU's or queue's number."""
    packets: int
    """Frames."""
    bytes: int
    """Their bytes without FCS."""
    elapsed_s: float
    """From its first frame to its last, in seconds."""
    pps: float
    """Frames per second."""


@dataclass(frozen=True)
class ReceiveReport:
    """What arrived."""

    backend: Optional[str]
    """What received the frames; null where the sending port's backend did."""
    backend_reason: Optional[str]
    """Why that backend."""
    stamped: Optional[str]
    """Where arrivals were stamped; null where they were not timed."""
    packets: int
    """Frames received."""
    bytes: int
    """Their bytes without FCS."""
    elapsed_s: Optional[float]
    """From the first arrival to the last, in seconds; null where arrivals were not timed."""
    pps: Optional[float]
    """Frames a second: intervals between arrivals over the time they took."""
    bps_l2: Optional[float]
    """Layer-2 bits a second, with FCS."""
    dropped: int
    """Frames dropped because the receive buffer was full; not counted as lost."""
    lost: Optional[int]
    """Frames sent that did not arrive; null where that is not known for the port."""
    loss_percent: Optional[float]
    """Lost frames in percent of sent frames."""
    unexpected: Optional[int]
    """Frames that arrived beyond those sent: other hosts sent them. Always 0 with verification,
    which tells them apart."""
    unsigned: Optional[int]
    """Frames without a signature of a measured flow: of other flows, of other hosts, damaged in the
    signature or cut before it; null where nothing was measured."""
    wrong_port: Optional[int]
    """Frames with the signature of a flow that should arrive at another port."""
    neighbour_packets: int
    """Received ARP and neighbour discovery frames."""
    verify: Optional[VerifyReport]
    """What verification found; null where it was not asked for."""
    gaps: Optional[HistogramReport]
    """Time between arrivals; null where not all were timed."""
    queue_kind: Optional[str]
    """What `queues` are: `cpu` or `queue`; null where there are none."""
    queues: list[QueueReport]
    """Arrivals by CPU or queue."""
    error: Optional[str]
    """Error that stopped receiving."""


@dataclass(frozen=True)
class RefusedReport:
    """Frames that no port could send."""

    too_long: int
    """Longer than the interface supports."""
    too_long_max: int
    """Length of the longest of them, in bytes."""
    too_short: int
    """Shorter than an Ethernet header."""
    unconvertible: int
    """Link type without conversion to Ethernet."""


@dataclass(frozen=True)
class ReplayFlows:
    """Flows: packets of one direction with equal addresses, ports, protocol and VLAN."""

    count: int
    """Flows started."""
    per_second: float
    """Flows started per second."""
    expired: int
    """Flows restarted after the expiry; included in `flows`."""
    flow_packets: int
    """Packets that belong to a flow."""
    non_flow_packets: int
    """Packets that are not IP."""
    invalid_packets: int
    """Packets with truncated or inconsistent headers."""


@dataclass(frozen=True)
class RetriedReport:
    """Attempts that were repeated."""

    no_buffers: int
    """The kernel had no buffers (`ENOBUFS`)."""
    again: int
    """The interface was busy (`EAGAIN`)."""


@dataclass(frozen=True)
class SampledFlow:
    """A flow that was followed."""

    template: str
    """The name of its template."""
    side: str
    """`client` or `server`."""
    transport: str
    """`tcp` or `udp`."""
    own: str
    """Local address and port."""
    peer: str
    """Remote address and port."""
    began_s: float
    """Start time in seconds since the start of the run."""
    ended: bool
    """Whether the flow is closed or in TIME-WAIT."""
    samples: list[FlowSample]
    """State at the start, at the end of each interval and at the close; empty for UDP."""


@dataclass(frozen=True)
class SeriesReport:
    """What happened in intervals of equal length from the start of the run."""

    interval_s: float
    """Interval length in seconds."""
    packets: list[int]
    """Frames received in each interval."""
    bytes: list[int]
    """Their bytes without FCS."""
    missing: list[int]
    """Frames found missing in each interval that have not arrived since."""
    delay_mean_ns: list[Optional[float]]
    """Mean delay of each interval in nanoseconds; null without arrivals."""
    delay_max_ns: list[Optional[int]]
    """Maximum."""


@dataclass(frozen=True)
class StampedReport:
    """Delay of datagrams that carry their departure time: the round trip at the side that sent
    first, the one-way delay at the other. One-way delays need both sides on one machine, as no
    clock is synchronised. Longer than half an hour, or negative: not counted."""

    datagrams: int
    """Number of datagrams."""
    total_us: int
    """Sum of the latencies in microseconds."""
    min_us: Optional[int]
    """Minimum latency in microseconds."""
    max_us: Optional[int]
    """Maximum latency in microseconds."""
    times: HistogramReport
    """Latency histogram; empty before the end of the run."""


@dataclass(frozen=True)
class TagReport:
    """What arrived of a flow under the same VLAN tags. Its frames are numbered through the whole
    flow, so that those which arrived under other tags are missing here."""

    vlans: list[int]
    """VLAN IDs, outer first; empty for untagged frames."""
    packets: int
    """Arrivals, further copies included."""
    bytes: int
    """Their bytes without FCS."""
    missing: int
    """Frames before the last one in this VLAN that did not arrive in it."""
    gaps: int
    """Loss periods."""
    duplicated: int
    """Arrivals of a frame beyond its first one."""
    reordered: int
    """Frames that arrived after one sent later."""
    too_late: int
    """Frames more than 64 frames late: late or duplicate."""


@dataclass(frozen=True)
class Target:
    """What was asked for; null is "not"."""

    pace: Optional[Literal["topspeed", "capture", "pps", "bps"]]
    """What sets the pace of a replay: nothing, the capture's own timing, frames or bits a
    second."""
    multiplier: Optional[float]
    """Speed-up of the capture's own timing, or of the plan's rates."""
    pps: Optional[float]
    """Frames per second."""
    bps: Optional[float]
    """Bits a second."""
    bps_layer: Optional[str]
    """What `bps` counts: `frames`, `l2` or `l1`."""
    packets: Optional[int]
    """Stop after N frames."""
    duration_s: Optional[float]
    """Seconds."""
    passes: Optional[int]
    """Number of loops."""
    seed: Optional[int]
    """Where random numbers come from."""
    tolerance_ppm: float
    """How far a rate may be off before the run falls short of its target, in millionths."""


@dataclass(frozen=True)
class TemplateReport:
    """The clients or the servers of a template."""

    name: str
    """Name in the plan."""
    group: Optional[str]
    """Group in the plan."""
    side: str
    """`client` or `server`."""
    flows: dict[str, int]
    """Flow counts by name. `active_max` of a group is the sum over its templates, an upper
    bound."""
    series: FlowSeries
    """Time series."""
    tcp: dict[str, int]
    """TCP counters."""
    udp: dict[str, int]
    """UDP counters."""
    counters: dict[str, int]
    """Program counters."""
    times: TimesReport
    """Connection times."""
    stamped: Optional[StampedReport]
    """Datagram latency (TRex add-on `latency`)."""
    transactions: list[TransactionReport]
    """Transactions in program order."""
    failures: list[FailureReport]
    """Program failures by step and cause."""
    tls: Optional[TlsReport]
    """TLS statistics."""
    http1: Optional[Http1Report]
    """HTTP/1.1 statistics."""
    http2: Optional[Http2Report]
    """HTTP/2 statistics."""


@dataclass(frozen=True)
class Times:
    """When a run began, and how long it took."""

    started_unix_ns: Optional[int]
    """The start, in nanoseconds since the Unix epoch; null in virtual time."""
    elapsed_s: float
    """From the first departure to the last, in seconds: rates are those of the intervals between
    departures over this time. Of emulated clients and servers, from the start until the last port
    ended."""
    paused_s: float
    """The part of it in which nothing was to be sent: pauses between passes, and while the run was
    paused."""
    load_s: Optional[float]
    """Of emulated clients and servers, from the start until no more connections were to be made:
    limits were reached, and the interval of the last one was over, which may be later than the end;
    or the duration was over. Without clients, until the last one came. In seconds."""


@dataclass(frozen=True)
class TimesReport:
    """How long connections took, from when SYN was to be sent, or arrived."""

    connect: HistogramReport
    """Time to establish the connection."""
    first_byte: HistogramReport
    """Time to the first payload byte."""
    whole: HistogramReport
    """Connection duration, without TIME-WAIT."""
    round_trip: HistogramReport
    """TCP round-trip time samples."""


@dataclass(frozen=True)
class TlsReport:
    """TLS of a port."""

    full: int
    """Full handshakes."""
    resumed: int
    """Resumed handshakes."""
    truncated: int
    """Connections closed by the peer without close_notify."""
    failures: dict[str, int]
    """Failed TLS connections by cause."""
    handshake: HistogramReport
    """Handshake duration."""


@dataclass(frozen=True)
class TransactionReport:
    """Transactions of one name."""

    name: str
    """Name in the program."""
    started: int
    """Transactions started; `time.count` of them finished."""
    min_ns: Optional[int]
    """Minimum; null without finished transactions."""
    mean_ns: Optional[int]
    """Mean; null without finished transactions."""
    time: HistogramReport
    """Duration."""


@dataclass(frozen=True)
class TransmitReport:
    """What was sent."""

    packets: int
    """Frames that left."""
    bytes: int
    """Their bytes without FCS."""
    pps: float
    """Frames per second."""
    bps_l1: float
    """Layer-1 bits a second."""
    bps_l2: float
    """Layer-2 bits a second, with FCS."""
    bps_frames: float
    """Bits a second of the frames without FCS, as tcpreplay counts them."""
    failed: int
    """Frames that did not leave because a port refused them, those in `refused` included."""
    refused: RefusedReport
    """Frames that were not given to a port, and why."""
    truncated: int
    """Frames that left shorter than they were on the wire."""
    retried: RetriedReport
    """Attempts that were repeated because a queue was full or the interface busy."""
    unsent: int
    """Frames that were not sent because they were late, still queued at an interruption, or the
    interface was down."""
    flows: Optional[ReplayFlows]
    """Flows of a replayed capture; null where they were not counted."""
    stamped: Optional[str]
    """Where departures were stamped; null where several ports differ."""
    departures: Optional[DepartureReport]
    """How departures kept to the schedule; null where all was sent as fast as it goes."""


@dataclass(frozen=True)
class TunnelsReport:
    """What became of frames in tunnels of GTP-U, where a port has any."""

    encapsulated: int
    """Frames encapsulated."""
    decapsulated: int
    """Frames decapsulated."""
    dropped: int
    """Frames dropped: the sum of the eleven reasons below."""
    no_tunnel: int
    """Frames dropped because no tunnel matches."""
    too_long: int
    """Frames dropped because they exceed the MTU with the tunnel headers."""
    bad_ip: int
    """Frames with a bad outer IP header."""
    bad_checksum: int
    """Frames with a bad outer UDP checksum."""
    fragments: int
    """Fragments of outer packets."""
    not_udp: int
    """Outer packets that are not UDP."""
    other_port: int
    """Datagrams to another port than 2152."""
    other_message: int
    """GTP messages that are not G-PDU version 1."""
    cut_short: int
    """Truncated frames."""
    bad_inner: int
    """Tunnels whose payload is not IP."""
    not_ecn_capable: int
    """Packets dropped: CE in the outer header, inner packet not ECN-capable (RFC 6040)."""


@dataclass(frozen=True)
class VariationReport:
    """How far delays are above the least one, in nanoseconds."""

    mean_ns: Optional[float]
    """Mean."""
    p50_ns: Optional[int]
    """Median."""
    p99_ns: Optional[int]
    """99th percentile."""
    p99_9_ns: Optional[int]
    """99.9th percentile."""
    max_ns: Optional[int]
    """Maximum."""


@dataclass(frozen=True)
class Verdict:
    """Whether a run did what was asked for."""

    outcome: Outcome
    """The answer."""
    reasons: list[str]
    """Why it is not `met`, one sentence each."""


@dataclass(frozen=True)
class VerifyReport:
    """Content and order of what arrived."""

    intact: int
    """Frames that arrived unchanged."""
    reordered: int
    """Intact frames that arrived after one sent later (RFC 4737)."""
    reordering_extent_max: int
    """Maximum reordering extent (RFC 4737 section 4.2)."""
    duplicated: int
    """Duplicates."""
    unexpected: int
    """Received frames that match no sent frame."""
    unverified: int
    """Frames not tracked because the table of outstanding frames was full."""


@dataclass(frozen=True)
class RunResult:
    """The result of a run."""

    schema: str
    """The name and version of this document's form."""
    version: str
    """The version of Wirestorm that ran."""
    kind: Kind
    """The kind of the run."""
    clock: ClockKind
    """Which clock the run followed."""
    plan: list[str]
    """The plan's file, or the captures that were replayed."""
    verdict: Verdict
    """Whether the run did what was asked for, and if not, why."""
    target: Target
    """Target of the run."""
    achieved: Achieved
    """What was sent, all ports together."""
    times: Times
    """When the run began, and how long it took."""
    host: HostFacts
    """The machine that ran it."""
    interrupted: bool
    """Whether the run was stopped before its end."""
    errors: list[str]
    """Errors; results measured before them are valid."""
    notes: list[str]
    """What the reader should know."""
    ports: list[PortReport]
    """Each port that sent or received."""
    flows: list[FlowReport]
    """Each flow of a plan of streams, in the plan's order."""
    groups: list[GroupReport]
    """Sums of the templates of each group over all ports."""
    latency: list[LatencyReport]
    """Round-trip times that the plan's probes measured."""
    device_runs: list[DeviceRun]
    """Each start of the devices of a pktgen script, in order."""
