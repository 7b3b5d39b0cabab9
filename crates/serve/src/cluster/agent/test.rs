//! The test that an agent takes part in: its runs, its lease, and compared clocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use wirestorm_api::run::{PlanSource, RunRequest, StartRequest, WhenLeaseEnds};
use wirestorm_bus::cluster::LEASES;
use wirestorm_control::base::time::{Duration, Instant};
use wirestorm_control::files::AttachedFiles;
use wirestorm_control::link::Link;
use wirestorm_control::namespace::{InterfaceName, InterfaceNameError};
use wirestorm_control::sync::ReferenceMonitor;
use wirestorm_control::sync::timestamp::Timestamp;
use wirestorm_control::traffic::{SegmentOptions, SeriesOptions};
use wirestorm_control::{Command as RunCommand, CommandError, RunState, StartAt, clock};
use wirestorm_store::Store;

use super::super::protocol::{
    Answer, Command, InterfaceReport, LEASES_NS, Order, Part, PartPlan, Peer, Report, RunReport,
    SeriesPart, SignedOrder, decode,
};
use super::Shared;
use super::clocks::{PeerSessions, now, ptp_report};
use super::contents::Contents;
use super::orders::Answers;
use super::records::{Checkpoints, ExchangesLog};
use crate::server::{ElsewherePorts, HostedRun, PartOptions};

/// Most intervals of a time series: twelve days of seconds.
const INTERVALS_MAX: usize = 1 << 20;

/// A test that the agent takes part in.
pub(super) struct CurrentTest {
    pub(super) name: String,
    pub(super) fence: u64,
    director: String,
    answers: Answers,
    lease: Option<Lease>,
    pub(super) iteration: u32,
    pub(super) runs: BTreeMap<String, PartRun>,
    pub(super) peers: BTreeMap<String, PeerSessions>,
    /// Readings of the reference, from the first comparison of clocks to the end of the test.
    pub(super) reference: Option<ReferenceMonitor>,
    /// Whether clocks are compared, so that exchanges of the PTP session go to the log.
    pub(super) compares: bool,
    pub(super) exchanges_log: ExchangesLog,
    /// Files and plans; `None` if the test has none.
    contents: Option<Contents>,
    interfaces: BTreeMap<String, InterfaceReport>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    length: Duration,
    until: Instant,
}

/// A run of the test on this agent.
pub(super) struct PartRun {
    pub(super) hosted: Arc<HostedRun>,
    only_receives: bool,
    pub(super) checkpoints: Checkpoints,
    /// Set once the result is in the log; `None` before it is on its way.
    pub(super) logged: Option<Arc<AtomicBool>>,
}

impl Shared {
    /// Carries out an order, once, and returns the answer.
    pub(super) fn carry_out(&self, payload: &[u8]) -> Answer {
        let answer =
            self.try_carry_out(payload).unwrap_or_else(|reason| Answer::Refused { reason });
        if let Answer::Refused { reason } = &answer {
            self.note(&format!("refused an order: {reason}"));
        }
        answer
    }

    fn try_carry_out(&self, payload: &[u8]) -> Result<Answer, String> {
        let signed: SignedOrder = decode(payload)?;
        let (order, key) = signed.open(&self.trusted)?;
        if order.agent != self.name {
            return Err(format!("the order is for agent {}, not {}", order.agent, self.name));
        }
        let mut current = self.test();
        if let Some(test) = current.as_ref().filter(|it| it.is_of(&order))
            && let Some(answer) = test.answers.of(&order)?
        {
            return Ok(answer);
        }
        self.check_lease(current.as_ref(), &order)?;
        self.book.lock().unwrap_or_else(std::sync::PoisonError::into_inner).enter(&order, key)?;
        if !current.as_ref().is_some_and(|it| it.is_of(&order)) {
            if let Some(before) = current.as_mut() {
                before.stop(&format!("director {} began test {}", order.director, order.test));
                before.log_ended_runs(self, Some(StdDuration::from_secs(5)));
            }
            *current = Some(CurrentTest::new(&order));
            self.note(&format!("director {} began test {}", order.director, order.test));
        }
        let Some(test) = current.as_mut() else { return Err("there is no test".to_owned()) };
        let outcome = test.carry_out(self, &order.command);
        let answer = match outcome {
            Ok(()) => Answer::Done(Box::new(test.report(self))),
            Err(reason) => Answer::Refused { reason },
        };
        test.answers.add(order, answer.clone());
        Ok(answer)
    }

