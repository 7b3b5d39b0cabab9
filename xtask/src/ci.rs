//! Everything that has to pass, in the order in which a failure is found soonest.

use std::fmt::Write;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::{SKIPPED_LOG, is_root};

use crate::setup::{NIGHTLY, Purpose};
use crate::workspace::{cargo, cargo_of};
use crate::{Fallible, directions, setup, table, workspace};

/// How long each fuzz target runs; a longer run is for a machine of its own.
const FUZZ_SECONDS: u32 = 10;
/// The tests that need the Python package of TRex's profiles.
const WITH_PYTHON: [&str; 2] = [
    "streams::trex_profiles_are_simulated_as_they_are",
    "documents::every_command_with_a_profile_runs",
];
/// The most that is repeated of the reasons why tests skipped themselves.
const SKIPPED_LINES_MAX: usize = 40;

/// A step that did not fail.
enum Pass {
    Done,
    Skipped(String),
}

struct Step {
    name: &'static str,
    run: fn() -> Fallible<Pass>,
}

const STEPS: [Step; 9] = [
    Step { name: "packages", run: packages },
    Step { name: "directions", run: check_directions },
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "doc", run: doc },
    Step { name: "test", run: test },
    Step { name: "python", run: python },
    Step { name: "scripts", run: scripts },
    Step { name: "fuzz", run: fuzz },
];

/// The chore.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut only, mut keep_going) = (Vec::new(), false);
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("list") => {
                STEPS.iter().for_each(|step| println!("{}", step.name));
                return Ok(ExitCode::SUCCESS);
            }
            lexopt::Arg::Long("only") => {
                let name = arguments.value()?.to_string_lossy().into_owned();
                if !STEPS.iter().any(|step| step.name == name) {
                    return Err(format!("there is no step {name:?}; --list names them").into());
                }
                only.push(name);
            }
            lexopt::Arg::Long("keep-going") => keep_going = true,
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            other => return Err(other.unexpected().into()),
        }
    }
    let wanted = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(run_steps(STEPS.iter().filter(wanted), keep_going))
}

