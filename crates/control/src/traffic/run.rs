//! Run of a plan's flows on interfaces.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use wirestorm_base::port::{PortError, StampPoint, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::{Breath, WorkerState};
use wirestorm_engine::stream::{
    Generator, GeneratorOptions, ResidentStreams, Share, StreamCounters,
};
use wirestorm_io::clock;
use wirestorm_model::stream::Speed;
use wirestorm_plan::replay::ReceivePlan;
use wirestorm_plan::traffic::{Flow, TrafficPlan};

use super::error::TrafficError;
use super::flow_follower::FlowFollower;
use super::live::LiveMeasurement;
use super::measured::{self, ExpectedFlows, is_recognised};
use super::next_hop::ResolvedAddresses;
use super::options::StreamOptions;
use super::outages::Outages;
use super::report::TrafficOutcome;
use super::workload::{PortOutcome, PortWorkload, WorkerOutcome, number, workloads};
use crate::backend::Choice;
use crate::backend::{self, PortVisitor, TransmitPort};
use crate::host::CpuPlan;
use crate::lifecycle::{Context, Controls, FlowSnapshot, PortSnapshot, Snapshot};
use crate::port::{Interfaces, OpenError, PortOptions};
use crate::receive::{ArrivalCounters, Patience, RunReceiver};
use crate::result::RunResult;
use crate::work::{
    awaited, departures, drain, final_counters, generator_options, late_end_max, rest,
    wait_while_paused,
};
use crate::workers::Workers;

/// Interval at which a worker publishes its counters.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// Counters of a worker so far.
#[derive(Default)]
struct WorkerSnapshot {
    /// Counters of the streams and of the port, for each lane.
    ports: Vec<(Vec<StreamCounters>, TransmitCounters)>,
    /// Paused streams: lane, and index in it.
    paused: Vec<(usize, usize)>,
    /// CPU time of the thread.
    time: Duration,
}

