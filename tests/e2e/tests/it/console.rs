//! `wirestorm console`: lines without a terminal, and the tables on a terminal of tmux.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wirestorm_e2e::{
    Outcome, assert_same_frames, can_run, frames as frames_of, run_command, traffic, wirestorm,
    write_capture,
};
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::Lab;

/// Time for a change on the screen.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two looks at the screen.
const LOOK: Duration = Duration::from_millis(100);

/// A plan of two flows from one end of the lab to the other.
const PLAN: &str = "
ports: [{name: left}, {name: right}]
flows:
  - {name: voice, tx: left, rx: right, size: 128, rate: 1kpps, metrics: {enable: true},
     packet: [ethernet: {}, ipv4: {}, udp: {}]}
  - {name: video, tx: left, rx: right, size: 512, rate: 500pps,
     packet: [ethernet: {}, ipv4: {}, udp: {}]}
";

/// A console with its own server on the ports `left` and `right`.
fn console(lab: &Lab, scratch: &Scratch) -> Command {
    let mut command = Command::new(wirestorm());
    command.arg("console").args(arguments(lab, scratch)).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", scratch.file("state"));
    command
}

fn arguments(lab: &Lab, scratch: &Scratch) -> Vec<String> {
    let path = |name: &str| scratch.file(name).display().to_string();
    let ports = [format!("left={}", lab.a.port()), format!("right={}", lab.b.port())];
    let mut arguments = Vec::new();
    for port in ports {
        arguments.extend(["--port".to_owned(), port]);
    }
    arguments.extend(["--state-dir".to_owned(), path("server")]);
    arguments.extend(["--runs-dir".to_owned(), path("runs")]);
    arguments
}

fn plan(scratch: &Scratch) -> PathBuf {
    let path = scratch.file("plan.yaml");
    std::fs::write(&path, PLAN).unwrap();
    path
}

fn execute(lab: &Lab, scratch: &Scratch, lines: &[&str]) -> Outcome {
    let mut command = console(lab, scratch);
    for line in lines {
        command.args(["-c", line]);
    }
    run_command(&mut command)
}

#[test]
fn lines_run_a_plan_and_print_its_result() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let start = format!("start -f {} -p 0 1 -d 1 --name night", plan(&scratch).display());
    let report = scratch.file("night.html");
    let lines = [
        "acquire -a",
        "ports",
        &start,
        "streams",
        "rate 2kpps -i voice",
        "wait",
        "show night",
        &format!("report night -o {}", report.display()),
        "runs",
    ];
    let output = execute(&lab, &scratch, &lines).expect(0).output;
    for words in ["acquired left, right", "started ", "measured", "rate 2kpps for", "finished"] {
        assert!(output.contains(words), "{words}: {output}");
    }
    assert!(std::fs::read_to_string(report).unwrap().contains("<html"));
    // The history is the usual one.
    let mut runs = Command::new(wirestorm());
    runs.args(["runs", "list", "--runs-dir"]).arg(scratch.file("runs"));
    assert!(run_command(&mut runs).expect(0).output.contains("night"));
}

#[test]
fn update_takes_other_units_than_the_start_and_counters_have_histograms() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let start = format!("start -f {} -p 0 1 -m 900pps --name night", plan(&scratch).display());
    let lines = [
        &start,
        "update -m 0.01%",
        "update -m 2mbps",
        "update -m 2",
        "pause -i voice",
        "stats -l",
        "stats --hist",
        "streams",
        "resume",
        "show night --plan",
        "stop",
    ];
    let output = execute(&lab, &scratch, &lines).expect(0).output;
    for words in ["load 0.01% for", "load 2mbps for", "load 2 for", "paused flows of"] {
        assert!(output.contains(words), "{words}: {output}");
    }
    let line = |beginning: &str, words: &str| {
        let found = output.lines().any(|it| it.starts_with(beginning) && it.contains(words));
        assert!(found, "no line {beginning} with {words}: {output}");
    };
    line("delay", "p50");
    line("delay", "jitter");
    line("voice", "share");
    line("voice", "paused");
    assert!(output.contains("us to ") && output.contains('█'), "{output}");
    assert!(output.contains(PLAN.trim()), "the plan is as it was sent: {output}");
    let wrong = execute(&lab, &scratch, &[&start, "update -m 5x"]);
    wrong.expect_error(1, &["load", "\"5x\"", "50%, 10kpps"]);
}

