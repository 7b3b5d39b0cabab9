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
    """Frames a second."""
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
    """What became of them over time."""
    sampled_flows: list[SampledFlow]
    """Those that were sampled."""
    tcp: dict[str, int]
    """TCP counters, by BSD's names: TRex's are the same with `tcps_` before them."""
    udp: dict[str, int]
    """UDP counters, by TRex's names without `udps_` before them."""
    counters: dict[str, int]
    """Counters of programs, A to D: TRex's `user_counter_A` and so on."""
    times: TimesReport
    """How long connections took."""
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
    """Where departures were stamped."""
    start_delay_ns: int
    """How much later than planned the first frame left, in nanoseconds."""
    shifted_ns: int
    """How far the schedule had to be moved after that, in nanoseconds."""
    regained_ns: int
    """How much of that was made up for by gaps a little shorter, in nanoseconds."""
    lateness_max_ns: int
    """The latest that a frame left after it was due, in nanoseconds."""
    gaps: HistogramReport
    """Time between departures."""
    gap_errors: HistogramReport
    """How far each gap was from the one scheduled, either way."""


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
    """Frames a second."""
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
    """What its file shows behind `Result: `."""


@dataclass(frozen=True)
class DeviceRun:
    """What one `start` came to."""

    devices: list[DeviceReport]
    """Each device, thread by thread."""
    stopped: bool
    """Whether it was ended before all was sent: by the script, or by a signal."""


@dataclass(frozen=True)
class DistributionReport:
    """How values in nanoseconds are spread."""

    count: int
    """Values counted."""
    min_ns: Optional[int]
    """The least."""
    mean_ns: Optional[float]
    """The mean."""
    p50_ns: Optional[int]
    """Median."""
    p90_ns: Optional[int]
    """90 of 100 are at most this."""
    p99_ns: Optional[int]
    """99 of 100 are at most this."""
    p99_9_ns: Optional[int]
    """999 of 1,000 are at most this."""
    p99_99_ns: Optional[int]
    """9,999 of 10,000 are at most this."""
    max_ns: Optional[int]
    """The greatest."""
    buckets: list[tuple[int, int]] = field(repr=False)
    """Start of each bucket that is not empty, and its count."""


@dataclass(frozen=True)
class FailureReport:
    """Flows whose program failed at one step, for one cause."""

    step: str
    """The step, such as `program[2].expect`."""
    cause: str
    """Why."""
    flows: int
    """How many flows."""
    offset: Optional[int]
    """Of the first of them: where what came was not what was expected, in bytes, if that is
    known."""
    expected: Optional[str]
    """What was expected: a pattern, or bytes from a little before there on. Bytes that are no
    printable ASCII are escaped."""
    found: str
    """What came."""
    found_is_known: bool
    """Whether that is known: a program that looks at no bytes keeps none."""


