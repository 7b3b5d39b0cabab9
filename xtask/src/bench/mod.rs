//! Speed and memory benchmarks against Debian's tcpreplay on the same veth pair, or against other
//! programs where tcpreplay has no equivalent.
//!
//! The contenders run round robin, so that a slowdown of the machine affects all of them. Each one
//! sends to every sink of [`link::Sink`]; its best sink gives its figure. Only frames that arrive
//! count. A new benchmark needs only an entry in [`BENCHMARKS`].

mod contender;
mod figures;
mod flow_export;
mod instructions;
mod link;
mod one_cpu;
mod pace;
mod pages;
mod process;
mod search;
mod server;
mod speed;
mod stateful;
mod stateful_loss;
mod streams;
mod workers;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use figures::Row;
use lexopt::ValueExt;
use serde_json::{Value, json};

use crate::setup::Purpose;
use crate::{Fallible, setup, table, workspace};

/// Name and version of the JSON document.
const SCHEMA: &str = "wirestorm.bench/1";

/// Settings of all benchmarks.
struct Settings {
    /// Path of the program under test.
    wirestorm: PathBuf,
    /// Number of rounds.
    rounds: u32,
    /// Duration of a run at full speed in seconds.
    seconds: u32,
}

struct Benchmark {
    name: &'static str,
    what: &'static str,
    run: fn(&Settings) -> Fallible<Vec<Row>>,
}

const BENCHMARKS: [Benchmark; 31] = [
    Benchmark { name: "small", what: "60-byte frames over a veth pair", run: speed::small },
    Benchmark { name: "large", what: "1500-byte frames over a veth pair", run: speed::large },
    Benchmark { name: "flows", what: "thousands of flows, --unique-ip", run: speed::flows },
    Benchmark { name: "workers", what: "one and two workers, on two queues", run: workers::run },
    Benchmark { name: "pace-pps", what: "100,000 packets a second, 20 s", run: pace::pps },
    Benchmark { name: "pace-bps", what: "7 Gb/s of 1500-byte frames, 20 s", run: pace::bps },
    Benchmark { name: "memory", what: "60-byte frames into memory", run: process::memory },
    Benchmark { name: "stream", what: "a capture of 4 GB into memory", run: process::stream },
    Benchmark { name: "start", what: "time from start to first packet", run: process::start },
    Benchmark {
        name: "instructions",
        what: "instructions and allocations for each packet",
        run: instructions::run,
    },
    Benchmark { name: "generate", what: "one flow of a plan into memory", run: streams::memory },
    Benchmark {
        name: "generate-many",
        what: "1,000 and 20,000 flows against one",
        run: streams::many,
    },
    Benchmark {
        name: "receive",
        what: "1, 100 and 1,000 measured streams from memory",
        run: streams::receive,
    },
    Benchmark { name: "sim", what: "a simulation to /dev/null", run: streams::simulate },
    Benchmark { name: "veth", what: "one changing field over a veth pair", run: streams::veth },
    Benchmark {
        name: "one-cpu",
        what: "flows of the in-kernel sender on one CPU, beside xdp-trafficgen",
        run: one_cpu::run,
    },
    Benchmark { name: "rates", what: "set rates, 1 kpps to 3 Mpps", run: streams::rates },
    Benchmark {
        name: "generate-instructions",
        what: "instructions and allocations of flows",
        run: streams::counted,
    },
    Benchmark {
        name: "stateful-page",
        what: "connections in memory, a page of 32,000 bytes each",
        run: stateful::page,
    },
    Benchmark {
        name: "stateful-keepalive",
        what: "requests in memory, 500 to a connection",
        run: stateful::keepalive,
    },
    Benchmark {
        name: "stateful-veth",
        what: "connections over a veth pair, a worker a side",
        run: stateful::over_veth,
    },
    Benchmark {
        name: "stateful-loss",
        what: "one flow, 10 ms, 1 % loss, beside Linux's TCP: CUBIC, NewReno, BBR",
        run: stateful_loss::run,
    },
    Benchmark {
        name: "stateful-idle",
        what: "connections that are opened and stay open",
        run: stateful::idle,
    },
    Benchmark {
        name: "stateful-tls",
        what: "full handshakes of TLS 1.3 in memory, beside rustls alone",
        run: stateful::tls,
    },
    Benchmark { name: "stateful-nginx", what: "pages, beside nginx and wrk", run: pages::run },
    Benchmark {
        name: "flow-decode",
        what: "records of NetFlow v9 and IPFIX on one core",
        run: flow_export::decode,
    },
    Benchmark {
        name: "flow-export",
        what: "records of emulated exporters over loopback",
        run: flow_export::export,
    },
    Benchmark {
        name: "search",
        what: "trial seconds of MLRsearch beside a bisection, simulated",
        run: search::simulated,
    },
    Benchmark {
        name: "search-veth",
        what: "time of a search besides its traffic, on a veth pair",
        run: search::veth,
    },
    Benchmark {
        name: "serve-otg",
        what: "4,096 flows of Open Traffic Generator: configuration, metrics",
        run: server::flows,
    },
    Benchmark {
        name: "serve-trex",
        what: "batches of 20,000 streams, beside TRex's server if there is one",
        run: server::streams,
    },
];