fn run_steps<'a>(steps: impl Iterator<Item = &'a Step>, keep_going: bool) -> ExitCode {
    let mut rows = Vec::new();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for step in steps {
        if failed > 0 && !keep_going {
            skipped += 1;
            rows.push(vec![step.name.into(), "not run".into()]);
            continue;
        }
        println!("== {}", step.name);
        let started = Instant::now();
        let outcome = (step.run)();
        let (word, note) = match outcome {
            Ok(Pass::Done) => {
                passed += 1;
                ("passed", String::new())
            }
            Ok(Pass::Skipped(reason)) => {
                skipped += 1;
                println!("skipped: {reason}");
                ("skipped", reason)
            }
            Err(error) => {
                failed += 1;
                println!("{}: {error}", step.name);
                ("FAILED", String::new())
            }
        };
        rows.push(vec![step.name.into(), word.into(), seconds(started.elapsed()), note]);
    }
    println!();
    table::print(&["step", "result", "time", ""], &rows);
    println!("\n{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

fn packages() -> Fallible<Pass> {
    setup::ensure(&[Purpose::Build, Purpose::Lab, Purpose::Test])?;
    Ok(Pass::Done)
}

fn check_directions() -> Fallible<Pass> {
    let wrong = directions::check()?;
    if wrong.is_empty() { Ok(Pass::Done) } else { Err(wrong.join("\n").into()) }
}

fn fmt() -> Fallible<Pass> {
    done(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy() -> Fallible<Pass> {
    let arguments = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    done(cargo().args(arguments))
}

fn doc() -> Fallible<Pass> {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    done(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn test() -> Fallible<Pass> {
    if !is_root() {
        println!("not root: tests that need network namespaces will skip themselves");
    }
    let scratch = Scratch::new()?;
    let log = scratch.file("skipped");
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).env(SKIPPED_LOG, &log);
    let outcome = done(&mut command);
    // No file: nothing was skipped.
    let skipped = std::fs::read_to_string(&log).unwrap_or_default();
    if !skipped.is_empty() {
        let count = skipped.lines().count();
        let mut text = format!("\n{count} tests skipped themselves:\n");
        for line in skipped.lines().take(SKIPPED_LINES_MAX) {
            writeln!(text, "  {line}")?;
        }
        print!("{text}");
    }
    outcome
}

/// The Python packages, in an environment of their own beside the build, and the command with
/// that of TRex's profiles.
fn python() -> Fallible<Pass> {
    let environment = workspace::root().join("target/python");
    let package = |name: &str| workspace::root().join("python").join(name);
    let python = environment.join("bin/python");
    if !python.exists() {
        done(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let mut path = environment.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let install = |what: &[&str]| {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        // Built by the environment's own maturin, as the tests are, of which most is built already.
        install.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        install.env("MATURIN_PEP517_ARGS", "--profile=dev").env("PATH", &path).args(what);
        done(&mut install)
    };
    install(&["maturin>=1.8,<2"])?;
    let with_tests = |name: &str| format!("{}[test]", package(name).display());
    install(&["--no-build-isolation", &with_tests("wirestorm")])?;
    install(&["--editable", &with_tests("trex")])?;
    let mut with_command = cargo();
    // As the workspace, so that nothing is built again with fewer features.
    with_command.args(["test", "--workspace", "--test", "it", "--"]).args(WITH_PYTHON);
    done(with_command.env("WIRESTORM_PYTHON", &python))?;
    // These tests have built the command that profiles are run with.
    let binary = workspace::in_target("debug/wirestorm")?;
    for name in ["wirestorm", "trex"] {
        let mut test = Command::new(&python);
        test.env("WIRESTORM_BINARY", &binary).current_dir(package(name));
        // With the reasons of tests that skip themselves.
        done(test.args(["-m", "pytest", "--quiet", "-rs"]))?;
    }
    Ok(Pass::Done)
}

/// The other two scripts that the README names: the demo, and one benchmark in its shortest form.
fn scripts() -> Fallible<Pass> {
    if !is_root() {
        return Ok(Pass::Skipped("not root: no network namespaces".into()));
    }
    let script = |name: &str| Command::new(workspace::root().join(name));
    done(&mut script("demo"))?;
    let scratch = Scratch::new()?;
    let figures = scratch.file("bench.json");
    let short = ["small", "--rounds", "1", "--seconds", "1", "--json"];
    done(script("bench").args(short).arg(&figures))?;
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(&figures)?)?;
    match figures["rows"].as_array() {
        Some(rows) if !rows.is_empty() => Ok(Pass::Done),
        _ => Err(format!("./bench --json wrote no rows: {figures}").into()),
    }
}

/// Every fuzz target for a short time, from its corpus. What it finds stays beside the build, so
/// that the committed corpus grows only on purpose.
fn fuzz() -> Fallible<Pass> {
    if let Err(reason) = setup::ensure_cargo_fuzz() {
        return Ok(Pass::Skipped(reason.to_string()));
    }
    let list = cargo_of(NIGHTLY).args(["fuzz", "list"]).output()?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    if list.trim().is_empty() {
        return Err("cargo fuzz lists no target".into());
    }
    for target in list.lines() {
        let found = workspace::root().join("fuzz/target/corpus").join(target);
        std::fs::create_dir_all(&found)?;
        let mut command = cargo_of(NIGHTLY);
        command.args(["fuzz", "run", target]).arg(&found);
        command.arg(workspace::root().join("fuzz/corpus").join(target));
        let time = format!("-max_total_time={FUZZ_SECONDS}");
        done(command.args(["--", "-verbosity=0", "-print_final_stats=1", &time]))?;
    }
    Ok(Pass::Done)
}

fn done(command: &mut Command) -> Fallible<Pass> {
    let status = command.status()?;
    if status.success() { Ok(Pass::Done) } else { Err(format!("{status}; see above").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails() -> Fallible<Pass> {
        Err("on purpose".into())
    }

    fn counts_itself() -> Fallible<Pass> {
        RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Pass::Done)
    }

    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

    #[test]
    fn the_first_failure_ends_the_run_unless_told_to_keep_going() {
        let runs = || RUNS.load(std::sync::atomic::Ordering::Relaxed);
        let steps = [Step { name: "a", run: fails }, Step { name: "b", run: counts_itself }];
        assert_eq!(run_steps(steps.iter(), false), ExitCode::FAILURE);
        assert_eq!(runs(), 0);
        assert_eq!(run_steps(steps.iter(), true), ExitCode::FAILURE);
        assert_eq!(runs(), 1);
        assert_eq!(run_steps(steps[1..].iter(), false), ExitCode::SUCCESS);
    }
}
