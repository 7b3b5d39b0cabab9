//! Runs of flows.
//!
//! Each start of flows is a run of its own, on ports that the runs share. So each start clears the
//! counters of the flows that it starts, and of no others.

mod counters;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestorm_api::run::WhenLeaseEnds;
use wirestorm_control::backend::Backend;
use wirestorm_control::base::departure::DeparturePolicy;
use wirestorm_control::base::time::Duration as RunDuration;
use wirestorm_control::files::AttachedFiles;
use wirestorm_control::host::Access;
use wirestorm_control::model::stream::{Member, Mode};
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::traffic::{Flow, TrafficPlan};
use wirestorm_control::run::Plan;
use wirestorm_control::traffic::{SeriesOptions, StreamOptions};
use wirestorm_control::{Command, CommandError, FlowCommand, RunState, Snapshot, StartAt};
use wirestorm_otg::Lowered;
use wirestorm_store::record::RecordKind;

use super::error::OtgError;
use super::sent_values::SentValues;
use super::tagged::TagSamples;
use crate::server::{HostRequest, HostedRun, Identity, LoadSource, Resolved, Server};

/// Time that a stop waits for the end of its runs.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Runs of the flows of a configuration.
pub(super) struct Traffic {
    /// Runs of the current generation: a start while none is active begins the next one.
    runs: Vec<FlowRun>,
    /// The run of each flow, and its streams there; `None` if it never started.
    flows: Vec<Option<Started>>,
}

/// A run of some flows.
struct FlowRun {
    run: Arc<HostedRun>,
    /// Snapshots for rates: the earlier one, the one that replaces it next, and the latest.
    samples: [(Instant, Arc<Snapshot>); 3],
}

/// A flow that started.
struct Started {
    /// Index of its run.
    run: usize,
    streams: Vec<StartedStream>,
    /// Values of the tags of each stream, where the tags are those of the sent frames.
    sent_values: Vec<Option<SentValues>>,
    tag_samples: RefCell<TagSamples>,
    is_paused: bool,
    is_stopped: bool,
}

/// A stream that started.
#[derive(Clone, Copy)]
struct StartedStream {
    /// Index in the plan of the run.
    place: usize,
    /// Index in the streams of its flow.
    index: usize,
    /// Part of the flow. The streams of a part share its frames.
    part: usize,
    /// When the part ends by itself.
    end: End,
}

/// What a start of flows needs.
pub(super) struct RunHost<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) user: &'a Identity,
    /// Interface of each port.
    pub(super) interfaces: &'a [String],
    /// Ports that are down, or out of their link aggregation groups.
    pub(super) out: BTreeSet<usize>,
}

/// When a stream ends by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Never,
    /// After a number of frames.
    Frames(u64),
    /// After a time since the start.
    Time(RunDuration),
}

/// State of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowState {
    Started,
    Stopped,
    Paused,
}

type Answer<T> = Result<T, OtgError>;

impl Traffic {
    pub(super) fn new(flows: usize) -> Self {
        Self { runs: Vec::new(), flows: (0..flows).map(|_| None).collect() }
    }

