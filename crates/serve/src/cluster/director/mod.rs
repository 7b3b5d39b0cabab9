//! Director: runs a test on agents.
//!
//! ```text
//! lease of each agent ─> write files ─> compare clocks ─> fetch files ─> prepare ─> all prepared
//!    ─> arm with a common start
//!    ─> run: reports of all agents ─> drain: senders' counts to receivers ─> results from the log
//! ```
//!
//! Until all agents are armed, any failure ends the test, and nothing is sent.

mod agents;
mod bench;
mod clocks;
mod collected;
mod comparison;
mod contents;
mod exactness;
mod leases;
mod limits;
mod merge;
mod outcome;
mod plan;
mod presence;
mod results;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirestorm_api::run::RunState;
use wirestorm_bus::cluster::{LEASES, RESULTS};
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::{BucketConfig, Bus, LogConfig};
use wirestorm_control::files::Files;
use wirestorm_control::plan::test_plan::{ClockPath, TestPlan, WhenAgentLost};
use wirestorm_control::plan::traffic::parse_time;
use wirestorm_report::limit::Limit;

use super::log::LogReader;
use super::protocol::{Command, LEASES_NS};
use agents::{AgentLink, Orders};
use bench::PlannedBench;
use collected::Collected;
use contents::Contents;
use leases::Answering;
pub use limits::JudgedLimit;
pub use outcome::{
    BenchOutcome, IterationOutcome, RunOutcome, TestError, TestOutcome, TestProgress,
};
use plan::PlannedRun;

/// Time to wait for the answer to an order, and to the order to prepare.
const ORDER_TIMEOUT: Duration = Duration::from_secs(2);
const PREPARE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait until all runs are prepared: a neighbour that does not answer takes 10 s.
const PREPARED_TIMEOUT: Duration = Duration::from_secs(30);
/// Time to wait for a bus that is away. The agents have stopped by then, and keep their results.
const BUS_WAIT: Duration = Duration::from_secs(60);
/// Interval of the reports of agents.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of the questions whether the runs are prepared.
const PREPARED_INTERVAL: Duration = Duration::from_millis(20);
/// Time for which the bus keeps results.
const RESULTS_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
const RESULTS_BYTES_MAX: u64 = 1 << 30;
/// Why an agent without runs is lost.
const RESTARTED: &str = "it was started again, and has no runs";
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
    /// Reads these files.
    pub files: Arc<dyn Files>,
    /// Identifier of the test, unique in the site: letters, digits, `-` and `_`.
    pub id: String,
    /// Time after which an agent stops without an answer from the director.
    pub lease: Duration,
    /// Time to wait until all agents are on the bus.
    pub wait: Duration,
    /// Whether all agents have the clock of this machine, so nothing is to be compared.
    pub one_clock: bool,
}

impl DirectorOptions {
    /// Time of a lease by default.
    pub const LEASE: &'static str = "5s";

    /// Reads the time of a lease.
    ///
    /// # Errors
    /// A message if it is no time that agents accept: 100 ms to 600 s.
    pub fn parse_lease(text: &str) -> Result<Duration, String> {
        let lease = parse_time(text).filter(|it| LEASES_NS.contains(&it.as_nanos()));
        let lease = lease.ok_or_else(|| {
            format!("found {text:?}, expected a time of 100ms to 600s, such as 5s")
        })?;
        Ok(Duration::from_nanos(lease.as_nanos()))
    }
}

/// Runs a test on agents.
#[derive(Debug)]
pub struct Director {
    orders: Orders,
    test: TestPlan,
    /// Runs of an iteration; for a method, the run of the trial.
    runs: Vec<PlannedRun>,
    limits: Vec<Limit>,
    /// Files of the test.
    files: Arc<dyn Files>,
    /// Files and large plans; `None` before [`Self::read_files`].
    contents: Option<Arc<Contents>>,
    /// Whether the object store may have contents of the test.
    has_objects: bool,
    bench: Option<PlannedBench>,
    lease: Duration,
    wait: Duration,
    one_clock: bool,
    links: Vec<AgentLink>,
    log: LogReader,
    collected: Collected,
    answering: Answering,
    renewed: Instant,
}

