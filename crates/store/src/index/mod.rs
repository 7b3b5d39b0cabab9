//! Index of all runs and trials in SQLite.
//!
//! The index is a cache of the run directories. [`Index::open`] compares it with them, and repairs
//! what a crash, or a change by hand, left different. An index that is corrupt or of an older
//! version is built again; if the file cannot be used at all, the index is in memory.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};

use crate::entry::RunEntry;
use crate::error::{StoreError, Warning};
use crate::file;
use crate::record::State;
use crate::row::{TrialHead, TrialRow};
use crate::saved::{self, Listing, SavedRun};

/// Name of the index in the directory of the store. SQLite adds `-wal` and `-shm`.
pub(crate) const INDEX: &str = "index.sqlite";
/// File whose lock excludes two processes that replace the index at once.
const LOCK: &str = ".index.lock";
/// Version of the tables: `PRAGMA user_version`.
const VERSION: i64 = 2;
/// Time that a writer waits for others.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Age after which a hidden directory of the store is a remnant of a process that was killed.
const REMNANT_AGE: Duration = Duration::from_secs(24 * 3600);

const TABLES: &str = include_str!("schema.sql");

/// The open index.
#[derive(Debug)]
pub(crate) struct Index {
    connection: Connection,
    /// Directory of the store.
    directory: PathBuf,
}

