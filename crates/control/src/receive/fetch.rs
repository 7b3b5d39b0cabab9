//! Frames fetched from a port by a thread, and counted, compared or measured one by one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::port::{PortError, Receive, ReceiveCounters, Received, StampPoint};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{self, Verifier, VerifyCounters, frame_hash};
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, AfXdpReceive, Direction};
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;

use super::{Noted, Queue};

/// Frames on their way that verification can tell apart: 96 MB of table.
const VERIFIED_FRAMES_MAX: usize = 1 << 21;

/// How often what was measured so far is told.
const TELL_INTERVAL: Duration = Duration::from_millis(100);

/// A port that frames are fetched from.
pub(super) enum FetchPort {
    AfPacket(AfPacketReceive),
    AfXdp(AfXdpReceive),
}

impl FetchPort {
    /// The ports of an interface: one for each queue over AF_XDP, which stamps arrivals in the
    /// driver and keeps frames from the network stack, or one packet socket.
    pub(super) fn open(
        interface: &InterfaceName,
        purpose: Purpose,
    ) -> Result<(Vec<Self>, &'static str, String), String> {
        let mut options = AfXdpOptions::new(interface.clone(), Direction::Receive);
        options.queues = None;
        options.passes_neighbours = purpose == Purpose::Measure;
        let reason = match AfXdp::open(&options) {
            Ok(_) if purpose == Purpose::Count => "frames are counted in this process".to_owned(),
            Ok(ports) => {
                let why = match purpose {
                    Purpose::Measure => "frames are stamped in the driver and fetched",
                    _ => "frames are fetched to be compared",
                };
                let ports = ports.receive.into_iter().map(Self::AfXdp).collect();
                return Ok((ports, "af_xdp", why.into()));
            }
            Err(error) => format!("not af_xdp: {error}"),
        };
        match AfPacketReceive::open(&AfPacketOptions::new(interface.clone())) {
            Ok(port) => Ok((vec![Self::AfPacket(port)], "af_packet", reason)),
            Err(error) => Err(format!("--rx {interface}: {error}")),
        }
    }

    /// Where arrivals are stamped.
    pub(super) fn stamp(ports: &[Self]) -> StampPoint {
        ports.first().map_or(StampPoint::Process, |port| match port {
            Self::AfPacket(port) => port.capabilities().arrival_stamp,
            Self::AfXdp(port) => port.capabilities().arrival_stamp,
        })
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

/// What frames are fetched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Count,
    Verify,
    Measure,
}

/// What is done with each frame.
enum Task {
    Count,
    Verify(Box<Verifier>, Receiver<Noted>),
    Measure(Box<measure::Receiver>, Arc<Mutex<Vec<Measured>>>),
}

/// How far the measurement of a stream has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Frames that arrived, each counted once.
    pub(crate) received: u64,
    /// Further copies of them.
    pub(crate) duplicated: u64,
    /// Those that arrived after one sent later.
    pub(crate) reordered: u64,
    /// The mean of their delays in ns; 0 of nothing.
    pub(crate) delay_ns_mean: f64,
}

/// A thread that fetches frames from all ports of an interface.
pub(super) struct Fetcher {
    thread: Option<JoinHandle<FetchOutcome>>,
    pub(super) sent_log: Option<Sender<Noted>>,
    /// How far each stream is, where they are measured.
    pub(super) measured: Arc<Mutex<Vec<Measured>>>,
    pub(super) packets: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
pub(super) struct FetchOutcome {
    pub(super) queues: Vec<Queue>,
    pub(super) missed: u64,
    /// What verification found, and frames that never arrived.
    pub(super) verified: Option<(VerifyCounters, u64)>,
    pub(super) measured: Option<Box<measure::Receiver>>,
    pub(super) error: Option<String>,
}

impl Fetcher {
    pub(super) fn count(ports: Vec<FetchPort>) -> std::io::Result<Self> {
        Self::start(ports, Task::Count, None, Arc::default())
    }

