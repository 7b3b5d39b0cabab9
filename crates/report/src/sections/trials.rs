//! Trials of methods.

use wirestorm_method::method::Method;
use wirestorm_method::trial::TrialInput;

use super::Context;
use crate::document::{Cell, Column, Section, Table, Unit};
use crate::run::Run;

/// Most trials that the table lists.
const ROWS_MAX: usize = 500;

pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let columns = vec![
        Column::text("Run"),
        Column::number("Trial", Unit::None),
        Column::text("Test"),
        Column::text("Traffic"),
        Column::number("Frame size", Unit::Bytes),
        Column::number("Load of an interface", Unit::FramesPerSecond),
        Column::number("Duration", Unit::Seconds),
        Column::number("Offered", Unit::Frames),
        Column::number("Received", Unit::Frames),
        Column::number("Lost", Unit::Frames),
        Column::text("Note"),
    ];
    let mut table = Table::new("Trials in their order", columns);
    // Trials of RFC 9411 count no frames; the sections of its tests list them.
    let has_frames = |run: &Run| !matches!(run.record.method, Some(Method::Rfc9411(_)));
    let all = || {
        let runs = context.runs.iter().enumerate().filter(|(_, run)| has_frames(run));
        runs.flat_map(|(run, it)| it.trials.iter().map(move |trial| (run, trial)))
    };
    for (run, trial) in all().take(ROWS_MAX) {
        let TrialInput { test, offers, .. } = &trial.input;
        let first = offers.first();
        let load = first.and_then(|it| it.steps.iter().map(|step| step.load).max());
        let outputs = || trial.output.offers.iter().map(|offer| offer.total());
        let offered: u64 = outputs().map(|it| it.offered).sum();
        let received: u64 = outputs().map(|it| it.received).sum();
        table.row(vec![
            Cell::text(context.label(run)),
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
        ]);
    }
    let mut section = Section::new("Trials", "");
    let count = all().count();
    if count > ROWS_MAX {
        section.text(format!("The table shows the first {ROWS_MAX} of {count} trials."));
    }
    section.table(context.finish(table));
    vec![section]
}
