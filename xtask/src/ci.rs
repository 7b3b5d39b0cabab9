//! All checks and tests, ordered so that failures show early.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use wirestorm_testkit::Scratch;
use wirestorm_testkit::require::{SKIPPED_LOG, find_tool, is_root};

use crate::setup::{NIGHTLY, Purpose};
use crate::workspace::{cargo, cargo_of};
use crate::{Fallible, dependencies, docs, setup, table, workspace};

/// Run time of each fuzz target in seconds; two run at a time. 15 targets take about 30 seconds.
const FUZZ_SECONDS: u32 = 4;
/// Same as [`FUZZ_SECONDS`], with `--long`.
const FUZZ_SECONDS_LONG: u32 = 60;
/// Fuzz targets that only `--long` builds and runs: they need many dependencies. A test replays
/// their corpora in any case.
const FUZZ_TARGETS_LONG: [&str; 1] = ["trex_rpc"];
/// Environment variable with the path of the binary under test, to avoid a build.
const BINARY: &str = workspace::BINARY;
/// Environment variable that `--long` sets, so that tests do more.
const LONG: &str = "WIRESTORM_LONG";
/// Environment variable with the path of Helm, for tests of the chart.
const HELM: &str = "WIRESTORM_HELM";
/// Tests that need the Python package for TRex profiles, or [`PYARROW`].
const WITH_PYTHON: [&str; 3] = [
    "runs::exported_trials_are_read_by_pyarrow",
    "streams::trex_profiles_are_simulated_as_they_are",
    "documents::all_commands_with_a_trex_profile_run",
];
/// The package that reads exported trials.
const PYARROW: &str = "pyarrow>=17";
/// Builds libraries and the example `sample` with the features of the whole workspace and its tests,
/// so that cargo uses what the tests have built. The example adds the features of tests.
const BUILD_LIBRARIES: [&str; 6] =
    ["build", "--quiet", "--workspace", "--lib", "--example", "sample"];
/// Flags of pytest-xdist: most tests wait for most of their time.
const PYTEST_PROCESSES: [&str; 2] = ["--numprocesses", "3"];
/// Highest number of skip reasons that are printed.
const SKIPPED_LINES_MAX: usize = 40;

/// Result of a step that did not fail.
enum Pass {
    Done,
    Skipped(String),
}

struct Step {
    name: &'static str,
    run: fn(Extent) -> Fallible<Pass>,
}

/// Amount of work of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Suitable for every change.
    Usual,
    /// Longer fuzzing with the sanitizer, and scripts with release builds.
    Long,
}

const STEPS: [Step; 12] = [
    Step { name: "packages", run: packages },
    Step { name: "directions", run: check_directions },
    Step { name: "book", run: book },
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "doc", run: doc },
    Step { name: "test", run: test },
    Step { name: "python", run: python },
    Step { name: "report", run: report },
    Step { name: "clients", run: clients },
    Step { name: "scripts", run: scripts },
    Step { name: "fuzz", run: fuzz },
];

/// Runs the command `ci`.
pub(crate) fn run(mut arguments: lexopt::Parser) -> Fallible<ExitCode> {
    let (mut only, mut keep_going, mut extent) = (Vec::new(), false, Extent::Usual);
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("list") => {
                STEPS.iter().for_each(|step| println!("{}", step.name));
                return Ok(ExitCode::SUCCESS);
            }
            lexopt::Arg::Long("only") => {
                let name = arguments.value()?.to_string_lossy().into_owned();
                if !STEPS.iter().any(|step| step.name == name) {
                    return Err(format!("unknown step {name:?}; --list shows all").into());
                }
                only.push(name);
            }
            lexopt::Arg::Long("keep-going") => keep_going = true,
            lexopt::Arg::Long("long") => extent = Extent::Long,
            lexopt::Arg::Long("help") => return Ok(crate::help()),
            other => return Err(other.unexpected().into()),
        }
    }
    let is_selected = |step: &&Step| only.is_empty() || only.iter().any(|name| name == step.name);
    Ok(run_steps(STEPS.iter().filter(is_selected), keep_going, extent))
}

