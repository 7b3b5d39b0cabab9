//! The store: a directory of runs and their index.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::entry::RunEntry;
use crate::error::{StoreError, Warning};
use crate::file::synchronise;
use crate::index::Index;
use crate::process::ProcessRecord;
use crate::record::{RunRecord, State, TrialRecord};
use crate::saved::{self, Listing, SavedRun};
use crate::writer::{RunWriter, staging};

/// Selector of the newest run.
pub const LATEST: &str = "latest";
/// Longest name of a run in characters.
const NAME_CHARACTERS_MAX: usize = 64;
/// Numbers that are tried for the ID of runs that start in the same second.
const ID_NUMBERS_MAX: u32 = 10_000;

/// Run history in a directory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    index: Index,
    warnings: Vec<Warning>,
}

impl Store {
    /// Opens a store; creates the directory if it does not exist. Repairs the index.
    ///
    /// # Errors
    /// The directory cannot be created or listed.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(directory).map_err(StoreError::file("create", directory))?;
        let (index, warnings) = Index::open(directory)?;
        Ok(Self { directory: directory.to_owned(), index, warnings })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the files that were ignored when the store was opened.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns all runs, the newest first.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn runs(&self) -> Result<Vec<RunEntry>, StoreError> {
        self.index.runs(None, usize::MAX)
    }

    /// Returns at most `limit` runs, the newest first: the newest ones, or those after `after`, the
    /// start time and the ID of a run. That run may have been deleted.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn page(
        &self,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<RunEntry>, StoreError> {
        self.index.runs(after, limit)
    }