#[test]
fn resume_continues_the_run_and_the_flows_that_were_paused() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let start = format!("start -f {} -p 0 1", plan(&scratch).display());
    let paused = |lines: &[&str]| -> Vec<String> {
        let lines = [&[start.as_str()][..], lines].concat();
        let output = execute(&lab, &scratch, &lines).expect(0).output;
        let flows = output.lines().filter(|line| line.starts_with('v') && line.contains("paused"));
        flows.map(|line| line[..5].to_owned()).collect()
    };
    // A second of counters after each command: a pause of a flow takes up to 25 ms.
    assert_eq!(paused(&["pause -i voice", "stats -s", "streams"]), ["voice", "voice"]);
    assert!(paused(&["pause -i voice", "pause", "resume", "stats -s", "streams"]).is_empty());
    assert_eq!(paused(&["pause", "stats -s"]), ["voice", "video"]);
    assert_eq!(paused(&["pause", "stats -l", "streams"]), ["voice", "video"]);
}

#[test]
fn first_wrong_line_ends_the_console() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let lines = ["session", "start -f plan.yaml -p 7", "users add ada --role operate"];
    let outcome = execute(&lab, &scratch, &lines);
    assert!(outcome.output.contains("administer"), "{outcome}");
    outcome.expect_error(2, &["-p 7", "port \"7\"", "0 (left), 1 (right)"]);
    execute(&lab, &scratch, &["strat"]).expect_error(2, &["did you mean start"]);
    execute(&lab, &scratch, &["shutdown"]).expect_error(2, &["administrator"]);
    execute(&lab, &scratch, &["show nothing"]).expect_error(1, &["no runs"]);
    let users = execute(&lab, &scratch, &["users"]).expect(0);
    assert!(users.output.contains("no users"), "the third line was not executed\n{users}");
}

#[test]
fn runs_of_the_own_server_end_with_the_console() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let start = format!("start -f {} -p 0 1 --name endless", plan(&scratch).display());
    let outcome = execute(&lab, &scratch, &[&start]).expect(0);
    assert!(outcome.messages.contains("end with this console"), "{outcome}");
    let shown = execute(&lab, &scratch, &["runs"]).expect(0).output;
    assert!(shown.contains("endless") && shown.contains("stopped"), "{shown}");
}

#[test]
fn captured_frames_of_a_pushed_capture_are_in_the_file() {
    if !can_run(&[]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let sent = write_capture(&scratch, "sent.pcap", &traffic(5, 1));
    let frames = scratch.file("frames.pcapng");
    let capture = format!("capture start right -w {} -c 20", frames.display());
    let push = format!("push -f {} -p 0 -i 1000 --packets 40", sent.display());
    let lines = [capture.as_str(), &push, "wait", "capture stop --wait", "captures"];
    let output = execute(&lab, &scratch, &lines).expect(0).output;
    assert!(output.contains("sent.pcap"), "the capture was uploaded: {output}");
    // tcpdump reads pcapng, and writes pcap.
    let arrived = scratch.file("arrived.pcap");
    let convert = [Path::new("-r"), &frames, Path::new("-w"), &arrived];
    run_command(Command::new("tcpdump").args(convert)).expect(0);
    let read = |path: &Path| wirestorm_testkit::pcap::read(path).unwrap();
    let (sent, arrived) = (read(&sent), read(&arrived));
    assert_same_frames("the first frames", frames_of(&sent[..20]), frames_of(&arrived));
}

/// A terminal of tmux. Dropping it ends its programs.
struct Terminal<'a> {
    scratch: &'a Scratch,
}

