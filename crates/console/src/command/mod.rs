//! Commands: one table gives dispatch, help and completion.

mod captures;
mod distributed;
mod general;
mod plans;
mod ports;
mod runs;
mod start;
mod stats;
mod users;

use std::fmt::Write as _;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command};

use crate::session::Session;

pub(crate) use ports::{link, owner};
pub(crate) use runs::{ended, state, state_name};

/// Smallest similarity of a suggested command, as Jaro-Winkler computes it.
const SIMILARITY_MIN: f64 = 0.75;
/// Most suggestions for a misspelled command.
const SUGGESTIONS_MAX: usize = 3;

/// Error of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandError {
    message: String,
    is_usage: bool,
}

impl CommandError {
    /// Wrong input: nothing was done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_usage: true }
    }

    /// The server or the system refused.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_usage: false }
    }

    /// Adds the line to the message.
    pub(crate) fn of_line(self, line: &str) -> Self {
        Self { message: format!("{line}: {}", self.message), ..self }
    }

    /// Returns whether the line itself is wrong, so that nothing was done.
    pub const fn is_usage(&self) -> bool {
        self.is_usage
    }
}

/// Answer to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Text to show, possibly empty.
    Text(String),
    /// The session has another server.
    Connected(String),
    /// Count from now on.
    Clear,
    /// Show the lines of the history.
    History,
    /// Leave the console.
    Quit,
}

impl Answer {
    /// Returns the text to show; empty for answers that are no text.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Connected(text) => text.clone(),
            Self::Clear | Self::History | Self::Quit => String::new(),
        }
    }
}

pub(crate) type Result<T> = std::result::Result<T, CommandError>;

/// Executes a command.
pub(crate) trait Execute: Args {
    fn execute(self, session: &mut Session) -> Result<Answer>;
}

/// Group of commands in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Traffic,
    Ports,
    Tables,
    Files,
    Runs,
    Machines,
    Console,
}

impl Group {
    const ALL: [Self; 7] = [
        Self::Traffic,
        Self::Ports,
        Self::Tables,
        Self::Runs,
        Self::Machines,
        Self::Files,
        Self::Console,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::Traffic => "Traffic",
            Self::Ports => "Ports",
            Self::Tables => "Counters",
            Self::Runs => "Stored runs",
            Self::Machines => "Tests across machines",
            Self::Files => "Plans, captures and users",
            Self::Console => "Console",
        }
    }
}

/// A command of the table.
pub(crate) struct Definition {
    /// Name, then aliases.
    names: &'static [&'static str],
    group: Group,
    about: &'static str,
    examples: &'static str,
    augment: fn(Command) -> Command,
    execute: fn(&mut Session, &ArgMatches) -> Result<Answer>,
}

impl Definition {
    const fn of<T: Execute>(
        names: &'static [&'static str],
        group: Group,
        about: &'static str,
        examples: &'static str,
    ) -> Self {
        Self { names, group, about, examples, augment: T::augment_args, execute: execute::<T> }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Returns the parser.
    pub(crate) fn parser(&self) -> Command {
        let command = Command::new(self.name()).no_binary_name(true).disable_version_flag(true);
        let command = (self.augment)(command).about(self.about).long_about(None);
        let command = command.color(clap::ColorChoice::Never).term_width(79);
        match self.examples {
            "" => command,
            examples => command.after_help(format!("Examples:\n{examples}")),
        }
    }

    /// Returns the help.
    pub(crate) fn help(&self) -> String {
        self.parser().render_help().to_string()
    }
}

fn execute<T: Execute>(session: &mut Session, matches: &ArgMatches) -> Result<Answer> {
    let arguments = T::from_arg_matches(matches).map_err(|error| of_parser(&error))?;
    arguments.execute(session)
}

