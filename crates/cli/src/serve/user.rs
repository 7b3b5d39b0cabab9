//! `wirestorm serve user`: users of a server.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use wirestorm_api::session::{Limits, Role, User, UserRequest};
use wirestorm_serve::{Users, UsersError};

use super::StateFlags;
use crate::status;
use crate::traffic::usage;

const EXAMPLES: &str = "\
Examples:
  wirestorm serve user add ada --role operate
  wirestorm serve user add lab --role operate --only-port eth1 --pps-max 100000
  wirestorm serve user add ci --role operate --certificate ci.example.org
  wirestorm serve user list
  wirestorm serve user remove ada

A running server sees the change with the next request. A role includes those
before it: observe reads, operate leases ports and runs plans, administer also
changes what belongs to other users.";

/// Add, list and remove users
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct UserFlags {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Subcommand, Debug)]
enum UserCommand {
    /// Add a user, or replace one, and print its new token
    Add(AddFlags),
    /// List the users
    List(ListFlags),
    /// Remove a user; its token ends at once
    Remove(RemoveFlags),
}

#[derive(Args, Debug)]
struct AddFlags {
    /// Name of the user
    name: String,

    /// Role: observe, operate or administer
    #[arg(long, value_parser = role)]
    role: Role,

    /// Common name of the user's client certificate
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,

    /// Port that the user may use; repeatable [default: all]
    #[arg(long, value_name = "PORT", help_heading = "Limits")]
    only_port: Vec<String>,

    /// Maximum number of ports at a time
    #[arg(long, value_name = "N", help_heading = "Limits")]
    ports_max: Option<usize>,

    /// Maximum rate of a port in frames per second
    #[arg(long, value_name = "PPS", help_heading = "Limits")]
    pps_max: Option<u64>,

    /// Maximum rate of a port in bits per second, with preamble, gap and FCS
    #[arg(long, value_name = "BPS", help_heading = "Limits")]
    bps_max: Option<u64>,

    #[command(flatten)]
    state: StateFlags,
}

#[derive(Args, Debug)]
struct ListFlags {
    /// Write the list as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    state: StateFlags,
}

#[derive(Args, Debug)]
struct RemoveFlags {
    /// Name of the user
    name: String,

    #[command(flatten)]
    state: StateFlags,
}

fn role(text: &str) -> Result<Role, String> {
    Role::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
        let names: Vec<&str> = Role::ALL.into_iter().map(Role::name).collect();
        format!("expected {}", names.join(", "))
    })
}

/// Runs the command.
pub(super) fn run(flags: &UserFlags) -> ExitCode {
    let open = |state: &StateFlags| -> Result<Users, String> {
        Users::open(&state.directory()?).map_err(|error| error.to_string())
    };
    let done = match &flags.command {
        UserCommand::Add(flags) => open(&flags.state).and_then(|users| add(&users, flags)),
        UserCommand::List(flags) => open(&flags.state).and_then(|users| list(&users, flags.json)),
        UserCommand::Remove(flags) => match open(&flags.state).map(|it| it.remove(&flags.name)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(UsersError::Unknown(name))) => return usage(format!("no user {name:?}")),
            Ok(Err(error)) => Err(error.to_string()),
            Err(message) => Err(message),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("wirestorm: {message}");
            ExitCode::from(status::FAILED)
        }
    }
}

fn add(users: &Users, flags: &AddFlags) -> Result<(), String> {
    let limits = Limits {
        ports: (!flags.only_port.is_empty()).then(|| flags.only_port.clone()),
        ports_max: flags.ports_max,
        pps_max: flags.pps_max,
        bps_max: flags.bps_max,
    };
    let request = UserRequest { role: flags.role, limits, certificate: flags.certificate.clone() };
    let new = users.put(&flags.name, request).map_err(|error| error.to_string())?;
    // The token alone goes to standard output, so that a script can store it.
    eprintln!(
        "wirestorm: token of {} with the role {}; it is not shown again:",
        new.user.name,
        new.user.role.name()
    );
    println!("{}", new.token);
    Ok(())
}

fn list(users: &Users, as_json: bool) -> Result<(), String> {
    let users = users.list().map_err(|error| error.to_string())?;
    if as_json {
        let json = serde_json::to_string_pretty(&users).map_err(|error| error.to_string())?;
        println!("{json}");
        return Ok(());
    }
    if users.is_empty() {
        println!("no users; add one with: wirestorm serve user add NAME --role operate");
        return Ok(());
    }
    println!("{:<20} {:<10}  limits", "user", "role");
    for user in &users {
        println!("{:<20} {:<10}  {}", user.name, user.role.name(), limits(user));
    }
    Ok(())
}

fn limits(user: &User) -> String {
    let Limits { ports, ports_max, pps_max, bps_max } = &user.limits;
    let parts = [
        ports.as_ref().map(|ports| format!("ports {}", ports.join(", "))),
        ports_max.map(|most| format!("{most} ports")),
        pps_max.map(|most| format!("{most} frames/s")),
        bps_max.map(|most| format!("{most} bit/s")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join("; ") }
}
