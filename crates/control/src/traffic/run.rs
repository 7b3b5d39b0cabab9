//! A run of a plan's flows on interfaces.

use std::collections::BTreeMap;
use std::slice;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::{PortError, StampPoint, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::{Breath, WorkerState};
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share, StreamCounters};
use wirestorm_io::clock;
use wirestorm_plan::Multiplier;
use wirestorm_plan::backend::Backend;
use wirestorm_plan::replay::ReceivePlan;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_wire::stream::Speed;

use super::error::TrafficError;
use super::lane::{Lane, LaneOutcome, WorkerOutcome, lanes, number};
use super::live::Live;
use super::measured::{Expected, Received, is_recognised};
use super::next_hop::NextHops;
use super::numbers::TakenNumbers;
use super::report::{Ended, TrafficResult};
use super::shared::SharedPorts;
use super::steer::{Follower, Steering};
use crate::port::cpu::CpuPlan;
use crate::port::{Choice, Interfaces, OpenError, PortOptions, TransmitPort, Watch};
use crate::receive::Arrivals;
use crate::replay::Control;
use crate::work::{
    departures, drain, generator_options, late_end_max, rest, settled, wait_while_suspended,
};
use crate::workers::Workers;

/// What a run is beside its plan.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The interface of each of the plan's ports, in their order, where it is not the plan's own.
    pub interfaces: Vec<Option<String>>,
    /// What carries the frames.
    pub backend: Backend,
    /// Threads that share every stream; at least 1.
    pub workers: u16,
    /// What becomes of late frames.
    pub policy: DeparturePolicy,
    /// Nothing is sent for longer, but for what a schedule that was moved makes up for.
    pub duration: Duration,
    /// What the rates of the flows are multiplied by.
    pub multiplier: Multiplier,
    /// Whether to send also on the interface that carries the default route.
    pub force_interface: bool,
    /// What it shares with other runs on the same interfaces; none where it has them for itself.
    pub shared: Option<Arc<SharedPorts>>,
    /// Whether packet sockets on this host, such as tcpdump's, see what leaves. Then it leaves by a
    /// packet socket, whatever was asked for, and by the queueing discipline: slower.
    pub is_visible: bool,
    /// Whether arrivals of measured flows are counted by their VLAN tags too.
    pub by_tag: bool,
}

impl RunOptions {
    /// What carries the frames in the end.
    pub const fn backend(&self) -> Backend {
        if self.is_visible { Backend::AfPacket } else { self.backend }
    }
}

/// How far a run has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Since the first frame was due.
    pub elapsed: Duration,
    /// What was sent of each flow, in the plan's order.
    pub flows: Vec<StreamCounters>,
    /// What arrived of each flow, in the plan's order; nothing of those that are not measured.
    pub received: Vec<Received>,
    /// What the ports did.
    pub transmitted: TransmitCounters,
    /// CPU time that the workers took so far, all together. What ports do in the kernel by threads
    /// of their own is no part of it.
    pub worker_time: Duration,
    /// Tells what was measured of a flow so far.
    pub live: Live,
}

/// How often a worker publishes what it did.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// What a worker has done so far.
#[derive(Default)]
struct Snapshot {
    /// What it sent of each stream of each lane.
    lanes: Vec<(Vec<StreamCounters>, TransmitCounters)>,
    /// The CPU time that it took.
    time: Duration,
}

