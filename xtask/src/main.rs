//! The project's own chores. `./demo`, `./test` and `./bench` come here.

#![forbid(unsafe_code)]

mod bench;
mod ci;
mod corpus;
mod demo;
mod directions;
mod docs;
mod sample;
mod setup;
mod table;
mod workspace;

use std::process::ExitCode;

/// What a chore gives; the error is printed as it is.
type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
Usage: cargo xtask CHORE [options]

  setup                 install the Debian packages that build, tests, demo and benchmarks need
  ci                    everything that has to pass: ./test
      --list            name the steps
      --only STEP       run this step alone; may be repeated
      --keep-going      do not stop at the first step that fails
      --long            longer fuzzing, with the address sanitizer; scripts built for speed
  demo                  replay a sample capture between two network namespaces: ./demo
      --flows N         conversations in the capture (3000)
      --pps N           the set rate of the second run (100000)
  bench [NAME ...]      measure speed and memory against tcpreplay: ./bench
      --list            name the benchmarks
      --json FILE       write the results as JSON as well
      --binary PATH     measure this wirestorm instead of building one
      --rounds N        how often the contenders take turns (3)
      --seconds N       how long a run at full speed lasts (3)
  docs                  write the reference pages below docs/reference from the schemas
      --check           write nothing; fail if a page is outdated, or a link of the documents broken
  sample OUT.pcap       write a capture of made-up traffic
      --flows N         conversations, or with a fixed size different 5-tuples (2000)
      --seconds N       time over which they spread (10)
      --seed N          another capture for each number (1)
      --size SIZE       mixed, or frames of one size: small (60 bytes), large (1514) (mixed)
      --packets N       how many packets (mixed: until the last conversation ends; else 100000)
      --nanoseconds     time stamps in nanoseconds
  corpus record DIR     record what a corpus of runs sends, prints and returns
      --binary PATH     run this binary (target/release/wirestorm, else that of target/debug)
      --only NAME       record the runs with this in their names alone; may be repeated
      --input NAME=DIR  find captures, trex-streams, trex-profiles or trex-scripts there
      --list            name the runs
  corpus compare BEFORE AFTER   compare two recordings; exit status 1 where anything differs
      --only NAME       compare the runs with this in their names alone; may be repeated
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
            other => Err(format!("there is no chore {other:?}\n\n{USAGE}").into()),
        },
        Some(lexopt::Arg::Long("help") | lexopt::Arg::Short('h')) => Ok(help()),
        None => Err(format!("which chore?\n\n{USAGE}").into()),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Prints the usage, which is what was asked for.
fn help() -> ExitCode {
    print!("{USAGE}");
    ExitCode::SUCCESS
}
