//! Users of the server.

use clap::{Args, Subcommand};
use wirestorm_api::session::{Limits, Role, User, UserRequest};

use super::{Answer, Execute, Result};
use crate::number::scaled;
use crate::session::Session;
use crate::text::table;

/// Users of the server.
#[derive(Args, Debug)]
pub(crate) struct Users {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the users
    List,
    /// Add a user, or replace one, and print its new token
    Add(Add),
    /// Remove a user; its token ends at once
    Remove {
        /// Name
        #[arg(value_name = "USER")]
        name: String,
    },
}

#[derive(Args, Debug)]
struct Add {
    /// Name
    #[arg(value_name = "USER")]
    name: String,

    /// Rights of the user
    #[arg(long, value_name = "ROLE", value_parser = ["observe", "operate", "administer"])]
    role: String,

    /// Common name of the user's client certificate
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,

    /// Ports that the user may use [default: all]
    #[arg(long, value_name = "PORT", num_args = 1..)]
    only_port: Vec<String>,

    /// Maximum number of ports at a time
    #[arg(long, value_name = "N")]
    ports_max: Option<usize>,

    /// Maximum rate of a port in frames per second
    #[arg(long, value_name = "PPS")]
    pps_max: Option<u64>,

    /// Maximum rate of a port in bits per second, with preamble, gap and FCS
    #[arg(long, value_name = "BPS")]
    bps_max: Option<u64>,
}

impl Execute for Users {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let client = &session.client;
        let text = match self.action.unwrap_or(Action::List) {
            Action::List => users_table(&client.users()?),
            Action::Add(add) => {
                let request = UserRequest {
                    role: role(&add.role),
                    limits: Limits {
                        ports: (!add.only_port.is_empty()).then_some(add.only_port),
                        ports_max: add.ports_max,
                        pps_max: add.pps_max,
                        bps_max: add.bps_max,
                    },
                    certificate: add.certificate,
                };
                let new = client.put_user(&add.name, &request)?;
                format!(
                    "added {} with the role {}; the token is shown only now:\n{}",
                    new.user.name,
                    new.user.role.name(),
                    new.token
                )
            }
            Action::Remove { name } => {
                client.delete_user(&name)?;
                format!("removed {name}")
            }
        };
        Ok(Answer::Text(text))
    }
}

fn role(name: &str) -> Role {
    Role::ALL.into_iter().find(|role| role.name() == name).unwrap_or(Role::Observe)
}

fn users_table(users: &[User]) -> String {
    if users.is_empty() {
        return "no users: `users add NAME --role ROLE` adds one\n".to_owned();
    }
    let row = |user: &User| {
        let access = match (user.has_token, &user.certificate) {
            (_, Some(name)) => format!("certificate {name}"),
            (true, None) => "token".to_owned(),
            (false, None) => "none".to_owned(),
        };
        [user.name.clone(), user.role.name().to_owned(), access, limits(&user.limits)]
    };
    let rows: Vec<_> = users.iter().map(row).collect();
    table(["user", "role", "access", "limits"], &rows)
}

/// Returns the limits of a user in a line; empty if there are none.
pub(super) fn limits(limits: &Limits) -> String {
    let parts = [
        limits.ports.as_ref().map(|ports| format!("only {}", ports.join(" "))),
        limits.ports_max.map(|most| format!("{most} ports")),
        limits.pps_max.map(|most| scaled(most as f64, "pps")),
        limits.bps_max.map(|most| scaled(most as f64, "b/s")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
