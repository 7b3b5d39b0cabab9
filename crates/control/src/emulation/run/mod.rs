//! Emulation on interfaces: one worker thread per port, from the first connection to the last.

mod kernel;
mod moderation;
mod outage;

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use wirestorm_base::port::{PortError, Receive, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::impairment::Impaired;
use wirestorm_engine::tunnel::{DecapsulatingPort, EncapsulatingPort, TunnelTable};
use wirestorm_io::af_packet::FetchExtent;
use wirestorm_io::clock;
use wirestorm_io::link::{Link, LinkKind};
use wirestorm_model::impairment::{Impairment, Probability};
use wirestorm_plan::emulation::{EmulationPlan, Template, Transport};
use wirestorm_plan::traffic::Port;
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{self as stack, Endpoint, EndpointOptions, ResetCursor};
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use self::moderation::Moderation;
use self::outage::Outage;
use crate::backend::{Backend, TransmitPort, open_duplex};
use crate::backend::{Choice, DuplexPort};
use crate::emulation::compile::endpoint::{CompiledEndpoint, compiled_endpoint};
use crate::emulation::compile::sessions::sessions;
use crate::emulation::error::EmulationError;
use crate::emulation::observe::flow_notes::{self, DrainTime, RESETS_TIME_MAX};
use crate::emulation::observe::latency::LatencyProbe;
use crate::emulation::observe::load_notes::load_notes;
use crate::emulation::observe::neighbour_changes::NeighbourChanges;
use crate::emulation::observe::probes::{ProbedPort, UdpProbes};
use crate::emulation::observe::report::{CpuTime, WorkerCounters, WorkerOutcome, achieved};
use crate::emulation::observe::timeline;
use crate::emulation::observe::watch::{FlowWatch, WatchOptions};
use crate::emulation::resolve::destinations::NextHopTable;
use crate::emulation::resolve::neighbours::Neighbours;
use crate::emulation::resolve::tunnels;
use crate::lifecycle::{
    ConnectionSnapshot, Context, Controls, Detail, LoadFollower, PortSnapshot, Snapshot,
};
use crate::port::{Interfaces, LinkFlapTolerant, OpenError, Usage};
use crate::responder::ProbeSchedule;
use crate::result::{GroupReport, PortReport, RunResult, Target};
use crate::work::final_counters;
use crate::workers::Workers;

/// Options of an emulation.
#[derive(Clone, Debug)]
pub struct EmulationOptions {
    /// Interface of each port of the plan, in order; `None` for the port's location in the plan.
    pub interfaces: Vec<Option<String>>,
    /// Directory of the plan, which relative paths in it start from.
    pub folder: PathBuf,
    /// Backend that sends and receives frames.
    pub backend: Backend,
    /// Duration of the load. Afterwards no connection starts, and servers end.
    pub duration: Duration,
    /// Time after the load in which open connections may end.
    pub drain_timeout: Duration,
    /// Name of the caller's option for `drain_timeout`, for the note on unfinished connections.
    /// `None` for no such note.
    pub drain_timeout_flag: Option<String>,
    /// Maximum duration of an interface outage, which ends the run. The default is
    /// [`Self::LINK_DOWN_TIMEOUT`].
    pub link_down_timeout: Duration,
    /// Interval of the time series, and the flows to sample.
    pub watch: WatchOptions,
    /// Maximum time that received frames wait while many flows receive many frames. It limits the
    /// precision of measured times. Zero wakes the worker for each frame.
    pub rx_coalesce: Duration,
    /// Maximum number of concurrent connections on each port.
    pub flows_max: usize,
    /// Seed of random numbers, delays and the clients' first ports. [`Self::random_seed`] returns a
    /// new one; the seed of an earlier run repeats its choices.
    pub seed: u64,
    /// Whether to allow an interface that carries the default route.
    pub force_interface: bool,
    /// Whether to verify received checksums with AF_XDP on virtual interfaces too. AF_XDP does not
    /// report which checksums the sending kernel has not filled in yet.
    pub verify_checksums: bool,
    /// Whether other packet sockets on this host see the frames that a packet socket sends. This
    /// costs some speed.
    pub is_visible: bool,
}

impl EmulationOptions {
    /// Default maximum duration of an outage. It is longer than a device failover or a network
    /// restart. Connections survive this time without an answer.
    pub const LINK_DOWN_TIMEOUT: Duration = Duration::from_secs(30);

    /// Returns a new random seed. With it, clients start at other ports than in earlier runs, whose
    /// connections may still exist at the peers.
    pub fn random_seed() -> u64 {
        RandomState::new().hash_one(clock::now().as_nanos())
    }
}

/// Interval at which a worker publishes its counters and checks its interface.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum time after the end of the load in which overdue flows still start.
const LATE_MAX: Duration = Duration::from_millis(100);

/// Maximum length of a wait, so that a worker notices a stop.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// Maximum length of a wait for the last replies to probes.
const PROBE_WAIT_MAX: Duration = Duration::from_millis(1);

/// Number of open connections that are reset in each [`RESET_INTERVAL`] at the end of a run.
/// Switches and hosts accept this rate of 256,000 resets per second.
const RESETS_PER_INTERVAL: usize = 256;
const RESET_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum time that a port waits for the other ports of the run before it resets connections. A
/// port that is still running would count these resets as its peer's.
const OTHER_PORTS_TIME_MAX: Duration = Duration::from_millis(250);

/// A peer may send a challenge ACK before it accepts a reset (RFC 5961 section 3.2). A port answers
/// until no frame has arrived for [`CHALLENGE_TIME`], for at most [`CHALLENGE_TIME_MAX`].
const CHALLENGE_TIME: Duration = Duration::from_millis(20);
const CHALLENGE_TIME_MAX: Duration = Duration::from_millis(500);

/// Pause of a worker while its interface is down.
const DOWN_PAUSE: Duration = Duration::from_millis(5);

/// A used port of the plan, and the work on its interface.
struct PortWorkload<'a> {
    /// Index of the port in the plan.
    port: usize,
    name: &'a str,
    interface: String,
    /// Own addresses of the port, and the addresses that it answers for besides them.
    addresses: Vec<Prefix>,
    compiled: CompiledEndpoint,
    impairment: Option<Impairment>,
    tunnels: Option<Arc<TunnelTable>>,
    /// Whether any port corrupts frames on purpose, which only checksums reveal.
    corrupts: bool,
}

