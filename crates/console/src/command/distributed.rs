//! Agents of the server's bus, and tests across machines.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use wirestorm_api::agent::{Agent, AgentState};
use wirestorm_api::test::{TestFlow, TestRequest, TestSource, TestState, TestStatus, TestSummary};

use super::{Answer, CommandError, Execute, Result};
use crate::number::grouped;
use crate::session::Session;
use crate::text::table;

/// Agents of the bus.
#[derive(Args, Debug)]
pub(crate) struct Agents {}

impl Execute for Agents {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let list = session.client.agents()?;
        let row = |agent: &Agent| {
            let interfaces: Vec<&str> =
                agent.interfaces.iter().map(|it| it.interface.as_str()).collect();
            [
                agent.name.clone(),
                match (agent.state, &agent.test) {
                    (AgentState::Busy, Some(test)) => format!("test {test}"),
                    (AgentState::Idle | AgentState::Busy, _) => "idle".to_owned(),
                    (AgentState::Lost, _) => format!("lost {:.0} s ago", agent.seen_s),
                },
                agent.host.clone(),
                interfaces.join(", "),
            ]
        };
        let rows: Vec<_> = list.agents.iter().map(row).collect();
        let mut text = match rows.is_empty() {
            true => String::new(),
            false => table(["agent", "state", "host", "interfaces"], &rows),
        };
        if let Some(reason) = list.reason {
            text += &format!("{reason}\n");
        }
        Ok(Answer::Text(if text.is_empty() { "no agents\n".to_owned() } else { text }))
    }
}

/// Tests across machines.
#[derive(Args, Debug)]
pub(crate) struct Tests {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the tests, the newest first
    List,
    /// Start a test
    Start {
        /// Test in YAML or JSON, a file of this machine
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Show the progress and the results of a test
    Show {
        /// ID
        #[arg(value_name = "TEST")]
        id: String,
    },
    /// Stop a test
    Stop {
        /// ID
        #[arg(value_name = "TEST")]
        id: String,
    },
    /// Print the result of a test as JSON, or write it to a file
    Result {
        /// ID
        #[arg(value_name = "TEST")]
        id: String,
        /// File of this machine
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

impl Execute for Tests {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let client = &session.client;
        let text = match self.action.unwrap_or(Action::List) {
            Action::List => {
                let rows: Vec<_> = client.tests()?.iter().map(row).collect();
                match rows.is_empty() {
                    true => "no tests: `tests start FILE` starts one\n".to_owned(),
                    false => table(["test", "name", "state", "user"], &rows),
                }
            }
            Action::Start { file } => {
                let of_file = |error| CommandError::usage(format!("{}: {error}", file.display()));
                let text = std::fs::read_to_string(&file).map_err(of_file)?;
                let request = TestRequest {
                    test: TestSource::Text(text),
                    name: None,
                    ports: Default::default(),
                    lease: None,
                };
                let test = client.create_test(&request)?;
                format!("test {id} runs: `tests show {id}` shows its progress\n", id = test.id)
            }
            Action::Show { id } => status(&client.test(&id)?),
            Action::Stop { id } => format!("test {} stops\n", client.stop_test(&id)?.id),
            Action::Result { id, output } => {
                let result = client.test_result(&id)?;
                let text = format!("{result:#}\n");
                match output {
                    None => text,
                    Some(path) => {
                        let failed =
                            |error| CommandError::failed(format!("{}: {error}", path.display()));
                        std::fs::write(&path, text).map_err(failed)?;
                        format!("wrote {}\n", path.display())
                    }
                }
            }
        };
        Ok(Answer::Text(text))
    }
}

fn row(test: &TestSummary) -> [String; 4] {
    [test.id.clone(), test.name.clone(), state(test), test.user.clone()]
}

fn state(test: &TestSummary) -> String {
    let phase = || test.phase.clone().unwrap_or_default();
    match test.state {
        TestState::Running if test.is_stopping => "stopping".to_owned(),
        TestState::Running => format!("running, {}", phase()),
        TestState::Finished => "finished".to_owned(),
        TestState::Failed => "failed".to_owned(),
        TestState::Interrupted => "interrupted".to_owned(),
    }
}

fn status(status: &TestStatus) -> String {
    let TestStatus { test, results, .. } = status;
    let mut text = format!("test {}, {}: {}\n", test.id, test.name, state(test));
    if let Some(message) = &test.message {
        text += &format!("{message}\n");
    }
    if !test.state.is_over() {
        let (sent, received) = (grouped(status.sent), grouped(status.received));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "iteration {} of {}: {sent} sent, {received} received",
            test.iteration, test.iterations
        );
    }
    for iteration in results {
        for run in &iteration.runs {
            let outcome = run.outcome.as_deref().unwrap_or("no result");
            let _ = writeln!(text, "\niteration {}, run {}: {outcome}", iteration.number, run.name);
            run.messages.iter().for_each(|message| text += &format!("{message}\n"));
            let rows: Vec<_> = run.flows.iter().map(flow).collect();
            if !rows.is_empty() {
                text += &table(["flow", "sent", "received", "lost %", "delay", "error"], &rows);
            }
        }
    }
    text
}

fn flow(flow: &TestFlow) -> [String; 6] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let microseconds = |nanoseconds: f64| format!("{:.2} us", nanoseconds / 1e3);
    let delay = flow.delay.as_ref();
    let error = delay.and_then(|it| {
        let error = it.half_width_ns.map(microseconds)?;
        Some(match it.bound_ns {
            Some(bound) => format!("{error}, {} in any case", microseconds(bound)),
            None => error,
        })
    });
    [
        flow.name.clone(),
        grouped(flow.sent),
        or_dash(flow.received.map(grouped)),
        or_dash(flow.loss_percent.map(|it| format!("{it:.3}"))),
        or_dash(delay.and_then(|it| it.p50_ns).map(|it| microseconds(it as f64))),
        or_dash(error),
    ]
}