    pub(super) fn verify(ports: Vec<FetchPort>) -> std::io::Result<Self> {
        let (sent_log, noted) = channel();
        let task = Task::Verify(Box::new(Verifier::new(VERIFIED_FRAMES_MAX)), noted);
        Self::start(ports, task, Some(sent_log), Arc::default())
    }

    pub(super) fn measure(
        ports: Vec<FetchPort>,
        receiver: measure::Receiver,
    ) -> std::io::Result<Self> {
        let measured = Arc::new(Mutex::default());
        let task = Task::Measure(Box::new(receiver), Arc::clone(&measured));
        Self::start(ports, task, None, measured)
    }

    fn start(
        ports: Vec<FetchPort>,
        task: Task,
        sent_log: Option<Sender<Noted>>,
        measured: Arc<Mutex<Vec<Measured>>>,
    ) -> std::io::Result<Self> {
        let packets = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (counter, stopping) = (Arc::clone(&packets), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("receiver".into())
            .spawn(move || fetch(ports, task, &counter, &stopping))?;
        Ok(Self { thread: Some(thread), sent_log, measured, packets, stop })
    }

    pub(super) fn finish(&mut self) -> FetchOutcome {
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
    mut task: Task,
    packets: &AtomicU64,
    stop: &AtomicBool,
) -> FetchOutcome {
    const ROOM: usize = 256;
    /// While nothing arrives: long enough to leave the CPU to the sender, short enough for a
    /// ring of thousands of frames. To wait for a frame instead would mean to be woken for
    /// each of them, also while many arrive, and by the CPU that is to send the next one;
    /// nothing depends on when a frame is fetched, for its arrival is stamped before.
    const PAUSE: StdDuration = StdDuration::from_micros(50);
    let mut outcome = FetchOutcome::default();
    let mut unsent = Vec::new();
    let mut batch = Vec::with_capacity(ROOM);
    let mut told = Instant::ZERO;
    loop {
        // Read before the ports: a frame that arrived before the stop is still fetched.
        let is_last = stop.load(Ordering::Acquire);
        let mut fetched = 0;
        for port in &mut ports {
            match port.receive(ROOM, &mut batch) {
                Ok(count) => fetched += count,
                Err(error) => {
                    outcome.error = Some(error.to_string());
                    break;
                }
            }
            // Frames are noted before they leave, so the notes of all that arrived are here.
            if let Task::Verify(verifier, noted) = &mut task {
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
                let frame = port.frame(&received);
                match &mut task {
                    Task::Count => {}
                    Task::Verify(verifier, _) => verifier.arrived(frame_hash(frame)),
                    Task::Measure(receiver, _) => {
                        receiver.note(frame, received.original_length, received.arrival);
                    }
                }
                port.release(received);
            }
        }
        packets.fetch_add(fetched as u64, Ordering::Relaxed);
        if let Task::Measure(receiver, measured) = &task {
            let now = clock::now();
            if now.saturating_since(told) >= TELL_INTERVAL {
                told = now;
                tell(receiver, measured);
            }
        }
        if outcome.error.is_some() || fetched == 0 && is_last {
            break;
        }
        if fetched == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    outcome.missed = ports.iter().map(|port| port.received().missed).sum();
    match task {
        Task::Count => {}
        Task::Verify(mut verifier, _) => {
            unsent.into_iter().for_each(|hash| verifier.unsent(hash));
            outcome.verified = Some((*verifier.counters(), verifier.outstanding()));
        }
        Task::Measure(receiver, _) => outcome.measured = Some(receiver),
    }
    outcome
}

fn tell(receiver: &measure::Receiver, measured: &Mutex<Vec<Measured>>) {
    let mut told = measured.lock().unwrap_or_else(PoisonError::into_inner);
    told.clear();
    told.extend(receiver.records().iter().map(|record| {
        let counters = record.ordered().map(|ordered| *ordered.sequence().counters());
        let counters = counters.unwrap_or_default();
        Measured {
            received: counters.received,
            duplicated: counters.duplicated,
            reordered: counters.reordered,
            delay_ns_mean: record.delay().delays().mean().unwrap_or(0.0),
        }
    }));
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