/// Sends and measures the flows of a plan. Runs on the supervisor thread.
///
/// # Errors
/// Fails if nothing could be sent. Later errors are part of the result.
pub(crate) fn run(
    plan: &TrafficPlan,
    options: &StreamOptions,
    context: &Context,
) -> Result<RunResult, TrafficError> {
    let controls = context.controls();
    let names = interface_names(plan, options)?;
    let transmitting = transmitting_ports(plan);
    let sending = transmitting.iter().filter(|port| options.is_here(**port));
    let sending: Vec<&str> = sending.map(|&port| names[port].as_str()).collect();
    let lease = context.lease_request();
    let sender = Some(options.backend());
    let interfaces = Interfaces::open(&sending, options.force_interface, &lease, sender)?;
    let is_paced = plan.flows.iter().any(|flow| flow.stream.transmission.speed != Speed::Max);
    let mut arrivals = Vec::new();
    for port in receiving_ports(plan).into_iter().filter(|port| options.is_here(*port)) {
        let measures =
            plan.flows.iter().any(|flow| is_recognised(flow) && flow.rx_ports.contains(&port));
        let opened = if measures {
            RunReceiver::open_measuring(&names[port], context.shared_receivers())
        } else {
            let receive = ReceivePlan { interface: names[port].clone(), verify: false };
            RunReceiver::open(&receive, is_paced, context.shared_receivers())
        };
        arrivals.push((port, opened.map_err(TrafficError::Receive)?));
    }
    // The receiver's XDP program on a veth peer enables the in-kernel sender, so read the facts
    // again.
    let interfaces = if arrivals.is_empty() { interfaces } else { interfaces.read_again()? };
    let workers = usize::from(options.workers.max(1));
    let resolved = ResolvedAddresses::find(plan, &names)?;
    let mut workloads = workloads(plan, &transmitting, &interfaces, options)?;
    for workload in &mut workloads {
        for (flow, stream) in workload.flows.iter().zip(&mut workload.streams) {
            resolved.write(*flow, &mut stream.template);
        }
    }
    let first = options.elsewhere.as_ref().map(|elsewhere| elsewhere.first_stream);
    let _stream_ids = number(&mut workloads, workers, context.host.stream_ids(), first)?;
    let all_workloads = workloads;
    let mut expected = Vec::new();
    let mut measuring = Vec::new();
    for (port, arrivals) in &mut arrivals {
        if let Some(streams) = ExpectedFlows::at(*port, plan, &all_workloads, workers) {
            let receiver = streams.receiver(plan, &all_workloads, clock::now(), options)?;
            let measured = arrivals.measure(receiver, options.survives_outages);
            measured.map_err(TrafficError::Receive)?;
            let streams = Arc::new(streams);
            measuring.extend(arrivals.measuring().map(|it| (Arc::clone(&streams), it)));
            expected.push(streams);
        }
    }
    let is_here = |workload: &PortWorkload| options.is_here(workload.port);
    let (workloads, elsewhere): (Vec<_>, Vec<_>) = all_workloads.into_iter().partition(is_here);
    let expects_others = |workload: &PortWorkload| {
        workload
            .flows
            .iter()
            .any(|flow| plan.flows[*flow].rx_ports.iter().any(|it| options.is_here(*it)))
    };
    let waits_for_others = elsewhere.iter().any(expects_others);
    drop(elsewhere);
    let live = LiveMeasurement::new(measuring);
    controls.set_live(Arc::new(live.clone()));
    let senders = match interfaces.may_need_dedicated_cpu(options.backend()) {
        true => workloads.len() * workers,
        false => 0,
    };
    let cpus = context.host.cpus().reserve(options.backend(), senders);
    cpus.apply();
    controls.flows.set_workers(workers);
    controls.set_senders(workers);
    controls.flows.set_frame_lengths_max(frame_lengths_max(plan, &workloads));
    let snapshots: Vec<Mutex<WorkerSnapshot>> = (0..workers).map(|_| Mutex::default()).collect();

    let (start, outcomes) = std::thread::scope(|scope| {
        let openers = snapshots.iter().enumerate().map(|(index, snapshot)| {
            let interfaces = &interfaces;
            let resolved = &resolved;
            // One worker lasts until the other machines have sent everything.
            let waits_for_others = waits_for_others && index == 0;
            let worker = WorkerContext {
                options,
                controls,
                interfaces,
                resolved,
                index,
                snapshot,
                waits_for_others,
            };
            let (workloads, cpus) = (&workloads, &cpus);
            move || {
                let ports = worker.open_ports(workloads, cpus, is_paced)?;
                Ok(move |start| worker.work(workloads, ports, start))
            }
        });
        let workers =
            Workers::open(scope, "worker", &controls.stop, openers, TrafficError::Thread)?;
        let start = workers.start(context.wait_for_start()?, is_paced);
        context.running(start);
        let mut received = BTreeMap::new();
        let counters = arrivals.iter().map(|(port, arrivals)| (*port, arrivals.counters()));
        let counters: Vec<(usize, ArrivalCounters)> = counters.collect();
        let blank = blank_snapshot(plan, &names, &workloads);
        workers.watch(|| {
            // Read before the counters, so that they are final.
            let has_sent_all = controls.senders_ended();
            received.extend(live.received());
            let mut snapshot = snapshot(blank.clone(), &workloads, &snapshots);
            for ((_, flow), received) in &received {
                let flow = &mut snapshot.flows[*flow];
                measured::add(flow.received.get_or_insert_default(), received);
            }
            for (port, counters) in &counters {
                snapshot.ports[*port].received = counters.read();
            }
            snapshot.ports.retain(|port| !port.interface.is_empty());
            snapshot.elapsed = clock::now().saturating_since(start);
            snapshot.fraction = fraction(snapshot.elapsed, options.duration);
            context.publish(snapshot);
            if has_sent_all {
                controls.publish_final_counters();
            }
        });
        Ok::<_, TrafficError>((start, workers.join()))
    })?;

    context.draining();
    let from_others = controls.sent_elsewhere().unwrap_or_default();
    let left = |port: usize| {
        let from_others = from_others.get(port).copied().unwrap_or(0);
        expected_at(plan, &workloads, &outcomes, port).saturating_add(from_others)
    };
    let patience = options.elsewhere.as_ref();
    let patience = patience.map_or(Patience::NEAR, |it| Patience::far(it.drain));
    let mut arrived = Vec::new();
    let mut measured = Vec::new();
    for (port, arrivals) in arrivals {
        let (report, receiver) = arrivals.finish(left(port), patience);
        arrived.push((port, report));
        if let Some(receiver) = receiver
            && let Some(streams) = expected.iter().find(|streams| streams.port == port)
        {
            measured.push((receiver, &**streams));
        }
    }
    let payload_notes = payload_notes(plan, controls.flows.flows_with_new_frames());
    let outcome = TrafficOutcome {
        start,
        outcomes,
        arrived,
        measured,
        notes: interfaces.notes().chain(cpus.note()).chain(payload_notes).collect(),
        options,
        changed_flows: controls.flows.changed_flows(),
    };
    Ok(outcome.report(context.result(Some(start)), plan, &names, &workloads))
}