@dataclass(frozen=True)
class FlowCountsReport:
    """Connections of a port, and flows of UDP."""

    active: int
    """Flows that were still there in the end; the sum of `syn_sent`, `time_wait` and `unfinished`.
    The first and the last of these are told then alone."""
    syn_sent: int
    """Connections whose SYN nobody had answered by then, and that were not given up yet."""
    time_wait: int
    """Connections in TIME-WAIT: both sides had closed them."""
    time_wait_failed: int
    """Those of them whose program or TLS has failed: they would be among those that failed when
    TIME-WAIT is over."""
    unfinished: int
    """Flows that had begun and were not over."""
    active_max: int
    """The most at once, those in TIME-WAIT included."""
    closed: int
    """Connections that both sides closed, and flows of UDP whose program ended."""
    failed: int
    """Flows that ended otherwise; the sum of the ten that follow."""
    refused: int
    """Connections that the peer reset in answer to SYN, and flows to ports where it has nobody."""
    unreachable: int
    """Flows of which a router or a host said that no way leads to the peer."""
    reset: int
    """Connections that the peer reset later."""
    reset_after_close: int
    """Connections that the peer closed, and reset when it got more: after an idle timeout, for
    example."""
    unanswered: int
    """Connections of which SYN was never answered."""
    timed_out: int
    """Connections of which nothing was acknowledged any more."""
    vanished: int
    """Connections whose peer did not answer keepalive probes."""
    session_failed: int
    """Connections whose TLS failed."""
    program_failed: int
    """Flows whose program failed: something else came than it expects."""
    idle: int
    """Flows of UDP that were dropped for want of traffic."""
    aborted: int
    """Connections that their program reset, as it says."""
    reset_meant: int
    """Connections that the peer reset, as its program says."""
    reconnected: int
    """Connections that replaced one that the server had closed between two requests."""
    reset_at_end: int
    """Connections that were open when the run ended, and were reset."""
    left_open: int
    """Connections that were open when the run ended, and could not be reset in time."""
    overflow: int
    """Flows that could not be made or taken, for there were too many."""
    tuple_in_use: int
    """Flows that could not be made, for their addresses and ports were in use."""
    skipped: int
    """Flows that were due and not made, for as many were there as there may be at once
    (`at_most`)."""
    late: int
    """Flows that were due and not made, for there was no time for them."""
    switched_off: int
    """Flows that were due and not made, for all clients were switched off."""
    no_flow: int
    """Segments and datagrams of no flow."""
    for_others: int
    """Segments and datagrams of no flow to Ethernet addresses of others, or of groups; they are
    neither answered nor part of `no_flow` and `no_template`."""
    impossible: int
    """Segments and datagrams of no flow from or to addresses that no host has, or from port 0 of
    UDP, which are not answered either."""
    no_template: int
    """Connections asked for at ports where nobody listens."""
    no_match: int
    """Connections whose first bytes no server waits for."""
    too_long: int
    """Segments that did not fit a frame, and were not sent."""
    flows_total: int
    """Flows that programs of these have asked for, and that were made."""
    flows_other: int
    """Those of them that are of another template."""
    fragments: int
    """Fragments of packets that arrived."""
    reassembled: int
    """Packets that were put together out of them."""
    fragments_incomplete: int
    """Packets of which fragments were missing for 60 seconds, or in the end."""
    fragments_overlapping: int
    """Packets whose fragments overlapped, and that were passed over."""
    fragments_no_room: int
    """Packets in fragments that were given up, as too many were incomplete."""
    too_big: int
    """Messages of routers that a packet was too long for the next link."""
    unreachable_heard: int
    """Messages that a peer, or who waits at a port of it, cannot be reached."""
    unreachable_sent: int
    """Messages to peers that nobody waits at a port of ours, or speaks a protocol, of which 1,000 a
    second are sent."""
    time_exceeded_sent: int
    """Messages to peers that not all fragments of a packet came in time."""
    damaged: int
    """Packets that were damaged or cut short."""
    other_protocol: int
    """Packets of other protocols; ARP, neighbour discovery and pings are none of them."""


@dataclass(frozen=True)
class FlowReport:
    """One flow."""

    name: str
    """Its name in the plan."""
    tx: str
    """The port that it left."""
    rx: list[str]
    """The ports where it should arrive."""
    packets: int
    """Frames given to the port."""
    bytes: int
    """Their bytes without FCS."""
    unsent: int
    """Frames left out because they were late."""
    pps: float
    """Frames a second."""
    bps_l1: float
    """Layer-1 bits a second."""
    bps_l2: float
    """Layer-2 bits a second, with FCS."""
    target_pps: Optional[float]
    """Frames a second that were asked for; null where it was as fast as it goes, or bits."""
    target_bps: Optional[float]
    """Bits a second that were asked for; none where it was as fast as it goes, or frames."""
    target_layer: Optional[str]
    """What `target_bps` counts: `frames`, `l2` or `l1`."""
    rate_error_ppm: Optional[float]
    """How far the rate was from what was asked, in millionths; for continuous flows that were not
    told something else while they were sent."""
    lost: Optional[int]
    """Frames that left and arrived nowhere; none where the flow is not measured."""
    loss_percent: Optional[float]
    """The same in hundredths of what left."""
    measured: list[MeasuredReport]
    """What was measured on each port where it should arrive."""