impl Index {
    /// Opens the index of a store and makes it agree with the run directories. Returns what was
    /// ignored.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Vec<Warning>), StoreError> {
        let mut warnings = Vec::new();
        let attempt = Self::connect(directory).and_then(|mut index| {
            let ignored = index.synchronise()?;
            Ok((index, ignored))
        });
        let error = match attempt {
            Ok((index, ignored)) => return Ok((index, ignored)),
            Err(error) => error,
        };
        let path = directory.join(INDEX);
        if is_damaged(&error) {
            warnings.push(Warning::new(&path, format!("{error}; built again from the runs")));
            let replaced = Self::replace(directory).and_then(|mut index| {
                let ignored = index.synchronise()?;
                Ok((index, ignored))
            });
            if let Ok((index, ignored)) = replaced {
                warnings.extend(ignored);
                return Ok((index, warnings));
            }
        } else if matches!(error, StoreError::Index { .. }) {
            let reason = format!("{}; the list is read from the runs instead", reason(&error));
            warnings.push(Warning::new(&path, reason));
        } else {
            return Err(error);
        }
        let connection = Connection::open_in_memory();
        let connection = connection.map_err(|error| StoreError::Index { path, error })?;
        let mut index = Self { connection, directory: directory.to_owned() };
        index.prepare()?;
        warnings.extend(index.synchronise()?);
        Ok((index, warnings))
    }

    /// Opens the file without a comparison with the directories.
    pub(crate) fn connect(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(INDEX);
        let connection = Connection::open(&path);
        let connection = connection.map_err(|error| StoreError::Index { path, error })?;
        let mut index = Self { connection, directory: directory.to_owned() };
        index.prepare()?;
        Ok(index)
    }

    /// Removes the file of a damaged index and opens a new one.
    fn replace(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(LOCK);
        let lock = File::create(&path).map_err(StoreError::file("create", &path))?;
        lock.lock().map_err(StoreError::file("lock", &path))?;
        // Another process may have replaced it meanwhile.
        match Self::connect(directory) {
            Err(error) if is_damaged(&error) => {}
            other => return other,
        }
        for suffix in ["", "-wal", "-shm"] {
            let path = directory.join(format!("{INDEX}{suffix}"));
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::file("remove", &path)(error));
                }
                _ => {}
            }
        }
        Self::connect(directory)
    }

    /// Sets the connection up; creates the tables if they are missing or of an older version.
    fn prepare(&mut self) -> Result<(), StoreError> {
        let prepared = (|| {
            self.connection.busy_timeout(BUSY_TIMEOUT)?;
            // In memory, or where the file system has no shared memory, another mode is in use.
            self.connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            // After a power loss, the last changes may be missing, which the next open repairs.
            self.connection.pragma_update(None, "synchronous", "normal")?;
            self.connection.pragma_update(None, "foreign_keys", true)?;
            if version(&self.connection)? == VERSION {
                let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
                let sound = self.connection.query_row("PRAGMA quick_check(1)", [], check)?;
                return if sound == "ok" { Ok(()) } else { Err(corrupt(sound)) };
            }
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            match version(&transaction)? {
                // Another process was faster.
                VERSION => return Ok(()),
                newer if newer > VERSION => {
                    let text = format!("version {newer}, expected {VERSION} or older");
                    return Err(rusqlite::Error::SqliteFailure(
                        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_MISMATCH),
                        Some(text),
                    ));
                }
                _ => {}
            }
            let mut tables = transaction.prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            )?;
            let names: Vec<String> =
                tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            drop(tables);
            // `trials` refers to `runs`.
            for name in names.iter().rev() {
                transaction.execute_batch(&format!("DROP TABLE \"{name}\""))?;
            }
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()
        })();
        prepared.map_err(self.failed())
    }

    /// Returns a function that adds the path to an error of SQLite.
    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.directory.join(INDEX);
        move |error| StoreError::Index { path: path.clone(), error }
    }

    /// Makes the index agree with the run directories.
    fn synchronise(&mut self) -> Result<Vec<Warning>, StoreError> {
        let mut warnings = Vec::new();
        let ids = self.list_directories(&mut warnings)?;
        let known = self.known()?;
        for id in &ids {
            let directory = self.directory.join(id);
            let row = known.get(id);
            // Trials of an ended run do not change without a new time of their directory.
            let is_current = row.is_some_and(|row| {
                row.state != State::Running.name()
                    && !row.fingerprint.is_empty()
                    && row.fingerprint == fingerprint(&directory)
            });
            if is_current {
                continue;
            }
            match self.update(id) {
                Ok(ignored) => warnings.extend(ignored),
                // Deleted meanwhile.
                Err(_) if !directory.exists() => {}
                Err(error @ StoreError::Index { .. }) => return Err(error),
                Err(error) => {
                    warnings.push(Warning::of(&directory.join(saved::RUN), &error));
                    self.remove(id)?;
                }
            }
        }
        for id in known.keys().filter(|id| !ids.contains(*id)) {
            if !self.directory.join(id).exists() {
                self.remove(id)?;
            }
        }
        Ok(warnings)
    }

    /// Lists the names of the run directories. Other files get a warning.
    fn list_directories(
        &self,
        warnings: &mut Vec<Warning>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let mut ids = BTreeSet::new();
        let entries = fs::read_dir(&self.directory);
        for entry in entries.map_err(StoreError::file("list", &self.directory))? {
            let entry = entry.map_err(StoreError::file("list", &self.directory))?;
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                remove_remnant(&path);
            } else if name.starts_with(INDEX) {
            } else if !path.is_dir() {
                warnings.push(Warning::new(&path, "not a run; ignored"));
            } else if path.join(saved::RUN).exists() {
                ids.insert(name.into_owned());
            } else if path.exists() {
                warnings
                    .push(Warning::new(&path, format!("not a run: no {}; ignored", saved::RUN)));
            }
        }
        Ok(ids)
    }

    fn known(&self) -> Result<BTreeMap<String, KnownRow>, StoreError> {
        let known = || -> rusqlite::Result<BTreeMap<String, KnownRow>> {
            let mut rows =
                self.connection.prepare("SELECT id, state, fingerprint FROM runs ORDER BY id")?;
            rows.query_map([], |row| {
                Ok((row.get(0)?, KnownRow { state: row.get(1)?, fingerprint: row.get(2)? }))
            })?
            .collect()
        };
        known().map_err(self.failed())
    }

    /// Reads the directory of a run and replaces what differs in its rows. Returns its damaged
    /// files.
    ///
    /// It excludes other writers before it reads the files. Otherwise an older state could replace
    /// that of the process that executes the run.
    pub(crate) fn update(&mut self, id: &str) -> Result<Vec<Warning>, StoreError> {
        let failed = self.failed();
        let directory = self.directory.join(id);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = transaction.map_err(&failed)?;
        // Before the files: a later change gives another fingerprint.
        let mut fingerprint = fingerprint(&directory);
        let run = SavedRun::open(&directory)?;
        let listing = Listing::of(&directory)?;
        let indexed = rows::trial_numbers(&transaction, id).map_err(&failed)?;
        let (mut trials, mut warnings) = (Vec::new(), run.warnings.clone());
        for (number, path) in &listing.trials {
            if indexed.contains(number) {
                continue;
            }
            match file::read::<TrialHead>(path) {
                Ok(head) => trials.push(head.rows()),
                Err(error) => warnings.push(Warning::of(path, &error)),
            }
        }
        warnings.extend(listing.foreign);
        if !warnings.is_empty() {
            fingerprint.clear();
        }
        // Trials refer to their run.
        rows::put_run(&transaction, &run, &fingerprint).map_err(&failed)?;
        for trial in &trials {
            rows::put_trial(&transaction, id, trial).map_err(&failed)?;
        }
        for number in indexed.iter().filter(|number| !listing.trials.contains_key(*number)) {
            let sql = "DELETE FROM trials WHERE run = ?1 AND number = ?2";
            transaction.execute(sql, params![id, number]).map_err(&failed)?;
        }
        transaction.commit().map_err(&failed)?;
        Ok(warnings)
    }

    /// Adds the rows of a new trial.
    pub(crate) fn add_trial(&mut self, id: &str, trial: &[TrialRow]) -> Result<(), StoreError> {
        let failed = self.failed();
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        transaction
            .and_then(|transaction| {
                rows::put_trial(&transaction, id, trial)?;
                transaction.commit()
            })
            .map_err(failed)
    }

    /// Removes the rows of a run.
    pub(crate) fn remove(&mut self, id: &str) -> Result<(), StoreError> {
        let removed = self.connection.execute("DELETE FROM runs WHERE id = ?1", [id]);
        removed.map(drop).map_err(self.failed())
    }

    /// Returns all runs, the newest first.
    pub(crate) fn runs(
        &self,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Result<Vec<RunEntry>, StoreError> {
        rows::entries(&self.connection, after, limit).map_err(self.failed())
    }

    /// Returns the runs that have not ended, the newest first.
    pub(crate) fn running(&self) -> Result<Vec<RunEntry>, StoreError> {
        rows::running(&self.connection).map_err(self.failed())
    }

    /// Returns the number of all runs.
    pub(crate) fn count(&self) -> Result<usize, StoreError> {
        rows::count(&self.connection).map_err(self.failed())
    }
}