/// Returns the interface of each port, or an empty string for a port that is unused or elsewhere.
fn interface_names(
    plan: &TrafficPlan,
    options: &StreamOptions,
) -> Result<Vec<String>, TrafficError> {
    let bound = &options.interfaces;
    let used = |index: usize| {
        plan.flows.iter().any(|flow| flow.tx_port == index || flow.rx_ports.contains(&index))
    };
    let name = |(index, port): (usize, &wirestorm_plan::traffic::Port)| {
        let bound = bound.get(index).cloned().flatten().or_else(|| port.location.clone());
        match bound {
            _ if !options.is_here(index) => Ok(String::new()),
            Some(name) => Ok(name),
            None if used(index) => Err(TrafficError::Unbound(port.name.clone())),
            None => Ok(String::new()),
        }
    };
    plan.ports.iter().enumerate().map(name).collect()
}

/// Returns the length of the longest frame that the port of each flow sends.
fn frame_lengths_max(plan: &TrafficPlan, workloads: &[PortWorkload]) -> Vec<usize> {
    let mut lengths_max = vec![0; plan.flows.len()];
    for workload in workloads {
        workload.flows.iter().for_each(|flow| lengths_max[*flow] = workload.length_max);
    }
    lengths_max
}

/// Returns a note for each flow whose payload was compared until its frames changed.
fn payload_notes(plan: &TrafficPlan, changed: BTreeSet<usize>) -> impl Iterator<Item = String> {
    let compared = changed.into_iter().filter_map(|flow| plan.flows.get(flow));
    let compared = compared.filter(|flow| flow.payload.is_some() && is_recognised(flow));
    compared.map(|flow| {
        format!("{}: the payload was compared until the frames changed", flow.stream.name)
    })
}

fn transmitting_ports(plan: &TrafficPlan) -> Vec<usize> {
    let sends = |port: &usize| plan.flows.iter().any(|flow| flow.tx_port == *port);
    (0..plan.ports.len()).filter(sends).collect()
}

fn receiving_ports(plan: &TrafficPlan) -> Vec<usize> {
    let receives = |port: &usize| plan.flows.iter().any(|flow| flow.rx_ports.contains(port));
    (0..plan.ports.len()).filter(receives).collect()
}

/// Returns the number of frames that should arrive at a port: those sent to it.
///
/// A transmitting port does not report which flow its failed frames belong to. If all its frames
/// were for this port, they are subtracted. Otherwise they count as lost here, besides as failed
/// there.
fn expected_at(
    plan: &TrafficPlan,
    workloads: &[PortWorkload],
    outcomes: &[WorkerOutcome],
    port: usize,
) -> u64 {
    let mut expected = 0;
    for outcome in outcomes {
        for (workload, outcome) in workloads.iter().zip(&outcome.ports) {
            let goes_there = |flow: usize| plan.flows[flow].rx_ports.contains(&port);
            let frames = |counters: &StreamCounters| counters.frames;
            let sent: u64 = outcome.counters.iter().map(frames).sum();
            let for_port: u64 = workload
                .flows
                .iter()
                .zip(&outcome.counters)
                .filter(|(flow, _)| goes_there(**flow))
                .map(|(_, counters)| frames(counters))
                .sum();
            let unsent = outcome.transmitted.failed + outcome.transmitted.unsent;
            expected += if for_port == sent { for_port.saturating_sub(unsent) } else { for_port };
        }
    }
    expected
}

