//! Trials of methods.

use wirestorm_method::method::Method;
use wirestorm_method::trial::TrialInput;
use wirestorm_store::record::TrialRecord;

use super::Context;
use super::ndr::is_connection_rate;
use crate::document::{Cell, Column, Section, Table, Unit};
use crate::run::Run;

/// Most trials that the table lists.
const ROWS_MAX: usize = 500;

/// What the trials of a run count. Their order is that of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Frames,
    Connections,
    Flows,
    Records,
}

impl Counted {
    const ALL: [Self; 4] = [Self::Frames, Self::Connections, Self::Flows, Self::Records];

    /// Returns what a run counts; `None` if other sections list its trials.
    fn of(run: &Run) -> Option<Self> {
        match &run.record.method {
            Some(Method::Rfc9411(_)) => None,
            Some(Method::FlowExporter(_)) => Some(Self::Flows),
            Some(Method::Collector(_)) => Some(Self::Records),
            Some(Method::Ndr(method)) if is_connection_rate(method) => Some(Self::Connections),
            _ => Some(Self::Frames),
        }
    }

    /// Returns the titles of the table and of the load.
    const fn titles(self) -> (&'static str, &'static str) {
        match self {
            Self::Frames => ("Trials in their order", "Load of an interface"),
            Self::Connections => ("Trials with connections", "Load (connections/s)"),
            Self::Flows => ("Trials with flows", "Load (flows/s)"),
            Self::Records => ("Trials with records", "Load (records/s)"),
        }
    }

    fn table(self) -> Table {
        let (title, load) = self.titles();
        let (rate, unit) = match self {
            Self::Frames => (Unit::FramesPerSecond, Unit::Frames),
            _ => (Unit::None, Unit::None),
        };
        let columns = vec![
            Column::text("Run"),
            Column::number("Trial", Unit::None),
            Column::text("Test"),
            Column::text("Traffic"),
            Column::number("Frame size", Unit::Bytes),
            Column::number(load, rate),
            Column::number("Duration", Unit::Seconds),
            Column::number("Offered", unit),
            Column::number("Received", unit),
            Column::number("Lost", unit),
            Column::text("Note"),
        ];
        Table::new(title, columns)
    }
}

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let mut section = Section::new("Trials", "");
    for counted in Counted::ALL {
        let runs = context.runs.iter().enumerate();
        let runs = runs.filter(|(_, run)| Counted::of(run) == Some(counted));
        let all: Vec<_> =
            runs.flat_map(|(run, it)| it.trials.iter().map(move |trial| (run, trial))).collect();
        if all.len() > ROWS_MAX {
            let count = all.len();
            section.text(format!("The table shows the first {ROWS_MAX} of {count} trials."));
        }
        let mut table = counted.table();
        for (run, trial) in all.into_iter().take(ROWS_MAX) {
            table.row(row(context.label(run), trial));
        }
        section.table(context.finish(table));
    }
    vec![section]
}

fn row(label: &str, trial: &TrialRecord) -> Vec<Cell> {
    let TrialInput { test, offers, .. } = &trial.input;
    let first = offers.first();
    let load = first.and_then(|it| it.steps.iter().map(|step| step.load).max());
    let outputs = || trial.output.offers.iter().map(|offer| offer.total());
    let offered: u64 = outputs().map(|it| it.offered).sum();
    let received: u64 = outputs().map(|it| it.received).sum();
    vec![
        Cell::text(label),
        Cell::count(trial.number.into()),
        Cell::text(test.clone()),
        Cell::text(first.map(|it| it.traffic.clone()).unwrap_or_default()),
        Cell::maybe(first.and_then(|it| it.frame_size).map(f64::from)),
        Cell::maybe(load.map(|load| load as f64)),
        Cell::Number(trial.input.duration().as_secs_f64()),
        Cell::count(offered),
        Cell::count(received),
        Cell::count(offered.saturating_sub(received)),
        Cell::text(trial.output.notes.join("; ")),
    ]
}
