//! What arrives at the other end: counted in the kernel, or fetched and compared frame by frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{PortError, Receive, ReceiveCounters, Received};
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{Verifier, VerifyCounters, frame_hash};
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, AfXdpReceive, Direction};
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::{CpuArrivals, XdpCounter};
use wirestorm_plan::replay::ReceivePlan;

use crate::result::{HistogramReport, QueueReport, ReceiveReport, VerifyReport};

/// The receiving end of a run.
pub(crate) struct Arrivals {
    interface: InterfaceName,
    source: Source,
    backend: &'static str,
    why: String,
}

/// What the workers tell of frames by their hashes.
pub(crate) enum Noted {
    /// These are about to leave.
    Sent(Vec<u64>),
    /// These, noted before, never left.
    Unsent(Vec<u64>),
}

enum Source {
    /// The kernel counts.
    Counter(XdpCounter),
    /// A thread of ours fetches every frame.
    Fetcher(Fetcher),
}

/// How long after the last frame was sent arrivals are waited for: more than any queue between
/// two ports of a test holds frames back.
const STRAGGLERS_MAX: Duration = Duration::from_secs(2);

/// Arrivals are complete when nothing has come for this long.
const SILENCE: Duration = Duration::from_millis(200);

/// Frames on their way that verification can tell apart: 96 MB of table.
const VERIFIED_FRAMES_MAX: usize = 1 << 21;

impl Arrivals {
    /// Opens the receiving end. `times_all` asks for the distribution of arrival gaps.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open(plan: &ReceivePlan, times_all: bool) -> Result<Self, String> {
        let interface: InterfaceName =
            plan.interface.parse().map_err(|error| format!("--rx: {error}"))?;
        if plan.verify {
            return Self::open_fetcher(interface, true);
        }
        let opened = interface.namespace.enter(|| XdpCounter::open(interface.name(), times_all));
        match opened {
            Ok(Ok(counter)) => Ok(Self {
                backend: "xdp",
                why: if counter.is_native() {
                    "counted in the driver".into()
                } else {
                    "counted before the network stack: the driver has no XDP".into()
                },
                source: Source::Counter(counter),
                interface,
            }),
            Ok(Err(error)) => {
                let mut arrivals = Self::open_fetcher(interface, false)?;
                arrivals.why = format!("not xdp: {error}");
                Ok(arrivals)
            }
            Err(error) => Err(format!("--rx {interface}: {error}")),
        }
    }

    fn open_fetcher(interface: InterfaceName, verifies: bool) -> Result<Self, String> {
        let (ports, backend, why) = FetchPort::open(&interface, verifies)?;
        let fetcher = Fetcher::start(ports, verifies)
            .map_err(|error| format!("--rx {interface}: cannot start a thread: {error}"))?;
        Ok(Self { interface, source: Source::Fetcher(fetcher), backend, why })
    }

    /// What the workers tell of frames to, where they are verified.
    pub(crate) fn sent_log(&self) -> Option<Sender<Noted>> {
        match &self.source {
            Source::Counter(_) => None,
            Source::Fetcher(fetcher) => fetcher.sent_log.clone(),
        }
    }

    /// Frames that have arrived.
    pub(crate) fn packets(&self) -> u64 {
        match &self.source {
            Source::Counter(counter) => {
                counter.read().map_or(0, |cpus| cpus.iter().map(|cpu| cpu.packets).sum())
            }
            Source::Fetcher(fetcher) => fetcher.packets.load(Ordering::Relaxed),
        }
    }

    /// Waits for the last of `sent` frames, then reports.
    pub(crate) fn finish(mut self, sent: u64) -> ReceiveReport {
        let began = clock::now();
        let (mut packets, mut changed) = (self.packets(), began);
        while packets < sent {
            let now = clock::now();
            if now.saturating_since(began) > STRAGGLERS_MAX
                || now.saturating_since(changed) > SILENCE
            {
                break;
            }
            std::thread::sleep(StdDuration::from_millis(1));
            let arrived = self.packets();
            if arrived != packets {
                (packets, changed) = (arrived, clock::now());
            }
        }
        let (queues, missed, verified, error) = match &mut self.source {
            Source::Counter(counter) => match counter.read() {
                Ok(cpus) => (cpus.iter().map(Queue::from).collect(), 0, None, None),
                Err(error) => (Vec::new(), 0, None, Some(error.to_string())),
            },
            Source::Fetcher(fetcher) => {
                let outcome = fetcher.finish();
                (outcome.queues, outcome.missed, outcome.verified, outcome.error)
            }
        };
        self.report(sent, &queues, missed, verified, error)
    }

    fn report(
        self,
        sent: u64,
        queues: &[Queue],
        missed: u64,
        verified: Option<(VerifyCounters, u64)>,
        error: Option<String>,
    ) -> ReceiveReport {
        let packets: u64 = queues.iter().map(|queue| queue.packets).sum();
        let bytes: u64 = queues.iter().map(|queue| queue.bytes).sum();
        let first = queues.iter().filter_map(|queue| queue.first).min();
        let last = queues.iter().filter_map(|queue| queue.last).max();
        let elapsed_s =
            first.zip(last).map_or(0.0, |(first, last)| last.saturating_since(first).as_secs_f64());
        let pps = per_second(packets, elapsed_s);
        let mean = if packets > 0 { bytes as f64 / packets as f64 } else { 0.0 };
        let mut gaps = Histogram::new();
        queues.iter().for_each(|queue| gaps.merge(&queue.gaps));
        // Frames that others sent make up for lost ones in a mere count; verification tells.
        let lost = match &verified {
            // What a port refused was noted too, and is not lost on the way.
            Some((counters, outstanding)) => outstanding
                .saturating_sub(counters.sent.saturating_sub(sent))
                .saturating_sub(missed),
            None => sent.saturating_sub(packets),
        };
        ReceiveReport {
            interface: self.interface.to_string(),
            backend: self.backend,
            why: self.why,
            packets,
            bytes,
            elapsed_s,
            pps,
            bps_l2: pps * (mean + Layer::FrameWithFcs.overhead() as f64) * 8.0,
            lost,
            loss_percent: if sent > 0 { lost as f64 * 100.0 / sent as f64 } else { 0.0 },
            surplus: if verified.is_some() { 0 } else { packets.saturating_sub(sent) },
            missed,
            neighbour_packets: queues.iter().map(|queue| queue.neighbour_packets).sum(),
            verify: verified.map(|(counters, _)| VerifyReport {
                intact: counters.intact,
                reordered: counters.reordered,
                reordering_extent_max: counters.reordering_extent_max,
                duplicated: counters.duplicated,
                unexpected: counters.unexpected,
                unverified: counters.unverified,
            }),
            gaps: (gaps.count() > 0).then(|| HistogramReport::new(&gaps)),
            queues_are: match self.source {
                Source::Counter(_) => "cpu",
                Source::Fetcher(_) => "queue",
            },
            queues: queues
                .iter()
                .map(|queue| {
                    let elapsed_s = queue
                        .first
                        .zip(queue.last)
                        .map_or(0.0, |(first, last)| last.saturating_since(first).as_secs_f64());
                    QueueReport {
                        queue: queue.number,
                        packets: queue.packets,
                        bytes: queue.bytes,
                        elapsed_s,
                        pps: per_second(queue.packets, elapsed_s),
                    }
                })
                .collect(),
            error,
        }
    }
}