/// Sends the flows of a plan and measures what arrives of them; `observe` is called about ten
/// times a second.
///
/// # Errors
/// Where nothing could be sent at all. Once sending has begun, what goes wrong is in the result.
pub fn run(
    plan: &TrafficPlan,
    options: &RunOptions,
    control: &Control,
    steering: &Steering,
    mut observe: impl FnMut(&Progress),
) -> Result<TrafficResult, TrafficError> {
    let names = interface_names(plan, &options.interfaces)?;
    let transmitting = transmitting_ports(plan);
    let sending: Vec<&str> = transmitting.iter().map(|&port| names[port].as_str()).collect();
    let shared = options.shared.as_deref();
    let locks = shared.map(|shared| &shared.locks);
    let interfaces =
        Interfaces::open(&sending, options.force_interface, locks, Some(options.backend()))?;
    let is_paced = plan.flows.iter().any(|flow| flow.stream.transmission.speed != Speed::Max);
    let ends = shared.map(|shared| &shared.ends);
    let mut arrivals = Vec::new();
    for port in receiving_ports(plan) {
        let measures =
            plan.flows.iter().any(|flow| is_recognised(flow) && flow.receive.contains(&port));
        let opened = if measures {
            Arrivals::open_measuring(&names[port], ends)
        } else {
            let receive = ReceivePlan { interface: names[port].clone(), verify: false };
            Arrivals::open(&receive, is_paced, ends)
        };
        arrivals.push((port, opened.map_err(TrafficError::Receive)?));
    }
    // A program on a veth's peer is what lets the in-kernel sender in: the facts are new.
    let interfaces = interfaces.read_again()?;
    let workers = usize::from(options.workers.max(1));
    let next_hops = NextHops::find(plan, &names)?;
    let mut lanes = lanes(plan, &transmitting, &interfaces, workers, options.multiplier)?;
    for lane in &mut lanes {
        for (flow, stream) in lane.flows.iter().zip(&mut lane.streams) {
            next_hops.write(*flow, &mut stream.template);
        }
    }
    let taken = shared.map_or_else(TakenNumbers::default, |shared| shared.numbers.clone());
    let _numbers = number(&mut lanes, workers, &taken)?;
    let lanes = lanes;
    let mut expected = Vec::new();
    let mut measuring = Vec::new();
    for (port, arrivals) in &mut arrivals {
        if let Some(streams) = Expected::at(*port, plan, &lanes, workers) {
            let receiver = streams.receiver(plan, &lanes, clock::now(), options.by_tag)?;
            arrivals.measure(receiver).map_err(TrafficError::Receive)?;
            let streams = Arc::new(streams);
            measuring.extend(arrivals.measuring().map(|it| (Arc::clone(&streams), it)));
            expected.push(streams);
        }
    }
    let live = Live::new(measuring);
    let cpus = CpuPlan::new(options.backend(), lanes.len() * workers);
    cpus.apply();
    let snapshots: Vec<Mutex<Snapshot>> = (0..workers).map(|_| Mutex::default()).collect();

    let (start, outcomes) = std::thread::scope(|scope| {
        let openers = snapshots.iter().enumerate().map(|(index, snapshot)| {
            let interfaces = &interfaces;
            let duty = Duty { options, control, steering, interfaces, index, snapshot };
            let (lanes, cpus) = (&lanes, &cpus);
            move || {
                let ports = duty.open_ports(lanes, cpus, is_paced)?;
                Ok(move |start| duty.work(lanes, ports, start))
            }
        });
        let workers = Workers::open(scope, "worker", &control.stop, openers, TrafficError::Thread)?;
        let start = workers.start(is_paced);
        let mut received = BTreeMap::new();
        workers.watch(|| {
            received.extend(live.received());
            let mut progress = progress(plan, &lanes, start, &snapshots);
            for ((_, flow), received) in &received {
                progress.received[*flow].add(received);
            }
            progress.live = live.clone();
            observe(&progress);
        });
        Ok::<_, TrafficError>((start, workers.join()))
    })?;

    let left = |port: usize| expected_at(plan, &lanes, &outcomes, port);
    let mut arrived = Vec::new();
    let mut measured = Vec::new();
    for (port, arrivals) in arrivals {
        let (report, receiver) = arrivals.finish(left(port));
        arrived.push((port, report));
        if let Some(receiver) = receiver
            && let Some(streams) = expected.iter().find(|streams| streams.port == port)
        {
            measured.push((receiver, &**streams));
        }
    }
    let ended = Ended {
        start,
        outcomes,
        arrived,
        measured,
        notes: interfaces.notes().chain(cpus.note()).collect(),
        interrupted: control.stop.load(Ordering::Relaxed),
        duration: options.duration,
        steered: steering.flows(),
    };
    Ok(ended.report(plan, &names, &lanes))
}

/// The interface of every port of the plan that is used.
fn interface_names(
    plan: &TrafficPlan,
    bound: &[Option<String>],
) -> Result<Vec<String>, TrafficError> {
    let used = |index: usize| {
        plan.flows.iter().any(|flow| flow.transmit == index || flow.receive.contains(&index))
    };
    let name = |(index, port): (usize, &wirestorm_plan::traffic::Port)| {
        let bound = bound.get(index).cloned().flatten().or_else(|| port.location.clone());
        match bound {
            Some(name) => Ok(name),
            None if used(index) => Err(TrafficError::Unbound(port.name.clone())),
            None => Ok(String::new()),
        }
    };
    plan.ports.iter().enumerate().map(name).collect()
}

fn transmitting_ports(plan: &TrafficPlan) -> Vec<usize> {
    let sends = |port: &usize| plan.flows.iter().any(|flow| flow.transmit == *port);
    (0..plan.ports.len()).filter(sends).collect()
}

