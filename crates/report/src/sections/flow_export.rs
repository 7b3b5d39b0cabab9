//! Flow export: flows/s sent against flows/s that the device exported (RFC 6645).

use crate::document::{Axis, Cell, Column, Mark, Plot, Point, Section, Series, Style, Table, Unit};

/// Flows per second that networks have for each Mbit/s of traffic, as a rule of thumb.
const FLOWS_PER_MBIT: f64 = 5.0;

/// Sweep over rates of new flows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowExport {
    /// Name in the legend.
    pub label: String,
    /// Place of the run in the report, which selects the color.
    pub run: usize,
    /// Speed of the links in bit/s of layer 1.
    pub link_bps: u64,
    /// Measurements in ascending order of the rate.
    pub points: Vec<FlowExportPoint>,
}

/// Measurement at one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowExportPoint {
    /// Flows sent per second.
    pub sent_per_s: f64,
    /// Flows per second in the exported records.
    pub captured_per_s: f64,
    /// Flows sent.
    pub flows_sent: u64,
    /// Flows in the exported records.
    pub flows_captured: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that the exported records count.
    pub packets_captured: u64,
    /// Records that the sequence numbers of the exporter show as lost.
    pub sequence_gaps: u64,
    /// Whether the generator did not reach the rate.
    pub is_generator_limited: bool,
}

impl FlowExportPoint {
    /// Returns the flows that the exporter did not report.
    pub const fn lost(&self) -> u64 {
        self.flows_sent.saturating_sub(self.flows_captured)
    }
}

impl FlowExport {
    /// Returns the lowest rate at which flows are lost, in flows per second.
    pub fn loss_point(&self) -> Option<f64> {
        let losing = self.points.iter().filter(|point| point.lost() > 0);
        losing.map(|point| point.sent_per_s).min_by(f64::total_cmp)
    }
}

/// Returns the section of sweeps: the graph of flows/s sent against flows/s captured, with the point
/// where loss begins and the rate that a link of this speed needs.
pub fn flow_export(sweeps: &[FlowExport]) -> Section {
    let mut plot = Plot::new(
        "Flows sent against flows captured",
        Axis::linear("Flows sent", Unit::PerSecond),
        Axis::linear("Flows captured", Unit::PerSecond),
    );
    plot.summary =
        "Flows per second in the exported records at each rate of flows sent; without loss both are \
         equal"
            .into();
    let all = || sweeps.iter().flat_map(|sweep| &sweep.points);
    let most = all().map(|point| point.sent_per_s).fold(0.0, f64::max);
    let mut ideal = Series::new("without loss", None, Style::Reference);
    ideal.points = vec![Point::new(0.0, 0.0), Point::new(most, most)];
    if most > 0.0 {
        plot.series(ideal);
    }
    for sweep in sweeps {
        let mut series = Series::new(sweep.label.clone(), Some(sweep.run), Style::Line);
        series.points.extend(sweep.points.iter().map(|point| Point {
            is_hollow: point.is_generator_limited,
            ..Point::new(point.sent_per_s, point.captured_per_s)
        }));
        plot.series(series);
        if let Some(x) = sweep.loss_point() {
            let (number, unit) = crate::document::scaled(x, Unit::PerSecond);
            let label = format!("loss begins: {number} {}", unit.replace("/s", " flows/s"));
            plot.marks.push(Mark { x, label, run: Some(sweep.run) });
        }
    }
    let mut links: Vec<u64> = sweeps.iter().map(|it| it.link_bps).filter(|it| *it > 0).collect();
    links.sort_unstable();
    links.dedup();
    for link in links {
        let x = link as f64 / 1e6 * FLOWS_PER_MBIT;
        let (speed, unit) = crate::document::scaled(link as f64, Unit::BitsPerSecond);
        let label = format!("{FLOWS_PER_MBIT} flows/s per Mbit/s at {speed} {unit}");
        plot.marks.push(Mark { x, label, run: None });
    }
    let mut section = Section::new("Flow export", "RFC 6645 section 5");
    section.plot(plot);
    section.table(table(sweeps));
    section
}

fn table(sweeps: &[FlowExport]) -> Table {
    let columns = vec![
        Column::text("Sweep"),
        Column::number("Flows sent", Unit::PerSecond),
        Column::number("Flows captured", Unit::PerSecond),
        Column::number("Flows lost", Unit::None),
        Column::number("Flow loss", Unit::Percent),
        Column::number("Packets sent", Unit::None),
        Column::number("Packets captured", Unit::None),
        Column::number("Packet loss", Unit::Percent),
        Column::number("Records lost in export", Unit::None),
        Column::text("Note"),
    ];
    let mut table = Table::new("Flows sent and captured", columns);
    for sweep in sweeps {
        for point in &sweep.points {
            let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
            let packets_lost = point.packets_sent.saturating_sub(point.packets_captured);
            let note = if point.is_generator_limited { "limited by the generator" } else { "" };
            table.row(vec![
                Cell::text(sweep.label.clone()),
                Cell::Number(point.sent_per_s.round()),
                Cell::Number(point.captured_per_s.round()),
                Cell::count(point.lost()),
                Cell::Number(percent(point.lost(), point.flows_sent)),
                Cell::count(point.packets_sent),
                Cell::count(point.packets_captured),
                Cell::Number(percent(packets_lost, point.packets_sent)),
                Cell::count(point.sequence_gaps),
                Cell::problem(note),
            ]);
        }
    }
    table.without_empty_columns(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Block;

    #[test]
    fn graph_marks_the_loss_point_and_the_need_of_the_link() {
        let point = |rate: u64, captured: u64| FlowExportPoint {
            sent_per_s: rate as f64,
            captured_per_s: captured as f64,
            flows_sent: rate * 10,
            flows_captured: captured * 10,
            ..FlowExportPoint::default()
        };
        let sweep = FlowExport {
            label: "exporter".into(),
            link_bps: 10_000_000_000,
            points: vec![point(50_000, 50_000), point(60_000, 57_000), point(70_000, 57_000)],
            ..FlowExport::default()
        };
        let section = flow_export(&[sweep]);
        let Some(Block::Plot(plot)) = section.blocks.first() else { panic!("{section:?}") };
        let marks: Vec<_> = plot.marks.iter().map(|it| (it.x, &*it.label)).collect();
        let need = "5 flows/s per Mbit/s at 10 Gbit/s";
        assert_eq!(marks, [(60_000.0, "loss begins: 60 k flows/s"), (50_000.0, need)]);
        assert_eq!(plot.points(), 5);
    }
}
