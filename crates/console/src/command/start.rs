//! Commands that start traffic: `start`, `run` and `push`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use wirestorm_api::plan::PlanPort;
use wirestorm_api::port::Port;
use wirestorm_api::run::{
    CommandRequest, PlanSource, ReplayRequest, RunOptions, RunRequest, RunState, RunSummary,
    StartRequest, TrexStreams, WhenLeaseEnds,
};
use wirestorm_api::upload::UploadError;

use super::{Answer, CommandError, Execute, Result, trex_time};
use crate::loader::{LoadRequest, LoadedPlan};
use crate::session::Session;

/// Options of a run.
#[derive(Args, Debug, Default)]
pub(crate) struct OptionFlags {
    /// Stop after this time: 10 (seconds), 10m (minutes), 1h, 500ms
    #[arg(short, long, value_name = "TIME")]
    duration: Option<String>,

    /// Name of the run in the history
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Prepare the run; `start NAME` starts it
    #[arg(long)]
    hold: bool,

    /// Start at this time: 2026-01-31T12:00:00Z, or with an offset such as +01:00
    #[arg(long, value_name = "TIME", value_parser = unix_ns, conflicts_with = "hold")]
    at: Option<u64>,

    /// Stop the run when a lease of its ports ends
    #[arg(long)]
    with_lease: bool,

    /// Let other shared runs of yours use the same ports at the same time
    #[arg(long)]
    shared: bool,

    /// Send even on the interface of the default route
    #[arg(long)]
    force_interface: bool,

    /// Backend that sends and receives frames
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,

    /// Number of sending threads
    #[arg(long, value_name = "N")]
    workers: Option<u16>,

    /// Late frames: bounded:MS, strict:MS or stretch
    #[arg(long, value_name = "POLICY")]
    catch_up: Option<String>,

    /// Count received frames of measured flows for each VLAN
    #[arg(long)]
    per_vlan: bool,

    /// Allowed rate error in percent
    #[arg(long, value_name = "PERCENT")]
    tolerance: Option<f64>,

    /// Clients: time for open connections to finish
    #[arg(long, value_name = "TIME")]
    drain_timeout: Option<String>,

    /// Clients: longest time that an interface may be down
    #[arg(long, value_name = "TIME")]
    link_down_timeout: Option<String>,

    /// Clients: maximum receive delay under load
    #[arg(long, value_name = "TIME")]
    rx_coalesce: Option<String>,

    /// Clients: interval of the time series in the result
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,

    /// Clients: maximum number of concurrent connections on each port
    #[arg(long, value_name = "N")]
    flows_max: Option<u32>,

    /// Clients: seed of random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Clients: verify checksums on virtual interfaces with AF_XDP too
    #[arg(long)]
    verify_checksums: bool,
}

impl OptionFlags {
    fn options(&self, multiplier: Option<String>) -> RunOptions {
        let time = |text: &Option<String>| text.as_deref().map(trex_time);
        RunOptions {
            duration: time(&self.duration),
            multiplier,
            backend: self.backend.clone(),
            workers: self.workers,
            catch_up: self.catch_up.clone(),
            force_interface: self.force_interface.then_some(true),
            per_vlan: self.per_vlan.then_some(true),
            tolerance: self.tolerance,
            drain_timeout: time(&self.drain_timeout),
            link_down_timeout: time(&self.link_down_timeout),
            rx_coalesce: time(&self.rx_coalesce),
            interval: time(&self.interval),
            flows_max: self.flows_max,
            seed: self.seed,
            verify_checksums: self.verify_checksums.then_some(true),
        }
    }

    fn request(&self, plan: PlanSource, options: RunOptions) -> RunRequest {
        RunRequest {
            plan,
            name: self.name.clone(),
            ports: BTreeMap::new(),
            options,
            files: BTreeMap::new(),
            start: match self.at {
                Some(at) => StartRequest::AtUnixNs(at),
                None if self.hold => StartRequest::OnCommand,
                None => StartRequest::Now,
            },
            when_lease_ends: match self.with_lease {
                true => WhenLeaseEnds::Stop,
                false => WhenLeaseEnds::Continue,
            },
            shared: self.shared,
            command: std::env::args().collect(),
        }
    }
}

