//! Starting, changing and stopping the traffic of ports.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use serde_json::{Value, json};
use wirestorm_api::run::WhenLeaseEnds;
use wirestorm_control::base::rate::{Decimal, Layer};
use wirestorm_control::base::time::{Duration, Instant};
use wirestorm_control::files::AttachedFiles;
use wirestorm_control::host::Access;
use wirestorm_control::model::stream::Stream;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::replay::parse_catch_up;
use wirestorm_control::plan::traffic::{Flow, Port as PlanPort, TrafficPlan};
use wirestorm_control::plan::trex::{self, Addresses, LowerOptions, Marking};
use wirestorm_control::run::Plan;
use wirestorm_control::traffic::{SeriesOptions, StreamOptions};
use wirestorm_control::wire::packet::MacAddress;
use wirestorm_control::{Command, Delivery, FlowCommand, StartAt, Subscription};
use wirestorm_store::record::RecordKind;

use super::events::Event;
use super::groups::group_of;
use super::ownership::{identity, wait_over};
use super::parameters::{Parameters, done};
use super::port::{Owner, PortState, wrong_state};
use super::rpc::{Answer, RpcError};
use super::streams::{document, of_lowering, profile_id};
use super::tagged::tagged_flows;
use super::transmission::{Begun, Member, Transmission};
use super::{Trex, now_s};
use crate::server::{HostRequest, LoadSource, Resolved};

/// Part of the line rate that streams may request: TRex allows for rounding.
const LINE_MAX: f64 = 1.0001;
/// Least time until a synchronized start, in seconds.
const START_NOTICE_S: f64 = 0.1;
/// Longest time until a synchronized start, and longest duration that is not unlimited, in seconds.
const START_AHEAD_S_MAX: f64 = 86_400.0;
const DURATION_S_MAX: f64 = 1e9;
/// Time that a start waits until the run sends.
const START_WAIT: StdDuration = StdDuration::from_secs(2);

/// What to send from a port.
pub(super) struct Launch {
    pub(super) port: usize,
    pub(super) streams: BTreeMap<u32, Arc<Value>>,
    pub(super) multiplier: Multiplier,
    pub(super) duration: Option<Duration>,
    pub(super) start: StartAt,
    pub(super) force: bool,
}

impl Trex {
    /// Returns the options for lowering the streams of a port.
    pub(super) fn lower_options(&self, port: usize) -> LowerOptions {
        let facts = self.interfaces[port].facts();
        let destination = self.state().ports[port].layers.destination;
        LowerOptions {
            line_rate: facts.speed,
            multiplier: Multiplier::ONE,
            addresses: Addresses {
                source: facts.mac,
                destination: destination.unwrap_or(MacAddress::BROADCAST),
            },
            marking: Marking::Signature,
            cores: NonZeroU64::MIN,
        }
    }

