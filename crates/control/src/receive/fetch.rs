//! Receiver threads: fetch frames from ports and count, verify or measure each frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::port::{PortError, Receive, ReceiveCounters, Received, StampPoint};
use wirestorm_base::time::Duration;
use wirestorm_engine::measure::{self, Verifier, VerifyCounters, frame_hash};
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive};
use wirestorm_io::af_xdp::{AfXdp, AfXdpOptions, Direction};
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::XdpAttachment;
use wirestorm_wire::mark;

use super::{Noted, Queue};
use crate::backend::{AF_PACKET, AF_XDP, Descriptor};
use crate::port::ReceivePort;

/// Maximum number of outstanding frames in verification (a table of 96 MB).
const VERIFIED_FRAMES_MAX: usize = 1 << 21;

/// Opens the receiving ports of an interface. AF_XDP has one port for each queue; it timestamps
/// arrivals in the driver and keeps frames from the network stack. Otherwise this opens one packet
/// socket. `place`: an attached XDP program to replace. `needed`: another run needs the same
/// frames, so only packet sockets are possible.
pub(super) fn open_ports(
    interface: &InterfaceName,
    purpose: Purpose,
    place: Option<XdpAttachment>,
    needed: bool,
) -> Result<(Vec<ReceivePort>, &'static Descriptor, String), String> {
    let mut options = AfXdpOptions::new(interface.clone(), Direction::Receive);
    options.queues = None;
    options.passes_neighbours = purpose == Purpose::Measure;
    let opened = match place {
        _ if needed => None,
        Some(place) => Some(AfXdp::open_replacing(&options, place)),
        None => Some(AfXdp::open(&options)),
    };
    let reason = match opened {
        None => "not af_xdp: another run receives the same frames".to_owned(),
        Some(Ok(_)) if purpose == Purpose::Count => "frames are counted in this process".to_owned(),
        Some(Ok(ports)) => {
            let why = match purpose {
                Purpose::Measure => "frames are timestamped in the driver and fetched",
                _ => "frames are fetched to be compared",
            };
            let ports = ports.receive.into_iter().map(ReceivePort::AfXdp).collect();
            return Ok((ports, &AF_XDP, why.into()));
        }
        Some(Err(error)) => format!("not af_xdp: {error}"),
    };
    match AfPacketReceive::open(&AfPacketOptions::new(interface.clone())) {
        Ok(port) => Ok((vec![ReceivePort::AfPacket(port)], &AF_PACKET, reason)),
        Err(error) => Err(format!("--rx {interface}: {error}")),
    }
}

/// Returns the timestamp point of the ports of one interface.
pub(super) fn stamp(ports: &[ReceivePort]) -> StampPoint {
    ports.first().map_or(StampPoint::Process, |port| port.capabilities().arrival_stamp)
}

/// Purpose of fetching frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Count,
    Verify,
    Measure,
}

/// Processing of each frame, besides counting.
enum Task {
    /// Passes the frame to the receiver that measures its stream, if there is one.
    Measure,
    Verify(Box<Verifier>, Receiver<Noted>),
}

/// A closure that the receiver thread runs on its results between two batches.
type Query = Box<dyn FnOnce(&mut FetchOutcome) + Send>;

/// Handle for queries to a receiver thread. An answer takes at most one batch, or one wait for a
/// batch.
#[derive(Clone, Debug)]
pub(super) struct QueryHandle(Sender<Query>);

impl QueryHandle {
    /// Runs `question` on the thread and returns its result; `None` if the thread has ended.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut FetchOutcome) -> T + Send + 'static,
    ) -> Option<T> {
        let (give, answer) = channel();
        let question = move |outcome: &mut FetchOutcome| {
            let _ = give.send(question(outcome));
        };
        self.0.send(Box::new(question)).ok()?;
        answer.recv().ok()
    }
}

/// A thread that fetches frames from all ports of an interface. Dropping this ends the thread.
pub(super) struct Fetcher {
    thread: Option<JoinHandle<FetchOutcome>>,
    pub(super) sent_log: Option<Sender<Noted>>,
    pub(super) queries: QueryHandle,
    pub(super) packets: Arc<AtomicU64>,
    /// The last answer to [`Self::counters`].
    counted: ReceiveCounters,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
pub(super) struct FetchOutcome {
    pub(super) queues: Vec<Queue>,
    pub(super) missed: u64,
    /// Verification counters, and the number of frames that never arrived.
    pub(super) verified: Option<(VerifyCounters, u64)>,
    /// Measurement of each run.
    pub(super) measured: Vec<measure::Receiver>,
    pub(super) error: Option<String>,
    /// Whether receiving continues after the interface was down.
    pub(super) survives_outages: bool,
}

impl FetchOutcome {
    /// Returns the index of the receiver that measures stream `stream`.
    pub(super) fn receiver_of(&self, stream: u32) -> Option<usize> {
        self.measured.iter().position(|receiver| receiver.measures(stream))
    }

    /// Returns the index of the receiver that counts frames with mark `mark`.
    fn counter_of(&self, mark: u16) -> Option<usize> {
        self.measured.iter().position(|receiver| receiver.counts(mark))
    }

    /// Returns the sum of all queues.
    pub(super) fn counters(&self) -> ReceiveCounters {
        ReceiveCounters {
            received: self.queues.iter().map(|queue| queue.packets).sum(),
            received_bytes: self.queues.iter().map(|queue| queue.bytes).sum(),
            rx_dropped: self.missed,
        }
    }

