//! Scripts: a settings file, or a program with its interpreter.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use wirestorm_control::pktgen::ScriptSource;
use wirestorm_control::plan::pktgen::Script;

use super::PktgenFlags;

/// Maximum number of invalid lines shown.
const INVALID_LINES_MAX: usize = 5;
/// Maximum length of a script in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Reads settings, or a script that its interpreter runs with the arguments of the flags.
///
/// With `json_only`, the script's standard output goes to standard error.
///
/// # Errors
/// The file cannot be read, is too long, or has lines that are not pktgen settings.
pub(super) fn read(
    path: &Path,
    flags: &PktgenFlags,
    json_only: bool,
) -> Result<ScriptSource, String> {
    let name = path.display();
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        match std::fs::metadata(path) {
            Ok(file) if file.len() > BYTES_MAX => {
                return Err(format!(
                    "{name}: {} bytes, expected a script of at most {BYTES_MAX}",
                    file.len()
                ));
            }
            _ => std::fs::read_to_string(path),
        }
    };
    let text = text.map_err(|error| format!("{name}: {error}"))?;
    let script = Script::parse(&text);
    let understood = script.unsupported.is_empty();
    let first_line = text.lines().next().unwrap_or_default();
    if let Some(interpreter) = first_line.strip_prefix("#!").filter(|_| path != Path::new("-")) {
        let readable = understood.then_some(script);
        // As the kernel does, passes the rest of the line as one argument.
        let words = interpreter.trim().splitn(2, char::is_whitespace).map(str::trim);
        let interpreter: Vec<_> =
            words.filter(|word| !word.is_empty()).map(OsString::from).collect();
        let command = command(&interpreter, flags, json_only);
        return Ok(ScriptSource::Program { command, readable });
    }
    if understood {
        if !flags.arguments.is_empty() {
            return Err(
                "only scripts that begin with #!, such as #!/bin/bash, take arguments; a file \
                        of settings takes none"
                    .to_owned(),
            );
        }
        return Ok(ScriptSource::Settings(script));
    }
    let lines = script.unsupported.iter().take(INVALID_LINES_MAX);
    let mut message: Vec<String> = lines.map(|line| format!("{name}: {line}")).collect();
    if let Some(more) = script.unsupported.len().checked_sub(INVALID_LINES_MAX).filter(|it| *it > 0)
    {
        message.push(format!("{name}: and {more} more"));
    }
    message.push("to run the file in a shell, begin it with a line such as #!/bin/bash".to_owned());
    Err(message.join("\n"))
}

/// Builds the command that runs a script in its interpreter, by default `/bin/sh`.
fn command(interpreter: &[OsString], flags: &PktgenFlags, json_only: bool) -> Command {
    let (program, options) = match interpreter {
        [program, options @ ..] => (program.clone(), options),
        [] => (OsString::from("/bin/sh"), interpreter),
    };
    let mut command = Command::new(program);
    command.args(options).args(flags.script.as_deref()).args(&flags.arguments);
    if json_only {
        command.stdout(Stdio::from(std::io::stderr()));
    }
    command
}