fn receiving_ports(plan: &TrafficPlan) -> Vec<usize> {
    let receives = |port: &usize| plan.flows.iter().any(|flow| flow.receive.contains(port));
    (0..plan.ports.len()).filter(receives).collect()
}

/// Frames that should arrive at a port: those that left for it.
///
/// A transmitting port does not tell whose frames it failed to send. Where all of them were for
/// this port they are taken off; else they count as lost here, and stand beside it as failed.
fn expected_at(plan: &TrafficPlan, lanes: &[Lane], outcomes: &[WorkerOutcome], port: usize) -> u64 {
    let mut expected = 0;
    for outcome in outcomes {
        for (lane, outcome) in lanes.iter().zip(&outcome.lanes) {
            let goes_there = |flow: usize| plan.flows[flow].receive.contains(&port);
            let frames = |counters: &StreamCounters| counters.frames;
            let given: u64 = outcome.counters.iter().map(frames).sum();
            let for_port: u64 = lane
                .flows
                .iter()
                .zip(&outcome.counters)
                .filter(|(flow, _)| goes_there(**flow))
                .map(|(_, counters)| frames(counters))
                .sum();
            let kept = outcome.transmitted.failed + outcome.transmitted.unsent;
            expected += if for_port == given { for_port.saturating_sub(kept) } else { for_port };
        }
    }
    expected
}

fn progress(
    plan: &TrafficPlan,
    lanes: &[Lane],
    start: Instant,
    snapshots: &[Mutex<Snapshot>],
) -> Progress {
    let mut progress = Progress {
        elapsed: clock::now().saturating_since(start),
        flows: vec![StreamCounters::default(); plan.flows.len()],
        received: vec![Received::default(); plan.flows.len()],
        transmitted: TransmitCounters::default(),
        worker_time: Duration::ZERO,
        live: Live::default(),
    };
    for snapshot in snapshots {
        let Ok(snapshot) = snapshot.lock() else { continue };
        progress.worker_time += snapshot.time;
        for (lane, (counters, transmitted)) in lanes.iter().zip(&snapshot.lanes) {
            progress.transmitted.merge(transmitted);
            for (&flow, counters) in lane.flows.iter().zip(counters) {
                super::report::add(&mut progress.flows[flow], counters);
            }
        }
    }
    progress
}

/// What a worker's thread needs.
struct Duty<'a> {
    options: &'a RunOptions,
    control: &'a Control,
    steering: &'a Steering,
    interfaces: &'a Interfaces,
    index: usize,
    snapshot: &'a Mutex<Snapshot>,
}