/// N arrivals span N - 1 intervals.
fn per_second(packets: u64, elapsed_s: f64) -> f64 {
    if elapsed_s > 0.0 { packets.saturating_sub(1) as f64 / elapsed_s } else { 0.0 }
}

/// What arrived on one queue or CPU.
#[derive(Clone, Debug, Default)]
struct Queue {
    number: u32,
    packets: u64,
    bytes: u64,
    neighbour_packets: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    gaps: Histogram,
}

impl From<&CpuArrivals> for Queue {
    fn from(cpu: &CpuArrivals) -> Self {
        Self {
            number: cpu.cpu,
            packets: cpu.packets,
            bytes: cpu.bytes,
            neighbour_packets: cpu.neighbour_packets,
            first: cpu.first,
            last: cpu.last,
            gaps: cpu.gaps.clone(),
        }
    }
}

/// Ports that frames are fetched from.
enum FetchPort {
    AfPacket(AfPacketReceive),
    AfXdp(AfXdpReceive),
}

impl FetchPort {
    /// The ports of an interface: one for each queue over AF_XDP, which stamps arrivals in the
    /// driver and keeps frames from the network stack, or one packet socket.
    fn open(
        interface: &InterfaceName,
        whole: bool,
    ) -> Result<(Vec<Self>, &'static str, String), String> {
        let mut options = AfXdpOptions::new(interface.clone(), Direction::Receive);
        options.queues = None;
        let reason = match AfXdp::open(&options) {
            Ok(ports) if whole => {
                let ports = ports.receive.into_iter().map(Self::AfXdp).collect();
                return Ok((ports, "af_xdp", "frames are fetched to be compared".into()));
            }
            Ok(_) => "frames are counted in this process".to_owned(),
            Err(error) => format!("not af_xdp: {error}"),
        };
        match AfPacketReceive::open(&AfPacketOptions::new(interface.clone())) {
            Ok(port) => Ok((vec![Self::AfPacket(port)], "af_packet", reason)),
            Err(error) => Err(format!("--rx {interface}: {error}")),
        }
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        match self {
            Self::AfPacket(port) => port.receive(room, batch),
            Self::AfXdp(port) => port.receive(room, batch),
        }
    }

