//! A benchmark method: each trial is an iteration of a run of streams over the nodes.
//!
//! ```text
//! method ──TrialInput──> DirectedTrial ── learning frames, wait ── plan of streams ──> iteration
//!        <─TrialOutput──               <── merged result ── wait until the device has settled
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirestorm_api::run::RunOptions;
use wirestorm_control::base;
use wirestorm_control::bench::{
    BenchParameters, CompletedTrial, Frames, FullTrial, InterfaceAddress, Links, MethodParameters,
    NamedTraffic, Paths, PlanOfTrial, TrialLog, Waits, check_completed, run_method, series,
};
use wirestorm_control::files::Files;
use wirestorm_control::method::method::Method;
use wirestorm_control::method::trial::{Trial, TrialError, TrialInput, TrialOutput};
use wirestorm_control::plan::test_plan::{TestPlan, TestRunKind};
use wirestorm_control::result::RunResult;
use wirestorm_control::traffic::SeriesOptions;
use wirestorm_store::record::BenchResult;

use super::super::protocol::Command;
use super::limits;
use super::plan::{self, StreamIds};
use super::{BenchOutcome, Director, ORDER_TIMEOUT, TestError, TestOutcome, TestProgress};

/// Callback of a test, which the method and its trials share.
type Shared<'a> = RefCell<&'a mut dyn FnMut(TestProgress<'_>)>;

/// A benchmark method of a test.
#[derive(Debug)]
pub(super) struct PlannedBench {
    /// Name of the run.
    name: String,
    parameters: BenchParameters,
    paths: Paths,
    waits: Waits,
    /// Options of the run of each trial.
    options: RunOptions,
    /// Stream IDs of the runs of trials.
    streams: StreamIds,
}

impl PlannedBench {
    /// Returns the method of a test; `None` if the test has other runs. `place`: the folder of the test
    /// file, and its files. `seed`: for stream IDs that other tests do not use.
    ///
    /// # Errors
    /// A parameter is wrong, or the ports do not fit the test.
    pub(super) fn of(
        test: &TestPlan,
        place: (&Path, &dyn Files),
        seed: u64,
    ) -> Result<Option<Self>, String> {
        let method = test.runs.iter().find_map(|run| match &run.kind {
            TestRunKind::Bench(document) => Some((run, document)),
            _ => None,
        });
        let Some((run, document)) = method else { return Ok(None) };
        let failed = |error: String| format!("run {}: {error}", run.name);
        let of_bench = |error: String| failed(format!("bench.{error}"));
        let parameters = BenchParameters::read(document, place).map_err(of_bench)?;
        for (key, names) in [("tx", &parameters.paths.tx), ("rx", &parameters.paths.rx)] {
            for name in names {
                plan::find(test, name).ok_or_else(|| {
                    of_bench(format!("{key}: {}", plan::unknown_port(test, name)))
                })?;
            }
        }
        let wrong = |error: &dyn std::fmt::Display| of_bench(error.to_string());
        let paths = parameters.paths.paths(addresses(test).map_err(failed)?);
        let waits = parameters.paths.waits().map_err(|error| wrong(&error))?;
        Ok(Some(Self {
            name: run.name.clone(),
            paths: paths.map_err(|error| wrong(&error))?,
            waits,
            options: options(&run.options).map_err(failed)?,
            streams: StreamIds::new(seed),
            parameters,
        }))
    }

    /// Returns the time around each trial, for the estimate of the rest: the waits, and the time
    /// before the start of each run.
    fn around(&self, test: &TestPlan) -> base::time::Duration {
        let runs = 1 + u64::from(self.waits.sends_learning_frames);
        let leads = test.clock.lead.as_nanos().saturating_mul(runs);
        self.waits.total().saturating_add(base::time::Duration::from_nanos(leads))
    }

    /// Returns the nodes of the ports.
    pub(super) fn nodes(&self, test: &TestPlan) -> BTreeSet<usize> {
        let ports = self.paths.interfaces().into_iter();
        ports.filter_map(|name| Some(plan::find(test, name)?.node)).collect()
    }

    /// Returns the pairs of nodes between which test frames go: receiver and sender.
    pub(super) fn pairs(&self, test: &TestPlan) -> BTreeSet<(usize, usize)> {
        let node = |name: &str| Some(plan::find(test, name)?.node);
        let mut pairs = BTreeSet::new();
        for pair in &self.paths.pairs {
            let Some((tx, rx)) = node(&pair.tx).zip(node(&pair.rx)) else { continue };
            pairs.insert((rx, tx));
            if self.paths.is_bidirectional {
                pairs.insert((tx, rx));
            }
        }
        pairs.into_iter().filter(|(receiver, sender)| receiver != sender).collect()
    }
}

/// Returns the addresses of all ports, with the router of each.
fn addresses(test: &TestPlan) -> Result<Vec<InterfaceAddress>, String> {
    let mut addresses = Vec::new();
    for of_test in &test.ports {
        let port = of_test.port().map_err(|error| format!("port {}: {error}", of_test.name))?;
        for prefix in port.addresses {
            let is_of = |gateway: &&std::net::IpAddr| gateway.is_ipv6() == prefix.address.is_ipv6();
            addresses.push(InterfaceAddress {
                interface: port.name.clone(),
                address: prefix.address,
                prefix: prefix.length,
                gateway: port.gateways.iter().find(is_of).copied(),
            });
        }
    }
    Ok(addresses)
}

/// Returns the options of the runs of trials. The others would change what the method asks for.
fn options(document: &serde_json::Value) -> Result<RunOptions, String> {
    let options: RunOptions =
        serde_json::from_value(document.clone()).map_err(|error| format!("options: {error}"))?;
    let RunOptions { backend, workers, catch_up, force_interface, .. } = options.clone();
    let usable =
        RunOptions { backend, workers, catch_up, force_interface, ..RunOptions::default() };
    if options != usable {
        let expected = "expected backend, workers, catch_up or force_interface: the method sets \
                        what is sent and judges it";
        return Err(format!("options: found others, {expected}"));
    }
    // The method judges the load.
    Ok(RunOptions { tolerance: Some(100.0), ..usable })
}

impl Director {
    /// Runs a method to its end. A failed trial is in the outcome, after the completed ones.
    pub(super) fn run_bench(
        &mut self,
        bench: &PlannedBench,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(TestProgress<'_>),
    ) -> Result<TestOutcome, TestError> {
        progress(TestProgress::Phase("prepare"));
        let ports = self.describe(bench)?;
        let method = method(bench, &ports)?;
        progress(TestProgress::Phase("run"));
        progress(TestProgress::Method { name: &bench.name, method: &method });
        let progress = Shared::new(progress);
        let around_s = bench.around(&self.test).as_secs_f64();
        let mut trial = DirectedTrial {
            director: self,
            bench,
            macs: ports.into_iter().map(|port| (port.name, port.mac)).collect(),
            traffic: MethodParameters::traffic(&method),
            iteration: 0,
            streams: bench.streams,
            stop,
            progress: &progress,
            result: None,
        };
        let mut log = ProgressLog(&progress);
        let outcome = run_method(&method, Vec::new(), around_s, &mut trial, &mut log);
        let result = BenchResult::new(&method, outcome, false);
        let limits = limits::judge_method(&self.limits, &bench.name, &result);
        let bench = Some(BenchOutcome { name: bench.name.clone(), result, limits });
        Ok(TestOutcome { iterations: Vec::new(), bench })
    }

    /// Asks the agents for facts about the ports of a method.
    fn describe(&mut self, bench: &PlannedBench) -> Result<Vec<DescribedPort>, TestError> {
        let names = bench.paths.interfaces();
        let ports: Vec<_> = names.into_iter().filter_map(|it| plan::find(&self.test, it)).collect();
        let mut interfaces: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for port in &ports {
            interfaces.entry(port.node).or_default().push(port.interface.clone());
        }
        let of_node = |node: usize| interfaces.get(&node).cloned();
        let ports: Vec<_> = ports
            .into_iter()
            .map(|port| (port.name.clone(), port.node, port.interface.clone()))
            .collect();
        self.order_all("prepare", ORDER_TIMEOUT, |link| of_node(link.node).map(Command::Describe))?;
        let described = ports.into_iter().map(|(name, node, interface)| {
            let link = self.links.iter().find(|link| link.node == node);
            let report = link.and_then(|link| link.report.interfaces.get(&interface));
            let agent = link.map(|link| link.agent.clone()).unwrap_or_default();
            let failed = |reason: String| TestError::Agent {
                agent: agent.clone(),
                phase: "prepare",
                reason,
            };
            let Some(report) = report else {
                return Err(failed(format!("it does not describe {interface}")));
            };
            let Some(mac) = report.mac else {
                return Err(failed(format!(
                    "{interface}: expected an Ethernet interface, found one without a MAC address"
                )));
            };
            Ok(DescribedPort { name, mac, speed_bps: report.speed_bps })
        });
        described.collect()
    }
}

/// A port of a method.
struct DescribedPort {
    name: String,
    mac: [u8; 6],
    speed_bps: Option<u64>,
}

/// Returns the method for the slowest of its links.
fn method(bench: &PlannedBench, ports: &[DescribedPort]) -> Result<Method, TestError> {
    let of_bench = |error: &dyn std::fmt::Display| {
        TestError::Plan(format!("run {}: bench.{error}", bench.name))
    };
    let parameters = &bench.parameters.paths;
    let reported = || ports.iter().filter_map(|port| port.speed_bps).min();
    let bps = parameters.link_bps().map_err(|error| of_bench(&error))?.or_else(reported);
    if bps.is_none() && bench.parameters.method.needs_link_speed() {
        let message = "link_speed: the drivers do not report the speed of the links; give it, such \
                       as 10G";
        return Err(of_bench(&message));
    }
    let load_max = parameters.load_max().map_err(|error| of_bench(&error))?;
    let method = bench.parameters.method.method(Links { bps: bps.unwrap_or(0), load_max });
    method.map_err(|error| of_bench(&error))
}

/// Executes trials on the nodes of a test.
struct DirectedTrial<'a, 'p> {
    director: &'a mut Director,
    bench: &'a PlannedBench,
    /// MAC address of each port.
    macs: Vec<(String, [u8; 6])>,
    traffic: NamedTraffic,
    /// Number of the last iteration; the agents count them, too.
    iteration: u32,
    /// Stream IDs. Each run has others, so that late frames of one trial do not count in the next.
    streams: StreamIds,
    stop: &'a AtomicBool,
    progress: &'a Shared<'p>,
    /// Result of the last trial.
    result: Option<Arc<RunResult>>,
}

impl DirectedTrial<'_, '_> {
    /// Runs a plan to its end on all nodes.
    fn send(
        &mut self,
        traffic: PlanOfTrial,
        series: Option<SeriesOptions>,
    ) -> Result<RunResult, TrialError> {
        let PlanOfTrial { text, plan, .. } = traffic;
        let Self { director, bench, streams, stop, progress, .. } = self;
        let options = &bench.options;
        let first = streams.take_again(plan.flows.len(), options.workers);
        let first = first.map_err(TrialError::Failed)?;
        let run = plan::streams(&director.test, &bench.name, plan, text, options, first);
        let mut run = run.map_err(TrialError::Failed)?;
        if let Some(series) = series {
            run.set_series(series);
        }
        director.runs = vec![run];
        self.iteration += 1;
        let iteration = self.iteration;
        let outcome = director.iterate(iteration, stop, &mut |it| match it {
            // The phases of a trial are those of every other one.
            TestProgress::Phase(_) => {}
            it => (progress.borrow_mut())(it),
        });
        director.collected.forget(iteration);
        let outcome = outcome.map_err(|error| match error {
            TestError::Stopped => TrialError::Stopped,
            error => TrialError::Failed(error.to_string()),
        })?;
        let lost = outcome.lost.first();
        let lost = lost.map(|(agent, reason)| format!("agent {agent} was lost: {reason}"));
        let unreadable = outcome.unreadable.first();
        let unreadable =
            unreadable.map(|error| format!("what an agent measured is missing: {error}"));
        if let Some(reason) = lost.or(unreadable) {
            return Err(TrialError::Failed(reason));
        }
        let run = outcome.runs.into_iter().next();
        let result = run.map_or_else(|| Err("the trial has no run".to_owned()), |run| run.result);
        let result = result.map_err(TrialError::Failed)?;
        check_completed(&result)?;
        Ok(result)
    }

    fn check_stop(&self) -> Result<(), TrialError> {
        if self.stop.load(Ordering::Acquire) { Err(TrialError::Stopped) } else { Ok(()) }
    }

    /// Waits for this time, or until a stop.
    fn wait(&mut self, time: base::time::Duration) {
        self.director.wait(Duration::from_nanos(time.as_nanos()), self.stop);
    }
}

impl Trial for DirectedTrial<'_, '_> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        self.check_stop()?;
        let started = Instant::now();
        self.result = None;
        let Waits { sends_learning_frames, learning: learning_wait, settle } = self.bench.waits;
        let paths = &self.bench.paths;
        let frames = Frames { paths, macs: &self.macs, traffic: &self.traffic };
        let trial = frames.trial(input).map_err(TrialError::Failed)?;
        if sends_learning_frames {
            let learning = frames.learning(input).map_err(TrialError::Failed)?;
            self.send(learning, None)?;
            self.wait(learning_wait);
            self.check_stop()?;
        }
        let steps = trial.steps.clone();
        let result = self.send(trial, series(input))?;
        let mut output = steps.output(input, &result);
        self.result = Some(Arc::new(result));
        // A stop in this wait keeps the trial; the next one does not begin.
        self.wait(settle);
        output.elapsed_s = started.elapsed().as_secs_f64();
        Ok(output)
    }
}

