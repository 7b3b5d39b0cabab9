//! Commands to flows during a run, one a line, from the source of `--control`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use wirestorm_api::client::Client;
use wirestorm_api::run::CommandRequest;
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::plan::traffic::{RequestedRate, TrafficPlan, parse_rate};
use wirestorm_control::{Command, FlowCommand, RunHandle};

/// Syntax of a line, for messages.
const EXPECTED: &str = "pause FLOW, resume FLOW, start FLOW, stop FLOW, rate FLOW RATE or scale \
                        FLOW FACTOR; FLOW may be `all`";

/// Reads commands from a file, a named pipe or standard input (`-`), and sends them to a run until
/// the end of the file.
///
/// It prints invalid lines to standard error.
///
/// # Errors
/// The thread cannot start.
pub(super) fn follow(path: &Path, plan: &TrafficPlan, run: &RunHandle) -> Result<(), String> {
    let names: Vec<String> = plan.flows.iter().map(|flow| flow.stream.name.clone()).collect();
    let run = run.clone();
    read(path, move |line| {
        let (flows, command) = line.command(&names)?;
        run.command(Command::Flows { flows, command }).map_err(|error| error.to_string())
    })
}

/// As [`follow`], for a run on a server.
///
/// # Errors
/// The thread cannot start.
pub(super) fn follow_remote(path: &Path, client: &Client, run: &str) -> Result<(), String> {
    let (client, run) = (client.clone(), run.to_owned());
    read(path, move |line| {
        let request = line.request();
        client.command(&run, &request).map(|_| ()).map_err(|error| error.to_string())
    })
}

/// Reads lines on a thread: opening a named pipe blocks until a writer opens it, and a terminal
/// never ends.
fn read(
    path: &Path,
    execute: impl Fn(Line) -> Result<(), String> + Send + 'static,
) -> Result<(), String> {
    let name = path.display().to_string();
    let path = path.to_owned();
    let failed = format!("--control {name}");
    let read = move || {
        let input: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            match File::open(&path) {
                Ok(file) => Box::new(BufReader::new(file)),
                Err(error) => return eprintln!("wirestorm: --control {name}: {error}"),
            }
        };
        for (number, line) in input.lines().map_while(Result::ok).enumerate() {
            let executed = Line::parse(&line).and_then(|line| line.map_or(Ok(()), &execute));
            if let Err(message) = executed {
                eprintln!("wirestorm: --control {name}, line {}: {message}", number + 1);
            }
        }
    };
    let thread = std::thread::Builder::new().name("control".into()).spawn(read);
    thread.map(|_| ()).map_err(|error| format!("{failed}: cannot start a thread: {error}"))
}

/// A line: a verb, a flow or all of them, and a value for some verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    verb: Verb,
    /// Name of the flow; `None` for all.
    flow: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Verb {
    Pause,
    Resume,
    Start,
    Stop,
    Rate(String),
    Scale(String),
}

impl Line {
    /// Parses a line. Returns `None` for an empty line.
    fn parse(line: &str) -> Result<Option<Self>, String> {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((verb, rest)) = line.split_once(char::is_whitespace) else {
            return if line.is_empty() { Ok(None) } else { Err(invalid_line(line)) };
        };
        let rest = rest.trim();
        let (name, value) = match verb {
            "rate" | "scale" => {
                let parts = rest.rsplit_once(char::is_whitespace);
                let (name, value) = parts.ok_or_else(|| invalid_line(line))?;
                (name.trim(), value.to_owned())
            }
            _ => (rest, String::new()),
        };
        let verb = match verb {
            "pause" => Verb::Pause,
            "resume" => Verb::Resume,
            "start" => Verb::Start,
            "stop" => Verb::Stop,
            "rate" => Verb::Rate(value),
            "scale" => Verb::Scale(value),
            _ => return Err(invalid_line(line)),
        };
        Ok(Some(Self { verb, flow: (name != "all").then(|| name.to_owned()) }))
    }

