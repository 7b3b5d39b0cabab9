//! Emulation in virtual time, over wires in memory.

use std::path::PathBuf;
use std::sync::Arc;

use wirestorm_base::port::Transmit;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_io::pcap::PcapTransmit;
use wirestorm_model::address_range::AddressRange;
use wirestorm_plan::emulation::EmulationPlan;
use wirestorm_plan::files::Files;
use wirestorm_sim::network::{self, FrameEvent, NetworkOptions, NodeOptions};
use wirestorm_stack::Host;
use wirestorm_stack::endpoint::{EndpointOptions, LinkHeader};
use wirestorm_wire::packet::MacAddress;

use super::compile::endpoint::compiled_endpoint;
use super::compile::sessions::sessions;
use super::error::EmulationError;
use super::observe::flow_notes::{self, DrainTime};
use super::observe::load_notes::load_notes;
use super::observe::neighbour_changes::NeighbourChanges;
use super::observe::report::{CpuTime, WorkerOutcome, achieved};
use super::observe::timeline;
use super::observe::watch::{FlowWatch, WatchOptions};
use super::resolve::destinations::ClientDestinations;
use crate::backend::Choice;
use crate::backend::MEMORY;
use crate::lifecycle::{Detail, with_verdict};
use crate::result::{
    ClockKind, GroupReport, HostFacts, Kind, PortReport, RunResult, SCHEMA, Target, Times,
};
use crate::traffic::with_port_name;

/// Options of a simulation.
#[derive(Clone, Debug)]
pub struct SimulationOptions {
    /// Directory of the plan, which relative paths in it start from.
    pub folder: PathBuf,
    /// Access to the files that the plan names.
    pub files: Arc<dyn Files>,
    /// Path of the capture files; `None` for no captures. Each port has one file, with the port's
    /// name before the extension. It contains the frames that the port sends and receives.
    pub output: Option<PathBuf>,
    /// Part of the plan to simulate.
    pub part: Part,
    /// Maximum number of flows of each template with [`Part::Full`]. A lower limit of the plan
    /// takes precedence. `None` for the limit of the plan.
    pub limit: Option<u64>,
    /// Virtual time after which no flow starts.
    pub duration: Duration,
    /// Time after `duration` in which open flows may end.
    pub drain_timeout: Duration,
    /// Interval of the time series, and the flows to sample.
    pub watch: WatchOptions,
    /// Round-trip time between two ports.
    pub round_trip: Duration,
    /// Maximum number of concurrent flows on each port.
    pub flows_max: usize,
    /// Seed of random numbers and delays.
    pub seed: u64,
}

/// Part of a plan to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One flow of each template.
    One,
    /// All flows.
    Full,
}

