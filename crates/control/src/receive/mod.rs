//! What arrives at the other end: counted in the kernel, or fetched and compared frame by frame.

mod fetch;

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration as StdDuration;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::StampPoint;
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure;
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::{CpuArrivals, XdpCounter, XdpPlace};
use wirestorm_plan::replay::ReceivePlan;

use fetch::{FetchOutcome, Fetcher, Inquiry, Purpose, open_ports};

use crate::backend::{Descriptor, XDP};
use crate::lifecycle::Context;
use crate::port::{OpenError, ReceivePort, stamp_name};
use crate::result::{FrameRate, HistogramReport, QueueReport, ReceiveReport, VerifyReport};

/// The receiving end of a run.
pub(crate) struct Arrivals {
    end: Arc<End>,
    /// A stream that this run measures there.
    measures: Option<u32>,
}

/// What arrives at an interface, for one run or several of this process.
struct End {
    interface: InterfaceName,
    is_shared: bool,
    opened: Mutex<Opened>,
}

struct Opened {
    source: Source,
    backend: &'static Descriptor,
    why: String,
    stamp: StampPoint,
}

/// The receiving ends of the runs that share interfaces.
#[derive(Default)]
pub(crate) struct SharedReceivers(Mutex<Receivers>);

#[derive(Default)]
struct Receivers {
    /// An interface has one at a time, for all runs that count or measure there.
    ends: Vec<Weak<End>>,
    /// Interfaces where runs receive frames by ports of their own.
    needs: Vec<Weak<InterfaceName>>,
}

/// A run receives frames at an interface, as long as this lives: nobody takes them from it.
pub(crate) struct Need {
    _interface: Arc<InterfaceName>,
}

impl SharedReceivers {
    /// Has frames that arrive at an interface left to other runs.
    ///
    /// # Errors
    /// Where a receiving end takes them already.
    pub(crate) fn need(&self, interface: &InterfaceName) -> Result<Need, OpenError> {
        let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = receivers.ends().find_map(|end| {
            let opened = end.lock();
            let takes = end.interface == *interface && !opened.source.has_ended();
            (takes && !opened.backend.is_shared).then_some(opened.backend.name)
        });
        if let Some(backend) = taken {
            return Err(OpenError::FramesTaken { interface: interface.clone(), backend });
        }
        let interface = Arc::new(interface.clone());
        receivers.needs.push(Arc::downgrade(&interface));
        Ok(Need { _interface: interface })
    }
}

impl Receivers {
    fn ends(&mut self) -> impl Iterator<Item = Arc<End>> {
        self.ends.retain(|end| end.strong_count() > 0);
        self.ends.iter().filter_map(Weak::upgrade)
    }

    fn are_needed(&mut self, interface: &InterfaceName) -> bool {
        self.needs.retain(|need| need.strong_count() > 0);
        self.needs.iter().filter_map(Weak::upgrade).any(|need| *need == *interface)
    }
}

/// Asks what was measured at a receiving end so far.
#[derive(Clone, Debug)]
pub(crate) struct Measuring {
    inquiry: Inquiry,
    stream: u32,
}

impl Measuring {
    /// What the receiver of this run answers; none where it has ended.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&measure::Receiver) -> T + Send + 'static,
    ) -> Option<T> {
        let stream = self.stream;
        let asked = self.inquiry.ask(move |outcome| {
            let place = outcome.receiver_of(stream)?;
            Some(question(&outcome.measured[place]))
        });
        asked.flatten()
    }
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
    /// It will, when it is told what to measure; beside what was counted before.
    Ready(Vec<ReceivePort>, Vec<Queue>),
    /// It did.
    Ended(FetchOutcome),
}

/// How long after the last frame was sent arrivals are waited for: more than any queue between
/// two ports of a test holds frames back.
const STRAGGLERS_MAX: Duration = Duration::from_secs(2);

/// Arrivals are complete when nothing has come for this long.
const SILENCE: Duration = Duration::from_millis(200);

/// How often it is looked for more. Counters in the kernel wake nobody; nothing is sent any more
/// that this could disturb, and a report may be late by as much.
const LOOK_INTERVAL: StdDuration = StdDuration::from_millis(1);