    /// Checks that the director holds the lease of this agent, and no later one does.
    fn check_lease(&self, current: Option<&CurrentTest>, order: &Order) -> Result<(), String> {
        if let Some(test) = current {
            if test.is_of(order) {
                return Ok(());
            }
            if order.fence <= test.fence {
                return Err(format!(
                    "a later lease of this agent belongs to director {}, test {}",
                    test.director, test.name
                ));
            }
        }
        let entry = self.bus.get(LEASES, &self.name).map_err(|error| error.to_string())?;
        let holder = entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned());
        match holder {
            Some(holder) if holder == order.test => Ok(()),
            Some(holder) => Err(format!("test {holder} has the lease of this agent")),
            None => Err(format!("test {} has no lease of this agent", order.test)),
        }
    }
}

impl CurrentTest {
    fn new(order: &Order) -> Self {
        Self {
            name: order.test.clone(),
            fence: order.fence,
            director: order.director.clone(),
            answers: Answers::default(),
            lease: None,
            iteration: 0,
            runs: BTreeMap::new(),
            peers: BTreeMap::new(),
            reference: None,
            compares: false,
            exchanges_log: ExchangesLog::default(),
            contents: None,
            interfaces: BTreeMap::new(),
        }
    }

    fn is_of(&self, order: &Order) -> bool {
        self.name == order.test && self.fence == order.fence
    }

    pub(super) fn lease(&self) -> Option<Duration> {
        self.lease.map(|lease| lease.length)
    }

    pub(super) fn has_active_runs(&self) -> bool {
        self.runs.values().any(|run| !run.hosted.handle.state().is_over())
    }

    /// Stops all runs. What they measured is kept.
    pub(super) fn stop(&self, reason: &str) {
        self.stop_those(reason, |_| true);
    }

    /// Stops some runs; returns whether any of them was active.
    fn stop_those(&self, reason: &str, which: impl Fn(&PartRun) -> bool) -> bool {
        let active = |run: &&PartRun| !run.hosted.handle.state().is_over();
        let mut has_stopped = false;
        for run in self.runs.values().filter(active).filter(|run| which(run)) {
            run.hosted.stop(Some(reason.to_owned()));
            has_stopped = true;
        }
        has_stopped
    }

    /// Notes the answer to a request for a lease, which was asked for at `asked`. Returns the reason
    /// if it stops runs.
    pub(super) fn renewed(
        &mut self,
        granted: Result<bool, String>,
        asked: Instant,
    ) -> Option<String> {
        let lease = self.lease.as_mut()?;
        match granted {
            Ok(true) => {
                lease.until = asked.saturating_add(lease.length);
                let lease = *lease;
                self.runs.values().for_each(|run| run.set_deadline(lease));
                None
            }
            Ok(false) => {
                let reason = format!("director {} ended it", self.director);
                self.stop_those(&reason, |_| true).then_some(reason)
            }
            Err(error) if clock::now() >= lease.until => {
                let lease = *lease;
                let reason = format!(
                    "no answer from director {} for {}: {error}",
                    self.director, lease.length
                );
                let is_due = |run: &PartRun| clock::now() >= run.deadline(lease);
                self.stop_those(&reason, is_due).then_some(reason)
            }
            // The workers stop at the deadline themselves.
            Err(_) => None,
        }
    }

