//! A replay from its plan to its result.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration as StdDuration;

use wirestorm_base::departure::DepartureRecord;
use wirestorm_base::pace::Pace;
use wirestorm_base::port::{PortError, StampPoint, Transmit, TransmitCounters};
use wirestorm_base::rate::Layer;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::edit::EditOptions;
use wirestorm_engine::replay::{
    IndexerOptions, RenderOptions, Renderer, ReplayCounters, SideSource, Unique, UniqueAddresses,
    Worker, WorkerOptions, WorkerState,
};
use wirestorm_io::clock;
use wirestorm_io::link::{Link, LinkError};
use wirestorm_io::lock::{InterfaceLock, LockError};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};
use wirestorm_plan::replay::{Backend, ReplayPlan, Target};

use super::input::{Input, InputError, expand_inputs};
use super::port::{Choice, PortOptions, TransmitPort};
use super::reader::{ReadError, Reader, ReaderCounters, ReaderFeed, ReaderOptions};
use super::receive::Arrivals;
use crate::cpu;
use crate::result::{
    Asked, DepartureReport, Flows, PortReport, ReceiveReport, Refused, Retried, RunResult, SCHEMA,
};

/// Why a replay did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A capture does not open.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A capture cannot be read from its first packet on.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A name that no interface can have.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// An interface that is not there.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Somebody else sends on it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The interface is not up.
    #[error("{interface} is down; bring it up with: {}ip link set {} up",
        namespace_prefix(.interface), .interface.name())]
    Down {
        /// The interface.
        interface: InterfaceName,
    },
    /// The interface connects this machine to the world.
    #[error(
        "{0} carries the default route: a replay would go to your own network; \
             --force-interface sends there all the same"
    )]
    DefaultRoute(InterfaceName),
    /// No port opens.
    #[error("{interface}: {reason}")]
    Port {
        /// The interface.
        interface: String,
        /// What was tried, and what the system said.
        reason: String,
    },
    /// The receiving end does not open.
    #[error("{0}")]
    Receive(String),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

fn namespace_prefix(interface: &InterfaceName) -> String {
    match &interface.namespace {
        wirestorm_io::namespace::Namespace::Current => String::new(),
        namespace => format!("ip netns exec {namespace} "),
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Since the first frame was due.
    pub elapsed: Duration,
    /// The part of the run that is done, 0 to 1; `None` where its end is not known.
    pub fraction: Option<f64>,
    /// Frames given to ports, and what else the workers count.
    pub counters: ReplayCounters,
    /// What the ports did.
    pub transmitted: TransmitCounters,
}

/// A thread's own counters, as of its last breath but a few.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    counters: ReplayCounters,
    transmitted: TransmitCounters,
}

/// What a worker's thread comes back with.
struct WorkerOutcome {
    counters: ReplayCounters,
    ports: Vec<PortOutcome>,
    departures: Option<(DepartureRecord, StampPoint)>,
    finished: Instant,
    error: Option<PortError>,
}

struct PortOutcome {
    choice: Choice,
    transmitted: TransmitCounters,
}

/// How far ahead frames are given to ports that hold departures. It bridges times when the
/// worker is off its CPU; what is queued is dropped at once when the run is interrupted.
const HORIZON: Duration = Duration::from_millis(20);

/// Time from the moment all threads are ready to the first departure: enough to fill a ring, and
/// for threads that wait on several CPUs to begin together.
const LEAD: Duration = Duration::from_millis(2);

/// How often the observer is told.
const OBSERVE_INTERVAL: StdDuration = StdDuration::from_millis(100);

/// How often a worker publishes its counters.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// How long a port may take to empty its queue without any progress.
const DRAIN_STALL_MAX: Duration = Duration::from_secs(2);