@dataclass(frozen=True)
class FlowSample:
    """A connection at a moment."""

    at_s: float
    """When, in seconds from the start of the run."""
    state: str
    """Its state, as RFC 9293 names it."""
    mss: int
    """The longest data of a segment, in bytes."""
    cwnd: int
    """The congestion window, in bytes."""
    ssthresh: Optional[int]
    """Where slow start ends, in bytes; none before the first loss."""
    send_window: int
    """What the peer has room for, in bytes."""
    receive_window: int
    """What we have room for, in bytes."""
    send_scale: Optional[int]
    """By how many bits the peer's windows are shifted; none where windows are not scaled."""
    receive_scale: Optional[int]
    """By how many bits ours are."""
    timestamps: bool
    """Whether timestamps were agreed upon."""
    sack: bool
    """Whether losses are told by SACK."""
    ecn: bool
    """Whether ECN was agreed upon."""
    silent_ms: Optional[int]
    """How long ago the peer was heard, in milliseconds; none where keepalive is off and there are
    no timestamps."""
    backlog: int
    """Bytes that the program has handed over and that are not acknowledged."""
    unsent: int
    """Those of them that were never sent."""
    rtt_us: Optional[int]
    """The smoothed round-trip time in microseconds; none before the first was measured."""
    rttvar_us: Optional[int]
    """How much round trips vary, in microseconds."""
    rtt_min_us: Optional[int]
    """The least round-trip time in microseconds."""
    rto_us: int
    """The retransmission timeout in microseconds."""
    retransmitted: int
    """Segments with data sent again. Of those within a millisecond, or 10 us for each flow that is
    followed where that is more, 255 are told at most."""
    out_of_order: int
    """Segments with data that arrived beyond a hole, of which as many are told at most."""
    acknowledged_bytes: int
    """Bytes that were acknowledged."""
    received_bytes: int
    """Bytes that were received in sequence."""


@dataclass(frozen=True)
class FlowSeries:
    """What happened to flows over time, in intervals of equal length from the start of the run."""

    interval_s: float
    """How long each interval is, in seconds."""
    last_s: float
    """How long the last one is, in which the run ended: up to a tenth longer than the others, with
    what would be too short to have rates of its own."""
    opened: list[int]
    """Flows that began in each."""
    held: list[int]
    """Flows at the end of each, those in TIME-WAIT not counted."""
    closed: list[int]
    """Flows that ended in each as they should, those included whose programs reset them. One that
    was in TIME-WAIT ends with that, and is no more among those held before."""
    failed: list[int]
    """Flows that ended otherwise."""
    sent_bytes: list[int]
    """Bytes of data sent in each, repeats not included."""
    acknowledged_bytes: list[int]
    """Bytes of data that the peers acknowledged in each, over TCP."""
    sent_goodput_bps: list[float]
    """The same in bits a second: goodput of what was sent."""
    received_bytes: list[int]
    """Bytes of data received in sequence in each."""
    goodput_bps: list[float]
    """The same in bits a second: goodput of what was received."""


@dataclass(frozen=True)
class GroupReport:
    """The clients or the servers of all templates of a group, told as those of one template are."""

    templates: int
    """How many templates are in it."""
    name: str
    """Its name in the plan."""
    group: Optional[str]
    """Its group there."""
    side: str
    """`client` or `server`."""
    flows: dict[str, int]
    """What became of its flows, by name. `syn_sent`, `waiting` (those in TIME-WAIT) and
    `unfinished` are those that were still there in the end. `active_max` of a group is the sum of
    its templates': no more were there at once, but it may have been fewer."""
    series: FlowSeries
    """What became of them over time."""
    tcp: dict[str, int]
    """What TCP counted."""
    udp: dict[str, int]
    """What UDP counted."""
    counters: dict[str, int]
    """What its programs counted."""
    times: TimesReport
    """How long its connections took."""
    stamped: Optional[StampedReport]
    """How long its datagrams took, where they have their time of departure with them, by TRex's
    add-on `latency`."""
    transactions: list[TransactionReport]
    """Transactions that its program times, in its order."""
    failures: list[FailureReport]
    """Why its program failed, by step and cause."""
    tls: Optional[TlsReport]
    """What became of its TLS, where it has that."""
    http1: Optional[Http1Report]
    """Messages of HTTP/1.1, where its program follows them."""
    http2: Optional[Http2Report]
    """What became of its HTTP/2, where it has that."""