    /// Starts a run of streams.
    pub(super) fn launch(
        self: &Arc<Self>,
        launch: Launch,
        owner: &Owner,
    ) -> Result<Arc<Transmission>, RpcError> {
        let Launch { port, streams, multiplier, duration, start, force } = launch;
        let enabled = |(_, stream): &(u32, Arc<Value>)| stream["enabled"] == true;
        let streams: BTreeMap<u32, Arc<Value>> = streams.into_iter().filter(enabled).collect();
        let options = LowerOptions { multiplier, ..self.lower_options(port) };
        let text = document(streams.iter(), true);
        let lowered = trex::lower(&text, &options).map_err(|error| of_lowering(&error))?;
        if lowered.is_empty() {
            return Err(RpcError::execution("no enabled streams that send packets"));
        }
        let load = trex::load(&text, &options).map_err(|error| of_lowering(&error))?;
        if !force {
            self.check_start(port, &streams, load.bits_l1)?;
        }
        let (flows, members) = index(&lowered, &streams);
        let tagged = tagged_flows(&lowered, &streams);
        let is_measured = !members.is_empty() || !tagged.is_empty();
        let receiver = self.receiver(port, owner).filter(|_| is_measured);
        let (plan, interfaces) = self.plan(port, receiver, lowered);
        let names = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
        let policy = parse_catch_up("bounded:100")
            .map_err(|error| RpcError::execution(error.to_string()))?;
        let stream_options = StreamOptions {
            elsewhere: None,
            interfaces: interfaces.iter().cloned().map(Some).collect(),
            backend: "auto".parse().map_err(|error| RpcError::execution(format!("{error}")))?,
            workers: 1,
            policy,
            duration: duration.unwrap_or(Duration::MAX),
            multiplier: Multiplier::ONE,
            // Who names an interface as a port of the server has allowed it.
            force_interface: true,
            is_visible: self.is_watched(port, receiver),
            per_vlan: !tagged.is_empty(),
            survives_outages: false,
            tolerance_ppm: 1e4,
            series: SeriesOptions::default(),
        };
        let has_end = duration.is_some()
            || streams.values().any(|stream| stream["mode"]["type"] != "continuous");
        let resolved = Resolved {
            load: LoadSource::Fixed,
            plan: Plan::Streams { plan: Arc::new(plan), options: stream_options },
            kind: RecordKind::Streams,
            interfaces,
            flows: names,
            source: "trex".to_owned(),
            text: None,
        };
        let request = HostRequest {
            origin: None,
            resolved,
            name: None,
            command: vec!["trex".to_owned(), "start_traffic".to_owned()],
            // Each profile of a port is a run of its own.
            access: Access::Shared,
            start: Some(start),
            when_lease_ends: WhenLeaseEnds::Continue,
        };
        let user = identity(&owner.user, owner.session);
        let run = self.server.host_run(&user, request, Arc::new(AttachedFiles::default()));
        let run = run.map_err(|error| RpcError::execution(error.message))?;
        if start == StartAt::Now {
            run.handle.wait_running(Some(START_WAIT));
        }
        let begun = Begun {
            run,
            owner: format!("{}/{}", owner.user, owner.session),
            receiver,
            streams,
            flows,
            members,
            tagged,
            options,
            bits_l1: load.bits_l1,
            has_end,
        };
        Ok(Arc::new(Transmission::new(self.interfaces[port].name.to_string(), begun)))
    }

    fn check_start(
        &self,
        port: usize,
        streams: &BTreeMap<u32, Arc<Value>>,
        bits_l1: f64,
    ) -> Result<(), RpcError> {
        let facts = self.interfaces[port].facts();
        if !facts.is_up {
            return Err(RpcError::execution("Link state is DOWN."));
        }
        let state = self.state();
        let own = &state.ports[port];
        // Bits 1 and 2 of the flags: 0 for the address of the port.
        let uses_port = |stream: &Value| stream["flags"].as_i64().unwrap_or(0) & 6 == 0;
        if own.layers.destination.is_none() && streams.values().any(|it| uses_port(it)) {
            return Err(RpcError::execution(format!(
                "Port {port} dest MAC is invalid and there are streams without explicit dest MAC."
            )));
        }
        let others: f64 = own.runs().map(|run| run.bits_l1()).sum();
        let line = facts.speed.per_second();
        check_line(bits_l1 + others, line)
    }

    /// Returns the port that measures the flows of a port: its neighbour, unless another client
    /// leases that one.
    fn receiver(&self, port: usize, owner: &Owner) -> Option<usize> {
        let other = port ^ 1;
        let interface = self.interfaces.get(other)?;
        let is_usable = match self.server.lease(&interface.name.to_string()) {
            None => true,
            Some(lease) => lease.user == owner.user && lease.session == owner.session.to_string(),
        };
        (is_usable && interface.facts().is_up).then_some(other)
    }

    /// Returns whether captures, nodes, or the port as a host need the frames that the run sends or
    /// receives.
    fn is_watched(&self, port: usize, receiver: Option<usize>) -> bool {
        let state = self.state();
        let is_service = |number: usize| state.ports[number].is_service;
        is_service(port)
            || receiver.is_some_and(is_service)
            || self.captures.watch_leaving(port)
            || receiver.is_some_and(|number| {
                self.captures.watch_arriving(number) || self.nodes.has_any(number)
            })
    }

    fn plan(
        &self,
        port: usize,
        receiver: Option<usize>,
        streams: Vec<Stream>,
    ) -> (TrafficPlan, Vec<String>) {
        let mut ports = Vec::new();
        let mut interfaces = Vec::new();
        for number in [Some(port), receiver].into_iter().flatten() {
            let interface = &self.interfaces[number];
            let speed = Some(interface.facts().speed);
            let name = interface.name.to_string();
            ports.push(PlanPort::on_interface(name.clone(), number.to_string(), speed));
            interfaces.push(name);
        }
        let receive: Vec<usize> = (1..ports.len()).collect();
        let flow = |(index, stream): (usize, Stream)| {
            Flow::from_stream(stream, 0, receive.clone(), format!("[{index}]"))
        };
        let flows = streams.into_iter().enumerate().map(flow).collect();
        (TrafficPlan { ports, flows }, interfaces)
    }