impl<'a> Terminal<'a> {
    /// Starts a shell in a terminal of 80 columns and 24 rows.
    fn start(scratch: &'a Scratch) -> Self {
        let terminal = Self { scratch };
        let shell = ["env", "-u", "TMUX", "PS1=ready$ ", "sh"];
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"], &shell);
        terminal.wait_for("ready$", |screen| screen.contains("ready$"));
        terminal
    }

    fn tmux(&self, arguments: &[&str], more: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.scratch.file("tmux")).args(arguments).args(more);
        command.env("LC_ALL", "C.UTF-8");
        let output = command.output().expect("tmux runs");
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&["send-keys"], keys);
    }

    fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l"], &[text]);
    }

    /// Leaves the command line. The next key must not follow at once: both would be one key.
    #[track_caller]
    fn leave_command_line(&self) {
        self.keys(&["Escape"]);
        self.wait_for("keys of the tables", |screen| screen.contains("q quit"));
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"], &[])
    }

    fn format(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p"], &[format]).trim().to_owned()
    }

    #[track_caller]
    fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {what} on the screen:\n{screen}");
            // tmux has no event for a change of the screen.
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until the shell has its terminal back as it was.
    #[track_caller]
    fn wait_restored(&self) {
        self.wait_for("shell", |screen| screen.trim_end().ends_with("ready$"));
        assert_eq!(self.format("#{alternate_on}"), "0", "the full screen is left");
        assert_eq!(self.format("#{cursor_flag}"), "1", "the cursor is visible");
        self.text("clear; stty -a | grep -o ' echo ' | tr -d ' '; echo don''e\n");
        let screen = self.wait_for("answer", |screen| screen.contains("done"));
        assert!(screen.lines().any(|line| line.trim() == "echo"), "no echo of keys:\n{screen}");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        // A server without sessions has ended already.
        drop(command.arg("-S").arg(self.scratch.file("tmux")).arg("kill-server").output());
    }
}

/// Starts the console in a terminal.
fn console_on<'a>(lab: &Lab, scratch: &'a Scratch) -> Terminal<'a> {
    let terminal = Terminal::start(scratch);
    let state = scratch.file("state");
    let command = wirestorm().display();
    let arguments = arguments(lab, scratch).join(" ");
    terminal.text(&format!("XDG_STATE_HOME={} {command} console {arguments}\n", state.display()));
    terminal.wait_for("dashboard", |screen| screen.contains("1 right"));
    terminal
}

/// Returns the row of the dashboard with a name.
fn row<'a>(screen: &'a str, name: &str) -> &'a str {
    screen.lines().find(|line| line.starts_with(name)).unwrap_or_default()
}