impl Duty<'_> {
    fn open_ports(
        &self,
        lanes: &[Lane],
        cpus: &CpuPlan,
        is_paced: bool,
    ) -> Result<Vec<(TransmitPort, Choice)>, TrafficError> {
        let mut ports = Vec::new();
        for (position, (interface, link)) in self.interfaces.links.iter().enumerate() {
            let bytes: usize = lanes[position].streams.iter().map(|it| it.template.len()).sum();
            let options = PortOptions {
                policy: self.options.policy,
                paced: is_paced,
                cpu: cpus.sender(self.index * lanes.len() + position),
                queue: self.index as u32,
                store_bytes: bytes,
                is_visible: self.options.is_visible,
            };
            let backend = self.options.backend();
            let port = TransmitPort::open(backend, interface, link, &options);
            let port = port
                .map_err(|reason| OpenError::Port { interface: interface.to_string(), reason })?;
            ports.push(port);
        }
        Ok(ports)
    }

    fn work(
        &self,
        lanes: &[Lane],
        ports: Vec<(TransmitPort, Choice)>,
        start: Instant,
    ) -> WorkerOutcome {
        let (mut ports, choices): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        let share =
            Share { index: self.index as u64, workers: u64::from(self.options.workers.max(1)) };
        let options = generator_options(share, self.options.policy, self.options.duration);
        let mut generators: Vec<Generator> = lanes
            .iter()
            .map(|lane| {
                let numbered_from = lane.numbered_from;
                let options = GeneratorOptions { numbered_from, ..options.clone() };
                Generator::new(&lane.streams, options, start)
            })
            .collect();
        let outcome = self
            .send(lanes, start, &mut generators, &mut ports)
            .and_then(|paused| drain(&mut ports, &self.control.stop, |_| {}).map(|()| paused));
        let finished = clock::now();
        let has_failed = outcome.is_err();
        let lanes =
            generators.iter().zip(&mut ports).zip(choices).map(|((generator, port), choice)| {
                LaneOutcome {
                    choice,
                    departures: departures(generator.departures().clone(), slice::from_ref(port)),
                    transmitted: settled(port, has_failed),
                    counters: generator.counters().collect(),
                    stamp: port.capabilities().departure_stamp,
                }
            });
        WorkerOutcome {
            lanes: lanes.collect(),
            finished,
            paused: outcome.as_ref().map_or(Duration::ZERO, |paused| *paused),
            error: outcome.err().map(|error| self.interfaces.settle(error)),
        }
    }

    /// Sends until all is sent or sending is to end; returns for how long it was suspended.
    fn send(
        &self,
        lanes: &[Lane],
        start: Instant,
        generators: &mut [Generator],
        ports: &mut [TransmitPort],
    ) -> Result<Duration, PortError> {
        let mut follower = Follower::new(self.steering, start);
        let holds_departures = ports.iter().all(|port| port.capabilities().holds_departure);
        let mut watches = self.interfaces.watch();
        let mut published = Instant::ZERO;
        let is_virtual =
            |port: &TransmitPort| port.capabilities().departure_stamp == StampPoint::Virtual;
        let is_virtual = ports.iter().all(is_virtual);
        let late_max = |end| if is_virtual { Duration::MAX } else { late_end_max(end) };
        let mut paused = Duration::ZERO;
        let mut ends: Vec<_> = lanes
            .iter()
            .enumerate()
            .flat_map(|(lane, it)| it.ends.iter().map(move |&(end, stream)| (end, lane, stream)))
            .collect();
        // The first one at the back.
        ends.sort_unstable_by(|a, b| b.cmp(a));
        loop {
            let now = clock::now();
            let lasted = now.saturating_since(start).saturating_sub(paused);
            let is_past = |end: Duration| lasted > end.saturating_add(late_max(end));
            let is_over = is_past(self.options.duration);
            while let Some((_, lane, stream)) = ends.pop_if(|(end, ..)| is_past(*end)) {
                generators[lane].stop(stream);
            }
            follower.follow(now, generators, |lane| &lanes[lane].flows);
            let mut state = WorkerState::Done;
            for (generator, port) in generators.iter_mut().zip(&mut *ports) {
                state = sooner(state, breathe(generator, now, port)?.state);
            }
            if let Some(due) = follower.due() {
                state = sooner(state, WorkerState::Waiting(due));
            }
            let is_done = is_over || state == WorkerState::Done;
            if is_done || self.control.stop.load(Ordering::Relaxed) {
                self.publish(generators, ports);
                return Ok(paused);
            }
            if now.saturating_since(published) >= PUBLISH_INTERVAL {
                published = now;
                self.publish(generators, ports);
                watches.iter_mut().try_for_each(Watch::check)?;
            }
            if self.control.suspend.load(Ordering::Relaxed) != 0 {
                let span = wait_while_suspended(self.control);
                generators.iter_mut().for_each(|generator| generator.postpone(span));
                paused = paused.saturating_add(span);
                continue;
            }
            rest(state, now, holds_departures);
        }
    }

    fn publish(&self, generators: &[Generator], ports: &[TransmitPort]) {
        let Ok(mut snapshot) = self.snapshot.try_lock() else { return };
        snapshot.time = clock::thread_time();
        snapshot.lanes.clear();
        for (generator, port) in generators.iter().zip(ports) {
            snapshot.lanes.push((generator.counters().collect(), port.transmitted()));
        }
    }
}

/// The port as what it is, so that no call has to find out.
fn breathe(
    generator: &mut Generator,
    now: Instant,
    port: &mut TransmitPort,
) -> Result<Breath, PortError> {
    match port {
        TransmitPort::Memory(port) => generator.breathe(now, &mut **port),
        TransmitPort::Pcap(port) => generator.breathe(now, &mut **port),
        TransmitPort::AfPacket(port) => generator.breathe(now, &mut **port),
        TransmitPort::Offload(port) => generator.breathe(now, &mut **port),
        TransmitPort::AfXdp(port) => generator.breathe(now, &mut **port),
        TransmitPort::Xdp(port) => generator.breathe(now, &mut **port),
    }
}

/// Of two states the one that has to be looked after first.
fn sooner(a: WorkerState, b: WorkerState) -> WorkerState {
    match (a, b) {
        (WorkerState::Done, other) | (other, WorkerState::Done) => other,
        (WorkerState::Waiting(a), WorkerState::Waiting(b)) => WorkerState::Waiting(a.min(b)),
        (WorkerState::Waiting(_), other) | (other, WorkerState::Waiting(_)) => other,
        (WorkerState::Active, _) | (_, WorkerState::Active) => WorkerState::Active,
        (other, _) => other,
    }
}
