//! State of the terminal: what happened becomes state and effects, without I/O.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wirestorm_api::event::Event;
use wirestorm_api::lease::Lease;
use wirestorm_api::port::Port;
use wirestorm_api::progress::Progress;
use wirestorm_api::run::RunSummary;
use wirestorm_api::session::Session as Identity;

use crate::command::{Answer, CommandError};
use crate::completion::Names;
use crate::editor::{Edited, Editor};
use crate::text::printable;
use crate::traffic::Traffic;

/// Most lines of the log.
const LOG_MAX: usize = 1_000;
/// Most runs of the list.
pub(crate) const RUNS_MAX: usize = 200;
/// Most runs that are followed at a time.
const FOLLOWED_MAX: usize = 32;
/// Longest answer, in lines, that the log shows; longer ones have a page.
const LOG_ANSWER_MAX: usize = 3;
/// Columns that Right and Left move a page.
const COLUMNS: usize = 10;
/// Last first column of a page.
const COLUMNS_MAX: usize = 1_000;
/// Lines that Page Up and Page Down move.
const PAGE: isize = 10;

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
    /// Names of plans and captures.
    Names { plans: Vec<String>, captures: Vec<String> },
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
    /// The runs of the history, the newest first.
    Runs(Vec<RunSummary>),
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
    /// Newest runs, the newest first.
    pub(crate) runs: Vec<RunSummary>,
    pub(crate) traffic: Traffic,
    followed: BTreeSet<String>,
    /// Runs that this console has paused: the server does not report it.
    paused: BTreeSet<String>,
    pub(crate) view: View,
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
            traffic: Traffic::default(),
            followed: BTreeSet::new(),
            paused: BTreeSet::new(),
            view: View::default(),
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

    /// Returns the state of a run in a word.
    pub(crate) fn state_of(&self, run: &RunSummary) -> &'static str {
        match self.paused.contains(&run.id) && !run.state.is_over() {
            true => "paused",
            false => crate::command::state(run.state),
        }
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
            Update::Names { plans, captures } => {
                (self.plans, self.captures) = (plans, captures);
                self.update_names();
            }
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
        self.traffic = Traffic::default();
        self.followed.clear();
        self.offset = 0;
        vec![Effect::Watch]
    }

    fn server(&mut self, update: ServerUpdate) -> Vec<Effect> {
        match update {
            ServerUpdate::Up(identity) => {
                if matches!(self.connection, Connection::Lost { .. }) {
                    self.log("the server answers again", false);
                }
                self.connection = Connection::Up;
                self.identity = Some(identity);
                Vec::new()
            }
            ServerUpdate::Lost(reason) => {
                if !matches!(self.connection, Connection::Lost { .. }) {
                    self.log(&reason, true);
                    self.connection = Connection::Lost { since: self.now, reason };
                }
                Vec::new()
            }
            ServerUpdate::Runs(runs) => {
                self.runs = runs;
                for run in self.runs.iter().filter(|run| run.state.is_over()) {
                    self.traffic.end(&run.id, run.state);
                    self.followed.remove(&run.id);
                }
                let active: BTreeSet<String> = self.active().map(|run| run.id.clone()).collect();
                self.traffic.retain_active(|run| active.contains(run));
                self.update_names();
                self.follow_active()
            }
            ServerUpdate::Event(event) => self.event(event),
            ServerUpdate::Progress(run, progress) => {
                let is_new = !self.traffic.cpu().iter().any(|line| line.run == run);
                self.traffic.add(&run, progress);
                if is_new {
                    self.update_names();
                }
                Vec::new()
            }
            ServerUpdate::Unfollowed(run) => {
                self.followed.remove(&run);
                self.follow_active()
            }
        }
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Ports { ports } => {
                self.ports = ports;
                self.update_names();
                Vec::new()
            }
            Event::Run { run } => {
                self.run_changed(*run);
                self.follow_active()
            }
            Event::RunDeleted { id } => {
                self.runs.retain(|run| run.id != id);
                self.update_names();
                Vec::new()
            }
            Event::Missed { .. } => vec![Effect::ReadLists],
        }
    }

    fn run_changed(&mut self, run: RunSummary) {
        for port in &mut self.ports {
            port.runs.retain(|id| *id != run.id);
            if !run.state.is_over() && run.interfaces.contains(&port.interface) {
                port.runs.push(run.id.clone());
            }
        }
        let before = self.runs.iter().position(|known| known.id == run.id);
        let was_over = before.is_some_and(|at| self.runs[at].state.is_over());
        if run.state.is_over() && !was_over {
            self.log_once(&crate::command::ended(&run));
            self.traffic.end(&run.id, run.state);
            self.followed.remove(&run.id);
            self.paused.remove(&run.id);
        }
        match before {
            Some(at) => self.runs[at] = run,
            None => {
                let at = self.runs.partition_point(|it| it.created_unix_ns > run.created_unix_ns);
                self.runs.insert(at, run);
                self.runs.truncate(RUNS_MAX);
            }
        }
        self.update_names();
    }

    /// Follows active runs that are not followed yet.
    fn follow_active(&mut self) -> Vec<Effect> {
        let active: Vec<String> = self
            .active()
            .map(|run| run.id.clone())
            .filter(|id| !self.followed.contains(id))
            .collect();
        let room = FOLLOWED_MAX.saturating_sub(self.followed.len());
        let followed: Vec<String> = active.into_iter().take(room).collect();
        self.followed.extend(followed.iter().cloned());
        followed.into_iter().map(Effect::Follow).collect()
    }

    fn update_names(&mut self) {
        let names = self.runs.iter().filter_map(|run| run.name.clone());
        let runs: Vec<String> = names.chain(self.runs.iter().map(|run| run.id.clone())).collect();
        self.names = Names {
            ports: self.ports.iter().map(|port| port.name.clone()).collect(),
            runs,
            flows: self.traffic.flow_names(),
            plans: self.plans.clone(),
            captures: self.captures.clone(),
        };
    }

    fn answered(&mut self, line: &str, answer: Result<Answer, CommandError>) -> Vec<Effect> {
        self.executing.pop_front();
        let text = match answer {
            Ok(Answer::Clear) => {
                self.traffic.clear();
                "counters start from now".to_owned()
            }
            Ok(Answer::History) => self.editor.history.lines().join("\n"),
            Ok(Answer::Quit) => return self.quit(),
            Ok(answer) => {
                if let Answer::Paused { runs, is_paused } = &answer {
                    self.paused.retain(|run| !runs.contains(run));
                    self.paused.extend(runs.iter().filter(|_| *is_paused).cloned());
                }
                answer.text()
            }
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

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_interrupt = has_control && matches!(key.code, KeyCode::Char('c'));
        if self.is_asking {
            self.is_asking = false;
            let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y')) || is_interrupt;
            return if is_yes { vec![Effect::Quit] } else { Vec::new() };
        }
        if is_interrupt && !self.executing.is_empty() && self.page.is_none() {
            return vec![Effect::Cancel];
        }
        if self.is_editing && self.page.is_none() {
            return match self.editor.key(key, &self.names) {
                Edited::Line => Vec::new(),
                Edited::Leave => {
                    self.is_editing = false;
                    Vec::new()
                }
                Edited::Execute(line) => {
                    if let Err(message) = self.editor.history.add(&line) {
                        self.log(&message, true);
                    }
                    self.execute(line)
                }
            };
        }
        if self.page.is_some() {
            return self.page_key(key, is_interrupt);
        }
        match key.code {
            _ if is_interrupt => return self.quit(),
            KeyCode::Char(_) if has_control => {}
            KeyCode::Char(':' | '/' | 'i') => self.is_editing = true,
            KeyCode::Enter => {
                let selected = (self.view == View::Runs).then(|| self.runs.get(self.offset));
                match selected.flatten() {
                    Some(run) => {
                        let line = format!("show {}", run.id);
                        return self.execute(line);
                    }
                    None => self.is_editing = true,
                }
            }
            KeyCode::Char('q') => return self.quit(),
            KeyCode::Char('h' | '?') | KeyCode::F(1) => return self.execute("help".to_owned()),
            KeyCode::Char('p') => return self.execute("pause".to_owned()),
            KeyCode::Char('r') => return self.execute("resume".to_owned()),
            KeyCode::Char('c') => {
                self.traffic.clear();
                self.log("counters start from now", false);
            }
            KeyCode::Char('o') => self.own_only = !self.own_only,
            KeyCode::Char('a' | 'n') => {
                self.hidden.clear();
                self.own_only = false;
                self.offset = 0;
            }
            KeyCode::Char(digit @ '0'..='9') => {
                let number = digit as usize - '0' as usize;
                if let Some(port) = self.ports.get(number) {
                    let interface = port.interface.clone();
                    if !self.hidden.remove(&interface) {
                        self.hidden.insert(interface);
                    }
                }
            }
            KeyCode::Tab => self.show(self.view.next(false)),
            KeyCode::BackTab => self.show(self.view.next(true)),
            KeyCode::Down | KeyCode::Right => self.scroll(1),
            KeyCode::Up | KeyCode::Left => self.scroll(-1),
            KeyCode::PageDown => self.scroll(PAGE),
            KeyCode::PageUp => self.scroll(-PAGE),
            KeyCode::Home => self.offset = 0,
            KeyCode::Char(key) => {
                if let Some((view, ..)) = View::ALL.iter().find(|(_, of, _)| *of == key) {
                    self.show(*view);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.offset = 0;
    }

    fn scroll(&mut self, by: isize) {
        let most = match self.view {
            View::Dashboard => self.shown_ports().len(),
            View::Streams => self.traffic.flows().len(),
            View::Latency => self.traffic.flows().len() + self.traffic.probes().len(),
            View::Connections => self.traffic.connections().len(),
            View::Cpu => self.traffic.cpu().len(),
            View::Runs => self.runs.len(),
        };
        self.offset = self.offset.saturating_add_signed(by).min(most.saturating_sub(1));
    }

    fn page_key(&mut self, key: KeyEvent, is_interrupt: bool) -> Vec<Effect> {
        let Some(page) = &mut self.page else { return Vec::new() };
        match key.code {
            KeyCode::Right => page.column = (page.column + COLUMNS).min(COLUMNS_MAX),
            KeyCode::Left => page.column = page.column.saturating_sub(COLUMNS),
            _ => {}
        }
        let by = match key.code {
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::PageDown | KeyCode::Char(' ') => PAGE,
            KeyCode::PageUp => -PAGE,
            KeyCode::Home => isize::MIN,
            KeyCode::End => isize::MAX,
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => {
                self.page = None;
                return Vec::new();
            }
            _ if is_interrupt => {
                self.page = None;
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let most = page.lines.len().saturating_sub(1);
        page.scroll = page.scroll.saturating_add_signed(by).min(most);
        Vec::new()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use wirestorm_api::run::RunState;
    use wirestorm_api::session::{Limits, Role};

    use super::*;
    use crate::editor::tests::plain;
    use crate::session::tests::port;
    use crate::traffic::tests::progress;

    pub(crate) fn model() -> Model {
        let server = "http://127.0.0.1:9410".to_owned();
        Model::new(server, false, true, Editor::default(), Instant::now())
    }

    pub(crate) fn run(id: &str, state: RunState) -> RunSummary {
        RunSummary {
            id: id.to_owned(),
            name: None,
            kind: "streams".to_owned(),
            state,
            user: Some("ada".to_owned()),
            session: String::new(),
            interfaces: vec!["eth1".to_owned(), "eth2".to_owned()],
            created_unix_ns: id.len() as u64,
            ended_unix_ns: None,
            outcome: state.is_over().then(|| "met".to_owned()),
            message: None,
            figure: None,
            is_saved: true,
        }
    }

    pub(crate) fn identity() -> Identity {
        Identity {
            user: "ada".to_owned(),
            session: String::new(),
            role: Role::Administer,
            limits: Limits::default(),
            version: "0.1.0".to_owned(),
            host: "lab".to_owned(),
        }
    }

    pub(crate) fn server(model: &mut Model, update: ServerUpdate) -> Vec<Effect> {
        model.apply(Update::Server(model.generation, update))
    }

    /// A model of a connection with two ports and a run that sends.
    pub(crate) fn busy() -> Model {
        let mut model = model();
        server(&mut model, ServerUpdate::Up(identity()));
        let mut ports = vec![port("left", "eth1"), port("right", "eth2")];
        ports[0].lease = Some(Lease {
            user: "ada".to_owned(),
            session: String::new(),
            since_unix_ns: 0,
            expires_in_s: None,
        });
        server(&mut model, ServerUpdate::Event(Event::Ports { ports }));
        let event = Event::Run { run: Box::new(run("first", RunState::Running)) };
        let effects = server(&mut model, ServerUpdate::Event(event));
        assert_eq!(effects, [Effect::Follow("first".to_owned())]);
        for second in 0..5 {
            let update =
                ServerUpdate::Progress("first".into(), progress(1_000 * second, 1_500 * second));
            server(&mut model, update);
            model.traffic.tick();
        }
        model
    }

    /// The same, with the server in this process.
    pub(crate) fn own() -> Model {
        let mut model = busy();
        model.own_server = Some(model.server.clone());
        model
    }

    pub(crate) fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
        let mut effects = Vec::new();
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{1b}' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            effects.extend(model.apply(Update::Key(plain(code))));
        }
        effects
    }

    #[test]
    fn line_is_executed_and_its_answer_is_in_the_log() {
        let mut model = busy();
        assert_eq!(press(&mut model, ":ports\n"), [Effect::Execute("ports".to_owned())]);
        assert_eq!(model.executing, ["ports"]);
        let answer = Ok(Answer::Text("one\n".to_owned()));
        model.apply(Update::Answered("ports".to_owned(), answer));
        assert!(model.executing.is_empty());
        let texts: Vec<&str> = model.log.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["> ports", "one"]);
        let error = Err(CommandError::usage("no such port"));
        model.apply(Update::Answered("ports x".to_owned(), error));
        assert!(model.log.back().unwrap().is_error);
        assert!(model.is_editing, "the next line can follow at once");
    }

    #[test]
    fn interrupt_cancels_a_line_that_waits() {
        let mut model = busy();
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        press(&mut model, ":wait\n");
        assert_eq!(model.apply(Update::Key(interrupt)), [Effect::Cancel]);
        let error = Err(CommandError::failed("cancelled"));
        model.apply(Update::Answered("wait".to_owned(), error));
        assert_eq!(model.apply(Update::Key(interrupt)), []);
        assert!(!model.is_editing, "then it leaves the empty command line");
    }

    #[test]
    fn long_answer_has_a_page_that_scrolls_and_closes() {
        let mut model = busy();
        let text = (0..50).map(|number| format!("line {number}\n")).collect();
        model.apply(Update::Answered("help".to_owned(), Ok(Answer::Text(text))));
        assert_eq!(model.page.as_ref().unwrap().lines.len(), 50);
        press(&mut model, " j");
        assert_eq!(model.page.as_ref().unwrap().scroll, 11);
        model.apply(Update::Key(plain(KeyCode::End)));
        assert_eq!(model.page.as_ref().unwrap().scroll, 49);
        press(&mut model, "q");
        assert_eq!((model.page.clone(), model.view), (None, View::Dashboard));
    }

    #[test]
    fn keys_select_views_and_ports() {
        let mut model = busy();
        for (key, view) in
            [("s", View::Streams), ("R", View::Runs), ("\t", View::Dashboard), ("u", View::Cpu)]
        {
            press(&mut model, key);
            assert_eq!(model.view, view, "{key:?}");
        }
        let names = |model: &Model| -> Vec<String> {
            model.shown_ports().iter().map(|(_, port)| port.name.clone()).collect()
        };
        press(&mut model, "0");
        assert_eq!(names(&model), ["right"]);
        press(&mut model, "0");
        assert_eq!(names(&model), ["left", "right"]);
        press(&mut model, "1o");
        assert_eq!(names(&model), ["left"]);
        press(&mut model, "a");
        assert_eq!(names(&model), ["left", "right"]);
    }

    #[test]
    fn paused_run_is_shown_as_paused() {
        let mut model = busy();
        let state = |model: &Model| model.state_of(&model.runs[0]);
        let answer = |is_paused| {
            let runs = vec!["first".to_owned()];
            Update::Answered("pause".to_owned(), Ok(Answer::Paused { runs, is_paused }))
        };
        assert_eq!(state(&model), "running");
        model.apply(answer(true));
        assert_eq!((state(&model), &*model.log.back().unwrap().text), ("paused", "paused first"));
        model.apply(answer(false));
        assert_eq!(state(&model), "running");
        model.apply(answer(true));
        let ended = Event::Run { run: Box::new(run("first", RunState::Finished)) };
        server(&mut model, ServerUpdate::Event(ended));
        assert_eq!(state(&model), "finished");
    }

    #[test]
    fn keys_of_trex_pause_resume_and_clear() {
        let mut model = busy();
        let effects = press(&mut model, "pr");
        let lines = ["pause", "resume"].map(|line| Effect::Execute(line.to_owned()));
        assert_eq!(effects, lines);
        assert_eq!(model.traffic.port("eth1").tx_frames, 6_000);
        press(&mut model, "c");
        assert_eq!(model.traffic.port("eth1").tx_frames, 0);
    }

    #[test]
    fn own_server_with_active_runs_is_left_after_a_question() {
        let mut model = busy();
        assert_eq!(press(&mut model, "q"), [Effect::Quit], "runs of another server go on");
        model.own_server = Some(model.server.clone());
        assert_eq!(press(&mut model, "q"), []);
        assert!(model.is_asking);
        assert_eq!(press(&mut model, "n"), []);
        assert!(!model.is_asking);
        assert_eq!(press(&mut model, "qy"), [Effect::Quit]);
        assert_eq!(model.apply(Update::End), [Effect::Quit], "a signal does not ask");
        let ended = Event::Run { run: Box::new(run("first", RunState::Finished)) };
        server(&mut model, ServerUpdate::Event(ended));
        assert_eq!(press(&mut model, "q"), [Effect::Quit]);
    }

    #[test]
    fn lost_connection_is_logged_once_and_ends_with_the_next_answer() {
        let mut model = busy();
        for _ in 0..3 {
            server(&mut model, ServerUpdate::Lost("refused".to_owned()));
        }
        assert!(matches!(model.connection, Connection::Lost { .. }));
        assert_eq!(model.log.iter().filter(|line| line.text == "refused").count(), 1);
        server(&mut model, ServerUpdate::Up(identity()));
        assert_eq!(model.connection, Connection::Up);
    }

    #[test]
    fn run_that_died_with_its_server_has_no_rate() {
        let mut model = busy();
        server(&mut model, ServerUpdate::Lost("refused".to_owned()));
        let before = model.traffic.port_history("eth1").0.len();
        model.tick(model.now + Duration::from_secs(2));
        assert_eq!(model.traffic.port_history("eth1").0.len(), before, "nothing was measured");
        server(&mut model, ServerUpdate::Up(identity()));
        assert!(model.traffic.port("eth1").tx.frames > 0.0);
        server(&mut model, ServerUpdate::Runs(vec![run("first", RunState::Died)]));
        let port = model.traffic.port("eth1");
        assert_eq!((port.tx.frames, port.tx_frames), (0.0, 6_000));
        assert_eq!(model.active().count(), 0);
    }

    #[test]
    fn news_of_an_earlier_server_are_ignored() {
        let mut model = busy();
        let options = wirestorm_api::client::ClientOptions {
            server: "localhost:1".to_owned(),
            ..Default::default()
        };
        let client = wirestorm_api::client::Client::new(&options).unwrap();
        assert_eq!(model.apply(Update::Connected(Box::new(client))), [Effect::Watch]);
        assert_eq!(model.server, "http://localhost:1");
        let late = ServerUpdate::Event(Event::Ports { ports: vec![port("left", "eth1")] });
        model.apply(Update::Server(0, late));
        assert!(model.ports.is_empty());
    }

    #[test]
    fn ended_run_is_logged_and_its_followed_place_is_free() {
        let mut model = busy();
        let ended = Event::Run { run: Box::new(run("first", RunState::Finished)) };
        server(&mut model, ServerUpdate::Event(ended.clone()));
        server(&mut model, ServerUpdate::Event(ended));
        let count = model.log.iter().filter(|line| line.text.starts_with("first finished")).count();
        assert_eq!(count, 1);
        assert_eq!(server(&mut model, ServerUpdate::Unfollowed("first".into())), []);
        assert_eq!(model.traffic.port("eth1").tx.frames, 0.0);
        assert!(model.ports.iter().all(|port| port.runs.is_empty()));
    }

    #[test]
    fn broken_stream_of_an_active_run_is_followed_again() {
        let mut model = busy();
        let effects = server(&mut model, ServerUpdate::Unfollowed("first".into()));
        assert_eq!(effects, [Effect::Follow("first".to_owned())]);
    }

    #[test]
    fn number_of_followed_runs_and_log_lines_is_bounded() {
        let mut model = model();
        let runs = (0..2 * FOLLOWED_MAX).map(|it| run(&format!("r{it}"), RunState::Running));
        let effects = server(&mut model, ServerUpdate::Runs(runs.collect()));
        assert_eq!(effects.len(), FOLLOWED_MAX);
        for _ in 0..2 * LOG_MAX {
            model.log("a\nb", false);
        }
        assert_eq!(model.log.len(), LOG_MAX);
    }

    #[test]
    fn enter_opens_the_selected_run() {
        let mut model = busy();
        let runs = vec![run("newest", RunState::Finished), run("older", RunState::Finished)];
        server(&mut model, ServerUpdate::Runs(runs));
        press(&mut model, "R");
        model.apply(Update::Key(plain(KeyCode::Down)));
        assert_eq!(press(&mut model, "\n"), [Effect::Execute("show older".to_owned())]);
    }
}