    /// Returns all runs whose processes execute them, the newest first.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn running(&self) -> Result<Vec<RunEntry>, StoreError> {
        self.index.running()
    }

    /// Returns the number of runs.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn count(&self) -> Result<usize, StoreError> {
        self.index.count()
    }

    /// Returns the run that a text names: an ID, `latest`, the name of one run, or the beginning of
    /// one ID.
    ///
    /// # Errors
    /// No run fits, or several.
    pub fn find(&self, selector: &str) -> Result<RunEntry, StoreError> {
        let mut runs = self.runs()?;
        if runs.is_empty() {
            return Err(StoreError::Empty(self.directory.clone()));
        }
        if selector == LATEST {
            return Ok(runs.swap_remove(0));
        }
        let fits: [fn(&RunEntry, &str) -> bool; 3] = [
            |run, text| run.id == text,
            |run, text| run.name.as_deref() == Some(text),
            |run, text| !text.is_empty() && run.id.starts_with(text),
        ];
        for fits in fits {
            let mut found: Vec<RunEntry> =
                runs.iter().filter(|run| fits(run, selector)).cloned().collect();
            match found.len() {
                0 => {}
                1 => return Ok(found.swap_remove(0)),
                _ => {
                    let ids = found.into_iter().map(|run| run.id).collect();
                    return Err(StoreError::Ambiguous { selector: selector.to_owned(), ids });
                }
            }
        }
        let directory = self.directory.clone();
        Err(StoreError::Unknown { selector: selector.to_owned(), directory })
    }

    /// Reads the record and the result of a run.
    ///
    /// # Errors
    /// The run does not exist, or its record is damaged.
    pub fn load(&self, id: &str) -> Result<SavedRun, StoreError> {
        SavedRun::open(&self.directory.join(id))
    }

    /// Returns whether a run may have this name.
    pub fn is_name(name: &str) -> bool {
        let length = name.chars().count();
        (1..=NAME_CHARACTERS_MAX).contains(&length)
            && !name.chars().any(char::is_control)
            && name.trim() == name
            && name != LATEST
    }

    /// Starts a run: makes its directory with the record. Sets `id`, and `state` and `process` to
    /// those of a run that this process executes.
    ///
    /// # Errors
    /// The name of the run is not valid, or a file cannot be written.
    pub fn create(&self, mut record: RunRecord) -> Result<RunWriter, StoreError> {
        if let Some(name) = record.name.as_ref().filter(|name| !Self::is_name(name)) {
            return Err(StoreError::Name(name.clone()));
        }
        record.state = State::Running;
        record.process = ProcessRecord::current();
        let staging = staging(&self.directory)?;
        let stem = stem(&record);
        let mut created = Ok(false);
        for number in 1..=ID_NUMBERS_MAX {
            record.id = if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
            let directory = self.directory.join(&record.id);
            if directory.exists() {
                continue;
            }
            created =
                crate::file::write_document(&staging.join(saved::RUN), &record).and_then(|()| {
                    // A directory with files cannot be replaced: another process had the same idea.
                    match fs::rename(&staging, &directory) {
                        Ok(()) => Ok(true),
                        Err(error) if is_taken(&error) => Ok(false),
                        Err(error) => Err(StoreError::file("create", &directory)(error)),
                    }
                });
            if !matches!(created, Ok(false)) {
                break;
            }
        }
        if !matches!(created, Ok(true)) {
            // The error of the creation is the one to report.
            let _ = fs::remove_dir_all(&staging);
            created?;
            let error = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(StoreError::file("create", &self.directory.join(&stem))(error));
        }
        synchronise(&self.directory).map_err(StoreError::file("write", &self.directory))?;
        Ok(RunWriter::new(&self.directory, record))
    }

    /// Continues a run that did not finish. Returns its trials, in order.
    ///
    /// # Errors
    /// The run is finished, or its process still runs, or a trial is missing or damaged.
    pub fn resume(&self, id: &str) -> Result<(RunWriter, Vec<TrialRecord>), StoreError> {
        let directory = self.directory.join(id);
        // Two processes that resume one run at once: the second sees the first in the record.
        let _lock = lock(&directory)?;
        let run = self.load(id)?;
        match run.state {
            State::Running => return Err(running(&run.record)),
            State::Finished => return Err(StoreError::Finished(id.to_owned())),
            State::Interrupted | State::Failed | State::Died => {}
        }
        let mut trials = Vec::new();
        for (expected, (number, path)) in (1..).zip(Listing::of(&directory)?.trials) {
            if number != expected {
                let missing = directory.join(saved::TRIALS).join(saved::trial_name(expected));
                let reason = "missing; remove the later trials to resume the run".to_owned();
                return Err(StoreError::damaged(&missing, reason));
            }
            let trial = crate::file::read(&path).map_err(|error| {
                let reason = Warning::of(&path, &error).reason;
                let next = "remove it and the later trials to resume the run";
                StoreError::damaged(&path, format!("{reason}; {next}"))
            });
            trials.push(trial?);
        }
        for directory in [&directory, &directory.join(saved::TRIALS)] {
            remove_unfinished(directory);
        }
        let mut record = run.record;
        record.state = State::Running;
        record.process = ProcessRecord::current();
        (record.ended_unix_ns, record.error) = (None, None);
        crate::file::write_document(&directory.join(saved::RUN), &record)?;
        Ok((RunWriter::new(&self.directory, record), trials))
    }

    /// Deletes a run.
    ///
    /// # Errors
    /// The run does not exist, its process still runs, or a file cannot be removed.
    pub fn delete(&mut self, id: &str) -> Result<(), StoreError> {
        let directory = self.directory.join(id);
        let lock = lock(&directory)?;
        // A damaged run can be deleted too.
        if let Ok(record) = saved::record(&directory)
            && record.observed_state() == State::Running
        {
            return Err(running(&record));
        }
        // Renamed first: a run is there as a whole or not at all.
        let hidden = self.directory.join(format!(".deleted-{id}-{}", std::process::id()));
        fs::rename(&directory, &hidden).map_err(StoreError::file("delete", &directory))?;
        drop(lock);
        self.index.remove(id)?;
        fs::remove_dir_all(&hidden).map_err(StoreError::file("delete", &hidden))
    }

    /// Returns the space that the files of a run take, in bytes.
    pub fn size(&self, id: &str) -> u64 {
        let directory = self.directory.join(id);
        let files = [directory.clone(), directory.join(saved::TRIALS)];
        let entries = files.iter().filter_map(|path| fs::read_dir(path).ok()).flatten();
        let sizes = entries.filter_map(|entry| entry.ok()?.metadata().ok());
        sizes.filter(fs::Metadata::is_file).map(|file| file.len()).sum()
    }
}

/// Returns the ID of a run that is alone in its second (UTC): `2026-11-26T23-45-01-rfc2544`.
fn stem(record: &RunRecord) -> String {
    let nanoseconds = i128::from(record.started_unix_ns);
    let time = jiff::Timestamp::from_nanosecond(nanoseconds).unwrap_or_default();
    let what = record.method.as_ref().map_or(record.kind.name(), |method| method.name());
    format!("{}-{what}", time.strftime("%Y-%m-%dT%H-%M-%S"))
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}

fn running(record: &RunRecord) -> StoreError {
    StoreError::Running { id: record.id.clone(), process: record.process.id }
}

/// Removes the hidden files that a killed process was writing.
fn remove_unfinished(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            // It takes space, nothing else.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Locks the directory of a run until the file is dropped.
fn lock(directory: &Path) -> Result<File, StoreError> {
    let file = File::open(directory).map_err(StoreError::file("open", directory))?;
    file.lock().map_err(StoreError::file("lock", directory))?;
    Ok(file)
}
