//! Starting, changing and stopping profiles.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use serde_json::Value;
use wirestorm_api::run::WhenLeaseEnds;
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{EmulationOptions, FlowChoice, WatchOptions};
use wirestorm_control::files::AttachedFiles;
use wirestorm_control::host::Access;
use wirestorm_control::plan::emulation::{Devices, EmulationPlan, MplsLabels};
use wirestorm_control::plan::trex::stateful::{self, StatefulOptions};
use wirestorm_control::run::Plan;
use wirestorm_control::{Command, CommandError, LoadFactor, StartAt};
use wirestorm_store::record::RecordKind;

use super::super::ownership::{END_WAIT, identity};
use super::super::parameters::Parameters;
use super::super::port::{DEFAULT_PROFILE, Layers, Owner, Sent};
use super::super::rpc::{Answer, RpcError};
use super::super::{State, Trex};
use super::profiles::check_state;
use super::{LatencyPlan, ProfileState, RunTunnels, counts_of, profile_name};
use crate::server::{HostRequest, HostedRun, LoadSource, Resolved};

/// Maximum number of flows of a port.
const FLOWS_MAX: usize = 16_000_000;
/// Maximum receive delay under load.
const RX_COALESCE: Duration = Duration::from_micros(50);
/// Interval of the time series.
const INTERVAL: Duration = Duration::from_secs(1);
/// Least interval of the samples of single connections.
const DUMP_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Interval of checks whether a flow is established.
const ESTABLISH_POLL: StdDuration = StdDuration::from_millis(20);
/// Range of multipliers.
const MULTIPLIERS: std::ops::Range<f64> = 1e-9..4_294_967_296.0;

/// A running profile.
pub(in super::super) struct StatefulRun {
    /// Number of the run, for its rates.
    pub(super) number: u32,
    pub(super) run: Arc<HostedRun>,
    /// Multiplier at the start.
    multiplier: f64,
    /// First and last IPv4 address of each range of clients.
    pub(super) clients: Vec<(u32, u32)>,
    is_stopped: AtomicBool,
    /// Tunnels of the clients; `None` if it started without tunnel mode.
    pub(super) tunnels: Option<RunTunnels>,
    /// Interval of the samples of single connections in seconds; `None` without samples.
    pub(super) dump_interval_s: Option<f64>,
}

/// Parameters of a start.
struct Start {
    multiplier: f64,
    duration: Option<Duration>,
    drain: Option<Duration>,
    is_ipv6: bool,
    client_mask: u32,
    latency_pps: u32,
    /// Time within which a flow must be established.
    establish: Option<Duration>,
    /// Interval of the samples of single connections.
    dump_interval: Option<Duration>,
}

impl Start {
    fn read(parameters: &Parameters<'_>) -> Result<Self, RpcError> {
        let duration_s = parameters.number("duration")?;
        let multiplier = parameters.number("mult")?;
        let is_cut = parameters.flag("nc")?;
        let latency_pps = parameters.u32("latency_pps")?;
        let is_ipv6 = parameters.flag("ipv6")?;
        let client_mask = parameters.u32("client_mask")?;
        let end_s = parameters.number_or("t_duration", 0.0)?;
        let establish_s = parameters.number_or("e_duration", 0.0)?;
        let dump_s = parameters.number_or("dump_interval", 0.0)?;
        if !MULTIPLIERS.contains(&multiplier) {
            return Err(RpcError::execution(format!("invalid multiplier: {multiplier}")));
        }
        let time =
            |seconds: f64| (seconds > 0.0).then(|| Duration::from_nanos((seconds * 1e9) as u64));
        // As in TRex: without a duration, the total time cuts flows off.
        let (duration, drain) = match (time(duration_s), time(end_s)) {
            (None, Some(end)) => (Some(end), Some(Duration::ZERO)),
            (duration, _) if is_cut => (duration, Some(Duration::ZERO)),
            (duration, end) => (duration, end),
        };
        Ok(Self {
            multiplier,
            duration,
            drain,
            is_ipv6,
            client_mask,
            latency_pps,
            establish: time(establish_s),
            dump_interval: time(dump_s).map(|interval| interval.max(DUMP_INTERVAL_MIN)),
        })
    }
}