@dataclass(frozen=True)
class HistogramReport:
    """A histogram in nanoseconds; of nothing, its quantiles are null."""

    count: int
    """Values counted."""
    p50_ns: Optional[int]
    """Median."""
    p90_ns: Optional[int]
    """90 of 100 are at most this."""
    p99_ns: Optional[int]
    """99 of 100 are at most this."""
    p99_9_ns: Optional[int]
    """999 of 1,000 are at most this."""
    max_ns: Optional[int]
    """The greatest."""
    buckets: list[tuple[int, int]] = field(repr=False)
    """Start of each bucket that is not empty, and its count."""


@dataclass(frozen=True)
class HostFacts:
    """The machine that ran a run."""

    name: str
    """Its name."""
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
    """Requests that servers got."""
    responses: dict[str, int]
    """Final responses that clients got, by the class of their status: `2xx`."""
    missing: int
    """Responses that clients were to get, and did not get whole, as their connections failed."""


@dataclass(frozen=True)
class Http2Report:
    """What became of HTTP/2."""

    requests: int
    """Requests that clients sent, or servers got."""
    responses: dict[str, int]
    """Responses that servers sent, or clients got, by the class of their status: `2xx`."""
    resets: int
    """Streams that were reset."""
    failures: dict[str, int]
    """Connections on which HTTP/2 failed, by cause."""


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
    """Frames lost by chance."""
    duplicated: int
    """Copies made."""
    corrupted: int
    """Frames and copies in which a bit was changed."""
    queue_dropped: int
    """Frames and copies dropped because the queue was full."""
    no_room: int
    """Frames and copies dropped because too many were held."""
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
    """The port that asked."""
    target: str
    """Who was asked."""
    protocol: str
    """By what: `icmp`, echo requests, or `udp`, datagrams that are sent back."""
    target_port: Optional[int]
    """At which port, by UDP."""
    rate_pps: float
    """How often a second it was to be."""
    sent: int
    """Questions sent."""
    received: int
    """Questions that were answered."""
    lost: int
    """Questions that were not answered, within a second at the end."""
    duplicated: int
    """Answers beyond the first to a question."""
    reordered: int
    """Answers that came after one to a later question (RFC 4737)."""
    unsent: int
    """Questions left out, as they could not be sent when they were due or not long after."""
    round_trip: DistributionReport
    """From a question to its answer."""
    jitter_ns: int
    """Interarrival jitter of round trips in nanoseconds (RFC 3550 section 6.4.1)."""


