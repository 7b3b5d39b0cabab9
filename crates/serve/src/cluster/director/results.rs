//! Reads the results of a test from the log.

use std::time::{Duration, Instant};

use wirestorm_bus::cluster::RESULTS;
use wirestorm_control::plan::test_plan::ClockPlan;

use super::comparison::{ClockFacts, Comparisons};
use super::{
    BUS_WAIT, Director, IterationOutcome, REPORT_INTERVAL, RunOutcome, TestError, TestOutcome,
};
use super::{limits, merge};

/// Time to wait for results in the log after all runs are over.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to wait for more records of a lost test once all results are there.
const SETTLING: Duration = Duration::from_secs(1);
/// Number of log entries to read at once.
const ENTRIES_MAX: usize = 64;

impl Director {
    /// Returns what agents measured in a test whose director did not finish, from the log.
    ///
    /// # Errors
    /// There is nothing of this test in the log, or it runs a benchmark method.
    pub fn recover(mut self) -> Result<TestOutcome, TestError> {
        if self.bench.is_some() {
            let reason = "the trials of a benchmark method are in the run history of its director \
                          (--save), not in the log of the bus";
            return Err(TestError::Plan(reason.to_owned()));
        }
        let mut outcome = TestOutcome::default();
        for iteration in 1..=self.test.iterations {
            self.collect(iteration);
            if self.collected.is_empty(iteration) {
                break;
            }
            outcome.iterations.push(self.outcome(iteration));
        }
        match outcome.iterations.is_empty() {
            true => {
                let test = &self.orders.test;
                Err(TestError::Plan(format!("there is nothing of test {test} in the log")))
            }
            false => Ok(outcome),
        }
    }

    /// Reads the log until it has the results of an iteration. Also waits for those of lost agents,
    /// which may come back, and for a bus that is away.
    pub(super) fn collect(&mut self, iteration: u32) {
        let agents = self.agents();
        let mut until = Instant::now() + RESULTS_TIMEOUT;
        // Without reports, nobody knows which agents have exchanges; these follow the results.
        let settling = if self.links.is_empty() { SETTLING } else { Duration::ZERO };
        let mut complete_since = None;
        let Ok(pattern) = self.orders.site.test_results(&self.orders.test) else { return };
        let give_up = Instant::now() + BUS_WAIT;
        loop {
            let read = self.orders.bus.read(RESULTS, &pattern, self.log.from, ENTRIES_MAX);
            if read.is_err() {
                // The agents append what they have once the bus is back.
                until = (Instant::now() + RESULTS_TIMEOUT).min(give_up);
            }
            let entries = read.unwrap_or_default();
            for entry in &entries {
                match self.log.add(entry) {
                    Ok(None) => {}
                    Ok(Some((subject, record))) => {
                        let agent = subject.rsplit('.').next().unwrap_or_default().to_owned();
                        self.collected.add(&agent, record);
                    }
                    Err(error) => self.collected.add_unreadable(error),
                }
            }
            let collected = &self.collected;
            let has_all = self.runs.iter().all(|run| {
                let mut expected = run.parts.keys().filter_map(|node| agents.get(*node));
                expected.all(|agent| collected.has(iteration, agent, &run.name))
            });
            let has_clocks = self.links.iter().all(|link| {
                let report = &link.report;
                let is_compared =
                    !report.peers.is_empty() || report.reference.is_some() || report.ptp.is_some();
                !is_compared || collected.has_compared(iteration, &link.agent)
            });
            let is_complete = has_all && has_clocks;
            let since = is_complete.then(|| *complete_since.get_or_insert_with(Instant::now));
            let is_settled = since.is_some_and(|since| since.elapsed() >= settling);
            if entries.is_empty() && (is_settled || Instant::now() >= until) {
                return;
            }
            if entries.is_empty() {
                std::thread::sleep(REPORT_INTERVAL);
            }
        }
    }

    pub(super) fn outcome(&self, iteration: u32) -> IterationOutcome {
        let collected = &self.collected;
        let agents = self.agents();
        let ClockPlan { asymmetry_ns, bias, source, .. } = self.test.clock;
        let bias_ns = bias.as_nanos() as f64;
        let clocks = ClockFacts { one_clock: self.one_clock, asymmetry_ns, bias_ns, source };
        let comparisons = Comparisons::new(collected, clocks);
        let runs = self.runs.iter().map(|run| {
            let merged = merge::merge(run, &agents, collected, iteration, &comparisons);
            let result = merged.ok_or_else(|| {
                let errors = collected.failures(iteration, &run.name);
                match errors.is_empty() {
                    true => "no agent has a result".to_owned(),
                    false => errors.join("; "),
                }
            });
            RunOutcome { name: run.name.clone(), plan: run.text.clone(), result }
        });
        let runs: Vec<RunOutcome> = runs.collect();
        let lost =
            self.links.iter().filter_map(|link| Some((link.agent.clone(), link.lost.clone()?)));
        IterationOutcome {
            limits: limits::judge(&self.limits, &runs),
            runs,
            start_skew_ns: self.start_skew(iteration, &comparisons),
            lost: lost.collect(),
            unreadable: self.collected.unreadable(),
        }
    }

    /// Returns the greatest difference between the starts of two agents, by the clock of the first.
    fn start_skew(&self, iteration: u32, comparisons: &Comparisons<'_>) -> Option<f64> {
        let starts = self.collected.starts(iteration)?;
        let reference = match self.links.first() {
            Some(link) => &*link.agent,
            None => starts.first()?.0,
        };
        let on_reference = |(agent, at): (&str, i64)| match agent == reference || self.one_clock {
            true => Some(at as f64),
            false => Some(at as f64 - comparisons.offset(reference, agent, at)?),
        };
        let starts: Vec<f64> = starts.into_iter().map(on_reference).collect::<Option<_>>()?;
        let first = starts.iter().copied().reduce(f64::min)?;
        let last = starts.iter().copied().reduce(f64::max)?;
        Some(last - first)
    }
}