/// Runs the clients and servers of a plan in virtual time. Returns the result and the paths of the
/// capture files. The same plan and seed produce the same frames, except for random bytes of TLS.
///
/// # Errors
/// Fails if a template has no servers, a program or TLS setting is not valid, or a file cannot be
/// read or written.
pub fn simulate(
    plan: &EmulationPlan,
    options: &SimulationOptions,
) -> Result<(RunResult, Vec<PathBuf>), EmulationError> {
    let plan = &part(plan, options);
    let used: Vec<usize> = (0..plan.ports.len()).filter(|port| plan.uses(*port)).collect();
    let clients = clients(plan)?;
    let sessions = sessions(plan, &options.folder, &*options.files)?;
    let (mut nodes, mut owners, mut connects) = (Vec::new(), Vec::new(), Vec::new());
    for &port in &used {
        let mac = mac(port);
        let compiled = compiled_endpoint(plan, port, mac, &clients, &sessions)?;
        owners.push(compiled.owners);
        connects.push(compiled.connects);
        let endpoint = EndpointOptions {
            templates: compiled.templates,
            groups: compiled.groups,
            buffers: compiled.buffers,
            frame_length_max: network::FRAME_LENGTH_MAX,
            flows_max: options.flows_max,
            host: Host::default(),
            seed: options.seed.wrapping_add(port as u64),
            blackhole: compiled.blackhole,
            verifies_checksums: true,
        };
        let impairment = plan.ports[port].impairment;
        let followed = options.watch.followed(owners.last().map_or(&[], Vec::as_slice));
        nodes.push(NodeOptions { mac, endpoint, impairment, followed });
    }
    let mut files = Vec::new();
    for &port in options.output.iter().flat_map(|_| &used) {
        let Some(output) = &options.output else { break };
        let path = with_port_name(output, &plan.ports[port].name);
        let file = PcapTransmit::create(&path)
            .map_err(|error| EmulationError::Create { path: path.clone(), error })?;
        files.push((path, file));
    }
    let network_options = NetworkOptions {
        delay: Duration::from_nanos(options.round_trip.as_nanos() / 2),
        duration: options.duration,
        drain_timeout: options.drain_timeout,
    };
    let intervals_max = timeline::intervals_max(owners.iter().map(Vec::len).sum());
    let watch = |owners: &Vec<_>| {
        FlowWatch::new(&options.watch, owners.len(), intervals_max, Instant::ZERO)
    };
    let mut watches: Vec<FlowWatch> = owners.iter().map(watch).collect();
    let look = |node: usize, now, endpoint: &_| watches[node].update(now, endpoint);
    let see = |seen: FrameEvent<'_>| {
        let Some((_, file)) = files.get_mut(seen.node) else { return Ok(()) };
        let Some(frame) = file.take() else { return file.flush() };
        file.frame_mut(&frame)[..seen.frame.len()].copy_from_slice(seen.frame);
        file.send(frame, seen.frame.len(), seen.at);
        file.flush()
    };
    let (ended, elapsed) = network::run(nodes, &network_options, look, see)?;
    let end = Instant::ZERO.saturating_add(elapsed);
    for (watch, ended) in watches.iter_mut().zip(&ended) {
        watch.finish(end, &ended.endpoint);
    }
    // A port of servers sees a connection only when it arrives, so only ports of clients count.
    let loads = watches.iter().zip(&connects).filter(|(_, connects)| **connects);
    let load_end = loads.map(|(watch, _)| watch.load_end()).max().unwrap_or(end);
    let interval_note =
        timeline::note(options.watch.interval, watches.iter().map(|watch| &watch.timeline));
    let loads = ended.iter().zip(&owners).flat_map(|(it, owners)| load_notes(owners, &it.endpoint));
    let loads: Vec<String> = loads.collect();
    let ended = ended.into_iter().zip(watches);
    let reports = used.iter().zip(ended).zip(&owners).map(|((&port, (ended, watch)), owners)| {
        let ended = WorkerOutcome {
            endpoint: ended.endpoint,
            watch,
            choice: Choice { backend: &MEMORY, why: "simulated".into() },
            transmitted: ended.transmitted,
            received: ended.received,
            outages: 0,
            down: Duration::ZERO,
            elapsed,
            cpu: CpuTime::default(),
            impairment: ended.impairment,
            tunnels: None,
            error: None,
            neighbour_changes: NeighbourChanges::default(),
        };
        ended.counted().report(&plan.ports[port].name, "a wire in memory", owners, Detail::All)
    });
    let is_tunnelled = used.iter().any(|port| plan.ports[*port].tunnels.is_some());
    let tunnels_note = is_tunnelled
        .then(|| "a simulation ignores `tunnels` of ports: use `wirestorm emulate`".to_owned());
    let latency_note = (!plan.latency.is_empty())
        .then(|| "a simulation ignores `latency`: use `wirestorm emulate`".to_owned());
    let mut devices =
        plan.templates.iter().filter_map(|it| it.client.as_ref()).flat_map(|it| &it.devices);
    let next_hops_note = devices.any(|it| it.next_hop.is_some()).then(|| {
        "a simulation does not resolve next hops: frames go straight to the other side".to_owned()
    });
    let ports: Vec<PortReport> = reports.collect();
    let waited = match elapsed < options.duration {
        true => DrainTime::NoMoreEvents,
        false => DrainTime::Simulated {
            duration: options.duration,
            drain_timeout: options.drain_timeout,
        },
    };
    let left = flow_notes::notes(&ports, waited, options.flows_max);
    let notes = plan
        .notes
        .iter()
        .cloned()
        .chain(tunnels_note)
        .chain(latency_note)
        .chain(next_hops_note)
        .chain(interval_note)
        .chain(left)
        .chain(loads);
    let result = with_verdict(RunResult {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        kind: Kind::Emulation,
        clock: ClockKind::Virtual,
        target: Target {
            duration_s: (options.duration != Duration::MAX).then(|| options.duration.as_secs_f64()),
            seed: Some(options.seed),
            ..Target::default()
        },
        achieved: achieved(&ports, elapsed),
        times: Times {
            elapsed_s: elapsed.as_secs_f64(),
            load_duration_s: Some(load_end.saturating_since(Instant::ZERO).as_secs_f64()),
            ..Times::default()
        },
        host: HostFacts::read(),
        groups: GroupReport::of_ports(&ports),
        ports,
        notes: notes.collect(),
        ..RunResult::default()
    });
    Ok((result, files.into_iter().map(|(path, _)| path).collect()))
}

/// Returns the plan with the flow limits of the part to simulate.
fn part(plan: &EmulationPlan, options: &SimulationOptions) -> EmulationPlan {
    let mut plan = plan.clone();
    for client in plan.templates.iter_mut().filter_map(|it| it.client.as_mut()) {
        client.limit = match options.part {
            Part::One => Some(1),
            Part::Full => client.limit.into_iter().chain(options.limit).min(),
        };
    }
    plan
}

/// Returns the client addresses and the destination of each template. Frames go to the port of the
/// template's servers.
fn clients(plan: &EmulationPlan) -> Result<Vec<Option<ClientDestinations>>, EmulationError> {
    let mut clients = Vec::new();
    for template in &plan.templates {
        let Some(client) = &template.client else {
            clients.push(None);
            continue;
        };
        let of_port = plan.ports[client.transmit].addresses.first();
        let of_port = of_port.map(|it| AddressRange { first: it.address, count: 1 });
        // Clients without servers use the first template that has only servers.
        let other = plan.templates.iter().find(|it| it.client.is_none());
        let server = template.server.as_ref().or_else(|| other?.server.as_ref());
        let Some(server) = server else {
            return Err(EmulationError::NoServers { path: template.path.clone() });
        };
        let destination = client.destination.unwrap_or(mac(server.transmit));
        // Ethernet addresses do not change in a simulation.
        let next_hop = LinkHeader::FIXED;
        let devices = client.devices.iter().map(|it| (*it, next_hop)).collect();
        let reached = |addresses| ClientDestinations {
            addresses,
            destination,
            next_hop,
            devices,
            servers: Vec::new(),
        };
        clients.push(client.addresses.or(of_port).map(reached));
    }
    Ok(clients)
}

/// Returns the unique Ethernet address of a port.
fn mac(port: usize) -> MacAddress {
    MacAddress([2, 0, 0, 0, (port >> 8) as u8, (port as u8).wrapping_add(1)])
}
