//! Plots as data: axes, series and marks.

use serde::Serialize;

use super::{Cell, Column, Table, Unit};

/// Most points of a series that a plot shows. More are thinned out.
const POINTS_MAX: usize = 1_000;
/// Most rows of the table beside a plot.
const ROWS_MAX: usize = 60;

/// A plot.
#[derive(Clone, Debug, Serialize)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// What the plot shows, for readers who do not see it.
    #[serde(skip)]
    pub summary: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series.
    pub series: Vec<Series>,
    /// Vertical marks.
    pub marks: Vec<Mark>,
    /// What a hollow mark means, for the table of the plot.
    #[serde(skip)]
    pub hollow: &'static str,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// Label without the unit.
    pub label: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Scale.
    pub scale: Scale,
    /// Fixed ends; `None` to fit the points.
    pub range: Option<(f64, f64)>,
    /// Names of the values 0, 1, ... of [`Scale::Categories`].
    pub categories: Vec<String>,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Linear, from 0 unless the range says otherwise.
    Linear,
    /// Logarithmic to base 10.
    Log,
    /// Values `1 / (1 - quantile)`, logarithmic: equal room for 90 %, 99 %, 99.9 %.
    Quantile,
    /// Names with equal distances.
    Categories,
}

/// Values of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub label: String,
    /// Run, which selects the color; `None` for a reference.
    pub run: Option<usize>,
    /// Style.
    pub style: Style,
    /// Points in ascending order of x.
    #[serde(serialize_with = "compact")]
    pub points: Vec<Point>,
}

/// Style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Line with a mark for each point.
    Line,
    /// Line without marks.
    Plain,
    /// Steps: a value holds until the next.
    Steps,
    /// Steps: a value holds from the one before.
    StepsBefore,
    /// Bars from 0, beside each other.
    Bars,
    /// Vertical lines from the bottom.
    Stems,
    /// Boxes from `low` to y, beside each other.
    Ranges,
    /// Dashed line of a theoretical value.
    Reference,
}

/// A point.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value; `None` for a gap.
    pub y: Option<f64>,
    /// Lower end of a range.
    pub low: Option<f64>,
    /// Whether the mark is hollow: the value is qualified.
    pub is_hollow: bool,
}

/// A vertical line with a label.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Horizontal value.
    pub x: f64,
    /// Label.
    pub label: String,
    /// Run, which selects the color; `None` for a reference.
    pub run: Option<usize>,
}

/// Writes points as `[x, y]`, `[x, y, low]` or `[x, y, low, 1]` for a hollow one.
fn compact<S: serde::Serializer>(points: &[Point], serializer: S) -> Result<S::Ok, S::Error> {
    let value = |point: &Point| {
        let mut values = vec![Some(rounded(point.x)), point.y.map(rounded)];
        if point.low.is_some() || point.is_hollow {
            values.push(point.low.map(rounded));
        }
        if point.is_hollow {
            values.push(Some(1.0));
        }
        values
    };
    serializer.collect_seq(points.iter().map(value))
}

/// Rounds to seven significant digits, which is more than a plot shows.
fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

impl Point {
    /// Creates a point.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y: Some(y), low: None, is_hollow: false }
    }
}

impl Series {
    /// Creates a series.
    pub fn new(label: impl Into<String>, run: Option<usize>, style: Style) -> Self {
        Self { label: label.into(), run, style, points: Vec::new() }
    }

    /// Adds a point.
    pub fn point(&mut self, x: f64, y: f64) {
        self.points.push(Point::new(x, y));
    }

    /// Thins out the points, and keeps the first and the last.
    pub(crate) fn thinned(mut self, most: usize) -> Self {
        let count = self.points.len();
        if count > most {
            let place = |number| number * (count - 1) / (most - 1);
            self.points = (0..most).map(|number| self.points[place(number)]).collect();
        }
        self
    }
}

impl Axis {
    /// Creates an axis from 0.
    pub fn linear(label: &str, unit: Unit) -> Self {
        Self::new(label, unit, Scale::Linear)
    }

    /// Creates a logarithmic axis.
    pub fn log(label: &str, unit: Unit) -> Self {
        Self::new(label, unit, Scale::Log)
    }