    /// Removes the runs that have ended, keeps their counters, and publishes the ends.
    pub(super) fn settle(&self) {
        let mut state = self.state();
        let state = &mut *state;
        let mut events = Vec::new();
        for number in 0..state.ports.len() {
            let is_over =
                |run: &Option<Arc<Transmission>>| run.as_ref().is_some_and(|run| run.is_over());
            let mut ended: Vec<(Option<String>, Arc<Transmission>)> = Vec::new();
            let port = &mut state.ports[number];
            for (name, profile) in &mut port.profiles {
                if is_over(&profile.run) {
                    ended.extend(profile.run.take().map(|run| (Some(name.clone()), run)));
                }
            }
            if is_over(&port.replay) {
                ended.extend(port.replay.take().map(|run| (None, run)));
            }
            if ended.is_empty() {
                continue;
            }
            let mut is_stopped = true;
            for (name, run) in ended {
                state.ports[number].sent.add(run.sent());
                state.groups.record(number, &run);
                state.tagged.record(number, &run);
                if matches!(run.run.handle.outcome(), Some(Err(_))) {
                    events.push(Event::PortError(number));
                }
                let was_stopped = run.is_stopped.load(Ordering::Relaxed);
                is_stopped &= was_stopped;
                if let Some(name) = name {
                    events.push(match was_stopped {
                        true => Event::ProfileStopped(number, name),
                        false => Event::ProfileFinished(number, name),
                    });
                }
            }
            if state.ports[number].runs().next().is_none() {
                events.push(match is_stopped {
                    true => Event::PortStopped(number),
                    false => Event::PortFinished(number),
                });
            } else if state.ports[number].state() == PortState::Paused {
                events.push(Event::PortPaused(number));
            }
            self.compare_bytes(state, number);
            if number ^ 1 < state.ports.len() {
                self.compare_bytes(state, number ^ 1);
            }
        }
        self.publish(state, events);
        self.settle_profiles(state);
    }
}

/// Checks that a load fits the line.
fn check_line(bits_l1: f64, line: f64) -> Result<(), RpcError> {
    if bits_l1 <= line * LINE_MAX {
        return Ok(());
    }
    Err(RpcError::execution(format!(
        "Expected L1 B/W: '{:.2} Gbps' exceeds port line rate: '{:.2} Gbps'",
        bits_l1 / 1e9,
        line / 1e9
    )))
}

/// Returns the flow of each stream, and the members of packet groups.
fn index(
    lowered: &[Stream],
    streams: &BTreeMap<u32, Arc<Value>>,
) -> (BTreeMap<u32, usize>, Vec<Member>) {
    let (mut flows, mut members) = (BTreeMap::new(), Vec::new());
    for (flow, stream) in lowered.iter().enumerate() {
        let Ok(id) = stream.name.parse::<u32>() else { continue };
        flows.insert(id, flow);
        if let Some((group, is_latency)) = streams.get(&id).and_then(|stream| group_of(stream)) {
            members.push(Member { flow, group, is_latency });
        }
    }
    (flows, members)
}

/// A multiplier in a request.
struct Requested<'a> {
    unit: &'a str,
    value: f64,
    operation: &'a str,
}

impl<'a> Requested<'a> {
    fn read(parameters: &Parameters<'a>) -> Result<Self, RpcError> {
        let mul = parameters.object("mul")?;
        let unit = mul.choice("type", &["raw", "bps", "bpsl1", "pps", "percentage"])?;
        let operation = mul.choice("op", &["abs", "add", "sub"])?;
        let value = mul.number("value")?;
        if value < 0.0 {
            return Err(RpcError::parameters("error at offset: 0 - 'value' has negative value."));
        }
        if value == 0.0 {
            return Err(RpcError::parameters("multiplier can't be zero"));
        }
        Ok(Self { unit, value, operation })
    }

    fn absolute(&self) -> Result<Multiplier, RpcError> {
        of_unit(self.unit, self.value)
    }
}

