//! Receiving side of runs: counts frames in the kernel, or fetches and checks each frame.

mod fetch;

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration as StdDuration;

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{ReceiveCounters, StampPoint};
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure;
use wirestorm_io::clock;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::xdp::{CpuArrivals, XdpAttachment, XdpCounter};
use wirestorm_plan::replay::ReceivePlan;

use fetch::{FetchOutcome, Fetcher, Purpose, QueryHandle, open_ports};

use crate::backend::{Descriptor, XDP};
use crate::port::{OpenError, ReceivePort, stamp_name};
use crate::result::{FrameRate, HistogramReport, QueueReport, ReceiveReport, VerifyReport};

/// Receiver of a run.
pub(crate) struct RunReceiver {
    end: Arc<InterfaceReceiver>,
    /// First stream that this run measures here.
    measures: Option<u32>,
}

/// Receiver of an interface, used by one or more runs of this process.
struct InterfaceReceiver {
    interface: InterfaceName,
    is_shared: bool,
    opened: Mutex<OpenReceiver>,
}

struct OpenReceiver {
    source: Source,
    backend: &'static Descriptor,
    why: String,
    stamp: StampPoint,
}

/// Receivers of the runs that share interfaces.
#[derive(Default)]
pub(crate) struct SharedReceivers(Mutex<Receivers>);

#[derive(Default)]
struct Receivers {
    /// At most one for each interface, for all runs that count or measure there.
    ends: Vec<Weak<InterfaceReceiver>>,
    /// Interfaces where runs receive frames on their own ports.
    needs: Vec<Weak<InterfaceName>>,
}

/// The counters of a receiver, for the snapshots of a run.
#[derive(Clone)]
pub(crate) struct ArrivalCounters(Arc<InterfaceReceiver>);

impl ArrivalCounters {
    /// Returns the frames that have arrived, those of other runs on a shared interface included.
    /// The receiver thread, if there is one, answers within 2 ms.
    pub(crate) fn read(&self) -> ReceiveCounters {
        match &mut self.0.lock().source {
            Source::Counter(counter) => counter.read_sum().map_or_else(
                |_| ReceiveCounters::default(),
                |(received, received_bytes)| ReceiveCounters {
                    received,
                    received_bytes,
                    rx_dropped: 0,
                },
            ),
            Source::Fetcher(fetcher) => fetcher.counters(),
            Source::Opened(..) => ReceiveCounters::default(),
            Source::Ended(outcome) => outcome.counters(),
        }
    }

    /// Returns the name of the receiving interface.
    pub(crate) fn interface(&self) -> String {
        self.0.interface.to_string()
    }
}

/// Marks that a run or a capture receives frames on an interface. While this exists, other runs with
/// shared access do not consume those frames.
#[derive(Debug)]
pub struct FrameClaim {
    _interface: Arc<InterfaceName>,
}

impl SharedReceivers {
    /// Registers that a run receives the frames of an interface on its own port.
    ///
    /// # Errors
    /// Fails if the receiver of another run already consumes the frames.
    pub(crate) fn need(&self, interface: &InterfaceName) -> Result<FrameClaim, OpenError> {
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
        Ok(FrameClaim { _interface: interface })
    }
}

impl Receivers {
    fn ends(&mut self) -> impl Iterator<Item = Arc<InterfaceReceiver>> {
        self.ends.retain(|end| end.strong_count() > 0);
        self.ends.iter().filter_map(Weak::upgrade)
    }

    fn is_claimed(&mut self, interface: &InterfaceName) -> bool {
        self.needs.retain(|need| need.strong_count() > 0);
        self.needs.iter().filter_map(Weak::upgrade).any(|need| *need == *interface)
    }
}

/// Handle for queries about the measurement in progress.
#[derive(Clone, Debug)]
pub(crate) struct MeasurementQuery {
    inquiry: QueryHandle,
    stream: u32,
}

impl MeasurementQuery {
    /// Runs `question` on the receiver of this run; `None` if it has ended.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut measure::Receiver) -> T + Send + 'static,
    ) -> Option<T> {
        let stream = self.stream;
        let measurement = self.inquiry.ask(move |outcome| {
            let place = outcome.receiver_of(stream)?;
            Some(question(&mut outcome.measured[place]))
        });
        measurement.flatten()
    }
}

/// Message of a worker about frames, identified by hash.
pub(crate) enum Noted {
    /// Frames about to be sent.
    Sent(Vec<u64>),
    /// Frames logged before that were never sent.
    Unsent(Vec<u64>),
}

enum Source {
    /// An XDP program in the kernel counts frames.
    Counter(XdpCounter),
    /// A thread of this process fetches each frame.
    Fetcher(Fetcher),
    /// Open ports that wait for a measurement to start, and the counters from before.
    Opened(Vec<ReceivePort>, Vec<Queue>),
    /// Ended, with the outcome of the thread.
    Ended(FetchOutcome),
}

