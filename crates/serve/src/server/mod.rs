//! What a server does, whatever protocol asks for it.
//!
//! ```text
//! HTTP API ─┐
//! OTG ──────┼─> Server ─┬─> users      names, roles, limits, digests of tokens
//! TRex RPC ─┘           ├─> ports      interfaces that the server lends, and their leases
//!                       ├─> library    plans and captures that users upload
//!                       ├─> runs       each with a thread that records its states and result
//!                       └─> history    run directories, as the command line writes them
//! ```
//!
//! Nothing here is async. Methods may block for the time of a file access; [`Server::create_run`]
//! blocks until the run is prepared, for at most [`PREPARATION_WAIT`].

mod agents;
mod commands;
mod destinations;
mod directed;
mod files;
mod frames;
mod history;
mod identity;
mod interface_users;
mod library;
mod limits;
mod load;
mod origin;
mod ports;
mod replay;
mod request;
mod runs;
mod users;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::event::Event;
use wirestorm_api::lease::{Lease, LeaseRequest};
use wirestorm_api::port::{LinkState, Port};
use wirestorm_api::progress::Progress;
use wirestorm_api::run::{
    CommandRequest, RunOrigin, RunRequest, RunSummary, StartRequest, WhenLeaseEnds,
};
use wirestorm_control::emulation::EmulationError;
use wirestorm_control::files::Files;
use wirestorm_control::host::{self, Access};
use wirestorm_control::inventory;
use wirestorm_control::port::OpenError;
use wirestorm_control::run::{Options, Run};
use wirestorm_control::traffic::TrafficError;
use wirestorm_control::{CommandError, Delivery, Host, RunError, RunErrorKind, StartAt};
use wirestorm_store::record::{InterfaceRecord, OwnerRecord, RunRecord};
use wirestorm_store::{Store, StoreError};

pub use agents::{DirectorMember, FollowError};
pub(crate) use identity::{Identity, checked_name};
pub(crate) use library::PLAN_BYTES_MAX;
pub(crate) use load::LoadSource;
pub use ports::PortOption;
pub(crate) use request::{ElsewherePorts, PartOptions, Resolved};
pub(crate) use runs::{HostedRun, ProgressDetail};
pub use users::{Owner, Users, UsersError};

use crate::metrics::WatchedRuns;
use agents::Agents;
use directed::Tests;
use files::with_missing;
use history::of_store;
use interface_users::InterfaceUsers;
use library::{Folder, UploadedFiles};
use ports::{EndedLease, Ports};
use request::Resolver;
use runs::{Runs, Saving};

/// Time that the request for a run waits until the run is prepared, so that most errors are in its
/// answer. A run may take longer to find its neighbours.
const PREPARATION_WAIT: Duration = Duration::from_millis(500);
/// Time that a forced lease waits for the end of the runs on the port.
const FORCE_WAIT: Duration = Duration::from_secs(5);
/// Time that a capture waits for runs that prepare to receive on its interface.
const CAPTURE_WAIT: Duration = Duration::from_secs(5);
/// Number of events that a slow subscriber may be behind.
const EVENTS_MAX: usize = 256;
/// Bytes of the results of all tests together.
const TESTS_BYTES_MAX: u64 = 1 << 30;
/// Interval at which the server tries to save results that it could not write.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Ports that the server lends; empty for all interfaces of the machine.
    pub ports: Vec<PortOption>,
    /// Directory of users, plans and captures.
    pub directory: PathBuf,
    /// Directory of the run history.
    pub runs_directory: PathBuf,
    /// Maximum number of bytes of all captures together.
    pub captures_bytes_max: u64,
    /// Bus on which the server directs tests; `None` to run tests on its own ports.
    pub director: Option<DirectorMember>,
}