    /// Creates an axis of names.
    pub fn categories(label: &str, names: Vec<String>) -> Self {
        Self { categories: names, ..Self::new(label, Unit::None, Scale::Categories) }
    }

    /// Creates an axis of quantiles.
    pub fn quantile() -> Self {
        Self::new("Percentile", Unit::Percent, Scale::Quantile)
    }

    fn new(label: &str, unit: Unit, scale: Scale) -> Self {
        Self { label: label.to_owned(), unit, scale, range: None, categories: Vec::new() }
    }

    /// Fixes the ends.
    #[must_use]
    pub fn range(self, from: f64, to: f64) -> Self {
        Self { range: Some((from, to)), ..self }
    }

    fn cell(&self, value: f64) -> Cell {
        match self.scale {
            Scale::Categories => {
                let name = self.categories.get(value.round().max(0.0) as usize);
                name.map_or(Cell::None, |name| Cell::text(name.clone()))
            }
            Scale::Quantile => Cell::text(format!("{} %", percentile(value))),
            Scale::Linear | Scale::Log => Cell::Number(value),
        }
    }

    fn column(&self) -> Column {
        match self.scale {
            Scale::Categories | Scale::Quantile => Column::text(&self.label),
            Scale::Linear | Scale::Log => Column::number(&self.label, self.unit),
        }
    }
}

/// Returns the percentile of `1 / (1 - quantile)`: `99.9` for 1000.
fn percentile(value: f64) -> String {
    let text = format!("{:.6}", 100.0 - 100.0 / value.max(1.0));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Plot {
    /// Creates a plot without series.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let (title, summary) = (title.to_owned(), String::new());
        let hollow = "qualified, see the notes";
        Self { title, summary, x, y, series: Vec::new(), marks: Vec::new(), hollow }
    }

    /// Adds a series, unless it has no points.
    pub fn series(&mut self, series: Series) {
        if !series.points.is_empty() {
            self.series.push(series.thinned(POINTS_MAX));
        }
    }

    /// Returns the number of points with a value.
    pub fn points(&self) -> usize {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.filter(|point| point.y.is_some()).count()
    }

    /// Returns the points as a table, and whether it has all of them.
    pub(crate) fn table(&self) -> (Table, bool) {
        let mut low = Column::number(&format!("{}, lower end", self.y.label), self.y.unit);
        low.is_detail = true;
        let columns = vec![
            Column::text("Series"),
            self.x.column(),
            Column::number(&self.y.label, self.y.unit),
            low,
            Column::text("Note"),
        ];
        let mut table = Table::new(&self.title, columns);
        let count = self.points();
        let step = count.div_ceil(ROWS_MAX).max(1);
        for series in &self.series {
            let points = series.points.iter().filter(|point| point.y.is_some());
            let last = points.clone().count().saturating_sub(1);
            for (place, point) in points.enumerate() {
                if !place.is_multiple_of(step) && place != last {
                    continue;
                }
                let note = if point.is_hollow { self.hollow } else { "" };
                table.row(vec![
                    Cell::text(series.label.clone()),
                    self.x.cell(point.x),
                    Cell::maybe(point.y),
                    Cell::maybe(point.low),
                    Cell::text(note),
                ]);
            }
        }
        (table.without_empty_columns(true), step == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_series_keep_both_ends() {
        let mut series = Series::new("a", None, Style::Plain);
        (0..10_000).for_each(|x| series.point(f64::from(x), 1.0));
        let mut plot = Plot::new("t", Axis::linear("x", Unit::None), Axis::linear("y", Unit::None));
        plot.series(series);
        let points = &plot.series[0].points;
        assert_eq!(
            (points.len(), points[0].x, points[POINTS_MAX - 1].x),
            (POINTS_MAX, 0.0, 9_999.0)
        );
        let (table, is_complete) = plot.table();
        assert!(!is_complete && table.rows.len() <= ROWS_MAX + 1, "{}", table.rows.len());
    }

    #[test]
    fn percentiles_have_no_trailing_zeros() {
        let shown = [1.0, 2.0, 10.0, 1_000.0, 100_000.0].map(percentile);
        assert_eq!(shown, ["0", "50", "90", "99.9", "99.999"]);
    }
}