/// How long to wait for arrivals after the last frame was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Time without arrivals after which arrivals are complete.
    pub(crate) quiet: Duration,
    /// Maximum time.
    pub(crate) most: Duration,
}

impl Patience {
    /// Between ports of one machine. No queue between two test ports holds frames back longer.
    pub(crate) const NEAR: Self =
        Self { quiet: Duration::from_millis(200), most: Duration::from_secs(2) };

    /// Between machines: `quiet` covers the path and the message that all is sent.
    pub(crate) fn far(quiet: Duration) -> Self {
        Self { quiet, most: quiet.max(Self::NEAR.most) }
    }
}

/// Interval at which arrivals are polled at the end. Kernel counters cannot wake a thread, and
/// nothing is sent any more that polling could disturb. It also bounds the delay of the report.
const LOOK_INTERVAL: StdDuration = StdDuration::from_millis(1);

impl RunReceiver {
    /// Opens the receiver. `times_all` requests the distribution of inter-arrival times. Runs with
    /// shared access use the same receiver.
    ///
    /// # Errors
    /// Returns the backends tried and the system errors.
    pub(crate) fn open(
        plan: &ReceivePlan,
        times_all: bool,
        shared: Option<&SharedReceivers>,
    ) -> Result<Self, String> {
        let interface = parse(&plan.interface)?;
        let open = |needed| {
            if plan.verify {
                return OpenReceiver::fetcher(&interface, Purpose::Verify, needed);
            }
            if needed {
                return OpenReceiver::fetcher(&interface, Purpose::Count, needed);
            }
            let opened =
                interface.namespace.enter(|| XdpCounter::open(interface.name(), times_all));
            match opened {
                Ok(Ok(counter)) => Ok(OpenReceiver {
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
                    let mut opened = OpenReceiver::fetcher(&interface, Purpose::Count, false)?;
                    opened.why = format!("not xdp: {error}");
                    Ok(opened)
                }
                Err(error) => Err(format!("--rx {interface}: {error}")),
            }
        };
        let end = InterfaceReceiver::shared_or_open(&interface, shared, open)?;
        Ok(Self { end, measures: None })
    }

    /// Opens the receiver for streams with signatures. [`RunReceiver::measure`] starts the
    /// measurement.
    ///
    /// # Errors
    /// Returns the backends tried and the system errors.
    pub(crate) fn open_measuring(
        interface: &str,
        shared: Option<&SharedReceivers>,
    ) -> Result<Self, String> {
        let interface = parse(interface)?;
        let open = |needed| OpenReceiver::measuring(&interface, Vec::new(), None, needed);
        let end = InterfaceReceiver::shared_or_open(&interface, shared, open)?;
        end.lock().fetch(&interface)?;
        Ok(Self { end, measures: None })
    }

    /// Starts the measurement. Does nothing if the receiver was not opened for it.
    /// `survives_outages`: whether receiving continues after the interface was down, for all runs that
    /// share the receiver.
    ///
    /// # Errors
    /// Fails if no thread starts, or receiving has ended.
    pub(crate) fn measure(
        &mut self,
        receiver: measure::Receiver,
        survives_outages: bool,
    ) -> Result<(), String> {
        let Some(first) = receiver.records().first().map(measure::StreamRecord::id) else {
            return Ok(());
        };
        let mut opened = self.end.lock();
        match &mut opened.source {
            Source::Opened(ports, counted) => {
                let (ports, counted) = (std::mem::take(ports), std::mem::take(counted));
                let fetcher = Fetcher::measure(ports, receiver, counted, survives_outages);
                let fetcher = fetcher.map_err(|error| no_thread(&self.end.interface, &error))?;
                opened.source = Source::Fetcher(fetcher);
            }
            Source::Fetcher(fetcher) => {
                let joined = fetcher.queries.ask(move |it| {
                    it.survives_outages |= survives_outages;
                    it.measured.push(receiver);
                });
                joined
                    .ok_or_else(|| format!("--rx {}: receiving has ended", self.end.interface))?;
            }
            Source::Counter(_) | Source::Ended(_) => return Ok(()),
        }
        drop(opened);
        self.measures = Some(first);
        Ok(())
    }

    /// Returns a handle for queries about the measurement; `None` without one.
    pub(crate) fn measuring(&self) -> Option<MeasurementQuery> {
        match &self.end.lock().source {
            Source::Fetcher(fetcher) => {
                let inquiry = fetcher.queries.clone();
                self.measures.map(|stream| MeasurementQuery { inquiry, stream })
            }
            _ => None,
        }
    }

    /// Returns the log of sent frames for workers; `None` without verification.
    pub(crate) fn sent_log(&self) -> Option<Sender<Noted>> {
        match &self.end.lock().source {
            Source::Fetcher(fetcher) => fetcher.sent_log.clone(),
            _ => None,
        }
    }

    /// Returns the number of frames received.
    fn packets(&self) -> u64 {
        match &self.end.lock().source {
            Source::Counter(counter) => {
                counter.read().map_or(0, |cpus| cpus.iter().map(|cpu| cpu.packets).sum())
            }
            Source::Fetcher(fetcher) => fetcher.packets.load(Ordering::Relaxed),
            Source::Opened(..) | Source::Ended(_) => 0,
        }
    }

    /// Returns the number of frames of this run received, or of all runs if they are
    /// indistinguishable.
    fn own_packets(&self) -> u64 {
        let measuring = if self.end.is_shared { self.measuring() } else { None };
        let counted = measuring.and_then(|measuring| {
            measuring.ask(|it| it.records().iter().map(|record| record.tallies().frames).sum())
        });
        counted.unwrap_or_else(|| self.packets())
    }

    /// Returns the name of the receiving interface.
    pub(crate) fn interface(&self) -> String {
        self.end.interface.to_string()
    }

    /// Returns the counters for the snapshots of the run.
    pub(crate) fn counters(&self) -> ArrivalCounters {
        ArrivalCounters(Arc::clone(&self.end))
    }

    /// Waits for the last of `sent` frames. Returns the report and the measurement.
    pub(crate) fn finish(
        mut self,
        sent: u64,
        patience: Patience,
    ) -> (ReceiveReport, Option<measure::Receiver>) {
        let began = clock::now();
        let (mut packets, mut changed) = (self.own_packets(), began);
        while packets < sent {
            let now = clock::now();
            if now.saturating_since(began) > patience.most
                || now.saturating_since(changed) > patience.quiet
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

    /// Ends the measurement of this run. Returns the counters so far and the measurement.
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
                ..FetchOutcome::default()
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
                    && let Some(outcome) = fetcher.queries.ask(leave)
                {
                    return outcome;
                }
                let mut finished = fetcher.finish();
                let outcome = leave(&mut finished);
                opened.source = Source::Ended(finished);
                outcome
            }
            Source::Ended(outcome) => leave(outcome),
            Source::Opened(..) => FetchOutcome::default(),
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
        // In a plain count, frames of other hosts hide lost frames. Verification excludes them.
        let lost = match &verified {
            // Workers also log frames that a port refused, which were not lost in transit.
            Some((counters, outstanding)) => outstanding
                .saturating_sub(counters.sent.saturating_sub(sent))
                .saturating_sub(missed),
            None => sent.saturating_sub(packets),
        };
        ReceiveReport {
            backend: Some(opened.backend.name.into()),
            backend_reason: Some(opened.why.clone()),
            timestamp_point: Some(stamp_name(opened.stamp).into()),
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
            no_signature: None,
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
                Source::Fetcher(_) | Source::Opened(..) | Source::Ended(_) => "queue".into(),
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

impl Drop for RunReceiver {
    fn drop(&mut self) {
        if self.measures.is_some() {
            // The run ended early. Other runs may still use the receiver.
            self.leave();
        }
    }
}

impl InterfaceReceiver {
    /// Returns the shared receiver of an interface, or opens one. `open` receives whether other
    /// runs need the same frames.
    fn shared_or_open(
        interface: &InterfaceName,
        shared: Option<&SharedReceivers>,
        open: impl FnOnce(bool) -> Result<OpenReceiver, String>,
    ) -> Result<Arc<Self>, String> {
        let new = |opened| {
            let opened = Mutex::new(opened);
            let is_shared = shared.is_some();
            Arc::new(Self { interface: interface.clone(), is_shared, opened })
        };
        let Some(receivers) = shared else { return open(false).map(new) };
        let mut receivers = receivers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |end: &Arc<Self>| end.interface == *interface && !end.lock().source.has_ended();
        if let Some(end) = receivers.ends().find(is_it) {
            return Ok(end);
        }
        let end = open(receivers.is_claimed(interface)).map(new)?;
        receivers.ends.push(Arc::downgrade(&end));
        Ok(end)
    }

    fn lock(&self) -> MutexGuard<'_, OpenReceiver> {
        // Updates replace the value in one step, so a panic of another thread leaves it consistent.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenReceiver {
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

    /// Opens ports for a measurement. `counted`: counters of the XDP program in `place` so far.
    fn measuring(
        interface: &InterfaceName,
        counted: Vec<Queue>,
        place: Option<XdpAttachment>,
        needed: bool,
    ) -> Result<Self, String> {
        let (ports, backend, why) = open_ports(interface, Purpose::Measure, place, needed)?;
        let stamp = fetch::stamp(&ports);
        Ok(Self { source: Source::Opened(ports, counted), backend, why, stamp })
    }

    /// Switches from counting in the kernel to fetching frames, if another run counts here.
    fn fetch(&mut self, interface: &InterfaceName) -> Result<(), String> {
        match std::mem::replace(&mut self.source, Source::Ended(FetchOutcome::default())) {
            Source::Counter(counter) => {
                let failed = |error: std::io::Error| format!("--rx {interface}: {error}");
                let counted = counter.read().map_err(failed)?.iter().map(Queue::from).collect();
                let place = counter.into_attachment().map_err(failed)?;
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
            Self::Counter(_) | Self::Opened(..) => false,
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
