//! Runs the corpus with one binary and records the results, one folder each.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::json;
use wirestorm_testkit::Scratch;
use wirestorm_testkit::net::{
    Capture, CaptureOptions, End, Lab, LabOptions, NetError, PollingSink,
};
use wirestorm_testkit::require::find_tool;

use super::definition::{Environment, Section};
use super::inputs::InputFolders;
use crate::setup::Purpose;
use crate::{Fallible, setup, table};

/// Timeout of a run in seconds.
const PATIENCE: &str = "30";
/// Longest file in bytes that is recorded; of a longer one, only length and digest.
const KEPT_BYTES: usize = 16 << 20;
/// Files of a run: settings and exit status, standard output, standard error.
pub(super) const RUN: &str = "run.json";
pub(super) const OUTPUT: &str = "stdout";
pub(super) const MESSAGES: &str = "stderr";
/// MAC address of the host at the second interface of a link.
const SECOND_HOST: &str = "02:57:53:00:00:0b";

/// One run of the corpus.
#[derive(Clone, Debug)]
struct Run<'a> {
    section: &'a Section,
    name: String,
    command: &'a str,
    /// The file that `$each` expands to.
    each: Option<PathBuf>,
    /// Reason why the run is skipped.
    skipped: Option<String>,
}

/// Prints the names of the runs.
pub(super) fn list(
    sections: &[Section],
    inputs: &InputFolders,
    only: &[String],
) -> Fallible<ExitCode> {
    let scratch = Scratch::new()?;
    inputs.link_into(scratch.path())?;
    for run in runs(sections, inputs, scratch.path(), only)? {
        match &run.skipped {
            Some(reason) => println!("{}  (skipped: {reason})", run.name),
            None => println!("{}", run.name),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Executes the runs and records their results.
pub(super) fn record(
    sections: &[Section],
    inputs: &InputFolders,
    only: &[String],
    binary: &Path,
    folder: &Path,
) -> Fallible<ExitCode> {
    let scratch = Scratch::new()?;
    inputs.link_into(scratch.path())?;
    let bin = scratch.file("bin");
    std::fs::create_dir(&bin)?;
    for name in ["wirestorm", "tcpreplay", "tcpreplay-edit"] {
        symlink(binary, bin.join(name))?;
    }
    let runs = runs(sections, inputs, scratch.path(), only)?;
    if runs.is_empty() {
        return Err("corpus record: no run matches; --list shows all".into());
    }
    let needs_lab =
        |run: &Run<'_>| run.section.place != Environment::Files && run.skipped.is_none();
    if runs.iter().any(needs_lab) {
        setup::ensure_root("the corpus")?;
        setup::ensure(&[Purpose::Build, Purpose::Lab])?;
    }
    std::fs::create_dir_all(folder)?;
    let begun = Instant::now();
    let recorder = Recorder { scratch: &scratch, folder, path: search_path(&bin) };
    recorder.record_together(&runs)?;
    summarize(&runs);
    println!("{} runs in {:.0} s", runs.len(), begun.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn search_path(bin: &Path) -> String {
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
}

/// Lists the selected runs.
fn runs<'a>(
    sections: &'a [Section],
    inputs: &InputFolders,
    folder: &Path,
    only: &[String],
) -> Fallible<Vec<Run<'a>>> {
    let mut found = Vec::new();
    for section in sections {
        let needs = section.needs.iter().find_map(|need| missing(need, inputs));
        let pattern = section.each.as_deref();
        let input = pattern.and_then(|it| it.split('/').next());
        let skipped = needs.or_else(|| input.and_then(|input| inputs.missing(input)));
        let files = match (pattern, &skipped) {
            (Some(pattern), None) => files(folder, pattern)?,
            _ => Vec::new(),
        };
        for (name, command) in &section.runs {
            let name = format!("{}/{name}", section.name);
            let run = Run { section, name, command, each: None, skipped: skipped.clone() };
            if pattern.is_none() || run.skipped.is_some() {
                found.push(run);
                continue;
            }
            for file in &files {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                let name = format!("{}/{stem}", run.name);
                found.push(Run { name, each: Some(file.clone()), ..run.clone() });
            }
        }
    }
    let is_wanted =
        |name: &str| only.iter().any(|it| name.contains(it) || super::matches(it, name));
    found.retain(|run| only.is_empty() || is_wanted(&run.name));
    Ok(found)
}

/// Reason why a requirement of runs is missing.
fn missing(need: &str, inputs: &InputFolders) -> Option<String> {
    if need == "python" {
        let is_missing = std::env::var_os("WIRESTORM_PYTHON").is_none();
        let reason = "WIRESTORM_PYTHON is not set to a Python with the package wirestorm-trex";
        return is_missing.then(|| reason.to_owned());
    }
    let input = inputs.missing(need);
    let is_tool = !matches!(need, "captures") && !need.starts_with("trex-");
    let tool = (is_tool && find_tool(need).is_none()).then(|| format!("{need} is not installed"));
    input.or(tool)
}

/// Files that match a pattern `FOLDER/NAME` with `*` in the name, sorted.
fn files(folder: &Path, pattern: &str) -> Fallible<Vec<PathBuf>> {
    let (place, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let entries = std::fs::read_dir(folder.join(place))
        .map_err(|error| format!("each = {pattern}: {error}"))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<_> = names.filter(|it| super::matches(name, it)).collect();
    found.sort();
    if found.is_empty() {
        return Err(format!("each = {pattern}: no file matches").into());
    }
    Ok(found.into_iter().map(|it| Path::new(place).join(it)).collect())
}

fn summarize(runs: &[Run<'_>]) {
    let mut rows = Vec::<(String, usize, usize)>::new();
    let mut reasons = Vec::<String>::new();
    for run in runs {
        if rows.last().is_none_or(|(name, ..)| *name != run.section.name) {
            rows.push((run.section.name.clone(), 0, 0));
        }
        if let Some((_, made, skipped)) = rows.last_mut() {
            *made += usize::from(run.skipped.is_none());
            *skipped += usize::from(run.skipped.is_some());
        }
        if let Some(reason) = &run.skipped {
            let line = format!("skipped: {}: {reason}", run.name);
            reasons.push(line);
        }
    }
    let cells = |(name, made, skipped): (String, usize, usize)| {
        vec![name, made.to_string(), skipped.to_string()]
    };
    let rows: Vec<_> = rows.into_iter().map(cells).collect();
    table::print(&["section", "runs", "skipped"], &rows);
    reasons.iter().for_each(|line| println!("{line}"));
}

/// The interfaces of a run, with their captures.
struct Wires {
    labs: Vec<Lab>,
    /// Names of namespaces and their replacements in the recording.
    names: Vec<(String, &'static str)>,
    /// Shell variables.
    variables: Vec<(&'static str, String)>,
    captures: Vec<(&'static str, Capture)>,
    _sink: Option<PollingSink>,
    /// See [`Recorder::capture`].
    _oldest: Vec<Capture>,
}

struct Recorder<'a> {
    scratch: &'a Scratch,
    folder: &'a Path,
    path: String,
}

impl Recorder<'_> {
    /// Executes the runs in parallel, one for each CPU. Each run has its own folder and namespaces.
    fn record_together(&self, runs: &[Run<'_>]) -> Fallible<()> {
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = self.record(run) {
                    let error = format!("{}: {error}", run.name);
                    failed.lock().unwrap_or_else(|it| it.into_inner()).get_or_insert(error);
                    return;
                }
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        let failed = failed.into_inner().unwrap_or_else(|it| it.into_inner());
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn record(&self, run: &Run<'_>) -> Fallible<()> {
        let folder = self.folder.join(&run.name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let section = run.section;
        let mut description = json!({
            "name": run.name, "command": run.command, "skipped": run.skipped,
            "frames": section.frames.name(), "times": section.are_times_compared,
            "output": section.is_output_compared, "mask": section.mask,
        });
        if run.skipped.is_none() {
            let work = Scratch::new()?;
            for entry in std::fs::read_dir(self.scratch.path())? {
                let entry = entry?;
                symlink(entry.path(), work.path().join(entry.file_name()))?;
            }
            let wires = match section.place {
                Environment::Files => None,
                Environment::Cable => Some(self.cable(section)?),
                Environment::Hosts => Some(self.hosts()?),
            };
            let output = self.command(run, wires.as_ref(), work.path()).output()?;
            description["status"] = json!(output.status.code());
            let names = wires.as_ref().map(|wires| wires.names.clone()).unwrap_or_default();
            std::fs::write(work.file(OUTPUT), &output.stdout)?;
            std::fs::write(work.file(MESSAGES), &output.stderr)?;
            if let Some(wires) = wires {
                description["dropped"] = json!(wires.finish(&work)?);
            }
            // Files were created by the run; its inputs are links.
            for file in super::files_below(work.path())? {
                let to = folder.join(&file);
                to.parent().map(std::fs::create_dir_all).transpose()?;
                let bytes = replace_names(std::fs::read(work.path().join(&file))?, &names);
                std::fs::write(to, if bytes.len() > KEPT_BYTES { digest(&bytes) } else { bytes })?;
            }
        }
        std::fs::write(folder.join(RUN), format!("{description:#}\n"))?;
        Ok(())
    }

    fn command(&self, run: &Run<'_>, wires: Option<&Wires>, folder: &Path) -> Command {
        let shell = ["-k", "1", PATIENCE, "sh", "-c", run.command];
        let inside = wires.filter(|_| run.section.place == Environment::Cable);
        let mut command = match inside.and_then(|wires| wires.labs.first()) {
            Some(lab) => lab.a.command("timeout"),
            None => Command::new("timeout"),
        };
        command.args(shell).current_dir(folder).env("PATH", &self.path).stdin(Stdio::null());
        // The recording must not depend on the user's environment.
        command.env("LC_ALL", "C").env("TZ", "UTC").env("COLUMNS", "100").env("NO_COLOR", "1");
        if let Some(each) = &run.each {
            let stem = each.file_stem().unwrap_or_default();
            command.env("each", each).env("name", stem);
        }
        for (name, value) in wires.iter().flat_map(|wires| &wires.variables) {
            command.env(name, value);
        }
        command
    }

    /// Creates a veth pair.
    fn cable(&self, section: &Section) -> Fallible<Wires> {
        let Section { has_addresses: addresses, mtu, .. } = *section;
        let options = LabOptions { addresses, mtu, ..LabOptions::default() };
        let lab = Lab::with(&options)?;
        let sink = section.has_polling_sink.then(|| lab.b.polling_sink()).transpose()?;
        let (mut captures, mut oldest) = (Vec::new(), Vec::new());
        for (name, end) in [("eth1", &lab.a), ("eth2", &lab.b)] {
            Self::capture(name, end, &mut captures, &mut oldest)?;
        }
        let variables = vec![("eth1", lab.a.interface().to_owned()), ("eth2", lab.b.port())];
        let names = vec![(name_of(&lab.a), "a"), (name_of(&lab.b), "b")];
        Ok(Wires { labs: vec![lab], names, variables, captures, _sink: sink, _oldest: oldest })
    }

    /// Creates two veth pairs with a host at each.
    fn hosts(&self) -> Fallible<Wires> {
        let (first, second) = (Lab::new()?, Lab::new()?);
        let host = &second.a;
        host.namespace().ip(&[&format!("link set {} address {SECOND_HOST}", host.interface())])?;
        let (mut captures, mut oldest) = (Vec::new(), Vec::new());
        for (name, end) in [("host1", &first.a), ("host2", &second.a)] {
            Self::capture(name, end, &mut captures, &mut oldest)?;
        }
        let variables = vec![
            ("eth1", first.b.port()),
            ("eth2", second.b.port()),
            ("host1", first.a.port()),
            ("host2", second.a.port()),
            // Lets a shell wait until a program receives from both interfaces.
            ("listening", listening([&first.b, &second.b])),
        ];
        let names = vec![
            (name_of(&first.a), "host1"),
            (name_of(&first.b), "link1"),
            (name_of(&second.b), "link2"),
            (name_of(&second.a), "host2"),
        ];
        let labs = vec![first, second];
        Ok(Wires { labs, names, variables, captures, _sink: None, _oldest: oldest })
    }

    /// Captures the frames that arrive at an interface.
    fn capture(
        name: &'static str,
        end: &End,
        captures: &mut Vec<(&'static str, Capture)>,
        oldest: &mut Vec<Capture>,
    ) -> Result<(), NetError> {
        // If frames arrive in a burst, the kernel delays frames of unknown protocols for the oldest
        // packet socket of an interface until the next frame. So this capture, which is never read,
        // is the oldest one.
        let nothing = CaptureOptions { filter: "less 1".into(), ..CaptureOptions::default() };
        oldest.push(end.capture_with(&nothing)?);
        captures.push((name, end.capture()?));
        Ok(())
    }
}

impl Wires {
    /// Stops the captures; returns the number of frames that they lost.
    fn finish(self, work: &Scratch) -> Fallible<u64> {
        let mut dropped = 0;
        for (name, capture) in self.captures {
            let captured = capture.finish(0)?;
            dropped += captured.dropped;
            std::fs::copy(captured.path(), work.file(&format!("wire.{name}.pcap")))?;
        }
        Ok(dropped)
    }
}

fn name_of(end: &End) -> String {
    end.namespace().name().to_owned()
}

/// Shell command that waits until a program receives from both interfaces.
fn listening(ends: [&End; 2]) -> String {
    let waits = ends.map(|end| {
        let (namespace, interface) = (name_of(end), end.interface());
        format!(
            "until ip -n {namespace} -d link show {interface} | \
             grep -qE 'prog/|promiscuity [1-9]'; do sleep 0.01; done"
        )
    });
    waits.join("; ")
}

/// Digest of a file (FNV-1a, 64 bits), as one line.
fn digest(bytes: &[u8]) -> Vec<u8> {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{} bytes, digest {hash:016x}\n", bytes.len()).into_bytes()
}

/// Replaces the names of the lab's namespaces in a text; other data stays unchanged.
fn replace_names(bytes: Vec<u8>, names: &[(String, &str)]) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => {
            names.iter().fold(text, |text, (name, other)| text.replace(name, other)).into_bytes()
        }
        Err(error) => error.into_bytes(),
    }
}
