//! `wirestorm schema`: the forms of the JSON that `--json` writes.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use wirestorm_control::schema;

use crate::status;

const EXAMPLES: &str = "\
Examples:
  wirestorm schema > wirestorm.result.1.json
  wirestorm schema | jq -r '.properties | to_entries[] | \"\\(.key): \\(.value.description)\"'
      the fields of a result, with their units";

/// Prints the JSON Schema of a result that `--json` writes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaFlags {
    /// Whose result.
    #[arg(value_enum, default_value_t = Document::Result)]
    document: Document,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Document {
    /// That of replay: wirestorm.result/1.
    Result,
    /// That of run and send: wirestorm.run/1.
    Run,
}

/// Runs the command.
pub(crate) fn run(flags: &SchemaFlags) -> ExitCode {
    let text = match flags.document {
        Document::Result => schema::result(),
        Document::Run => schema::run(),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestorm: cannot write the schema: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}
