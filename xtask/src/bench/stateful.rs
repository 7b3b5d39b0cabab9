//! Connections with both ends in one process, over wires in memory.

use std::process::Command;

use serde_json::Value;

use super::Settings;
use super::contender::{number, output};
use super::figures::{Figures, Row, Target};
use crate::{Fallible, workspace};

/// The unit of the figure that the JSON document also has as `connections_per_s`.
pub(super) const CONNECTIONS: &str = "k conn/s";

/// A connection for each request of 100 bytes, which a page of 32,000 answers.
pub(super) fn page(settings: &Settings) -> Fallible<Vec<Row>> {
    let mut row = row("page memory", CONNECTIONS, Target::AtLeast(250.0));
    row.notes.push("segments of 1,460 bytes with timestamps, delayed acknowledgements".into());
    measure(settings, row, ["200000", "1", "32000"], "/connections", 1e3)
}

/// 500 requests of 100 bytes to a connection, answered by 1,024 each.
pub(super) fn keepalive(settings: &Settings) -> Fallible<Vec<Row>> {
    let row = row("keep-alive memory", "M req/s", Target::AtLeast(1.5));
    measure(settings, row, ["6000", "500", "1024"], "/requests", 1e6)
}

fn row(name: &'static str, unit: &'static str, target: Target) -> Row {
    let (wirestorm, notes) = (Figures::default(), Vec::new());
    Row { name, unit, wirestorm, peer: None, target, notes }
}

fn measure(
    settings: &Settings,
    mut row: Row,
    arguments: [&str; 3],
    counted: &str,
    unit: f64,
) -> Fallible<Vec<Row>> {
    let stateful = workspace::build_example("wirestorm-stack", "stateful")?;
    for _ in 0..settings.rounds {
        let printed = output(Command::new(&stateful).args(arguments))?;
        let result: Value = serde_json::from_str(&printed)?;
        row.wirestorm.push(number(&result, counted)? / number(&result, "/elapsed_s")? / unit);
    }
    Ok(vec![row])
}
