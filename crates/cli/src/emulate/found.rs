//! What programs found, as people read it: at most 80 columns.

use std::fmt::{self, Formatter};

use wirestorm_control::emulation::{
    FailureReport, GroupReport, PortReport, TemplateReport, TransactionReport,
};

use crate::number::{grouped, nanoseconds_or_none};
use crate::traffic::shortened;

/// How long transactions took, and why programs failed, where anything is known of that.
pub(super) fn found(
    f: &mut Formatter<'_>,
    ports: &[PortReport],
    groups: &[GroupReport],
) -> fmt::Result {
    let templates = || ports.iter().flat_map(|port| &port.templates);
    if templates().any(|it| !it.transactions.is_empty()) {
        writeln!(f)?;
        let of_templates = templates().map(|it| (it.name.clone(), it.side, &it.transactions));
        // A group of one template says the same again.
        let of_several = groups.iter().filter(|it| it.templates > 1).map(|it| &it.sum);
        let of_groups =
            of_several.map(|it| (format!("all {}", it.name), it.side, &it.transactions));
        transactions(f, of_templates.chain(of_groups))?;
    }
    if templates().any(|it| !it.failures.is_empty()) {
        writeln!(f)?;
        writeln!(f, "why programs failed")?;
        for template in templates() {
            for failure in &template.failures {
                show(f, template, failure)?;
            }
        }
    }
    Ok(())
}

fn transactions<'a>(
    f: &mut Formatter<'_>,
    owners: impl Iterator<Item = (String, &'static str, &'a Vec<TransactionReport>)>,
) -> fmt::Result {
    let row = |f: &mut Formatter<'_>, name: &str, cells: [String; 4]| {
        let [ended, median, most, longest] = cells;
        let name = shortened(name, 36);
        writeln!(f, "{name:<36} {ended:>10} {median:>10} {most:>10} {longest:>10}")
    };
    row(f, "transactions", ["ended", "median", "99 %", "longest"].map(str::to_owned))?;
    for (owner, side, transactions) in owners {
        for transaction in transactions {
            let time = &transaction.time;
            let times = [time.p50_ns, time.p99_ns, time.max_ns];
            let [median, most, longest] = times.map(nanoseconds_or_none);
            let TransactionReport { name, .. } = transaction;
            let name = format!("  {owner}: {side}, {name}");
            row(f, &name, [grouped(time.count), median, most, longest])?;
        }
    }
    Ok(())
}

/// A failure, with what was expected and what came the first time.
fn show(f: &mut Formatter<'_>, template: &TemplateReport, failure: &FailureReport) -> fmt::Result {
    let FailureReport { step, cause, flows, offset, expected, found, found_is_known } = failure;
    let flows = if *flows == 1 { "1 flow".into() } else { format!("{} flows", grouped(*flows)) };
    writeln!(f, "  {}: {}, {step}", template.name, template.side)?;
    writeln!(f, "    {cause}: {flows}")?;
    if let Some(expected) = expected {
        excerpt(f, "    expected  ", expected)?;
    }
    // Bytes that no step looks at are counted alone: what came is not known then.
    if *found_is_known {
        excerpt(f, "    came      ", found)?;
    }
    if let Some(offset) = offset {
        writeln!(f, "    which differ from byte {} on", grouped(*offset))?;
    }
    Ok(())
}

/// The beginning of something, in as many lines as may be.
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
    use super::*;
    use std::fmt::Display;

    struct Excerpt<'a>(&'a str);

    impl Display for Excerpt<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            excerpt(f, "    came      ", self.0)
        }
    }

    #[test]
    fn what_came_is_shown_in_a_few_lines() {
        assert_eq!(Excerpt("").to_string(), "    came      nothing\n");
        assert_eq!(Excerpt("a b").to_string(), "    came      a b\n");
        let long = Excerpt(&"x".repeat(1_000)).to_string();
        let lines: Vec<_> = long.lines().map(str::len).collect();
        assert_eq!(lines, [80, 80, 80]);
    }
}
