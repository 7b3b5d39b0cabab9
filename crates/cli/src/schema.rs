//! `wirestorm schema`: prints the JSON Schemas of results, plans, tests and records of the run
//! history.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use wirestorm_control::schema::{self, schema_of};
use wirestorm_serve::cluster;
use wirestorm_store::schema as store;

use crate::clock::document as clock;
use crate::{owping, status};

const EXAMPLES: &str = "\
Examples:
  wirestorm schema > wirestorm.result.2.json
  wirestorm schema | jq -r '.properties | to_entries[] | \"\\(.key): \\(.value.description)\"'
      the fields of a result, with their units
  wirestorm schema plan > plan.json
      for an editor: # yaml-language-server: $schema=plan.json
  wirestorm schema test-plan > test.json
      for the file of a test: # yaml-language-server: $schema=test.json";

/// Print the JSON Schema of results, plans, tests or saved runs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaFlags {
    /// Schema to print
    #[arg(value_enum, default_value_t = Document::Result)]
    document: Document,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Document {
    /// Result of every run (wirestorm.result/2)
    Result,
    /// Plan of flows (wirestorm.plan/1)
    Plan,
    /// Plan of clients and servers (wirestorm.emulation-plan/1)
    EmulationPlan,
    /// File of `wirestorm test` (wirestorm.test-plan/1)
    TestPlan,
    /// Result of a test (wirestorm.test/1)
    Test,
    /// Result of `wirestorm clock ptp` (wirestorm.clock-ptp/1)
    ClockPtp,
    /// Result of `wirestorm clock show` (wirestorm.clock-sources/1)
    ClockSources,
    /// Result of `wirestorm clock calibrate` (wirestorm.clock-calibration/1)
    ClockCalibration,
    /// Result of `wirestorm owping` (wirestorm.owping/1)
    Owping,
    /// Record of a saved run: run.json (wirestorm.run/1)
    Run,
    /// Trial of a method (wirestorm.trial/1)
    Trial,
    /// Result of a method (wirestorm.bench/1)
    Bench,
    /// HTTP API of `wirestorm serve` (OpenAPI 3.1)
    Openapi,
}

/// Runs the command.
pub(crate) fn run(flags: &SchemaFlags) -> ExitCode {
    let text = match flags.document {
        Document::Result => schema::result(),
        Document::Plan => schema::plan(),
        Document::EmulationPlan => schema::emulation_plan(),
        Document::TestPlan => cluster::test_plan_schema().unwrap_or_default(),
        Document::Test => cluster::test_schema(),
        Document::ClockPtp => schema_of::<clock::PtpDocument<'_>>(clock::PTP),
        Document::ClockSources => schema_of::<clock::SourcesDocument<'_>>(clock::SOURCES),
        Document::ClockCalibration => schema_of::<clock::CalibrationDocument>(clock::CALIBRATION),
        Document::Owping => schema_of::<owping::OwpingDocument<'_>>(owping::SCHEMA),
        Document::Run => store::run(),
        Document::Trial => store::trial(),
        Document::Bench => store::bench(),
        Document::Openapi => wirestorm_serve::openapi().unwrap_or_default(),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestorm: cannot write the schema: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}
