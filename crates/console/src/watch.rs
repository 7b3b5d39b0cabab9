//! Threads that watch the server: whether it answers, its changes, and the counters of its runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use wirestorm_api::client::{Client, ClientError};
use wirestorm_api::delays::FlowDelays;

use crate::model::{RUNS_PAGE, ServerUpdate, Update};

/// Time for the answer to a check of the connection.
const ANSWER_WAIT: Duration = Duration::from_secs(3);
/// Pause between checks of the connection.
const CHECK_PAUSE: Duration = Duration::from_secs(2);
/// Pause before the next attempt to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Interval of the counters of a run.
const INTERVAL: Duration = Duration::from_millis(500);

/// Watches one server. Its threads end when another one has a newer generation.
#[derive(Clone)]
pub(crate) struct Watch {
    client: Client,
    updates: SyncSender<Update>,
    generation: u64,
    current: Arc<AtomicU64>,
}

impl Watch {
    /// Starts to watch a server.
    pub(crate) fn start(
        client: Client,
        updates: SyncSender<Update>,
        generation: u64,
        current: &Arc<AtomicU64>,
    ) -> Self {
        current.store(generation, Ordering::Relaxed);
        let watch = Self { client, updates, generation, current: Arc::clone(current) };
        watch.spawn("console-check", Self::check);
        watch.spawn("console-events", Self::follow_events);
        watch
    }

    /// Follows the counters of a run.
    pub(crate) fn follow(&self, run: String) {
        self.spawn("console-run", move |watch| watch.follow_run(&run));
    }

    /// Reads the list of runs again.
    pub(crate) fn read_lists(&self) {
        self.spawn("console-lists", |watch| {
            // An error is one of the connection, which the check reports.
            let _ = watch.send_lists();
        });
    }

    /// Reads the runs after a cursor.
    pub(crate) fn read_runs(&self, after: String) {
        self.spawn("console-runs", move |watch| {
            let read = watch.client.runs_after(Some(&after), RUNS_PAGE);
            let read = read.map_err(|error| error.to_string());
            watch.send(ServerUpdate::MoreRuns(after, read));
        });
    }

    fn spawn(&self, name: &str, body: impl FnOnce(Self) + Send + 'static) {
        let watch = self.clone();
        let thread = std::thread::Builder::new().name(name.to_owned());
        if let Err(error) = thread.spawn(move || body(watch)) {
            self.send(ServerUpdate::Lost(format!("cannot start a thread: {error}")));
        }
    }

    /// Returns whether the console still shows this server.
    fn send(&self, update: ServerUpdate) -> bool {
        self.is_current() && self.updates.send(Update::Server(self.generation, update)).is_ok()
    }

    fn is_current(&self) -> bool {
        self.current.load(Ordering::Relaxed) == self.generation
    }

    fn check(self) {
        loop {
            let update = match self.client.session_within(ANSWER_WAIT) {
                Ok(identity) => ServerUpdate::Up(identity),
                Err(error) => ServerUpdate::Lost(error.to_string()),
            };
            if !self.send(update) {
                return;
            }
            std::thread::sleep(CHECK_PAUSE);
        }
    }

    fn follow_events(self) {
        while self.is_current() {
            // An error is one of the connection, which the check reports.
            let _ = self.send_events();
            std::thread::sleep(RECONNECT_PAUSE);
        }
    }

    fn send_events(&self) -> Result<(), ClientError> {
        // Subscribed first: nothing is lost between the lists and the changes.
        let events = self.client.events()?;
        self.send_lists()?;
        for event in events {
            if !self.send(ServerUpdate::Event(event?)) {
                break;
            }
        }
        Ok(())
    }

    fn send_lists(&self) -> Result<(), ClientError> {
        // A run that ends in between is over in the newest ones, which are read last.
        let active = self.client.active_runs()?;
        let newest = self.client.runs_after(None, RUNS_PAGE)?;
        self.send(ServerUpdate::Runs { newest, active });
        let plans = self.client.plans()?.into_iter().map(|plan| plan.name).collect();
        let captures = self.client.captures()?.into_iter().map(|capture| capture.name).collect();
        self.send(ServerUpdate::Names { plans, captures });
        Ok(())
    }

    fn follow_run(&self, run: &str) {
        let followed =
            self.client.follow_delays(run, INTERVAL, FlowDelays::FLOWS_MAX).and_then(|stream| {
                for progress in stream {
                    if !self.send(ServerUpdate::Progress(run.to_owned(), progress?)) {
                        break;
                    }
                }
                Ok(())
            });
        // A run that this server cannot follow stays unfollowed.
        if !matches!(followed, Err(ClientError::Refused(_))) {
            std::thread::sleep(RECONNECT_PAUSE);
            self.send(ServerUpdate::Unfollowed(run.to_owned()));
        }
    }
}