/// All commands, in the order of the help.
pub(crate) const COMMANDS: &[Definition] = &[
    Definition::of::<start::Start>(
        &["start"],
        Group::Traffic,
        "Start a plan, a TRex profile, or a prepared run",
        "  start -f stl/imix.py -m 10kpps -p 0\n  start -f plan.yaml -p left=eth1 right=eth2 -d 30s\n  \
         start -f profile.py -p 0 1 -m 50% -t --size 64\n  start night        the run night, which \
         `run --hold` prepared",
    ),
    Definition::of::<start::Run>(
        &["run"],
        Group::Traffic,
        "Run a plan: a file of this machine, or one that the server stores",
        "  run plan.yaml --port left=eth1 --port right=eth2 --duration 30s\n  run imix --name night --hold",
    ),
    Definition::of::<start::Push>(
        &["push"],
        Group::Traffic,
        "Replay a capture on ports",
        "  push -f traffic.pcap -p 0\n  push -f traffic.pcap -p 0 --dual -s 2 -c 10\n  push -r -f \
         web.pcap -p 0 --rate 10kpps --rx 1",
    ),
    Definition::of::<runs::Stop>(
        &["stop"],
        Group::Traffic,
        "Stop runs",
        "  stop\n  stop -p 0\n  stop night",
    ),
    Definition::of::<runs::Pause>(
        &["pause"],
        Group::Traffic,
        "Pause runs, or flows of them",
        "  pause -p 0\n  pause -i voice video",
    ),
    Definition::of::<runs::Resume>(
        &["resume"],
        Group::Traffic,
        "Continue paused runs or flows",
        "",
    ),
    Definition::of::<runs::Update>(
        &["update"],
        Group::Traffic,
        "Change the load: a factor, or a value in the unit of the start",
        "  update -m 2\n  update -m 20kpps -p 0      after start -m 10kpps",
    ),
    Definition::of::<runs::Rate>(
        &["rate"],
        Group::Traffic,
        "Set the rate of each flow",
        "  rate 10kpps\n  rate 1G-l1 -i voice",
    ),
    Definition::of::<runs::Scale>(
        &["scale"],
        Group::Traffic,
        "Multiply the rates of the plan, or the loads of clients",
        "  scale 0.5\n  scale 200% -i voice",
    ),
    Definition::of::<runs::Flows>(
        &["flows"],
        Group::Traffic,
        "Start or stop flows of a run",
        "  flows stop voice\n  flows start",
    ),
    Definition::of::<runs::Clients>(
        &["clients"],
        Group::Traffic,
        "Enable or disable clients by address",
        "  clients disable 10.0.0.1-10.0.0.9\n  clients enable 10.0.0.5",
    ),
    Definition::of::<runs::EndLoad>(
        &["end-load"],
        Group::Traffic,
        "Start no more connections; open ones finish",
        "",
    ),
    Definition::of::<runs::Wait>(
        &["wait"],
        Group::Traffic,
        "Wait for the end of runs",
        "  wait\n  wait night --timeout 1min",
    ),
    Definition::of::<ports::Ports>(
        &["ports", "portattr"],
        Group::Ports,
        "List ports: links, leases and runs",
        "",
    ),
    Definition::of::<ports::Acquire>(
        &["acquire"],
        Group::Ports,
        "Lease ports, so that other users and sessions cannot use them",
        "  acquire -p 0 1\n  acquire -a --force\n  acquire -p eth1 --ttl 60",
    ),
    Definition::of::<ports::Release>(&["release"], Group::Ports, "End leases", ""),
    Definition::of::<ports::Reset>(
        &["reset"],
        Group::Ports,
        "Take ports by force and stop their runs",
        "",
    ),
    Definition::of::<captures::Capture>(
        &["capture"],
        Group::Ports,
        "Capture frames that arrive at a port to a pcapng file",
        "  capture start eth2 -w frames.pcapng --filter 'udp port 53'\n  capture show\n  capture stop",
    ),
    Definition::of::<stats::Stats>(
        &["stats"],
        Group::Tables,
        "Print counters and the rates of one second",
        "  stats\n  stats -l",
    ),
    Definition::of::<stats::Streams>(
        &["streams"],
        Group::Tables,
        "List the flows of active runs",
        "",
    ),
    Definition::of::<stats::Profiles>(&["profiles"], Group::Tables, "List active runs", ""),
    Definition::of::<general::Clear>(
        &["clear"],
        Group::Tables,
        "Count from now on in the live tables",
        "",
    ),
    Definition::of::<general::Metrics>(
        &["metrics"],
        Group::Tables,
        "Print live metrics in the format of Prometheus",
        "",
    ),
    Definition::of::<runs::Runs>(&["runs"], Group::Runs, "List runs, the newest first", ""),
    Definition::of::<runs::Show>(
        &["show"],
        Group::Runs,
        "Print the report on a run",
        "  show latest",
    ),
    Definition::of::<runs::ResultOf>(
        &["result"],
        Group::Runs,
        "Print the result of a run as JSON, or write it to a file",
        "  result latest -o result.json",
    ),
    Definition::of::<runs::Report>(
        &["report"],
        Group::Runs,
        "Write the report on a run",
        "  report night -o night.html\n  report night --format junit -o night.xml",
    ),
    Definition::of::<runs::Delete>(&["delete"], Group::Runs, "Delete runs from the history", ""),
    Definition::of::<plans::Plans>(
        &["plans", "plan"],
        Group::Files,
        "List, show, check, store and delete plans on the server",
        "  plans\n  plans check plan.yaml\n  plans store imix imix.yaml\n  plans frames imix.yaml -n 2",
    ),
    Definition::of::<distributed::Agents>(
        &["agents"],
        Group::Machines,
        "List the agents of the server's bus",
        "",
    ),
    Definition::of::<distributed::Tests>(
        &["tests", "test"],
        Group::Machines,
        "List, start, show and stop tests",
        "  tests\n  tests start two-nodes.yaml\n  tests show t18ec\n  tests stop t18ec",
    ),
    Definition::of::<captures::Captures>(
        &["captures"],
        Group::Files,
        "List, download and delete captures on the server",
        "  captures\n  captures download web.pcap\n  captures delete web.pcap",
    ),
    Definition::of::<captures::Upload>(
        &["upload"],
        Group::Files,
        "Upload a capture, or another file that plans name",
        "  upload web.pcap\n  upload ../traces/1.pcap --name web.pcap",
    ),
    Definition::of::<users::Users>(
        &["users", "user"],
        Group::Files,
        "List, add and remove users of the server",
        "  users\n  users add ada --role operate\n  users remove ada",
    ),
    Definition::of::<general::Schema>(
        &["schema"],
        Group::Files,
        "Print a JSON Schema, or the OpenAPI document",
        "  schema plan -o plan.schema.json",
    ),
    Definition::of::<general::ShowSession>(
        &["session"],
        Group::Console,
        "Print the server, the user and its rights",
        "",
    ),
    Definition::of::<general::Connect>(
        &["connect"],
        Group::Console,
        "Connect to another server, or again to this one",
        "  connect lab.example:9410",
    ),
    Definition::of::<general::Events>(
        &["events"],
        Group::Console,
        "Wait for changes on the server and print them",
        "  events -n 10",
    ),
    Definition::of::<general::History>(
        &["history"],
        Group::Console,
        "Print the lines of the history",
        "",
    ),
    Definition::of::<general::Help>(
        &["help", "?"],
        Group::Console,
        "List the commands, or print the help of one",
        "  help start",
    ),
    Definition::of::<general::Quit>(
        &["quit", "exit", "q"],
        Group::Console,
        "Leave the console",
        "",
    ),
];