    /// Returns the indices of the flows in the plan, and the command.
    fn command(self, names: &[String]) -> Result<(Vec<usize>, FlowCommand), String> {
        let flows = match &self.flow {
            None => (0..names.len()).collect(),
            Some(name) => match names.iter().position(|other| other == name) {
                Some(place) => vec![place],
                None => {
                    let known = names.iter().take(10).map(String::as_str).collect::<Vec<_>>();
                    let known = known.join(", ");
                    return Err(format!("unknown flow {name:?}, expected one of {known}"));
                }
            },
        };
        let command = match &self.verb {
            Verb::Pause => FlowCommand::Pause,
            Verb::Resume => FlowCommand::Resume,
            Verb::Start => FlowCommand::Start,
            Verb::Stop => FlowCommand::Stop,
            Verb::Rate(value) => match parse_rate(value) {
                Some(RequestedRate::Speed(speed)) => FlowCommand::SetSpeed(speed),
                _ => {
                    return Err(format!(
                        "found {value:?}, expected a rate such as 1Mpps, 10G-l1, 10G-l2 or max"
                    ));
                }
            },
            Verb::Scale(value) => {
                let (number, divisor) = match value.strip_suffix('%') {
                    Some(number) => (number, 100),
                    None => (value.as_str(), 1),
                };
                let factor = Decimal::parse(number).ok().filter(|factor| factor.digits > 0);
                let factor = factor.ok_or_else(|| {
                    format!(
                        "found {value:?}, expected a factor of the plan's rate such as 0.5 or 50%"
                    )
                })?;
                FlowCommand::Scale {
                    numerator: factor.digits,
                    denominator: factor.denominator.saturating_mul(divisor),
                }
            }
        };
        Ok((flows, command))
    }

    /// Returns the command for a server, which knows the flows and checks the values.
    fn request(self) -> CommandRequest {
        let flows = self.flow.map(|flow| vec![flow]);
        match self.verb {
            Verb::Pause => CommandRequest::Pause { flows },
            Verb::Resume => CommandRequest::Resume { flows },
            Verb::Start => CommandRequest::StartFlows { flows },
            Verb::Stop => CommandRequest::StopFlows { flows },
            Verb::Rate(rate) => CommandRequest::Rate { rate, flows },
            Verb::Scale(factor) => CommandRequest::Scale { factor, flows },
        }
    }
}

fn invalid_line(line: &str) -> String {
    format!("found {line:?}, expected {EXPECTED}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestorm_control::base::rate::{Layer, Rate};
    use wirestorm_control::model::stream::Speed;

    fn read(line: &str) -> Result<Option<(Vec<usize>, FlowCommand)>, String> {
        let names = ["voice".into(), "bulk data".into()];
        Line::parse(line)?.map(|line| line.command(&names)).transpose()
    }

    #[test]
    fn line_has_a_command_and_a_flow() {
        assert_eq!(read("pause voice"), Ok(Some((vec![0], FlowCommand::Pause))));
        assert_eq!(read("  resume   bulk data  # again"), Ok(Some((vec![1], FlowCommand::Resume))));
        assert_eq!(read("stop all"), Ok(Some((vec![0, 1], FlowCommand::Stop))));
        assert_eq!(read("start all"), Ok(Some((vec![0, 1], FlowCommand::Start))));
        let scaled = FlowCommand::Scale { numerator: 50, denominator: 100 };
        assert_eq!(read("scale bulk data 50%"), Ok(Some((vec![1], scaled))));
        let rate = Rate::parse_per_second("2G", 1).unwrap();
        let speed = FlowCommand::SetSpeed(Speed::Bits(rate, Layer::Wire));
        assert_eq!(read("rate voice 2G-l1"), Ok(Some((vec![0], speed))));
        assert_eq!(read("  # nothing"), Ok(None));
    }

    #[test]
    fn invalid_lines_report_what_was_expected() {
        for (line, words) in [
            ("hold voice", "expected pause FLOW"),
            ("pause", "expected pause FLOW"),
            ("pause video", "unknown flow \"video\", expected one of voice, bulk data"),
            ("rate voice fast", "found \"fast\", expected a rate"),
            ("rate voice 50%", "found \"50%\", expected a rate"),
            ("scale voice 0", "expected a factor"),
            ("scale voice", "expected pause FLOW"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