pub(in super::super) fn start(trex: &Arc<Trex>, parameters: &Parameters<'_>) -> Answer {
    let owner = trex.context(parameters)?;
    let name = profile_name(parameters)?.to_owned();
    let start = Start::read(parameters)?;
    {
        let mut state = trex.state();
        check_state(state.astf.profile_mut(&name)?, &[ProfileState::Loaded])?;
        trex.enter(&mut state, &name, ProfileState::Parse, None);
    }
    let trex_of_thread = Arc::clone(trex);
    let name_of_thread = name.clone();
    let begin = move || trex_of_thread.begin(&name_of_thread, &start, &owner);
    let spawned = std::thread::Builder::new().name("trex-start".to_owned()).spawn(begin);
    if let Err(error) = spawned {
        let text = format!("cannot start a thread: {error}");
        trex.enter(&mut trex.state(), &name, ProfileState::Loaded, Some(text.clone()));
        return Err(RpcError::execution(text));
    }
    Ok(Value::Null)
}

impl Trex {
    /// Parses and starts a profile. Runs on a thread of its own.
    fn begin(self: &Arc<Self>, name: &str, start: &Start, owner: &Owner) {
        let outcome = self.parse(name, start).and_then(|(plan, groups)| {
            {
                let mut state = self.state();
                if let Ok(profile) = state.astf.profile_mut(name) {
                    profile.groups = groups;
                }
                self.enter(&mut state, name, ProfileState::Build, None);
            }
            let run = self.run_plan(name, plan, start, owner)?;
            match self.start_latency_of(name, start) {
                Ok(()) => Ok(run),
                Err(error) => {
                    run.run.stop(None);
                    run.run.handle.wait_over(Some(END_WAIT));
                    Err(error)
                }
            }
        });
        let mut state = self.state();
        let state = &mut *state;
        match outcome {
            Ok(run) => {
                let others = state.astf.profiles.values();
                if others.into_iter().all(|it| it.state != ProfileState::Transmit) {
                    // The first profile restarts the totals.
                    state.astf.ended = Default::default();
                    state.astf.epoch += 1;
                }
                state.astf.next_run += 1;
                let number = state.astf.next_run;
                if let Ok(profile) = state.astf.profile_mut(name) {
                    let run = Arc::new(StatefulRun { number, ..run });
                    profile.epoch += 1;
                    profile.counts = None;
                    profile.last = Some(Arc::clone(&run));
                    profile.run = Some(Arc::clone(&run));
                    if let Some(time) = start.establish {
                        stop_unless_established(run, time);
                    }
                }
                self.enter(state, name, ProfileState::Transmit, None);
            }
            Err(error) => {
                if state.astf.profile(name).is_ok_and(|it| it.state == ProfileState::Build) {
                    self.enter(state, name, ProfileState::Cleanup, None);
                }
                self.enter(state, name, ProfileState::Loaded, Some(error));
            }
        }
    }

    /// Starts the latency traffic of a profile, unless there is latency traffic already.
    fn start_latency_of(&self, name: &str, start: &Start) -> Result<(), String> {
        if start.latency_pps == 0 || self.has_latency() {
            return Ok(());
        }
        let text = match self.state().astf.profile(name) {
            Ok(profile) => Arc::clone(&profile.text),
            Err(_) => return Ok(()),
        };
        let document: Value = serde_json::from_str(&text).unwrap_or_default();
        let plan = LatencyPlan::of_profile(&document, start.latency_pps.into())?;
        self.start_latency(&plan, Some(name))
    }

