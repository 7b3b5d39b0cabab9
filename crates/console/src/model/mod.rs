//! State of the terminal: what happened becomes state and effects, without I/O.

mod keys;
mod server;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::KeyEvent;
use wirestorm_api::event::Event;
use wirestorm_api::lease::Lease;
use wirestorm_api::port::Port;
use wirestorm_api::progress::Progress;
use wirestorm_api::run::{RunList, RunSummary};
use wirestorm_api::session::Session as Identity;

use crate::command::{Answer, CommandError};
use crate::completion::Names;
use crate::editor::Editor;
use crate::text::printable;
use crate::traffic::Traffic;

/// Most lines of the log.
const LOG_MAX: usize = 1_000;
/// Runs of a page of the history.
pub(crate) const RUNS_PAGE: usize = 100;
/// Most runs of the list: older ones of the history are not loaded.
const RUNS_MAX: usize = 10_000;
/// Most runs that are followed at a time.
const FOLLOWED_MAX: usize = 32;
/// What the counters are about after they were cleared.
const CLEARED: &str = "counters and histograms start from now; other delays are of the whole run";
/// Longest answer, in lines, that the log shows; longer ones have a page.
const LOG_ANSWER_MAX: usize = 3;

/// Table that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    #[default]
    Dashboard,
    Streams,
    Latency,
    Connections,
    Cpu,
    Runs,
}

impl View {
    pub(crate) const ALL: [(Self, char, &str); 6] = [
        (Self::Dashboard, 'd', "dashboard"),
        (Self::Streams, 's', "streams"),
        (Self::Latency, 'l', "latency"),
        (Self::Connections, 't', "connections"),
        (Self::Cpu, 'u', "CPU"),
        (Self::Runs, 'R', "runs"),
    ];

    fn next(self, back: bool) -> Self {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|(view, ..)| *view == self).unwrap_or(0);
        Self::ALL[(at + if back { count - 1 } else { 1 }) % count].0
    }
}

/// Connection to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Not yet.
    Connecting,
    /// The server answers.
    Up,
    /// The server does not answer.
    Lost { since: Instant, reason: String },
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Update {
    /// A key.
    Key(KeyEvent),
    /// Pasted text.
    Paste(String),
    /// The terminal has another size.
    Resize,
    /// A signal asks for the end, or the source of keys is gone.
    End,
    /// Something about the server. Ignored unless it is of the current connection.
    Server(u64, ServerUpdate),
    /// A line while a command executes.
    Notice(String),
    /// The answer to a line.
    Answered(String, Result<Answer, CommandError>),
    /// The session has another server, before its answer.
    Connected(Box<wirestorm_api::client::Client>),
    /// A thread of the console or of the server in this process has panicked.
    Defect(String),
}

/// What happened on the server.
#[derive(Debug)]
pub(crate) enum ServerUpdate {
    /// The server answers.
    Up(Identity),
    /// The server does not answer.
    Lost(String),
    /// The newest runs of the history, and all active ones.
    Runs { newest: RunList, active: Vec<RunSummary> },
    /// The next, older runs of the history after a cursor, or why they could not be read.
    MoreRuns(String, Result<RunList, String>),
    /// Names of plans and captures.
    Names { plans: Vec<String>, captures: Vec<String> },
    /// A change.
    Event(Event),
    /// Counters of a run.
    Progress(String, Progress),
    /// The counters of a run have ended.
    Unfollowed(String),
}

/// What the main loop has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Execute a line.
    Execute(String),
    /// End a command that waits.
    Cancel,
    /// Follow the counters of a run.
    Follow(String),
    /// Watch another server.
    Watch,
    /// Read the lists of the server again.
    ReadLists,
    /// Read the runs after a cursor.
    ReadRuns(String),
    /// Leave.
    Quit,
}

/// A text over the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// First line.
    pub(crate) scroll: usize,
    /// First column of tables, which do not wrap.
    pub(crate) column: usize,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

