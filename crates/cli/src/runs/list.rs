//! `wirestorm runs list`.

use std::fmt::{self, Display, Formatter};

use clap::{Args, ValueEnum};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use wirestorm_store::entry::RunEntry;
use wirestorm_store::figures::Unit;
use wirestorm_store::record::RecordKind;

use super::value::{age, outcome, value};
use super::{Failure, open};
use crate::number::brief;
use crate::ports::show;
use crate::save::DirectoryFlags;
use crate::traffic::{clipped, shortened};
use crate::wrap::COLUMNS;

/// List saved runs, the newest first
#[derive(Args, Debug)]
pub(super) struct ListFlags {
    /// Only runs of this kind
    #[arg(long, value_enum)]
    kind: Option<KindFlag>,

    /// Only runs since then: 2h, 7d, 2026-11-26 or 2026-11-26T12:00
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Print JSON (wirestorm.runs/1)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindFlag {
    Replay,
    Streams,
    Emulation,
    Impair,
    Pktgen,
    Bench,
}

impl From<KindFlag> for RecordKind {
    fn from(flag: KindFlag) -> Self {
        match flag {
            KindFlag::Replay => Self::Replay,
            KindFlag::Streams => Self::Streams,
            KindFlag::Emulation => Self::Emulation,
            KindFlag::Impair => Self::Impair,
            KindFlag::Pktgen => Self::Pktgen,
            KindFlag::Bench => Self::Bench,
        }
    }
}

pub(super) fn run(flags: &ListFlags) -> Result<u8, Failure> {
    let since = flags.since.as_deref().map(|text| since(text, Timestamp::now()));
    let since = since.transpose().map_err(Failure::usage)?.unwrap_or(0);
    let mut runs = open(&flags.directory)?.runs()?;
    let is_empty = runs.is_empty();
    let kind = flags.kind.map(RecordKind::from);
    runs.retain(|run| kind.is_none_or(|kind| run.kind == kind) && run.started_unix_ns >= since);
    if flags.json {
        let document = json!({ "schema": "wirestorm.runs/1", "runs": runs });
        show(&format!("{document:#}\n"));
    } else if is_empty {
        println!("no saved runs; save one with --save, such as: wirestorm replay --save ...");
    } else {
        show(&Table(&runs).to_string());
    }
    Ok(0)
}

/// Parses the time of `--since` to nanoseconds since the Unix epoch.
fn since(text: &str, now: Timestamp) -> Result<u64, String> {
    let wrong = || {
        format!(
            "--since {text:?}: expected an age such as 30min, 2h or 7d, or a date such as \
             2026-11-26 or 2026-11-26T12:00"
        )
    };
    let units = [("min", 60), ("s", 1), ("h", 3_600), ("d", 86_400)];
    let age = units.into_iter().find_map(|(unit, seconds)| {
        text.strip_suffix(unit)?.trim().parse::<u32>().ok().map(|it| i64::from(it) * seconds)
    });
    let time = match age {
        Some(seconds) => {
            now.checked_sub(SignedDuration::from_secs(seconds)).map_err(|_| wrong())?
        }
        None => {
            // A date alone is its midnight.
            let start = text.parse::<DateTime>().map_err(|_| wrong())?;
            start.to_zoned(TimeZone::system()).map_err(|_| wrong())?.timestamp()
        }
    };
    Ok(u64::try_from(time.as_nanosecond()).unwrap_or(0))
}

struct Table<'a>(&'a [RunEntry]);

/// Columns of the figure.
const FIGURE: usize = 15;
/// Columns behind the name: result, age and figure with the gaps before them.
const BEHIND_NAME: usize = " interrupted".len() + " 123 min".len() + 2 + FIGURE;
/// Least columns of the name.
const NAME_MIN: usize = 5;

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // An ID stays whole, so that a user can copy it; the name takes the rest.
        let id = self.0.iter().map(|run| run.id.chars().count()).max().unwrap_or(2);
        let name = COLUMNS.saturating_sub(id + 1 + BEHIND_NAME).max(NAME_MIN);
        let heads = ["ID", "NAME", "RESULT", "AGE"];
        writeln!(
            f,
            "{:<id$} {:<name$} {:<11} {:>7}  FIGURE",
            heads[0], heads[1], heads[2], heads[3]
        )?;
        for run in self.0 {
            let line = format!(
                "{:<id$} {:<name$} {:<11} {:>7}  {}",
                run.id,
                shortened(run.name.as_deref().unwrap_or("-"), name),
                outcome(run),
                age(run.started_unix_ns),
                clipped(&figure(run), FIGURE),
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Formats the key figure of a run with three digits.
fn figure(run: &RunEntry) -> String {
    let Some(figure) = &run.figure else { return String::new() };
    match figure.unit {
        Unit::Count => format!("{} {}", brief(figure.value), figure.name),
        Unit::Percent | Unit::Seconds | Unit::Nanoseconds => value(figure.value, figure.unit),
        Unit::FramesPerSecond
        | Unit::FlowsPerSecond
        | Unit::ConnectionsPerSecond
        | Unit::BitsPerSecond => {
            format!("{} {}", brief(figure.value), figure.unit.symbol())
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_control::result::Outcome;
    use wirestorm_store::figures::Figure;
    use wirestorm_store::record::State;

    use super::*;

    fn entry(state: State, outcome: Option<Outcome>) -> RunEntry {
        let (name, unit) = ("sent".to_owned(), Unit::FramesPerSecond);
        RunEntry {
            owner: None,
            interfaces: Vec::new(),
            id: "2026-11-26T23-45-01-mlrsearch-12".into(),
            name: Some("a name that is too long".into()),
            kind: RecordKind::Bench,
            method: None,
            state,
            process: 1,
            command: String::new(),
            started_unix_ns: 1_795_000_000_000_000_000,
            ended_unix_ns: None,
            error: None,
            outcome,
            figure: Some(Figure { name, value: 1_488_095.0, unit }),
            trials: 0,
        }
    }

    #[test]
    fn table_is_at_most_80_columns_wide() {
        let runs =
            [entry(State::Interrupted, None), entry(State::Finished, Some(Outcome::FellShort))];
        let text = Table(&runs).to_string();
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|columns| columns <= COLUMNS), "{longest:?}\n{text}");
        assert!(text.contains("interrupted") && text.contains("fell short"), "{text}");
        assert!(text.contains("1.49 M frames/s"), "{text}");
    }

    #[test]
    fn since_takes_ages_and_dates() {
        let now: Timestamp = "2026-11-26T12:00:00Z".parse().unwrap();
        let seconds = |text: &str| since(text, now).unwrap() / 1_000_000_000;
        let start = now.as_second() as u64;
        assert_eq!(seconds("30min"), start - 1_800);
        assert_eq!(seconds("2h"), start - 7_200);
        assert_eq!(seconds("7d"), start - 7 * 86_400);
        assert!(seconds("2026-11-26T12:00") > seconds("2026-11-26"));
        for text in ["", "7", "x", "-2h", "2026-13-01"] {
            assert!(since(text, now).unwrap_err().starts_with("--since"), "{text}");
        }
    }
}