/// Parses a time of day to nanoseconds since the Unix epoch.
fn unix_ns(text: &str) -> std::result::Result<u64, String> {
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|_| "expected a time with its offset, such as 2026-01-31T12:00:00Z".to_owned())?;
    u64::try_from(time.as_nanosecond()).map_err(|_| "expected a time after 1970".to_owned())
}

/// Start a plan or a profile.
#[derive(Args, Debug)]
pub(crate) struct Start {
    /// Run that waits for its start
    #[arg(value_name = "RUN", conflicts_with = "file", required_unless_present = "file")]
    run: Option<String>,

    /// Plan in YAML or JSON, or TRex profile, on this machine
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Load: factor (2), or total of each port (50%, 10kpps, 1gbps, 1gbpsl1)
    #[arg(short, long = "mult", alias = "multiplier", value_name = "LOAD")]
    multiplier: Option<String>,

    /// Ports in the order of the plan, or NAME=PORT [default: acquired ports]
    #[arg(short, long = "port", value_name = "PORT", num_args = 1..)]
    ports: Vec<String>,

    /// Stop own runs on the ports first
    #[arg(long)]
    force: bool,

    /// Check the plan and its ports; start nothing
    #[arg(short = 'n', long)]
    dry: bool,

    /// Use IPv6 in a stateful TRex profile
    #[arg(long)]
    ipv6: bool,

    /// Accepted without effect
    #[arg(long, hide = true)]
    pin: bool,

    /// Accepted without effect
    #[arg(long, hide = true)]
    sync: bool,

    /// Accepted without effect
    #[arg(long = "core_mask", hide = true, num_args = 1..)]
    core_mask: Vec<String>,

    #[command(flatten)]
    options: OptionFlags,

    /// Arguments of a profile in Python; must be the last option
    #[arg(short, long, value_name = "ARG", num_args = 1.., allow_hyphen_values = true)]
    tunables: Vec<String>,
}

impl Execute for Start {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        if let Some(run) = &self.run {
            let at_unix_ns = self.options.at;
            session.send(run, &CommandRequest::Start { at_unix_ns })?;
            let run = session.client.run(run)?;
            let run = if at_unix_ns.is_some() { run } else { session.wait_started(run)? };
            return Ok(Answer::Text(started(&run)));
        }
        let file = self.file.unwrap_or_default();
        let job = Job {
            file: &file,
            ports: &self.ports,
            multiplier: self.multiplier,
            tunables: &self.tunables,
            ipv6: self.ipv6,
            force: self.force,
            dry: self.dry,
            options: &self.options,
        };
        job.execute(session)
    }
}

/// Run a plan.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// File of this machine, else name of a stored plan
    #[arg(value_name = "PLAN")]
    plan: String,

    /// Bind a port of the plan to a port of the server
    #[arg(short, long = "port", value_name = "NAME=PORT", num_args = 1..)]
    ports: Vec<String>,

    /// Load: factor (2), or total of each port (50%, 10kpps, 1gbps, 1gbpsl1)
    #[arg(short, long = "multiplier", alias = "mult", value_name = "LOAD")]
    multiplier: Option<String>,

    #[command(flatten)]
    options: OptionFlags,

    /// Arguments of a profile in Python; must be the last option
    #[arg(short, long, value_name = "ARG", num_args = 1.., allow_hyphen_values = true)]
    tunables: Vec<String>,
}

impl Execute for Run {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let file = Path::new(&self.plan);
        if file.exists() {
            let job = Job {
                file,
                ports: &self.ports,
                multiplier: self.multiplier,
                tunables: &self.tunables,
                ipv6: false,
                force: false,
                dry: false,
                options: &self.options,
            };
            return job.execute(session);
        }
        let plans = session.client.plans()?;
        if !plans.iter().any(|plan| plan.name == self.plan) {
            return Err(CommandError::usage(format!(
                "{}: no such file on this machine, and no such plan on the server; `plans` lists \
                 the plans of the server",
                self.plan
            )));
        }
        if !self.tunables.is_empty() {
            return Err(CommandError::usage("--tunables needs a TRex profile in Python"));
        }
        let text = session.client.plan(&self.plan)?;
        let ports = session.client.check_plan(&text)?.ports;
        let source = PlanSource::Stored(self.plan.clone());
        let options = self.options.options(self.multiplier);
        let mut request = self.options.request(source, options);
        request.ports = bindings(session, &self.ports, &ports)?;
        let run = create(session, request, Path::new(&self.plan))?;
        session.started(&run);
        Ok(Answer::Text(started(&run)))
    }
}