    fn frame(&self, received: &Received) -> &[u8] {
        match self {
            Self::AfPacket(port) => port.frame(received),
            Self::AfXdp(port) => port.frame(received),
        }
    }

    fn release(&mut self, received: Received) {
        match self {
            Self::AfPacket(port) => port.release(received),
            Self::AfXdp(port) => port.release(received),
        }
    }

    fn received(&self) -> ReceiveCounters {
        match self {
            Self::AfPacket(port) => port.received(),
            Self::AfXdp(port) => port.received(),
        }
    }
}

/// A thread that fetches frames from all ports of an interface.
struct Fetcher {
    thread: Option<JoinHandle<FetchOutcome>>,
    sent_log: Option<Sender<Noted>>,
    packets: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct FetchOutcome {
    queues: Vec<Queue>,
    missed: u64,
    /// What verification found, and frames that never arrived.
    verified: Option<(VerifyCounters, u64)>,
    error: Option<String>,
}

impl Fetcher {
    fn start(ports: Vec<FetchPort>, verifies: bool) -> std::io::Result<Self> {
        let (sent_log, noted) = channel();
        let packets = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (counter, stopping) = (Arc::clone(&packets), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("receiver".into())
            .spawn(move || fetch(ports, verifies.then_some(noted), &counter, &stopping))?;
        let sent_log = verifies.then_some(sent_log);
        Ok(Self { thread: Some(thread), sent_log, packets, stop })
    }

    fn finish(&mut self) -> FetchOutcome {
        self.sent_log = None;
        self.stop.store(true, Ordering::Release);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => FetchOutcome::default(),
        }
    }
}

fn fetch(
    mut ports: Vec<FetchPort>,
    noted: Option<Receiver<Noted>>,
    packets: &AtomicU64,
    stop: &AtomicBool,
) -> FetchOutcome {
    const ROOM: usize = 256;
    /// While nothing arrives: long enough to leave the CPU to the sender, short enough for a
    /// ring of thousands of frames.
    const PAUSE: StdDuration = StdDuration::from_micros(50);
    let mut outcome = FetchOutcome::default();
    let mut unsent = Vec::new();
    let mut verifier = noted.as_ref().map(|_| Verifier::new(VERIFIED_FRAMES_MAX));
    let mut batch = Vec::with_capacity(ROOM);
    loop {
        // Read before the ports: a frame that arrived before the stop is still fetched.
        let is_last = stop.load(Ordering::Acquire);
        let mut fetched = 0;
        for port in &mut ports {
            match port.receive(ROOM, &mut batch) {
                Ok(count) => fetched += count,
                Err(error) => {
                    outcome.error = Some(error.to_string());
                    return outcome;
                }
            }
            // Frames are noted before they leave, so the notes of all that arrived are here.
            if let (Some(verifier), Some(noted)) = (&mut verifier, &noted) {
                for noted in noted.try_iter() {
                    match noted {
                        Noted::Sent(hashes) => {
                            hashes.into_iter().for_each(|hash| verifier.sent(hash));
                        }
                        Noted::Unsent(hashes) => unsent.extend(hashes),
                    }
                }
            }
            for received in batch.drain(..) {
                note(&mut outcome.queues, &received);
                if let Some(verifier) = &mut verifier {
                    verifier.arrived(frame_hash(port.frame(&received)));
                }
                port.release(received);
            }
        }
        packets.fetch_add(fetched as u64, Ordering::Relaxed);
        if fetched == 0 {
            if is_last {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }
    if let Some(verifier) = &mut verifier {
        unsent.into_iter().for_each(|hash| verifier.unsent(hash));
    }
    outcome.missed = ports.iter().map(|port| port.received().missed).sum();
    outcome.verified = verifier.map(|verifier| (*verifier.counters(), verifier.outstanding()));
    outcome
}

fn note(queues: &mut Vec<Queue>, received: &Received) {
    let position = match queues.iter().position(|queue| queue.number == received.queue) {
        Some(position) => position,
        None => {
            queues.push(Queue { number: received.queue, ..Queue::default() });
            queues.len() - 1
        }
    };
    let queue = &mut queues[position];
    queue.packets += 1;
    queue.bytes += received.original_length as u64;
    match queue.last {
        None => queue.first = Some(received.arrival),
        Some(last) => queue.gaps.record(received.arrival.saturating_since(last)),
    }
    queue.last = Some(received.arrival);
}
