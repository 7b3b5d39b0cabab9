//! Director: runs a test on agents.
//!
//! ```text
//! lease of each agent ─> compare clocks ─> prepare ─> all prepared ─> arm with a common start
//!    ─> run: reports of all agents ─> drain: senders' counts to receivers ─> results from the log
//! ```
//!
//! Until all agents are armed, any failure ends the test, and nothing is sent.

mod agents;
mod merge;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wirestorm_api::run::RunState;
use wirestorm_bus::cluster::{LEASES, RESULTS};
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::{BucketConfig, Bus, BusError, LogConfig};
use wirestorm_control::plan::test_plan::{ClockPath, TestPlan, WhenAgentLost};
use wirestorm_control::result::RunResult;

use super::log::LogReader;
use super::protocol::{Command, LeaseAnswer, LeaseRequest, Peer, Presence, decode, encode};
use agents::{AgentLink, Orders};
use merge::{ClockFacts, Collected};
use plan::PlannedRun;

/// Time to wait for the answer to an order, and to the order to prepare.
const ORDER_TIMEOUT: Duration = Duration::from_secs(2);
const PREPARE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait until all runs are prepared: a neighbour that does not answer takes 10 s.
const PREPARED_TIMEOUT: Duration = Duration::from_secs(30);
/// Time to wait for the presence of all agents.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time to wait for a comparison of clocks, and exchanges that it needs.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);
const EXCHANGES_MIN: usize = 50;
/// Time to wait for the report of an agent while runs are on.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time to wait for a bus that is away. The agents have stopped by then, and keep their results.
const BUS_WAIT: Duration = Duration::from_secs(60);
/// Interval of the reports of agents.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Time to wait for results in the log after all runs are over.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait for more records of a lost test once all results are there.
const SETTLING: Duration = Duration::from_secs(1);
/// Number of log entries to read at once.
const ENTRIES_MAX: usize = 64;
/// Time for which the bus keeps results.
const RESULTS_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
const RESULTS_BYTES_MAX: u64 = 1 << 30;
/// Time in which the log recognises a repeated record.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Options of a test.
#[derive(Debug)]
pub struct DirectorOptions {
    /// Name of the director, for messages.
    pub name: String,
    /// Site, as in subjects.
    pub site: Site,
    /// Bus.
    pub bus: Arc<dyn Bus>,
    /// Key that signs the orders.
    pub key: Key,
    /// Test.
    pub test: TestPlan,
    /// Folder of the test, for the files that it names.
    pub folder: PathBuf,
    /// Identifier of the test, unique in the site: letters, digits, `-` and `_`.
    pub id: String,
    /// Time after which an agent stops without an answer from the director.
    pub lease: Duration,
    /// Whether all agents have the clock of this machine, so nothing is to be compared.
    pub one_clock: bool,
}

/// Outcome of a test.
#[derive(Debug, Default)]
pub struct TestOutcome {
    /// Outcome of each iteration.
    pub iterations: Vec<IterationOutcome>,
}

/// Outcome of an iteration.
#[derive(Debug, Default)]
pub struct IterationOutcome {
    /// Runs in the order of the test.
    pub runs: Vec<RunOutcome>,
    /// Greatest difference between the starts of two agents in ns; `None` if it is unknown.
    pub start_skew_ns: Option<f64>,
    /// Agents that were lost, with the reason.
    pub lost: Vec<(String, String)>,
}

/// Outcome of a run of the test.
#[derive(Debug)]
pub struct RunOutcome {
    /// Name in the test.
    pub name: String,
    /// Text of its plan, if it has one.
    pub plan: Option<String>,
    /// Merged result, or the error of each agent.
    pub result: Result<RunResult, String>,
}