/// A plan of this machine to start.
struct Job<'a> {
    file: &'a Path,
    ports: &'a [String],
    multiplier: Option<String>,
    tunables: &'a [String],
    ipv6: bool,
    force: bool,
    dry: bool,
    options: &'a OptionFlags,
}

impl Job<'_> {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let is_named = self.ports.iter().any(|port| port.contains('='));
        // Profiles of streams have no port names, so that a name is the number of the port.
        let (numbers, values): (Vec<Option<u32>>, Vec<String>) = self
            .ports
            .iter()
            .map(|port| match port.split_once('=') {
                Some((number, value)) => (number.parse().ok(), value.to_owned()),
                None => (None, port.clone()),
            })
            .unzip();
        let chosen = match self.ports {
            [] => session.acquired()?,
            _ => session.ports(&values)?,
        };
        let numbered = chosen.iter().zip(numbers.iter().chain(std::iter::repeat(&None)));
        let numbered: Vec<(u32, String)> = numbered
            .map(|((number, port), given)| (given.unwrap_or(*number), port.name.clone()))
            .collect();
        let request = LoadRequest { file: self.file, ports: &numbered, tunables: self.tunables };
        let loaded = session.loader.load(request).map_err(CommandError::usage)?;
        let (source, ports) = match loaded {
            LoadedPlan::Help(text) => return Ok(Answer::Text(text)),
            LoadedPlan::Text { text, ports } => {
                // Acquired ports stand in for those that the plan does not name.
                let is_complete = ports.iter().all(|port| port.interface.is_some());
                let acquired: Vec<String> = match self.ports.is_empty() && !is_complete {
                    true => chosen.iter().take(ports.len()).map(|it| it.1.name.clone()).collect(),
                    false => Vec::new(),
                };
                let given = if acquired.is_empty() { self.ports } else { &acquired };
                (PlanSource::Text(text), bindings(session, given, &ports)?)
            }
            LoadedPlan::TrexStreams(streams) => {
                if numbered.is_empty() {
                    return Err(without_ports(self.file));
                }
                (PlanSource::TrexStreams(with_receivers(session, streams)?), BTreeMap::new())
            }
            LoadedPlan::TrexProfile(mut profile) => {
                profile.ipv6 |= self.ipv6;
                if chosen.is_empty() {
                    return Err(without_ports(self.file));
                }
                let ports = match is_named {
                    true => named_bindings(session, self.ports)?,
                    false => pairs(&chosen),
                };
                (PlanSource::TrexProfile(profile), ports)
            }
        };
        if self.dry {
            return dry_run(session, &source, &ports);
        }
        if self.force {
            let interfaces: Vec<&String> = chosen.iter().map(|(_, port)| &port.interface).collect();
            for run in session.active()? {
                if run.interfaces.iter().any(|it| interfaces.contains(&it)) {
                    session.stop(&run)?;
                }
            }
        }
        let options = self.options.options(self.multiplier);
        let mut request = self.options.request(source, options);
        request.ports = ports;
        let run = create(session, request, self.file)?;
        session.started(&run);
        Ok(Answer::Text(started(&run)))
    }
}

fn without_ports(file: &Path) -> CommandError {
    CommandError::usage(format!(
        "{}: a profile needs ports: name them with -p, such as -p 0 1, or acquire them first",
        file.display()
    ))
}