fn run_steps<'a>(
    steps: impl Iterator<Item = &'a Step>,
    keep_going: bool,
    extent: Extent,
) -> ExitCode {
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
        let outcome = (step.run)(extent);
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

fn packages(_: Extent) -> Fallible<Pass> {
    setup::ensure(&[Purpose::Build, Purpose::Lab, Purpose::Test])?;
    Ok(Pass::Done)
}

fn check_directions(_: Extent) -> Fallible<Pass> {
    let wrong = dependencies::check()?;
    if wrong.is_empty() { Ok(Pass::Done) } else { Err(wrong.join("\n").into()) }
}

/// Checks generated pages and links, and builds the site with mdBook.
fn book(_: Extent) -> Fallible<Pass> {
    let wrong = docs::errors()?;
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    let mdbook = match setup::ensure_mdbook() {
        Ok(mdbook) => mdbook,
        Err(reason) => return Ok(Pass::Skipped(format!("links are right; no site: {reason}"))),
    };
    let mut build = Command::new(mdbook);
    build.arg("build").arg(workspace::root()).arg("--dest-dir").arg(workspace::in_target("book")?);
    done(&mut build)
}

fn fmt(_: Extent) -> Fallible<Pass> {
    done(cargo().args(["fmt", "--all", "--check"]))
}

fn clippy(_: Extent) -> Fallible<Pass> {
    let arguments = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    done(cargo().args(arguments))
}

fn doc(_: Extent) -> Fallible<Pass> {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    done(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn test(extent: Extent) -> Fallible<Pass> {
    if !is_root() {
        println!("not root: skipping tests that need network namespaces");
    }
    let scratch = Scratch::new()?;
    let log = scratch.file("skipped");
    let mut command = all_tests()?;
    command.arg("--no-fail-fast").env(SKIPPED_LOG, &log);
    if extent == Extent::Long {
        command.env(LONG, "1");
    }
    match setup::ensure_helm() {
        Ok(helm) => drop(command.env(HELM, helm)),
        Err(reason) => println!("without helm: {reason}"),
    }
    let outcome = done(&mut command);
    // Without skipped tests there is no file.
    let skipped = std::fs::read_to_string(&log).unwrap_or_default();
    if !skipped.is_empty() {
        let count = skipped.lines().count();
        let mut text = format!("\n{count} tests were skipped:\n");
        for line in skipped.lines().take(SKIPPED_LINES_MAX) {
            writeln!(text, "  {line}")?;
        }
        print!("{text}");
    }
    let examples = done(cargo().args(["test", "--quiet", "--workspace", "--doc"]));
    outcome.and(examples)
}

/// The workspace's tests without doc tests. Uses cargo-nextest if available: many tests wait, and
/// nextest runs tests of several binaries at the same time.
fn all_tests() -> Fallible<Command> {
    let mut command = match setup::ensure_nextest() {
        Ok(nextest) => {
            let mut command = Command::new(nextest);
            command.current_dir(workspace::root()).args(["nextest", "run"]);
            command
        }
        Err(reason) => {
            println!("without cargo-nextest: {reason}");
            let mut command = cargo();
            command.args(["test", "--lib", "--bins", "--tests"]);
            command
        }
    };
    // Tests of the binary's package build it, so the end-to-end tests need not build it.
    command.arg("--workspace");
    if std::env::var_os(BINARY).is_none() {
        command.env(BINARY, workspace::in_target("debug/wirestorm")?);
    }
    Ok(command)
}

/// Tests the Python packages in a virtual environment in `target`, and the binary with the package
/// for TRex profiles.
fn python(extent: Extent) -> Fallible<Pass> {
    let package = |name: &str| workspace::root().join("python").join(name);
    let python = setup::python()?;
    let pip = |arguments: &[&str]| {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        done(pip.args(arguments))
    };
    let with_tests = |name: &str| format!("{}[test]", package(name).display());
    // Its tests need all that the tests of the other package need.
    pip(&["install", PYARROW, "--editable", &with_tests("trex")])?;
    match extent {
        Extent::Usual => link_package(&python, &package("wirestorm"))?,
        Extent::Long => drop(pip(&["install", &with_tests("wirestorm")])?),
    }
    let mut with_command = all_tests()?;
    with_command.arg("--").args(WITH_PYTHON);
    done(with_command.env("WIRESTORM_PYTHON", &python))?;
    // The tests above have built the binary that runs profiles.
    let binary = workspace::in_target("debug/wirestorm")?;
    for name in ["wirestorm", "trex"] {
        let mut test = Command::new(&python);
        test.env(BINARY, &binary).current_dir(package(name));
        // `-rs` prints the reasons of skipped tests.
        done(test.args(["-m", "pytest", "--quiet", "-rs"]).args(PYTEST_PROCESSES))?;
    }
    Ok(Pass::Done)
}

/// Makes the package importable from its sources, with the native part that a build with the
/// features of the tests makes. An installation compiles it with other features, for minutes.
fn link_package(python: &Path, package: &Path) -> Fallible<()> {
    done(cargo().args(BUILD_LIBRARIES))?;
    let sources = package.join("src");
    let native = workspace::in_target("debug/libwirestorm_native.so")?;
    std::fs::copy(native, sources.join("wirestorm/_native.abi3.so"))?;
    let mut ask = Command::new(python);
    ask.args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
    let installed = String::from_utf8(ask.output()?.stdout)?;
    let installed = Path::new(installed.trim());
    // A package that `--long` installed would come first.
    let _ = std::fs::remove_dir_all(installed.join("wirestorm"));
    std::fs::write(installed.join("wirestorm.pth"), sources.as_os_str().as_encoded_bytes())?;
    Ok(())
}

/// Compares the bundle of reports with its sources, then tests sample reports in a browser.
fn report(_: Extent) -> Fallible<Pass> {
    let folder = workspace::root().join("crates/report");
    let bundle = compare_bundle("crates/report/web")?;
    if find_tool("chromium").is_none() {
        let reason = "chromium is not installed: reports are not tested in a browser";
        return Ok(Pass::Skipped(reason.to_owned()));
    }
    let scratch = Scratch::new()?;
    done(cargo().args(BUILD_LIBRARIES))?;
    let mut sample = Command::new(workspace::in_target("debug/examples/sample")?);
    done(sample.arg(scratch.path()))?;
    let mut test = pytest_with_requirements(&folder.join("tests/browser"))?;
    done(test.args(PYTEST_PROCESSES).env("WIRESTORM_SAMPLE_REPORTS", scratch.path()))?;
    Ok(bundle)
}

/// Compares the bundle of the web page with its sources, then tests the server with its clients:
/// the page in a browser, and snappi.
fn clients(_: Extent) -> Fallible<Pass> {
    let bundle = compare_bundle("crates/serve/web")?;
    let mut test = pytest_with_requirements(&workspace::root().join("crates/serve/tests/clients"))?;
    if std::env::var_os(BINARY).is_none() {
        // The Rust tests have built it.
        test.env(BINARY, workspace::in_target("debug/wirestorm")?);
    }
    done(test.args(PYTEST_PROCESSES))?;
    Ok(bundle)
}

/// Returns pytest in a folder of tests, whose requirements it installs.
fn pytest_with_requirements(tests: &Path) -> Fallible<Command> {
    let python = setup::python()?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    done(install.arg(tests.join("requirements.txt")))?;
    let mut test = Command::new(&python);
    // `-rs` prints the reasons of skipped tests.
    test.args(["-m", "pytest", "--quiet", "-rs", "-p", "no:cacheprovider"]).current_dir(tests);
    Ok(test)
}

/// Style that several bundles import.
const SHARED_STYLE: &str = "crates/report/web/src/colors.css";

/// Builds a bundle from a copy of its sources and compares each file of `dist`.
fn compare_bundle(folder: &str) -> Fallible<Pass> {
    if find_tool("npm").is_none() {
        let reason =
            format!("npm is not installed: {folder}/dist is not compared with its sources");
        println!("skipped: {reason}");
        return Ok(Pass::Skipped(reason));
    }
    let web = workspace::root().join(folder);
    let scratch = Scratch::new()?;
    let copy = scratch.file(folder);
    let mut copying = Command::new("cp");
    copying.args(["--recursive", "--parents", folder, SHARED_STYLE]).arg(scratch.path());
    done(copying.current_dir(workspace::root()))?;
    for made in ["dist", "node_modules"] {
        if copy.join(made).exists() {
            std::fs::remove_dir_all(copy.join(made))?;
        }
    }
    let npm = |arguments: &[&str]| {
        let mut npm = Command::new("npm");
        npm.env("WIRESTORM_OPENAPI", workspace::root().join("schemas/wirestorm.openapi.1.json"));
        done(npm.args(arguments).arg("--silent").current_dir(&copy))
    };
    npm(&["ci", "--ignore-scripts"])?;
    npm(&["run", "build"])?;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(copy.join("dist"))? {
        let entry = entry?;
        let committed = std::fs::read(web.join("dist").join(entry.file_name())).ok();
        if committed.as_deref() != Some(&*std::fs::read(entry.path())?) {
            wrong.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    if wrong.is_empty() {
        return Ok(Pass::Done);
    }
    let files = wrong.join(", ");
    Err(format!(
        "{folder}/dist differs from its sources: {files}; run npm ci && npm run build there"
    )
    .into())
}

/// Runs the other two scripts of the README: the demo, and one benchmark in its shortest form.
///
/// They use the binary that the tests have built. With `--long` they make a release build, as for
/// users.
fn scripts(extent: Extent) -> Fallible<Pass> {
    if !is_root() {
        return Ok(Pass::Skipped("not root: no network namespaces".into()));
    }
    let built = workspace::in_target("debug/wirestorm")?;
    let script = |name: &str| {
        let mut script = Command::new(workspace::root().join(name));
        if extent == Extent::Usual && built.exists() {
            script.env(BINARY, &built);
        }
        script
    };
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

/// Runs every fuzz target for a short time, starting from its corpus. New inputs go to
/// `fuzz/target`, so that the committed corpus grows only on purpose.
fn fuzz(extent: Extent) -> Fallible<Pass> {
    if let Err(reason) = setup::ensure_cargo_fuzz() {
        return Ok(Pass::Skipped(reason.to_string()));
    }
    let cargo_fuzz = |verb: &str| {
        let mut command = cargo_of(NIGHTLY);
        command.args(["fuzz", verb]);
        if extent == Extent::Usual && verb != "list" {
            // An optimized build takes more than twice the time. The address sanitizer finds errors
            // in unsafe code, which the targets do not reach in this workspace.
            command.args(["--dev", "--sanitizer", "none", "--no-default-features"]);
        }
        command
    };
    let list = cargo_fuzz("list").output()?;
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    if list.trim().is_empty() {
        return Err("cargo fuzz lists no target".into());
    }
    done(&mut cargo_fuzz("build"))?;
    let seconds = match extent {
        Extent::Usual => FUZZ_SECONDS,
        Extent::Long => FUZZ_SECONDS_LONG,
    };
    let is_built = |target: &&str| extent == Extent::Long || !FUZZ_TARGETS_LONG.contains(target);
    let targets = Mutex::new(list.lines().filter(is_built));
    let next = || targets.lock().ok()?.next();
    let run = |target: &str| -> Result<(), String> {
        let found = workspace::root().join("fuzz/target/corpus").join(target);
        std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
        let mut command = cargo_fuzz("run");
        command.arg(target).arg(&found).arg(workspace::root().join("fuzz/corpus").join(target));
        let time = format!("-max_total_time={seconds}");
        command.args(["--", "-verbosity=0", "-print_final_stats=1", &time]);
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stderr);
        println!("-- {target}\n{}{text}", String::from_utf8_lossy(&output.stdout));
        if output.status.success() { Ok(()) } else { Err(format!("{target}: {}", output.status)) }
    };
    let run_some = || std::iter::from_fn(next).filter_map(|it| run(it).err()).collect::<Vec<_>>();
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(run_some);
        let mut failures = run_some();
        failures.extend(other.join().unwrap_or_else(|_| vec!["a thread panicked".to_owned()]));
        failures
    });
    if failures.is_empty() { Ok(Pass::Done) } else { Err(failures.join("; ").into()) }
}

fn done(command: &mut Command) -> Fallible<Pass> {
    let status = command.status()?;
    if status.success() { Ok(Pass::Done) } else { Err(format!("{status}; see above").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(_: Extent) -> Fallible<Pass> {
        Err("on purpose".into())
    }

    fn counts_itself(_: Extent) -> Fallible<Pass> {
        RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Pass::Done)
    }

    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

    #[test]
    fn first_failure_ends_the_run_without_keep_going() {
        let runs = || RUNS.load(std::sync::atomic::Ordering::Relaxed);
        let steps = [Step { name: "a", run: fails }, Step { name: "b", run: counts_itself }];
        assert_eq!(run_steps(steps.iter(), false, Extent::Usual), ExitCode::FAILURE);
        assert_eq!(runs(), 0);
        assert_eq!(run_steps(steps.iter(), true, Extent::Usual), ExitCode::FAILURE);
        assert_eq!(runs(), 1);
        assert_eq!(run_steps(steps[1..].iter(), false, Extent::Usual), ExitCode::SUCCESS);
    }
}
