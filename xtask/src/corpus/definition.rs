//! Definition of the corpus: files with sections of runs, one run a line.
//!
//! ```text
//! [replay-edits]
//! each = captures/*.pcap
//! ttl: wirestorm replay --write out.pcap --ttl 9 $each
//! ```
//!
//! The name of a section is the first part of its runs' names. Its settings come first: the
//! environment of the runs, the files for which each run is repeated, and the parts of a run to
//! compare. Each following line is a run: its name, a colon, and a shell command for the run's
//! folder. A backslash at the end continues a line.

use std::path::Path;

use crate::Fallible;

/// Environment of the runs of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Environment {
    /// A folder with files, in virtual time.
    Files,
    /// A veth pair: `$eth1` in the run's own namespace, `$eth2` in another one. Frames that arrive
    /// at either end are captured.
    Cable,
    /// Two veth pairs: a link joins `$eth1` and `$eth2`, which connect to `$host1` and `$host2`.
    /// Frames that arrive at the hosts are captured.
    Hosts,
}

/// Comparison mode for the frames of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    /// All bytes, in order.
    Ordered,
    /// All bytes, in order, up to the shorter recording: time ends these runs.
    Prefix,
    /// All bytes, in any order.
    Sorted,
    /// Data of each direction of each flow: bytes of a connection in order, datagrams in any order.
    Dialogues,
    /// Number of frames only.
    Count,
    /// No comparison.
    None,
}

impl Frames {
    const NAMES: [(&str, Self); 6] = [
        ("ordered", Self::Ordered),
        ("prefix", Self::Prefix),
        ("sorted", Self::Sorted),
        ("dialogues", Self::Dialogues),
        ("count", Self::Count),
        ("none", Self::None),
    ];

    /// Keyword of the mode.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    /// Parses a keyword.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(it, _)| *it == name).map(|(_, it)| *it)
    }
}

/// Runs with common settings.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// First part of the names of the runs.
    pub(super) name: String,
    /// Environment of the runs.
    pub(super) place: Environment,
    /// File pattern, such as `captures/*.pcap`: each run is repeated for each matching file.
    pub(super) each: Option<String>,
    /// Requirements: names of inputs, tools, or `python`, a Python with TRex profiles.
    pub(super) needs: Vec<String>,
    /// Comparison mode for frames.
    pub(super) frames: Frames,
    /// Whether to compare time stamps of frames. They come from the schedule in files, and from a
    /// clock on interfaces.
    pub(super) are_times_compared: bool,
    /// Whether to compare standard output.
    pub(super) is_output_compared: bool,
    /// Byte ranges of each frame that are not compared, such as `46..62`, or `-18..` from the end.
    pub(super) mask: Vec<String>,
    /// Whether the far interface accepts frames that the in-kernel sender redirects.
    pub(super) has_polling_sink: bool,
    /// Whether both interfaces have IPv4 addresses.
    pub(super) has_addresses: bool,
    /// MTU of the interfaces.
    pub(super) mtu: u32,
    /// Runs: rest of the name, and shell command.
    pub(super) runs: Vec<(String, String)>,
}

impl Section {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            place: Environment::Files,
            each: None,
            needs: Vec::new(),
            frames: Frames::Ordered,
            are_times_compared: true,
            is_output_compared: false,
            mask: Vec::new(),
            has_polling_sink: false,
            has_addresses: false,
            mtu: 1_500,
            runs: Vec::new(),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let words = || value.split_whitespace().map(str::to_owned).collect();
        match (key, value) {
            ("on", "files") => self.place = Environment::Files,
            ("on", "cable" | "hosts") => {
                self.place = if value == "cable" { Environment::Cable } else { Environment::Hosts };
                self.are_times_compared = false;
            }
            ("each", _) => self.each = Some(value.to_owned()),
            ("needs", _) => self.needs = words(),
            ("frames", _) => {
                self.frames = Frames::named(value).ok_or(format!("frames = {value}"))?;
            }
            ("output", "compared") => self.is_output_compared = true,
            ("mask", _) => self.mask = words(),
            ("receiver", "polling") => self.has_polling_sink = true,
            ("addresses", "yes") => self.has_addresses = true,
            ("mtu", _) => self.mtu = value.parse().map_err(|_| format!("mtu = {value}"))?,
            _ => return Err(format!("{key} = {value}")),
        }
        Ok(())
    }
}

/// Reads all `.runs` files of a folder, sorted by name.
pub(super) fn read(folder: &Path) -> Fallible<Vec<Section>> {
    let mut sections = Vec::<Section>::new();
    for file in super::files_below(folder)? {
        if file.extension().is_some_and(|it| it == "runs") {
            let text = std::fs::read_to_string(folder.join(&file))?;
            let read = parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
            sections.extend(read);
        }
    }
    let mut names = std::collections::BTreeSet::new();
    for section in &sections {
        for (name, _) in &section.runs {
            if !names.insert((&section.name, name)) {
                return Err(format!("duplicate run {}/{name}", section.name).into());
            }
        }
    }
    Ok(sections)
}

fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections = Vec::<Section>::new();
    let mut joined = String::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(part) = line.strip_suffix('\\') {
            joined.push_str(part);
            continue;
        }
        joined.push_str(line);
        let line = std::mem::take(&mut joined);
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            sections.push(Section::new(name));
            continue;
        }
        let section = sections.last_mut().ok_or_else(|| wrong("a section comes first"))?;
        let is_word =
            |it: &str| it.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
        match (line.split_once(": "), line.split_once(" = ")) {
            (Some((name, command)), _) if is_word(name) => {
                section.runs.push((name.to_owned(), command.trim().to_owned()));
            }
            (_, Some((key, value))) if is_word(key) => {
                section.set(key, value.trim()).map_err(|it| wrong(&format!("unknown: {it}")))?;
            }
            _ => return Err(wrong("expected NAME: COMMAND or KEY = VALUE")),
        }
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_settings_and_runs() {
        let text =
            "# words\n[a]\non = cable\nframes = sorted\nmask = 1..2 -3..\nx: echo a \\\n  b = c\n";
        let sections = parse(text).unwrap();
        let section = &sections[0];
        assert_eq!((section.name.as_str(), section.place), ("a", Environment::Cable));
        assert_eq!((section.frames, section.are_times_compared), (Frames::Sorted, false));
        assert_eq!(section.mask, ["1..2", "-3.."]);
        assert_eq!(section.runs, [("x".to_owned(), "echo a b = c".to_owned())]);
        for wrong in ["a: b", "[a]\nwhere = here", "[a]\nframes = some", "[a]\nword"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn corpus_definition_parses() {
        let sections = read(&super::super::home().join("runs")).unwrap();
        assert!(!sections.is_empty());
    }
}