/// Returns the ports of the server for the ports of a plan: NAME=PORT, or ports in plan order.
fn bindings(
    session: &Session,
    given: &[String],
    ports: &[PlanPort],
) -> Result<BTreeMap<String, String>> {
    if given.iter().any(|port| port.contains('=')) {
        return named_bindings(session, given);
    }
    if given.len() > ports.len() {
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        return Err(CommandError::usage(format!(
            "-p: found {} ports, and the plan has {}: {}",
            given.len(),
            ports.len(),
            names.join(", ")
        )));
    }
    let missing = ports.iter().skip(given.len()).find(|port| port.interface.is_none());
    if let Some(missing) = missing {
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        return Err(CommandError::usage(format!(
            "the plan names no interface for its port {}: give a port for each of {} with -p, or \
             {}=PORT",
            missing.name,
            names.join(", "),
            missing.name
        )));
    }
    let found = session.ports(given)?;
    let names = ports.iter().map(|port| port.name.clone());
    Ok(names.zip(found.into_iter().map(|(_, port)| port.name)).collect())
}

fn named_bindings(session: &Session, given: &[String]) -> Result<BTreeMap<String, String>> {
    let mut bound = BTreeMap::new();
    for binding in given {
        let Some((name, port)) = binding.split_once('=') else {
            return Err(CommandError::usage(format!(
                "-p {binding}: either all ports have the form NAME=PORT, or none"
            )));
        };
        let found = session.ports(&[port.to_owned()])?;
        let port = found.into_iter().next().map_or_else(|| port.to_owned(), |(_, it)| it.name);
        if bound.insert(name.to_owned(), port).is_some() {
            return Err(CommandError::usage(format!("-p {binding}: {name} is already bound")));
        }
    }
    Ok(bound)
}

/// Returns the names of ports of a stateful profile: clients on even ports, servers on odd ones.
fn pairs(chosen: &[(u32, Port)]) -> BTreeMap<String, String> {
    let name = |index: usize| {
        let side = if index.is_multiple_of(2) { "clients" } else { "servers" };
        match index / 2 {
            0 => side.to_owned(),
            pair => format!("{side}{pair}"),
        }
    };
    (0..).map(name).zip(chosen.iter().map(|(_, port)| port.name.clone())).collect()
}

/// Adds the neighbour of each port as a receiver: flows are measured there.
fn with_receivers(
    session: &Session,
    mut streams: BTreeMap<String, TrexStreams>,
) -> Result<BTreeMap<String, TrexStreams>> {
    let senders: Vec<u32> = streams.keys().filter_map(|number| number.parse().ok()).collect();
    for number in senders {
        let other = (number ^ 1).to_string();
        if streams.contains_key(&other) {
            continue;
        }
        if let Some((_, port)) = session.neighbour(number)?
            && !streams.values().any(|it| it.interface == port.name)
        {
            streams.insert(other, TrexStreams { interface: port.name, streams: None });
        }
    }
    Ok(streams)
}

fn dry_run(
    session: &Session,
    source: &PlanSource,
    ports: &BTreeMap<String, String>,
) -> Result<Answer> {
    let mut text = match source {
        PlanSource::Text(text) => super::plans::checked(&session.client.check_plan(text)?)?,
        PlanSource::TrexStreams(streams) => {
            let mut text = String::new();
            for (number, streams) in streams {
                let count = streams.streams.as_ref().and_then(|it| it.as_array());
                text += &match count {
                    Some(count) => {
                        format!("port {number} ({}): {} streams\n", streams.interface, count.len())
                    }
                    None => format!("port {number} ({}): receives\n", streams.interface),
                };
            }
            text
        }
        _ => String::new(),
    };
    for (name, port) in ports {
        text += &format!("{name} on {port}\n");
    }
    Ok(Answer::Text(text + "dry run: nothing was started"))
}

fn create(session: &mut Session, request: RunRequest, file: &Path) -> Result<RunSummary> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let is_held = !matches!(request.start, StartRequest::Now);
    let created = session.client.create_run_with_files(request, folder, &mut *session.notice);
    let run = created.map_err(|error| match error {
        UploadError::Client(error) => CommandError::failed(error.in_plan(file)),
        error => CommandError::failed(error.to_string()),
    })?;
    if is_held { Ok(run) } else { session.wait_started(run) }
}