#[test]
fn tables_show_a_plan_that_a_line_starts() {
    if !can_run(&["tmux"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let plan = plan(&scratch);
    let terminal = console_on(&lab, &scratch);

    terminal.text(&format!(":start -f {} -p 0 1\n", plan.display()));
    let screen = terminal.wait_for("rate", |screen| {
        let rate = row(screen, "tx rate");
        rate.contains("1.5") && rate.contains("kpps")
    });
    assert!(row(&screen, "runs").contains("running"), "{screen}");
    assert!(screen.contains("1 active"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");

    terminal.leave_command_line();
    terminal.text("s");
    let screen = terminal.wait_for("flows", |screen| {
        row(screen, "voice").contains("kpps") && row(screen, "video").contains("pps")
    });
    assert!(screen.contains("Streams - 2 flows"), "{screen}");
    terminal.text("l");
    let screen = terminal.wait_for("delay", |screen| row(screen, "voice").contains(" us"));
    assert!(screen.contains("p99") && screen.contains("jitter"), "{screen}");
    terminal.text("l");
    let screen = terminal.wait_for("histogram", |screen| {
        screen.lines().any(|line| line.contains("us to ") && line.contains('█'))
    });
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    terminal.text("p");
    terminal.wait_for("hint to resume", |screen| screen.contains("r resume!"));
    terminal.text("r");
    terminal
        .wait_for("no hint", |screen| screen.contains("r resume ") && screen.contains("resumed"));

    // A flow on its own.
    terminal.text(":pause -i voice\n");
    terminal.wait_for("answer", |screen| screen.contains("paused flows of"));
    terminal.leave_command_line();
    terminal.text("s");
    terminal.wait_for("paused flow", |screen| {
        row(screen, "voice").contains("paused") && screen.contains("r resume!")
    });
    terminal.text("r");
    terminal.wait_for("resumed flow", |screen| {
        row(screen, "voice").contains("kpps") && screen.contains("r resume ")
    });

    // Completion of a flow's name, then the history.
    terminal.text(":rate 3kpps -i vo");
    terminal.keys(&["Tab"]);
    terminal.wait_for("completed name", |screen| screen.contains("> rate 3kpps -i voice"));
    terminal.keys(&["Enter"]);
    terminal.wait_for("answer", |screen| screen.contains("rate 3kpps for"));
    terminal.keys(&["Up", "Up", "Up"]);
    terminal.wait_for("history", |screen| screen.contains("> start -f"));
    terminal.keys(&["C-c"]);

    terminal.text("stop\n");
    terminal.wait_for("end", |screen| screen.contains("stopped") && screen.contains("0 active"));
    terminal.leave_command_line();
    terminal.text("q");
    terminal.wait_restored();
    let history = std::fs::read_to_string(scratch.file("state/wirestorm/console-history")).unwrap();
    assert_eq!(history.lines().last(), Some("stop"), "{history}");
}

#[test]
fn console_asks_before_its_own_runs_end() {
    if !can_run(&["tmux"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let plan = plan(&scratch);
    let terminal = console_on(&lab, &scratch);
    terminal.text(&format!(":start -f {} -p 0 1\n", plan.display()));
    terminal.wait_for("run", |screen| screen.contains("1 active"));
    terminal.leave_command_line();
    terminal.text("q");
    terminal.wait_for("question", |screen| screen.contains("1 run ends with this console"));
    terminal.text("n");
    terminal.wait_for("no question", |screen| !screen.contains("ends with this console"));
    terminal.text("q");
    terminal.wait_for("question", |screen| screen.contains("1 run ends with this console"));
    terminal.text("y");
    terminal.wait_restored();
    let shown = execute(&lab, &scratch, &["runs"]).expect(0).output;
    assert!(shown.contains("stopped"), "{shown}");
}

#[test]
fn signal_restores_the_terminal() {
    if !can_run(&["tmux"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let terminal = console_on(&lab, &scratch);
    let shell = terminal.format("#{pane_pid}");
    let mut children = Command::new("ps");
    children.args(["-o", "pid=", "--ppid", &shell]);
    let child = run_command(&mut children).expect(0).output.trim().to_owned();
    run_command(Command::new("kill").args(["-TERM", &child])).expect(0);
    terminal.wait_restored();
}

#[test]
fn small_terminal_has_a_message_and_the_tables_return() {
    if !can_run(&["tmux"]) {
        return;
    }
    let (lab, scratch) = (Lab::new().unwrap(), Scratch::new().unwrap());
    let terminal = console_on(&lab, &scratch);
    terminal.tmux(&["resize-window", "-x", "30", "-y", "8"], &[]);
    terminal.wait_for("message", |screen| screen.contains("has 30 columns"));
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"], &[]);
    let screen = terminal.wait_for("dashboard", |screen| screen.contains("1 right"));
    assert!(!row(&screen, "rx bytes").is_empty(), "a high terminal has all rows: {screen}");
    terminal.text("q");
    terminal.wait_restored();
}