impl Director {
    /// Checks a test, and plans its runs. Nothing is sent to agents yet.
    ///
    /// # Errors
    /// The test has errors, or the bus refuses.
    pub fn new(options: DirectorOptions) -> Result<Self, TestError> {
        let DirectorOptions {
            name,
            site,
            bus,
            key,
            test,
            folder,
            files,
            id,
            lease,
            wait,
            one_clock,
        } = options;
        // The identifier is as good a seed as any: tests at the same time have different ones.
        let seed =
            id.bytes().fold(17_u64, |seed, byte| seed.wrapping_mul(1_000_003) ^ u64::from(byte));
        let place = (&*folder, &files);
        let bench = PlannedBench::of(&test, (&folder, &*files), seed).map_err(TestError::Plan)?;
        let runs = match bench {
            None => plan::plan_runs(&test, place, seed).map_err(TestError::Plan)?,
            Some(_) => Vec::new(),
        };
        let limits = limits::read(&test.fail_if).map_err(TestError::Plan)?;
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
        let orders =
            Orders { bus, site, key, director: name, test: id, issued_unix_ns: AtomicU64::new(0) };
        Ok(Self {
            orders,
            test,
            runs,
            limits,
            files,
            contents: None,
            has_objects: false,
            bench,
            lease,
            wait,
            one_clock,
            links: Vec::new(),
            log: LogReader::default(),
            collected: Collected::default(),
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
        progress: &mut dyn FnMut(TestProgress<'_>),
    ) -> Result<TestOutcome, TestError> {
        let outcome = self.run_iterations(stop, progress);
        let orders = &self.orders;
        agents::each(self.links.iter_mut(), |link| {
            // Agents that do not answer stop when their lease ends.
            let _ = link.order(orders, "release", Command::Release, ORDER_TIMEOUT);
            link.release(orders);
        });
        self.remove_contents();
        outcome
    }

    fn run_iterations(
        &mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(TestProgress<'_>),
    ) -> Result<TestOutcome, TestError> {
        self.read_files()?;
        progress(TestProgress::Phase("agents"));
        self.wait_for_agents(stop)?;
        self.acquire()?;
        self.write_contents(stop, || progress(TestProgress::Phase("files")))?;
        if !self.one_clock && self.test.clock.path != ClockPath::None {
            progress(TestProgress::Phase("clocks"));
            self.compare(stop)?;
        }
        if let Some(bench) = self.bench.take() {
            let outcome = self.run_bench(&bench, stop, progress);
            self.bench = Some(bench);
            return outcome;
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
                Ok(done) => {
                    progress(TestProgress::Iteration(iteration, &done));
                    outcome.iterations.push(done);
                }
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

    /// Nodes that have something to do, and their agents.
    fn used(&self) -> Vec<(usize, String)> {
        let mut nodes: BTreeSet<usize> =
            self.runs.iter().flat_map(|run| run.parts.keys().copied()).collect();
        nodes.extend(self.bench.iter().flat_map(|bench| bench.nodes(&self.test)));
        let agents = self.agents();
        nodes.into_iter().filter_map(|node| Some((node, agents.get(node)?.clone()))).collect()
    }

    /// Takes the leases of all agents that have something to do.
    fn acquire(&mut self) -> Result<(), TestError> {
        let used = self.used();
        let mut names = BTreeSet::new();
        for (_, agent) in &used {
            if !names.insert(agent) {
                let reason = "two nodes of the test have this agent: make them one".to_owned();
                return Err(TestError::Agent { agent: agent.clone(), phase: "lease", reason });
            }
        }
        let orders = &self.orders;
        let links =
            agents::each(used.iter(), |(node, agent)| AgentLink::acquire(orders, *node, agent));
        let mut outcome = Ok(());
        for link in links {
            match link {
                Ok(link) => {
                    self.answering.fences().insert(link.agent.clone(), link.fence);
                    self.links.push(link);
                }
                // The leases of the others are given back at the end.
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
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
        command: impl Fn(&AgentLink) -> Option<Command> + Sync,
    ) -> Result<(), TestError> {
        let orders = &self.orders;
        let present = self.links.iter_mut().filter(|link| link.lost.is_none());
        let outcomes = agents::each(present, |link| match command(link) {
            Some(command) => link.order(orders, phase, command, timeout),
            None => Ok(()),
        });
        self.renew();
        outcomes.into_iter().collect()
    }

    fn iterate(
        &mut self,
        iteration: u32,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(TestProgress<'_>),
    ) -> Result<IterationOutcome, TestError> {
        progress(TestProgress::Phase("prepare"));
        let prepared = self.fetch(stop).and_then(|()| self.prepare(stop));
        if let Err(error) = prepared.and_then(|()| self.arm()) {
            let _ = self.order_all("stop", ORDER_TIMEOUT, |_| Some(Command::Stop));
            return Err(error);
        }
        progress(TestProgress::Phase("run"));
        self.watch(stop, progress);
        progress(TestProgress::Phase("results"));
        self.collect(iteration);
        Ok(self.outcome(iteration))
    }

    fn prepare(&mut self, stop: &AtomicBool) -> Result<(), TestError> {
        let drift = |links: &[AgentLink], receiver: usize, sender: usize| {
            let of_node = |node: usize| links.iter().find(|link| link.node == node);
            Some(clocks::reported(of_node(receiver)?, of_node(sender)?)?.drift_ppm)
        };
        for run in &mut self.runs {
            for node in run.parts.keys().copied().collect::<Vec<_>>() {
                run.set_drift(node, |sender| drift(&self.links, node, sender).unwrap_or(0.0));
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
            self.check_runs("prepare")?;
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
            std::thread::sleep(PREPARED_INTERVAL);
            self.order_all("prepare", ORDER_TIMEOUT, |link| {
                let mut runs = link.report.runs.values();
                runs.any(|run| run.state != RunState::Prepared).then_some(Command::Report)
            })?;
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
                let is_apart = link.agent != agent && !self.one_clock;
                let offset = clocks::reported(reference, link).filter(|_| is_apart);
                let start = match offset {
                    Some(offset) => at_ns + offset.offset_ns.round() as i64,
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
        })?;
        self.check_runs("arm")
    }

    /// Checks that no agent was started again since it prepared its runs.
    fn check_runs(&self, phase: &'static str) -> Result<(), TestError> {
        for link in &self.links {
            let runs = self.runs.iter().filter(|run| run.parts.contains_key(&link.node)).count();
            if link.report.runs.len() < runs {
                let (agent, reason) = (link.agent.clone(), RESTARTED.to_owned());
                return Err(TestError::Agent { agent, phase, reason });
            }
        }
        Ok(())
    }

    /// Watches the runs until all are over, and tells receivers when senders have ended.
    fn watch(&mut self, stop: &AtomicBool, progress: &mut dyn FnMut(TestProgress<'_>)) {
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
                // An agent that does not answer stops when its lease ends.
                let _ = self.order_all("stop", ORDER_TIMEOUT, |_| Some(Command::Stop));
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

    /// Takes the reports of all agents. One that has not answered for two thirds of the lease is lost,
    /// so that the others are stopped within the lease. While the bus is away, nobody is lost: the
    /// results arrive when it is back.
    fn look(&mut self, progress: &mut dyn FnMut(TestProgress<'_>)) {
        let bus_is_away = !self.orders.bus.state().is_connected();
        let patience = if bus_is_away { BUS_WAIT } else { self.lease * 2 / 3 };
        let timeout = (self.lease / 4).min(ORDER_TIMEOUT);
        let orders = &self.orders;
        let present = self.links.iter_mut().filter(|link| link.lost.is_none());
        let lost = agents::each(present, |link| {
            let runs = link.report.runs.len();
            match link.look(orders, timeout) {
                Ok(()) if link.report.runs.len() < runs => {
                    link.lost = Some(RESTARTED.to_owned());
                }
                Ok(()) => link.seen = Instant::now(),
                Err(error) if link.seen.elapsed() > patience => link.lost = Some(error.to_string()),
                Err(_) => {}
            }
            Some((link.agent.clone(), link.lost.clone()?))
        });
        for (agent, reason) in lost.into_iter().flatten() {
            progress(TestProgress::Lost { agent, reason });
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
                // An agent that does not answer is lost; the next report shows it.
                let _ = link.order(&self.orders, "drain", command, ORDER_TIMEOUT);
            }
        }
    }

    fn counters(&self) -> (u64, u64) {
        let runs = self.links.iter().flat_map(|link| link.report.runs.values());
        runs.fold((0, 0), |(sent, received), run| {
            (sent + run.sent.iter().sum::<u64>(), received + run.received.iter().sum::<u64>())
        })
    }
}