    fn carry_out(&mut self, shared: &Shared, command: &Command) -> Result<(), String> {
        match command {
            Command::Describe(names) => {
                let described =
                    names.iter().map(|name| Ok((name.clone(), describe(shared, name)?)));
                self.interfaces = described.collect::<Result<_, String>>()?;
                Ok(())
            }
            Command::Compare(peers) => {
                self.compares = true;
                if let Some(options) = &shared.references {
                    let monitor = ReferenceMonitor::start(options.clone());
                    self.reference = Some(monitor.map_err(|error| error.to_string())?);
                }
                self.compare(peers)
            }
            Command::Fetch(wanted) => {
                let contents = match self.contents.take() {
                    Some(contents) => contents,
                    None => Contents::new(shared.contents_directory.as_deref())?,
                };
                self.contents.insert(contents).fetch(&shared.bus, &self.name, wanted)
            }
            Command::Prepare { parts, lease_ns } => self.prepare(shared, parts, *lease_ns),
            Command::Report => Ok(()),
            Command::Arm { at_ns } => {
                let at = clock::of_node_time(Timestamp::from_nanos(*at_ns));
                let late = clock::now().saturating_since(at);
                if late > Duration::ZERO {
                    return Err(format!("the start was {late} ago: use a longer `clock.lead`"));
                }
                for run in self.runs.values() {
                    run.hosted.handle.start(StartAt::Monotonic(at));
                }
                Ok(())
            }
            Command::Sent { run, frames } => {
                let run = self.runs.get(run).ok_or_else(|| format!("there is no run {run}"))?;
                let frames = frames.clone();
                match run.hosted.handle.command(RunCommand::SentElsewhere { frames }) {
                    // It ended while the order was on its way: nothing is left to wait for.
                    Ok(()) | Err(CommandError::Over { .. }) => Ok(()),
                    Err(error) => Err(error.to_string()),
                }
            }
            Command::Stop => {
                self.stop(&format!("director {} stopped the test", self.director));
                Ok(())
            }
            Command::Release => {
                self.stop(&format!("director {} ended the test", self.director));
                self.lease = None;
                self.peers.clear();
                self.reference = None;
                self.compares = false;
                self.contents = None;
                Ok(())
            }
        }
    }

    fn compare(&mut self, peers: &[Peer]) -> Result<(), String> {
        for (number, peer) in peers.iter().enumerate() {
            self.peers.insert(peer.agent.clone(), PeerSessions::start(number, peer)?);
        }
        Ok(())
    }

    fn prepare(&mut self, shared: &Shared, parts: &[Part], lease_ns: u64) -> Result<(), String> {
        if !LEASES_NS.contains(&lease_ns) {
            return Err(format!("found a lease of {lease_ns} ns, expected 0.1 s to 600 s"));
        }
        if self.has_active_runs() {
            return Err("the runs of the last iteration are not over".to_owned());
        }
        self.runs.clear();
        self.exchanges_log.is_complete = false;
        self.iteration += 1;
        let length = Duration::from_nanos(lease_ns);
        let until = clock::now().saturating_add(length);
        self.lease = Some(Lease { length, until });
        for part in parts {
            let name = format!("{}/{}@{}", self.name, part.run, shared.name);
            match host(shared, name, part, self.contents.as_ref()) {
                Ok(hosted) => {
                    let only_receives = part.only_receives;
                    let checkpoints = Checkpoints::default();
                    let run = PartRun { hosted, only_receives, checkpoints, logged: None };
                    run.set_deadline(Lease { length, until });
                    self.runs.insert(part.run.clone(), run);
                }
                Err(error) => {
                    self.stop("another run of the test cannot start");
                    return Err(format!("run {}: {error}", part.run));
                }
            }
        }
        Ok(())
    }

    fn report(&self, shared: &Shared) -> Report {
        let runs = self.runs.iter().map(|(name, run)| (name.clone(), run.report()));
        let peers = self.peers.iter();
        // The director needs offsets before and after the preparation; they take some time.
        let needs_offsets = |run: &PartRun| {
            let state = run.hosted.handle.state();
            state == RunState::Prepared || state.is_over()
        };
        let with_offsets = self.runs.values().all(needs_offsets);
        let peer = |peer: &PeerSessions| peer.report(with_offsets);
        Report {
            now_ns: now().as_nanos(),
            reflector: shared.reflector_addresses.clone(),
            runs: runs.collect(),
            peers: peers.filter_map(|(name, it)| Some((name.clone(), peer(it)?))).collect(),
            reference: self.reference.as_ref().and_then(|it| Some(it.latest()?.0)),
            ptp: shared.ptp.as_ref().map(|it| ptp_report(it, with_offsets)),
            fetch: self.contents.as_ref().map(Contents::report).unwrap_or_default(),
            interfaces: self.interfaces.clone(),
        }
    }

    /// Takes an error of fetching that is not in the agent's log yet.
    pub(super) fn take_fetch_error(&self) -> Option<String> {
        self.contents.as_ref()?.take_error()
    }
}

