//! Rows of the tables.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, params};
use wirestorm_control::result::Outcome;

use crate::entry::RunEntry;
use crate::figures::{Figure, Unit};
use crate::process::ProcessRecord;
use crate::record::{RecordKind, State};
use crate::row::TrialRow;
use crate::saved::{SavedResult, SavedRun};

/// Writes the row of a run, without its trials.
pub(super) fn put_run(
    connection: &Connection,
    run: &SavedRun,
    fingerprint: &str,
) -> rusqlite::Result<()> {
    let record = &run.record;
    let figure = run.figures().into_iter().next();
    let (name, value, unit) = match &figure {
        Some(figure) => (Some(&figure.name), Some(figure.value), Some(figure.unit.symbol())),
        None => (None, None, None),
    };
    let process = serde_json::to_string(&record.process).unwrap_or_default();
    let owner = record.owner.as_ref().and_then(|owner| serde_json::to_string(owner).ok());
    let interfaces: Vec<&str> = record.interfaces.iter().map(|it| it.interface.as_str()).collect();
    let interfaces = serde_json::to_string(&interfaces).unwrap_or_default();
    // An update keeps the trials of the run; REPLACE would delete them.
    connection.execute(
        "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
         ?16, ?17)
         ON CONFLICT (id) DO UPDATE SET name = ?2, kind = ?3, method = ?4, state = ?5,
         process = ?6, command = ?7, owner = ?8, interfaces = ?9, started_unix_ns = ?10,
         ended_unix_ns = ?11, error = ?12, outcome = ?13, figure_name = ?14, figure_value = ?15,
         figure_unit = ?16, fingerprint = ?17",
        params![
            record.id,
            record.name,
            record.kind.name(),
            record.method.as_ref().map(|method| method.name()),
            record.state.name(),
            process,
            record.command.join(" "),
            owner,
            interfaces,
            signed(record.started_unix_ns),
            record.ended_unix_ns.map(signed),
            record.error,
            run.result.as_ref().map(SavedResult::outcome).map(Outcome::name),
            name,
            value,
            unit,
            fingerprint,
        ],
    )?;
    Ok(())
}

/// Writes the rows of a trial.
pub(super) fn put_trial(
    connection: &Connection,
    run: &str,
    rows: &[TrialRow],
) -> rusqlite::Result<()> {
    for row in rows {
        connection.execute(
            "INSERT OR REPLACE INTO trials VALUES
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            params![
                run,
                row.number,
                row.offer,
                row.step,
                row.test,
                row.traffic,
                row.frame_size,
                row.load.map(signed),
                row.seconds,
                signed(row.offered),
                row.received.map(signed),
                row.lost.map(signed),
                row.loss_ratio,
                row.delay_p50_ns,
                row.delay_p99_ns,
                row.delay_max_ns,
            ],
        )?;
    }
    Ok(())
}

/// Returns the numbers of the trials of a run.
pub(super) fn trial_numbers(connection: &Connection, run: &str) -> rusqlite::Result<BTreeSet<u32>> {
    let mut numbers = connection.prepare("SELECT DISTINCT number FROM trials WHERE run = ?1")?;
    numbers.query_map([run], |row| row.get(0))?.collect()
}

/// Columns of a run, as [`entry`] reads them.
const ENTRIES: &str =
    "SELECT id, name, kind, method, state, process, command, started_unix_ns, ended_unix_ns, error,
     outcome, figure_name, figure_value, figure_unit,
     (SELECT count(DISTINCT number) FROM trials WHERE run = id), owner, interfaces FROM runs";

/// Reads at most `limit` runs, the newest first: those after `after`, the start time and the ID of
/// another run.
pub(super) fn entries(
    connection: &Connection,
    after: Option<(u64, &str)>,
    limit: usize,
) -> rusqlite::Result<Vec<RunEntry>> {
    let mut rows = connection.prepare(&format!(
        "{ENTRIES} WHERE (started_unix_ns, id) < (?1, ?2)
         ORDER BY started_unix_ns DESC, id DESC LIMIT ?3"
    ))?;
    let signed = |value| i64::try_from(value).unwrap_or(i64::MAX);
    // No start time is later than the greatest number, and no ID goes before the empty one.
    let (started, id) = after.map_or((i64::MAX, ""), |(started, id)| (signed(started), id));
    rows.query_map(params![started, id, signed(limit as u64)], entry)?.collect()
}

/// Reads the runs that have not ended, the newest first.
pub(super) fn running(connection: &Connection) -> rusqlite::Result<Vec<RunEntry>> {
    let mut rows = connection
        .prepare(&format!("{ENTRIES} WHERE state = ?1 ORDER BY started_unix_ns DESC, id DESC"))?;
    let mut running = Vec::new();
    for found in rows.query_map([State::Running.name()], entry)? {
        // The row of a run that died has not changed.
        running.extend(Some(found?).filter(|it| it.state == State::Running));
    }
    Ok(running)
}

/// Returns the number of all runs.
pub(super) fn count(connection: &Connection) -> rusqlite::Result<usize> {
    let count = connection.query_row("SELECT count(*) FROM runs", [], |row| row.get(0));
    count.map(|count: u32| count as usize)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<RunEntry> {
    let kind: String = row.get(2)?;
    let state: String = row.get(4)?;
    let process: String = row.get(5)?;
    let process: ProcessRecord = serde_json::from_str(&process).unwrap_or_default();
    let outcome: Option<String> = row.get(10)?;
    let state = match named(4, &State::ALL, State::name, &state)? {
        State::Running if !process.is_alive() => State::Died,
        state => state,
    };
    let figure: (Option<String>, Option<f64>, Option<String>) =
        (row.get(11)?, row.get(12)?, row.get(13)?);
    let figure = match figure {
        (Some(name), Some(value), Some(unit)) => {
            Some(Figure { name, value, unit: named(13, &Unit::ALL, Unit::symbol, &unit)? })
        }
        _ => None,
    };
    let owner: Option<String> = row.get(15)?;
    let interfaces: String = row.get(16)?;
    Ok(RunEntry {
        id: row.get(0)?,
        name: row.get(1)?,
        kind: named(2, &RecordKind::ALL, RecordKind::name, &kind)?,
        method: row.get(3)?,
        state,
        process: process.id,
        command: row.get(6)?,
        owner: owner.and_then(|owner| serde_json::from_str(&owner).ok()),
        interfaces: serde_json::from_str(&interfaces).unwrap_or_default(),
        started_unix_ns: unsigned(row.get(7)?),
        ended_unix_ns: row.get::<_, Option<i64>>(8)?.map(unsigned),
        error: row.get(9)?,
        outcome: outcome.map(|name| named(10, &OUTCOMES, Outcome::name, &name)).transpose()?,
        figure,
        trials: row.get(14)?,
    })
}

const OUTCOMES: [Outcome; 4] =
    [Outcome::Met, Outcome::Failed, Outcome::FellShort, Outcome::Interrupted];

/// Returns the value with a name; an error if the column holds another one.
fn named<T: Copy>(
    column: usize,
    values: &[T],
    name: impl Fn(T) -> &'static str,
    found: &str,
) -> rusqlite::Result<T> {
    values.iter().copied().find(|value| name(*value) == found).ok_or_else(|| {
        let reason = format!("unknown word {found:?}");
        let kind = rusqlite::types::Type::Text;
        rusqlite::Error::FromSqlConversionFailure(column, kind, reason.into())
    })
}

/// SQLite has signed integers only. No count or time of a run exceeds them.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