@dataclass(frozen=True)
class MeasuredReport:
    """What was measured of a flow on one port."""

    port: str
    """The port's name in the plan."""
    received: int
    """Frames of the flow that arrived, each counted once."""
    received_bytes: int
    """Bytes without FCS of all its arrivals, further copies included."""
    missing: int
    """Frames below the last one that arrived which have not come. At the end those are lost that
    would have come behind it, too."""
    gaps: int
    """How often frames were left out: arrivals beyond the one expected next."""
    duplicated: int
    """Arrivals of a frame beyond its first one (RFC 5560)."""
    reordered: int
    """Frames that arrived after one sent later (RFC 4737 section 3.3)."""
    reordering_extent_max: int
    """The greatest reordering extent, in frames (RFC 4737 section 4.2)."""
    n_reordered: list[int]
    """Frames that arrived after `n` that were all sent later, by n from 1 (RFC 4737 section 5); TCP
    takes those of n = 3 for lost."""
    too_late: int
    """Arrivals so long after later ones that nobody knows whether they are late or repeats."""
    corrupt: Optional[int]
    """Frames whose payload was not as it was sent; none where it was not compared."""
    stale: int
    """Frames with the flow's signature that an earlier run had sent; counted nowhere else."""
    pps: float
    """Arrivals a second, from the first to the last."""
    delay: DistributionReport
    """One-way delay."""
    pdv: VariationReport
    """Packet delay variation: each delay less the least (RFC 5481 section 4.2)."""
    ipdv: DistributionReport
    """Inter-packet delay variation: each delay less that of the frame before (RFC 5481 section
    4.1)."""
    jitter_ns: int
    """Interarrival jitter in nanoseconds (RFC 3550 section 6.4.1); of several workers' frames the
    greatest."""
    series: Optional[SeriesReport]
    """What happened when."""
    tags: list[TagReport]
    """Arrivals by the VLAN tags that they had, where that was asked for."""


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
    """Frames a second."""


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
    """Frames that arrived."""
    bytes: int
    """Their bytes without FCS."""
    elapsed_s: Optional[float]
    """From the first arrival to the last, in seconds; null where arrivals were not timed."""
    pps: Optional[float]
    """Frames a second: intervals between arrivals over the time they took."""
    bps_l2: Optional[float]
    """Layer-2 bits a second, with FCS."""
    dropped: int
    """Frames that arrived and that the receiver had no room for; not counted as lost."""
    lost: Optional[int]
    """Frames sent that did not arrive; null where that is not known for the port."""
    loss_percent: Optional[float]
    """The same in hundredths of what was sent."""
    unexpected: Optional[int]
    """Frames that arrived beyond those sent: other hosts sent them. Always 0 with verification,
    which tells them apart."""
    unsigned: Optional[int]
    """Frames without a signature of a measured flow: of other flows, of other hosts, damaged in the
    signature or cut before it; null where nothing was measured."""
    wrong_port: Optional[int]
    """Frames with the signature of a flow that should arrive at another port."""
    neighbour_packets: int
    """ARP and neighbour discovery among the frames that arrived."""
    verify: Optional[VerifyReport]
    """What verification found; null where it was not asked for."""
    gaps: Optional[HistogramReport]
    """Time between arrivals; null where not all were timed."""
    queue_kind: Optional[str]
    """What `queues` are: `cpu` or `queue`; null where there are none."""
    queues: list[QueueReport]
    """Arrivals by CPU or queue."""
    error: Optional[str]
    """What ended the receiving early."""


@dataclass(frozen=True)
class RefusedReport:
    """Frames that no port could send."""

    too_long: int
    """Longer than the interface takes."""
    too_long_max: int
    """The longest of those, in bytes."""
    too_short: int
    """Without a whole Ethernet header."""
    unconvertible: int
    """Of another link layer, without an Ethernet form."""


@dataclass(frozen=True)
class ReplayFlows:
    """Flows: packets of one direction with equal addresses, ports, protocol and VLAN."""

    count: int
    """Flows begun."""
    per_second: float
    """Flows begun a second."""
    expired: int
    """Flows begun again after the expiry; they are in `count`."""
    flow_packets: int
    """Packets that belong to a flow."""
    non_flow_packets: int
    """Packets that are not IP."""
    invalid_packets: int
    """Packets whose headers are cut or make no sense."""


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
    """Our address and port."""
    peer: str
    """The peer's."""
    began_s: float
    """When it began, in seconds from the start of the run."""
    ended: bool
    """Whether it is over: gone, or in TIME-WAIT."""
    samples: list[FlowSample]
    """Its connection when it began, at the end of each interval in which it was there, and when it
    was over; nothing of UDP."""