/// Returns facts about an interface that the director may use.
fn describe(shared: &Shared, name: &str) -> Result<InterfaceReport, String> {
    let port = shared.server.port(&shared.identity, name).map_err(|error| error.to_string())?;
    let interface: InterfaceName =
        port.interface.parse().map_err(|error: InterfaceNameError| error.to_string())?;
    let link = Link::open(&interface).map_err(|error| error.to_string())?;
    let speed_bps = link.speed.map(|speed| speed.per_second() as u64);
    Ok(InterfaceReport { mac: link.mac, speed_bps })
}

/// Begins to prepare a run. `name`: for the run history.
fn host(
    shared: &Shared,
    name: String,
    part: &Part,
    contents: Option<&Contents>,
) -> Result<Arc<HostedRun>, String> {
    let fetched = || contents.ok_or_else(|| "the agent has fetched no files".to_owned());
    let plan = match &part.plan {
        // A director reads no files of this machine.
        PartPlan::Source(PlanSource::Stored(name)) => {
            return Err(format!("stored plan {name:?}: expected the plan itself"));
        }
        PartPlan::Source(plan) => plan.clone(),
        PartPlan::Text(sha256) => PlanSource::Text(fetched()?.text(sha256)?),
    };
    let files = match part.files.is_empty() {
        true => AttachedFiles::default(),
        false => fetched()?.files(&part.files)?,
    };
    let elsewhere = part.elsewhere.as_ref().map(|elsewhere| {
        let segments = |drift_ppm: f64| SegmentOptions {
            length: Duration::from_nanos(elsewhere.segment_ns),
            // A sender's clock that is fast makes raw delays shorter with time.
            slope: (-drift_ppm * 1e-6 * 4_294_967_296.0) as i64,
            ..SegmentOptions::default()
        };
        let ports = elsewhere.ports.iter().map(|(name, drift)| (name.clone(), segments(*drift)));
        let drain = Duration::from_nanos(elsewhere.drain_ns);
        ElsewherePorts { ports: ports.collect(), first_stream: elsewhere.first_stream, drain }
    });
    let request = RunRequest {
        plan,
        name: Some(name).filter(|name| Store::is_name(name)),
        ports: part.ports.clone(),
        options: part.options.clone(),
        files: BTreeMap::new(),
        start: StartRequest::OnCommand,
        when_lease_ends: WhenLeaseEnds::Continue,
        shared: false,
        command: Vec::new(),
    };
    let series = part.series.map(series).transpose()?;
    let destinations = shared.destinations.clone();
    let options = PartOptions { elsewhere, series, destinations };
    let (files, user) = (Arc::new(files), &shared.identity);
    let hosted = shared.server.create_part(user, request, files, &options);
    hosted.map_err(|error| error.to_string())
}

/// Returns the intervals of time series.
fn series(part: SeriesPart) -> Result<SeriesOptions, String> {
    let SeriesPart { interval_ns, intervals_max } = part;
    if interval_ns == 0 || intervals_max > INTERVALS_MAX {
        return Err(format!(
            "found {intervals_max} intervals of {interval_ns} ns, expected at most {INTERVALS_MAX} \
             longer than 0 ns"
        ));
    }
    Ok(SeriesOptions { interval: Duration::from_nanos(interval_ns), intervals_max })
}

impl PartRun {
    /// Returns the time at which the run stops without a new lease. The leases of the senders on other
    /// nodes end at most one lease later than that of a receiver.
    fn deadline(&self, lease: Lease) -> Instant {
        let more = if self.only_receives { lease.length } else { Duration::ZERO };
        lease.until.saturating_add(more)
    }

    fn set_deadline(&self, lease: Lease) {
        self.hosted.handle.set_deadline(self.deadline(lease));
    }

    fn report(&self) -> RunReport {
        let handle = &self.hosted.handle;
        // Read before the counters, so that they are final.
        let has_sent_all = handle.has_sent_all();
        let latest = handle.latest();
        let flows = latest.as_ref().map(|latest| &latest.flows[..]).unwrap_or_default();
        let received = flows.iter().map(|flow| flow.received.as_ref().map_or(0, |it| it.frames));
        let summary = self.hosted.summary();
        RunReport {
            state: summary.state,
            message: summary.message,
            sent: flows.iter().map(|flow| flow.sent.frames).collect(),
            received: received.collect(),
            has_sent_all,
            is_logged: self.logged.as_ref().is_some_and(|logged| logged.load(Ordering::Acquire)),
        }
    }
}
