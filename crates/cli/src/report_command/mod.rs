//! `wirestorm report`: reports on stored runs, and limits for CI.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use wirestorm_report::limit::{Limit, metric_list};
use wirestorm_report::run::Run;
use wirestorm_report::{Options, Report};

use crate::save::DirectoryFlags;
use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm report result.json -o report.html
  wirestorm report before.json after.json -o compared.html --title 'Firmware 4.2'
  wirestorm report result.json --fail-if 'loss>0.001%' --fail-if 'p99.9>50us'
  wirestorm report bench.json --fail-if 'throughput[64]<1Mpps' -o junit.xml

Limits: METRIC[SELECTOR,...] OPERATOR VALUE UNIT
  A limit is true if one figure is; then the exit status is 3. A limit that no
  figure belongs to, and a run without a result, is an error with exit status 1.
  Selectors choose figures by frame size, name of a flow, port, traffic, goal or
  run; \"...\" around names with , or ].
  --list-metrics prints all metrics with their units.";

/// Write a report with plots on stored runs, or check limits
///
/// The HTML report is one file that needs no network. Several runs share each plot.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportFlags {
    /// Runs: IDs or names in the run history, `latest`, run directories, or files of `--json`
    #[arg(value_name = "RUN", required_unless_present = "lists_metrics")]
    runs: Vec<PathBuf>,

    /// Format [default: by the name of --output, or markdown]
    #[arg(short, long, value_enum)]
    format: Option<Format>,

    /// File to write; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", hide_default_value = true)]
    output: PathBuf,

    /// Fail if this is true, such as 'loss>0.001%'; may be repeated
    #[arg(long, value_name = "LIMIT")]
    fail_if: Vec<String>,

    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// Print the metrics of --fail-if with their units
    #[arg(long = "list-metrics")]
    lists_metrics: bool,

    #[command(flatten)]
    directory: DirectoryFlags,
}

impl ReportFlags {
    /// Reads a run from a path, or else from the run history.
    fn read(&self, run: &Path) -> Result<Run, String> {
        if run.exists() {
            return Run::read(run).map_err(|error| error.to_string());
        }
        let store = self.directory.open()?;
        let entry = store
            .find(&run.to_string_lossy())
            .map_err(|error| format!("{}: no such file, and {error}", run.display()))?;
        Run::read(&store.directory().join(entry.id)).map_err(|error| error.to_string())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One HTML file with plots
    Html,
    /// Tables of at most 100 columns
    Markdown,
    /// JUnit XML for CI systems
    Junit,
    /// Figures and limits
    Json,
}

impl Format {
    /// Returns the format that a file name suggests.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "html" | "htm" => Some(Self::Html),
            "md" | "markdown" | "txt" => Some(Self::Markdown),
            "xml" => Some(Self::Junit),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Runs the command.
pub(crate) fn run(flags: &ReportFlags) -> ExitCode {
    if flags.lists_metrics {
        print!("{}", metric_list());
        return ExitCode::SUCCESS;
    }
    report(flags).unwrap_or_else(|Failure { message, status }| {
        eprintln!("wirestorm: {message}");
        ExitCode::from(status)
    })
}

struct Failure {
    message: String,
    status: u8,
}

fn usage(message: String) -> Failure {
    Failure { message, status: status::USAGE }
}

fn report(flags: &ReportFlags) -> Result<ExitCode, Failure> {
    let limits = flags
        .fail_if
        .iter()
        .map(|text| Limit::parse(text).map_err(|error| usage(format!("--fail-if: {error}"))));
    let limits = limits.collect::<Result<Vec<_>, _>>()?;
    let is_standard = flags.output == Path::new("-");
    let format = match flags.format.or_else(|| Format::of(&flags.output)) {
        Some(format) => format,
        None if is_standard => Format::Markdown,
        None => {
            let path = flags.output.display();
            return Err(usage(format!(
                "--output {path}: the name suggests no format; expected .html, .md, .xml or \
                 .json, or --format"
            )));
        }
    };
    let runs = flags.runs.iter().map(|run| flags.read(run).map_err(usage));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let report = Report::new(&runs, &Options { title: flags.title.clone(), limits });
    let text = match format {
        Format::Html => report.html(),
        Format::Markdown => report.markdown(),
        Format::Junit => report.junit(),
        Format::Json => report.json(),
    };
    write(&flags.output, is_standard, &text)?;
    Ok(ExitCode::from(judge(&report, &runs)))
}

fn write(path: &Path, is_standard: bool, text: &str) -> Result<(), Failure> {
    let written = match is_standard {
        true => match io::stdout().lock().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        },
        false => fs::write(path, text),
    };
    written.map_err(|error| {
        let message = format!("--output {}: cannot write the report: {error}", path.display());
        Failure { message, status: status::FAILED }
    })
}

/// Prints the limits that are true and the runs that they cannot judge, and returns the exit status.
fn judge(report: &Report<'_>, runs: &[Run]) -> u8 {
    /// Figures shown at most for each limit; the report has all of them.
    const FIGURES_MAX: usize = 5;
    let mut exit = 0;
    for judged in &report.limits {
        let limit = judged.limit.text();
        for figure in judged.failing.iter().take(FIGURES_MAX) {
            eprintln!("wirestorm: {limit}: {} is {}", figure.place, figure.shown());
            exit = status::SHORT;
        }
        let more = judged.failing.len().saturating_sub(FIGURES_MAX);
        if more > 0 {
            eprintln!("wirestorm: {limit}: and {more} more");
        }
    }
    for judged in report.limits.iter().filter(|judged| judged.values == 0) {
        let limit = judged.limit.text();
        eprintln!(
            "wirestorm: --fail-if {limit}: no figure of the runs belongs to this limit; \
             `--format json` lists all figures with their labels"
        );
        exit = status::FAILED;
    }
    let has_limits = !report.limits.is_empty();
    for run in runs.iter().filter(|run| has_limits && run.result.is_none()) {
        let id = &run.record.id;
        eprintln!(
            "wirestorm: --fail-if: {id} has no result to judge; `wirestorm runs show {id}` says why"
        );
        exit = status::FAILED;
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_suggests_the_format() {
        for (name, format) in [
            ("a.html", Some(Format::Html)),
            ("a.md", Some(Format::Markdown)),
            ("a.xml", Some(Format::Junit)),
            ("a.json", Some(Format::Json)),
            ("a", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format);
        }
    }
}