/// State of the terminal.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) server: String,
    /// Address of the server in this process; `None` without one.
    own_server: Option<String>,
    /// Own runs on the server in this process when the console connected to another one.
    runs_left: usize,
    pub(crate) with_color: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) connection: Connection,
    /// Number of the connection, to ignore news of an earlier one.
    pub(crate) generation: u64,
    pub(crate) ports: Vec<Port>,
    /// Newest runs and all active ones, the newest first.
    pub(crate) runs: Vec<RunSummary>,
    /// Number of runs in the history.
    pub(crate) runs_total: usize,
    /// Cursor of the runs that follow; `None` at the oldest one, and while they are read.
    runs_next: Option<String>,
    /// Cursor of the runs that are being read.
    runs_reading: Option<String>,
    pub(crate) traffic: Traffic,
    followed: BTreeSet<String>,
    pub(crate) view: View,
    /// Whether the view of delays shows histograms.
    pub(crate) with_histograms: bool,
    /// First flow of the histograms.
    pub(crate) first_flow: usize,
    /// Interfaces that the dashboard leaves out.
    hidden: BTreeSet<String>,
    /// Whether the dashboard has own ports only.
    pub(crate) own_only: bool,
    /// First row or column of the view, or the selected run.
    pub(crate) offset: usize,
    pub(crate) log: VecDeque<LogLine>,
    pub(crate) editor: Editor,
    /// Whether keys go to the command line.
    pub(crate) is_editing: bool,
    pub(crate) page: Option<Page>,
    /// Whether the console asks before it stops runs.
    pub(crate) is_asking: bool,
    /// Line that is executing, and the lines that wait.
    pub(crate) executing: VecDeque<String>,
    names: Names,
    plans: Vec<String>,
    captures: Vec<String>,
    pub(crate) now: Instant,
    last_tick: Instant,
}

impl Model {
    pub(crate) fn new(
        server: String,
        is_own_server: bool,
        with_color: bool,
        editor: Editor,
        now: Instant,
    ) -> Self {
        Self {
            own_server: is_own_server.then(|| server.clone()),
            server,
            runs_left: 0,
            with_color,
            identity: None,
            connection: Connection::Connecting,
            generation: 0,
            ports: Vec::new(),
            runs: Vec::new(),
            runs_total: 0,
            runs_next: None,
            runs_reading: None,
            traffic: Traffic::default(),
            followed: BTreeSet::new(),
            view: View::default(),
            with_histograms: false,
            first_flow: 0,
            hidden: BTreeSet::new(),
            own_only: false,
            offset: 0,
            log: VecDeque::new(),
            editor,
            is_editing: false,
            page: None,
            is_asking: false,
            executing: VecDeque::new(),
            names: Names::default(),
            plans: Vec::new(),
            captures: Vec::new(),
            now,
            last_tick: now,
        }
    }