/// Commands of TRex's console without a counterpart: what to do instead.
const UNSUPPORTED: &[(&[&str], &str)] = &[
    (&["shutdown"], "the administrator ends the server, with Ctrl-C or a signal; `quit` leaves"),
    (&["disconnect"], "`quit` leaves, and `connect HOST` changes the server"),
    (
        &["l2", "l3", "ipv6", "vlan", "arp", "scan6"],
        "addresses, VLANs and next hops of ports are in the plan",
    ),
    (&["ping"], "use `wirestorm ping` in a shell of the machine with the interfaces"),
    (&["ns"], "hosts behind a port are `devices` of the plan"),
    (&["pkt"], "write the packet into a plan, and `run` it"),
    (&["service"], "`capture start` captures frames at any time"),
    (&["map"], "`ports` lists the links"),
    (&["global_cfg"], "options belong to each run: `help run`"),
    (&["tui"], "the tables are live already; `help` lists the keys"),
    (&["plugins", "debug", "verbose"], "the console has no Python; the package `wirestorm` does"),
];

/// Returns the command with a name or an alias.
pub(crate) fn definition(name: &str) -> Option<&'static Definition> {
    COMMANDS.iter().find(|command| command.names.contains(&name))
}

/// Executes a line. An empty line and a comment do nothing.
pub(crate) fn execute_line(session: &mut Session, line: &str) -> Result<Answer> {
    let words = shlex::split(line).ok_or_else(|| {
        CommandError::usage(format!("{line:?}: a quote has no end, or the line ends with \\"))
    })?;
    let words: Vec<String> = words.into_iter().map(with_home).collect();
    let Some((name, arguments)) = words.split_first() else {
        return Ok(Answer::Text(String::new()));
    };
    let definition = definition(name).ok_or_else(|| unknown(name))?;
    match definition.parser().try_get_matches_from(arguments) {
        Ok(matches) => (definition.execute)(session, &matches),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            Ok(Answer::Text(error.render().to_string()))
        }
        Err(error) => Err(of_parser(&error)),
    }
}