    /// Starts flows from their beginning. Those that send already start again.
    ///
    /// # Errors
    /// The run is refused.
    pub(super) fn start(
        &mut self,
        host: &RunHost<'_>,
        lowered: &Lowered,
        flows: &BTreeSet<usize>,
    ) -> Answer<()> {
        self.stop(flows);
        if self.runs.iter().all(|it| it.run.is_over()) {
            self.runs.clear();
            self.flows.iter_mut().for_each(|flow| *flow = None);
        }
        if flows.is_empty() {
            return Ok(());
        }
        let mut plan = TrafficPlan {
            ports: lowered.plan.ports.clone(),
            flows: Vec::with_capacity(flows.len()),
        };
        let mut started = Vec::with_capacity(flows.len());
        for &flow in flows {
            let (mut streams, mut sent_values) = (Vec::new(), Vec::new());
            let settings = &lowered.flows[flow];
            for (index, stream) in settings.streams.iter().enumerate() {
                let mut planned = lowered.plan.flows[stream.planned].clone();
                if let Some(member) = &mut planned.stream.member {
                    member.active &= active_members(lowered, member.group, &host.out);
                }
                if host.out.contains(&planned.tx_port) {
                    if planned.stream.member.is_some() {
                        continue;
                    }
                    let port = &lowered.ports[planned.tx_port].name;
                    let message = format!("flow {}: port {port} is down", settings.name);
                    return Err(OtgError::invalid(message));
                }
                planned.rx_ports.retain(|port| !host.out.contains(port));
                let (place, end) = (plan.flows.len(), End::of(&planned));
                streams.push(StartedStream { place, index, part: stream.part, end });
                // Devices may change the bits of received frames.
                let has_sent_tags = settings.egress_tags.is_empty();
                let values =
                    has_sent_tags.then(|| SentValues::of(&planned.stream, &planned.counted_bits));
                sent_values.push(values.flatten());
                plan.flows.push(planned);
            }
            if streams.is_empty() {
                let message = format!("flow {}: no member of its LAG is up", settings.name);
                return Err(OtgError::invalid(message));
            }
            started.push((flow, streams, sent_values));
        }
        // The hosts of devices answer; those of the run would answer once more.
        for port in &mut plan.ports {
            (port.addresses, port.gateways) = (Vec::new(), Vec::new());
        }
        let names = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
        let options = StreamOptions {
            elsewhere: None,
            interfaces: host.interfaces.iter().cloned().map(Some).collect(),
            backend: Backend::Auto,
            workers: 1,
            policy: DeparturePolicy::default(),
            duration: RunDuration::MAX,
            multiplier: Multiplier::ONE,
            force_interface: false,
            is_visible: false,
            per_vlan: false,
            survives_outages: true,
            tolerance_ppm: 1e4,
            series: SeriesOptions::default(),
        };
        let request = HostRequest {
            origin: None,
            resolved: Resolved {
                load: LoadSource::Fixed,
                plan: Plan::Streams { plan: Arc::new(plan), options },
                kind: RecordKind::Streams,
                interfaces: host.interfaces.to_vec(),
                flows: names,
                source: "otg".to_owned(),
                text: None,
            },
            name: None,
            command: vec!["otg".to_owned()],
            access: Access::Shared,
            start: Some(StartAt::Now),
            when_lease_ends: WhenLeaseEnds::Stop,
        };
        let run = host.server.host_run(host.user, request, Arc::new(AttachedFiles::default()))?;
        // The next request expects that the flows send.
        run.handle.wait_running(Some(STOP_WAIT));
        let empty = (Instant::now(), Arc::default());
        self.runs.push(FlowRun { run, samples: [empty.clone(), empty.clone(), empty] });
        let index = self.runs.len() - 1;
        for (flow, streams, sent_values) in started {
            self.flows[flow] = Some(Started {
                run: index,
                streams,
                sent_values,
                tag_samples: RefCell::default(),
                is_paused: false,
                is_stopped: false,
            });
        }
        Ok(())
    }

    /// Continues paused flows, and starts stopped ones from their beginning.
    ///
    /// # Errors
    /// The run is refused.
    pub(super) fn resume(
        &mut self,
        host: &RunHost<'_>,
        lowered: &Lowered,
        flows: &BTreeSet<usize>,
    ) -> Answer<()> {
        let is_paused = |flow: &usize| self.flows[*flow].as_ref().is_some_and(|it| it.is_paused);
        let (paused, stopped): (BTreeSet<usize>, BTreeSet<usize>) =
            flows.iter().copied().partition(is_paused);
        self.command(&paused, FlowCommand::Resume)?;
        for flow in paused {
            if let Some(started) = &mut self.flows[flow] {
                started.is_paused = false;
            }
        }
        let stopped: BTreeSet<usize> =
            stopped.into_iter().filter(|flow| self.state(*flow) == FlowState::Stopped).collect();
        match stopped.is_empty() {
            true => Ok(()),
            false => self.start(host, lowered, &stopped),
        }
    }

    /// Pauses flows that send.
    ///
    /// # Errors
    /// The run does not take the command.
    pub(super) fn pause(&mut self, flows: &BTreeSet<usize>) -> Answer<()> {
        let sending: BTreeSet<usize> =
            flows.iter().copied().filter(|flow| self.state(*flow) == FlowState::Started).collect();
        self.command(&sending, FlowCommand::Pause)?;
        for flow in sending {
            if let Some(started) = &mut self.flows[flow] {
                started.is_paused = true;
            }
        }
        Ok(())
    }

    /// Stops flows. Runs whose flows have all stopped end; waits for their last arrivals.
    pub(super) fn stop(&mut self, flows: &BTreeSet<usize>) {
        // An error means that the run is over.
        let _ = self.command(flows, FlowCommand::Stop);
        for &flow in flows {
            if let Some(started) = &mut self.flows[flow] {
                (started.is_stopped, started.is_paused) = (true, false);
            }
        }
        let mut ending = Vec::new();
        for (index, it) in self.runs.iter().enumerate() {
            let mut of_run = self.flows.iter().flatten().filter(|flow| flow.run == index);
            if !it.run.is_over() && of_run.all(|flow| flow.is_stopped) {
                it.run.stop(None);
                ending.push(&it.run);
            }
        }
        let deadline = Instant::now() + STOP_WAIT;
        for run in ending {
            run.handle.wait_over(Some(deadline.saturating_duration_since(Instant::now())));
        }
    }

