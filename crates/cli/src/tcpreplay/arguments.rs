//! Command line of tcpreplay.
//!
//! An abbreviation matches tcpreplay's options first. Names match in any case and with `_` for `-`.
//! Option files work as in tcpreplay.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Args, Command, FromArgMatches};

use super::Program;
use crate::options::OptionRules;
use crate::replay::flags::ReplayFlags;
use crate::suggestions::with_suggestions;

/// Options that tcpreplay does not have. An abbreviation matches them only if it matches no option
/// of tcpreplay.
const EXTENSIONS: [&str; 14] = [
    "backend",
    "catch-up",
    "force-interface",
    "json",
    "mbps-l1",
    "metrics",
    "nonip",
    "rx",
    "split",
    "split-reverse",
    "tolerance",
    "unique-flows",
    "verify",
    "workers",
];

/// Catch-up policy of tcpreplay.
const CATCH_UP: &str = "bounded:unlimited";

/// Help heading of the edit options, which only tcpreplay-edit has.
const EDITS_HEADING: &str = "Edits";

/// Unsupported options of tcpreplay-edit, each with the reason.
const UNSUPPORTED: [(&str, &str); 5] = [
    ("dlt", "frames go to Ethernet interfaces, so Ethernet is the only output link type"),
    ("hdlc-control", "it applies to --dlt=hdlc, and Ethernet is the only output link type"),
    ("hdlc-address", "it applies to --dlt=hdlc, and Ethernet is the only output link type"),
    ("user-dlt", "it applies to --dlt=user, and Ethernet is the only output link type"),
    (
        "user-dlink",
        "use --enet-dmac, --enet-smac and --enet-vlan for Ethernet headers; Wirestorm sends no \
         other headers",
    ),
];

/// Parsed command line.
pub(super) struct Invocation {
    pub(super) task: Task,
}

/// Task of a command line.
pub(super) enum Task {
    /// Print the short help.
    LessHelp(String),
    /// Print the full help.
    Help(String),
    /// Print the version.
    Version,
    /// List the network interfaces.
    ListInterfaces,
    /// Write the options to a file.
    Save {
        /// Path of the file.
        path: PathBuf,
        /// Content of the file.
        text: String,
    },
    /// Replay captures.
    Replay(Box<ReplayFlags>),
}

impl Invocation {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// A message about the arguments.
    pub(super) fn parse(program: Program, arguments: Vec<OsString>) -> Result<Self, String> {
        Ok(Self { task: task(program, arguments)? })
    }
}

fn task(program: Program, arguments: Vec<OsString>) -> Result<Task, String> {
    let mut command = command(program);
    let dialect = option_rules(&command, program);
    let arguments = dialect.load(arguments)?;
    let matches = match command
        .try_get_matches_from_mut(std::iter::once(program.name().into()).chain(arguments))
    {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Task::Help(error.render().to_string()));
        }
        Err(error) => {
            let error = with_suggestions(error, &mut command, &[]);
            let text = error.render().to_string();
            return Err(format!("{} {text}", program.name()));
        }
    };
    if matches.get_flag("less-help") {
        return Ok(Task::LessHelp(command.render_help().to_string()));
    }
    if matches.get_flag("version") {
        return Ok(Task::Version);
    }
    let flags = ReplayFlags::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    if flags.options.listnics {
        return Ok(Task::ListInterfaces);
    }
    if let Some(path) = &flags.options.save_opts {
        let text = dialect.text(&command, &matches);
        return Ok(Task::Save { path: path.clone(), text });
    }
    if flags.captures.is_empty() {
        return Err(format!(
            "{}: Command line arguments required: name a capture, a directory of captures, or - \
             for standard input; -H lists all options",
            program.name()
        ));
    }
    let is_memory = !flags.pace.backend.needs_interface();
    if flags.intf1.is_none() && flags.write.is_none() && !is_memory {
        return Err(format!(
            "{} error: The intf1 option is required: name an interface to send on with -i, or a \
             file to write with -w; --listnics lists interfaces",
            program.name()
        ));
    }
    Ok(Task::Replay(Box::new(flags)))
}