impl PortWorkload<'_> {
    /// Returns the part of long frames to fetch: all of it if a template reads the data. Runs that
    /// share an interface also need all of it. To fetch only the beginning, a BPF program at the
    /// ingress consumes the frames, and other runs do not receive them.
    fn fetched(&self, shares_interface: bool) -> FetchExtent {
        let reads_data = || self.compiled.templates.iter().any(stack::Template::examines_data);
        match shares_interface || self.corrupts || reads_data() {
            true => FetchExtent::Whole,
            false => FetchExtent::HeadersOnly,
        }
    }

    fn report(&self, counted: &WorkerCounters<'_>, detail: Detail) -> PortReport {
        counted.report(self.name, &self.interface, &self.compiled.owners, detail)
    }
}

/// Runs the clients and servers of a plan. The supervisor thread of the run calls it.
///
/// # Errors
/// Fails if the run does not start. The result lists later errors.
pub(crate) fn run(
    plan: &EmulationPlan,
    options: &EmulationOptions,
    context: &Context,
) -> Result<RunResult, EmulationError> {
    let controls = context.controls();
    let backend = context.receiving_backend(options.backend)?;
    let names = interface_names(plan, &options.interfaces)?;
    let sessions = sessions(plan, &options.folder, &*context.files)?;
    let used: Vec<usize> = (0..names.len()).filter(|&port| names[port].is_some()).collect();
    let opened: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    controls.load.set_has_tunnels(plan.ports.iter().any(|port| port.tunnels.is_some()))?;
    let lease = context.lease_request();
    let interfaces = Interfaces::open(&opened, options.force_interface, &lease, None)?;
    let _frames = context.need_frames(&interfaces)?;
    let mut known = vec![None; plan.ports.len()];
    for (&port, (interface, link)) in used.iter().zip(&interfaces.links) {
        let mac = link.mac.ok_or_else(|| EmulationError::NoMac(interface.to_string()))?;
        known[port] = Some((interface.to_string(), MacAddress(mac)));
    }
    let shared = shared_with_kernel(plan, backend, &used, &interfaces);
    for (_, text) in &shared {
        context.wait_for(text.clone());
    }
    let neighbours = Neighbours::find(plan, &known, &controls.stop, |text| context.wait_for(text))?;
    let Neighbours { clients, probes, probe_times, mut echoes, reached_by, hosts, notes } =
        neighbours;
    let mut impairments = plan.ports.iter().filter_map(|port| port.impairment);
    let corrupts = impairments.any(|it| it.corruption > Probability::NONE);
    let mut workloads = Vec::new();
    for &port in &used {
        let Some((interface, mac)) = known[port].clone() else { continue };
        let compiled = compiled_endpoint(plan, port, mac, &clients, &sessions)?;
        let Port { name, impairment, .. } = &plan.ports[port];
        let (impairment, tunnels) = (*impairment, tunnels::table(&plan.ports[port]));
        let addresses = addresses(plan, port);
        workloads.push(PortWorkload {
            port,
            name,
            interface,
            addresses,
            compiled,
            impairment,
            tunnels,
            corrupts,
        });
    }
    let has_long_frames = has_long_frames(plan, &workloads);
    let is_visible = options.is_visible;
    let usage = |workload: &PortWorkload<'_>| {
        let fetched = workload.fetched(context.is_shared());
        // The kernel does not segment or merge the packets inside tunnels.
        let has_long_frames = has_long_frames && workload.tunnels.is_none();
        let receives_external = !interfaces.are_joined(&workload.interface);
        Usage::Endpoint { has_long_frames, fetched, is_visible, receives_external }
    };
    let connecting = workloads.iter().filter(|workload| workload.compiled.connects).count();
    let clients = Progress {
        ports: connecting,
        busy: AtomicUsize::new(connecting),
        running_ports: AtomicUsize::new(workloads.len()),
    };
    let snapshot = |workload: &PortWorkload<'_>| PortSnapshot {
        name: workload.name.into(),
        interface: workload.interface.clone(),
        ..PortSnapshot::default()
    };
    let snapshots: Vec<Mutex<WorkerSnapshot>> = workloads
        .iter()
        .map(|workload| {
            Mutex::new(WorkerSnapshot { port: snapshot(workload), time: Duration::ZERO })
        })
        .collect();

    let sides: usize = workloads.iter().map(|workload| workload.compiled.owners.len()).sum();
    let intervals_max = timeline::intervals_max(sides);

    let echoes: Vec<UdpProbes> =
        workloads.iter().map(|workload| std::mem::take(&mut echoes[workload.port])).collect();
    let latency = || probes.iter().filter_map(LatencyProbe::report).collect();

    let answering = controls.load.begin(workloads.len());
    // Keep the responders: they answer until the report is complete.
    let (start, mut ended, _responders) = std::thread::scope(|scope| {
        let workers = workloads.iter().zip(echoes).enumerate();
        let openers = workers.map(|(index, (workload, echoes))| {
            let (interfaces, snapshot) = (&interfaces, &snapshots[index]);
            let (clients, usage) = (&clients, usage(workload));
            let worker = WorkerContext {
                options,
                controls,
                is_shared: context.is_shared(),
                interfaces,
                index,
                workload,
                clients,
                snapshot,
                intervals_max,
                probe_times: &probe_times,
                reached_by: &reached_by[workload.port],
            };
            move || {
                let (interface, link) = &worker.interfaces.links[worker.index];
                let port = open_duplex(backend, interface, link, &usage);
                let mut port = port.map_err(|reason| OpenError::Port {
                    interface: interface.to_string(),
                    reason,
                })?;
                if backend != options.backend {
                    port.choice.why =
                        "shared: only packet sockets let several runs receive the same frames"
                            .into();
                }
                Ok(move |start| worker.work(port, echoes, link, start))
            }
        });
        let workers =
            Workers::open(scope, "endpoint", &controls.stop, openers, EmulationError::Thread)?;
        let start = context.wait_for_start()?;
        let responders = hosts.begin()?;
        let start = workers.start(start, false);
        context.running(start);
        probe_times.begin();
        workers.watch(|| {
            let read =
                |it: &Mutex<WorkerSnapshot>| it.lock().map(|it| it.clone()).unwrap_or_default();
            let elapsed = clock::now().saturating_since(start);
            let (mut ports, mut worker_time) = (Vec::new(), Duration::ZERO);
            for WorkerSnapshot { port, time } in snapshots.iter().map(read) {
                ports.push(port);
                worker_time += time;
            }
            let mut transmitted = TransmitCounters::default();
            ports.iter().for_each(|port| transmitted.merge(&port.transmitted));
            let part = || elapsed.as_secs_f64() / options.duration.as_secs_f64().max(1e-9);
            let fraction = (options.duration != Duration::MAX).then(|| part().min(1.0));
            let latency = latency();
            context.publish(Snapshot {
                elapsed,
                fraction,
                transmitted,
                ports,
                latency,
                worker_time,
                ..Snapshot::default()
            });
        });
        Ok::<_, EmulationError>((start, workers.join(), responders))
    })?;
    drop(answering);
    context.draining();

    let elapsed = clock::now().saturating_since(start);
    // Ports end at different times, but all series must have the same intervals.
    if let Some(end) = ended.iter().map(|ended| ended.watch.end()).max() {
        ended.iter_mut().for_each(|ended| ended.watch.extend(end));
    }
    let interval_note =
        timeline::note(options.watch.interval, ended.iter().map(|ended| &ended.watch.timeline));
    let loads = workloads.iter().zip(&ended);
    let loads =
        loads.flat_map(|(workload, ended)| load_notes(&workload.compiled.owners, &ended.endpoint));
    let loads: Vec<String> = loads.collect();
    let reports = workloads.iter().zip(&ended);
    let ports: Vec<_> =
        reports.map(|(workload, ended)| workload.report(&ended.counted(), Detail::All)).collect();
    let interrupted = controls.is_stopped();
    let carried = |port: usize| {
        let worker = workloads.iter().zip(&ended).find(|(workload, _)| workload.port == port);
        worker.is_some_and(|(_, ended)| ended.choice.backend.feeds_kernel)
    };
    let shared = shared.into_iter().filter(|(port, _)| carried(*port)).map(|(_, text)| text);
    let errors: Vec<String> = ended.iter().filter_map(|ended| ended.error.clone()).collect();
    let is_cut_short = interrupted || !errors.is_empty();
    let waited = match &options.drain_timeout_flag {
        Some(name) if !is_cut_short => DrainTime::DrainTimeout(options.drain_timeout, name),
        _ => DrainTime::CutShort,
    };
    let left = flow_notes::notes(&ports, waited, options.flows_max);
    let outages: Vec<String> = outage::notes(&ports).collect();
    let moved: Vec<String> =
        ended.iter().flat_map(|ended| ended.neighbour_changes.notes()).collect();
    let notes = plan
        .notes
        .iter()
        .cloned()
        .chain(interfaces.notes())
        .chain(notes)
        .chain(shared)
        .chain(interval_note)
        .chain(loads)
        .chain(left)
        .chain(outages)
        .chain(moved);
    let target = Target {
        duration_s: (options.duration != Duration::MAX).then(|| options.duration.as_secs_f64()),
        seed: Some(options.seed),
        ..Target::default()
    };
    let load_s = load_end(&workloads, &ended).saturating_since(start).as_secs_f64();
    let mut result = RunResult {
        target,
        achieved: achieved(&ports, elapsed),
        groups: GroupReport::of_ports(&ports),
        ports,
        latency: latency(),
        errors,
        notes: notes.collect(),
        ..context.result(Some(start))
    };
    result.times.elapsed_s = elapsed.as_secs_f64();
    result.times.load_duration_s = Some(load_s);
    Ok(result)
}