/// Replays; `observe` is called about ten times a second, and once `stop` is set sending ends
/// at once.
///
/// # Errors
/// Where nothing could be sent at all. Once sending has begun, what goes wrong is in the
/// result, beside what was measured.
pub fn run(
    plan: &ReplayPlan,
    stop: &AtomicBool,
    mut observe: impl FnMut(&Progress),
) -> Result<RunResult, ReplayError> {
    let inputs = expand_inputs(&plan.captures)?;
    let captures = inputs.iter().map(ToString::to_string).collect();
    let extent = inputs.iter().map(Input::plain_length).sum();
    let interfaces = Interfaces::open(plan)?;
    // The receiving end first: a program on a veth's peer is what lets the in-kernel sender in.
    let arrivals = match &plan.receive {
        None => None,
        Some(receive) => {
            let opened = Arrivals::open(receive, plan.pace != Pace::TopSpeed);
            Some(opened.map_err(ReplayError::Receive)?)
        }
    };
    let interfaces = interfaces.read_again()?;
    let cpus = CpuPlan::new(plan, interfaces.links.len());
    cpus.apply();

    let (reader, feeds) = Reader::start(ReaderOptions {
        inputs,
        passes: plan.limits.passes,
        preload: plan.preload,
        indexer: IndexerOptions {
            workers: plan.workers,
            flows: plan.flows.is_some(),
            flow_expiry: plan.flows.and_then(|flows| flows.expiry),
            flows_max: plan.flows.map_or(0, |flows| flows.flows_max),
            sides: SideSource::One,
            needs_offsets: plan.unique.is_some(),
            only: plan.only.clone(),
            except: plan.except.clone(),
        },
    })
    .map_err(ReplayError::Thread)?;

    let snapshots: Vec<Mutex<Snapshot>> = feeds.iter().map(|_| Mutex::default()).collect();
    let (start, outcomes) = std::thread::scope(|scope| {
        let (is_ready, ready) = mpsc::channel();
        let mut starts = Vec::new();
        let mut threads = Vec::new();
        for (index, feed) in feeds.into_iter().enumerate() {
            let (give_start, start) = mpsc::channel();
            starts.push(give_start);
            let (interfaces, cpus, is_ready) = (&interfaces, &cpus, is_ready.clone());
            let snapshot = &snapshots[index];
            let sent_log = arrivals.as_ref().and_then(Arrivals::sent_log);
            let spawned = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn_scoped(scope, move || {
                    let opened = open_ports(plan, interfaces, cpus, index);
                    let ports = match opened {
                        Ok(ports) => ports,
                        Err(error) => {
                            let _ = is_ready.send(Err(error));
                            return None;
                        }
                    };
                    let _ = is_ready.send(Ok(()));
                    let start = start.recv().ok()?;
                    Some(work(
                        plan, interfaces, index, feed, ports, start, stop, snapshot, sent_log,
                    ))
                })
                .map_err(ReplayError::Thread)?;
            threads.push(spawned);
        }
        for outcome in ready.iter().take(threads.len()) {
            outcome?;
        }
        let start = clock::now().saturating_add(LEAD);
        for worker in starts {
            let _ = worker.send(start);
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::park_timeout(OBSERVE_INTERVAL);
            observe(&progress(plan, extent, reader.counters(), start, &snapshots));
        }
        let outcomes: Vec<WorkerOutcome> = threads
            .into_iter()
            .filter_map(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect();
        Ok::<_, ReplayError>((start, outcomes))
    })?;

    let flows_overflowed = reader.counters().flows_overflowed.load(Ordering::Relaxed);
    let read = reader.finish();
    let sent: u64 = outcomes.iter().map(|outcome| outcome.counters.packets).sum();
    let read = match read {
        Err(error) if sent == 0 => return Err(error.into()),
        other => other,
    };
    let left = outcomes.iter().flat_map(|outcome| &outcome.ports).map(|p| p.transmitted.sent).sum();
    let rx = arrivals.map(|arrivals| arrivals.finish(left));
    Ok(result(
        plan,
        captures,
        &interfaces,
        start,
        &outcomes,
        flows_overflowed,
        read.err(),
        rx,
        stop,
    ))
}

fn progress(
    plan: &ReplayPlan,
    extent: Option<u64>,
    read: &ReaderCounters,
    start: Instant,
    snapshots: &[Mutex<Snapshot>],
) -> Progress {
    let elapsed = clock::now().saturating_since(start);
    let mut progress = Progress { elapsed, ..Progress::default() };
    for snapshot in snapshots {
        let Ok(snapshot) = snapshot.lock() else { continue };
        progress.counters.merge(&snapshot.counters);
        add(&mut progress.transmitted, &snapshot.transmitted);
    }
    let limits = &plan.limits;
    let mut fractions = Vec::new();
    if limits.packets < u64::MAX {
        fractions.push(progress.transmitted.sent as f64 / limits.packets as f64);
    }
    if limits.duration < Duration::MAX {
        fractions.push(elapsed.as_secs_f64() / limits.duration.as_secs_f64().max(1e-9));
    }
    if limits.passes < u64::MAX {
        // Within the only pass, the reader tells: it is a few chunks ahead at most.
        let within = match extent {
            Some(bytes) if limits.passes == 1 => {
                read.bytes.load(Ordering::Relaxed) as f64 / bytes.max(1) as f64
            }
            _ => progress.counters.passes as f64,
        };
        if limits.passes > 1 || extent.is_some() {
            fractions.push(within / limits.passes as f64);
        }
    }
    progress.fraction = fractions.into_iter().reduce(f64::max);
    progress
}

fn add(sum: &mut TransmitCounters, other: &TransmitCounters) {
    sum.sent += other.sent;
    sum.sent_bytes += other.sent_bytes;
    sum.failed += other.failed;
    sum.unsent += other.unsent;
    sum.retried_no_buffers += other.retried_no_buffers;
    sum.retried_again += other.retried_again;
}

/// The interfaces of a run, locked.
struct Interfaces {
    links: Vec<(InterfaceName, Link)>,
    _locks: Vec<InterfaceLock>,
}

impl Interfaces {
    fn open(plan: &ReplayPlan) -> Result<Self, ReplayError> {
        let names: Vec<&str> = match &plan.target {
            Target::Interfaces { primary, secondary } => {
                std::iter::once(primary.as_str()).chain(secondary.as_deref()).collect()
            }
            Target::File(_) | Target::Memory => Vec::new(),
        };
        let mut links = Vec::new();
        let mut locks = Vec::new();
        for name in names {
            let interface: InterfaceName = name.parse()?;
            let link = Link::open(&interface)?;
            if !link.up {
                return Err(ReplayError::Down { interface });
            }
            if link.default_route && !plan.force_interface {
                return Err(ReplayError::DefaultRoute(interface));
            }
            locks.push(InterfaceLock::acquire(&interface)?);
            links.push((interface, link));
        }
        Ok(Self { links, _locks: locks })
    }

    /// The same interfaces with the facts of this moment.
    fn read_again(mut self) -> Result<Self, ReplayError> {
        for (interface, link) in &mut self.links {
            *link = Link::open(interface)?;
        }
        Ok(self)
    }
}

/// Which CPUs the ports' own threads have to themselves; all others share the rest.
struct CpuPlan {
    senders: Vec<usize>,
    rest: Vec<usize>,
}

impl CpuPlan {
    fn new(plan: &ReplayPlan, interfaces: usize) -> Self {
        let mut rest = cpu::allowed();
        let wanted = match plan.backend {
            Backend::Auto | Backend::Xdp => interfaces * usize::from(plan.workers),
            Backend::Memory | Backend::AfPacket | Backend::AfXdp => 0,
        };
        // One CPU at least is for everything else.
        if wanted >= rest.len() {
            return Self { senders: Vec::new(), rest };
        }
        let senders = rest.split_off(rest.len() - wanted);
        Self { senders, rest }
    }

    fn apply(&self) {
        // Where it is refused, the threads share CPUs: slower, but right.
        let _ = cpu::restrict_to(&self.rest);
    }
}

fn open_ports(
    plan: &ReplayPlan,
    interfaces: &Interfaces,
    cpus: &CpuPlan,
    worker: usize,
) -> Result<Vec<(TransmitPort, Choice)>, ReplayError> {
    match &plan.target {
        Target::Memory => return Ok(vec![TransmitPort::memory()]),
        Target::File(path) => {
            let port = TransmitPort::file(path).map_err(|reason| ReplayError::Port {
                interface: path.display().to_string(),
                reason,
            })?;
            return Ok(vec![port]);
        }
        Target::Interfaces { .. } => {}
    }
    let mut ports = Vec::new();
    for (position, (interface, link)) in interfaces.links.iter().enumerate() {
        let options = PortOptions {
            policy: plan.policy,
            paced: plan.pace != Pace::TopSpeed,
            cpu: cpus.senders.get(worker * interfaces.links.len() + position).copied(),
            queue: worker as u32,
        };
        let port = TransmitPort::open(plan.backend, interface, link, &options)
            .map_err(|reason| ReplayError::Port { interface: interface.to_string(), reason })?;
        ports.push(port);
    }
    Ok(ports)
}

/// A worker's thread: breathes until all is sent, or it is told to stop.
#[expect(clippy::too_many_arguments, reason = "the hand-over to a thread")]
fn work(
    plan: &ReplayPlan,
    interfaces: &Interfaces,
    index: usize,
    feed: ReaderFeed,
    ports: Vec<(TransmitPort, Choice)>,
    start: Instant,
    stop: &AtomicBool,
    snapshot: &Mutex<Snapshot>,
    sent_log: Option<mpsc::Sender<Vec<u64>>>,
) -> WorkerOutcome {
    let (mut ports, choices): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
    let options = WorkerOptions {
        index: index as u16,
        pace: plan.pace,
        policy: plan.policy,
        packets_max: plan.limits.packets,
        duration_max: plan.limits.duration,
        pass_delay: plan.pass_delay,
        horizon: HORIZON,
    };
    let renderer = Renderer::new(RenderOptions {
        edits: EditOptions::default(),
        link_addresses: link_addresses(interfaces),
        unique: plan.unique.map(|unique| Unique {
            what: if unique.ports {
                UniqueAddresses::AddressesAndPorts
            } else {
                UniqueAddresses::Addresses
            },
            passes_milli: unique.passes_milli,
        }),
        original_length: plan.original_length,
    });
    let mut worker = Worker::new(feed, options, renderer, start);
    if let Some(sent_log) = sent_log {
        worker = worker.with_sent_log(Box::new(move |hashes| {
            // The receiver outlives the workers, unless it failed, which it reports.
            let _ = sent_log.send(hashes.to_vec());
        }));
    }
    let mut published = Instant::ZERO;
    let mut error = None;
    loop {
        let now = clock::now();
        let state = match worker.breathe(now, &mut ports) {
            Ok(breath) => breath.state,
            Err(fault) => {
                error = Some(fault);
                break;
            }
        };
        if state == WorkerState::Done || stop.load(Ordering::Relaxed) {
            break;
        }
        if now.saturating_since(published) >= PUBLISH_INTERVAL {
            published = now;
            publish(snapshot, worker.counters(), &ports);
        }
        rest(state, now, ports.iter().all(|port| port.capabilities().holds_departure));
    }
    let counters = *worker.counters();
    let own_departures = worker.departures().clone();
    // The feed ends with the worker, so that a reader that waits for room is let go.
    drop(worker);
    if error.is_none() {
        error = drain(&mut ports, stop).err();
    }
    let finished = clock::now();
    publish(snapshot, &counters, &ports);
    let mut departures: Option<(DepartureRecord, StampPoint)> = None;
    for port in &ports {
        let stamp = port.capabilities().departure_stamp;
        let record = match port.departures() {
            Some(record) => record,
            None => continue,
        };
        match &mut departures {
            None => departures = Some((record, stamp)),
            Some((sum, _)) => sum.merge(&record),
        }
    }
    if own_departures.frames > 0 {
        departures = Some((own_departures, StampPoint::Process));
    }
    let ports = ports
        .iter()
        .zip(choices)
        .map(|(port, choice)| PortOutcome { choice, transmitted: port.transmitted() })
        .collect();
    WorkerOutcome { counters, ports, departures, finished, error }
}

/// What a frame without an Ethernet header of its own gets: broadcast, from the interface.
fn link_addresses(interfaces: &Interfaces) -> [[u8; 12]; 2] {
    let mut addresses = [[0xff; 12]; 2];
    for (side, address) in addresses.iter_mut().enumerate() {
        let link = interfaces.links.get(side).or(interfaces.links.first());
        let mac = link.and_then(|(_, link)| link.mac).unwrap_or([2, 0, 0, 0, 0, 1]);
        address[6..].copy_from_slice(&mac);
    }
    addresses
}

fn publish(snapshot: &Mutex<Snapshot>, counters: &ReplayCounters, ports: &[TransmitPort]) {
    let mut transmitted = TransmitCounters::default();
    for port in ports {
        add(&mut transmitted, &port.transmitted());
    }
    if let Ok(mut snapshot) = snapshot.try_lock() {
        *snapshot = Snapshot { counters: *counters, transmitted };
    }
}

/// Passes the time until there is something to do, without missing it.
fn rest(state: WorkerState, now: Instant, holds_departures: bool) {
    /// A wait is cut to this, so that stop requests are noticed.
    const WAIT_MAX: Duration = Duration::from_millis(20);
    /// A ring of 1,024 frames lasts 300 us at 3 Mpps.
    const RING_WAIT: Duration = Duration::from_micros(50);
    match state {
        WorkerState::Active | WorkerState::Done => {}
        WorkerState::Waiting(until) => {
            let latest = now.saturating_add(WAIT_MAX);
            if holds_departures {
                // The port keeps the time; being late by half the horizon costs nothing.
                std::thread::sleep(StdDuration::from_nanos(
                    until.min(latest).saturating_since(now).as_nanos().max(100_000),
                ));
            } else {
                clock::wait_until(until.min(latest));
            }
        }
        WorkerState::Blocked | WorkerState::Starved if holds_departures => {
            std::thread::sleep(StdDuration::from_nanos(RING_WAIT.as_nanos()));
        }
        WorkerState::Blocked | WorkerState::Starved => std::thread::yield_now(),
    }
}

/// Waits until the ports have sent what they hold; what cannot leave counts as unsent.
fn drain(ports: &mut [TransmitPort], stop: &AtomicBool) -> Result<(), PortError> {
    let mut in_flight = usize::MAX;
    let mut progressed = clock::now();
    let mut aborted = false;
    loop {
        let mut left = 0;
        for port in &mut *ports {
            port.flush()?;
            left += port.in_flight();
        }
        if left == 0 {
            return Ok(());
        }
        let now = clock::now();
        if left != in_flight {
            in_flight = left;
            progressed = now;
        }
        // A frame held for a far departure is no stall: departures lie within the horizon.
        let is_stalled = now.saturating_since(progressed) > DRAIN_STALL_MAX;
        if !aborted && (stop.load(Ordering::Relaxed) || is_stalled) {
            aborted = true;
            progressed = now;
            ports.iter_mut().for_each(TransmitPort::abort);
        } else if aborted && is_stalled {
            return Ok(());
        }
        std::hint::spin_loop();
    }
}

#[expect(clippy::too_many_arguments, reason = "everything that a run leaves behind")]
fn result(
    plan: &ReplayPlan,
    captures: Vec<String>,
    interfaces: &Interfaces,
    start: Instant,
    outcomes: &[WorkerOutcome],
    flows_overflowed: u64,
    read_error: Option<ReadError>,
    rx: Option<ReceiveReport>,
    stop: &AtomicBool,
) -> RunResult {
    let mut counters = ReplayCounters::default();
    let mut transmitted = TransmitCounters::default();
    let mut departures: Option<(DepartureRecord, StampPoint)> = None;
    let mut finished = start;
    let mut errors: Vec<String> = Vec::new();
    let mut reports: Vec<PortReport> = Vec::new();
    for outcome in outcomes {
        counters.merge(&outcome.counters);
        finished = finished.max(outcome.finished);
        errors.extend(outcome.error.iter().map(ToString::to_string));
        match (&mut departures, &outcome.departures) {
            (Some((sum, _)), Some((record, _))) => sum.merge(record),
            (empty @ None, Some(first)) => *empty = Some(first.clone()),
            (_, None) => {}
        }
        for (position, port) in outcome.ports.iter().enumerate() {
            add(&mut transmitted, &port.transmitted);
            if reports.len() <= position {
                reports.push(PortReport {
                    interface: interfaces
                        .links
                        .get(position)
                        .map_or_else(|| target_name(plan), |(name, _)| name.to_string()),
                    backend: port.choice.backend,
                    why: port.choice.why.clone(),
                    ..PortReport::default()
                });
            }
            let report = &mut reports[position];
            report.sent += port.transmitted.sent;
            report.sent_bytes += port.transmitted.sent_bytes;
            report.failed += port.transmitted.failed;
        }
    }
    errors.extend(read_error.iter().map(ToString::to_string));
    errors.extend(rx.iter().filter_map(|rx| rx.error.clone()));
    let departures = departures.filter(|(record, _)| record.frames > 0);
    let rates = Rates::new(&transmitted, start, finished, departures.as_ref().map(|(r, _)| r));
    let mut reports = reports.into_iter();
    RunResult {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        command: "replay",
        captures,
        asked: asked(plan),
        elapsed_s: rates.elapsed_s,
        packets: transmitted.sent,
        bytes: transmitted.sent_bytes,
        pps: rates.pps,
        bps_l1: rates.bits_per_second(Layer::Wire),
        bps_l2: rates.bits_per_second(Layer::FrameWithFcs),
        bps_frames: rates.bits_per_second(Layer::Frame),
        rate_error_ppm: rate_error_ppm(plan, &rates),
        flows: plan.flows.map(|_| Flows {
            count: counters.flows,
            per_second: counters.flows as f64 / rates.elapsed_s.max(1e-9),
            expired: counters.flows_expired,
            flow_packets: counters.flow_packets,
            non_flow_packets: counters.non_flow_packets,
            invalid_packets: counters.invalid_packets,
        }),
        failed: transmitted.failed
            + counters.too_long
            + counters.too_short
            + counters.unconvertible,
        refused: Refused {
            too_long: counters.too_long,
            too_long_max: counters.too_long_max,
            too_short: counters.too_short,
            unconvertible: counters.unconvertible,
        },
        truncated: counters.truncated,
        retried: Retried {
            no_buffers: transmitted.retried_no_buffers,
            again: transmitted.retried_again,
        },
        unsent: transmitted.unsent + counters.unsent,
        left_out: counters.left_out,
        passes: counters.passes,
        starved: counters.starved,
        departures: departures
            .as_ref()
            .map(|(record, stamp)| DepartureReport::new(record, stamp_name(*stamp))),
        port: reports.next().unwrap_or_default(),
        second_port: reports.next(),
        rx,
        interrupted: stop.load(Ordering::Relaxed),
        errors,
        notes: notes(&counters, interfaces, flows_overflowed),
    }
}

/// What one should know of the frames that did not leave, and what to do about it.
fn notes(counters: &ReplayCounters, interfaces: &Interfaces, flows_overflowed: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if counters.too_long > 0 {
        let mtu = interfaces.links.first().map_or(0, |(_, link)| link.mtu);
        notes.push(format!(
            "{} frames were longer than the interface takes (MTU {mtu}, longest frame {} bytes) \
             and were not sent; --mtu-trunc cuts them, a larger MTU lets them pass",
            counters.too_long, counters.too_long_max
        ));
    }
    if counters.too_short > 0 {
        notes.push(format!(
            "{} records hold less than an Ethernet header and were not sent",
            counters.too_short
        ));
    }
    if counters.unconvertible > 0 {
        notes.push(format!(
            "{} records of other link layers have no Ethernet form and were not sent",
            counters.unconvertible
        ));
    }
    if flows_overflowed > 0 {
        notes.push(format!(
            "the table of flows was full: {flows_overflowed} packets of further flows are not \
             in the count of flows"
        ));
    }
    notes
}

/// What a run that has no interface sends to.
fn target_name(plan: &ReplayPlan) -> String {
    match &plan.target {
        Target::File(path) => path.display().to_string(),
        Target::Memory | Target::Interfaces { .. } => "memory".to_owned(),
    }
}

const fn stamp_name(stamp: StampPoint) -> &'static str {
    match stamp {
        StampPoint::Process => "process",
        StampPoint::Kernel => "kernel",
        StampPoint::Xdp => "xdp",
        StampPoint::Hardware => "hardware",
        StampPoint::Virtual => "virtual",
    }
}