/// Builds the parser: the options of `wirestorm replay`, and tcpreplay's help and version options.
fn command(program: Program) -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    ReplayFlags::augment_args(Command::new(program.name()))
        .about("Replays captures onto an interface: Wirestorm, as tcpreplay")
        .after_help("")
        .disable_help_flag(true)
        .disable_version_flag(true)
        .mut_arg("more_help", |help| help.long("help").alias("more-help"))
        .mut_arg("catch_up", |policy| policy.default_value(CATCH_UP))
        .arg(flag("less-help", "Print the short help").short('h'))
        .arg(flag("version", "Print the version").short('V'))
}

/// Returns the program's option sections and its long options by rank, tcpreplay's first.
fn option_rules(command: &Command, program: Program) -> OptionRules {
    let mut ranks = vec![Vec::new(); 3];
    for argument in command.get_arguments() {
        let Some(name) = argument.get_long() else { continue };
        let is_edit = argument.get_help_heading() == Some(EDITS_HEADING);
        let rank = if EXTENSIONS.contains(&name) {
            2
        } else if is_edit && program == Program::Tcpreplay {
            1
        } else {
            0
        };
        ranks[rank].push(name.to_owned());
    }
    let refused = if program == Program::Tcpreplay { 1 } else { 0 };
    ranks[refused].extend(UNSUPPORTED.map(|(name, _)| name.to_owned()));
    OptionRules { ranks, sections: program.sections(), unsupported: &UNSUPPORTED }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(program: Program, line: &str) -> Result<Task, String> {
        task(program, line.split_whitespace().map(OsString::from).collect())
    }

    fn flags(line: &str) -> ReplayFlags {
        match understood(Program::Tcpreplay, line) {
            Ok(Task::Replay(flags)) => *flags,
            Ok(_) => panic!("{line}: no replay"),
            Err(error) => panic!("{line}: {error}"),
        }
    }

    fn refusal(program: Program, line: &str) -> String {
        match understood(program, line) {
            Ok(_) => panic!("{line}: accepted"),
            Err(error) => error,
        }
    }

    #[test]
    fn options_and_captures_mix_in_any_order() {
        let flags = flags("a.pcap -i eth1 b.pcap -tKl3 --stats=0 c.pcap");
        assert_eq!(flags.captures, ["a.pcap", "b.pcap", "c.pcap"].map(PathBuf::from));
        assert!(flags.pace.topspeed && flags.select.preload_pcap);
        assert_eq!((flags.select.passes, flags.output.stats), (3, Some(0)));
    }

    #[test]
    fn abbreviations_match_tcpreplays_options_first() {
        // --mbps-l1, --nonip and --mtu have the same beginnings.
        let flags = flags("-i a --mb 5 --no-f --unique-ip --Preload_PCAP x.pcap");
        assert_eq!(flags.pace.mbps.as_deref(), Some("5"));
        assert!(flags.flows.no_flow_stats && flags.select.preload_pcap);
        assert_eq!(self::flags("-i a --back memory x").captures, [PathBuf::from("x")]);
        assert!(refusal(Program::Tcpreplay, "-i a --loopdelay 5 x").contains("--loopdelay"));
    }

    #[test]
    fn default_catch_up_sends_all_late_frames_at_once() {
        assert_eq!(flags("-i a x").pace.catch_up, "bounded:unlimited");
        assert_eq!(flags("-i a --catch-up bounded x").pace.catch_up, "bounded");
    }

    #[test]
    fn option_conflicts_match_tcpreplay() {
        for line in [
            "-i a -t -p 5 x",
            "-i a -x 2 -M 5 x",
            "-i a --include 1 --exclude 2 x",
            "-i a --pps-multi 2 x",
            "-i a -A -n x",
            "-i a -I b x",
            "-w y -I b -2 x x",
            "-i a --flow-expiry 2 --no-flow-stats x",
            "-i a --unique-ip --seed 2 x",
            "-i a -l 2 --loopdelay-ms 1 --loopdelay-ns 1 x",
            "-i a -t",
            "-t x",
        ] {
            assert!(understood(Program::Tcpreplay, line).is_err(), "{line}");
        }
    }

    /// The options of tcpreplay 4.5 and of tcpreplay-edit 4.5, from their manual pages.
    #[test]
    fn parser_accepts_exactly_tcpreplays_options() {
        const PLAIN: &str = "cachefile dbug decode dualfile duration exclude flow-expiry help \
            include intf1 intf2 less-help limit listnics load-opts loop loopdelay-ms \
            loopdelay-ns maxsleep mbps multiplier netmap nm-delay no-flow-stats oneatatime pid \
            pktlen pps pps-multi preload-pcap quiet save-opts stats suppress-warnings timer \
            topspeed unique-ip unique-ip-loops verbose version write xdp xdp-batch-size";
        const EDITS: &str = "dlt dstipmap efcs endpoints enet-dmac enet-mac-seed \
            enet-mac-seed-keep-bytes enet-smac enet-subsmac enet-vlan enet-vlan-cfi \
            enet-vlan-pri enet-vlan-proto enet-vlan-tag fixcsum fixhdrlen fixlen flowlabel \
            fuzz-factor fuzz-seed hdlc-address hdlc-control mtu mtu-trunc pnat portmap seed \
            skipbroadcast skipl2broadcast srcipmap tclass tcp-sequence tos ttl user-dlink \
            user-dlt";
        let mut ranks = option_rules(&command(Program::Tcpreplay), Program::Tcpreplay).ranks;
        ranks.iter_mut().for_each(|rank| rank.sort());
        let [plain, edits, extensions] = ranks.try_into().unwrap();
        assert_eq!(plain, PLAIN.split_whitespace().collect::<Vec<_>>());
        assert_eq!(edits, EDITS.split_whitespace().collect::<Vec<_>>());
        assert_eq!(extensions, EXTENSIONS);
    }

    #[test]
    fn unsupported_options_give_the_reason() {
        let refusal = refusal(Program::TcpreplayEdit, "-i a --dlt=enet x");
        assert!(refusal.contains("only output link type"), "{refusal}");
        assert!(self::refusal(Program::TcpreplayEdit, "-i a --user-dli 00 x").contains("--enet"));
    }

    #[test]
    fn help_version_and_interfaces_need_no_capture() {
        let understood = |line| understood(Program::Tcpreplay, line).ok();
        assert!(matches!(understood("-h"), Some(Task::LessHelp(_))));
        assert!(matches!(understood("-H"), Some(Task::Help(_))));
        assert!(matches!(understood("--help"), Some(Task::Help(_))));
        assert!(matches!(understood("-V"), Some(Task::Version)));
        assert!(matches!(understood("--listnics"), Some(Task::ListInterfaces)));
    }

    #[test]
    fn saved_options_load_again() {
        let line = "-i eth1 -t --loop 3 -r 80:81 -r 90:91 --save-opts o.rc x";
        let Ok(Task::Save { path, text }) = understood(Program::Tcpreplay, line) else {
            panic!("not saved")
        };
        assert_eq!(path, PathBuf::from("o.rc"));
        assert!(!text.contains("tolerance") && !text.contains("save-opts"), "{text}");

        let folder = std::env::temp_dir().join(format!("options-{}", std::process::id()));
        std::fs::write(&folder, text).unwrap();
        let flags = flags(&format!("x --load-opts {} --loop 4", folder.display()));
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(flags.intf1.as_deref(), Some("eth1"));
        assert!(flags.pace.topspeed);
        // The command line overrides the options file.
        assert_eq!(flags.select.passes, 4);
    }
}
