//! `wirestorm runs compare`.

use std::fmt::{self, Display, Formatter};

use clap::Args;
use serde_json::json;
use wirestorm_store::SavedRun;
use wirestorm_store::compare::{Comparison, FigureDifference, Noise, TrialDifference};

use super::value::{suffix, value};
use super::{Failure, load, open, print_warnings};
use crate::number::{count_of, grouped};
use crate::ports::show;
use crate::save::DirectoryFlags;
use crate::status;
use crate::traffic::shortened;
use crate::wrap::wrapped;

const EXAMPLES: &str = "\
A difference is beyond noise if the 95 % confidence interval of the difference
of repeated trials (Welch) excludes 0. Of 20 comparisons of equal runs, one is
marked by chance.";

/// Compare two runs and mark differences beyond noise
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareFlags {
    /// First run: ID, beginning of an ID, name, or `latest`
    #[arg(value_name = "A")]
    a: String,

    /// Second run
    #[arg(value_name = "B")]
    b: String,

    /// Exit with status 3 if a difference is beyond noise
    #[arg(long)]
    fail_beyond_noise: bool,

    /// Print JSON (wirestorm.comparison/1), with confidence intervals
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    directory: DirectoryFlags,
}

pub(super) fn run(flags: &CompareFlags) -> Result<u8, Failure> {
    let store = open(&flags.directory)?;
    let (mut a, mut b) = (load(&store, &flags.a)?, load(&store, &flags.b)?);
    let (rows_a, rows_b) = (a.rows()?, b.rows()?);
    print_warnings(&store, &a);
    print_warnings(&store, &b);
    for run in [&a, &b] {
        if run.result.is_none() && rows_a.is_empty() && rows_b.is_empty() {
            let id = &run.record.id;
            return Err(Failure::failed(format!(
                "run {id} has neither a result nor trials to compare; `wirestorm runs show {id}` \
                 shows its state"
            )));
        }
    }
    let comparison = Comparison::new([&a.figures(), &b.figures()], [&rows_a, &rows_b]);
    let changes = changes(&a, &b);
    if flags.json {
        let document = json!({
            "schema": "wirestorm.comparison/1",
            "a": a.record.id,
            "b": b.record.id,
            "changes": changes,
            "figures": comparison.figures,
            "trials": comparison.trials,
            "unmatched": comparison.unmatched,
            "beyond_noise": comparison.is_beyond_noise(),
        });
        show(&format!("{document:#}\n"));
    } else {
        let report = Report { a: &a, b: &b, comparison: &comparison, changes: &changes };
        show(&report.to_string());
    }
    let is_failure = flags.fail_beyond_noise && comparison.is_beyond_noise();
    Ok(if is_failure { status::SHORT } else { 0 })
}

/// Returns the facts in which the runs differ, one sentence each.
fn changes(a: &SavedRun, b: &SavedRun) -> Vec<String> {
    let facts = |run: &SavedRun| {
        let record = &run.record;
        let command = record.command.iter().skip(1).filter(|it| !it.starts_with("--save"));
        [
            ("kind", record.kind.name().to_owned()),
            ("version", record.version.clone()),
            ("host", record.host.name.clone()),
            ("kernel", record.host.kernel.clone()),
            ("CPU", record.machine.cpu_model.clone()),
            ("command", command.cloned().collect::<Vec<_>>().join(" ")),
        ]
    };
    let both = facts(a).into_iter().zip(facts(b));
    both.filter(|((_, a), (_, b))| a != b)
        .map(|((name, a), (_, b))| format!("{name}: {a:?} against {b:?}"))
        .collect()
}

struct Report<'a> {
    a: &'a SavedRun,
    b: &'a SavedRun,
    comparison: &'a Comparison,
    changes: &'a [String],
}

/// Columns of the name of a figure.
const NAME: usize = 33;

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let comparison = self.comparison;
        for (letter, run) in [("A", self.a), ("B", self.b)] {
            let name = run.record.name.as_ref().map(|name| format!(" ({name})"));
            writeln!(f, "{letter}  {}{}", run.record.id, name.unwrap_or_default())?;
        }
        for change in self.changes {
            writeln!(f, "{}", wrapped("   ", change))?;
        }
        writeln!(f, "\n{:<NAME$} {:>11} {:>11} {:>9}  noise", "", "A", "B", "change")?;
        comparison.figures.iter().try_for_each(|figure| figure_line(f, "", figure))?;
        let is_repeated = |trial: &&TrialDifference| {
            trial.figures.iter().any(|figure| figure.noise != Noise::NoRepetition)
        };
        let repeated: Vec<_> = comparison.trials.iter().filter(is_repeated).collect();
        for trial in &repeated {
            trial_lines(f, trial)?;
        }
        let single = comparison.trials.len() - repeated.len();
        writeln!(f)?;
        if comparison.lacks_repetition() {
            let text = "no repeated trials at the same load in both runs: the noise is unknown";
            return writeln!(f, "{text}");
        }
        if single + comparison.unmatched > 0 {
            let single = count_of(single as u64, "load", "loads");
            let text = format!(
                "{single} without repeated trials in both runs (--json has them), {} in one run only",
                comparison.unmatched
            );
            writeln!(f, "{}", wrapped("", &text))?;
        }
        let beyond = comparison.all().filter(|figure| figure.noise == Noise::Beyond).count();
        let total = comparison.all().filter(|it| it.noise != Noise::NoRepetition).count();
        writeln!(f, "{beyond} of {total} figures of repeated trials differ beyond noise")
    }
}

fn trial_lines(f: &mut Formatter<'_>, trial: &TrialDifference) -> fmt::Result {
    let key = &trial.key;
    let size = key.frame_size.map_or_else(String::new, |size| format!(" {size} B"));
    let load = key.load.map_or_else(String::new, |load| format!(" at {}/s", grouped(load)));
    let step = if key.step > 1 { format!(", step {}", key.step) } else { String::new() };
    let [a, b] = trial.repetitions;
    let text = format!("{} {}{size}{load}{step}: {a} and {b} trials", key.test, key.traffic);
    writeln!(f, "{}", wrapped("", &text))?;
    trial.figures.iter().try_for_each(|figure| figure_line(f, "  ", figure))
}

fn figure_line(f: &mut Formatter<'_>, indent: &str, figure: &FigureDifference) -> fmt::Result {
    let name = format!("{indent}{}{}", figure.name, suffix(figure.unit));
    let shown = |number: Option<f64>| match number {
        Some(number) => value(number, figure.unit),
        None => "-".to_owned(),
    };
    let change = match (figure.difference, figure.difference_percent) {
        (Some(0.0), _) => "=".to_owned(),
        (_, Some(percent)) if percent.abs() < 1_000.0 => format!("{percent:+.2} %"),
        (_, Some(percent)) => format!("{percent:+.0} %"),
        (Some(_), None) => "from 0".to_owned(),
        (None, None) => String::new(),
    };
    let noise = match figure.noise {
        Noise::Beyond => "beyond",
        Noise::Within => "within",
        Noise::NoRepetition => "",
    };
    let line = format!(
        "{:<NAME$} {:>11} {:>11} {change:>9}  {noise}",
        shortened(&name, NAME),
        shown(figure.a),
        shown(figure.b),
    );
    writeln!(f, "{}", line.trim_end())
}