impl FullTrial for DirectedTrial<'_, '_> {
    fn take_result(&mut self) -> Option<Arc<RunResult>> {
        self.result.take()
    }
}

/// Passes the trials of a method to the callback of the test.
struct ProgressLog<'a, 'p>(&'a Shared<'p>);

impl TrialLog for ProgressLog<'_, '_> {
    fn started(&mut self, number: u32, input: &TrialInput, remaining_s: f64) {
        (self.0.borrow_mut())(TestProgress::TrialStarted { number, input, remaining_s });
    }

    fn completed(&mut self, trial: &CompletedTrial) -> Result<(), String> {
        (self.0.borrow_mut())(TestProgress::Trial(trial));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_control::files::HostFiles;

    use super::*;

    const TEST: &str = "
nodes: [left, right]
ports:
  - {name: a, node: left, interface: eth1, addresses: [198.18.0.2/24], gateway: 198.18.0.1}
  - {name: b, node: right, interface: eth2}
runs:
  - bench: {method: rfc2544, tx: a, rx: b, tests: throughput, bidirectional: true}
    options: {backend: af_packet}
";

    fn planned(from: &str, to: &str) -> Result<PlannedBench, String> {
        assert!(TEST.contains(from), "{from}");
        let test = TestPlan::parse(&TEST.replace(from, to)).unwrap();
        PlannedBench::of(&test, (Path::new(""), &HostFiles), 7).map(Option::unwrap)
    }

    #[test]
    fn ports_and_addresses_are_those_of_the_test() {
        let test = TestPlan::parse(TEST).unwrap();
        let bench = planned("rx: b", "rx: b").unwrap();
        assert_eq!(bench.nodes(&test), BTreeSet::from([0, 1]));
        assert_eq!(bench.pairs(&test), BTreeSet::from([(1, 0), (0, 1)]));
        let [address] = &bench.paths.addresses[..] else { panic!("one address") };
        assert_eq!((&*address.interface, address.prefix), ("a", 24));
        assert_eq!(address.gateway, Some([198, 18, 0, 1].into()));
        assert_eq!(bench.options.backend.as_deref(), Some("af_packet"));
    }

    #[test]
    fn errors_name_the_run_and_the_key() {
        for (from, to, expected) in [
            ("rx: b", "rx: c", "run run-1: bench.rx: found port \"c\", expected one of the test's"),
            ("method: rfc2544", "method: rfc9411", "run run-1: bench.method: found rfc9411"),
            ("tests: throughput", "trial: 5", "run run-1: bench.trial: invalid type"),
            ("backend: af_packet", "duration: 5s", "run run-1: options: found others"),
            ("198.18.0.2/24", "198.18.0.2/99", "run run-1: port a:"),
        ] {
            let error = planned(from, to).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn estimate_has_the_waits_and_the_leads_of_a_trial() {
        let test = TestPlan::parse(TEST).unwrap();
        // Learning frames and their wait, and the wait after the trial.
        let bench = planned("rx: b", "rx: b").unwrap();
        assert_eq!(bench.around(&test).as_secs_f64(), 2.0 + 5.0 + 2.0 * 0.5);
        let bench = planned("rx: b", "rx: b, no_learning: true, settle: 1s").unwrap();
        assert_eq!(bench.around(&test).as_secs_f64(), 1.0 + 0.5);
    }

    #[test]
    fn method_takes_the_speed_of_the_slowest_link() {
        let port = |speed_bps| DescribedPort { name: "a".into(), mac: [2; 6], speed_bps };
        let bench = planned("rx: b", "rx: b").unwrap();
        let ports = [Some(10_000_000_000), None, Some(1_000_000_000)].map(port);
        let Ok(Method::Rfc2544(found)) = method(&bench, &ports) else { panic!() };
        assert_eq!(found.link_bps, 1_000_000_000);
        let error = method(&bench, &[port(None)]).unwrap_err().to_string();
        assert!(error.contains("bench.link_speed: the drivers do not report"), "{error}");
        let bench = planned("rx: b", "rx: b, link_speed: 25G").unwrap();
        let Ok(Method::Rfc2544(found)) = method(&bench, &ports) else { panic!() };
        assert_eq!(found.link_bps, 25_000_000_000);
    }
}