/// Returns the answer to the start of a run.
fn started(run: &RunSummary) -> String {
    let ports = run.interfaces.join(", ");
    let id = &run.id;
    match (run.state, &run.message) {
        (RunState::Prepared, _) => format!("{id} on {ports} waits: `start {id}` starts it"),
        (RunState::Armed, _) => format!("{id} on {ports} waits for its time"),
        (RunState::Preparing, Some(message)) => format!("{id} on {ports}: {message}"),
        (state, Some(message)) if state.is_over() => format!("{id} on {ports}: {message}"),
        (state, None) if state.is_over() => format!("{id} on {ports} has ended already"),
        _ => format!("started {id} on {ports}"),
    }
}

/// Replay a capture.
#[derive(Args, Debug)]
pub(crate) struct Push {
    /// Capture of this machine
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,

    /// The capture is one that the server has: -f is its name
    #[arg(short, long)]
    remote: bool,

    /// Ports that send [default: acquired ports]
    #[arg(short, long = "port", value_name = "PORT", num_args = 1..)]
    ports: Vec<String>,

    /// Send on all ports
    #[arg(short, long)]
    all: bool,

    /// Number of passes; 0: no end
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    count: u64,

    /// Microseconds between packets [default: as captured]
    #[arg(short, long, value_name = "USEC", conflicts_with_all = ["speedup", "rate"])]
    ipg: Option<f64>,

    /// Factor of the speed of the capture
    #[arg(short, long, value_name = "FACTOR", conflicts_with = "rate")]
    speedup: Option<String>,

    /// Rate: 10kpps, 1G-l1, 1G-l2 or max
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,

    /// Send packets of servers on the port beside each port
    #[arg(long)]
    dual: bool,

    /// Port where the frames should arrive
    #[arg(long, value_name = "PORT", conflicts_with = "dual")]
    rx: Option<String>,

    /// Maximum number of frames
    #[arg(long, value_name = "N")]
    packets: Option<u64>,

    /// New IP addresses in each pass
    #[arg(long)]
    unique_ip: bool,

    /// Edit frames, as a flag of `wirestorm replay`: ttl=64, enet-dmac=02:00:00:00:00:01
    #[arg(long, value_name = "NAME=VALUE", num_args = 1..)]
    edit: Vec<String>,

    /// Read the capture before the first frame leaves
    #[arg(long)]
    preload: bool,

    /// Stop own runs on the ports first
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    options: OptionFlags,
}

impl Push {
    fn rate(&self) -> Result<Option<String>> {
        if let Some(gap) = self.ipg {
            if !(gap.is_finite() && gap > 0.0) {
                return Err(CommandError::usage(format!("--ipg {gap}: expected more than 0")));
            }
            return Ok(Some(format!("{}pps", 1e6 / gap)));
        }
        Ok(self.rate.clone().or_else(|| self.speedup.as_ref().map(|factor| format!("x{factor}"))))
    }

    fn edits(&self) -> Result<serde_json::Value> {
        if self.edit.is_empty() {
            return Ok(serde_json::Value::Null);
        }
        let edits = self.edit.iter().map(|edit| {
            let (name, value) = edit.split_once('=').ok_or_else(|| {
                CommandError::usage(format!("--edit {edit}: expected NAME=VALUE, such as ttl=64"))
            })?;
            Ok((name.to_owned(), serde_json::Value::from(value)))
        });
        Ok(serde_json::Value::Object(edits.collect::<Result<_>>()?))
    }
}

