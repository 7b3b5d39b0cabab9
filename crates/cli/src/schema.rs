//! `wirestorm schema`: the form of the JSON that `--json` writes.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use wirestorm_control::schema;

use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm schema > wirestorm.result.1.json
  wirestorm schema | jq -r '.properties | to_entries[] | \"\\(.key): \\(.value.description)\"'
      the fields of a result, with their units";

/// Prints the JSON Schema of the result that `--json` writes, wirestorm.result/1.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaFlags {}

/// Runs the command.
pub(crate) fn run(_flags: &SchemaFlags) -> ExitCode {
    match io::stdout().lock().write_all(schema::result().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestorm: cannot write the schema: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}
