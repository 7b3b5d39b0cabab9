//! Tests across machines that the server directs.
//!
//! ```text
//! request ─> checks ─> director ─> thread `test` ─> status, runs in the history, document
//!                         ├─ with a bus: agents on other machines
//!                         └─ without: agents in this process, whose runs are those of the user
//! ```
//!
//! In this process, a test has the ports, leases, limits and captures of its user. Between its
//! iterations it keeps its ports.

mod hosted;
mod registry;
mod saved;
mod summary;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirestorm_api::error::{ErrorAt, ErrorCode, ErrorDocument};
use wirestorm_api::session::Limits;
use wirestorm_api::test::{TestRequest, TestSource, TestState, TestStatus, TestSummary};
use wirestorm_control::clock::realtime_nanos;
use wirestorm_control::host;
use wirestorm_control::plan::test_plan::TestPlan;
use wirestorm_store::Store;

use super::library::UploadedFiles;
use super::ports::{EndedLease, now_unix_ns};
use super::request::{errors_at, invalid};
use super::{Answer, Identity, Server, with_missing};
use crate::cluster::{
    Director, DirectorOptions, LocalAgents, TestDocument, TestError, TestProgress,
};
use hosted::HostedTest;
pub(super) use registry::Tests;
use saved::SavedTest;

/// Longest test in bytes.
const TEST_BYTES_MAX: usize = 8 << 20;
/// Most iterations: the director keeps the results of all of them until the end.
const ITERATIONS_MAX: u32 = 1_000;
/// Most nodes of a test in this process; each has four threads.
const LOCAL_NODES_MAX: usize = 32;
/// Time that a test waits until the parts of its runs have released their ports.
const RELEASE_WAIT: Duration = Duration::from_secs(5);
/// Name of a test without one.
const NAME: &str = "test";

/// What the thread of a test needs.
struct Directed {
    director: Director,
    /// Agents in this process; `None` with a bus.
    local: Option<LocalAgents>,
    /// Ports of the test in this process.
    reservations: Vec<host::Lease>,
    user: Identity,
    name: String,
    text: String,
}

impl Server {
    /// Starts a test.
    ///
    /// # Errors
    /// The request or a plan has errors, the user may not use the ports, or too many tests run.
    pub(crate) fn create_test(
        self: &Arc<Self>,
        user: &Identity,
        request: TestRequest,
    ) -> Answer<TestSummary> {
        let text = text_of(request.test)?;
        let mut test = TestPlan::parse(&text).map_err(|errors| ErrorDocument {
            code: ErrorCode::Plan,
            message: "the test has errors".to_owned(),
            errors: errors_at(&errors),
        })?;
        for (port, interface) in &request.ports {
            let bound = test.bind(port, interface);
            bound.map_err(|error| invalid(&format!("ports.{port}"), error))?;
        }
        if test.iterations > ITERATIONS_MAX {
            let found = test.iterations;
            let message = format!("found {found}, expected at most {ITERATIONS_MAX} on a server");
            return Err(of_test("iterations", message));
        }
        let lease = request.lease.as_deref().unwrap_or(DirectorOptions::LEASE);
        let lease = DirectorOptions::parse_lease(lease).map_err(|it| invalid("lease", it))?;
        let name = request.name.filter(|it| !it.is_empty()).or_else(|| test.name.clone());
        let name = name.unwrap_or_else(|| NAME.to_owned());
        if !Store::is_name(&name) {
            let message = "expected 1 to 64 characters without control characters, not `latest`";
            return Err(invalid("name", message));
        }
        let id = format!("t{:x}", realtime_nanos());
        let summary = TestSummary {
            id: id.clone(),
            name: name.clone(),
            state: TestState::Running,
            is_stopping: false,
            on_bus: self.agents.is_some(),
            user: user.user.to_string(),
            session: user.session.to_string(),
            agents: test.nodes.iter().map(|node| node.agent.clone()).collect(),
            created_unix_ns: now_unix_ns(),
            ended_unix_ns: None,
            phase: None,
            iteration: 0,
            iterations: test.iterations,
            message: None,
        };
        let mut interfaces = Vec::new();
        let (local, reservations) = match &self.agents {
            Some(_) => {
                check_limits(user)?;
                (None, Vec::new())
            }
            None => {
                interfaces = self.interfaces_of(user, &test)?;
                let reservations = self.reserve_all(user, &interfaces)?;
                let local = LocalAgents::start_on(self, user, &test)
                    .map_err(|error| ErrorDocument::new(ErrorCode::Internal, error.to_string()))?;
                (Some(local), reservations)
            }
        };
        let hosted = Arc::new(HostedTest::new(summary, interfaces));
        let director = self.director(test, local.as_ref(), id, lease)?;
        let user = user.clone();
        let directed = Directed { director, local, reservations, user, name, text };
        self.tests.add(Arc::clone(&hosted))?;
        let (server, of_thread) = (Arc::clone(self), Arc::clone(&hosted));
        let thread = std::thread::Builder::new().name("test".to_owned());
        if let Err(error) = thread.spawn(move || server.direct(&of_thread, directed)) {
            let message = format!("cannot start a thread: {error}");
            let keep = |status: &TestStatus| self.tests.keep_status(status);
            hosted.end(TestState::Failed, Some(message.clone()), keep);
            return Err(ErrorDocument::new(ErrorCode::Internal, message));
        }
        Ok(hosted.summary())
    }

