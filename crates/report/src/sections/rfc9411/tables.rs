//! Tables of a test: results, indicators, times, criteria.

use wirestorm_method::rfc9411::{Criterion, CriterionValue, Kpis, Rfc9411Row, Summary};

use super::{Group, TIMES, unit, what};
use crate::document::{Cell, Column, Table, Unit};

/// Returns the verdict on a result.
fn verdict(row: &Rfc9411Row) -> Cell {
    match (row.is_valid(), row.is_qualified) {
        (true, _) if row.is_tester_limited => Cell::problem("valid, limited by the tester"),
        (true, _) => Cell::text("valid"),
        (false, true) => Cell::problem("no valid load"),
        (false, false) => Cell::problem("step 1 failed"),
    }
}

fn names(values: &[CriterionValue]) -> String {
    let unmet = values.iter().filter(|value| !value.is_met);
    unmet.map(|value| value.criterion.name()).collect::<Vec<_>>().join(", ")
}

/// Three cells of a summary.
fn summary(value: Option<Summary>) -> [Cell; 3] {
    let cell = |part: fn(Summary) -> f64| Cell::maybe(value.map(part));
    [cell(|it| it.min), cell(|it| it.mean), cell(|it| it.max)]
}

fn summary_columns(what: &str, unit: Unit) -> [Column; 3] {
    let column = |part: &str| Column::number(&format!("{what}, {part}"), unit);
    [column("minimum").detail(), column("mean"), column("maximum").detail()]
}

impl Group<'_> {
    /// Returns the cells of run and traffic, which start the rows of all tables.
    fn start(&self, run: usize, row: &Rfc9411Row) -> Vec<Cell> {
        vec![Cell::text(self.context.label(run)), Cell::text(row.traffic.clone())]
    }

    fn table(&self, caption: &str, more: impl IntoIterator<Item = Column>) -> Table {
        let mut columns = vec![Column::text("Run"), Column::text("Traffic")];
        columns.extend(more);
        Table::new(caption, columns)
    }

    pub(super) fn result_table(&self) -> Table {
        let load = |title: &str| Column::number(title, unit(self.unit));
        let columns = [
            Column::number("Transactions of a connection", Unit::None).detail(),
            load("Target"),
            load("Result"),
            load("Lowest invalid load"),
            Column::number("Trials", Unit::None),
            Column::text("Verdict"),
            Column::text("Criteria not met"),
        ];
        let mut table = self.table(&format!("{}: results", what(self.test, self.unit)), columns);
        for &(run, row) in &self.rows {
            let count = |value: Option<u64>| Cell::maybe(value.map(|it| it as f64));
            let unmet = match row.upper_unmet.is_empty() {
                true => names(&row.criteria),
                false => names(&row.upper_unmet),
            };
            let mut cells = self.start(run, row);
            cells.extend([
                count(Some(row.transactions).filter(|count| *count > 0)),
                Cell::count(row.target),
                count(row.load),
                count(row.upper),
                Cell::count(row.trials.into()),
                verdict(row),
                Cell::text(unmet),
            ]);
            table.row(cells);
        }
        self.context.finish(table)
    }

    /// Calls `cells` for each result with indicators.
    fn kpis(&self, mut table: Table, cells: impl Fn(&Kpis) -> Vec<Cell>) -> Table {
        for &(run, row) in &self.rows {
            let Some(kpis) = &row.kpis else { continue };
            let mut row = self.start(run, row);
            row.extend(cells(kpis));
            table.row(row);
        }
        self.context.finish(table)
    }

    pub(super) fn count_table(&self) -> Table {
        let columns = [
            summary_columns("Connections", Unit::PerSecond),
            summary_columns("Transactions", Unit::PerSecond),
            summary_columns("Concurrent connections", Unit::None),
        ];
        let tls = Column::number("TLS handshakes", Unit::PerSecond);
        let columns = columns.into_iter().flatten().chain([tls]);
        let table = self.table("Connections and transactions at the result", columns);
        self.kpis(table, |kpis| {
            let has_tls = kpis.tls_handshakes_per_s > 0.0;
            let all = [kpis.connections_per_s, kpis.transactions_per_s, kpis.concurrent];
            let mut cells: Vec<Cell> = all.map(|it| summary(Some(rounded(it)))).concat();
            cells.push(Cell::maybe(has_tls.then_some(kpis.tls_handshakes_per_s.round())));
            cells
        })
    }

    pub(super) fn rate_table(&self) -> Table {
        let goodput = Column::number("Goodput, mean", Unit::BitsPerSecond);
        let throughput = summary_columns("Inspected throughput", Unit::BitsPerSecond);
        let columns = throughput.into_iter().chain([goodput]);
        let table = self.table("Throughput at the result", columns);
        self.kpis(table, |kpis| {
            let mut cells = summary(Some(kpis.throughput_bps)).to_vec();
            cells.push(Cell::Number(kpis.goodput_bps));
            cells
        })
    }

    pub(super) fn time_table(&self) -> Table {
        let time = |title: &str| Column::number(title, Unit::Nanoseconds);
        let columns = [
            Column::text("Time"),
            Column::number("Values", Unit::None).detail(),
            time("Minimum"),
            time("Mean"),
            time("Median"),
            time("90 %").detail(),
            time("99 %"),
            time("99.9 %").detail(),
            time("Maximum"),
        ];
        let mut table = self.table("Times at the result", columns);
        for &(run, row) in &self.rows {
            for (name, of) in TIMES {
                let Some(times) = row.kpis.as_ref().and_then(of) else { continue };
                let mut cells = self.start(run, row);
                cells.extend([
                    Cell::text(name),
                    Cell::count(times.count),
                    Cell::Number(times.min_ns as f64),
                    Cell::Number(times.mean_ns),
                    Cell::Number(times.p50_ns as f64),
                    Cell::Number(times.p90_ns as f64),
                    Cell::Number(times.p99_ns as f64),
                    Cell::Number(times.p99_9_ns as f64),
                    Cell::Number(times.max_ns as f64),
                ]);
                table.row(cells);
            }
        }
        self.context.finish(table)
    }

    /// Values of the criteria at the result and at the smallest load that failed.
    pub(super) fn criteria_table(&self) -> Table {
        let columns = [
            Column::text("Load"),
            Column::text("Criterion"),
            Column::number("Value", Unit::Percent),
            Column::number("Less than", Unit::Percent),
            Column::text("Met"),
        ];
        let mut table = self.table("Validation criteria", columns);
        for &(run, row) in &self.rows {
            let at = if row.is_valid() { "result" } else { "last trial" };
            let of_result = row.criteria.iter().map(|value| (at, value));
            // Without a valid load both lists are of the same trial.
            let of_upper = row.upper_unmet.iter().filter(|_| row.is_valid());
            for (at, value) in of_result.chain(of_upper.map(|value| ("lowest invalid", value))) {
                let CriterionValue { criterion, value, limit, is_met } = *value;
                let mut cells = self.start(run, row);
                cells.extend([
                    Cell::text(at),
                    Cell::text(Criterion::name(criterion)),
                    Cell::Number(value * 100.0),
                    Cell::Number(limit * 100.0),
                    if is_met { Cell::text("yes") } else { Cell::problem("no") },
                ]);
                table.row(cells);
            }
        }
        self.context.finish(table)
    }
}

/// Rounds rates and counts to integers, as a table shows them.
fn rounded(values: Summary) -> Summary {
    let Summary { min, mean, max } = values;
    // A test of one connection each second has a fraction worth showing.
    if mean < 100.0 {
        return values;
    }
    Summary { min: min.round(), mean: mean.round(), max: max.round() }
}
