//! The definition of the corpus: files of sections, each with runs, a line each.
//!
//! ```text
//! [replay-edits]
//! each = captures/*.pcap
//! ttl: wirestorm replay --write out.pcap --ttl 9 $each
//! ```
//!
//! A section is the first part of its runs' names. Its settings come first: where the runs take
//! place, for which files each is repeated, and what of a run is compared. Then each line is a run:
//! its name, a colon, and what a shell runs in the folder of the run. A line that ends with a
//! backslash goes on in the next one.

use std::path::Path;

use crate::Fallible;

/// Where the runs of a section take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a folder: with files, in virtual time.
    Files,
    /// On a veth pair: `$eth1` in the run's own namespace, `$eth2` in another one. What arrives at
    /// each end is captured.
    Cable,
    /// On two veth pairs: a link joins `$eth1` and `$eth2`, behind which are `$host1` and `$host2`.
    /// What arrives at the hosts is captured.
    Hosts,
}

/// What is compared of the frames of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    /// All bytes, in order.
    Ordered,
    /// All bytes, in order, of as many as both have: a clock ends the runs.
    Prefix,
    /// All bytes, in any order.
    Sorted,
    /// What each side of each flow says: the bytes of a connection in order, datagrams in any.
    Dialogues,
    /// How many there are.
    Count,
    /// Nothing.
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

    /// The word for it.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    /// What a word means.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(it, _)| *it == name).map(|(_, it)| *it)
    }
}

/// Runs that have their settings in common.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// The first part of the names of its runs.
    pub(super) name: String,
    /// Where they take place.
    pub(super) place: Place,
    /// A pattern of files for each of which each run is made: `captures/*.pcap`.
    pub(super) each: Option<String>,
    /// What must be there: names of inputs, tools, or `python`, a Python with TRex's profiles.
    pub(super) needs: Vec<String>,
    /// What is compared of frames.
    pub(super) frames: Frames,
    /// Whether time stamps of frames are compared. They are those of a schedule in files, and those
    /// of a clock on interfaces.
    pub(super) are_times_compared: bool,
    /// Whether standard output is compared.
    pub(super) is_output_compared: bool,
    /// Bytes of each frame that are not compared, as `46..62`, or from the end `-18..`.
    pub(super) mask: Vec<String>,
    /// Whether the far interface takes frames that the in-kernel sender redirects.
    pub(super) has_polling_sink: bool,
    /// Whether both interfaces have IPv4 addresses.
    pub(super) has_addresses: bool,
    /// The longest packet that the interfaces take.
    pub(super) mtu: u32,
    /// The runs: the rest of their names, and what a shell runs.
    pub(super) runs: Vec<(String, String)>,
}

impl Section {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            place: Place::Files,
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
            ("on", "files") => self.place = Place::Files,
            ("on", "cable" | "hosts") => {
                self.place = if value == "cable" { Place::Cable } else { Place::Hosts };
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

/// Reads all files of a folder that end with `.runs`, in the order of their names.
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
                return Err(format!("there are two runs {}/{name}", section.name).into());
            }
        }
    }
    Ok(sections)
}

fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections = Vec::<Section>::new();
    let mut whole = String::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(part) = line.strip_suffix('\\') {
            whole.push_str(part);
            continue;
        }
        whole.push_str(line);
        let line = std::mem::take(&mut whole);
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
        assert_eq!((section.name.as_str(), section.place), ("a", Place::Cable));
        assert_eq!((section.frames, section.are_times_compared), (Frames::Sorted, false));
        assert_eq!(section.mask, ["1..2", "-3.."]);
        assert_eq!(section.runs, [("x".to_owned(), "echo a b = c".to_owned())]);
        for wrong in ["a: b", "[a]\nwhere = here", "[a]\nframes = some", "[a]\nword"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_definition_can_be_read() {
        let sections = read(&super::super::home().join("runs")).unwrap();
        assert!(!sections.is_empty());
    }
}