fn of_unit(unit: &str, value: f64) -> Result<Multiplier, RpcError> {
    Ok(match unit {
        "pps" => Multiplier::Frames(value),
        "bps" => Multiplier::Bits(value, Layer::FrameWithFcs),
        "bpsl1" => Multiplier::Bits(value, Layer::Wire),
        "percentage" => Multiplier::Percent(value),
        _ => {
            let decimal = Decimal::parse(&format!("{value:.9}"));
            let decimal = decimal.ok().filter(|decimal| decimal.digits > 0);
            let wrong = || RpcError::execution(format!("Factor must be positive, got: {value}"));
            Multiplier::Factor(decimal.ok_or_else(wrong)?)
        }
    })
}

pub(super) fn start_traffic(trex: &Arc<Trex>, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?.to_owned();
    let requested = Requested::read(parameters)?;
    if requested.operation != "abs" {
        return Err(RpcError::parameters("start message can only specify absolute speed rate"));
    }
    let multiplier = requested.absolute()?;
    let duration_s = parameters.number("duration")?;
    let force = parameters.flag_or("force", false)?;
    if parameters.u64_or("core_mask", u64::MAX)? == 0 {
        return Err(RpcError::parameters("core_mask: '0x0' for 1 cores generates an empty set"));
    }
    let start_s = parameters.number_or("start_at_ts", 0.0)?;
    let now = now_s();
    if start_s != 0.0 && start_s < now + START_NOTICE_S {
        return Err(RpcError::execution(
            "start_at_ts, if defined, should be at least 100ms from now_sec()",
        ));
    }
    if start_s > now + START_AHEAD_S_MAX {
        return Err(RpcError::execution("start_at_ts is too far ahead"));
    }
    let start = match start_s {
        0.0 => StartAt::Now,
        seconds => StartAt::Monotonic(Instant::from_nanos((seconds * 1e9) as u64)),
    };
    let is_limited = duration_s > 0.0 && duration_s < DURATION_S_MAX;
    let duration = is_limited.then(|| Duration::from_nanos((duration_s * 1e9) as u64));
    let owner = trex.owner(port).ok_or_else(|| RpcError::execution("the port has no owner"))?;
    let streams = {
        let mut state = trex.state();
        let port_of_state = &mut state.ports[port];
        if port_of_state.replay.is_some() {
            return Err(RpcError::execution(format!(
                "start_traffici: port({port}) can't execute on PORT_STATE_PCAP_TX"
            )));
        }
        let profile = port_of_state.profile_mut(&name)?;
        if profile.state() != PortState::Streams {
            return Err(wrong_state("start", profile.state(), &name));
        }
        if profile.is_starting {
            return Err(RpcError::execution("Interface is in the middle of configuration"));
        }
        profile.is_starting = true;
        profile.streams.clone()
    };
    trex.begin_comparing(port);
    let launch = Launch { port, streams, multiplier, duration, start, force };
    let launched = trex.launch(launch, &owner);
    {
        let mut state = trex.state();
        let was = state.ports[port].state();
        let Ok(profile) = state.ports[port].profile_mut(&name) else {
            return Err(RpcError::execution("the profile was removed"));
        };
        profile.is_starting = false;
        profile.run = Some(launched?);
        let started = [Event::ProfileStarted(port, name)];
        let port_started = (was <= PortState::Streams).then_some(Event::PortStarted(port));
        let resumed = (was == PortState::Paused).then_some(Event::PortResumed(port));
        trex.publish(&mut state, started.into_iter().chain(port_started).chain(resumed));
    }
    // A short run may have ended by now.
    trex.settle();
    let factor = if requested.unit == "raw" { requested.value } else { 1.0 };
    Ok(json!({"multiplier": factor, "ts": now}))
}

pub(super) fn stop_traffic(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let runs: Vec<Arc<Transmission>> = {
        let state = trex.state();
        let port = &state.ports[port];
        if name != "*" {
            port.profile(name)?;
        }
        let profiles = port.selected(name).into_iter();
        let runs = profiles.filter_map(|name| port.profiles.get(&name)?.run.clone());
        runs.chain(port.replay.clone()).collect()
    };
    runs.iter().for_each(|run| run.stop());
    wait_over(&runs);
    trex.settle();
    done()
}