/// Replaces `~/` at the beginning of a word by the home directory, as shells do.
fn with_home(word: String) -> String {
    match (word.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => word,
    }
}

fn of_parser(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let text = text.replace("\n\nFor more information, try '--help'.\n", "");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    CommandError::usage(lines.collect::<Vec<_>>().join("\n"))
}

fn unknown(name: &str) -> CommandError {
    let instead = UNSUPPORTED.iter().find(|(names, _)| names.contains(&name));
    let is_of_tagged_packets = name.starts_with("tpg_");
    if let Some((_, advice)) = instead {
        return CommandError::usage(format!("{name:?} is not a command of this console: {advice}"));
    }
    if is_of_tagged_packets {
        let advice = "measure flows with `--per-vlan` instead of tagged packet groups";
        return CommandError::usage(format!("{name:?} is not a command of this console: {advice}"));
    }
    let near = similar(name);
    let advice = match near.as_slice() {
        [] => "`help` lists the commands".to_owned(),
        near => format!("did you mean {}?", near.join(", ")),
    };
    CommandError::usage(format!("{name:?} is not a command: {advice}"))
}

/// Returns the commands that a name abbreviates, else the most similar ones.
fn similar(name: &str) -> Vec<&'static str> {
    let all = || COMMANDS.iter().flat_map(|it| it.names).copied().filter(|it| it.len() > 1);
    let begins: Vec<&str> = all().filter(|it| it.starts_with(name)).collect();
    if !begins.is_empty() {
        return begins.into_iter().take(SUGGESTIONS_MAX).collect();
    }
    let scored = all().map(|other| (strsim::jaro_winkler(name, other), other));
    let mut scored: Vec<(f64, &str)> =
        scored.filter(|(score, _)| *score >= SIMILARITY_MIN).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, other)| other).take(SUGGESTIONS_MAX).collect()
}

/// Returns the help: all commands by group.
pub(crate) fn help() -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let _ = writeln!(text, "{}:", group.title());
        for command in COMMANDS.iter().filter(|command| command.group == group) {
            let _ = write!(text, "  {:<9} {}", command.name(), command.about);
            let _ = match &command.names[1..] {
                [] => writeln!(text),
                aliases => writeln!(text, " (also: {})", aliases.join(", ")),
            };
        }
        text.push('\n');
    }
    text += "`help COMMAND` or `COMMAND -h` prints the options of a command.\n";
    text
}

/// Returns a value of an option as TRex's console takes it: `10` is 10 seconds, `10m` 10 minutes.
/// Other times have Wirestorm's units.
fn trex_time(text: &str) -> String {
    let is_number = |it: &str| it.parse::<f64>().is_ok();
    match text.strip_suffix('m') {
        Some(minutes) if is_number(minutes) => format!("{minutes}min"),
        _ if is_number(text) => format!("{text}s"),
        _ => text.to_owned(),
    }
}

/// Writes a text to a file of this machine, or returns it as the answer.
fn written(text: String, output: Option<&std::path::Path>) -> Result<Answer> {
    let Some(path) = output else { return Ok(Answer::Text(text)) };
    std::fs::write(path, &text)
        .map_err(|error| CommandError::failed(format!("{}: {error}", path.display())))?;
    Ok(Answer::Text(format!("wrote {} ({} bytes)", path.display(), text.len())))
}