/// Runs the command `bench`.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut names, mut json, mut rounds, mut seconds) = (Vec::new(), None::<PathBuf>, 3, 3);
    let mut binary = None::<PathBuf>;
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("list") => {
                let row = |it: &Benchmark| vec![it.name.to_owned(), it.what.to_owned()];
                table::print(
                    &["benchmark", "what"],
                    &BENCHMARKS.iter().map(row).collect::<Vec<_>>(),
                );
                return Ok(ExitCode::SUCCESS);
            }
            lexopt::Arg::Long("json") => json = Some(arguments.value()?.into()),
            lexopt::Arg::Long("binary") => binary = Some(arguments.value()?.into()),
            lexopt::Arg::Long("rounds") => rounds = arguments.value()?.parse()?,
            lexopt::Arg::Long("seconds") => seconds = arguments.value()?.parse()?,
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            lexopt::Arg::Value(name) => {
                let name = name.to_string_lossy().into_owned();
                if !BENCHMARKS.iter().any(|benchmark| benchmark.name == name) {
                    return Err(format!("no benchmark {name:?}; --list shows all").into());
                }
                names.push(name);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if rounds == 0 || seconds == 0 {
        return Err("bench: --rounds and --seconds must be greater than zero".into());
    }
    setup::ensure_root("the benchmark")?;
    setup::ensure(&[Purpose::Build, Purpose::Lab, Purpose::Test, Purpose::Bench])?;
    let wirestorm = match binary {
        Some(binary) => std::fs::canonicalize(&binary)
            .map_err(|error| format!("--binary {}: {error}", binary.display()))?,
        None => workspace::build_wirestorm()?,
    };
    let settings = Settings { wirestorm, rounds, seconds };

    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for benchmark in BENCHMARKS {
        if !names.is_empty() && !names.iter().any(|name| name == benchmark.name) {
            continue;
        }
        eprintln!("{}: {}", benchmark.name, benchmark.what);
        match (benchmark.run)(&settings) {
            Ok(measured) => rows.extend(measured),
            Err(error) => failures.push(format!("{}: {error}", benchmark.name)),
        }
    }
    print(&rows, &failures);
    if let Some(path) = json {
        let document = serde_json::to_string_pretty(&document(&settings, &rows, &failures))?;
        std::fs::write(&path, document + "\n")
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(rows: &[Row], failures: &[String]) {
    println!("\nmedian of the rounds, with minimum and maximum");
    println!("peer: tcpreplay, unless noted below\n");
    let heading = ["benchmark", "unit", "wirestorm", "peer", "ratio", "target", "met"];
    table::print(&heading, &rows.iter().map(Row::cells).collect::<Vec<_>>());
    for row in rows {
        for note in &row.notes {
            println!("{}: {note}", row.name);
        }
    }
    for failure in failures {
        println!("failed: {failure}");
    }
    let targets = rows.iter().filter(|row| row.has_target()).count();
    let met = rows.iter().filter(|row| row.has_target() && row.is_met()).count();
    println!("\n{met} of {targets} targets met, {} benchmarks failed", failures.len());
}

fn document(settings: &Settings, rows: &[Row], failures: &[String]) -> Value {
    let per_second = rows.iter().find(|row| row.unit == stateful::CONNECTIONS);
    json!({
        "connections_per_s": per_second.map(|row| row.wirestorm.median() * 1e3),
        "schema": SCHEMA,
        "machine": {
            "kernel": first_line(Command::new("uname").arg("-srm")),
            "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        },
        "tcpreplay": first_line(Command::new("tcpreplay").arg("--version")),
        "rounds": settings.rounds,
        "rows": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        "failures": failures,
    })
}

/// Returns the first line of a program's output or error output.
fn first_line(command: &mut Command) -> String {
    let printed = command.output().map(|output| [output.stdout, output.stderr].concat());
    let printed = String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned();
    printed.lines().next().unwrap_or_default().to_owned()
}