/// What the index knows about a run before it reads its files.
struct KnownRow {
    state: String,
    fingerprint: String,
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .optional()
        .map(|version| version.unwrap_or(0))
}

fn corrupt(found: String) -> rusqlite::Error {
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(error, Some(found))
}

/// Returns whether a new file is needed.
fn is_damaged(error: &StoreError) -> bool {
    let StoreError::Index { error, .. } = error else { return false };
    match error {
        rusqlite::Error::SqliteFailure(error, _) => {
            matches!(error.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        }
        // Tables of someone else.
        rusqlite::Error::SqlInputError { .. } => true,
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            true
        }
        _ => false,
    }
}

fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Index { error, .. } => error.to_string(),
        other => other.to_string(),
    }
}

/// Returns times and sizes of the files of a run, which change with their content.
fn fingerprint(directory: &Path) -> String {
    let mut text = String::new();
    for name in [saved::RUN, saved::RESULT, saved::TRIALS] {
        if let Ok(file) = fs::metadata(directory.join(name)) {
            let size = if file.is_dir() { 0 } else { file.len() };
            text += &format!("{name} {}.{:09} {size}\n", file.mtime(), file.mtime_nsec());
        }
    }
    text
}

/// Removes what a killed process left of a run that it created or deleted.
fn remove_remnant(path: &Path) {
    let is_old = |path: &Path| -> io::Result<bool> {
        let modified = fs::symlink_metadata(path)?.modified()?;
        let age = SystemTime::now().duration_since(modified).unwrap_or_default();
        Ok(age > REMNANT_AGE)
    };
    if path.is_dir() && is_old(path).unwrap_or(false) {
        // Nothing needs it; the next open tries again.
        let _ = fs::remove_dir_all(path);
    }
}