/// Returns the completed part of a run; `None` if it has no end.
fn fraction(elapsed: Duration, duration: Duration) -> Option<f64> {
    let part = || elapsed.as_secs_f64() / duration.as_secs_f64().max(1e-9);
    (duration != Duration::MAX).then(|| part().min(1.0))
}

/// Returns a snapshot without counts. Its ports are those of the plan; unused ones have no
/// interface.
fn blank_snapshot(plan: &TrafficPlan, names: &[String], workloads: &[PortWorkload]) -> Snapshot {
    let receiving = receiving_ports(plan);
    let port = |(index, port): (usize, &wirestorm_plan::traffic::Port)| {
        let is_sending = workloads.iter().any(|workload| workload.port == index);
        let is_used = is_sending || receiving.contains(&index) && !names[index].is_empty();
        PortSnapshot {
            name: port.name.clone(),
            interface: if is_used { names[index].clone() } else { String::new() },
            ..PortSnapshot::default()
        }
    };
    let flow = |flow: &Flow| FlowSnapshot {
        name: flow.stream.name.as_str().into(),
        received: (is_recognised(flow) && !flow.rx_ports.is_empty()).then(Default::default),
        ..FlowSnapshot::default()
    };
    Snapshot {
        ports: plan.ports.iter().enumerate().map(port).collect(),
        flows: plan.flows.iter().map(flow).collect(),
        ..Snapshot::default()
    }
}

/// Adds the counts of all workers to a blank snapshot.
fn snapshot(
    mut snapshot: Snapshot,
    workloads: &[PortWorkload],
    workers: &[Mutex<WorkerSnapshot>],
) -> Snapshot {
    for worker in workers {
        let Ok(worker) = worker.lock() else { continue };
        snapshot.worker_time += worker.time;
        for (workload, (counters, transmitted)) in workloads.iter().zip(&worker.ports) {
            snapshot.transmitted.merge(transmitted);
            snapshot.ports[workload.port].transmitted.merge(transmitted);
            for (&flow, counters) in workload.flows.iter().zip(counters) {
                super::report::add(&mut snapshot.flows[flow].sent, counters);
            }
        }
        // All workers follow the same commands; one may not have published yet.
        for &(lane, stream) in &worker.paused {
            let flow = workloads.get(lane).and_then(|workload| workload.flows.get(stream));
            if let Some(flow) = flow.and_then(|flow| snapshot.flows.get_mut(*flow)) {
                flow.is_paused = true;
            }
        }
    }
    snapshot
}

/// Context of a worker.
struct WorkerContext<'a> {
    options: &'a StreamOptions,
    controls: &'a Controls,
    interfaces: &'a Interfaces,
    resolved: &'a ResolvedAddresses,
    index: usize,
    snapshot: &'a Mutex<WorkerSnapshot>,
    /// Whether the worker lasts until the ports of other machines have sent everything.
    waits_for_others: bool,
}

