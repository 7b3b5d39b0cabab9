//! `wirestorm test`: runs a test on several machines, or on parts of this one.

mod bench;

use std::fmt::{self, Display, Formatter};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use wirestorm_bus::Bus;
use wirestorm_control::files::HostFiles;
use wirestorm_control::plan::test_plan::{TestPlan, TestRunKind};
use wirestorm_control::result::{OneWayReport, RunResult};
use wirestorm_serve::cluster::{
    Director, DirectorOptions, IterationOutcome, JudgedLimit, LocalAgents, TestDocument,
    TestOutcome, TestProgress,
};
use wirestorm_store::record::RecordKind;

use crate::bus::BusFlags;
use crate::number::{grouped, nanoseconds};
use crate::save::{Draft, SaveFlags};
use crate::signals::Signals;
use crate::status;
use crate::traffic::table::Table;
use crate::traffic::usage;
use bench::BenchView;

const EXAMPLES: &str = "\
Examples:
  wirestorm test two-hosts.yaml
      all nodes on this machine, such as network namespaces
  wirestorm test two-hosts.yaml --bus-credentials director.json
      on the agents of the bus
  wirestorm test two-hosts.yaml --save=friday --json results.json

Runs, and the trials of a benchmark method, are in the run history with --save alone.
`wirestorm schema test-plan` prints the JSON Schema of the file.";

/// Run a test on several machines, with compared clocks
///
/// The file names nodes, their ports, and the runs. Each node is an agent (`wirestorm agent`) on the
/// bus. Without a bus, all nodes are on this machine.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestFlags {
    /// Test in YAML or JSON
    #[arg(value_name = "TEST")]
    test: PathBuf,

    /// Interface of a port of the test, instead of the one in the file; repeatable
    #[arg(short, long, value_name = "NAME=INTERFACE")]
    port: Vec<String>,

    #[command(flatten)]
    bus: BusFlags,

    /// Time after which an agent stops sending without this director
    #[arg(long, value_name = "TIME", default_value = DirectorOptions::LEASE, help_heading = "Bus")]
    lease: String,

    /// Write the results as JSON (wirestorm.test/1); - for standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Print no progress
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,

    /// Print what the agents measured in a test whose director was lost; nothing is sent
    #[arg(long, value_name = "ID", help_heading = "Bus")]
    recover: Option<String>,

    #[command(flatten)]
    save: SaveFlags,
}