/// Reads a text file of this machine.
fn read_text(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| CommandError::usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn parsers_are_consistent_and_names_are_unique() {
        let mut names = BTreeSet::new();
        for command in COMMANDS {
            command.parser().debug_assert();
            for name in command.names {
                assert!(names.insert(*name), "{name} is there twice");
                let is_refused = UNSUPPORTED.iter().any(|(names, _)| names.contains(name));
                assert!(!is_refused, "{name} is supported");
            }
        }
    }

    #[test]
    fn examples_of_the_help_parse() {
        for command in COMMANDS {
            for line in command.examples.lines() {
                // Two spaces begin a comment.
                let line = line.trim().split("   ").next().unwrap_or_default();
                let words = shlex::split(line).expect("words");
                assert_eq!(definition(&words[0]).expect("a command").name(), command.name());
                let parsed = command.parser().try_get_matches_from(&words[1..]);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    /// A line for each route of the API, and for each command to a run.
    const LINES: &[(&str, &str)] = &[
        ("get /agents", "agents"),
        ("get /captures", "captures"),
        ("get /captures/{name}", "captures download web.pcap"),
        ("put /captures/{name}", "upload web.pcap"),
        ("delete /captures/{name}", "captures delete web.pcap"),
        ("get /events", "events"),
        ("get /plans", "plans"),
        ("post /plans/check", "plans check plan.yaml"),
        ("post /plans/frames", "plans frames plan.yaml"),
        ("get /plans/{name}", "plans show imix"),
        ("put /plans/{name}", "plans store imix plan.yaml"),
        ("delete /plans/{name}", "plans delete imix"),
        ("get /ports", "ports"),
        ("get /ports/{port}", "ports eth1"),
        ("get /ports/{port}/capture", "capture start eth1 -w frames.pcapng"),
        ("put /ports/{port}/lease", "acquire -p eth1"),
        ("delete /ports/{port}/lease", "release -p eth1"),
        ("get /runs", "runs"),
        ("post /runs", "run imix"),
        ("get /runs/{run}", "show latest"),
        ("delete /runs/{run}", "delete night"),
        ("post /runs/{run}/commands", "stop"),
        ("get /runs/{run}/events", "stats"),
        ("get /runs/{run}/plan", "show latest --plan"),
        ("get /runs/{run}/progress", "streams"),
        ("get /runs/{run}/report", "report latest"),
        ("get /runs/{run}/result", "result latest"),
        ("get /schemas/{name}", "schema plan"),
        ("get /session", "session"),
        ("get /tests", "tests"),
        ("post /tests", "tests start two-nodes.yaml"),
        ("get /tests/{test}", "tests show t18ec"),
        ("post /tests/{test}/stop", "tests stop t18ec"),
        ("get /tests/{test}/result", "tests result t18ec"),
        ("get /users", "users"),
        ("put /users/{name}", "users add ada --role operate"),
        ("delete /users/{name}", "users remove ada"),
        ("start", "start night"),
        ("stop", "stop night"),
        ("pause", "pause -i voice"),
        ("resume", "resume -i voice"),
        ("rate", "rate 10kpps"),
        ("load", "update -m 10%"),
        ("scale", "scale 0.5"),
        ("start_flows", "flows start voice"),
        ("stop_flows", "flows stop voice"),
        ("end_load", "end-load"),
        ("clients", "clients disable 10.0.0.1"),
    ];

    #[test]
    fn each_route_and_each_command_of_the_api_has_a_line() {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/wirestorm.openapi.1.json");
        let schema = std::fs::read_to_string(schema).unwrap();
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let mut wanted = BTreeSet::new();
        for (path, methods) in schema["paths"].as_object().unwrap() {
            let path = path.strip_prefix("/api/v1").unwrap();
            for method in methods.as_object().unwrap().keys() {
                wanted.insert(format!("{method} {path}"));
            }
        }
        let commands = schema["components"]["schemas"]["CommandRequest"]["oneOf"].as_array();
        for command in commands.unwrap() {
            let name = &command["properties"]["command"]["enum"][0];
            wanted.insert(name.as_str().unwrap().to_owned());
        }
        let found: BTreeSet<String> = LINES.iter().map(|(route, _)| (*route).to_owned()).collect();
        assert_eq!(found, wanted);
        for (_, line) in LINES {
            let words = shlex::split(line).unwrap();
            let parser = definition(&words[0]).expect("a command").parser();
            assert!(parser.try_get_matches_from(&words[1..]).is_ok(), "{line}");
        }
    }

    #[test]
    fn every_command_is_in_the_help_and_fits_a_line() {
        let text = help();
        for command in COMMANDS {
            assert!(text.contains(command.about), "{}", command.name());
        }
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn misspelled_command_gets_a_suggestion() {
        for (name, expected) in [
            ("strat", "did you mean start"),
            ("port", "did you mean ports"),
            ("xyzzy", "`help` lists the commands"),
            ("shutdown", "administrator ends the server"),
            ("tpg_stats", "--per-vlan"),
            ("l3", "in the plan"),
        ] {
            let message = unknown(name).to_string();
            assert!(message.contains(expected) && message.contains(name), "{message}");
        }
    }

    #[test]
    fn times_of_trex_have_units() {
        let times = ["10", "2.5", "10m", "1h", "300ms", "5min"].map(trex_time);
        assert_eq!(times, ["10s", "2.5s", "10min", "1h", "300ms", "5min"]);
    }
}