impl WorkerContext<'_> {
    fn open_ports(
        &self,
        workloads: &[PortWorkload],
        cpus: &CpuPlan,
        is_paced: bool,
    ) -> Result<Vec<(TransmitPort, Choice)>, TrafficError> {
        let mut ports = Vec::new();
        for (position, (interface, link)) in self.interfaces.links.iter().enumerate() {
            let streams = &workloads[position].streams;
            let resident = ResidentStreams::of(streams, self.share());
            // Constant frames are stored for sending them one by one, and for the kernel.
            let bytes: usize = 2 * streams.iter().map(|it| it.template.len()).sum::<usize>();
            let options = PortOptions {
                policy: self.options.policy,
                paced: is_paced,
                cpu: cpus.sender(self.index * workloads.len() + position),
                queue: self.index as u32,
                store_bytes: bytes,
                is_visible: self.options.is_visible,
                needs_no_process: resident.need_no_process(),
                resident: (resident.options.streams > 0).then_some(resident.options),
            };
            let backend = self.options.backend();
            let port = backend::open(backend, interface, link, &options);
            let port = port
                .map_err(|reason| OpenError::Port { interface: interface.to_string(), reason })?;
            ports.push(port);
        }
        Ok(ports)
    }

    /// Returns the share of this worker.
    fn share(&self) -> Share {
        Share { index: self.index as u64, workers: u64::from(self.options.workers.max(1)) }
    }

    fn work(
        &self,
        workloads: &[PortWorkload],
        ports: Vec<(TransmitPort, Choice)>,
        start: Instant,
    ) -> WorkerOutcome {
        let (mut ports, choices): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        let options = generator_options(self.share(), self.options.policy, self.options.duration);
        let mut generators: Vec<Generator> = workloads
            .iter()
            .map(|workload| {
                let numbered_from = workload.numbered_from;
                let options = GeneratorOptions { first_number: numbered_from, ..options.clone() };
                Generator::new(&workload.streams, options, start)
            })
            .collect();
        let outcome = self.send(workloads, start, &mut generators, &mut ports);
        recall(&mut generators, &mut ports);
        let outcome = outcome
            .and_then(|paused| drain(&mut ports, &self.controls.stop, |_| {}).map(|()| paused));
        let finished = clock::now();
        // Frames that were in flight have left: the last snapshot equals the result.
        let snapshot = self.snapshot.lock();
        let mut snapshot = snapshot.unwrap_or_else(PoisonError::into_inner);
        record(&mut snapshot, &mut generators, &mut ports);
        drop(snapshot);
        let has_failed = outcome.is_err();
        let outcomes =
            generators.iter().zip(&mut ports).zip(choices).map(|((generator, port), choice)| {
                PortOutcome {
                    choice,
                    departures: departures(generator.departures().clone(), slice::from_ref(port)),
                    transmitted: final_counters(port, has_failed),
                    counters: generator.counters().collect(),
                    stamp: port.capabilities().departure_stamp,
                }
            });
        WorkerOutcome {
            ports: outcomes.collect(),
            finished,
            paused: outcome.as_ref().map_or(Duration::ZERO, |paused| *paused),
            error: outcome.err().map(|error| self.interfaces.settle(error)),
        }
    }

    /// Sends until all frames are sent or the run stops. Returns the time that it was paused.
    fn send(
        &self,
        workloads: &[PortWorkload],
        start: Instant,
        generators: &mut [Generator],
        ports: &mut [TransmitPort],
    ) -> Result<Duration, PortError> {
        let mut follower = FlowFollower::new(&self.controls.flows, self.index, start);
        let holds_departures = ports.iter().all(|port| port.capabilities().holds_departure);
        let mut outages =
            Outages::new(workloads, self.interfaces.watch(), self.options.survives_outages);
        let mut published = Instant::ZERO;
        let is_virtual =
            |port: &TransmitPort| port.capabilities().departure_stamp == StampPoint::Virtual;
        let is_virtual = ports.iter().all(is_virtual);
        let late_max = |end| if is_virtual { Duration::MAX } else { late_end_max(end) };
        let mut paused = Duration::ZERO;
        let mut has_sent_all = false;
        let mut ends: Vec<_> = workloads
            .iter()
            .enumerate()
            .flat_map(|(index, it)| it.ends.iter().map(move |&(end, stream)| (end, index, stream)))
            .collect();
        // Reverse order: `pop_if` takes the earliest end from the back.
        ends.sort_unstable_by(|a, b| b.cmp(a));
        loop {
            let now = clock::now();
            let lasted = now.saturating_since(start).saturating_sub(paused);
            let is_past = |end: Duration| lasted > end.saturating_add(late_max(end));
            let is_over = is_past(self.options.duration);
            while let Some((_, index, stream)) = ends.pop_if(|(end, ..)| is_past(*end)) {
                recall(generators, ports);
                generators[index].stop(stream);
            }
            if follower.is_due(now) {
                recall(generators, ports);
                follower.follow(now, generators, workloads, self.resolved);
            }
            let mut state = WorkerState::Done;
            let sending = if has_sent_all { 0 } else { ports.len() };
            for index in 0..sending {
                let generator = &mut generators[index];
                let of_port = match outages.is_down(index) {
                    true => {
                        generator.recall(&mut ports[index]);
                        generator.pass_over(now)
                    }
                    false => match ports[index].visit(Breathe { generator, now }) {
                        Ok(breath) => breath.state,
                        Err(error) => {
                            outages.begin(index, error, ports, generators)?;
                            WorkerState::Active
                        }
                    },
                };
                state = more_urgent(state, of_port);
            }
            if let Some(due) = follower.due() {
                state = more_urgent(state, WorkerState::Waiting(due));
            }
            let is_done = is_over || state == WorkerState::Done;
            if is_done && !has_sent_all {
                has_sent_all = true;
                let snapshot = self.snapshot.lock();
                record(&mut snapshot.unwrap_or_else(PoisonError::into_inner), generators, ports);
                self.controls.sender_ended();
            }
            if is_done && !self.waits_for_others() || self.controls.is_stopped() {
                return Ok(paused);
            }
            if now.saturating_since(published) >= PUBLISH_INTERVAL {
                published = now;
                self.publish(generators, ports);
                outages.update(ports, generators)?;
            }
            if is_done {
                rest(WorkerState::Waiting(now.saturating_add(PUBLISH_INTERVAL)), now, false);
                continue;
            }
            if self.controls.is_paused() {
                recall(generators, ports);
                let span = wait_while_paused(self.controls);
                generators.iter_mut().for_each(|generator| generator.postpone(span));
                paused = paused.saturating_add(span);
                continue;
            }
            rest(awaited(state, now, start), now, holds_departures);
        }
    }

    /// Returns whether ports of other machines still send to this one.
    fn waits_for_others(&self) -> bool {
        self.waits_for_others && self.controls.sent_elsewhere().is_none()
    }

    fn publish(&self, generators: &mut [Generator], ports: &mut [TransmitPort]) {
        // The next one comes soon.
        if let Ok(mut snapshot) = self.snapshot.try_lock() {
            record(&mut snapshot, generators, ports);
        }
    }
}