/// Returns the host addresses of a port, without those of its clients and servers.
fn addresses(plan: &EmulationPlan, port: usize) -> Vec<Prefix> {
    let proxied = plan.answered_addresses.iter().filter(|proxied| proxied.port == port);
    let addresses = plan.ports[port].addresses.iter().copied();
    addresses.chain(proxied.map(|proxied| Prefix::host(proxied.address))).collect()
}

/// Returns a warning for each port that shares an address with the kernel, with the port's index.
fn shared_with_kernel(
    plan: &EmulationPlan,
    backend: Backend,
    used: &[usize],
    interfaces: &Interfaces,
) -> Vec<(usize, String)> {
    if matches!(backend, Backend::One(backend) if !backend.feeds_kernel) {
        return Vec::new();
    }
    let all = used.iter().zip(&interfaces.links);
    let warnings = all.filter_map(|(&port, (interface, link))| {
        Some((port, kernel::warning(plan, port, interface, link)?))
    });
    warnings.collect()
}

/// Returns the time until which ports with clients started connections. Without such ports, it is
/// the time until which servers accepted them.
fn load_end(workloads: &[PortWorkload<'_>], ended: &[WorkerOutcome]) -> Instant {
    let all = || workloads.iter().zip(ended);
    let last = |connects: bool| {
        let of = all().filter(|(workload, _)| workload.compiled.connects || !connects);
        of.map(|(_, ended)| ended.watch.load_end()).max()
    };
    last(true).or(last(false)).unwrap_or(Instant::ZERO)
}

/// Whether to use frames longer than the MTU. They pay off if a send has at least 8 KiB, and are
/// assumed to pay off with peers outside the run. Between two ports of a veth pair, a connection
/// with long frames costs 1.5 times the CPU time for pages of 200 bytes. For 8 KiB it costs three
/// quarters, and for 32,000 bytes little more than half (`docs/design/ports.md`).
fn has_long_frames(plan: &EmulationPlan, workloads: &[PortWorkload<'_>]) -> bool {
    const LONG: u32 = 8 * 1024;
    let is_long = |workload: &PortWorkload<'_>| workload.compiled.buffers.size_max() >= LONG;
    let is_with_others = |it: &Template| {
        it.transport == Transport::Tcp && (it.client.is_none() || it.server.is_none())
    };
    workloads.iter().any(is_long) || plan.templates.iter().any(is_with_others)
}

/// Returns the interface of each port of the plan; `None` for ports that are not used.
fn interface_names(
    plan: &EmulationPlan,
    bound: &[Option<String>],
) -> Result<Vec<Option<String>>, EmulationError> {
    let name = |(index, port): (usize, &wirestorm_plan::traffic::Port)| {
        if !plan.uses(index) {
            return Ok(None);
        }
        let bound = bound.get(index).cloned().flatten().or_else(|| port.location.clone());
        bound.map(Some).ok_or_else(|| EmulationError::Unbound(port.name.clone()))
    };
    plan.ports.iter().enumerate().map(name).collect()
}

/// Progress of all ports, shared by the workers.
struct Progress {
    /// Number of ports with clients.
    ports: usize,
    /// Number of ports with clients that still run.
    busy: AtomicUsize,
    /// Number of ports, with or without clients, that still count.
    running_ports: AtomicUsize,
}

/// An interface that is open for sending and receiving.
struct OpenPort {
    transmit: EncapsulatingPort<Impaired<LinkFlapTolerant<TransmitPort>>>,
    receive: DecapsulatingPort<ProbedPort>,
    choice: Choice,
    outage: Outage,
    /// Start of the run.
    start: Instant,
}

impl OpenPort {
    /// Whether the interface is down, as far as either half of the port has noticed.
    fn is_down(&mut self) -> bool {
        let (transmit, receive) = self.inner_halves();
        transmit.is_down() || receive.port_mut().is_down()
    }

    /// Checks the interface, and stops or resumes sending and receiving.
    ///
    /// # Errors
    /// Fails if the interface is gone, or down for too long.
    fn check_interface(&mut self, now: Instant) -> Result<(), PortError> {
        let is_down = self.is_down();
        let is_out = self.outage.update(now, is_down)?;
        let (transmit, receive) = self.inner_halves();
        let receive = receive.port_mut();
        if is_out {
            transmit.suspend_transmit();
            receive.suspend_receive();
        } else {
            transmit.resume();
            receive.resume();
        }
        Ok(())
    }

    /// Returns the current counters of the port and its endpoint. Only the worker thread calls it,
    /// because the CPU time is that of the calling thread.
    fn counted<'a>(&'a self, endpoint: &'a Endpoint, watch: &'a FlowWatch) -> WorkerCounters<'a> {
        WorkerCounters {
            endpoint,
            watch,
            choice: &self.choice,
            impairment: self.link().counters(),
            tunnels: tunnels::report([self.transmit.counters(), self.receive.counters()]),
            transmitted: self.transmit.transmitted(),
            received: self.receive.received(),
            outages: self.outage.count(),
            down: self.outage.time(clock::now()),
            elapsed: clock::now().saturating_since(self.start),
            cpu: CpuTime {
                worker: clock::thread_time(),
                ingress: self.receive.port().ingress_time(),
            },
        }
    }

    /// Waits until `until`, or until the impaired link has a frame to send. With a `pause`, sleeps
    /// for at most that time. Otherwise the wait also ends when a frame arrives.
    fn wait(&mut self, until: Instant, pause: Option<Duration>, is_down: bool) {
        let until = until.min(self.link().next().unwrap_or(Instant::MAX));
        let patience = until.saturating_since(clock::now());
        let sleep = |time: Duration| {
            std::thread::sleep(StdDuration::from_nanos(time.min(patience).as_nanos()));
        };
        match pause {
            _ if patience == Duration::ZERO => {}
            // While the interface is down, its socket may stay readable, so waiting would spin.
            _ if is_down => sleep(DOWN_PAUSE),
            Some(pause) => sleep(pause),
            None => self.receive.port_mut().wait(patience),
        }
    }

    fn link(&self) -> &Impaired<LinkFlapTolerant<TransmitPort>> {
        self.transmit.port()
    }

    /// Returns the inner port halves, without tunnels and impairment.
    fn inner_halves(&mut self) -> (&mut LinkFlapTolerant<TransmitPort>, &mut ProbedPort) {
        (self.transmit.port_mut().port_mut(), self.receive.port_mut())
    }
}