/// Rates over the time from the first departure to the last. N departures span N - 1
/// intervals; a rate of N over that time would be N / (N - 1) too high.
struct Rates {
    elapsed_s: f64,
    pps: f64,
    bytes_mean: f64,
}

impl Rates {
    fn new(
        transmitted: &TransmitCounters,
        start: Instant,
        finished: Instant,
        departures: Option<&DepartureRecord>,
    ) -> Self {
        let sent = transmitted.sent as f64;
        let bytes_mean = if sent > 0.0 { transmitted.sent_bytes as f64 / sent } else { 0.0 };
        let span = departures
            .and_then(|record| Some(record.last?.saturating_since(record.first?)))
            .filter(|span| span.as_nanos() > 0);
        match span {
            Some(span) => {
                let elapsed_s = span.as_secs_f64();
                Self { elapsed_s, pps: (sent - 1.0).max(0.0) / elapsed_s, bytes_mean }
            }
            None => {
                let elapsed_s = finished.saturating_since(start).as_secs_f64();
                Self { elapsed_s, pps: sent / elapsed_s.max(1e-9), bytes_mean }
            }
        }
    }

    fn bits_per_second(&self, layer: Layer) -> f64 {
        self.pps * (self.bytes_mean + layer.overhead() as f64) * 8.0
    }
}

