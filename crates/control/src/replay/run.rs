//! Run of a replay, from its plan to its result.

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use wirestorm_base::pace::Pace;
use wirestorm_base::port::ReceiveCounters;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::{Feed, Renderer};
use wirestorm_io::clock;
use wirestorm_plan::replay::{PlanConflict, ReplayPlan, SideAssignment, Target};

use super::compile;
use super::error::ReplayError;
use super::hooks::Callbacks;
use super::input::{Input, expand_inputs};
use super::reader::{ReadError, Reader};
use super::reader_counters::ReaderCounters;
use super::report::ReplayOutcome;
use super::target;
use super::work::{PassEnd, Snapshot, WorkerContext};
use crate::backend::Backend;
use crate::lifecycle::{self, Context, PortSnapshot};
use crate::port::Interfaces;
use crate::receive::{Patience, RunReceiver};
use crate::result::RunResult;
use crate::workers::{OBSERVE_INTERVAL, Workers};

/// Maximum number of pass ends queued for the supervisor. The worker waits when the queue is full.
const PASS_ENDS_MAX: usize = 64;

/// Replays captures on the calling supervisor thread.
///
/// # Errors
/// Fails if nothing could be sent. Later errors are part of the result.
pub(crate) fn run(
    plan: &ReplayPlan,
    backend: Backend,
    hooks: Callbacks,
    context: &Context,
) -> Result<RunResult, ReplayError> {
    plan.check()?;
    let controls = context.controls();
    // Open the interfaces before the captures: without them there is no need to read.
    let lease = context.lease_request();
    let names = target::interfaces(plan);
    let interfaces = Interfaces::open(&names, plan.force_interface, &lease, Some(backend))?;
    let inputs = expand_inputs(&plan.captures, &context.files)?;
    if plan.sides == SideAssignment::Pairs && !inputs.len().is_multiple_of(2) {
        return Err(PlanConflict::OddCaptures { captures: inputs.len() }.into());
    }
    let captures = inputs.iter().map(ToString::to_string).collect();
    let extent = inputs.iter().map(Input::plain_length).sum();
    // Open the receiver first: its XDP program on a veth peer enables the in-kernel sender.
    let arrivals = match &plan.receive {
        None => None,
        Some(receive) => {
            let opened =
                RunReceiver::open(receive, plan.pace != Pace::TopSpeed, context.shared_receivers());
            Some(opened.map_err(ReplayError::Receive)?)
        }
    };
    let interfaces = interfaces.read_again()?;
    let senders = interfaces.links.len() * usize::from(plan.workers);
    let cpus = context.host.cpus().reserve(backend, senders);
    cpus.apply();
    let may_be_resident = compile::may_be_resident(plan, &inputs, backend);
    let reader = compile::reader_options(plan, inputs, may_be_resident, &*context.files)?;
    let (reader, mut feeds) = Reader::start(reader).map_err(ReplayError::Thread)?;
    let read = reader.counters().bytes.load(Ordering::Relaxed);
    let kept = feeds.first_mut().filter(|_| may_be_resident).and_then(Feed::kept);
    let renderer = Renderer::new(compile::render_options(plan, &interfaces));
    let resident = kept.and_then(|kept| compile::resident(plan, &kept, &renderer));
    let (resident, resident_bytes) = resident.unzip();
    let memory = target::PortMemory {
        store_bytes: compile::store_bytes(plan, extent, read).max(resident_bytes.unwrap_or(0)),
        resident,
    };
    let show = hooks.show.map(|show| Arc::new(Mutex::new(show)));
    let mut ask = hooks.ask;
    let snapshots: Vec<Mutex<Snapshot>> = feeds.iter().map(|_| Mutex::default()).collect();

    let (start, outcomes) = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(PASS_ENDS_MAX);
        let openers = feeds.into_iter().enumerate().map(|(index, feed)| {
            let worker = WorkerContext {
                plan,
                controls,
                interfaces: &interfaces,
                index,
                snapshot: &snapshots[index],
                sent_log: arrivals.as_ref().and_then(RunReceiver::sent_log),
                show: show.clone(),
                ask: ask.take(),
                pass_ends: (hooks.passes && index == 0).then(|| sender.clone()),
            };
            let alive = sender.clone();
            let (interfaces, cpus, memory) = (&interfaces, &cpus, &memory);
            move || {
                let ports = target::open_ports(
                    plan,
                    backend,
                    interfaces,
                    cpus,
                    index,
                    memory,
                    &*context.files,
                )?;
                Ok(move |start| {
                    let outcome = worker.work(feed, ports, start);
                    // The observer ends when all workers have dropped their sender.
                    drop(alive);
                    outcome
                })
            }
        });
        let workers = Workers::open(scope, "worker", &controls.stop, openers, ReplayError::Thread)?;
        drop(sender);
        let paced = matches!(plan.target, Target::Interfaces { .. }) && plan.pace != Pace::TopSpeed;
        let start = workers.start(context.wait_for_start()?, paced);
        context.running(start);
        let sending = target::port_names(plan, &interfaces);
        let counters = arrivals.as_ref().map(RunReceiver::counters);
        let progress = |pass_end: Option<PassEnd>| {
            let progress = progress(plan, extent, reader.counters(), start, &snapshots, pass_end);
            let received = counters.as_ref().map(|it| (it.interface(), it.read()));
            with_ports(progress, &sending, &snapshots, received)
        };
        loop {
            match receiver.recv_timeout(OBSERVE_INTERVAL) {
                Ok(pass_end) => context.publish(progress(Some(pass_end))),
                Err(RecvTimeoutError::Timeout) => context.publish(progress(None)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        context.publish(progress(None));
        Ok::<_, ReplayError>((start, workers.join()))
    })?;

    context.draining();
    let read_counters = Arc::clone(reader.counters());
    let sent: u64 =
        outcomes.iter().flat_map(|it| &it.counters).map(|counters| counters.packets).sum();
    let read_error = match reader.finish() {
        Err(error) if sent == 0 => return Err(error.into()),
        outcome => outcome.err(),
    };
    if read_counters.records.load(Ordering::Relaxed) == 0 {
        let cut_off = read_counters.truncated_files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cut) = cut_off.first() {
            return Err(ReadError::from(cut.clone()).into());
        }
    }
    let left = outcomes.iter().flat_map(|outcome| &outcome.ports).map(|p| p.transmitted.sent).sum();
    let rx =
        arrivals.map(|arrivals| (arrivals.interface(), arrivals.finish(left, Patience::NEAR).0));
    let outcome = ReplayOutcome {
        captures,
        start,
        outcomes,
        read_counters,
        read_error,
        rx,
        notes: interfaces.notes().chain(cpus.note()).collect(),
    };
    Ok(outcome.report(context.result(Some(start)), plan, &interfaces))
}