    /// Returns the interfaces of a test in this process, which the user may use.
    fn interfaces_of(&self, user: &Identity, test: &TestPlan) -> Answer<Vec<String>> {
        if test.nodes.len() > LOCAL_NODES_MAX {
            let message = format!(
                "found {} nodes, expected at most {LOCAL_NODES_MAX} on a server without a bus",
                test.nodes.len()
            );
            return Err(of_test("nodes", message));
        }
        let interfaces = test.ports.iter().enumerate().map(|(index, port)| {
            let usable = self.usable_interface(user, &port.interface);
            usable.map_err(|error| ErrorDocument {
                errors: vec![ErrorAt {
                    path: format!("ports[{index}].interface"),
                    message: error.message,
                }],
                message: "the test cannot use its ports".to_owned(),
                code: error.code,
            })
        });
        let interfaces: Vec<String> = interfaces.collect::<Answer<_>>()?;
        let mut used = self.ports.leased_by(&user.user);
        used.extend(interfaces.iter().cloned());
        self.check_number_of_ports(user, used)?;
        Ok(interfaces)
    }

    fn reserve_all(&self, user: &Identity, interfaces: &[String]) -> Answer<Vec<host::Lease>> {
        let reserve = |interface: &String| {
            let reserved = self.host.reserve(interface, &user.owner());
            reserved.map_err(|error| ErrorDocument::new(ErrorCode::Conflict, error.to_string()))
        };
        interfaces.iter().map(reserve).collect()
    }

    /// Returns the director of a test. Its files are uploaded captures.
    fn director(
        &self,
        test: TestPlan,
        local: Option<&LocalAgents>,
        id: String,
        lease: Duration,
    ) -> Answer<Director> {
        let files = Arc::new(UploadedFiles::new(Arc::clone(&self.captures), Default::default()));
        let (bus, site, name, key) = match (local, &self.agents) {
            (Some(local), _) => (&local.bus, &local.site, "local".to_owned(), &local.key),
            (None, Some(agents)) => {
                let member = &agents.member;
                (&member.bus, &member.site, member.name.clone(), &member.key)
            }
            (None, None) => {
                return Err(ErrorDocument::new(ErrorCode::Internal, "the test has no agents"));
            }
        };
        let options = DirectorOptions {
            name,
            site: site.clone(),
            bus: Arc::clone(bus),
            key: key.clone(),
            test,
            folder: PathBuf::new(),
            files: Arc::clone(&files) as _,
            id,
            lease,
            wait: Duration::ZERO,
            one_clock: local.is_some(),
        };
        let director = Director::new(options).and_then(|mut director| {
            director.read_files()?;
            Ok(director)
        });
        director.map_err(|error| {
            let code = match error {
                TestError::Bus(_) => ErrorCode::Conflict,
                _ => ErrorCode::Plan,
            };
            with_missing(ErrorDocument::new(code, error.to_string()), &files)
        })
    }

    /// Returns the tests, the newest first.
    pub(crate) fn tests(&self) -> Vec<TestSummary> {
        let mut tests: Vec<_> = self.tests.all().iter().map(|test| test.summary()).collect();
        tests.sort_by_key(|test| std::cmp::Reverse(test.created_unix_ns));
        tests
    }

    /// Returns a test with its progress and its results so far.
    pub(crate) fn test(&self, id: &str) -> Answer<TestStatus> {
        Ok(self.tests.get(id)?.status())
    }

    /// Stops a test. Its thread ends it, with the results so far.
    pub(crate) fn stop_test(&self, user: &Identity, id: &str) -> Answer<TestSummary> {
        let test = self.tests.get(id)?;
        let summary = test.summary();
        user.may_change(&summary.user, &format!("test {id}"))?;
        if summary.state.is_over() {
            let message = format!("test {id} has ended already");
            return Err(ErrorDocument::new(ErrorCode::Conflict, message));
        }
        test.stop(&format!("{} stopped the test", user.owner()));
        Ok(test.summary())
    }

    /// Returns the result of a test as JSON: `wirestorm.test/1`.
    pub(crate) fn test_result(&self, id: &str) -> Answer<String> {
        let test = self.tests.get(id)?.summary();
        let refused = |message: String| Err(ErrorDocument::new(ErrorCode::Conflict, message));
        if !test.state.is_over() {
            return refused(format!("test {id} has not ended"));
        }
        self.tests.document(id).or_else(|_| {
            let reason = test.message.as_deref().unwrap_or("it is not on disk");
            refused(format!("test {id} has no result: {reason}"))
        })
    }

