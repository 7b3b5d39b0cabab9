//! Worker thread of a replay.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, mpsc};

use wirestorm_base::port::{PortError, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::{
    Breath, Feed, Outputs, Renderer, ReplayCounters, Worker, WorkerState,
};
use wirestorm_io::clock;
use wirestorm_plan::replay::{ReplayPlan, Target};

use super::compile;
use super::hooks::{FrameCallback, PacketPrompt};
use super::reader::ReaderFeed;
use crate::backend::Choice;
use crate::backend::{PortVisitor, TransmitPort};
use crate::lifecycle::Controls;
use crate::port::{Interfaces, Watch};
use crate::receive::Noted;
use crate::work::{
    Stamped, awaited, departures, drain, final_counters, late_end_max, rest, wait_while_paused,
};

/// Counters of a worker, at most [`PUBLISH_INTERVAL`] old.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) counters: ReplayCounters,
    /// Counters of both ports.
    pub(super) transmitted: TransmitCounters,
    /// Counters of each port.
    pub(super) ports: [TransmitCounters; 2],
    /// CPU time of the thread.
    pub(super) time: Duration,
}

/// The end of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassEnd {
    /// Time when the last frame of the pass had left.
    pub(super) at: Instant,
    /// Counters at that time.
    pub(super) snapshot: Snapshot,
}

/// Outcome of a worker.
pub(super) struct WorkerOutcome {
    /// Counters by port.
    pub(super) counters: [ReplayCounters; 2],
    pub(super) ports: Vec<PortOutcome>,
    /// Frames that the port sent by itself, and why it sent none so.
    pub(super) made_by_port: (u64, Option<&'static str>),
    /// Departures, and the point where they were timestamped.
    pub(super) departures: Option<Stamped>,
    pub(super) finished: Instant,
    /// Time in which no frame was due.
    pub(super) paused: Duration,
    pub(super) error: Option<PortError>,
}

/// Outcome of one port.
pub(super) struct PortOutcome {
    pub(super) choice: Choice,
    pub(super) transmitted: TransmitCounters,
}

/// Context of a worker.
pub(super) struct WorkerContext<'a> {
    pub(super) plan: &'a ReplayPlan,
    pub(super) controls: &'a Controls,
    pub(super) interfaces: &'a Interfaces,
    pub(super) index: usize,
    pub(super) snapshot: &'a Mutex<Snapshot>,
    pub(super) sent_log: Option<mpsc::Sender<Noted>>,
    pub(super) show: Option<Arc<Mutex<FrameCallback>>>,
    pub(super) ask: Option<PacketPrompt>,
    /// Receives the end of each pass.
    pub(super) pass_ends: Option<mpsc::SyncSender<PassEnd>>,
}

impl Snapshot {
    /// Reads the counters of the ports, and the CPU time of the calling worker thread.
    fn new(counters: ReplayCounters, ports: &[TransmitPort]) -> Self {
        let mut by_port = [TransmitCounters::default(); 2];
        for (counters, port) in by_port.iter_mut().zip(ports) {
            *counters = port.transmitted();
        }
        let [mut transmitted, second] = by_port;
        transmitted.merge(&second);
        Self { counters, transmitted, ports: by_port, time: clock::thread_time() }
    }
}

/// Interval at which a worker publishes its counters.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// Interval at which a worker checks its interfaces.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