    fn measure(&mut self, frame: &[u8], received: &Received) {
        let place = match self.measured.len() {
            0 => return,
            1 => 0,
            // Frames without a known number count for the first receiver.
            _ => match measure::find(frame) {
                Some(found) => self.receiver_of(found.signature.stream),
                None => mark::read(frame).and_then(|number| self.counter_of(number)),
            }
            .unwrap_or(0),
        };
        self.measured[place].note(frame, received.original_length, received.arrival);
    }
}

impl Fetcher {
    pub(super) fn count(ports: Vec<ReceivePort>) -> std::io::Result<Self> {
        Self::start(ports, Task::Measure, None, FetchOutcome::default())
    }

    pub(super) fn verify(ports: Vec<ReceivePort>) -> std::io::Result<Self> {
        let (sent_log, noted) = channel();
        let task = Task::Verify(Box::new(Verifier::new(VERIFIED_FRAMES_MAX)), noted);
        Self::start(ports, task, Some(sent_log), FetchOutcome::default())
    }

    /// Starts a measuring thread. `counted`: counters from before the measurement.
    /// `survives_outages`: whether it continues after the interface was down.
    pub(super) fn measure(
        ports: Vec<ReceivePort>,
        receiver: measure::Receiver,
        counted: Vec<Queue>,
        survives_outages: bool,
    ) -> std::io::Result<Self> {
        let outcome =
            FetchOutcome { queues: counted, measured: vec![receiver], ..FetchOutcome::default() };
        let outcome = FetchOutcome { survives_outages, ..outcome };
        Self::start(ports, Task::Measure, None, outcome)
    }

    fn start(
        ports: Vec<ReceivePort>,
        task: Task,
        sent_log: Option<Sender<Noted>>,
        outcome: FetchOutcome,
    ) -> std::io::Result<Self> {
        let packets = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (counter, stopping) = (Arc::clone(&packets), Arc::clone(&stop));
        let (ask, questions) = channel();
        let thread = std::thread::Builder::new()
            .name("receiver".into())
            .spawn(move || fetch(ports, task, outcome, &questions, &counter, &stopping))?;
        let counted = ReceiveCounters::default();
        Ok(Self {
            thread: Some(thread),
            sent_log,
            queries: QueryHandle(ask),
            packets,
            counted,
            stop,
        })
    }

    /// Returns the frames that have arrived so far.
    pub(super) fn counters(&mut self) -> ReceiveCounters {
        // A thread that has ended by an error does not answer.
        if let Some(counted) = self.queries.ask(|outcome| outcome.counters()) {
            self.counted = counted;
        }
        self.counted
    }

    /// Returns whether the thread has ended because the interface failed.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
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

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The thread releases the ports when it ends, also after a panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn fetch(
    mut ports: Vec<ReceivePort>,
    mut task: Task,
    mut outcome: FetchOutcome,
    questions: &Receiver<Query>,
    packets: &AtomicU64,
    stop: &AtomicBool,
) -> FetchOutcome {
    const ROOM: usize = 256;
    /// Pause between batches while frames arrive. It is long enough to leave the CPU to the sender,
    /// and short enough for a ring of thousands of frames. A wake-up for each frame would cost
    /// more. The delay does not affect the measurement, because arrivals are timestamped.
    const PAUSE: StdDuration = StdDuration::from_micros(50);
    /// Number of empty pauses after which the thread blocks for the next frame.
    const PAUSES_MAX: u32 = 4;
    /// Maximum time to block, so that a query, a stop or a failure takes effect soon.
    const PATIENCE: Duration = Duration::from_millis(2);
    /// Pause between attempts while the interface is down.
    const OUTAGE_PAUSE: StdDuration = StdDuration::from_millis(2);
    let mut unsent = Vec::new();
    let mut batch = Vec::with_capacity(ROOM);
    let mut pauses = 0;
    loop {
        // Read the flag before the ports, so that frames that arrived before the stop are still
        // fetched.
        let is_last = stop.load(Ordering::Acquire);
        let mut fetched = 0;
        for port in &mut ports {
            match port.receive(ROOM, &mut batch) {
                Ok(count) => fetched += count,
                Err(PortError::Down { .. }) if outcome.survives_outages => {
                    std::thread::sleep(OUTAGE_PAUSE);
                }
                Err(error) => {
                    outcome.error = Some(error.to_string());
                    break;
                }
            }
            // Workers log frames before they leave, so the log contains all frames that arrived.
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
                    Task::Measure => outcome.measure(frame, &received),
                    Task::Verify(verifier, _) => verifier.arrived(frame_hash(frame)),
                }
                port.release(received);
            }
        }
        packets.fetch_add(fetched as u64, Ordering::Relaxed);
        while let Ok(question) = questions.try_recv() {
            outcome.missed = missed(&ports);
            question(&mut outcome);
        }
        if outcome.error.is_some() || fetched == 0 && is_last {
            break;
        }
        if fetched > 0 {
            pauses = 0;
        } else if pauses < PAUSES_MAX {
            pauses += 1;
            std::thread::sleep(PAUSE);
        } else {
            ReceivePort::wait(&mut ports, PATIENCE);
        }
    }
    outcome.missed = missed(&ports);
    if let Task::Verify(mut verifier, _) = task {
        unsent.into_iter().for_each(|hash| verifier.unsent(hash));
        outcome.verified = Some((*verifier.counters(), verifier.outstanding()));
    }
    outcome
}

fn missed(ports: &[ReceivePort]) -> u64 {
    ports.iter().map(|port| port.received().rx_dropped).sum()
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