fn record(snapshot: &mut WorkerSnapshot, generators: &mut [Generator], ports: &mut [TransmitPort]) {
    for (generator, port) in generators.iter_mut().zip(&mut *ports) {
        generator.observe(port);
    }
    snapshot.time = clock::thread_time();
    snapshot.ports.clear();
    snapshot.paused.clear();
    for (lane, (generator, port)) in generators.iter().zip(&*ports).enumerate() {
        snapshot.ports.push((generator.counters().collect(), port.transmitted()));
        snapshot.paused.extend(generator.paused().map(|stream| (lane, stream)));
    }
}

/// Takes back the streams that the ports send by themselves.
fn recall(generators: &mut [Generator], ports: &mut [TransmitPort]) {
    for (generator, port) in generators.iter_mut().zip(ports) {
        generator.recall(port);
    }
}

/// One iteration of a generator on a port.
struct Breathe<'a> {
    generator: &'a mut Generator,
    now: Instant,
}

impl PortVisitor for Breathe<'_> {
    type Output = Result<Breath, PortError>;

    #[inline]
    fn visit<P: Transmit>(self, port: &mut P) -> Self::Output {
        self.generator.breathe(self.now, port)
    }
}

/// Returns the more urgent of two states.
fn more_urgent(a: WorkerState, b: WorkerState) -> WorkerState {
    match (a, b) {
        (WorkerState::Done, other) | (other, WorkerState::Done) => other,
        (WorkerState::Waiting(a), WorkerState::Waiting(b)) => WorkerState::Waiting(a.min(b)),
        (WorkerState::Waiting(_), other) | (other, WorkerState::Waiting(_)) => other,
        (WorkerState::Active, _) | (_, WorkerState::Active) => WorkerState::Active,
        (other, _) => other,
    }
}