impl WorkerContext<'_> {
    /// Iterates until all frames are sent, a port fails or the run stops.
    pub(super) fn work(
        mut self,
        feed: ReaderFeed,
        ports: Vec<(TransmitPort, Choice)>,
        start: Instant,
    ) -> WorkerOutcome {
        let (mut ports, choices): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        let mut worker = self.worker(feed, start);
        let mut passes = PendingPasses::default();
        let outcome = self.send(&mut worker, &mut ports, &mut passes, start);
        if let [port] = &mut ports[..] {
            worker.recall(port);
        }
        let counters = *worker.counters_by_port();
        let sum = worker.counters();
        let paused = worker.paused();
        let made_by_port = worker.made_by_port();
        let own_departures = worker.departures().clone();
        // Drops the feed, which releases a reader that waits for space in the queue.
        let held = worker.into_unsent_hashes();
        let unsent_before: Vec<u64> = ports.iter().map(|port| port.transmitted().unsent).collect();
        let outcome = outcome.and_then(|()| {
            drain(&mut ports, &self.controls.stop, |ports| {
                // An interrupted pass has not ended.
                let stops = self.controls.is_stopped();
                if let Some(pass_ends) = self.pass_ends.as_ref().filter(|_| !stops) {
                    passes.tell(ports, pass_ends);
                }
            })
        });
        let finished = clock::now();
        for ((port, held), before) in ports.iter().zip(held).zip(unsent_before) {
            let given_up = port.transmitted().unsent - before + port.in_flight() as u64;
            self.note_unsent(held, given_up as usize);
        }
        self.publish(sum, &ports);
        WorkerOutcome {
            counters,
            made_by_port,
            departures: departures(own_departures, &ports),
            ports: ports
                .iter_mut()
                .zip(choices)
                .map(|(port, choice)| PortOutcome {
                    choice,
                    transmitted: final_counters(port, outcome.is_err()),
                })
                .collect(),
            finished,
            paused,
            error: outcome.err().map(|error| self.interfaces.settle(error)),
        }
    }

    fn worker(&mut self, feed: ReaderFeed, start: Instant) -> Worker<ReaderFeed> {
        let options = compile::worker_options(self.plan, self.index);
        let renderer = Renderer::new(compile::render_options(self.plan, self.interfaces));
        let mut worker = Worker::new(feed, options, renderer, start);
        if let Some(sent_log) = self.sent_log.clone() {
            worker = worker.with_sent_log(Box::new(move |hashes| {
                // The receiver outlives the workers unless it failed, and then it reports the
                // error.
                let _ = sent_log.send(Noted::Sent(hashes.to_vec()));
            }));
        }
        if let Some(show) = self.show.take() {
            worker = worker.with_frame_callback(Box::new(move |time, frame| {
                if let Ok(mut show) = show.lock() {
                    show(time, frame);
                }
            }));
        }
        if self.ask.is_some() {
            worker.allow(0);
        }
        if self.pass_ends.is_some() {
            worker.stop_at_pass_end();
        }
        worker
    }

    fn send(
        &mut self,
        worker: &mut Worker<ReaderFeed>,
        ports: &mut [TransmitPort],
        passes: &mut PendingPasses,
        start: Instant,
    ) -> Result<(), PortError> {
        let holds_departures = ports.iter().all(|port| port.capabilities().holds_departure);
        let mut watches = self.interfaces.watch();
        let (mut published, mut watched) = (Instant::ZERO, Instant::ZERO);
        let end_max = self.end_max(start);
        loop {
            let now = clock::now();
            let state = breathe(worker, now, ports)?.state;
            if let Some(pass_ends) = &self.pass_ends {
                passes.note(worker.counters());
                passes.tell(ports, pass_ends);
            }
            let is_over = now > end_max.saturating_add(worker.paused());
            if state == WorkerState::Done || is_over || self.controls.is_stopped() {
                return Ok(());
            }
            if now.saturating_since(published) >= PUBLISH_INTERVAL {
                published = now;
                self.publish(worker.counters(), ports);
            }
            if now.saturating_since(watched) >= WATCH_INTERVAL {
                watched = now;
                watches.iter_mut().try_for_each(Watch::check)?;
            }
            if self.controls.is_paused() {
                if let [port] = &mut *ports {
                    worker.recall(port);
                }
                worker.postpone(wait_while_paused(self.controls));
            } else if state == WorkerState::Held {
                match self.ask.as_mut().and_then(|ask| ask(worker.next_packet())) {
                    Some(packets) => worker.allow(packets),
                    None => return Ok(()),
                }
            } else {
                rest(awaited(state, now, start), now, holds_departures);
            }
        }
    }

    /// Reports to the receiver that the last `count` frames never left.
    fn note_unsent(&self, held: VecDeque<u64>, count: usize) {
        let Some(sent_log) = &self.sent_log else { return };
        let left = held.len().saturating_sub(count);
        let _ = sent_log.send(Noted::Unsent(held.into_iter().skip(left).collect()));
    }

    /// Returns the latest end of sending, without pauses. A capture file has virtual time and no
    /// limit.
    fn end_max(&self, start: Instant) -> Instant {
        let duration = self.plan.limits.duration;
        match self.plan.target {
            Target::File(_) => Instant::MAX,
            _ => start.saturating_add(duration).saturating_add(late_end_max(duration)),
        }
    }

    fn publish(&self, counters: ReplayCounters, ports: &[TransmitPort]) {
        if let Ok(mut snapshot) = self.snapshot.try_lock() {
            *snapshot = Snapshot::new(counters, ports);
        }
    }
}