/// Returns the progress of a run: now, or at the end of a pass of the first worker.
fn progress(
    plan: &ReplayPlan,
    extent: Option<u64>,
    read: &ReaderCounters,
    start: Instant,
    snapshots: &[Mutex<Snapshot>],
    pass_end: Option<PassEnd>,
) -> lifecycle::Snapshot {
    let now = pass_end.map_or_else(clock::now, |pass_end| pass_end.at);
    let elapsed = now.saturating_since(start);
    let pass_ended = pass_end.is_some();
    let mut progress =
        lifecycle::Snapshot { elapsed, pass_ended, ..lifecycle::Snapshot::default() };
    for (index, snapshot) in snapshots.iter().enumerate() {
        let snapshot = match (pass_end, snapshot.lock()) {
            (Some(pass_end), _) if index == 0 => pass_end.snapshot,
            (_, Ok(snapshot)) => *snapshot,
            (_, Err(_)) => continue,
        };
        progress.worker_time += snapshot.time;
        progress.replay.merge(&snapshot.counters);
        progress.transmitted.merge(&snapshot.transmitted);
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
        // In a single pass, use the position of the reader, which is only a few chunks ahead.
        let within = match extent {
            Some(bytes) if limits.passes == 1 => {
                read.bytes.load(Ordering::Relaxed) as f64 / bytes.max(1) as f64
            }
            _ => progress.replay.passes as f64,
        };
        if limits.passes > 1 || extent.is_some() {
            fractions.push(within / limits.passes as f64);
        }
    }
    progress.fraction = fractions.into_iter().reduce(f64::max);
    progress
}

/// Adds the counters of the ports: those that send, in order, and the receiving interface.
fn with_ports(
    mut progress: lifecycle::Snapshot,
    sending: &[String],
    snapshots: &[Mutex<Snapshot>],
    received: Option<(String, ReceiveCounters)>,
) -> lifecycle::Snapshot {
    let ports = &mut progress.ports;
    ports.extend(sending.iter().map(|name| named(name)));
    for snapshot in snapshots {
        let Ok(snapshot) = snapshot.lock() else { continue };
        for (index, transmitted) in snapshot.ports.iter().enumerate() {
            if let Some(port) = ports.get_mut(index.min(sending.len().saturating_sub(1))) {
                port.transmitted.merge(transmitted);
            }
        }
    }
    if let Some((interface, received)) = received {
        match ports.iter_mut().find(|port| port.interface == interface) {
            Some(port) => port.received = received,
            None => ports.push(PortSnapshot { received, ..named(&interface) }),
        }
    }
    progress
}

/// Returns the port of an interface, without counts. A plan of a replay has no port names.
fn named(interface: &str) -> PortSnapshot {
    PortSnapshot { name: interface.into(), interface: interface.into(), ..PortSnapshot::default() }
}