impl Execute for Push {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let (rate, edits) = (self.rate()?, self.edits()?);
        let chosen = match (self.all, self.ports.is_empty()) {
            (true, _) => crate::session::numbered(session.client.ports()?),
            (false, true) => session.acquired()?,
            (false, false) => session.ports(&self.ports)?,
        };
        if chosen.is_empty() {
            return Err(CommandError::usage(
                "no port is acquired: name the ports that send with -p, such as -p 0",
            ));
        }
        let rx = match &self.rx {
            Some(rx) => session.ports(std::slice::from_ref(rx))?.pop().map(|(_, port)| port.name),
            None => None,
        };
        if self.force {
            for run in session.active()? {
                if chosen.iter().any(|(_, port)| run.interfaces.contains(&port.interface)) {
                    session.stop(&run)?;
                }
            }
        }
        let capture = match self.remote {
            true => self.file.display().to_string(),
            false => session.upload(&self.file)?,
        };
        let mut lines = Vec::new();
        for (number, port) in chosen {
            let second_port = match self.dual {
                true => Some(session.neighbour(number)?.ok_or_else(|| {
                    CommandError::usage(format!(
                        "--dual: port {number} has no free port beside it, such as {}",
                        number ^ 1
                    ))
                })?),
                false => None,
            };
            let replay = ReplayRequest {
                captures: vec![capture.clone()],
                port: port.name,
                split: second_port.is_some().then(|| "auto".to_owned()),
                second_port: second_port.map(|(_, port)| port.name),
                rx: rx.clone(),
                rate: rate.clone(),
                passes: Some(self.count),
                packets: self.packets,
                unique_ip: self.unique_ip,
                edits: edits.clone(),
                preload: self.preload,
            };
            let options = self.options.options(None);
            let request = self.options.request(PlanSource::Replay(Box::new(replay)), options);
            let run = create(session, request, &self.file)?;
            session.started(&run);
            lines.push(started(&run));
        }
        Ok(Answer::Text(lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::port;

    fn parse<T: Execute>(name: &str, line: &str) -> std::result::Result<T, clap::Error> {
        let parser = super::super::definition(name).unwrap().parser();
        let matches = parser.try_get_matches_from(shlex::split(line).unwrap())?;
        T::from_arg_matches(&matches)
    }

    #[test]
    fn start_line_of_trex_is_understood() {
        let start: Start =
            parse("start", "-f stl/imix.py -m 10kpps -p 0 1 -d 10m --force --pin -t --size 64 -x")
                .unwrap();
        assert_eq!(start.file.as_deref(), Some(Path::new("stl/imix.py")));
        assert_eq!(start.ports, ["0", "1"]);
        assert_eq!(start.tunables, ["--size", "64", "-x"]);
        assert!(start.force && start.pin && !start.dry);
        let options = start.options.options(start.multiplier.clone());
        assert_eq!(options.duration.as_deref(), Some("10min"));
        assert_eq!(options.multiplier.as_deref(), Some("10kpps"));
        assert_eq!(options.force_interface, None, "the default stays that of the server");
    }

    #[test]
    fn start_needs_a_file_or_a_run() {
        let start: Start = parse("start", "night").unwrap();
        assert_eq!(start.run.as_deref(), Some("night"));
        let error = parse::<Start>("start", "-p 0").unwrap_err().to_string();
        assert!(error.contains("RUN"), "{error}");
    }

    #[test]
    fn time_of_the_start_has_an_offset() {
        let start: Start = parse("start", "night --at 1970-01-01T01:00:10+01:00").unwrap();
        assert_eq!(start.options.at, Some(10_000_000_000));
        let error = parse::<Start>("start", "night --at tomorrow").unwrap_err().to_string();
        assert!(error.contains("with its offset"), "{error}");
    }

    #[test]
    fn gap_of_push_becomes_a_rate() {
        let push: Push = parse("push", "-f a.pcap -p 0 -i 100 -c 0").unwrap();
        assert_eq!((push.rate().unwrap().as_deref(), push.count), (Some("10000pps"), 0));
        let push: Push = parse("push", "-f a.pcap -p 0 -s 2 --edit ttl=64").unwrap();
        assert_eq!(push.rate().unwrap().as_deref(), Some("x2"));
        assert_eq!(push.edits().unwrap(), serde_json::json!({"ttl": "64"}));
        let push: Push = parse("push", "-f a.pcap -p 0 -i 0").unwrap();
        assert!(push.rate().unwrap_err().to_string().contains("more than 0"));
        assert!(parse::<Push>("push", "-f a.pcap -s 2 -i 5").is_err(), "two rates");
    }

    #[test]
    fn ports_of_a_stateful_profile_are_pairs() {
        let chosen: Vec<(u32, Port)> =
            (0..4).map(|number| (number, port(&format!("eth{number}"), "x"))).collect();
        let bound = pairs(&chosen);
        let name = |key: &str| bound[key].as_str();
        assert_eq!((name("clients"), name("servers")), ("eth0", "eth1"));
        assert_eq!((name("clients1"), name("servers1")), ("eth2", "eth3"));
    }
}
