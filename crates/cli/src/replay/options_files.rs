//! Option files of `wirestorm replay`. It also reads tcpreplay's, whose options have the same
//! names.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command};

use super::flags::ReplayFlags;
use crate::options::OptionRules;

/// Replaces `--load-opts` on the command line by the content of the files.
///
/// # Errors
/// A message about an option file.
pub(crate) fn load(mut arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    if arguments.get(1).is_none_or(|command| command != "replay") {
        return Ok(arguments);
    }
    let options = arguments.split_off(2);
    arguments.extend(option_rules(&command()).load(options)?);
    Ok(arguments)
}

/// Formats an option file with the options of the command line.
pub(super) fn text(matches: &ArgMatches) -> String {
    let command = command();
    option_rules(&command).text(&command, matches)
}

fn command() -> Command {
    ReplayFlags::augment_args(Command::new("replay"))
}

fn option_rules(command: &Command) -> OptionRules {
    let names = command.get_arguments().filter_map(|argument| argument.get_long());
    OptionRules {
        ranks: vec![names.map(str::to_owned).collect()],
        sections: &["WIRESTORM", "TCPREPLAY", "TCPREPLAY_EDIT"],
        unsupported: &[],
    }
}