    /// Stops all tests, and waits until a time.
    pub(super) fn shut_down_tests(&self, deadline: Instant) {
        let tests = self.tests.all();
        tests.iter().for_each(|test| test.stop("the server ended"));
        for test in tests {
            test.wait_over(deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// Stops the tests of the owner of a lease on its interface, and waits until a time.
    pub(super) fn stop_tests_on(&self, ended: &EndedLease, reason: &str, deadline: Instant) {
        let affected = |test: &Arc<HostedTest>| {
            let summary = test.summary();
            test.interfaces().contains(&ended.interface)
                && summary.user == ended.user
                && summary.session == ended.session
        };
        let tests: Vec<_> = self.tests.all().into_iter().filter(affected).collect();
        tests.iter().for_each(|test| test.stop(reason));
        for test in tests {
            test.wait_over(deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// Runs a test to its end.
    fn direct(&self, test: &HostedTest, directed: Directed) {
        let _off = self.host.keep_off_reserved_cpus();
        let defect = EndsByDefect(test, &self.tests);
        let Directed { director, local, reservations, user, name, text } = directed;
        let saved = SavedTest {
            server: self,
            user: &user,
            name: &name,
            text: &text,
            is_local: local.is_some(),
            is_repeated: test.summary().iterations > 1,
        };
        let mut method = None;
        let outcome = director.run(test.stop_flag(), &mut |progress| match progress {
            TestProgress::Phase(phase) => test.begin_phase(phase),
            TestProgress::Running { elapsed, sent, received } => {
                test.count(elapsed, sent, received);
            }
            TestProgress::Lost { agent, reason } => {
                test.line(format!("agent {agent} is lost: {reason}"));
            }
            TestProgress::Iteration(number, outcome) => {
                test.add(summary::iteration(number, outcome, saved.save(number, outcome)));
            }
            TestProgress::Method { name, method: begun } => {
                let writer = saved.begin_method(name, begun, test.interfaces());
                method = writer.map_err(|error| test.stop(&error)).ok();
            }
            TestProgress::TrialStarted { .. } => {}
            TestProgress::Trial(trial) => {
                test.line(summary::trial(trial));
                let saved = method.as_mut().map_or(Ok(()), |it| saved::save_trial(it, trial));
                // What is not saved would be lost with the server.
                saved.unwrap_or_else(|error| test.stop(&error));
            }
        });
        // The ports are free before the test counts as over.
        drop(local);
        for run in self.runs.active().iter().filter(|run| run.handle.state().is_over()) {
            run.wait_saved(RELEASE_WAIT);
        }
        drop(reservations);
        let was_stopped = test.stop_flag().load(Ordering::Acquire);
        let id = test.summary().id;
        let (state, message) = match outcome {
            Ok(outcome) => {
                let (state, reason) = match &outcome.bench {
                    Some(bench) => {
                        let saved = match method {
                            Some(writer) => saved.end_method(writer, &bench.result),
                            None => Err("its record could not be written".to_owned()),
                        };
                        test.add(summary::method(bench, saved));
                        summary::end_of_method(bench)
                    }
                    None => {
                        let planned = test.summary().iterations;
                        summary::end(&outcome.iterations, planned, was_stopped)
                    }
                };
                let kept = self.tests.keep_document(&id, &TestDocument::new(&name, &outcome));
                (state, reason.or(kept.err()))
            }
            Err(TestError::Stopped) => (TestState::Interrupted, None),
            Err(error) if was_stopped => (TestState::Interrupted, Some(error.to_string())),
            Err(error) => (TestState::Failed, Some(error.to_string())),
        };
        test.end(state, message, |status| self.tests.keep_status(status));
        drop(defect);
    }
}

/// Ends a test whose thread panics.
struct EndsByDefect<'a>(&'a HostedTest, &'a Tests);

impl Drop for EndsByDefect<'_> {
    fn drop(&mut self) {
        let message = "a defect in wirestorm ended the test".to_owned();
        self.0.end(TestState::Failed, Some(message), |status| self.1.keep_status(status));
    }
}

fn text_of(source: TestSource) -> Answer<String> {
    let text = match source {
        TestSource::Text(text) => text,
        TestSource::Document(document) => format!("{document:#}"),
    };
    if text.len() <= TEST_BYTES_MAX {
        return Ok(text);
    }
    let message = format!("the test has {} bytes, expected at most {TEST_BYTES_MAX}", text.len());
    Err(ErrorDocument::new(ErrorCode::TooLarge, message))
}

/// Returns an error at a place of the test.
fn of_test(path: &str, message: String) -> ErrorDocument {
    let errors = vec![ErrorAt { path: path.to_owned(), message }];
    ErrorDocument { code: ErrorCode::Plan, message: "the test has errors".to_owned(), errors }
}

/// Refuses users with limits: these hold for the ports of this server, not for those of agents.
fn check_limits(user: &Identity) -> Answer<()> {
    if *user.limits == Limits::default() {
        return Ok(());
    }
    let message = format!(
        "{} has limits, which hold for the ports of this server and not for those of agents: ask an \
         administrator to start the test",
        user.user
    );
    Err(ErrorDocument::new(ErrorCode::Forbidden, message))
}