@dataclass(frozen=True)
class SeriesReport:
    """What happened in intervals of equal length from the start of the run."""

    interval_s: float
    """How long each interval is, in seconds."""
    packets: list[int]
    """Arrivals in each interval."""
    bytes: list[int]
    """Their bytes without FCS."""
    missing: list[int]
    """Frames found missing in each that have not come since."""
    delay_mean_ns: list[Optional[float]]
    """The mean delay of each in nanoseconds; none where nothing arrived."""
    delay_max_ns: list[Optional[int]]
    """The greatest."""


@dataclass(frozen=True)
class StampedReport:
    """How long datagrams took that came with the time at which they had left: to who sent first,
    until they were answered, and to the other side from end to end. The latter is right where both
    are on one machine; the clocks of two are not set by each other. Half an hour at most, and none
    of what is ahead of the clock."""

    datagrams: int
    """How many came."""
    total_us: int
    """How long all of them took together, in microseconds."""
    min_us: Optional[int]
    """How long the fastest took, in microseconds."""
    max_us: Optional[int]
    """How long the slowest took, in microseconds."""
    times: HistogramReport
    """How long they took; empty before the end, as all times are."""


@dataclass(frozen=True)
class TagReport:
    """What arrived of a flow under the same VLAN tags. Its frames are numbered through the whole
    flow, so that those which arrived under other tags are missing here."""

    vlans: list[int]
    """The VLANs, the outer one first, two at most; none of frames without a tag."""
    packets: int
    """Arrivals, further copies included."""
    bytes: int
    """Their bytes without FCS."""
    missing: int
    """Frames below the last one under these tags which have not come under them."""
    gaps: int
    """How often frames were left out."""
    duplicated: int
    """Arrivals of a frame beyond its first one."""
    reordered: int
    """Frames that arrived after one sent later."""
    too_late: int
    """Arrivals more than 64 frames after later ones, which may be late or repeats."""


@dataclass(frozen=True)
class Target:
    """What was asked for; null is "not"."""

    pace: Optional[Literal["topspeed", "capture", "pps", "bps"]]
    """What sets the pace of a replay: nothing, the capture's own timing, frames or bits a
    second."""
    multiplier: Optional[float]
    """Speed-up of the capture's own timing, or of the plan's rates."""
    pps: Optional[float]
    """Frames a second."""
    bps: Optional[float]
    """Bits a second."""
    bps_layer: Optional[str]
    """What `bps` counts: `frames`, `l2` or `l1`."""
    packets: Optional[int]
    """Frames in all."""
    duration_s: Optional[float]
    """Seconds."""
    passes: Optional[int]
    """Passes over the captures."""
    seed: Optional[int]
    """Where random numbers come from."""
    tolerance_ppm: float
    """How far a rate may be off before the run falls short of its target, in millionths."""


@dataclass(frozen=True)
class TemplateReport:
    """The clients or the servers of a template."""

    name: str
    """Its name in the plan."""
    group: Optional[str]
    """Its group there."""
    side: str
    """`client` or `server`."""
    flows: dict[str, int]
    """What became of its flows, by name. `syn_sent`, `waiting` (those in TIME-WAIT) and
    `unfinished` are those that were still there in the end. `active_max` of a group is the sum of
    its templates': no more were there at once, but it may have been fewer."""
    series: FlowSeries
    """What became of them over time."""
    tcp: dict[str, int]
    """What TCP counted."""
    udp: dict[str, int]
    """What UDP counted."""
    counters: dict[str, int]
    """What its programs counted."""
    times: TimesReport
    """How long its connections took."""
    stamped: Optional[StampedReport]
    """How long its datagrams took, where they have their time of departure with them, by TRex's
    add-on `latency`."""
    transactions: list[TransactionReport]
    """Transactions that its program times, in its order."""
    failures: list[FailureReport]
    """Why its program failed, by step and cause."""
    tls: Optional[TlsReport]
    """What became of its TLS, where it has that."""
    http1: Optional[Http1Report]
    """Messages of HTTP/1.1, where its program follows them."""
    http2: Optional[Http2Report]
    """What became of its HTTP/2, where it has that."""


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
    """Until they were established."""
    first_byte: HistogramReport
    """Until the first byte of data had arrived."""
    whole: HistogramReport
    """Until both sides had closed them, or they ended otherwise; TIME-WAIT is not part of it."""
    round_trip: HistogramReport
    """Not of connections, but of segments: until they were acknowledged, each time that TCP
    measured it."""


