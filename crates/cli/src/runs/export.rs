//! `wirestorm runs export`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use wirestorm_store::export::{Content, ExportError, Format, Table};

use super::{Failure, load, open, print_warnings};
use crate::number::count_of;
use crate::save::DirectoryFlags;

const EXAMPLES: &str = "\
Examples:
  wirestorm runs export latest
      the trials as CSV, on standard output
  wirestorm runs export before after -o trials.parquet
      both runs in one table
  wirestorm runs export latest --what histograms -o histograms.csv";

/// Write trials, histograms or time series as a table
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExportFlags {
    /// IDs, beginnings of IDs, names, or `latest`
    #[arg(value_name = "RUN", required = true, num_args = 1..=1024)]
    runs: Vec<String>,

    /// Rows of the table
    #[arg(long, value_enum, default_value_t = ContentFlag::Trials)]
    what: ContentFlag,

    /// Format [default: that of the file's name, else csv]
    #[arg(long, value_enum)]
    format: Option<FormatFlag>,

    /// File to write; `-`: standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    #[command(flatten)]
    directory: DirectoryFlags,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ContentFlag {
    /// A row for each trial, offer and step; for each flow of other runs
    Trials,
    /// A row for each bucket of each histogram
    Histograms,
    /// A row for each value of each time series
    Series,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatFlag {
    Csv,
    Json,
    Parquet,
}

impl ExportFlags {
    fn format(&self) -> Result<Format, Failure> {
        let extension = self.output.extension().unwrap_or_default();
        Ok(match (self.format, extension.to_str().unwrap_or_default()) {
            (Some(FormatFlag::Csv), _) | (None, "csv") => Format::Csv,
            (Some(FormatFlag::Json), _) | (None, "json") => Format::Json,
            (Some(FormatFlag::Parquet), _) | (None, "parquet") => Format::Parquet,
            (None, "") => Format::Csv,
            (None, other) => {
                return Err(Failure::usage(format!(
                    "--output {}: unknown format {other:?}; add --format csv, json or parquet",
                    self.output.display()
                )));
            }
        })
    }
}

pub(super) fn run(flags: &ExportFlags) -> Result<u8, Failure> {
    let format = flags.format()?;
    let is_standard = flags.output == Path::new("-");
    if is_standard && format == Format::Parquet && io::stdout().is_terminal() {
        return Err(Failure::usage("Parquet is no text for a terminal; use --output FILE"));
    }
    let content = match flags.what {
        ContentFlag::Trials => Content::Trials,
        ContentFlag::Histograms => Content::Histograms,
        ContentFlag::Series => Content::Series,
    };
    let store = open(&flags.directory)?;
    let mut table: Option<Table> = None;
    for selector in &flags.runs {
        let mut run = load(&store, selector)?;
        let rows = Table::of(&mut run, content)?;
        print_warnings(&store, &run);
        match &mut table {
            None => table = Some(rows),
            Some(table) => table.append(rows),
        }
    }
    let Some(table) = table else { return Ok(0) };
    if table.is_empty() {
        let what = flags.what.to_possible_value();
        let what = what.map_or_else(String::new, |value| value.get_name().to_owned());
        eprintln!("wirestorm: warning: no {what} in {}", flags.runs.join(", "));
    }
    let failed = |error: ExportError| {
        Failure::failed(format!("--output {}: {error}", flags.output.display()))
    };
    if is_standard {
        return match table.write(format, BufWriter::new(io::stdout())) {
            // The reader can close the pipe early, as `head` does.
            Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            other => other.map(|()| 0).map_err(failed),
        };
    }
    let file = File::create(&flags.output).map_err(|error| failed(error.into()))?;
    let mut output = BufWriter::new(file);
    table.write(format, &mut output).map_err(failed)?;
    output.flush().map_err(|error| failed(error.into()))?;
    let rows = count_of(table.len() as u64, "row", "rows");
    eprintln!("{}: {rows}", flags.output.display());
    Ok(0)
}
