//! Developer commands of the project. `./demo`, `./test` and `./bench` run them.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod corpus;
mod demo;
mod dependencies;
mod docs;
mod sample;
mod setup;
mod table;
mod workspace;

use std::process::ExitCode;

/// Result of a command; `main` prints the error.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
Usage: cargo xtask COMMAND [options]

  setup                 install the Debian packages for build, tests, demo and benchmarks
  ci                    run all checks and tests: ./test
      --list            list the steps
      --only STEP       run only this step; may be repeated
      --keep-going      do not stop at the first failure
      --long            longer fuzzing with the address sanitizer; release builds for scripts
  demo                  replay a sample capture between two network namespaces: ./demo
      --flows N         conversations in the capture (3000)
      --pps N           rate of the second run (100000)
  demo NAME             one-way delay between two machines, beside ping/2 and the truth:
                        same-host, two-hosts (a router between), distant-sites (25 ms, bursts)
      --pps N           frames per second in each direction (2000)
      --size N          bytes of a frame (64)
      --seconds N       duration (10)
      --json FILE       also write the result as JSON (wirestorm.test/1)
  bench [NAME ...]      measure speed and memory against tcpreplay: ./bench
      --list            list the benchmarks
      --json FILE       also write the results as JSON
      --binary PATH     measure this wirestorm instead of building one
      --rounds N        number of rounds (3)
      --seconds N       duration of a run at full speed (3)
  docs                  generate the pages in docs/reference from the schemas
      --check           only check: fail on an outdated page or a broken link
  sample OUT.pcap       write a capture of synthetic traffic
      --flows N         conversations; with a fixed size, different 5-tuples (2000)
      --seconds N       duration in which they start (10)
      --seed N          seed of the random numbers (1)
      --size SIZE       mixed, small (60 bytes) or large (1514 bytes) (mixed)
      --packets N       number of packets (mixed: until all conversations end; else 100000)
      --nanoseconds     nanosecond time stamps
  corpus record DIR     record frames, output and exit status of a corpus of runs
      --binary PATH     run this binary (target/release/wirestorm, else target/debug)
      --only NAME       record only runs whose name contains this; may be repeated
      --input NAME=DIR  folder of captures, trex-streams, trex-profiles or trex-scripts
      --list            list the runs
  corpus compare BEFORE AFTER   compare two recordings; exit status 1 on a difference
      --only NAME       compare only runs whose name contains this; may be repeated
      --all             print all differences of each run
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Fallible<ExitCode> {
    let mut arguments = lexopt::Parser::from_env();
    match arguments.next()? {
        Some(lexopt::Arg::Value(chore)) => match chore.to_string_lossy().as_ref() {
            "setup" => setup::run(arguments),
            "ci" => ci::run(arguments),
            "demo" => demo::run(arguments),
            "bench" => bench::run(arguments),
            "docs" => docs::run(arguments),
            "sample" => sample::run(arguments),
            "corpus" => corpus::run(arguments),
            other => Err(format!("unknown command {other:?}\n\n{USAGE}").into()),
        },
        Some(lexopt::Arg::Long("help") | lexopt::Arg::Short('h')) => Ok(help()),
        None => Err(format!("missing COMMAND\n\n{USAGE}").into()),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Prints the usage.
fn help() -> ExitCode {
    print!("{USAGE}");
    ExitCode::SUCCESS
}