fn asked(plan: &ReplayPlan) -> Asked {
    let mut asked = Asked {
        packets: (plan.limits.packets < u64::MAX).then_some(plan.limits.packets),
        duration_s: (plan.limits.duration < Duration::MAX)
            .then(|| plan.limits.duration.as_secs_f64()),
        passes: (plan.limits.passes < u64::MAX).then_some(plan.limits.passes),
        ..Asked::default()
    };
    match plan.pace {
        Pace::TopSpeed => asked.pace = "topspeed",
        Pace::Capture { multiplier, .. } => {
            asked.pace = "capture";
            asked.multiplier = Some(multiplier.digits as f64 / multiplier.denominator as f64);
        }
        Pace::Packets { rate, .. } => {
            asked.pace = "pps";
            asked.pps = Some(rate.per_second());
        }
        Pace::Bits { rate, layer } => {
            asked.pace = "bps";
            asked.bps = Some(rate.per_second());
            asked.layer = Some(match layer {
                Layer::Frame => "frames",
                Layer::FrameWithFcs => "l2",
                Layer::Wire => "l1",
            });
        }
    }
    asked
}

fn rate_error_ppm(plan: &ReplayPlan, rates: &Rates) -> Option<f64> {
    let (asked, achieved) = match plan.pace {
        Pace::TopSpeed | Pace::Capture { .. } => return None,
        Pace::Packets { rate, .. } => (rate.per_second(), rates.pps),
        Pace::Bits { rate, layer } => (rate.per_second(), rates.bits_per_second(layer)),
    };
    Some((achieved / asked - 1.0) * 1e6)
}
