//! What arrives at the other end: counted in the kernel, or fetched and compared frame by frame.

mod fetch;

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration as StdDuration;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::StampPoint;
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure;
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::{CpuArrivals, XdpCounter};
use wirestorm_plan::replay::ReceivePlan;

pub(crate) use fetch::Measured;
use fetch::{FetchOutcome, FetchPort, Fetcher, Purpose};

use crate::port::stamp_name;
use crate::result::{FrameRate, HistogramReport, QueueReport, ReceiveReport, VerifyReport};

/// The receiving end of a run.
pub(crate) struct Arrivals {
    interface: InterfaceName,
    source: Source,
    backend: &'static str,
    why: String,
    stamp: StampPoint,
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
    /// It will, when it is told what to measure.
    Ready(Vec<FetchPort>),
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
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open(plan: &ReceivePlan, times_all: bool) -> Result<Self, String> {
        let interface = parse(&plan.interface)?;
        if plan.verify {
            return Self::open_fetcher(interface, Purpose::Verify);
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
                stamp: StampPoint::Xdp,
            }),
            Ok(Err(error)) => {
                let mut arrivals = Self::open_fetcher(interface, Purpose::Count)?;
                arrivals.why = format!("not xdp: {error}");
                Ok(arrivals)
            }
            Err(error) => Err(format!("--rx {interface}: {error}")),
        }
    }

    /// Opens the receiving end for streams that carry signatures; [`Arrivals::measure`] begins.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub(crate) fn open_measuring(interface: &str) -> Result<Self, String> {
        let interface = parse(interface)?;
        let (ports, backend, why) = FetchPort::open(&interface, Purpose::Measure)?;
        let stamp = FetchPort::stamp(&ports);
        Ok(Self { interface, source: Source::Ready(ports), backend, why, stamp })
    }

    /// Begins to measure; nothing is done where the receiving end was not opened for that.
    ///
    /// # Errors
    /// Where no thread starts.
    pub(crate) fn measure(&mut self, receiver: measure::Receiver) -> Result<(), String> {
        if let Source::Ready(ports) = &mut self.source {
            let fetcher = Fetcher::measure(std::mem::take(ports), receiver);
            self.source = Source::Fetcher(fetcher.map_err(|error| self.no_thread(&error))?);
        }
        Ok(())
    }

    fn open_fetcher(interface: InterfaceName, purpose: Purpose) -> Result<Self, String> {
        let (ports, backend, why) = FetchPort::open(&interface, purpose)?;
        let stamp = FetchPort::stamp(&ports);
        let source = Source::Ready(Vec::new());
        let mut arrivals = Self { interface, source, backend, why, stamp };
        let fetcher = match purpose {
            Purpose::Verify => Fetcher::verify(ports),
            _ => Fetcher::count(ports),
        };
        arrivals.source = Source::Fetcher(fetcher.map_err(|error| arrivals.no_thread(&error))?);
        Ok(arrivals)
    }

    fn no_thread(&self, error: &std::io::Error) -> String {
        format!("--rx {}: cannot start a thread: {error}", self.interface)
    }

    /// How far the measurement of each stream has come; empty where none are measured.
    pub(crate) fn measured(&self) -> Vec<Measured> {
        match &self.source {
            Source::Fetcher(fetcher) => {
                fetcher.measured.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Source::Counter(_) | Source::Ready(_) => Vec::new(),
        }
    }

    /// What the workers tell of frames to, where they are verified.
    pub(crate) fn sent_log(&self) -> Option<Sender<Noted>> {
        match &self.source {
            Source::Counter(_) | Source::Ready(_) => None,
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
            Source::Ready(_) => 0,
        }
    }

    /// Waits for the last of `sent` frames, then reports; also what was measured.
    pub(crate) fn finish(mut self, sent: u64) -> (ReceiveReport, Option<Box<measure::Receiver>>) {
        let began = clock::now();
        let (mut packets, mut changed) = (self.packets(), began);
        while packets < sent {
            let now = clock::now();
            if now.saturating_since(began) > STRAGGLERS_MAX
                || now.saturating_since(changed) > SILENCE
            {
                break;
            }
            std::thread::sleep(LOOK_INTERVAL);
            let arrived = self.packets();
            if arrived != packets {
                (packets, changed) = (arrived, clock::now());
            }
        }
        let mut outcome = match &mut self.source {
            Source::Counter(counter) => match counter.read() {
                Ok(cpus) => FetchOutcome {
                    queues: cpus.iter().map(Queue::from).collect(),
                    ..FetchOutcome::default()
                },
                Err(error) => {
                    FetchOutcome { error: Some(error.to_string()), ..FetchOutcome::default() }
                }
            },
            Source::Fetcher(fetcher) => fetcher.finish(),
            Source::Ready(_) => FetchOutcome::default(),
        };
        let measured = outcome.measured.take();
        (self.report(sent, outcome), measured)
    }

    fn report(self, sent: u64, outcome: FetchOutcome) -> ReceiveReport {
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
            interface: self.interface.to_string(),
            backend: self.backend,
            why: self.why,
            stamped: stamp_name(self.stamp),
            packets,
            bytes,
            elapsed_s,
            pps: rate.pps,
            bps_l2: rate.bits_per_second(Layer::FrameWithFcs),
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
                Source::Fetcher(_) | Source::Ready(_) => "queue",
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
