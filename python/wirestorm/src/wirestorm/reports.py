"""What a run reports, by schemas/wirestorm.run.1.json; made by tools/make_reports.py.

Times are in seconds or nanoseconds as their names say, rates per second, lengths without FCS unless
the name says L1 (with FCS, preamble and inter-packet gap) or L2 (with FCS).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional


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
    asked_pps: Optional[float]
    """Frames a second that were asked for; none where it was as fast as it goes, or bits."""
    asked_bps: Optional[float]
    """Bits a second that were asked for; none where it was as fast as it goes, or frames."""
    asked_layer: Optional[str]
    """What `asked_bps` counts: `frames`, `l2` or `l1`."""
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


@dataclass(frozen=True)
class PortReport:
    """One port."""

    name: str
    """Its name in the plan."""
    interface: str
    """Its interface."""
    backend: Optional[str]
    """What carried its frames; none where it sent none."""
    why: Optional[str]
    """Why that."""
    stamped: Optional[str]
    """Where departures were stamped; none where it sent none. SCTP's checksum covers the stamp, so
    that of its frames is always the process's."""
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
    failed: int
    """Frames that the interface refused."""
    unsent: int
    """Frames left out because they were late, or queued at an interruption."""
    departures: Optional[DepartureReport]
    """How departures kept to the schedule; none where all was sent as fast as it goes."""
    rx: Optional[ReceiveReport]
    """What arrived; none where nobody looked."""
    unknown: Optional[int]
    """Frames that arrived without a signature: of flows that are not measured, of others, damaged
    in it or cut before it; none where nothing was measured."""
    astray: Optional[int]
    """Frames with the signature of a flow that should arrive elsewhere."""


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

    interface: str
    """The interface."""
    backend: str
    """What received the frames."""
    why: str
    """Why that."""
    stamped: str
    """Where arrivals were stamped."""
    packets: int
    """Frames that arrived."""
    bytes: int
    """Their bytes without FCS."""
    elapsed_s: float
    """From the first arrival to the last, in seconds."""
    pps: float
    """Frames a second: intervals between arrivals over the time they took."""
    bps_l2: float
    """Layer-2 bits a second, with FCS."""
    lost: int
    """Frames sent that did not arrive."""
    loss_percent: float
    """The same in hundredths of what was sent."""
    surplus: int
    """Frames that arrived beyond those sent: not all were ours. Always 0 with verification, which
    tells them apart."""
    missed: int
    """Frames that arrived and that the receiver had no room for; not counted as lost."""
    neighbour_packets: int
    """ARP and neighbour discovery among the frames that arrived."""
    verify: Optional[VerifyReport]
    """What verification found; none where it was not asked for."""
    gaps: Optional[HistogramReport]
    """Time between arrivals; none where not all were timed."""
    queues_are: str
    """What `queues` are: `cpu` or `queue`."""
    queues: list[QueueReport]
    """By CPU or queue."""
    error: Optional[str]
    """What ended the receiving early."""


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
class RunReport:
    """The result of a run of streams."""

    schema: str
    """The name and version of this document's form."""
    version: str
    """The program's version."""
    elapsed_s: float
    """From the start to the last departure, in seconds."""
    flows: list[FlowReport]
    """Each flow, in the plan's order."""
    ports: list[PortReport]
    """Each port of the plan that sent or received."""
    interrupted: bool
    """Whether it was ended by a signal."""
    errors: list[str]
    """What went wrong; what was measured before stands."""
    notes: list[str]
    """What one should know."""