/// Returns the runs of the profiles that a request names, which must be in one of these states.
fn runs_in(
    trex: &Trex,
    port: usize,
    name: &str,
    command: &str,
    states: &[PortState],
) -> Result<Vec<(String, Arc<Transmission>)>, RpcError> {
    let state = trex.state();
    let port = &state.ports[port];
    let mut runs = Vec::new();
    for profile_name in port.selected(name) {
        let profile = port.profile(&profile_name)?;
        match &profile.run {
            Some(run) if states.contains(&profile.state()) => {
                runs.push((profile_name, Arc::clone(run)));
            }
            _ if name == "*" => {}
            _ => return Err(wrong_state(command, profile.state(), &profile_name)),
        }
    }
    Ok(runs)
}

fn check_pausable(run: &Transmission) -> Result<(), RpcError> {
    if run.streams.values().any(|stream| stream["mode"]["type"] != "continuous") {
        let text = " pause is supported when all streams are in continues mode ";
        return Err(RpcError::execution(text));
    }
    if run.has_end {
        let text = " pause is supported when duration is not enable is start command ";
        return Err(RpcError::execution(text));
    }
    Ok(())
}

/// Sends a command to a run. A run that has just ended has nothing to change.
fn command(run: &Transmission, command: Command) -> Result<(), RpcError> {
    match run.run.handle.command(command) {
        Ok(()) | Err(wirestorm_control::CommandError::Over { .. }) => Ok(()),
        Err(error) => Err(RpcError::execution(error.to_string())),
    }
}

/// Waits until the counters include all frames from before a command to single streams: clients
/// compare counters around it.
fn wait_for_effect(run: &Transmission, snapshots: &Subscription) {
    /// Time until a command takes effect, and the longest time until the counters show it.
    const EFFECT: StdDuration = StdDuration::from_millis(30);
    const COUNTERS: StdDuration = StdDuration::from_millis(300);
    let given = StdInstant::now();
    while given.elapsed() < COUNTERS && !run.is_over() {
        if snapshots.next_within(COUNTERS).is_some() && given.elapsed() >= EFFECT {
            return;
        }
    }
}

pub(super) fn pause_traffic(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let runs = runs_in(trex, port, name, "pause", &[PortState::Transmitting])?;
    runs.iter().try_for_each(|(_, run)| check_pausable(run))?;
    for (name, run) in runs {
        command(&run, Command::Pause)?;
        run.is_paused.store(true, Ordering::Relaxed);
        let mut state = trex.state();
        let paused = state.ports[port].state() == PortState::Paused;
        let events = [Event::ProfilePaused(port, name)];
        trex.publish(
            &mut state,
            events.into_iter().chain(paused.then_some(Event::PortPaused(port))),
        );
    }
    done()
}

pub(super) fn resume_traffic(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    for (name, run) in runs_in(trex, port, name, "resume", &[PortState::Paused])? {
        command(&run, Command::Resume)?;
        let mut state = trex.state();
        let was_paused = state.ports[port].state() == PortState::Paused;
        run.is_paused.store(false, Ordering::Relaxed);
        let events = [Event::ProfileResumed(port, name)];
        trex.publish(
            &mut state,
            events.into_iter().chain(was_paused.then_some(Event::PortResumed(port))),
        );
    }
    done()
}

/// States in which streams and rates can change.
const SENDING: [PortState; 2] = [PortState::Transmitting, PortState::Paused];

/// Returns a run with the flows of the streams that a request names.
fn chosen_flows(
    trex: &Trex,
    parameters: &Parameters<'_>,
    command: &str,
    verb: &str,
) -> Result<(Arc<Transmission>, Vec<u32>), RpcError> {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let ids = parameters.u32s("stream_ids")?;
    if ids.is_empty() {
        return Err(RpcError::parameters(format!("please specify streams to {verb}")));
    }
    let runs = runs_in(trex, port, name, command, &SENDING)?;
    let Some((name, run)) = runs.into_iter().next() else {
        return Err(wrong_state(command, PortState::Streams, name));
    };
    if let Some(unknown) = ids.iter().find(|id| !run.streams.contains_key(id)) {
        return Err(RpcError::execution(format!(
            "{command}: stream {unknown} does not exists in profile_id({name})"
        )));
    }
    Ok((run, ids))
}

fn switch_streams(
    trex: &Trex,
    parameters: &Parameters<'_>,
    name: &str,
    verb: &str,
    flow_command: FlowCommand,
) -> Answer {
    let (run, ids) = chosen_flows(trex, parameters, name, verb)?;
    check_pausable(&run)?;
    let flows = ids.iter().filter_map(|id| run.flows.get(id).copied()).collect();
    let snapshots = run.run.handle.subscribe(Delivery::Latest);
    command(&run, Command::Flows { flows, command: flow_command })?;
    wait_for_effect(&run, &snapshots);
    done()
}

