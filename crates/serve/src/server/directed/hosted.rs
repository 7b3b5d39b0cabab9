//! A test that the server directs: its state, as the API shows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wirestorm_api::test::{TestIteration, TestLine, TestState, TestStatus, TestSummary};

use crate::server::ports::now_unix_ns;

/// Lines of progress and iterations that a status has.
const LINES_MAX: usize = 200;
const ITERATIONS_MAX: usize = 20;

/// A test.
pub(super) struct HostedTest {
    /// Interfaces of this machine that it uses.
    interfaces: Vec<String>,
    status: Mutex<TestStatus>,
    /// Wakes those who wait for the end.
    is_over: Condvar,
    stop: AtomicBool,
}

impl HostedTest {
    /// Creates a test that begins now. `interfaces`: those of this machine that it uses.
    pub(super) fn new(test: TestSummary, interfaces: Vec<String>) -> Self {
        let (lines, results) = (Vec::new(), Vec::new());
        let status = TestStatus { test, elapsed_s: None, sent: 0, received: 0, lines, results };
        Self { interfaces, ..Self::of(status) }
    }

    /// Creates a test with this status.
    pub(super) fn of(status: TestStatus) -> Self {
        Self {
            interfaces: Vec::new(),
            status: Mutex::new(status),
            is_over: Condvar::new(),
            stop: AtomicBool::new(false),
        }
    }

    pub(super) fn status(&self) -> TestStatus {
        self.lock().clone()
    }

    pub(super) fn summary(&self) -> TestSummary {
        self.lock().test.clone()
    }

    pub(super) fn interfaces(&self) -> &[String] {
        &self.interfaces
    }

    /// Flag that stops the director.
    pub(super) const fn stop_flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Asks the director to stop, for a reason. An earlier reason stays.
    pub(super) fn stop(&self, reason: &str) {
        let mut status = self.lock();
        if status.test.state.is_over() {
            return;
        }
        status.test.is_stopping = true;
        status.test.message.get_or_insert_with(|| reason.to_owned());
        add_line(&mut status, reason.to_owned());
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn begin_phase(&self, phase: &str) {
        let mut status = self.lock();
        if phase == "prepare" {
            status.test.iteration += 1;
            (status.elapsed_s, status.sent, status.received) = (None, 0, 0);
        }
        status.test.phase = Some(phase.to_owned());
        let line = match phase {
            "prepare" if status.test.iterations > 1 => {
                format!("prepare iteration {} of {}", status.test.iteration, status.test.iterations)
            }
            phase => phase.to_owned(),
        };
        add_line(&mut status, line);
    }

    pub(super) fn count(&self, elapsed: Duration, sent: u64, received: u64) {
        let mut status = self.lock();
        status.elapsed_s = Some(elapsed.as_secs_f64());
        (status.sent, status.received) = (sent, received);
    }

    pub(super) fn line(&self, text: String) {
        add_line(&mut self.lock(), text);
    }

    pub(super) fn add(&self, iteration: TestIteration) {
        let mut status = self.lock();
        keep_last(&mut status.results, iteration, ITERATIONS_MAX);
    }

    /// Ends the test. `message`: why it failed; a reason for its stop stays. `keep` gets the final
    /// status before anybody sees it. A test that is over stays as it is.
    pub(super) fn end(
        &self,
        state: TestState,
        message: Option<String>,
        keep: impl FnOnce(&TestStatus),
    ) {
        let mut status = self.status();
        if status.test.state.is_over() {
            return;
        }
        if let Some(message) = &message {
            add_line(&mut status, message.clone());
        }
        let test = &mut status.test;
        (test.state, test.is_stopping) = (state, false);
        test.ended_unix_ns = Some(now_unix_ns());
        test.message = test.message.take().or(message);
        keep(&status);
        *self.lock() = status;
        self.is_over.notify_all();
    }

    /// Waits for the end, for at most `timeout`.
    pub(super) fn wait_over(&self, timeout: Duration) {
        let runs = |status: &mut TestStatus| !status.test.state.is_over();
        let waited = self.is_over.wait_timeout_while(self.lock(), timeout, runs);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, TestStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add_line(status: &mut TestStatus, text: String) {
    keep_last(&mut status.lines, TestLine { at_unix_ns: now_unix_ns(), text }, LINES_MAX);
}

/// Adds an item, and removes the first one beyond `max`.
fn keep_last<T>(items: &mut Vec<T>, item: T, max: usize) {
    if items.len() >= max {
        items.remove(0);
    }
    items.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(iterations: u32) -> HostedTest {
        let summary = TestSummary {
            id: "t1".into(),
            name: "two".into(),
            state: TestState::Running,
            is_stopping: false,
            on_bus: true,
            user: "ada".into(),
            session: String::new(),
            agents: Vec::new(),
            created_unix_ns: 1,
            ended_unix_ns: None,
            phase: None,
            iteration: 0,
            iterations,
            message: None,
        };
        HostedTest::new(summary, Vec::new())
    }

    #[test]
    fn status_keeps_the_latest_lines_and_iterations() {
        let test = test(1_000);
        for number in 1..=1_000 {
            test.begin_phase("prepare");
            test.count(Duration::from_secs(1), 5, 4);
            test.add(TestIteration {
                number,
                start_skew_ns: None,
                lost: Vec::new(),
                runs: Vec::new(),
            });
        }
        let status = test.status();
        assert_eq!((status.lines.len(), status.results.len()), (LINES_MAX, ITERATIONS_MAX));
        assert_eq!(status.lines[LINES_MAX - 1].text, "prepare iteration 1000 of 1000");
        assert_eq!(status.results[0].number, 981);
        assert_eq!((status.test.iteration, status.sent, status.received), (1_000, 5, 4));
    }

    #[test]
    fn first_reason_of_a_stop_stays_and_an_ended_test_stays_as_it_is() {
        let test = test(1);
        test.stop("ada stopped the test");
        test.stop("the server ended");
        assert!(test.stop_flag().load(Ordering::Acquire) && test.summary().is_stopping);
        let mut kept = None;
        let message = Some("stopped before the start".into());
        test.end(TestState::Interrupted, message, |status| kept = Some(status.clone()));
        test.end(TestState::Failed, Some("defect".into()), |_| panic!("it is over"));
        test.stop("again");
        assert_eq!(kept, Some(test.status()));
        let summary = test.summary();
        assert_eq!((summary.state, summary.is_stopping), (TestState::Interrupted, false));
        assert_eq!(summary.message.as_deref(), Some("ada stopped the test"));
        test.wait_over(Duration::from_secs(60));
    }
}