    /// Stops all flows.
    pub(super) fn stop_all(&mut self) {
        let all = (0..self.flows.len()).collect();
        self.stop(&all);
        for it in &self.runs {
            it.run.stop(None);
        }
        for it in &self.runs {
            it.run.handle.wait_over(Some(STOP_WAIT));
        }
    }

    /// Changes frames and rates of flows that send to those of a new plan.
    ///
    /// # Errors
    /// The new frames are too long for a port, or the speed of a port is unknown; nothing changes
    /// then.
    pub(super) fn update(
        &mut self,
        before: &Lowered,
        after: &Lowered,
        flows: &[usize],
    ) -> Answer<()> {
        let sending = flows.iter().filter(|flow| self.state(**flow) != FlowState::Stopped);
        let sending: Vec<usize> = sending.copied().collect();
        let mut speeds = Vec::new();
        for &flow in &sending {
            let Some(started) = &self.flows[flow] else { continue };
            for stream in &started.streams {
                let new = planned(after, flow, stream);
                let speed = new.rate.on_port(after.plan.ports[new.tx_port].speed);
                let speed = FlowCommand::SetSpeed(speed.map_err(OtgError::invalid)?);
                let command = Command::Flows { flows: vec![stream.place], command: speed };
                speeds.push((started.run, command));
            }
        }
        for (count, &flow) in sending.iter().enumerate() {
            if let Err(error) = self.send_frames(before, after, flow) {
                for &flow in &sending[..=count] {
                    self.send_frames(after, before, flow)?;
                }
                return Err(error);
            }
        }
        for (run, command) in speeds {
            self.runs[run].run.handle.command(command).or_else(over)?;
        }
        for flow in sending {
            let Some(started) = &mut self.flows[flow] else { continue };
            for (stream, values) in started.streams.iter().zip(&mut started.sent_values) {
                if frames_differ(planned(before, flow, stream), planned(after, flow, stream)) {
                    values.iter_mut().for_each(SentValues::forget_length);
                }
            }
        }
        Ok(())
    }

    /// Changes the frames of a flow that sends to those of another plan, if they differ.
    fn send_frames(&self, before: &Lowered, after: &Lowered, flow: usize) -> Answer<()> {
        let Some(started) = &self.flows[flow] else { return Ok(()) };
        let handle = &self.runs[started.run].run.handle;
        for stream in &started.streams {
            let (old, new) = (planned(before, flow, stream), planned(after, flow, stream));
            if !frames_differ(old, new) {
                continue;
            }
            let command = FlowCommand::SetFrames(Arc::new(new.stream.clone()));
            let command = Command::Flows { flows: vec![stream.place], command };
            handle.command(command).or_else(|error| match error {
                CommandError::Over { .. } => Ok(()),
                error => {
                    let name = &after.flows[flow].name;
                    Err(OtgError::invalid(format!("flow {name}: {error}")))
                }
            })?;
        }
        Ok(())
    }

    /// Selects the members of link aggregation groups that send the flows that run.
    ///
    /// # Errors
    /// A run does not take the command.
    pub(super) fn set_members(&mut self, lowered: &Lowered, out: &BTreeSet<usize>) -> Answer<()> {
        for (flow, started) in self.flows.iter().enumerate() {
            let Some(started) = started.as_ref().filter(|it| !it.is_stopped) else { continue };
            let member = |stream: &StartedStream| {
                let planned = lowered.flows[flow].streams[stream.index].planned;
                lowered.plan.flows[planned].stream.member.as_ref()
            };
            for stream in &started.streams {
                let Some(Member { group, .. }) = member(stream) else { continue };
                // Members whose port was down at the start are not part of the run.
                let of_group = started.streams.iter().filter_map(member);
                let of_group = of_group.filter(|member| member.group == *group);
                let present = of_group.fold(0, |all, member| all | (1_u64 << member.index));
                let active = present & active_members(lowered, *group, out);
                let command = FlowCommand::SetMembers(active);
                let command = Command::Flows { flows: vec![stream.place], command };
                self.runs[started.run].run.handle.command(command).or_else(over)?;
            }
        }
        Ok(())
    }

