use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use wirestorm_api::capture::Capture;
use wirestorm_api::plan::StoredPlan;
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
        is_paused: false,
        has_paused_flows: false,
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

/// A page of runs without a page after it.
pub(crate) fn page(runs: Vec<RunSummary>) -> RunList {
    RunList { total: runs.len(), runs, next: None }
}

/// The list of runs, without active ones beyond it.
pub(crate) fn lists(newest: RunList) -> ServerUpdate {
    ServerUpdate::Runs { newest, active: Vec::new() }
}

/// Runs that have ended: `r0` is the newest.
fn ended(range: std::ops::Range<u64>) -> Vec<RunSummary> {
    let run = |number| RunSummary {
        created_unix_ns: 1_000 - number,
        ..run(&format!("r{number}"), RunState::Finished)
    };
    range.map(run).collect()
}

/// The newest 100 of 150 runs.
fn first_of_two() -> RunList {
    RunList { runs: ended(0..100), total: 150, next: Some("cursor".to_owned()) }
}

fn arrow(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    model.apply(Update::Key(plain(code)))
}

#[test]
fn pause_of_another_console_is_shown_and_can_be_resumed() {
    let mut model = busy();
    let state = |model: &Model| crate::command::state(&model.runs[0]);
    let paused = RunSummary { is_paused: true, ..run("first", RunState::Running) };
    assert_eq!((state(&model), model.has_paused()), ("running", false));
    let event = Event::Run { run: Box::new(paused.clone()) };
    server(&mut model, ServerUpdate::Event(event));
    assert_eq!((state(&model), model.has_paused()), ("paused", true));
    let other = RunSummary { user: Some("bob".to_owned()), ..paused };
    server(&mut model, lists(page(vec![other])));
    assert!(!model.has_paused(), "that run is one of bob");
    let flow = RunSummary { has_paused_flows: true, ..run("first", RunState::Running) };
    server(&mut model, ServerUpdate::Event(Event::Run { run: Box::new(flow) }));
    assert_eq!((state(&model), model.has_paused()), ("running", true), "r resumes its flows");
    let ended = Event::Run { run: Box::new(run("first", RunState::Finished)) };
    server(&mut model, ServerUpdate::Event(ended));
    assert_eq!((state(&model), model.has_paused()), ("finished", false));
}

#[test]
fn end_of_the_list_reads_older_runs_once() {
    let mut model = busy();
    server(&mut model, lists(first_of_two()));
    assert_eq!(press(&mut model, "R"), [], "the selected run is far from the end");
    for _ in 0..7 {
        assert_eq!(arrow(&mut model, KeyCode::PageDown), []);
    }
    let effect = [Effect::ReadRuns("cursor".to_owned())];
    assert_eq!(arrow(&mut model, KeyCode::PageDown), effect);
    assert_eq!(arrow(&mut model, KeyCode::Down), [], "the page is on its way");
    let late = RunList { runs: ended(0..3), total: 3, next: None };
    server(&mut model, ServerUpdate::MoreRuns("another".to_owned(), Ok(late)));
    assert_eq!(model.runs.len(), 100, "an answer to an earlier request");
    // A run was added meanwhile, so the page begins with a known one.
    let second = RunList { runs: ended(99..150), total: 150, next: None };
    server(&mut model, lists(first_of_two()));
    assert_eq!(arrow(&mut model, KeyCode::Down), effect);
    server(&mut model, ServerUpdate::MoreRuns("cursor".to_owned(), Ok(second)));
    let ids: Vec<&str> = model.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!((ids.len(), ids[99], ids[149]), (150, "r99", "r149"));
    assert_eq!(arrow(&mut model, KeyCode::PageDown), [], "there are no more");
}

#[test]
fn older_runs_are_read_again_after_an_error() {
    let mut model = busy();
    server(&mut model, lists(first_of_two()));
    press(&mut model, "R");
    model.offset = 98;
    let effect = [Effect::ReadRuns("cursor".to_owned())];
    assert_eq!(arrow(&mut model, KeyCode::Down), effect);
    let failed = Err("the disk is full".to_owned());
    assert_eq!(server(&mut model, ServerUpdate::MoreRuns("cursor".to_owned(), failed)), []);
    let logged = model.log.back().unwrap();
    assert!(logged.is_error && logged.text.contains("older than the 100"), "{logged:?}");
    assert!(logged.text.contains("the disk is full"), "{logged:?}");
    assert_eq!(arrow(&mut model, KeyCode::Down), effect, "the next attempt");
}