@dataclass(frozen=True)
class TlsReport:
    """TLS of a port."""

    full: int
    """Full handshakes."""
    resumed: int
    """Handshakes that resumed an earlier session."""
    truncated: int
    """Connections that peers ended without close_notify."""
    failures: dict[str, int]
    """Connections on which TLS failed, by cause."""
    handshake: HistogramReport
    """From when TCP was established, or a program began TLS, until the handshake was over."""


@dataclass(frozen=True)
class TransactionReport:
    """Transactions of one name."""

    name: str
    """The name that the program gives them."""
    started: int
    """Those that started; `time.count` of them ended."""
    min_ns: Optional[int]
    """The shortest; null where none ended."""
    mean_ns: Optional[int]
    """On average; null where none ended."""
    time: HistogramReport
    """From start to end."""


@dataclass(frozen=True)
class TransmitReport:
    """What was sent."""

    packets: int
    """Frames that left."""
    bytes: int
    """Their bytes without FCS."""
    pps: float
    """Frames a second."""
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
    """Frames that were put into a tunnel."""
    decapsulated: int
    """Frames that were taken out of one."""
    dropped: int
    """Frames that were not sent or taken; the sum of the eleven that follow."""
    no_tunnel: int
    """Frames that were not sent, for neither sender nor receiver has a tunnel."""
    too_long: int
    """Frames that were not sent, for they are too long with a tunnel's headers."""
    bad_ip: int
    """Frames that arrived with a damaged IP header."""
    bad_checksum: int
    """Datagrams around a packet whose checksum is wrong."""
    fragments: int
    """Fragments of what is around a packet."""
    not_udp: int
    """Frames of TCP that arrived in no tunnel."""
    other_port: int
    """Datagrams that arrived in no tunnel: at another port than 2152."""
    other_message: int
    """Messages of GTP of other versions or types than users' packets."""
    cut_short: int
    """Frames that end before what is in them, as they say."""
    bad_inner: int
    """Tunnels with anything but a packet of IP in them."""
    not_ecn_capable: int
    """Packets that met congestion in a tunnel, and cannot be told so."""


@dataclass(frozen=True)
class VariationReport:
    """How far delays are above the least one, in nanoseconds."""

    mean_ns: Optional[float]
    """The mean."""
    p50_ns: Optional[int]
    """Median."""
    p99_ns: Optional[int]
    """99 of 100 are at most this."""
    p99_9_ns: Optional[int]
    """999 of 1,000 are at most this."""
    max_ns: Optional[int]
    """The greatest."""


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
    """Frames that arrived as they were sent."""
    reordered: int
    """Intact frames that arrived after one sent later (RFC 4737)."""
    reordering_extent_max: int
    """The greatest reordering extent (RFC 4737 section 4.2)."""
    duplicated: int
    """Arrivals of a frame beyond the number of times it was sent."""
    unexpected: int
    """Arrivals that equal no frame sent."""
    unverified: int
    """Frames that could not be noted, for there were too many on their way."""


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
    """What was asked for."""
    achieved: Achieved
    """What was sent, all ports together."""
    times: Times
    """When the run began, and how long it took."""
    host: HostFacts
    """The machine that ran it."""
    interrupted: bool
    """Whether the run was stopped before its end."""
    errors: list[str]
    """What went wrong; what was measured before stands."""
    notes: list[str]
    """What the reader should know."""
    ports: list[PortReport]
    """Each port that sent or received."""
    flows: list[FlowReport]
    """Each flow of a plan of streams, in the plan's order."""
    groups: list[GroupReport]
    """Sums of the templates of each group that the plan names, over all ports."""
    latency: list[LatencyReport]
    """Round-trip times that the plan's probes measured."""
    device_runs: list[DeviceRun]
    """Each start of the devices of a pktgen script, in order."""