impl Arrivals {
    /// Opens the receiving end. `times_all` asks for the distribution of arrival gaps.
    /// Runs with shared access have it together.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open(
        plan: &ReceivePlan,
        times_all: bool,
        context: &Context,
    ) -> Result<Self, String> {
        let interface = parse(&plan.interface)?;
        let open = |needed| {
            if plan.verify {
                return Opened::fetcher(&interface, Purpose::Verify, needed);
            }
            if needed {
                return Opened::fetcher(&interface, Purpose::Count, needed);
            }
            let opened =
                interface.namespace.enter(|| XdpCounter::open(interface.name(), times_all));
            match opened {
                Ok(Ok(counter)) => Ok(Opened {
                    backend: &XDP,
                    why: if counter.is_native() {
                        "counted in the driver".into()
                    } else {
                        "counted before the network stack: the driver has no XDP".into()
                    },
                    source: Source::Counter(counter),
                    stamp: StampPoint::Xdp,
                }),
                Ok(Err(error)) => {
                    let mut opened = Opened::fetcher(&interface, Purpose::Count, false)?;
                    opened.why = format!("not xdp: {error}");
                    Ok(opened)
                }
                Err(error) => Err(format!("--rx {interface}: {error}")),
            }
        };
        let end = End::find_or_open(&interface, context, open)?;
        Ok(Self { end, measures: None })
    }

    /// Opens the receiving end for streams that carry signatures; [`Arrivals::measure`] begins.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open_measuring(interface: &str, context: &Context) -> Result<Self, String> {
        let interface = parse(interface)?;
        let open = |needed| Opened::measuring(&interface, Vec::new(), None, needed);
        let end = End::find_or_open(&interface, context, open)?;
        end.lock().fetch(&interface)?;
        Ok(Self { end, measures: None })
    }

    /// Begins to measure; nothing is done where the receiving end was not opened for that.
    ///
    /// # Errors
    /// Where no thread starts.
    pub(crate) fn measure(&mut self, receiver: measure::Receiver) -> Result<(), String> {
        let Some(first) = receiver.records().first().map(measure::StreamRecord::id) else {
            return Ok(());
        };
        let mut opened = self.end.lock();
        match &mut opened.source {
            Source::Ready(ports, counted) => {
                let (ports, counted) = (std::mem::take(ports), std::mem::take(counted));
                let fetcher = Fetcher::measure(ports, receiver, counted);
                let fetcher = fetcher.map_err(|error| no_thread(&self.end.interface, &error))?;
                opened.source = Source::Fetcher(fetcher);
            }
            Source::Fetcher(fetcher) => {
                let joined = fetcher.inquiry.ask(|it| it.measured.push(receiver));
                joined
                    .ok_or_else(|| format!("--rx {}: receiving has ended", self.end.interface))?;
            }
            Source::Counter(_) | Source::Ended(_) => return Ok(()),
        }
        drop(opened);
        self.measures = Some(first);
        Ok(())
    }

    /// What can be asked of the measurement; none where nothing is measured.
    pub(crate) fn measuring(&self) -> Option<Measuring> {
        match &self.end.lock().source {
            Source::Fetcher(fetcher) => {
                let inquiry = fetcher.inquiry.clone();
                self.measures.map(|stream| Measuring { inquiry, stream })
            }
            _ => None,
        }
    }

    /// What the workers tell of frames to, where they are verified.
    pub(crate) fn sent_log(&self) -> Option<Sender<Noted>> {
        match &self.end.lock().source {
            Source::Fetcher(fetcher) => fetcher.sent_log.clone(),
            _ => None,
        }
    }

    /// Frames that have arrived.
    pub(crate) fn packets(&self) -> u64 {
        match &self.end.lock().source {
            Source::Counter(counter) => {
                counter.read().map_or(0, |cpus| cpus.iter().map(|cpu| cpu.packets).sum())
            }
            Source::Fetcher(fetcher) => fetcher.packets.load(Ordering::Relaxed),
            Source::Ready(..) | Source::Ended(_) => 0,
        }
    }

    /// Frames that have arrived of this run, as far as they can be told from those of others.
    fn own_packets(&self) -> u64 {
        let measuring = if self.end.is_shared { self.measuring() } else { None };
        let counted = measuring.and_then(|measuring| {
            measuring.ask(|it| it.records().iter().map(|record| record.tallies().frames).sum())
        });
        counted.unwrap_or_else(|| self.packets())
    }

    /// Interface to send on.
    pub(crate) fn interface(&self) -> String {
        self.end.interface.to_string()
    }

    /// Waits for the last of `sent` frames, then reports; also what was measured.
    pub(crate) fn finish(mut self, sent: u64) -> (ReceiveReport, Option<measure::Receiver>) {
        let began = clock::now();
        let (mut packets, mut changed) = (self.own_packets(), began);
        while packets < sent {
            let now = clock::now();
            if now.saturating_since(began) > STRAGGLERS_MAX
                || now.saturating_since(changed) > SILENCE
            {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
            let arrived = self.own_packets();
            if arrived != packets {
                (packets, changed) = (arrived, clock::now());
            }
        }
        let mut outcome = self.leave();
        let measured = outcome.measured.pop();
        (self.report(sent, outcome), measured)
    }

    /// What has arrived so far, with what was measured of this run alone, which ends.
    fn leave(&mut self) -> FetchOutcome {
        let measures = self.measures.take();
        let mut opened = self.end.lock();
        let leave = move |outcome: &mut FetchOutcome| {
            let place = measures.and_then(|stream| outcome.receiver_of(stream));
            FetchOutcome {
                queues: outcome.queues.clone(),
                missed: outcome.missed,
                verified: outcome.verified.take(),
                measured: place.map(|place| outcome.measured.remove(place)).into_iter().collect(),
                error: outcome.error.clone(),
            }
        };
        match &mut opened.source {
            Source::Counter(counter) => match counter.read() {
                Ok(cpus) => FetchOutcome {
                    queues: cpus.iter().map(Queue::from).collect(),
                    ..FetchOutcome::default()
                },
                Err(error) => {
                    FetchOutcome { error: Some(error.to_string()), ..FetchOutcome::default() }
                }
            },
            Source::Fetcher(fetcher) => {
                if self.end.is_shared
                    && let Some(own) = fetcher.inquiry.ask(leave)
                {
                    return own;
                }
                let mut outcome = fetcher.finish();
                let own = leave(&mut outcome);
                opened.source = Source::Ended(outcome);
                own
            }
            Source::Ended(outcome) => leave(outcome),
            Source::Ready(..) => FetchOutcome::default(),
        }
    }

    fn report(&self, sent: u64, outcome: FetchOutcome) -> ReceiveReport {
        let opened = self.end.lock();
        let FetchOutcome { queues, missed, verified, error, .. } = outcome;
        let packets: u64 = queues.iter().map(|queue| queue.packets).sum();
        let bytes: u64 = queues.iter().map(|queue| queue.bytes).sum();
        let first = queues.iter().filter_map(|queue| queue.first).min();
        let last = queues.iter().filter_map(|queue| queue.last).max();
        let elapsed_s =
            first.zip(last).map_or(0.0, |(first, last)| last.saturating_since(first).as_secs_f64());
        let rate = FrameRate::new(per_second(packets, elapsed_s), packets, bytes);
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
            backend: Some(opened.backend.name.into()),
            backend_reason: Some(opened.why.clone()),
            stamped: Some(stamp_name(opened.stamp).into()),
            packets,
            bytes,
            elapsed_s: Some(elapsed_s),
            pps: Some(rate.pps),
            bps_l2: Some(rate.bits_per_second(Layer::FrameWithFcs)),
            lost: Some(lost),
            loss_percent: Some(if sent > 0 { lost as f64 * 100.0 / sent as f64 } else { 0.0 }),
            unexpected: Some(match verified {
                Some(_) => 0,
                None => packets.saturating_sub(sent),
            }),
            unsigned: None,
            wrong_port: None,
            dropped: missed,
            neighbour_packets: queues.iter().map(|queue| queue.neighbour_packets).sum(),
            verify: verified.as_ref().map(|(counters, _)| VerifyReport {
                intact: counters.intact,
                reordered: counters.reordered,
                reordering_extent_max: counters.reordering_extent_max,
                duplicated: counters.duplicated,
                unexpected: counters.unexpected,
                unverified: counters.unverified,
            }),
            gaps: (gaps.count() > 0).then(|| HistogramReport::new(&gaps)),
            queue_kind: Some(match opened.source {
                Source::Counter(_) => "cpu".into(),
                Source::Fetcher(_) | Source::Ready(..) | Source::Ended(_) => "queue".into(),
            }),
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

impl Drop for Arrivals {
    fn drop(&mut self) {
        if self.measures.is_some() {
            // The run did not come to its end; others may go on.
            self.leave();
        }
    }
}

impl End {
    /// The end at an interface, or with exclusive access a new one; `open` is told whether other runs
    /// need the same frames.
    fn find_or_open(
        interface: &InterfaceName,
        context: &Context,
        open: impl FnOnce(bool) -> Result<Opened, String>,
    ) -> Result<Arc<Self>, String> {
        let new = |opened| {
            let opened = Mutex::new(opened);
            let is_shared = context.is_shared();
            Arc::new(Self { interface: interface.clone(), is_shared, opened })
        };
        if !context.is_shared() {
            return open(false).map(new);
        }
        let receivers = context.host.receivers();
        let mut receivers = receivers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |end: &Arc<Self>| end.interface == *interface && !end.lock().source.has_ended();
        if let Some(end) = receivers.ends().find(is_it) {
            return Ok(end);
        }
        let end = open(receivers.are_needed(interface)).map(new)?;
        receivers.ends.push(Arc::downgrade(&end));
        Ok(end)
    }

    fn lock(&self) -> MutexGuard<'_, Opened> {
        // What is opened is replaced in one step: a panic elsewhere leaves none half done.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    fn fetcher(interface: &InterfaceName, purpose: Purpose, needed: bool) -> Result<Self, String> {
        let (ports, backend, why) = open_ports(interface, purpose, None, needed)?;
        let stamp = fetch::stamp(&ports);
        let fetcher = match purpose {
            Purpose::Verify => Fetcher::verify(ports),
            _ => Fetcher::count(ports),
        };
        let source = Source::Fetcher(fetcher.map_err(|error| no_thread(interface, &error))?);
        Ok(Self { source, backend, why, stamp })
    }

    /// Ready to be told what is measured, beside what was counted before in this place.
    fn measuring(
        interface: &InterfaceName,
        counted: Vec<Queue>,
        place: Option<XdpPlace>,
        needed: bool,
    ) -> Result<Self, String> {
        let (ports, backend, why) = open_ports(interface, Purpose::Measure, place, needed)?;
        let stamp = fetch::stamp(&ports);
        Ok(Self { source: Source::Ready(ports, counted), backend, why, stamp })
    }

    /// Fetches frames from now on, where another run let the kernel count them.
    fn fetch(&mut self, interface: &InterfaceName) -> Result<(), String> {
        match std::mem::replace(&mut self.source, Source::Ended(FetchOutcome::default())) {
            Source::Counter(counter) => {
                let failed = |error: std::io::Error| format!("--rx {interface}: {error}");
                let counted = counter.read().map_err(failed)?.iter().map(Queue::from).collect();
                let place = counter.into_place().map_err(failed)?;
                *self = Self::measuring(interface, counted, Some(place), false)?;
            }
            other => self.source = other,
        }
        Ok(())
    }
}

impl Source {
    fn has_ended(&self) -> bool {
        match self {
            Self::Ended(_) => true,
            Self::Fetcher(fetcher) => fetcher.has_ended(),
            Self::Counter(_) | Self::Ready(..) => false,
        }
    }
}

fn no_thread(interface: &InterfaceName, error: &std::io::Error) -> String {
    format!("--rx {interface}: cannot start a thread: {error}")
}

fn parse(interface: &str) -> Result<InterfaceName, String> {
    interface.parse().map_err(|error| format!("--rx: {error}"))
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
