"""What an emulation reports, by schemas/wirestorm.emulation.1.json; made by tools/make_reports.py.

Times are in seconds or nanoseconds as their names say, bytes of frames without FCS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


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
class FlowReport:
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
class FlowsReport:
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
    """Connections that the peer closed, and reset as more was sent to it: an idle timeout of its,
    say."""
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
    transactions: list[TransactionReport]
    """Transactions that its program times, in its order."""
    failures: list[FailureReport]
    """Why its program failed, by step and cause."""
    http1: Optional[Http1Report] = None
    """Messages of HTTP/1.1, where its program follows them."""
    http2: Optional[Http2Report] = None
    """What became of its HTTP/2, where it has that."""
    stamped: Optional[StampedReport] = None
    """How long its datagrams took, where they have their time of departure with them, by TRex's
    add-on `latency`."""
    tls: Optional[TlsReport] = None
    """What became of its TLS, where it has that."""


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
    """What became of what a port was to send. Every frame that entered, and every copy, is in
    exactly one of `lost`, `queue_dropped`, `no_room`, `delivered` and `held`."""

    entered: int
    """Frames that were to be sent."""
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
    """Frames and copies that were sent."""
    reordered: int
    """Those of them that were sent behind a frame that had entered later."""
    held: int
    """Frames and copies that were held in the end, and not sent."""


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
class PortReport:
    """One port."""

    name: str
    """Its name in the plan."""
    interface: str
    """Its interface."""
    backend: str
    """What carried its frames."""
    why: str
    """Why that."""
    flows: FlowsReport
    """Connections, and flows of UDP."""
    series: FlowSeries
    """What became of them over time."""
    templates: list[TemplateReport]
    """The same of each template that has clients or servers here."""
    followed: list[FlowReport]
    """Those of them that were followed."""
    tcp: dict[str, int]
    """What TCP counted, by BSD's names, of which TRex's are those with `tcps_` before them."""
    udp: dict[str, int]
    """What UDP counted, by TRex's names without `udps_` before them."""
    counters: dict[str, int]
    """What programs counted, A to D: TRex's `user_counter_A` and so on."""
    times: TimesReport
    """How long connections took."""
    sent: int
    """Frames that left; what it says as a host, answers to pings among them, and pings that measure
    latency leave beside it and are not counted, though what arrives of them is."""
    sent_bytes: int
    """Their bytes without FCS."""
    failed: int
    """Frames that the interface refused."""
    unsent: int
    """Frames that were not sent, as the interface was down or the run over."""
    outages: int
    """How often the interface was down."""
    down_s: float
    """How long it was down, in seconds; 0 too where that was over before it was looked at."""
    received: int
    """Frames that arrived."""
    received_bytes: int
    """Their bytes without FCS."""
    missed: int
    """Frames that arrived and that there was no room for."""
    cpu_s: float
    """CPU time that its worker took, in seconds."""
    http1: Optional[Http1Report] = None
    """Messages of HTTP/1.1, where any of their programs follow them."""
    http2: Optional[Http2Report] = None
    """What became of HTTP/2, where any of them have it."""
    impairment: Optional[ImpairmentReport] = None
    """What became of what it sent, where the plan impairs that."""
    ingress_cpu_s: Optional[float] = None
    """CPU time that taking frames in cost beside that, on the CPUs of whoever delivered them, in
    seconds: that of a program at the interface's ingress. Known where the kernel measures it
    (`sysctl kernel.bpf_stats_enabled=1`)."""
    tls: Optional[TlsReport] = None
    """What became of TLS, where any of them have it."""
    tunnels: Optional[TunnelsReport] = None
    """What became of frames in tunnels, where the plan has any there."""


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
    transactions: list[TransactionReport]
    """Transactions that its program times, in its order."""
    failures: list[FailureReport]
    """Why its program failed, by step and cause."""
    http1: Optional[Http1Report] = None
    """Messages of HTTP/1.1, where its program follows them."""
    http2: Optional[Http2Report] = None
    """What became of its HTTP/2, where it has that."""
    stamped: Optional[StampedReport] = None
    """How long its datagrams took, where they have their time of departure with them, by TRex's
    add-on `latency`."""
    tls: Optional[TlsReport] = None
    """What became of its TLS, where it has that."""


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
class EmulationReport:
    """The result of a run of clients and servers."""

    schema: str
    """The name and version of this document's form."""
    version: str
    """The program's version."""
    elapsed_s: float
    """From the start to the end of the last port's work, in seconds."""
    load_s: float
    """From the start until no more connections were to be made: limits were reached, and the
    interval of the last one was over, which may be later than the end; or the duration was over.
    Without clients, until the last one came. In seconds."""
    ports: list[PortReport]
    """Each port of the plan that has clients or servers."""
    groups: list[GroupReport]
    """Sums of the templates of each group that the plan names, over all ports."""
    latency: list[LatencyReport]
    """How long answers to the plan's probes took."""
    interrupted: bool
    """Whether it was ended by a signal."""
    errors: list[str]
    """What went wrong; what was counted before stands."""
    notes: list[str]
    """What one should know."""