#[test]
fn active_run_beyond_the_newest_page_stays_active() {
    let mut model = busy();
    let active = vec![run("first", RunState::Running)];
    server(&mut model, ServerUpdate::Runs { newest: first_of_two(), active });
    assert_eq!(model.active().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["first"]);
    assert!(model.traffic.port("eth1").tx.frames > 0.0, "its rates continue");
    assert_eq!((model.own_active(), model.runs.len()), (1, 101));
    // The page has the newer news.
    let active = vec![run("first", RunState::Running)];
    let newest = page(vec![run("first", RunState::Finished)]);
    server(&mut model, ServerUpdate::Runs { newest, active });
    assert_eq!(model.active().count(), 0);
}

#[test]
fn selected_run_stays_selected_when_the_list_changes() {
    let mut model = busy();
    server(&mut model, lists(first_of_two()));
    press(&mut model, "R");
    model.offset = 1;
    let new = RunSummary { created_unix_ns: 2_000, ..run("new", RunState::Running) };
    server(&mut model, ServerUpdate::Event(Event::Run { run: Box::new(new) }));
    assert_eq!(press(&mut model, "\n"), [Effect::Execute("show r1".to_owned())]);
    server(&mut model, ServerUpdate::Event(Event::RunDeleted { id: "r0".to_owned() }));
    assert_eq!(press(&mut model, "\n"), [Effect::Execute("show r1".to_owned())]);
    // The list was read again, and the run is older than its first page.
    let newer =
        |run: RunSummary| RunSummary { created_unix_ns: run.created_unix_ns + 4_000, ..run };
    let runs = ended(200..210).into_iter().map(newer).collect();
    let newest = RunList { runs, total: 150, next: Some("cursor".to_owned()) };
    server(&mut model, lists(newest));
    assert_eq!(press(&mut model, "\n"), [Effect::Execute("show r1".to_owned())]);
    server(&mut model, ServerUpdate::Event(Event::RunDeleted { id: "r1".to_owned() }));
    let last = [Effect::Execute("show r209".to_owned())];
    assert_eq!(press(&mut model, "\n"), last, "the last run, which is next to its place");
}

#[test]
fn plans_and_captures_of_others_are_completed() {
    let mut model = busy();
    let (plans, captures) = (vec!["imix".to_owned()], vec!["web.pcap".to_owned()]);
    server(&mut model, ServerUpdate::Names { plans, captures });
    let plan = StoredPlan { name: "burst".to_owned(), bytes: 1, changed_unix_ns: 2 };
    let capture = Capture { name: "a.pcap".to_owned(), bytes: 1, uploaded_unix_ns: 2 };
    for event in [
        Event::PlanStored { plan: plan.clone() },
        Event::PlanStored { plan },
        Event::CaptureUploaded { capture },
        Event::CaptureDeleted { name: "web.pcap".to_owned() },
    ] {
        assert_eq!(server(&mut model, ServerUpdate::Event(event)), []);
    }
    assert_eq!(model.names.plans, ["burst", "imix"]);
    assert_eq!(model.names.captures, ["a.pcap"]);
    server(&mut model, ServerUpdate::Event(Event::PlanDeleted { name: "burst".to_owned() }));
    assert_eq!(model.names.plans, ["imix"]);
}

#[test]
fn second_press_of_latency_shows_histograms() {
    let mut model = busy();
    press(&mut model, "l");
    assert!(!model.shows_histograms());
    press(&mut model, "l");
    assert!(model.shows_histograms());
    press(&mut model, "sl");
    assert!(model.shows_histograms(), "the choice stays");
    press(&mut model, "l");
    assert!(!model.shows_histograms());
}

#[test]
fn left_and_right_scroll_the_flows_of_histograms() {
    let mut model = busy();
    let flows = crate::traffic::tests::measured(["voice", "video"].map(str::to_owned).into_iter());
    server(&mut model, ServerUpdate::Progress("first".into(), flows));
    press(&mut model, "ll");
    let mut after = |code| {
        arrow(&mut model, code);
        model.first_flow
    };
    use KeyCode::{Left, Right};
    assert_eq!([Right, Right, Left, Left].map(&mut after), [1, 1, 0, 0]);
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
    server(&mut model, lists(page(vec![run("first", RunState::Died)])));
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
    let effects = server(&mut model, lists(page(runs.collect())));
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
    server(&mut model, lists(page(runs)));
    press(&mut model, "R");
    model.apply(Update::Key(plain(KeyCode::Down)));
    assert_eq!(press(&mut model, "\n"), [Effect::Execute("show older".to_owned())]);
}