pub(super) fn pause_streams(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    switch_streams(trex, parameters, "pause_streams", "pause", FlowCommand::Pause)
}

pub(super) fn resume_streams(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    switch_streams(trex, parameters, "resume_streams", "resume", FlowCommand::Resume)
}

pub(super) fn update_traffic(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let requested = Requested::read(parameters)?;
    let force = parameters.flag("force")?;
    for (_, run) in runs_in(trex, port, name, "update", &SENDING)? {
        let multiplier = changed(&requested, &run)?;
        let load = update(trex, port, &run, multiplier, None, force)?;
        run.set_rate(multiplier, load);
    }
    Ok(json!({"multiplier": requested.value}))
}

pub(super) fn update_streams(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let requested = Requested::read(parameters)?;
    let force = parameters.flag("force")?;
    let (run, ids) = chosen_flows(trex, parameters, "update_streams", "update")?;
    if requested.operation != "abs" {
        return Err(RpcError::parameters("Must use absolute multiplier for updating stream"));
    }
    let port = trex.port_id(parameters)?;
    let snapshots = run.run.handle.subscribe(Delivery::Latest);
    for id in ids {
        update(trex, port, &run, requested.absolute()?, Some(id), force)?;
    }
    wait_for_effect(&run, &snapshots);
    Ok(json!({"multiplier": requested.value}))
}

/// Returns the multiplier that a request asks for.
fn changed(requested: &Requested<'_>, run: &Transmission) -> Result<Multiplier, RpcError> {
    let sign = match requested.operation {
        "add" => 1.0,
        "sub" => -1.0,
        _ => return requested.absolute(),
    };
    let text = document(run.streams.iter(), true);
    let options = LowerOptions { multiplier: run.multiplier(), ..run.options };
    let load = trex::load(&text, &options).map_err(|error| of_lowering(&error))?;
    let change = sign * requested.value;
    let (unit, value) = match requested.unit {
        "percentage" => ("pps", load.frames * (1.0 + change / 100.0)),
        "pps" => ("pps", load.frames + change),
        "bps" => ("bps", load.bits_l2 + change),
        "bpsl1" => ("bpsl1", load.bits_l1 + change),
        _ => {
            let one = LowerOptions { multiplier: Multiplier::ONE, ..run.options };
            let one = trex::load(&text, &one).map_err(|error| of_lowering(&error))?;
            ("raw", load.frames / one.frames.max(f64::MIN_POSITIVE) + change)
        }
    };
    if value <= 0.0 {
        return Err(RpcError::execution("Update request will lower traffic to less than zero"));
    }
    of_unit(unit, value)
}

/// Changes the rates of a run, or of one of its streams. Returns the load in bit/s at layer 1.
fn update(
    trex: &Trex,
    port: usize,
    run: &Arc<Transmission>,
    multiplier: Multiplier,
    stream: Option<u32>,
    force: bool,
) -> Result<f64, RpcError> {
    let chosen = run.streams.iter().filter(|(id, _)| stream.is_none_or(|it| it == **id));
    let text = document(chosen, stream.is_none());
    let options = LowerOptions { multiplier, ..run.options };
    let load = trex::load(&text, &options).map_err(|error| of_lowering(&error))?.bits_l1;
    if !force {
        let state = trex.state();
        let others = state.ports[port].runs().filter(|other| !Arc::ptr_eq(other, run));
        let others: f64 = others.map(|other| other.bits_l1()).sum();
        check_line(load + others, options.line_rate.per_second())?;
    }
    for stream in trex::lower(&text, &options).map_err(|error| of_lowering(&error))? {
        let id = stream.name.parse().unwrap_or_default();
        let Some(flow) = run.flows.get(&id) else { continue };
        let speed = FlowCommand::SetSpeed(stream.transmission.speed);
        command(run, Command::Flows { flows: vec![*flow], command: speed })?;
    }
    Ok(load)
}

pub(super) fn remove_rx_filters(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    let name = profile_id(parameters)?;
    let state = trex.state();
    for name in state.ports[port].selected(name) {
        let found = state.ports[port].profile(&name)?.state();
        if found > PortState::Streams {
            return Err(wrong_state("remove_rx_filters", found, &name));
        }
    }
    // Groups count as long as their streams run, and keep their counters.
    done()
}
