//! `wirestorm completions` and `wirestorm manual`, generated from the flag definitions.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{Cli, status};

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  wirestorm completions bash > /etc/bash_completion.d/wirestorm
  wirestorm completions zsh > /usr/local/share/zsh/site-functions/_wirestorm
  wirestorm completions fish > ~/.config/fish/completions/wirestorm.fish";

const MANUAL_EXAMPLES: &str = "\
Examples:
  wirestorm manual | man -l -
      read it here
  wirestorm manual replay | man -l -
      the page of one command
  wirestorm manual --directory /usr/local/share/man/man1
      install all pages; then: man wirestorm-replay";

/// Print shell completions
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsFlags {
    /// Shell to generate completions for
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Print or write manual pages
#[derive(Args, Debug)]
#[command(after_help = MANUAL_EXAMPLES)]
pub(crate) struct ManualFlags {
    /// Command, such as replay [default: wirestorm itself]
    #[arg(value_name = "COMMAND", conflicts_with = "directory")]
    command: Option<String>,

    /// Write one page for each command to this directory
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Runs `wirestorm completions`.
pub(crate) fn completions(flags: &CompletionsFlags) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::command(), "wirestorm", &mut text);
    exit_code(io::stdout().lock().write_all(&text), "the completions")
}

/// Runs `wirestorm manual`.
pub(crate) fn manual(flags: &ManualFlags) -> ExitCode {
    let pages = pages();
    if let Some(directory) = &flags.directory {
        let what = format!("the pages to {}", directory.display());
        return exit_code(write_all(&pages, directory), &what);
    }
    let name = match &flags.command {
        Some(command) => format!("wirestorm-{command}"),
        None => "wirestorm".to_owned(),
    };
    let Some((_, page)) = pages.iter().find(|(page, _)| *page == name) else {
        let commands: Vec<&str> =
            pages.iter().filter_map(|(page, _)| page.strip_prefix("wirestorm-")).collect();
        eprintln!(
            "wirestorm: unknown command {:?}; expected one of {}",
            flags.command.as_deref().unwrap_or_default(),
            commands.join(", ")
        );
        return ExitCode::from(status::USAGE);
    };
    exit_code(io::stdout().lock().write_all(page), "the page")
}

/// Renders a page for `wirestorm` and for each command, keyed by name without the section.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let commands: Vec<Command> = root
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .map(|it| it.clone().name(format!("wirestorm-{}", it.get_name())))
        .collect();
    std::iter::once(root)
        .chain(commands)
        .map(|command| {
            let name = command.get_name().to_owned();
            let mut page = Vec::new();
            // Writing to memory does not fail.
            let _ = Man::new(command).section("1").render(&mut page);
            (name, page)
        })
        .collect()
}

fn write_all(pages: &[(String, Vec<u8>)], directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|(name, page)| fs::write(directory.join(format!("{name}.1")), page))
}

fn exit_code(outcome: io::Result<()>, what: &str) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wirestorm: cannot write {what}: {error}");
            ExitCode::from(status::FAILED)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the visible long flags of each command.
    fn long_flags() -> Vec<(String, Vec<String>)> {
        let mut root = Cli::command();
        root.build();
        let shown = |command: &Command| {
            let shown = command.get_arguments().filter(|it| !it.is_hide_set());
            shown.filter_map(|it| it.get_long().map(str::to_owned)).collect::<Vec<_>>()
        };
        root.get_subcommands()
            .filter(|it| it.get_name() != "help")
            .map(|it| (it.get_name().to_owned(), shown(it)))
            .collect()
    }

    #[test]
    fn each_command_has_a_page_with_all_long_flags() {
        let pages = pages();
        let flags = long_flags();
        assert!(flags.iter().any(|(name, flags)| name == "replay" && flags.len() > 60));
        for (command, flags) in flags {
            let name = format!("wirestorm-{command}");
            let (_, page) = pages.iter().find(|(page, _)| *page == name).expect(&name);
            let page = String::from_utf8_lossy(page).replace("\\-", "-");
            for flag in flags {
                assert!(page.contains(&format!("--{flag}")), "{name}: --{flag}");
            }
        }
    }

    #[test]
    fn completions_contain_every_long_flag() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "wirestorm", &mut text);
            let text = String::from_utf8(text).expect("UTF-8");
            for (command, flags) in long_flags() {
                for flag in flags {
                    let found =
                        text.contains(&format!("--{flag}")) || text.contains(&format!("-l {flag}"));
                    assert!(found, "{shell}: {command} --{flag}");
                }
            }
        }
    }
}