/// Counters of a worker so far.
#[derive(Clone, Default)]
struct WorkerSnapshot {
    port: PortSnapshot,
    /// CPU time of the thread.
    time: Duration,
}

/// Context of a worker thread.
struct WorkerContext<'a> {
    options: &'a EmulationOptions,
    controls: &'a Controls,
    /// Whether other runs use the same interfaces.
    is_shared: bool,
    interfaces: &'a Interfaces,
    /// Index of the port among the used ports.
    index: usize,
    workload: &'a PortWorkload<'a>,
    clients: &'a Progress,
    snapshot: &'a Mutex<WorkerSnapshot>,
    intervals_max: usize,
    probe_times: &'a ProbeSchedule,
    reached_by: &'a NextHopTable,
}

impl WorkerContext<'_> {
    fn work(
        &self,
        port: DuplexPort,
        echoes: UdpProbes,
        link: &Link,
        start: Instant,
    ) -> WorkerOutcome {
        let DuplexPort { transmit, receive, choice } = port;
        // Each port has its own sequence of random numbers.
        let seed = self.options.seed.wrapping_add(self.workload.port as u64);
        let transmit =
            Impaired::new(LinkFlapTolerant::new(transmit), self.workload.impairment, seed);
        let transmit = EncapsulatingPort::new(transmit, self.workload.tunnels.clone());
        // Frames from a kernel over a veth often have no checksum yet. Packet sockets report this,
        // AF_XDP does not.
        let checksums_are_known =
            choice.backend.knows_partial_checksums || link.kind == LinkKind::Physical;
        let verifies =
            checksums_are_known || self.workload.corrupts || self.options.verify_checksums;
        let receive = ProbedPort::new(receive, echoes, verifies);
        let receive = DecapsulatingPort::new(receive, self.workload.tunnels.is_some(), verifies);
        let watch = self.interfaces.watch().into_iter().nth(self.index);
        let outage = Outage::new(watch, self.options.link_down_timeout);
        let mut open = OpenPort { transmit, receive, choice, outage, start };
        let mut endpoint = Endpoint::new(
            EndpointOptions {
                templates: self.workload.compiled.templates.clone(),
                groups: self.workload.compiled.groups.clone(),
                buffers: self.workload.compiled.buffers.clone(),
                frame_length_max: open.transmit.capabilities().untagged_length_max,
                flows_max: self.options.flows_max,
                host: Host::default(),
                seed,
                blackhole: self.workload.compiled.blackhole,
                verifies_checksums: verifies,
            },
            start,
        );
        endpoint.randomize_first_ports();
        endpoint.end_at(start.saturating_add(self.options.duration));
        if let Some(mac) = link.mac {
            let CompiledEndpoint { client_destinations: aimed_at, multicast: grouped, .. } =
                &self.workload.compiled;
            endpoint.set_addresses(
                MacAddress(mac),
                aimed_at,
                self.workload.addresses.clone(),
                grouped,
            );
        }
        if self.is_shared {
            endpoint.ignore_unmatched();
        }
        let owners = &self.workload.compiled.owners;
        endpoint.follow(self.options.watch.followed(owners));
        let templates = owners.len();
        let mut watch = FlowWatch::new(&self.options.watch, templates, self.intervals_max, start);
        let mut is_busy = self.workload.compiled.connects;
        let mut follower = LoadFollower::new(&self.controls.load, self.index);
        let mut moved = NeighbourChanges::new(self.workload.name, start);
        let (watched, follows) = (&mut watch, (&mut follower, &mut moved));
        let outcome = self.serve(&mut endpoint, &mut open, start, &mut is_busy, watched, follows);
        watch.finish(clock::now(), &endpoint);
        self.end_probes(&mut open);
        if is_busy {
            self.clients.busy.fetch_sub(1, Ordering::Relaxed);
        }
        // Frames that arrive later are not part of the run.
        let received = open.receive.received();
        self.reset_connections(&mut endpoint, &mut open);
        self.publish(&endpoint, &open, &watch);
        let transmitted = final_counters(open.inner_halves().0, outcome.is_err());
        let WorkerCounters { impairment, tunnels, outages, down, elapsed, cpu, .. } =
            open.counted(&endpoint, &watch);
        let error = outcome.err().map(|error| self.interfaces.settle(error));
        let error = error.map(|error| open.outage.explain(&error));
        let ended = WorkerOutcome {
            endpoint,
            watch,
            choice: open.choice,
            impairment,
            tunnels,
            transmitted,
            received,
            outages,
            down,
            elapsed,
            cpu,
            error,
            neighbour_changes: moved,
        };
        follower.leave(self.workload.report(&ended.counted(), Detail::All));
        ended
    }

    /// Stops all probes. The port stays open for outstanding replies, for at most
    /// [`ProbeSchedule::END_PATIENCE`].
    fn end_probes(&self, open: &mut OpenPort) {
        self.probe_times.stop();
        let until = clock::now().saturating_add(ProbeSchedule::END_PATIENCE);
        let (transmit, receive) = open.inner_halves();
        while receive.has_probes() && self.probe_times.are_busy() && clock::now() < until {
            if receive.serve_probes(transmit).is_err() {
                break;
            }
            receive.wait(PROBE_WAIT_MAX);
        }
        self.probe_times.end();
    }

    /// Resets the connections that are still open. Otherwise peers keep them for hours, and may
    /// match segments of the next run to them.
    fn reset_connections(&self, endpoint: &mut Endpoint, open: &mut OpenPort) {
        self.clients.running_ports.fetch_sub(1, Ordering::Relaxed);
        if endpoint.flows_now() == 0 {
            return;
        }
        let begin = clock::now();
        let others_until = begin.saturating_add(OTHER_PORTS_TIME_MAX);
        while self.clients.running_ports.load(Ordering::Relaxed) > 0 && clock::now() < others_until
        {
            std::thread::sleep(StdDuration::from_nanos(RESET_INTERVAL.as_nanos()));
        }
        let until = clock::now().saturating_add(RESETS_TIME_MAX);
        let mut from = Some(ResetCursor::default());
        while let Some(place) = from {
            let now = clock::now();
            if now >= until || open.is_down() {
                break;
            }
            open.transmit.port_mut().advance(now);
            from = endpoint.reset_open(place, RESETS_PER_INTERVAL, now, &mut open.transmit);
            if open.transmit.flush().is_err() {
                break;
            }
            if from.is_some() {
                std::thread::sleep(StdDuration::from_nanos(RESET_INTERVAL.as_nanos()));
            }
        }
        if let Some(place) = from {
            return endpoint.note_left_open(place, clock::now());
        }
        self.answer_challenges(endpoint, open);
    }

    /// Answers peers that send a challenge ACK after a reset, and sends the frames that an impaired
    /// link still holds.
    fn answer_challenges(&self, endpoint: &mut Endpoint, open: &mut OpenPort) {
        let begin = clock::now();
        let (mut now, mut asked_at) = (begin, begin);
        while now < begin.saturating_add(CHALLENGE_TIME_MAX)
            && (now < asked_at.saturating_add(CHALLENGE_TIME) || open.link().next().is_some())
            && !open.is_down()
        {
            open.transmit.port_mut().advance(now);
            match endpoint.answer_after_reset(&mut open.transmit, &mut open.receive) {
                Ok(0) => open.wait(now.saturating_add(RESET_INTERVAL), None, false),
                Ok(_) => asked_at = now,
                Err(_) => return,
            }
            now = clock::now();
        }
    }

    /// Runs the worker loop until all flows are over, or the time is. `is_busy` is true while the
    /// port's clients run. Calls `watched` with the endpoint before each breath.
    fn serve(
        &self,
        endpoint: &mut Endpoint,
        open: &mut OpenPort,
        start: Instant,
        is_busy: &mut bool,
        watched: &mut FlowWatch,
        (follower, moved): (&mut LoadFollower<'_>, &mut NeighbourChanges),
    ) -> Result<(), PortError> {
        let mut publish_at = start;
        // A pause would add to the round-trip times that probes measure.
        let rx_coalesce = match open.receive.port().has_probes() {
            true => Duration::ZERO,
            false => self.options.rx_coalesce,
        };
        let mut moderation = Moderation::new(rx_coalesce, start);
        // Deadline for open connections, once the load has ended.
        let mut until = None;
        loop {
            let now = clock::now();
            if let Some((numerator, denominator)) = follower.scale() {
                // If the scale is not applicable, the load stays as it is.
                let _ = endpoint.set_load_scale(numerator, denominator, now);
            }
            if let Some(off) = follower.clients_off(self.controls.is_paused()) {
                endpoint.switch_off(&off);
            }
            if let Some(tunnels) = follower.tunnels() {
                open.transmit.change(tunnels);
            }
            // Stop before the breath: it must not start flows that end without an answer.
            let is_interrupted = self.controls.is_stopped();
            if (is_interrupted || follower.has_ended()) && until.is_none() {
                endpoint.stop();
                until = Some(now.saturating_add(self.options.drain_timeout));
            }
            moved.update(self.reached_by, endpoint, now);
            open.transmit.port_mut().advance(now);
            watched.update(now, endpoint);
            let arrived = endpoint.breathe(now, &mut open.transmit, &mut open.receive)?;
            moderation.note(arrived, now);
            let (transmit, receive) = open.inner_halves();
            receive.answer(transmit)?;
            follower
                .answer(|detail| self.workload.report(&open.counted(endpoint, watched), detail));
            let is_down = open.is_down();
            if now >= publish_at || is_down {
                open.check_interface(now)?;
            }
            if now >= publish_at {
                publish_at = now.saturating_add(PUBLISH_INTERVAL);
                self.publish(endpoint, open, watched);
            }
            let late = now.saturating_since(start).saturating_sub(self.options.duration);
            let is_over = now.saturating_since(start) >= self.options.duration
                && (!endpoint.is_behind() || late >= LATE_MAX);
            if is_over && until.is_none() {
                endpoint.stop();
                until = Some(now.saturating_add(self.options.drain_timeout));
            }
            let is_done = endpoint.is_done();
            if *is_busy && is_done {
                *is_busy = false;
                self.clients.busy.fetch_sub(1, Ordering::Relaxed);
            }
            // A run without clients waits for clients of other hosts.
            let are_clients_done = self.clients.busy.load(Ordering::Relaxed) == 0;
            if self.clients.ports > 0 && are_clients_done && until.is_none() {
                until = Some(now.saturating_add(self.options.drain_timeout));
            }
            let has_time = !is_interrupted && until.is_none_or(|until| now < until);
            // A server without flows waits for busy clients, whose packets may be in flight. An
            // impaired link may still hold the last acknowledgements.
            let is_silent = is_done && are_clients_done && open.link().next().is_none();
            if !has_time || is_silent && until.is_some() {
                return Ok(());
            }
            if arrived == 0 {
                let next = endpoint.next().unwrap_or(Instant::MAX);
                let until = next.min(now.saturating_add(WAIT_MAX));
                open.wait(until, moderation.pause(endpoint.flows_now()), is_down);
            }
        }
    }

    fn publish(&self, endpoint: &Endpoint, open: &OpenPort, watched: &FlowWatch) {
        let Ok(mut snapshot) = self.snapshot.lock() else { return };
        snapshot.time = clock::thread_time();
        let snapshot = &mut snapshot.port;
        let (tcp, flows) = (endpoint.tcp(), endpoint.counters());
        snapshot.connections = ConnectionSnapshot {
            established: tcp.connects,
            active: flows.active,
            failed: flows.failed(),
            sent_bytes: tcp.sndbyte_ok,
            received_bytes: tcp.rcvbyte,
            retransmitted: tcp.sndrexmitpack,
        };
        snapshot.transmitted = open.transmit.transmitted();
        snapshot.received = open.receive.received();
        snapshot.impairment = open.link().counters();
        snapshot.sampled = watched.flows_now(&self.workload.compiled.owners);
    }
}