/// Error of creating a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A directory cannot be used.
    #[error("{}: {error}", path.display())]
    Directory {
        /// Path.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The users cannot be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The run history cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The results of tests cannot be read.
    #[error("{}", .0.message)]
    Tests(ErrorDocument),
    /// The agents of the bus cannot be followed.
    #[error(transparent)]
    Agents(#[from] FollowError),
}

/// A server: hosts runs for users.
pub struct Server {
    host: Host,
    users: Users,
    ports: Ports,
    plans: Folder,
    captures: Arc<Folder>,
    runs: Runs,
    /// Tests that the server directs.
    tests: Tests,
    /// Agents of the bus; `None` without a bus.
    agents: Option<Agents>,
    /// Runs with live metrics.
    watched: Arc<WatchedRuns>,
    store: Mutex<Store>,
    events: broadcast::Sender<Arc<Event>>,
    saved_last: Mutex<Instant>,
    /// Captures of frames, and runs that are about to open their ports.
    interfaces: InterfaceUsers,
}

/// A run to host.
pub(crate) struct HostRequest {
    /// Plan, with what the server must know about it.
    pub(crate) resolved: Resolved,
    /// Name in the history.
    pub(crate) name: Option<String>,
    /// Command line, for the history.
    pub(crate) command: Vec<String>,
    /// Sharing of the interfaces with other runs.
    pub(crate) access: Access,
    /// Start; `None` to start it later.
    pub(crate) start: Option<StartAt>,
    /// What happens when the lease of a port ends.
    pub(crate) when_lease_ends: WhenLeaseEnds,
    /// The request of the API, for the history; `None` for a run of another protocol.
    pub(crate) origin: Option<RunOrigin>,
}

type Answer<T> = Result<T, ErrorDocument>;

impl Server {
    /// Creates a server.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn open(options: ServerOptions) -> Result<Arc<Self>, ServerError> {
        Self::open_on(Host::new(), options)
    }

    /// Creates a server whose runs are on a host.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub(crate) fn open_on(host: Host, options: ServerOptions) -> Result<Arc<Self>, ServerError> {
        let ServerOptions { ports, directory, runs_directory, captures_bytes_max, director } =
            options;
        let folder = |name: &str, what, bytes_max| {
            let path = directory.join(name);
            Folder::open(path.clone(), what, bytes_max)
                .map_err(|error| ServerError::Directory { path, error })
        };
        Ok(Arc::new(Self {
            users: Users::open(&directory)?,
            ports: Ports::new(ports, host.clone()),
            plans: folder("plans", "plan", captures_bytes_max)?,
            captures: Arc::new(folder("captures", "capture", captures_bytes_max)?),
            runs: Runs::default(),
            tests: Tests::open(folder("tests", "test", TESTS_BYTES_MAX)?)
                .map_err(ServerError::Tests)?,
            agents: director.map(Agents::follow).transpose()?,
            watched: Arc::default(),
            store: Mutex::new(Store::open(&runs_directory)?),
            events: broadcast::Sender::new(EVENTS_MAX),
            saved_last: Mutex::new(Instant::now()),
            interfaces: InterfaceUsers::default(),
            host,
        }))
    }

    /// Returns the host of the runs.
    pub(crate) const fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the runs with live metrics.
    pub(crate) fn watched(&self) -> Arc<WatchedRuns> {
        Arc::clone(&self.watched)
    }

    /// Returns the users.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Subscribes to the changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// Returns whether anybody subscribes to changes.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// Ends expired leases, checks the limits of users, and tries to save results again. To be
    /// called several times a second.
    pub(crate) fn tick(&self) {
        for ended in self.ports.expire() {
            self.lease_ended(&ended, "expired");
        }
        for run in self.runs.active() {
            limits::enforce(&run);
        }
        let mut last = self.saved_last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= SAVE_INTERVAL {
            *last = Instant::now();
            drop(last);
            for run in self.runs.all().into_iter().filter(|run| run.is_unsaved()) {
                run.save();
                self.publish_run(&run);
            }
        }
    }

    /// Stops all tests and runs, and waits for at most `timeout` until their results are saved. Returns the
    /// IDs of runs whose results are lost.
    pub fn shut_down(&self, timeout: Duration) -> Vec<String> {
        let deadline = Instant::now() + timeout;
        // A test whose bus is away ends much later. Its agents stop when their leases end.
        self.shut_down_tests(Instant::now() + timeout / 2);
        for run in self.runs.active() {
            run.stop(Some("the server ended".to_owned()));
        }
        for run in self.runs.active() {
            run.wait_saved(deadline.saturating_duration_since(Instant::now()));
        }
        let unsaved = self.runs.all().into_iter().filter(|run| {
            if run.is_unsaved() {
                run.save();
            }
            run.is_unsaved() || !run.is_over()
        });
        unsaved.map(|run| run.id.clone()).collect()
    }

    // Ports

    /// Returns all ports.
    pub(crate) fn ports(&self) -> Vec<Port> {
        let active = self.runs.active();
        let mut ports = self.ports.list();
        ports.iter_mut().for_each(|port| self.note_users(port, &active));
        ports
    }

    /// Notes the runs and the captures on a port.
    fn note_users(&self, port: &mut Port, active: &[Arc<HostedRun>]) {
        let on_it = active.iter().filter(|run| run.interfaces.contains(&port.interface));
        port.runs = on_it.map(|run| run.id.clone()).collect();
        port.capturing = self.interfaces.capturing(&port.interface);
    }

    /// Returns a port.
    pub(crate) fn port(&self, user: &Identity, name: &str) -> Answer<Port> {
        let found = self.ports.find(name, user)?;
        let mut port = self.ports.port(&found);
        self.note_users(&mut port, &self.runs.active());
        Ok(port)
    }

    /// Returns the state of the link of an interface, and its speed in bits a second if known.
    pub(crate) fn link(&self, interface: &str) -> (LinkState, Option<u64>) {
        self.ports.link(interface)
    }

    /// Returns the ports in the order of the options; none if the server lends all interfaces.
    pub(crate) fn configured_ports(&self) -> &[PortOption] {
        self.ports.configured()
    }

    /// Returns the lease of an interface.
    pub(crate) fn lease(&self, interface: &str) -> Option<Lease> {
        self.ports.lease(interface)
    }

    /// Returns the interface of a port that a user may use now.
    pub(crate) fn usable_interface(&self, user: &Identity, name: &str) -> Answer<String> {
        let port = self.ports.find(name, user)?;
        self.ports.check_free(&port.interface, user)?;
        Ok(port.interface)
    }

    /// Returns the interface of a port for a capture of its frames, which lasts as long as the guard.
    ///
    /// A run that starts during the capture receives with packet sockets, so that both see the
    /// frames.
    pub(crate) fn begin_capture(
        self: &Arc<Self>,
        user: &Identity,
        name: &str,
    ) -> Answer<CaptureGuard> {
        let interface = self.usable_interface(user, name)?;
        // Runs from now on see the capture; one that has not seen it may take the frames.
        let capture = self.interfaces.capture(&interface, &user.user, CAPTURE_WAIT);
        let active = self.runs.active().into_iter();
        let on_it: Vec<_> = active.filter(|run| run.interfaces.contains(&interface)).collect();
        for run in &on_it {
            run.handle.wait_prepared(Some(CAPTURE_WAIT));
        }
        if let Some(run) = on_it.iter().find(|run| run.user != *user.user) {
            let message = format!("port {name} is in use by run {} of {}", run.id, run.user);
            return Err(ErrorDocument::new(ErrorCode::Conflict, message));
        }
        if let Some(run) = on_it.first()
            && inventory::has_xdp_program(&interface)
        {
            let message = format!(
                "run {} takes the frames of port {name} in the driver, before a capture sees them: \
                 start the capture before the run",
                run.id
            );
            return Err(ErrorDocument::new(ErrorCode::Conflict, message));
        }
        let claim = self.host.claim_frames(&interface);
        let claim =
            claim.map_err(|error| ErrorDocument::new(ErrorCode::Conflict, error.to_string()))?;
        self.publish_ports();
        let server = Arc::clone(self);
        Ok(CaptureGuard { interface, server, capture: Some(capture), _claim: claim })
    }

    /// Leases a port, or renews the lease. With force, runs of the earlier owner on the port stop.
    pub(crate) fn acquire(
        &self,
        user: &Identity,
        name: &str,
        request: &LeaseRequest,
    ) -> Answer<Lease> {
        let port = self.ports.find(name, user)?;
        if let Some(lease) = self.ports.renew(&port, user, request)? {
            return Ok(lease);
        }
        let before = self.ports.may_take(&port, user, request.force)?;
        let mut used = self.ports.leased_by(&user.user);
        used.push(port.interface.clone());
        self.check_number_of_ports(user, used)?;
        if let Some(ended) = before
            && self.ports.end(&port.interface).is_some()
        {
            let reason = format!("{} took port {}", user.owner(), port.name);
            self.stop_tests_on(&ended, &reason, Instant::now() + FORCE_WAIT);
            self.stop_on(&ended, &reason, |_| true);
        }
        let lease = self.ports.take(&port, user, request);
        self.publish_ports();
        lease
    }

    /// Ends the lease of a port.
    pub(crate) fn release(&self, user: &Identity, name: &str) -> Answer<()> {
        let port = self.ports.find(name, user)?;
        let Some(lease) = self.ports.lease(&port.interface) else {
            let message = format!("port {name} is not leased");
            return Err(ErrorDocument::new(ErrorCode::Conflict, message));
        };
        user.may_change(&lease.user, &format!("port {name}"))?;
        if let Some(ended) = self.ports.end(&port.interface) {
            self.lease_ended(&ended, "was released");
        }
        Ok(())
    }

    /// Stops the runs that end with a lease.
    fn lease_ended(&self, ended: &EndedLease, how: &str) {
        let reason = format!("the lease of {} {how}", ended.interface);
        self.stop_on(ended, &reason, |run| run.when_lease_ends == WhenLeaseEnds::Stop);
        self.publish_ports();
    }

    /// Stops runs of the owner of a lease on its interface, and waits for their end.
    fn stop_on(&self, ended: &EndedLease, reason: &str, which: impl Fn(&HostedRun) -> bool) {
        let active = self.runs.active().into_iter();
        let affected: Vec<_> = active
            .filter(|run| {
                run.interfaces.contains(&ended.interface)
                    && run.user == ended.user
                    && run.session == ended.session
                    && which(run)
            })
            .collect();
        for run in &affected {
            run.stop(Some(reason.to_owned()));
        }
        let deadline = Instant::now() + FORCE_WAIT;
        for run in &affected {
            let left = deadline.saturating_duration_since(Instant::now());
            if run.handle.wait_over(Some(left)) {
                // The thread of the run does it too, but the next owner takes the port now.
                run.release();
            }
        }
    }

    /// Checks the limit on the number of ports. `interfaces`: those that the user would use.
    fn check_number_of_ports(&self, user: &Identity, mut interfaces: Vec<String>) -> Answer<()> {
        let Some(most) = user.limits.ports_max else { return Ok(()) };
        let own = self.runs.active().into_iter().filter(|run| *run.user == *user.user);
        interfaces.extend(own.flat_map(|run| run.interfaces.clone()));
        interfaces.sort();
        interfaces.dedup();
        if interfaces.len() <= most {
            return Ok(());
        }
        let message = format!(
            "{} would use {} ports, and its limit is {most}: release ports, or stop runs",
            user.user,
            interfaces.len()
        );
        Err(ErrorDocument::new(ErrorCode::Forbidden, message))
    }

    fn publish_ports(&self) {
        if self.has_subscribers() {
            self.publish(Event::Ports { ports: self.ports() });
        }
    }

    /// Publishes the ports if they differ from `before`, and returns them.
    pub(crate) fn publish_changed_ports(&self, before: Vec<Port>) -> Vec<Port> {
        let now = self.ports();
        let bare = |ports: &[Port]| -> Vec<Port> {
            // The time that is left of a lease changes all the time.
            let mut ports = ports.to_vec();
            for lease in ports.iter_mut().filter_map(|port| port.lease.as_mut()) {
                lease.expires_in_s = None;
            }
            ports
        };
        if bare(&now) != bare(&before) {
            self.publish(Event::Ports { ports: now.clone() });
        }
        now
    }

    fn publish_run(&self, run: &HostedRun) {
        if self.has_subscribers() {
            self.publish(Event::Run { run: Box::new(run.summary()) });
        }
    }

    fn publish(&self, event: Event) {
        // An error means that nobody subscribes.
        let _ = self.events.send(Arc::new(event));
    }

    // Runs

    /// Creates a run and starts it as requested.
    pub(crate) fn create_run(
        self: &Arc<Self>,
        user: &Identity,
        request: RunRequest,
    ) -> Answer<RunSummary> {
        let renamed = request.files.clone();
        let files = Arc::new(UploadedFiles::new(Arc::clone(&self.captures), renamed));
        let part = PartOptions::default();
        let run = self.create_with(user, request, Arc::clone(&files) as _, || files.used(), &part);
        run.map(|run| run.summary()).map_err(|error| with_missing(error, &files))
    }

    /// Creates the part of a test's run on this machine and starts it as requested. `files`: those that
    /// came with the test. `elsewhere`: ports of its plan on other machines.
    pub(crate) fn create_part(
        self: &Arc<Self>,
        user: &Identity,
        request: RunRequest,
        files: Arc<dyn Files>,
        part: &PartOptions,
    ) -> Answer<Arc<HostedRun>> {
        self.create_with(user, request, files, BTreeMap::new, part)
    }

    /// Creates a run with files. `used`: the uploaded captures among them that were asked for so far, by
    /// their names in the plan.
    fn create_with(
        self: &Arc<Self>,
        user: &Identity,
        request: RunRequest,
        files: Arc<dyn Files>,
        used: impl Fn() -> BTreeMap<String, String>,
        part: &PartOptions,
    ) -> Answer<Arc<HostedRun>> {
        let origin = origin::of_request(&request);
        let resolver = Resolver {
            files: &*files,
            stored: &|name| self.plan(name),
            interface: &|name| self.usable_interface(user, name),
            part,
        };
        let resolved = resolver.resolve(request.plan, &request.ports, &request.options)?;
        destinations::check(&resolved.plan, &part.destinations)?;
        let hosted = HostRequest {
            resolved,
            name: request.name.filter(|name| !name.is_empty()),
            command: request.command,
            access: if request.shared { Access::Shared } else { Access::ByBackend },
            start: match request.start {
                StartRequest::Now => Some(StartAt::Now),
                StartRequest::OnCommand => None,
                StartRequest::AtUnixNs(at) => Some(StartAt::Realtime(at)),
            },
            when_lease_ends: request.when_lease_ends,
            origin: Some(RunOrigin { files: used(), ..origin }),
        };
        self.host_run(user, hosted, files)
    }

    /// Starts to prepare a run, and starts it as requested. Waits until it is prepared, for at most
    /// [`PREPARATION_WAIT`].
    pub(crate) fn host_run(
        self: &Arc<Self>,
        user: &Identity,
        request: HostRequest,
        files: Arc<dyn Files>,
    ) -> Answer<Arc<HostedRun>> {
        let HostRequest { resolved, name, command, access, start, when_lease_ends, origin } =
            request;
        let mut used = self.ports.leased_by(&user.user);
        used.extend(resolved.interfaces.iter().cloned());
        self.check_number_of_ports(user, used)?;
        limits::check(&resolved.plan, user)?;
        // Also shared runs keep the runs of other users off.
        let reserve = |interface: &String| self.host.reserve(interface, &user.owner());
        let reservations: Result<Vec<host::Lease>, OpenError> =
            resolved.interfaces.iter().map(reserve).collect();
        let reservations =
            reservations.map_err(|error| of_run(&RunError::from(TrafficError::from(error))))?;
        // A receiver in the driver would take the frames before a capture sees them.
        let preparation = self.interfaces.prepare(&resolved.interfaces);
        let access = if preparation.is_captured { Access::Shared } else { access };
        let mut record = RunRecord::new(resolved.kind, command);
        record.name = name;
        record.owner =
            Some(OwnerRecord { user: user.user.to_string(), session: user.session.to_string() });
        let facts = resolved.interfaces.iter().filter_map(|it| inventory::interface(it).ok());
        let facts = facts.flat_map(|it| it.interfaces.into_iter());
        record.interfaces = facts.map(InterfaceRecord::from).collect();
        record.request = origin.and_then(|origin| serde_json::to_value(origin).ok());
        record.files.extend(resolved.text.map(|text| (resolved.source.clone(), text)));
        let options = Options { access, owner: user.owner(), source: resolved.source, files };
        let (preparing, snapshots) =
            Run::begin_watched(resolved.plan, options, &self.host, Delivery::Latest);
        // The latest snapshot is all that the server reads.
        drop(snapshots);
        let handle = preparing.handle();
        // The disk may take as long as the ports.
        let writer = match self.store().create(record) {
            Ok(writer) => writer,
            Err(error) => {
                handle.stop();
                handle.wait_over(None);
                return Err(of_store(&error));
            }
        };
        if let Some(at) = start {
            handle.start(at);
        }
        handle.wait_prepared(Some(PREPARATION_WAIT));
        if let Some(Err(error)) = handle.outcome()
            && error.kind() == RunErrorKind::Input
        {
            // Nothing began, so the history has nothing to keep.
            let _ = writer.discard();
            return Err(of_run(&error));
        }
        let run = Arc::new(HostedRun {
            id: writer.id().to_owned(),
            name: writer.record().name.clone(),
            kind: resolved.kind,
            user: user.user.to_string(),
            session: user.session.to_string(),
            interfaces: resolved.interfaces,
            created_unix_ns: writer.record().started_unix_ns,
            flows: resolved.flows,
            load: resolved.load,
            when_lease_ends,
            limits: Arc::clone(&user.limits),
            saving: Mutex::new(Saving::Pending(writer)),
            is_saved: Condvar::new(),
            stop_reason: Mutex::default(),
            checked: Mutex::default(),
            reservations: Mutex::new(reservations),
            handle,
        });
        self.runs.add(Arc::clone(&run));
        drop(preparation);
        self.watched.add(run.handle.clone());
        let server = Arc::clone(self);
        let recorded = Arc::clone(&run);
        let name = format!("record-{}", run.handle.id());
        let recorder = std::thread::Builder::new().name(name);
        if let Err(error) = recorder.spawn(move || server.record(&recorded)) {
            run.handle.stop();
            run.handle.wait_over(None);
            run.save();
            let message = format!("cannot start a thread: {error}");
            return Err(ErrorDocument::new(ErrorCode::Internal, message));
        }
        Ok(run)
    }

    /// Publishes the states of a run and saves its result.
    fn record(&self, run: &HostedRun) {
        let mut state = run.handle.state();
        loop {
            self.publish_run(run);
            if state.is_over() {
                break;
            }
            state = run.handle.wait_change(state);
        }
        run.release();
        run.save();
        self.publish_run(run);
        self.publish_ports();
    }

    /// Returns the active runs.
    pub(crate) fn active_runs(&self) -> Vec<RunSummary> {
        self.runs.active().iter().map(|run| run.summary()).collect()
    }

    /// Returns a run of this server that is in memory.
    fn hosted(&self, selector: &str) -> Answer<Arc<HostedRun>> {
        if let Some(run) = self.runs.get(selector) {
            return Ok(run);
        }
        let entry = self.store().find(selector).map_err(|error| of_store(&error))?;
        self.runs.get(&entry.id).ok_or_else(|| {
            let message = format!("run {} is not one of this server, or ended long ago", entry.id);
            ErrorDocument::new(ErrorCode::Conflict, message)
        })
    }

    /// Sends a command to a run.
    pub(crate) fn command(
        &self,
        user: &Identity,
        selector: &str,
        request: &CommandRequest,
    ) -> Answer<RunSummary> {
        let run = self.hosted(selector)?;
        user.may_change(&run.user, &format!("run {}", run.id))?;
        limits::check_command(&run, request)?;
        let line_rate = |interface: &str| self.link(interface).1;
        match commands::convert(request, &run, line_rate)? {
            commands::Request::Start(at) => {
                if run.handle.state().is_over() {
                    let error = CommandError::Over { state: run.handle.state().name() };
                    return Err(ErrorDocument::new(ErrorCode::Conflict, error.to_string()));
                }
                run.handle.start(at);
            }
            commands::Request::Execute(commands) => {
                let pauses = || (run.handle.is_paused(), run.handle.paused_flows().is_empty());
                let before = pauses();
                for command in commands {
                    run.handle.command(command).map_err(|error| {
                        let code = match error {
                            CommandError::Over { .. } => ErrorCode::Conflict,
                            _ => ErrorCode::Invalid,
                        };
                        ErrorDocument::new(code, error.to_string())
                    })?;
                }
                if pauses() != before {
                    self.publish_run(&run);
                }
            }
        }
        Ok(run.summary())
    }

    /// Returns the live counters of a run.
    pub(crate) fn progress(&self, selector: &str, detail: &ProgressDetail) -> Answer<Progress> {
        Ok(self.hosted(selector)?.progress(detail))
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks an interface as captured until it is dropped.
pub(crate) struct CaptureGuard {
    /// The interface.
    pub(crate) interface: String,
    server: Arc<Server>,
    /// Always there until the guard is dropped.
    capture: Option<interface_users::Capture>,
    _claim: host::FrameClaim,
}

impl Drop for CaptureGuard {
    fn drop(&mut self) {
        self.capture = None;
        self.server.publish_ports();
    }
}

/// Returns the error of a run that did not begin.
fn of_run(error: &RunError) -> ErrorDocument {
    let open = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(TrafficError::Open(error)), _) | (_, Some(EmulationError::Open(error))) => {
            Some(error)
        }
        _ => None,
    };
    let (code, message) = match open {
        Some(OpenError::DefaultRoute(interface)) => (
            ErrorCode::Plan,
            format!(
                "{interface} carries the default route: frames would go to your own network; set \
                 the option force_interface to send anyway"
            ),
        ),
        Some(OpenError::Leased { .. } | OpenError::Lock(_)) => {
            (ErrorCode::Conflict, error.to_string())
        }
        _ => (ErrorCode::Plan, error.to_string()),
    };
    ErrorDocument::new(code, message)
}