    fn parse(&self, name: &str, start: &Start) -> Result<(EmulationPlan, Arc<[String]>), String> {
        let text = match self.state().astf.profile(name) {
            Ok(profile) => Arc::clone(&profile.text),
            Err(_) => return Err("the profile was removed".to_owned()),
        };
        let pairs = u32::try_from(self.interfaces.len().div_ceil(2)).unwrap_or(u32::MAX);
        let options = StatefulOptions { ipv6: start.is_ipv6, pairs };
        let plan = stateful::read(&text, &options).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(|error| error.to_string()).collect();
            format!("Profile parsing error: {}", errors.join("; "))
        });
        let document: Value = serde_json::from_str(&text).unwrap_or_default();
        let groups = document["tg_names"].as_array().into_iter().flatten();
        let groups = groups.filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Ok((plan?, groups))
    }

    fn run_plan(
        self: &Arc<Self>,
        name: &str,
        mut plan: EmulationPlan,
        start: &Start,
        owner: &Owner,
    ) -> Result<StatefulRun, String> {
        let interfaces: Vec<String> =
            self.interfaces.iter().map(|interface| interface.name.to_string()).collect();
        let (layers, gateways, ignores, is_measured) = {
            let state = self.state();
            let layers: Vec<Layers> = state.ports.iter().map(|port| port.layers.clone()).collect();
            let ignores = state.astf.ignored.iter().any(|list| !list.is_empty());
            // The packets of latency traffic are in the tunnels of the run.
            let is_measured = state.astf.tunnels.has_latency_clients();
            (layers, state.astf.topology.gateways(), ignores, is_measured)
        };
        let count = interfaces.len();
        for (port, interface) in plan.ports.iter_mut().zip(&interfaces) {
            port.location = Some(interface.clone());
        }
        for template in &mut plan.templates {
            let mask = |port: usize| start.client_mask.checked_shr(port as u32 & !1).unwrap_or(0);
            template.client.take_if(|it| it.transmit >= count || mask(it.transmit) & 1 == 0);
            template.server.take_if(|it| it.transmit >= count);
            if let Some(client) = &mut template.client {
                let layers = layers.get(client.transmit).cloned().unwrap_or_default();
                client.destination = layers.destination;
                gateways.apply(client, &layers);
                if let (Some(clients), Some(vlan)) = (client.addresses, layers.vlans.first()) {
                    client.devices.push(Devices {
                        clients,
                        stride: 1,
                        count: 1,
                        vlan: Some((*vlan).into()),
                        labels: MplsLabels::default(),
                        destination: None,
                        source: None,
                        next_hop: None,
                    });
                }
            }
        }
        plan.templates.retain(|it| it.client.is_some() || it.server.is_some());
        let ranges = plan.templates.iter().filter_map(|it| it.client.as_ref()?.addresses);
        let mut clients: Vec<(u32, u32)> = ranges
            .filter_map(|range| match range.first {
                std::net::IpAddr::V4(first) => {
                    let first = first.to_bits();
                    Some((first, first.saturating_add(range.count.saturating_sub(1))))
                }
                std::net::IpAddr::V6(_) => None,
            })
            .collect();
        clients.sort_unstable();
        clients.dedup();
        let factor = Decimal::parse(&format!("{:.9}", start.multiplier))
            .map_err(|error| format!("multiplier: {error}"))?;
        plan.multiply(factor).map_err(|error| error.to_string())?;
        let (tunnels, inactive) = {
            let state = self.state();
            let tunnels = state.astf.tunnels.apply(&mut plan);
            let inactive = tunnels.as_ref().map(|tunnels| state.astf.tunnels.inactive(tunnels));
            (tunnels, inactive.unwrap_or_default())
        };
        // A run that shares its ports answers no packet of other hosts, as with ignored addresses.
        let is_shared = name != DEFAULT_PROFILE || ignores || is_measured || self.shares_ports();
        let backend = if is_shared { "af_packet" } else { "auto" };
        let options = EmulationOptions {
            interfaces: vec![None; plan.ports.len()],
            folder: PathBuf::new(),
            backend: backend.parse().map_err(|error| format!("{error}"))?,
            duration: start.duration.unwrap_or(Duration::MAX),
            drain_timeout: start.drain.unwrap_or(Duration::MAX),
            drain_timeout_flag: None,
            link_down_timeout: EmulationOptions::LINK_DOWN_TIMEOUT,
            rx_coalesce: RX_COALESCE,
            watch: WatchOptions {
                interval: start.dump_interval.unwrap_or(INTERVAL),
                flows: FlowChoice {
                    count: usize::from(start.dump_interval.is_some()),
                    ..FlowChoice::default()
                },
            },
            flows_max: FLOWS_MAX,
            seed: EmulationOptions::random_seed(),
            // Who names an interface as a port of the server has allowed it.
            force_interface: true,
            verify_checksums: false,
            is_visible: is_shared,
        };
        let resolved = Resolved {
            load: LoadSource::Fixed,
            plan: Plan::Emulation { plan: Arc::new(plan), options },
            kind: RecordKind::Emulation,
            interfaces,
            flows: Arc::default(),
            source: "trex".to_owned(),
            text: None,
        };
        let request = HostRequest {
            origin: None,
            resolved,
            name: None,
            command: vec!["trex".to_owned(), "start".to_owned()],
            access: if is_shared { Access::Shared } else { Access::ByBackend },
            start: None,
            when_lease_ends: WhenLeaseEnds::Continue,
        };
        let user = identity(&owner.user, owner.session);
        let run = self.server.host_run(&user, request, Arc::new(AttachedFiles::default()));
        let run = run.map_err(|error| error.message)?;
        if !inactive.is_empty() {
            // Before the start, so that none of them sends.
            let command = Command::Clients { ranges: inactive, on: false };
            match run.handle.command(command) {
                // A run that is over has an error of its own.
                Ok(()) | Err(CommandError::Over { .. }) => {}
                Err(error) => {
                    run.stop(None);
                    return Err(error.to_string());
                }
            }
        }
        run.handle.start(StartAt::Now);
        run.handle.wait_running(None);
        if let Some(Err(error)) = run.handle.outcome() {
            return Err(error.to_string());
        }
        Ok(StatefulRun {
            number: 0,
            run,
            multiplier: start.multiplier,
            clients,
            is_stopped: AtomicBool::new(false),
            tunnels,
            dump_interval_s: start.dump_interval.map(Duration::as_secs_f64),
        })
    }

    /// Returns whether several runs use the ports, or captures or nodes need their frames. Profiles with names
    /// of their own always share the ports: who names one has others.
    fn shares_ports(&self) -> bool {
        let state = self.state();
        let loaded = state.astf.profiles.values();
        loaded.filter(|profile| profile.state != ProfileState::Idle).count() > 1
            || state.ports.iter().any(|port| port.is_service || port.runs().next().is_some())
            || (0..state.ports.len()).any(|port| {
                self.captures.watch_leaving(port)
                    || self.captures.watch_arriving(port)
                    || self.nodes.has_any(port)
            })
    }

    /// Stops all profiles and waits for their ends.
    pub(super) fn stop_all(&self) {
        let runs: Vec<Arc<StatefulRun>> = {
            let state = self.state();
            state.astf.profiles.values().filter_map(|profile| profile.run.clone()).collect()
        };
        runs.iter().for_each(|run| run.run.stop(None));
        let deadline = std::time::Instant::now() + END_WAIT;
        for run in runs {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            run.run.handle.wait_over(Some(left));
        }
        self.settle_profiles(&mut self.state());
    }

    /// Ends the profiles whose runs are over.
    pub(in super::super) fn settle_profiles(&self, state: &mut State) {
        let over: BTreeMap<String, Arc<StatefulRun>> = state
            .astf
            .profiles
            .iter()
            .filter_map(|(name, profile)| Some((name.clone(), profile.run.clone()?)))
            .filter(|(_, run)| run.run.handle.outcome().is_some())
            .collect();
        for (name, run) in over {
            let counts = counts_of(&run, None);
            for (total, counts) in state.astf.ended.iter_mut().zip(&counts) {
                total.add(counts);
            }
            for (number, interface) in self.interfaces.iter().enumerate() {
                state.ports[number].sent.add(sent(&run, &interface.name.to_string()));
            }
            let error = match run.run.handle.outcome() {
                Some(Err(error)) => Some(error.to_string()),
                _ => None,
            };
            state.astf.latency.end_with(&name);
            let Ok(profile) = state.astf.profile_mut(&name) else { continue };
            profile.run = None;
            profile.counts = Some(counts);
            if profile.state != ProfileState::Cleanup {
                self.enter(state, &name, ProfileState::Cleanup, None);
            }
            self.enter(state, &name, ProfileState::Loaded, error);
        }
    }
}