/// Runs the command.
pub(crate) fn run(flags: &TestFlags) -> ExitCode {
    let (test, lease) = match read(flags) {
        Ok(read) => read,
        Err(message) => return usage(message),
    };
    let signals = Signals::catch();
    let stop = signals.stop_flag();
    let name = test.name.clone().unwrap_or_else(|| "test".to_owned());
    let mut interfaces: Vec<String> = Vec::new();
    if !flags.bus.is_given() {
        interfaces.extend(test.ports.iter().map(|port| port.interface.clone()));
    }
    let mut local = None;
    let director = directed(flags, test, lease, &stop, &mut local);
    let director = match director {
        Ok(director) => director,
        Err(message) => return usage(message),
    };
    let is_terminal = std::io::stderr().is_terminal();
    let mut progress = Progress { is_quiet: flags.quiet, is_terminal };
    let mut bench = BenchView::new(flags, interfaces, &stop);
    let outcome = match flags.recover {
        Some(_) => director.recover(),
        None => director.run(&stop, &mut |it| match bench.show(&it) {
            true => {}
            false => progress.show(&it),
        }),
    };
    progress.clear();
    drop(local);
    match outcome {
        Ok(outcome) => ExitCode::from(match &outcome.bench {
            Some(of_bench) => bench.report(&name, &outcome, of_bench),
            None => report(flags, &name, &outcome),
        }),
        Err(error) => {
            eprintln!("wirestorm: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}

fn read(flags: &TestFlags) -> Result<(TestPlan, Duration), String> {
    let failed = |error: &dyn Display| format!("{}: {error}", flags.test.display());
    let text = std::fs::read_to_string(&flags.test).map_err(|error| failed(&error))?;
    let mut test = TestPlan::parse(&text).map_err(|errors| failed(&errors))?;
    for binding in &flags.port {
        let expected = || format!("--port {binding:?}: expected NAME=INTERFACE");
        let (name, interface) = binding.split_once('=').ok_or_else(expected)?;
        let bound = test.bind(name, interface);
        bound.map_err(|error| format!("--port {binding:?}: {error}"))?;
    }
    let lease = DirectorOptions::parse_lease(&flags.lease);
    Ok((test, lease.map_err(|error| format!("--lease: {error}"))?))
}

/// Returns the director, with its agents on this machine unless the flags name a bus.
fn directed(
    flags: &TestFlags,
    test: TestPlan,
    lease: Duration,
    stop: &AtomicBool,
    local: &mut Option<LocalAgents>,
) -> Result<Director, String> {
    let folder = flags.test.parent().unwrap_or(Path::new("")).to_owned();
    let id = flags.recover.clone();
    let id = id.unwrap_or_else(|| format!("t{:x}", wirestorm_control::clock::realtime_nanos()));
    let (bus, site, name, key, one_clock) = if flags.bus.is_given() {
        let member = flags.bus.member("director", "director")?;
        let bus: Arc<dyn Bus> = Arc::new(flags.bus.connect("director", &member.name, stop)?);
        let is_bench = test.runs.iter().any(|run| matches!(run.kind, TestRunKind::Bench(_)));
        match (flags.recover.is_some(), is_bench) {
            (true, _) => {}
            (false, false) => eprintln!(
                "Test {id}; `wirestorm test --recover {id}` shows it if this director is lost"
            ),
            // The log has no trials.
            (false, true) => {
                eprintln!("Test {id}; --save keeps its trials if this director is lost");
            }
        }
        (bus, member.site, member.name, member.key, false)
    } else {
        let agents = LocalAgents::start(&test).map_err(|error| error.to_string())?;
        let agents = local.insert(agents);
        (Arc::clone(&agents.bus), agents.site.clone(), "local".to_owned(), agents.key.clone(), true)
    };
    let wait = flags.bus.wait.unwrap_or_default();
    let files = Arc::new(HostFiles);
    let options =
        DirectorOptions { name, site, bus, key, test, folder, files, id, lease, wait, one_clock };
    let director = Director::new(options).and_then(|mut director| {
        // What the agents have measured needs no files.
        if flags.recover.is_none() {
            director.read_files()?;
        }
        Ok(director)
    });
    director.map_err(|error| format!("{}: {error}", flags.test.display()))
}

/// Shows the progress: in one line on a terminal, else a line for each phase.
struct Progress {
    is_quiet: bool,
    is_terminal: bool,
}

impl Progress {
    fn show(&mut self, progress: &TestProgress<'_>) {
        if let TestProgress::Lost { agent, reason } = progress {
            self.clear();
            eprintln!("wirestorm: agent {agent} is lost: {reason}");
            return;
        }
        if self.is_quiet {
            return;
        }
        match progress {
            TestProgress::Phase(phase) if !self.is_terminal => eprintln!("{phase} ..."),
            TestProgress::Running { .. } if !self.is_terminal => {}
            TestProgress::Iteration(..) => {}
            // Those of methods have a view of their own.
            TestProgress::Method { .. }
            | TestProgress::TrialStarted { .. }
            | TestProgress::Trial(_) => {}
            TestProgress::Phase(phase) => eprint!("\r\x1b[K{phase} ..."),
            TestProgress::Running { elapsed, sent, received } => eprint!(
                "\r\x1b[K{:.1} s: {} sent, {} received",
                elapsed.as_secs_f64(),
                grouped(*sent),
                grouped(*received)
            ),
            TestProgress::Lost { .. } => {}
        }
    }

    fn clear(&self) {
        if self.is_terminal && !self.is_quiet {
            eprint!("\r\x1b[K");
        }
    }
}

fn report(flags: &TestFlags, name: &str, outcome: &TestOutcome) -> u8 {
    let mut exit = 0;
    for (number, iteration) in outcome.iterations.iter().enumerate() {
        let heading = match outcome.iterations.len() {
            1 => String::new(),
            count => format!("Iteration {} of {count}", number + 1),
        };
        exit = exit.max(report_iteration(flags, name, &heading, iteration));
    }
    if let Err(message) = write_json(flags, name, outcome) {
        eprintln!("wirestorm: {message}");
        exit = exit.max(status::FAILED);
    }
    exit
}

/// Prints and saves an iteration; returns the exit status.
fn report_iteration(
    flags: &TestFlags,
    name: &str,
    heading: &str,
    iteration: &IterationOutcome,
) -> u8 {
    let is_json = flags.json.as_deref() == Some(Path::new("-"));
    let is_whole = iteration.lost.is_empty() && iteration.unreadable.is_empty();
    let mut exit = if is_whole { 0 } else { status::FAILED };
    for error in &iteration.unreadable {
        eprintln!("wirestorm: what an agent measured is missing: {error}");
    }
    if !heading.is_empty() && !is_json {
        println!("{heading}\n");
    }
    for run in &iteration.runs {
        let result = match &run.result {
            Ok(result) => result,
            Err(error) => {
                eprintln!("wirestorm: run {}: {error}", run.name);
                exit = exit.max(status::FAILED);
                continue;
            }
        };
        if !is_json {
            println!("Run {}", run.name);
            print!("{}", Table(result));
            print!("{}", OneWayTable(result));
            println!("");
        }
        let draft = || {
            let kind = RecordKind::from(result.kind);
            let mut draft = Draft::new(kind, Vec::<String>::new()).file(&flags.test);
            draft.started_unix_ns = result.times.started_unix_ns;
            draft.files.extend(run.plan_file(name));
            draft
        };
        let saved = flags.save.start(draft).and_then(|recording| recording.finish(result));
        exit = exit.max(crate::save::status(saved, result.verdict.outcome.exit_status()));
    }
    exit = exit.max(judge(&iteration.limits));
    if let Some(skew) = iteration.start_skew_ns.filter(|_| !is_json) {
        println!("Start skew between agents: {}", nanoseconds(skew.abs().round() as u64));
    }
    exit
}

/// Prints the limits that have not passed; returns the exit status.
fn judge(limits: &[JudgedLimit]) -> u8 {
    let mut exit = 0;
    for limit in limits {
        if let Some(reason) = limit.reason() {
            eprintln!("wirestorm: fail_if {reason}");
            exit = exit.max(if limit.figures == 0 { status::FAILED } else { status::SHORT });
        }
    }
    exit
}

fn write_json(flags: &TestFlags, name: &str, outcome: &TestOutcome) -> Result<(), String> {
    let Some(path) = &flags.json else { return Ok(()) };
    let document = TestDocument::new(name, outcome);
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    if path == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}

/// One-way delays of a result, as a table; empty without one.
struct OneWayTable<'a>(&'a RunResult);

impl Display for OneWayTable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let flows = self.0.flows.iter();
        let rows: Vec<(String, &OneWayReport)> = flows
            .flat_map(|flow| {
                let name = |port: &str| format!("{}, {} > {port}", flow.name, flow.tx);
                flow.measured.iter().filter_map(move |measured| {
                    Some((name(&measured.port), measured.one_way.as_ref()?))
                })
            })
            .collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nOne-way delay (RFC 7679), and its error if the assumption holds")?;
        for (name, report) in rows {
            let delay = &report.delay;
            let value = |value: Option<i64>| value.map_or("-".to_owned(), signed);
            let mean = delay.mean_ns.map_or("-".to_owned(), |mean| signed(mean.round() as i64));
            writeln!(f, "  {name}")?;
            writeln!(
                f,
                "    min {}, mean {mean}, median {}, 99 % {}, max {}",
                value(delay.min_ns),
                value(delay.p50_ns),
                value(delay.p99_ns),
                value(delay.max_ns)
            )?;
            let error = signed(report.half_width_ns.round() as i64);
            write!(f, "    ±{error}, {}", report.assumption)?;
            if let Some(bound) = report.bound_ns {
                write!(f, "; ±{} in any case", signed(bound.round() as i64))?;
            }
            writeln!(f)?;
            write!(f, "    {}", report.method)?;
            if let Some(half) = report.half_round_trip_ns {
                write!(f, ", half of the round trip {}", signed(half.round() as i64))?;
                write!(f, ", drift {:+.3} ppm", report.drift_ppm)?;
            }
            writeln!(f)?;
            if report.bias_ns != 0.0 {
                let bias = signed(report.bias_ns.round() as i64);
                writeln!(f, "    {bias} of the testers are subtracted")?;
            }
            if let Some(truth) = &report.truth {
                let mean = truth.mean_ns.map_or("-".to_owned(), |mean| signed(mean.round() as i64));
                writeln!(
                    f,
                    "    truth: min {}, mean {mean}, median {}, 99 % {}, max {}",
                    value(truth.min_ns),
                    value(truth.p50_ns),
                    value(truth.p99_ns),
                    value(truth.max_ns)
                )?;
            }
            for other in &report.alternatives {
                let wrong = signed(other.bound_ns.round() as i64);
                let difference = signed(other.difference_ns.round() as i64);
                writeln!(f, "    not used: {}, ±{wrong}, {difference} apart", other.method)?;
            }
            if let Some(asymmetry) = report.asymmetry {
                let value = signed(asymmetry.value_ns.round() as i64);
                let error = signed(asymmetry.half_width_ns.round() as i64);
                writeln!(f, "    asymmetry of the path of the exchanges: {value} ±{error}")?;
            }
            for event in &report.events {
                let at = event.at_s;
                match &*event.kind {
                    "clock_step" => {
                        writeln!(
                            f,
                            "    {at:.1} s: a clock stepped by {}",
                            signed(event.offset_ns)
                        )?;
                    }
                    _ => writeln!(
                        f,
                        "    {at:.1} s: the route changed: forward {}, backward {}",
                        signed(event.forward_ns),
                        signed(event.backward_ns)
                    )?,
                }
            }
            for (count, what) in [
                (report.impossible, "delays are negative by more than their error"),
                (report.uncompared, "frames arrived without a clock offset"),
            ] {
                if count > 0 {
                    writeln!(f, "    {} {what}", grouped(count))?;
                }
            }
        }
        for flow in &self.0.flows {
            let Some(total) = &flow.total else { continue };
            let delay = &total.delay;
            let value = |value: Option<i64>| value.map_or("-".to_owned(), signed);
            let mean = delay.mean_ns.map(|mean| mean.round() as i64);
            let error = total.half_width_ns.map(|error| error.round() as i64);
            writeln!(f, "  {}, {} > all {} receivers", flow.name, flow.tx, flow.measured.len())?;
            writeln!(
                f,
                "    min {}, mean {}, median {}, 99 % {}, max {}, ±{}",
                value(delay.min_ns),
                value(mean),
                value(delay.p50_ns),
                value(delay.p99_ns),
                value(delay.max_ns),
                value(error)
            )?;
        }
        Ok(())
    }
}

/// Formats a signed time in the largest unit that leaves a whole part.
fn signed(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", nanoseconds(value.unsigned_abs()))
}