    /// Keeps the runs of flows when flows are added or removed.
    pub(super) fn rearrange(&mut self, before: &Lowered, after: &Lowered) {
        let mut old = std::mem::take(&mut self.flows);
        let mut removed: BTreeSet<usize> = (0..old.len()).collect();
        let mut flows = Vec::with_capacity(after.flows.len());
        for flow in &after.flows {
            let place = before.flows.iter().position(|it| it.name == flow.name);
            if let Some(place) = place {
                removed.remove(&place);
            }
            flows.push(place.and_then(|place| old.get_mut(place).and_then(Option::take)));
        }
        // Removed flows stop.
        self.flows = old;
        self.stop(&removed);
        self.flows = flows;
    }

    /// Sends a command to flows that have started.
    fn command(&self, flows: &BTreeSet<usize>, command: FlowCommand) -> Answer<()> {
        for (index, it) in self.runs.iter().enumerate() {
            let of_run = flows.iter().filter_map(|flow| self.flows.get(*flow)?.as_ref());
            let of_run = of_run.filter(|flow| flow.run == index && !flow.is_stopped);
            let streams = of_run.flat_map(|flow| flow.streams.iter().map(|it| it.place));
            let streams: Vec<usize> = streams.collect();
            if !streams.is_empty() {
                let command = Command::Flows { flows: streams, command: command.clone() };
                it.run.handle.command(command).or_else(over)?;
            }
        }
        Ok(())
    }

    /// Returns the state of a flow.
    pub(super) fn state(&self, flow: usize) -> FlowState {
        let Some(Some(started)) = self.flows.get(flow) else { return FlowState::Stopped };
        let run = &self.runs[started.run].run;
        if started.is_stopped || run.handle.state() >= RunState::Draining {
            return FlowState::Stopped;
        }
        if started.is_paused {
            return FlowState::Paused;
        }
        let Some(snapshot) = run.handle.latest() else { return FlowState::Started };
        let sent = |stream: &StartedStream| {
            snapshot.flows.get(stream.place).map_or(0, |it| it.sent.frames + it.sent.unsent)
        };
        let has_ended = started.streams.iter().all(|stream| {
            let of_part = started.streams.iter().filter(|it| it.part == stream.part);
            let sent: u64 = of_part.map(sent).sum();
            match stream.end {
                End::Never => false,
                End::Frames(frames) => sent >= frames,
                End::Time(time) => snapshot.elapsed >= time,
            }
        });
        if has_ended { FlowState::Stopped } else { FlowState::Started }
    }

    /// Returns whether a port sends.
    pub(super) fn sends(&self, lowered: &Lowered, port: usize) -> bool {
        (0..self.flows.len()).any(|flow| {
            let streams = lowered.flows[flow].streams.iter();
            self.state(flow) == FlowState::Started
                && streams.map(|it| lowered.plan.flows[it.planned].tx_port).any(|tx| tx == port)
        })
    }
}

/// Returns the flow of the plan of a stream that started.
fn planned<'a>(lowered: &'a Lowered, flow: usize, stream: &StartedStream) -> &'a Flow {
    &lowered.plan.flows[lowered.flows[flow].streams[stream.index].planned]
}

/// Returns whether the frames of two flows of a plan differ.
fn frames_differ(old: &Flow, new: &Flow) -> bool {
    old.stream.template != new.stream.template || old.stream.program != new.stream.program
}

/// Returns the members of a link aggregation group without some ports: bit `n` stands for member `n`.
fn active_members(lowered: &Lowered, lag: usize, out: &BTreeSet<usize>) -> u64 {
    let ports = lowered.lags.get(lag).map_or(&[][..], |lag| &lag.ports);
    let members = ports.iter().enumerate().filter(|(_, port)| !out.contains(port));
    members.fold(0, |active, (member, _)| active | (1_u64 << member))
}

/// Returns `Ok` for a run that is over: a command to it has nothing to change.
fn over(error: CommandError) -> Answer<()> {
    match error {
        CommandError::Over { .. } => Ok(()),
        error => Err(OtgError::internal(error.to_string())),
    }
}

impl End {
    fn of(flow: &Flow) -> Self {
        let transmission = &flow.stream.transmission;
        if let Some(time) = flow.duration {
            return Self::Time(time.saturating_add(transmission.start_delay));
        }
        match transmission.mode {
            Mode::Burst { frames } => Self::Frames(frames),
            Mode::Bursts { frames, count, .. } if count > 0 => {
                Self::Frames(frames.saturating_mul(count))
            }
            Mode::Time { duration } => {
                Self::Time(duration.saturating_add(transmission.start_delay))
            }
            Mode::Continuous | Mode::Bursts { .. } => Self::Never,
        }
    }
}