/// Passes whose frames were given to the ports but have not all left.
#[derive(Default)]
struct PendingPasses {
    /// Passes reported or waiting.
    seen: u64,
    /// Counters at the time when all frames of a pass were given to the ports. The queue is no
    /// longer than the number of frames in the ports.
    waiting: VecDeque<ReplayCounters>,
}

impl PendingPasses {
    /// Records that all frames of a pass were given to the ports.
    fn note(&mut self, counters: ReplayCounters) {
        if counters.passes > self.seen {
            self.seen = counters.passes;
            self.waiting.push_back(counters);
        }
    }

    /// Reports the passes whose frames have left.
    fn tell(&mut self, ports: &[TransmitPort], pass_ends: &mpsc::SyncSender<PassEnd>) {
        while let Some(counters) = self.waiting.front() {
            let mut transmitted = transmitted(ports);
            let done = transmitted.sent + transmitted.failed + transmitted.unsent;
            if done < counters.packets {
                return;
            }
            // Frames of the next pass may have left since.
            transmitted.sent = transmitted.sent.min(counters.packets);
            transmitted.sent_bytes = transmitted.sent_bytes.min(counters.bytes);
            let snapshot = Snapshot { transmitted, ..Snapshot::new(*counters, ports) };
            // The channel is closed if the run has ended.
            let _ = pass_ends.send(PassEnd { at: clock::now(), snapshot });
            self.waiting.pop_front();
        }
    }
}

/// Returns the sum of the transmit counters of all ports.
fn transmitted(ports: &[TransmitPort]) -> TransmitCounters {
    let mut transmitted = TransmitCounters::default();
    for port in ports {
        transmitted.merge(&port.transmitted());
    }
    transmitted
}

/// Runs one iteration of a worker. With a single port it uses the concrete port type, which avoids
/// dispatch for each frame.
///
/// # Errors
/// As [`Worker::breathe`].
fn breathe<F: Feed>(
    worker: &mut Worker<F>,
    now: Instant,
    ports: &mut [TransmitPort],
) -> Result<Breath, PortError> {
    match ports {
        [port] => port.visit(Breathe { worker, now }),
        ports => match Outputs::of(ports) {
            Some(outputs) => worker.breathe(now, outputs),
            // Unreachable: a plan has one output or two.
            None => Ok(Breath { frames: 0, state: WorkerState::Done }),
        },
    }
}

/// One iteration of a worker on its only port.
struct Breathe<'a, F> {
    worker: &'a mut Worker<F>,
    now: Instant,
}

impl<F: Feed> PortVisitor for Breathe<'_, F> {
    type Output = Result<Breath, PortError>;

    #[inline]
    fn visit<P: Transmit>(self, port: &mut P) -> Self::Output {
        self.worker.breathe(self.now, Outputs::one(port))
    }
}