    /// Advances the time. Returns whether a second has passed, so that the tables changed.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        self.now = now;
        if now.duration_since(self.last_tick) < Duration::from_secs(1) {
            return false;
        }
        self.last_tick = now;
        // Without a connection, the rates are those of before.
        if self.connection == Connection::Up {
            self.traffic.tick();
        }
        true
    }

    /// Returns the ports that the dashboard shows, with their numbers.
    pub(crate) fn shown_ports(&self) -> Vec<(usize, &Port)> {
        let shown = self.ports.iter().enumerate().filter(|(_, port)| {
            !self.hidden.contains(&port.interface) && (!self.own_only || self.is_own(port))
        });
        shown.collect()
    }

    /// Returns whether this session leases a port, or has a run on it.
    fn is_own(&self, port: &Port) -> bool {
        let Some(identity) = &self.identity else { return false };
        let leases =
            |lease: &Lease| lease.user == identity.user && lease.session == identity.session;
        port.lease.as_ref().is_some_and(leases)
            || self
                .active()
                .any(|run| self.is_own_run(run) && run.interfaces.contains(&port.interface))
    }

    fn is_own_run(&self, run: &RunSummary) -> bool {
        self.identity
            .as_ref()
            .is_some_and(|it| run.user.as_deref() == Some(&it.user) && run.session == it.session)
    }

    /// Returns the active runs of the server.
    pub(crate) fn active(&self) -> impl Iterator<Item = &RunSummary> {
        // Runs of the command line have no user; the server cannot follow them.
        self.runs.iter().filter(|run| !run.state.is_over() && run.user.is_some())
    }

    /// Returns whether a run of this session, or flows of one, are paused, so that `resume`
    /// continues them.
    pub(crate) fn has_paused(&self) -> bool {
        let is_paused = |run: &RunSummary| run.is_paused || run.has_paused_flows;
        self.active().any(|run| is_paused(run) && self.is_own_run(run))
    }

    /// Returns the number of active runs of this session.
    pub(crate) fn own_active(&self) -> usize {
        self.active().filter(|run| self.is_own_run(run)).count()
    }

    /// Returns whether the server is the one in this process.
    pub(crate) fn is_own_server(&self) -> bool {
        self.own_server.as_ref() == Some(&self.server)
    }

    /// Returns the number of runs that end with the console.
    pub(crate) fn ending_runs(&self) -> usize {
        match (&self.own_server, self.is_own_server()) {
            (None, _) => 0,
            (_, true) => self.own_active(),
            (_, false) => self.runs_left,
        }
    }

    /// Returns the active runs of this session that continue without the console.
    pub(crate) fn continuing_runs(&self) -> Vec<String> {
        if self.is_own_server() {
            return Vec::new();
        }
        self.active().filter(|run| self.is_own_run(run)).map(|run| run.id.clone()).collect()
    }

    pub(crate) fn log(&mut self, text: &str, is_error: bool) {
        for line in printable(text).lines() {
            if self.log.len() == LOG_MAX {
                self.log.pop_front();
            }
            self.log.push_back(LogLine { text: line.to_owned(), is_error });
        }
    }

    /// Logs a text unless it is the last line: the end of a run is an event, and an answer too.
    fn log_once(&mut self, text: &str) {
        if self.log.back().is_none_or(|last| last.text != text) {
            self.log(text, false);
        }
    }

    /// Handles what happened. Returns what to do.
    pub(crate) fn apply(&mut self, update: Update) -> Vec<Effect> {
        match update {
            Update::Key(key) => return self.key(key),
            Update::Paste(text) => {
                if self.page.is_none() && !self.is_asking {
                    self.is_editing = true;
                    self.editor.paste(&text);
                }
            }
            Update::Resize => {}
            Update::End => return vec![Effect::Quit],
            Update::Server(generation, update) => {
                if generation == self.generation {
                    return self.server(update);
                }
            }
            Update::Notice(text) => self.log(&text, false),
            Update::Answered(line, answer) => return self.answered(&line, answer),
            Update::Connected(client) => return self.connected(client.server().to_owned()),
            Update::Defect(text) => self.log(&format!("defect: {text}"), true),
        }
        Vec::new()
    }

    fn connected(&mut self, server: String) -> Vec<Effect> {
        if self.is_own_server() {
            self.runs_left = self.own_active();
        }
        self.server = server;
        self.generation += 1;
        self.connection = Connection::Connecting;
        self.identity = None;
        (self.ports, self.runs) = (Vec::new(), Vec::new());
        (self.runs_total, self.runs_next, self.runs_reading) = (0, None, None);
        (self.plans, self.captures) = (Vec::new(), Vec::new());
        self.traffic = Traffic::default();
        self.followed.clear();
        self.offset = 0;
        vec![Effect::Watch]
    }

    fn answered(&mut self, line: &str, answer: Result<Answer, CommandError>) -> Vec<Effect> {
        self.executing.pop_front();
        let text = match answer {
            Ok(Answer::Clear) => {
                self.traffic.clear();
                CLEARED.to_owned()
            }
            Ok(Answer::History) => self.editor.history.lines().join("\n"),
            Ok(Answer::Quit) => return self.quit(),
            Ok(answer) => answer.text(),
            Err(error) => {
                self.log(&error.to_string(), true);
                return Vec::new();
            }
        };
        let text = printable(text.trim_end());
        if text.lines().count() <= LOG_ANSWER_MAX {
            self.log_once(&text);
        } else {
            let lines = text.lines().map(str::to_owned).collect();
            self.page = Some(Page { title: line.to_owned(), lines, scroll: 0, column: 0 });
        }
        Vec::new()
    }

    /// Leaves, or asks first if runs would end.
    fn quit(&mut self) -> Vec<Effect> {
        if self.ending_runs() > 0 {
            self.is_asking = true;
            return Vec::new();
        }
        vec![Effect::Quit]
    }

    fn execute(&mut self, line: String) -> Vec<Effect> {
        self.log(&format!("> {line}"), false);
        self.executing.push_back(line.clone());
        vec![Effect::Execute(line)]
    }
}

#[cfg(test)]
pub(crate) mod tests;