/// Progress of a test.
#[derive(Clone, Debug, PartialEq)]
pub enum TestProgress {
    /// The next phase has begun.
    Phase(&'static str),
    /// Counters of the running iteration.
    Running {
        /// Time since the start.
        elapsed: Duration,
        /// Frames sent by all flows.
        sent: u64,
        /// Frames received of all flows.
        received: u64,
    },
    /// An agent is lost.
    Lost {
        /// Agent.
        agent: String,
        /// Reason.
        reason: String,
    },
}

/// Reason why a test did not start.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The test or a plan has errors.
    #[error("{0}")]
    Plan(String),
    /// The bus failed.
    #[error("bus: {0}")]
    Bus(#[from] BusError),
    /// An agent refused or did not answer.
    #[error("agent {agent}, {phase}: {reason}")]
    Agent {
        /// Agent.
        agent: String,
        /// What it was to do.
        phase: &'static str,
        /// Reason.
        reason: String,
    },
    /// The clocks could not be compared exactly enough.
    #[error("{0}")]
    Clocks(String),
    /// The test was stopped before it started.
    #[error("stopped before the start")]
    Stopped,
}

/// Runs a test on agents.
#[derive(Debug)]
pub struct Director {
    orders: Orders,
    test: TestPlan,
    runs: Vec<PlannedRun>,
    lease: Duration,
    one_clock: bool,
    links: Vec<AgentLink>,
    log: LogReader,
    answering: Answering,
    renewed: Instant,
}

/// Fencing token of each agent whose lease is renewed on request.
type Fences = Arc<Mutex<BTreeMap<String, u64>>>;

/// A thread that answers requests of agents for a new lease.
#[derive(Debug)]
struct Answering {
    fences: Fences,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Answering {
    fn start(bus: Arc<dyn Bus>, subject: &str) -> Result<Self, TestError> {
        let requests = bus.subscribe(subject, 4_096)?;
        let (fences, stop) = (Fences::default(), Arc::new(AtomicBool::new(false)));
        let (known, stopping) = (Arc::clone(&fences), Arc::clone(&stop));
        let answer = move || {
            while !stopping.load(Ordering::Acquire) {
                let Ok(message) = requests.recv(Duration::from_millis(50)) else { continue };
                let Ok(request) = decode::<LeaseRequest>(&message.payload) else { continue };
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let granted = known.get(&request.agent) == Some(&request.fence);
                drop(known);
                // If the agent is gone, nobody needs the answer.
                let _ = bus.respond(&message, &encode(&LeaseAnswer { granted }));
            }
        };
        let thread = std::thread::Builder::new().name("director-lease".into()).spawn(answer);
        let thread = thread.map_err(|error| TestError::Plan(format!("no thread: {error}")))?;
        Ok(Self { fences, stop, thread: Some(thread) })
    }

    fn fences(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A panic of the thread has been reported by itself.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

impl Director {
    /// Checks a test, and plans its runs. Nothing is sent to agents yet.
    ///
    /// # Errors
    /// The test has errors, or the bus refuses.
    pub fn new(options: DirectorOptions) -> Result<Self, TestError> {
        let DirectorOptions { name, site, bus, key, test, folder, id, lease, one_clock } = options;
        // The identifier is as good a seed as any: tests at the same time have different ones.
        let seed =
            id.bytes().fold(17_u64, |seed, byte| seed.wrapping_mul(1_000_003) ^ u64::from(byte));
        let runs = plan::plan_runs(&test, &folder, seed).map_err(TestError::Plan)?;
        bus.create_bucket(&BucketConfig {
            name: LEASES.to_owned(),
            time_to_live: Some(lease.max(Duration::from_secs(1)) * 3),
            bytes_max: 1 << 20,
        })?;
        bus.create_log(&LogConfig {
            name: RESULTS.to_owned(),
            pattern: site.all_results(),
            age_max: Some(RESULTS_AGE_MAX),
            bytes_max: RESULTS_BYTES_MAX,
            duplicate_window: DUPLICATE_WINDOW,
        })?;
        let answering = Answering::start(Arc::clone(&bus), &site.director_lease(&id)?)?;
        let orders = Orders { bus, site, key, director: name, test: id, issued_unix_ns: 0 };
        Ok(Self {
            orders,
            test,
            runs,
            lease,
            one_clock,
            links: Vec::new(),
            log: LogReader::default(),
            answering,
            renewed: Instant::now(),
        })
    }

    /// Runs the test until its end, or until `stop` is set.
    ///
    /// # Errors
    /// The first iteration did not start; nothing was sent.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(TestProgress),
    ) -> Result<TestOutcome, TestError> {
        let outcome = self.run_iterations(stop, progress);
        for link in &mut self.links {
            // Agents that do not answer stop when their lease ends.
            let _ = link.order(&mut self.orders, "release", Command::Release, ORDER_TIMEOUT);
            link.release(&self.orders);
        }
        outcome
    }

    fn run_iterations(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(TestProgress),
    ) -> Result<TestOutcome, TestError> {
        progress(TestProgress::Phase("agents"));
        self.acquire()?;
        if !self.one_clock && self.test.clock.path != ClockPath::None {
            progress(TestProgress::Phase("clocks"));
            self.compare(stop)?;
        }
        let mut outcome = TestOutcome::default();
        for iteration in 1..=self.test.iterations {
            if iteration > 1 {
                self.wait(Duration::from_nanos(self.test.pause.as_nanos()), stop);
            }
            if stop.load(Ordering::Acquire) {
                break;
            }
            match self.iterate(iteration, stop, progress) {
                Ok(done) => outcome.iterations.push(done),
                Err(error) if outcome.iterations.is_empty() => return Err(error),
                Err(error) => {
                    let reason = error.to_string();
                    progress(TestProgress::Lost { agent: "test".into(), reason });
                    break;
                }
            }
            if outcome.iterations.last().is_some_and(|it| !it.lost.is_empty()) {
                break;
            }
        }
        if outcome.iterations.is_empty() { Err(TestError::Stopped) } else { Ok(outcome) }
    }

    /// Names of the agents of all nodes.
    fn agents(&self) -> Vec<String> {
        self.test.nodes.iter().map(|node| node.agent.clone()).collect()
    }

    /// Takes the leases of all agents that have something to do.
    fn acquire(&mut self) -> Result<(), TestError> {
        let used: BTreeSet<usize> =
            self.runs.iter().flat_map(|run| run.parts.keys().copied()).collect();
        let agents = self.agents();
        for node in used {
            let Some(agent) = agents.get(node) else { continue };
            if self.links.iter().any(|link| link.agent == *agent) {
                let reason = "two nodes of the test have this agent: make them one".to_owned();
                return Err(TestError::Agent { agent: agent.clone(), phase: "lease", reason });
            }
            let link = AgentLink::acquire(&self.orders, node, agent)?;
            self.answering.fences().insert(agent.clone(), link.fence);
            self.links.push(link);
        }
        Ok(())
    }

    /// Waits, and renews the leases meanwhile.
    fn wait(&mut self, time: Duration, stop: &AtomicBool) {
        let until = Instant::now() + time;
        while Instant::now() < until && !stop.load(Ordering::Acquire) {
            self.renew();
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// Renews the leases in the bucket at each third of their time.
    fn renew(&mut self) {
        if self.renewed.elapsed() < self.lease / 3 {
            return;
        }
        self.renewed = Instant::now();
        for link in self.links.iter_mut().filter(|link| link.lost.is_none()) {
            if let Err(holder) = link.renew(&self.orders) {
                link.lost = Some(format!("test {holder} took the lease"));
            }
        }
    }

    fn order_all(
        &mut self,
        phase: &'static str,
        timeout: Duration,
        command: impl Fn(&AgentLink) -> Option<Command>,
    ) -> Result<(), TestError> {
        for link in self.links.iter_mut().filter(|link| link.lost.is_none()) {
            if let Some(command) = command(link) {
                link.order(&mut self.orders, phase, command, timeout)?;
            }
        }
        self.renew();
        Ok(())
    }

    /// Lets receivers compare their clocks with those of senders, and the first node with all
    /// others, and waits until the offsets are exact enough.
    fn compare(&mut self, stop: &AtomicBool) -> Result<(), TestError> {
        let mut pairs: BTreeSet<(usize, usize)> =
            self.runs.iter().flat_map(PlannedRun::pairs).collect();
        let nodes: Vec<usize> = self.links.iter().map(|link| link.node).collect();
        if let Some((reference, others)) = nodes.split_first() {
            for other in others {
                if !pairs.contains(&(*other, *reference)) {
                    pairs.insert((*reference, *other));
                }
            }
        }
        if pairs.is_empty() {
            return Ok(());
        }
        let reflectors = self.reflectors(&pairs)?;
        let agents = self.agents();
        let interval_ns = self.test.clock.interval.as_nanos();
        let peers = |node: usize| -> Vec<Peer> {
            let far = pairs.iter().filter(|(near, _)| *near == node).map(|(_, far)| *far);
            far.filter_map(|far| agents.get(far))
                .map(|agent| Peer {
                    agent: agent.clone(),
                    addresses: reflectors.get(agent).cloned().unwrap_or_default(),
                    interval_ns,
                })
                .collect()
        };
        self.order_all("compare clocks", ORDER_TIMEOUT, |link| {
            let peers = peers(link.node);
            (!peers.is_empty()).then_some(Command::Compare(peers))
        })?;
        let error_max = self.test.clock.error_max.map(|error| error.as_nanos() as f64);
        let until = Instant::now() + COMPARE_TIMEOUT;
        loop {
            self.order_all("compare clocks", ORDER_TIMEOUT, |_| Some(Command::Report))?;
            let mut missing = None;
            for link in &self.links {
                for (peer, report) in &link.report.peers {
                    let offset = report.offset.filter(|_| report.exchanges >= EXCHANGES_MIN);
                    let is_exact = offset.is_some_and(|offset| {
                        error_max.is_none_or(|error_max| offset.half_width_ns <= error_max)
                    });
                    if !is_exact {
                        missing = Some((link.agent.clone(), peer.clone(), report.clone()));
                    }
                }
            }
            let Some((near, far, report)) = missing else { return Ok(()) };
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if Instant::now() >= until {
                let what = match report.offset {
                    None => format!(
                        "{} exchanges with {}: check that UDP port {} of it is open",
                        report.exchanges,
                        report.address,
                        report.address.port()
                    ),
                    Some(offset) => format!(
                        "the error is {:.0} ns, expected at most {:.0} ns (clock.error_max)",
                        offset.half_width_ns,
                        error_max.unwrap_or(0.0)
                    ),
                };
                return Err(TestError::Clocks(format!(
                    "clocks of agents {near} and {far}: {what}"
                )));
            }
            std::thread::sleep(REPORT_INTERVAL);
        }
    }

    /// Returns the addresses of the reflectors of the far ends, from the presence of their agents.
    fn reflectors(
        &self,
        pairs: &BTreeSet<(usize, usize)>,
    ) -> Result<BTreeMap<String, Vec<std::net::SocketAddr>>, TestError> {
        let agents = self.agents();
        let mut missing: BTreeSet<&String> =
            pairs.iter().filter_map(|(_, far)| agents.get(*far)).collect();
        let presences = self.orders.bus.subscribe(&self.orders.site.all_agent_status(), 4_096)?;
        let until = Instant::now() + PRESENCE_TIMEOUT;
        let mut reflectors = BTreeMap::new();
        while let Some(agent) = missing.first() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(message) = presences.recv(left.max(Duration::from_millis(1))) else {
                return Err(TestError::Agent {
                    agent: (*agent).clone(),
                    phase: "presence",
                    reason: "it does not report its presence: start `wirestorm agent`".to_owned(),
                });
            };
            let Ok(presence) = decode::<Presence>(&message.payload) else { continue };
            if missing.remove(&presence.agent) {
                if presence.reflector.is_empty() {
                    let reason = "it has no reflector: start it without --no-reflector".to_owned();
                    let agent = presence.agent;
                    return Err(TestError::Agent { agent, phase: "compare clocks", reason });
                }
                reflectors.insert(presence.agent, presence.reflector);
            }
        }
        Ok(reflectors)
    }

    fn iterate(
        &mut self,
        iteration: u32,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(TestProgress),
    ) -> Result<IterationOutcome, TestError> {
        progress(TestProgress::Phase("prepare"));
        if let Err(error) = self.prepare(stop).and_then(|()| self.arm()) {
            let _ = self.order_all("stop", ORDER_TIMEOUT, |_| Some(Command::Stop));
            return Err(error);
        }
        progress(TestProgress::Phase("run"));
        self.watch(stop, progress);
        progress(TestProgress::Phase("results"));
        let collected = self.collect(iteration);
        Ok(self.outcome(&collected))
    }

    fn prepare(&mut self, stop: &AtomicBool) -> Result<(), TestError> {
        let drift = |links: &[AgentLink], agents: &[String], receiver: usize, sender: usize| {
            let link = links.iter().find(|link| link.node == receiver)?;
            let peer = link.report.peers.get(agents.get(sender)?)?;
            Some(peer.offset?.drift_ppm)
        };
        let agents = self.agents();
        for run in &mut self.runs {
            for node in run.parts.keys().copied().collect::<Vec<_>>() {
                let of = |sender| drift(&self.links, &agents, node, sender).unwrap_or(0.0);
                run.set_drift(node, of);
            }
        }
        let lease_ns = u64::try_from(self.lease.as_nanos()).unwrap_or(u64::MAX);
        let parts: BTreeMap<usize, Command> = self
            .links
            .iter()
            .map(|link| {
                let parts = self.runs.iter().filter_map(|run| run.parts.get(&link.node).cloned());
                (link.node, Command::Prepare { parts: parts.collect(), lease_ns })
            })
            .collect();
        self.order_all("prepare", PREPARE_TIMEOUT, |link| parts.get(&link.node).cloned())?;
        let until = Instant::now() + PREPARED_TIMEOUT;
        loop {
            let mut waiting = None;
            for link in &self.links {
                for (name, run) in &link.report.runs {
                    let phase = "prepare";
                    let agent = link.agent.clone();
                    let message = run.message.clone();
                    if run.state.is_over() {
                        let reason = message.unwrap_or_else(|| "the run ended".to_owned());
                        let reason = format!("run {name}: {reason}");
                        return Err(TestError::Agent { agent, phase, reason });
                    }
                    if run.state != RunState::Prepared {
                        let reason = message.unwrap_or_else(|| "it is not prepared".to_owned());
                        let reason = format!("run {name}: {reason}");
                        waiting = Some(TestError::Agent { agent, phase, reason });
                    }
                }
            }
            let Some(error) = waiting else { return Ok(()) };
            if stop.load(Ordering::Acquire) {
                return Err(TestError::Stopped);
            }
            if Instant::now() >= until {
                return Err(error);
            }
            std::thread::sleep(REPORT_INTERVAL);
            self.order_all("prepare", ORDER_TIMEOUT, |_| Some(Command::Report))?;
        }
    }

    /// Tells each agent the common start by its own clock.
    fn arm(&mut self) -> Result<(), TestError> {
        self.order_all("arm", ORDER_TIMEOUT, |_| Some(Command::Report))?;
        let Some(reference) = self.links.first() else { return Ok(()) };
        let lead = self.test.clock.lead.as_nanos() as i64;
        // All reports are younger than the lead, or the agents refuse.
        let (agent, at_ns) = (reference.agent.clone(), reference.report.now_ns + lead);
        let starts: BTreeMap<String, i64> = self
            .links
            .iter()
            .map(|link| {
                let of_reference = reference.report.peers.get(&link.agent);
                let offset = of_reference
                    .and_then(|peer| Some(peer.offset?.offset_ns))
                    .or_else(|| Some(-link.report.peers.get(&agent)?.offset?.offset_ns));
                let is_apart = link.agent != agent && !self.one_clock;
                let start = match offset.filter(|_| is_apart) {
                    Some(offset) => at_ns + offset.round() as i64,
                    // Not compared: the time since the report counts, whatever the clocks show.
                    None if is_apart => link.report.now_ns + lead,
                    None => at_ns,
                };
                (link.agent.clone(), start)
            })
            .collect();
        self.order_all("arm", ORDER_TIMEOUT, |link| {
            let at_ns = *starts.get(&link.agent)?;
            Some(Command::Arm { at_ns })
        })
    }

    /// Watches the runs until all are over, and tells receivers when senders have ended.
    fn watch(&mut self, stop: &AtomicBool, progress: &mut dyn FnMut(TestProgress)) {
        let started = Instant::now();
        let mut told: BTreeSet<(usize, String)> = BTreeSet::new();
        let mut is_stopped = false;
        loop {
            self.renew();
            self.look(progress);
            let has_lost = self.links.iter().any(|link| link.lost.is_some());
            let aborts = has_lost && self.test.when_agent_lost == WhenAgentLost::Abort;
            if (aborts || stop.load(Ordering::Acquire)) && !is_stopped {
                is_stopped = true;
                let present = self.links.iter_mut().filter(|link| link.lost.is_none());
                for link in present {
                    // An agent that does not answer stops when its lease ends.
                    let _ = link.order(&mut self.orders, "stop", Command::Stop, ORDER_TIMEOUT);
                }
            }
            self.tell_receivers(&mut told);
            let counters = self.counters();
            let (sent, received) = counters;
            progress(TestProgress::Running { elapsed: started.elapsed(), sent, received });
            let present = self.links.iter().filter(|link| link.lost.is_none());
            let mut runs = present.flat_map(|link| link.report.runs.values());
            if runs.all(|run| run.state.is_over() && run.is_logged) {
                return;
            }
            std::thread::sleep(REPORT_INTERVAL);
        }
    }

    /// Takes the reports of all agents. One that has not answered for longer than its lease has stopped,
    /// and is lost. While the bus is away, nobody is lost: the results arrive when it is back.
    fn look(&mut self, progress: &mut dyn FnMut(TestProgress)) {
        let bus_is_away = !self.orders.bus.state().is_connected();
        let patience = if bus_is_away { BUS_WAIT } else { self.lease.max(REPORT_TIMEOUT * 2) };
        for link in self.links.iter_mut().filter(|link| link.lost.is_none()) {
            let error = match link.look(&mut self.orders, REPORT_TIMEOUT) {
                Ok(()) => {
                    link.seen = Instant::now();
                    continue;
                }
                Err(error) => error,
            };
            if link.seen.elapsed() > patience {
                let reason = error.to_string();
                progress(TestProgress::Lost { agent: link.agent.clone(), reason: reason.clone() });
                link.lost = Some(reason);
            }
        }
    }

    /// Returns what agents measured in a test whose director did not finish, from the log.
    ///
    /// # Errors
    /// There is nothing of this test in the log.
    pub fn recover(mut self) -> Result<TestOutcome, TestError> {
        let mut outcome = TestOutcome::default();
        for iteration in 1..=self.test.iterations {
            self.log = LogReader::default();
            let collected = self.collect(iteration);
            if collected.is_empty() {
                break;
            }
            outcome.iterations.push(self.outcome(&collected));
        }
        match outcome.iterations.is_empty() {
            true => {
                let test = &self.orders.test;
                Err(TestError::Plan(format!("there is nothing of test {test} in the log")))
            }
            false => Ok(outcome),
        }
    }

    /// Tells the receivers of each run how many frames were sent to them, once all senders have
    /// ended or are lost.
    fn tell_receivers(&mut self, told: &mut BTreeSet<(usize, String)>) {
        for run in self.runs.iter().filter(|run| run.parts.len() > 1) {
            let mut sent = Vec::new();
            let mut all_ended = true;
            for link in self.links.iter().filter(|link| run.parts.contains_key(&link.node)) {
                let Some(report) = link.report.runs.get(&run.name) else { continue };
                all_ended &= report.has_sent_all || link.lost.is_some();
                sent.resize(sent.len().max(report.sent.len()), 0);
                for (sum, sent) in sent.iter_mut().zip(&report.sent) {
                    *sum += sent;
                }
            }
            if !all_ended {
                continue;
            }
            for link in self.links.iter_mut().filter(|link| link.lost.is_none()) {
                let key = (link.node, run.name.clone());
                let is_active =
                    link.report.runs.get(&run.name).is_some_and(|run| !run.state.is_over());
                if !run.parts.contains_key(&link.node) || !is_active || !told.insert(key) {
                    continue;
                }
                let frames = run.sent_to(link.node, &sent);
                let command = Command::Sent { run: run.name.clone(), frames };
                // The run may have ended in between; the next report shows it.
                let _ = link.order(&mut self.orders, "drain", command, ORDER_TIMEOUT);
            }
        }
    }

    fn counters(&self) -> (u64, u64) {
        let runs = self.links.iter().flat_map(|link| link.report.runs.values());
        runs.fold((0, 0), |(sent, received), run| {
            (sent + run.sent.iter().sum::<u64>(), received + run.received.iter().sum::<u64>())
        })
    }

    /// Reads the results of an iteration from the log.
    fn collect(&mut self, iteration: u32) -> Collected {
        let mut collected = Collected::default();
        let agents = self.agents();
        let until = Instant::now() + RESULTS_TIMEOUT;
        // Without reports, nobody knows which agents have exchanges; these follow the results.
        let settling = if self.links.is_empty() { SETTLING } else { Duration::ZERO };
        let mut complete_since = None;
        let Ok(pattern) = self.orders.site.test_results(&self.orders.test) else {
            return collected;
        };
        loop {
            let entries = self.orders.bus.read(RESULTS, &pattern, self.log.from, ENTRIES_MAX);
            let entries = entries.unwrap_or_default();
            for entry in &entries {
                let Ok(Some((subject, record))) = self.log.add(entry) else { continue };
                let agent = subject.rsplit('.').next().unwrap_or_default().to_owned();
                collected.add(&agent, record, iteration);
            }
            let is_lost = |agent: &String| {
                self.links.iter().any(|link| link.agent == *agent && link.lost.is_some())
            };
            let has_all = self.runs.iter().all(|run| {
                let expected = run.parts.keys().filter_map(|node| agents.get(*node));
                expected
                    .filter(|agent| !is_lost(agent))
                    .all(|agent| collected.has(agent, &run.name))
            });
            // Exchanges follow the results.
            let has_clocks = self.links.iter().filter(|link| link.lost.is_none()).all(|link| {
                link.report.peers.keys().all(|peer| collected.has_exchanges(&link.agent, peer))
            });
            let is_complete = has_all && has_clocks;
            let since = is_complete.then(|| *complete_since.get_or_insert_with(Instant::now));
            let is_settled = since.is_some_and(|since| since.elapsed() >= settling);
            if entries.is_empty() && (is_settled || Instant::now() >= until) {
                return collected;
            }
            if entries.is_empty() {
                std::thread::sleep(REPORT_INTERVAL);
            }
        }
    }

    fn outcome(&self, collected: &Collected) -> IterationOutcome {
        let agents = self.agents();
        let clocks =
            ClockFacts { one_clock: self.one_clock, asymmetry_ns: self.test.clock.asymmetry_ns };
        let runs = self.runs.iter().map(|run| {
            let result = merge::merge(run, &agents, collected, clocks).ok_or_else(|| {
                let errors = collected.failed.iter().filter(|((_, name), _)| *name == run.name);
                let errors: Vec<String> =
                    errors.map(|((agent, _), error)| format!("{agent}: {error}")).collect();
                if errors.is_empty() {
                    "no agent has a result".to_owned()
                } else {
                    errors.join("; ")
                }
            });
            RunOutcome { name: run.name.clone(), plan: run.text.clone(), result }
        });
        let lost =
            self.links.iter().filter_map(|link| Some((link.agent.clone(), link.lost.clone()?)));
        IterationOutcome {
            runs: runs.collect(),
            start_skew_ns: self.start_skew(collected),
            lost: lost.collect(),
        }
    }

    /// Returns the greatest difference between the starts of two agents, by the clock of the first.
    fn start_skew(&self, collected: &Collected) -> Option<f64> {
        let ((first, _), _) = collected.results.first_key_value()?;
        let reference = self.links.first().map_or(first, |link| &link.agent);
        let mut starts = Vec::new();
        for ((agent, _), (_, started)) in &collected.results {
            let started = (*started)?;
            let offset = match agent == reference || self.one_clock {
                true => 0.0,
                false => collected.offset(reference, agent, started)?,
            };
            starts.push(started as f64 - offset);
        }
        let first = starts.iter().copied().reduce(f64::min)?;
        let last = starts.iter().copied().reduce(f64::max)?;
        Some(last - first)
    }
}
