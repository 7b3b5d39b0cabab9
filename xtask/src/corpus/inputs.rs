//! Folders of input files for the runs, by name.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wirestorm_testkit::pcap::Resolution;
use wirestorm_testkit::sample::{FixedFrames, FixedOptions, Traffic, TrafficOptions, write_file};

use crate::{Fallible, workspace};

/// Folders outside the source tree: name, environment variable with the path, and contents.
const OUTSIDE: [(&str, &str, &str); 4] = [
    ("captures", "WIRESTORM_CORPUS_CAPTURES", "captures to replay"),
    ("trex-streams", "WIRESTORM_TREX_STREAMS", "TRex's stateless profiles as JSON"),
    ("trex-profiles", "WIRESTORM_TREX_PROFILES", "TRex's stateful profiles as JSON"),
    ("trex-scripts", "WIRESTORM_TREX_SCRIPTS", "the folder `scripts` of TRex's tree"),
];

/// Folders of the source tree.
const INSIDE: [(&str, &str); 3] = [
    ("examples", "examples"),
    ("corpus", "xtask/corpus"),
    ("profiles", "python/trex/tests/profiles"),
];

/// Known paths of the folders outside the source tree.
#[derive(Clone, Debug, Default)]
pub(super) struct InputFolders {
    known: BTreeMap<&'static str, PathBuf>,
}

impl InputFolders {
    /// Reads the environment variables.
    pub(super) fn from_environment() -> Self {
        let known = OUTSIDE.iter().filter_map(|(name, variable, _)| {
            let path = std::env::var_os(variable).filter(|path| !path.is_empty())?;
            Some((*name, PathBuf::from(path)))
        });
        Self { known: known.collect() }
    }

    /// Parses `NAME=FOLDER` from the command line.
    pub(super) fn set(&mut self, text: &str) -> Fallible<()> {
        let names = || OUTSIDE.map(|(name, ..)| name).join(", ");
        let named = text.split_once('=').and_then(|(name, path)| {
            let (name, ..) = OUTSIDE.iter().find(|(it, ..)| *it == name)?;
            Some((*name, path))
        });
        let (name, path) = named
            .ok_or_else(|| format!("--input {text}: expected NAME=FOLDER, NAME of {}", names()))?;
        if !Path::new(path).is_dir() {
            return Err(format!("--input {text}: the folder does not exist").into());
        }
        self.known.insert(name, PathBuf::from(path));
        Ok(())
    }

    /// Reason why an input is missing; `None` if it is available.
    pub(super) fn missing(&self, name: &str) -> Option<String> {
        let (_, variable, what) = OUTSIDE.iter().find(|(it, ..)| *it == name)?;
        let is_missing = name != "captures" && !self.known.contains_key(name);
        is_missing.then(|| format!("no {name} ({what}): --input {name}=FOLDER, or {variable}"))
    }

    /// Creates links to all inputs in a folder. Generates captures if no folder is known.
    pub(super) fn link_into(&self, folder: &Path) -> Fallible<()> {
        for (name, path) in INSIDE {
            symlink(workspace::root().join(path), folder.join(name))?;
        }
        for (name, path) in &self.known {
            symlink(std::fs::canonicalize(path)?, folder.join(name))?;
        }
        if !self.known.contains_key("captures") {
            eprintln!("corpus: no folder of captures (--input captures=FOLDER): generating some");
            make_captures(&folder.join("captures"))?;
        }
        let options = TrafficOptions { conversations: 20, ..TrafficOptions::default() };
        write_file(Traffic::new(options), Resolution::Microseconds, &folder.join("traffic.pcap"))
            .map_err(|error| format!("traffic.pcap: {error}"))?;
        Ok(())
    }
}

/// Generates captures like `cargo xtask sample`.
fn make_captures(folder: &Path) -> Fallible<()> {
    std::fs::create_dir(folder)?;
    let error = |error| format!("a sample: {error}");
    for seed in 1..=4 {
        let options = TrafficOptions { conversations: 10, seed, ..TrafficOptions::default() };
        let path = folder.join(format!("sample_{seed}.pcap"));
        write_file(Traffic::new(options), Resolution::Microseconds, &path).map_err(error)?;
    }
    for frame_length in [60, 1_514] {
        let options =
            FixedOptions { frame_length, flows: 7, packets: 50, gap: 10_000, ..Default::default() };
        let path = folder.join(format!("fixed_{frame_length}.pcap"));
        write_file(FixedFrames::new(options), Resolution::Nanoseconds, &path).map_err(error)?;
    }
    Ok(())
}
