//! Reads a plan of any kind, with the captures that it names.
//!
//! ```text
//! path -> text -> document -> what kind is it? -> TrafficPlan | EmulationPlan | Profile
//! ```

mod conversations;
mod frames;
mod profile;
mod records;

use std::fmt;
use std::io;
use std::path::Path;

use wirestorm_wire::conversation::Gaps;

pub use profile::Profile;

use crate::document;
use crate::document::error::PlanErrors;
use crate::emulation::EmulationPlan;
use crate::files::{self, Files};
use crate::traffic::TrafficPlan;
use crate::trex::captures::{self, CaptureProfile};
use crate::trex::stateful::{self, StatefulOptions};

/// A plan of any kind.
#[derive(Debug)]
pub enum LoadedPlan {
    /// Flows of frames.
    Streams(TrafficPlan),
    /// Clients and servers.
    Emulation(EmulationPlan),
    /// A profile of TRex. It becomes a plan once its ports are known.
    Trex(Profile),
}

/// Why a plan does not load. The message names the file.
#[derive(Debug)]
pub enum LoadError {
    /// The file does not read.
    Read {
        /// Name of the file.
        name: String,
        /// Reason from the system.
        error: io::Error,
    },
    /// The file is not a plan.
    NotAPlan {
        /// Name of the file.
        name: String,
        /// What the file is instead, and how to use it.
        reason: String,
    },
    /// The plan has mistakes.
    Wrong {
        /// Name of the file.
        name: String,
        /// All mistakes.
        errors: PlanErrors,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { name, error } if error.kind() == io::ErrorKind::IsADirectory => {
                write!(f, "{name}: found a directory, expected a file")
            }
            Self::Read { name, error } => write!(f, "{name}: {error}"),
            Self::NotAPlan { name, reason } => write!(f, "{name}: {reason}"),
            Self::Wrong { name, errors } => {
                for (index, error) in errors.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "\n" };
                    match error.is_document_error() {
                        true => write!(f, "{separator}{name}: {}", error.message)?,
                        false => write!(f, "{separator}{name}: {error}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// Kind of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// Flows of frames.
    Streams,
    /// Clients and servers.
    Emulation,
    /// A profile of TRex.
    Trex,
    /// Neither `flows` nor `templates`, or a syntax error.
    Unknown,
}

/// The file of a plan: its kind is known, its content not yet checked.
#[derive(Debug)]
pub struct PlanFile<'a> {
    path: &'a Path,
    files: &'a dyn Files,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Streams(String),
    Emulation(String),
    Trex(Profile),
    Unknown(String),
}

impl<'a> PlanFile<'a> {
    /// Reads a file and decides which kind of plan it is.
    ///
    /// # Errors
    /// The file does not read, or is no plan.
    pub fn open(path: &'a Path, files: &'a dyn Files) -> Result<Self, LoadError> {
        let content = Self::content(path, files)?;
        Ok(Self { path, files, content })
    }

    fn content(path: &Path, files: &dyn Files) -> Result<Content, LoadError> {
        if path.extension().is_some_and(|extension| extension == "py") {
            return Ok(Content::Trex(Profile::Python));
        }
        let text = read_text(path, files)?;
        let not_a_plan = |reason: &str| {
            Err(LoadError::NotAPlan { name: files.name(path), reason: reason.to_owned() })
        };
        // `load` reports a syntax error, with its place.
        let Ok(document) = document::read(&text) else { return Ok(Content::Unknown(text)) };
        if document.is_null() {
            return not_a_plan(
                "the plan is empty; expected fields `ports` and `flows`, or `ports` and \
                 `templates` for clients and servers",
            );
        }
        if stateful::looks_like_client_configuration(&document) {
            return not_a_plan("this is a TRex client configuration; use it as --cc of a profile");
        }
        if let Some(profile) = Profile::of_document(&document, &text) {
            return Ok(Content::Trex(profile));
        }
        Ok(match document.get("flows") {
            _ if EmulationPlan::is_recognized(&document) => Content::Emulation(text),
            Some(_) => Content::Streams(text),
            None => Content::Unknown(text),
        })
    }

    /// Kind of the plan.
    pub fn kind(&self) -> PlanKind {
        match self.content {
            Content::Streams(_) => PlanKind::Streams,
            Content::Emulation(_) => PlanKind::Emulation,
            Content::Trex(_) => PlanKind::Trex,
            Content::Unknown(_) => PlanKind::Unknown,
        }
    }

    /// Returns the text of the file; `None` for a profile of TRex.
    pub fn into_text(self) -> Option<String> {
        match self.content {
            Content::Streams(text) | Content::Emulation(text) | Content::Unknown(text) => {
                Some(text)
            }
            Content::Trex(_) => None,
        }
    }

    /// Reads the plan; one of unknown kind as `unknown`. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// The plan has mistakes.
    pub fn load_or(self, unknown: PlanKind) -> Result<LoadedPlan, LoadError> {
        let Self { path, files, content } = self;
        let wrong = |errors| LoadError::Wrong { name: files.name(path), errors };
        let folder = folder_of(path);
        let content = match content {
            Content::Unknown(text) if unknown == PlanKind::Emulation => Content::Emulation(text),
            content => content,
        };
        match content {
            Content::Streams(text) | Content::Unknown(text) => {
                streams(&text, folder, files).map(LoadedPlan::Streams).map_err(wrong)
            }
            Content::Emulation(text) => {
                emulation(&text, folder, files).map(LoadedPlan::Emulation).map_err(wrong)
            }
            Content::Trex(profile) => Ok(LoadedPlan::Trex(profile)),
        }
    }
}

/// Reads a plan, whatever kind it is. Paths in the plan are relative to its folder.
///
/// # Errors
/// See [`LoadError`].
pub fn load(path: &Path, files: &dyn Files) -> Result<LoadedPlan, LoadError> {
    PlanFile::open(path, files)?.load_or(PlanKind::Streams)
}

/// Reads a plan of flows from YAML or JSON. Captures in it are relative to `folder`.
///
/// # Errors
/// All mistakes, each with its path in the plan.
pub fn streams(text: &str, folder: &Path, files: &dyn Files) -> Result<TrafficPlan, PlanErrors> {
    TrafficPlan::parse_with(text, |file, number| frames::frame(files, &folder.join(file), number))
}

/// Reads a plan of clients and servers from YAML or JSON. Captures in it are relative to `folder`.
///
/// # Errors
/// All mistakes, each with its path in the plan.
pub fn emulation(
    text: &str,
    folder: &Path,
    files: &dyn Files,
) -> Result<EmulationPlan, PlanErrors> {
    let load =
        |file: &str| conversations::conversations(files, &folder.join(file), Gaps::AsCaptured);
    EmulationPlan::parse_with(text, load)
}

/// Reads a TRex profile of captures that lies in `folder`. Its captures are looked up as they are
/// named, from `folder`, and from the folder above.
///
/// # Errors
/// All mistakes, each with its path in the profile.
pub fn trex_captures(
    text: &str,
    folder: &Path,
    files: &dyn Files,
    options: &StatefulOptions,
) -> Result<CaptureProfile, PlanErrors> {
    captures::read(text, options, |file, gaps| {
        let path = conversations::find(files, file, folder)?;
        conversations::conversations(files, &path, gaps)
    })
}

/// Reads a text file; refuses captures.
///
/// # Errors
/// The file does not read, is a capture, or is not UTF-8.
pub fn read_text(path: &Path, files: &dyn Files) -> Result<String, LoadError> {
    let name = || files.name(path);
    let no_plan = |reason| LoadError::NotAPlan { name: name(), reason };
    let bytes =
        files::read(files, path).map_err(|error| LoadError::Read { name: name(), error })?;
    if is_capture(&bytes) {
        return Err(no_plan(format!(
            "this is a capture; use `wirestorm replay {}`, or name it in `conversation` of a plan",
            name()
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        no_plan(format!("found invalid UTF-8 at offset {at}, expected a text file"))
    })
}

/// Returns the folder of a plan's file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Returns whether bytes start like pcap or pcapng, in either byte order.
fn is_capture(bytes: &[u8]) -> bool {
    const PCAPNG: u32 = 0x0a0d_0d0a;
    /// Magic numbers of pcap with microseconds and with nanoseconds.
    const PCAP: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
    let Some(first) = bytes.first_chunk() else { return false };
    let orders = [u32::from_le_bytes(*first), u32::from_be_bytes(*first)];
    orders.contains(&PCAPNG) || PCAP.iter().any(|magic| orders.contains(magic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Entry, NoFiles};
    use std::io::Read;
    use std::path::PathBuf;

    /// One text, whatever its path.
    #[derive(Debug)]
    struct Text(&'static [u8]);

    impl Files for Text {
        fn open(&self, _: &Path) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(self.0))
        }

        fn open_capture(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
            NoFiles.open_capture(path)
        }

        fn entry(&self, path: &Path) -> io::Result<Entry> {
            NoFiles.entry(path)
        }

        fn output(&self, path: &Path) -> io::Result<PathBuf> {
            NoFiles.output(path)
        }
    }

    fn kind(text: &'static [u8]) -> Result<&'static str, String> {
        match load(Path::new("a.yaml"), &Text(text)) {
            Ok(LoadedPlan::Streams(_)) => Ok("streams"),
            Ok(LoadedPlan::Emulation(_)) => Ok("emulation"),
            Ok(LoadedPlan::Trex(Profile::Python)) => Ok("python"),
            Ok(LoadedPlan::Trex(Profile::Streams(_))) => Ok("trex streams"),
            Ok(LoadedPlan::Trex(Profile::Stateful(_))) => Ok("trex stateful"),
            Ok(LoadedPlan::Trex(Profile::Captures(_))) => Ok("trex captures"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn fields_decide_the_kind_of_a_plan() {
        let streams =
            b"ports: [{name: a}]\nflows: [{name: f, tx: a, rate: 1pps, packet: [ethernet: {}]}]";
        assert_eq!(kind(streams), Ok("streams"));
        let emulation =
            b"ports: [{name: a}]\ntemplates: [{name: t, server: {tx: a, port: 80, program: []}}]";
        assert_eq!(kind(emulation), Ok("emulation"));
        assert_eq!(kind(b"[{stream: {}}]"), Ok("trex streams"));
        assert_eq!(
            kind(b"{\"buf_list\": [], \"program_list\": [], \"templates\": []}"),
            Ok("trex stateful")
        );
        assert_eq!(kind(b"- cap_info: []"), Ok("trex captures"));
        assert!(matches!(load(Path::new("a.py"), &NoFiles), Ok(LoadedPlan::Trex(Profile::Python))));
    }

    #[test]
    fn errors_describe_files_that_are_not_plans() {
        for (text, expected) in [
            (&b""[..], "a.yaml: the plan is empty"),
            (
                b"\xd4\xc3\xb2\xa1 and more",
                "a.yaml: this is a capture; use `wirestorm replay a.yaml`",
            ),
            (b"a\xff", "a.yaml: found invalid UTF-8 at offset 1"),
            (b"ports: [{name: a}]", "a.yaml: flows"),
            (b"ports: [", "a.yaml: "),
        ] {
            let found = kind(text).unwrap_err();
            assert!(found.contains(expected), "{found}");
        }
        let found = load(Path::new("b.yaml"), &NoFiles).unwrap_err().to_string();
        assert_eq!(found, "b.yaml: this plan may not use files");
    }
}