/// Stops a run if none of its flows is established within a time. Returns at once.
fn stop_unless_established(run: Arc<StatefulRun>, time: Duration) {
    let end = std::time::Instant::now() + StdDuration::from_nanos(time.as_nanos());
    let watch = move || {
        while run.run.handle.outcome().is_none() {
            let [clients, servers] = counts_of(&run, None);
            if clients.has_established() || servers.has_established() {
                return;
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                run.run.stop(None);
                return;
            }
            std::thread::sleep(left.min(ESTABLISH_POLL));
        }
    };
    // Without a thread, the run goes on.
    let _ = std::thread::Builder::new().name("trex-establish".to_owned()).spawn(watch);
}

/// Returns what a run has sent from an interface.
pub(in super::super) fn sent(run: &StatefulRun, interface: &str) -> Sent {
    if let Some(result) = run.run.result() {
        let port = result.ports.iter().find(|port| port.interface == interface);
        let tx = port.and_then(|port| port.tx.as_ref());
        return tx.map_or_else(Sent::default, |tx| Sent {
            frames: tx.packets,
            bytes: tx.bytes,
            failed: tx.failed,
        });
    }
    let snapshot = run.run.handle.latest();
    let port =
        snapshot.as_ref().and_then(|it| it.ports.iter().find(|it| it.interface == interface));
    port.map_or_else(Sent::default, |port| Sent {
        frames: port.transmitted.sent,
        bytes: port.transmitted.sent_bytes,
        failed: port.transmitted.failed,
    })
}

