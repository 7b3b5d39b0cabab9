//! Results of programs: transaction times and failures, at most 80 columns wide.

use std::fmt::{self, Formatter};

use wirestorm_control::result::{
    FailureReport, GroupReport, HistogramReport, PortReport, TemplateReport, TransactionReport,
};

use crate::number::{grouped, nanoseconds_or_none};
use crate::traffic::shortened;

/// Prints transaction times, datagram delays and program failures. Skips empty sections.
pub(super) fn found(
    f: &mut Formatter<'_>,
    ports: &[PortReport],
    groups: &[GroupReport],
) -> fmt::Result {
    let templates = || ports.iter().flat_map(|port| &port.templates);
    // A group of one template would repeat the template's line.
    let of_several = groups.iter().filter(|it| it.templates > 1).map(|it| &it.sum);
    let of_groups = of_several.map(|it| (format!("all {}", it.name), it));
    let owners: Vec<_> = templates().map(|it| (it.name.clone(), it)).chain(of_groups).collect();
    if templates().any(|it| !it.transactions.is_empty()) {
        writeln!(f)?;
        transactions(f, &owners)?;
    }
    if templates().any(|it| it.datagram_latency.is_some()) {
        writeln!(f)?;
        datagrams(f, &owners)?;
    }
    if templates().any(|it| !it.failures.is_empty()) {
        writeln!(f)?;
        writeln!(f, "program failures")?;
        for template in templates() {
            for failure in &template.failures {
                show(f, template, failure)?;
            }
        }
    }
    Ok(())
}

/// Label and report of a template, or of a group with several templates.
type LabelledReport<'a> = (String, &'a TemplateReport);

fn transactions(f: &mut Formatter<'_>, owners: &[LabelledReport<'_>]) -> fmt::Result {
    head(f, "transactions", "count")?;
    for (owner, template) in owners {
        for TransactionReport { name, time, .. } in &template.transactions {
            times(f, &format!("  {owner}: {}, {name}", template.side), time)?;
        }
    }
    Ok(())
}

/// Prints the one-way delay of datagrams that carry their departure time.
fn datagrams(f: &mut Formatter<'_>, owners: &[LabelledReport<'_>]) -> fmt::Result {
    head(f, "one-way delay of datagrams", "measured")?;
    for (owner, template) in owners {
        if let Some(stamped) = &template.datagram_latency {
            times(f, &format!("  {owner}: {}", template.side), &stamped.times)?;
        }
    }
    Ok(())
}

fn head(f: &mut Formatter<'_>, name: &str, counted: &str) -> fmt::Result {
    row(f, name, [counted, "median", "99 %", "longest"].map(str::to_owned))
}

fn times(f: &mut Formatter<'_>, name: &str, time: &HistogramReport) -> fmt::Result {
    let times = [time.p50_ns, time.p99_ns, time.max_ns];
    let [median, most, longest] = times.map(nanoseconds_or_none);
    row(f, name, [grouped(time.count), median, most, longest])
}

fn row(f: &mut Formatter<'_>, name: &str, cells: [String; 4]) -> fmt::Result {
    let [count, median, most, longest] = cells;
    let name = shortened(name, 36);
    writeln!(f, "{name:<36} {count:>10} {median:>10} {most:>10} {longest:>10}")
}

/// Prints a failure, with the expected and received bytes of its first occurrence.
fn show(f: &mut Formatter<'_>, template: &TemplateReport, failure: &FailureReport) -> fmt::Result {
    let FailureReport {
        step,
        cause,
        flows,
        offset,
        expected,
        found,
        found_recorded: found_is_known,
    } = failure;
    let flows = if *flows == 1 { "1 flow".into() } else { format!("{} flows", grouped(*flows)) };
    writeln!(f, "  {}: {}, {step}", template.name, template.side)?;
    writeln!(f, "    {cause}: {flows}")?;
    if let Some(expected) = expected {
        excerpt(f, "    expected  ", expected)?;
    }
    // Without a step that inspects them, excess bytes are only counted and their content is
    // unknown.
    if *found_is_known {
        excerpt(f, "    received  ", found)?;
    }
    if let Some(offset) = offset {
        writeln!(f, "    first difference at byte {}", grouped(*offset))?;
    }
    Ok(())
}

/// Prints the beginning of a text on at most three lines.
fn excerpt(f: &mut Formatter<'_>, head: &str, text: &str) -> fmt::Result {
    const COLUMNS: usize = 80;
    const LINES_MAX: usize = 3;
    if text.is_empty() {
        return writeln!(f, "{head}nothing");
    }
    let characters: Vec<char> = text.chars().collect();
    for (number, line) in characters.chunks(COLUMNS - head.len()).take(LINES_MAX).enumerate() {
        let line: String = line.iter().collect();
        let head = if number == 0 { head } else { "" };
        writeln!(f, "{head:<14}{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Display;

    use wirestorm_control::result::StampedReport;

    use super::*;

    struct Excerpt<'a>(&'a str);

    impl Display for Excerpt<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            excerpt(f, "    received  ", self.0)
        }
    }

    struct Datagrams<'a>(&'a [LabelledReport<'a>]);

    impl Display for Datagrams<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            datagrams(f, self.0)
        }
    }

    #[test]
    fn one_way_delay_lists_only_templates_with_stamped_datagrams() {
        let times = HistogramReport {
            count: 4_000,
            p50_ns: Some(20_000),
            p99_ns: Some(1_500_000),
            max_ns: Some(2_000_000),
            ..HistogramReport::default()
        };
        let stamped = StampedReport { times, ..StampedReport::default() };
        let with = TemplateReport {
            datagram_latency: Some(stamped),
            side: "client".into(),
            ..Default::default()
        };
        let without = TemplateReport { side: "server".into(), ..Default::default() };
        let shown = Datagrams(&[("0".into(), &with), ("0".into(), &without)]).to_string();
        let lines: Vec<Vec<_>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][3..], ["datagrams", "measured", "median", "99", "%", "longest"]);
        assert_eq!(lines[1][..3], ["0:", "client", "4,000"]);
        assert_eq!(lines.len(), 2, "{shown}");
    }

    #[test]
    fn received_bytes_take_at_most_three_lines() {
        assert_eq!(Excerpt("").to_string(), "    received  nothing\n");
        assert_eq!(Excerpt("a b").to_string(), "    received  a b\n");
        let long = Excerpt(&"x".repeat(1_000)).to_string();
        let lines: Vec<_> = long.lines().map(str::len).collect();
        assert_eq!(lines, [80, 80, 80]);
    }
}
