//! Ports and their leases.

use clap::Args;
use wirestorm_api::lease::{Lease, LeaseRequest};
use wirestorm_api::port::{LinkState, Port};

use super::{Answer, CommandError, Execute, Result};
use crate::number::scaled;
use crate::session::{Session, numbered};
use crate::text::table;

/// Choice of ports.
#[derive(Args, Debug)]
pub(crate) struct PortFlags {
    /// Ports by number, name or interface [default: acquired ports]
    #[arg(short, long = "port", value_name = "PORT", num_args = 1..)]
    ports: Vec<String>,

    /// All ports
    #[arg(short, long, conflicts_with = "ports")]
    all: bool,
}

impl PortFlags {
    fn find(&self, session: &mut Session) -> Result<Vec<Port>> {
        session.ports_or_acquired(&self.ports, self.all)
    }
}

/// List ports.
#[derive(Args, Debug)]
pub(crate) struct Ports {
    /// Ports by number, name or interface, with all facts [default: a table of all]
    #[arg(value_name = "PORT")]
    named: Vec<String>,

    /// The same
    #[arg(short, long = "port", value_name = "PORT", num_args = 1.., hide = true)]
    ports: Vec<String>,

    /// All ports
    #[arg(short, long, hide = true)]
    all: bool,
}

impl Execute for Ports {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let names: Vec<String> = self.named.into_iter().chain(self.ports).collect();
        if names.is_empty() {
            return Ok(Answer::Text(ports_table(&numbered(session.client.ports()?))));
        }
        let facts: Vec<String> =
            session.ports(&names)?.iter().map(|(number, port)| facts(*number, port)).collect();
        Ok(Answer::Text(facts.join("\n")))
    }
}

/// Returns the name of the state of a link.
pub(crate) const fn link(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::NoCarrier => "no carrier",
        LinkState::Down => "down",
        LinkState::Missing => "missing",
    }
}

/// Returns the owner of a lease.
pub(crate) fn owner(lease: &Lease) -> String {
    match lease.session.as_str() {
        "" => lease.user.clone(),
        session => format!("{}/{session}", lease.user),
    }
}

fn ports_table(ports: &[(u32, Port)]) -> String {
    if ports.is_empty() {
        return "the server has no ports\n".to_owned();
    }
    let row = |(number, port): &(u32, Port)| {
        [
            number.to_string(),
            port.name.clone(),
            link(port.link).to_owned(),
            port.speed_bps.map_or_else(|| "-".to_owned(), |it| scaled(it as f64, "b/s")),
            port.lease.as_ref().map_or_else(|| "-".to_owned(), owner),
            port.backend.clone().unwrap_or_else(|| "none".to_owned()),
            port.runs.join(" "),
        ]
    };
    let rows: Vec<_> = ports.iter().map(row).collect();
    table(["port", "name", "link", "speed", "owner", "backend", "runs"], &rows)
}

fn facts(number: u32, port: &Port) -> String {
    let lease = match &port.lease {
        None => "free".to_owned(),
        Some(lease) => match lease.expires_in_s {
            None => owner(lease),
            Some(seconds) => format!("{}, for {seconds:.0} s", owner(lease)),
        },
    };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| text += &format!("{name:<14}{value}\n");
    line("port", &number.to_string());
    line("name", &port.name);
    line("interface", &port.interface);
    line("link", link(port.link));
    line("kind", &port.kind);
    line("driver", &port.driver);
    line("mac", port.mac.as_deref().unwrap_or("-"));
    line("mtu", &port.mtu.to_string());
    let speed = port.speed_bps.map_or_else(|| "unknown".to_owned(), |it| scaled(it as f64, "b/s"));
    line("speed", &speed);
    line("backend", port.backend.as_deref().unwrap_or("none"));
    line("reason", &port.backend_reason);
    line("default route", if port.default_route { "yes" } else { "no" });
    line("owner", &lease);
    line("runs", &port.runs.join(" "));
    text
}

/// Lease ports.
#[derive(Args, Debug)]
pub(crate) struct Acquire {
    /// Ports by number, name or interface
    #[arg(short, long = "port", value_name = "PORT", num_args = 1..)]
    ports: Vec<String>,

    /// Ports, as with -p
    #[arg(value_name = "PORT")]
    named: Vec<String>,

    /// All ports
    #[arg(short, long, conflicts_with_all = ["ports", "named"])]
    all: bool,

    /// Take the ports from their owners; the owners' runs on them stop
    #[arg(short, long)]
    force: bool,

    /// The lease ends after this time unless it is renewed [default: no end]
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<f64>,
}

impl Execute for Acquire {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let names: Vec<String> = self.ports.into_iter().chain(self.named).collect();
        if names.is_empty() && !self.all {
            return Err(CommandError::usage("name ports with -p, or all with -a"));
        }
        let ports = session.ports_or_acquired(&names, self.all)?;
        let request = LeaseRequest { force: self.force, ttl_s: self.ttl };
        let mut acquired = Vec::new();
        for port in ports {
            session.client.lease(&port.name, &request).map_err(|error| {
                let done = match acquired.as_slice() {
                    [] => String::new(),
                    acquired => format!("; acquired: {}", acquired.join(", ")),
                };
                CommandError::failed(format!("{error}{done}"))
            })?;
            acquired.push(port.name);
        }
        Ok(Answer::Text(format!("acquired {}", acquired.join(", "))))
    }
}

/// End leases.
#[derive(Args, Debug)]
pub(crate) struct Release {
    #[command(flatten)]
    ports: PortFlags,
}

impl Execute for Release {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let mut released = Vec::new();
        for port in self.ports.find(session)? {
            if port.lease.is_some() || !self.ports.all {
                session.client.release(&port.name)?;
                released.push(port.name);
            }
        }
        Ok(Answer::Text(match released.is_empty() {
            true => "no port is leased".to_owned(),
            false => format!("released {}", released.join(", ")),
        }))
    }
}

/// Take ports by force.
#[derive(Args, Debug)]
pub(crate) struct Reset {
    #[command(flatten)]
    ports: PortFlags,
}

impl Execute for Reset {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let ports = self.ports.find(session)?;
        let request = LeaseRequest { force: true, ttl_s: None };
        for port in &ports {
            session.client.lease(&port.name, &request)?;
        }
        for run in session.active()? {
            if ports.iter().any(|port| run.interfaces.contains(&port.interface)) {
                session.stop(&run)?;
            }
        }
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        Ok(Answer::Text(format!("acquired {}; their runs have ended", names.join(", "))))
    }
}