pub(in super::super) fn stop(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    /// Time for which the request waits, so that most runs have ended with its answer.
    const WAIT: StdDuration = StdDuration::from_millis(200);
    trex.context(parameters)?;
    let name = profile_name(parameters)?;
    let run = {
        let mut state = trex.state();
        let profile = state.astf.profile_mut(name)?;
        let Some(run) = profile.run.clone().filter(|_| profile.state == ProfileState::Transmit)
        else {
            return Ok(Value::Null);
        };
        run.is_stopped.store(true, Ordering::Relaxed);
        trex.enter(&mut state, name, ProfileState::Cleanup, None);
        run
    };
    run.run.stop(None);
    run.run.handle.wait_over(Some(WAIT));
    trex.settle();
    Ok(Value::Null)
}

pub(in super::super) fn update(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let name = profile_name(parameters)?;
    let multiplier = parameters.number("mult")?;
    let run = {
        let mut state = trex.state();
        let profile = state.astf.profile_mut(name)?;
        check_state(profile, &[ProfileState::Transmit])?;
        profile.run.clone()
    };
    let Some(run) = run else { return Ok(Value::Null) };
    let ratio = multiplier / run.multiplier;
    let factor = MULTIPLIERS.contains(&ratio).then(|| Decimal::parse(&format!("{ratio:.9}")));
    let factor = factor
        .and_then(Result::ok)
        .and_then(LoadFactor::new)
        .ok_or_else(|| RpcError::execution("Ratio between current rate and new one is invalid."))?;
    match run.run.handle.command(Command::ScaleLoad(factor)) {
        Ok(()) | Err(wirestorm_control::CommandError::Over { .. }) => Ok(Value::Null),
        Err(error) => Err(RpcError::execution(error.to_string())),
    }
}
