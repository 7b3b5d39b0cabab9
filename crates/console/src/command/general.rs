//! Commands of the console itself, and of the server as a whole.

use std::path::PathBuf;

use clap::Args;
use wirestorm_api::event::Event;

use super::{Answer, CommandError, Execute, Result, definition, help, unknown, written};
use crate::command::ports::owner;
use crate::command::runs::ended;
use crate::session::Session;
use crate::view::KEYS;

/// Print the server and the user.
#[derive(Args, Debug)]
pub(crate) struct ShowSession {}

impl Execute for ShowSession {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let found = session.client.session()?;
        let mut text = format!(
            "server   {} (host {}, version {})\nuser     {}\nrole     {}\n",
            session.client.server(),
            found.host,
            found.version,
            found.user,
            found.role.name(),
        );
        if !found.session.is_empty() {
            text += &format!("session  {}\n", found.session);
        }
        let limits = super::users::limits(&found.limits);
        if !limits.is_empty() {
            text += &format!("limits   {limits}\n");
        }
        Ok(Answer::Text(text))
    }
}

/// Connect to a server.
#[derive(Args, Debug)]
pub(crate) struct Connect {
    /// HOST, HOST:PORT, http://HOST:PORT or https://HOST:PORT [default: this server]
    #[arg(value_name = "HOST")]
    server: Option<String>,
}

impl Execute for Connect {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let client = match &self.server {
            Some(server) => (session.connector)(server).map_err(CommandError::usage)?,
            None => session.client.clone(),
        };
        let found = session.connect(client)?;
        let server = session.client.server();
        Ok(Answer::Connected(format!("connected to {server} as {}", found.user)))
    }
}

/// Count from now on.
#[derive(Args, Debug)]
pub(crate) struct Clear {
    /// Accepted without effect: all ports are cleared
    #[arg(short, long = "port", value_name = "PORT", num_args = 1.., hide = true)]
    ports: Vec<String>,
}

impl Execute for Clear {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        match session.has_tables {
            true => Ok(Answer::Clear),
            false => Err(CommandError::usage("`clear` needs the live tables of a terminal")),
        }
    }
}

/// Print metrics.
#[derive(Args, Debug)]
pub(crate) struct Metrics {
    /// Write them to a file of this machine
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Execute for Metrics {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        written(session.client.metrics()?, self.output.as_deref())
    }
}

/// Print a schema.
#[derive(Args, Debug)]
pub(crate) struct Schema {
    /// Document
    #[arg(value_name = "NAME", value_parser = ["plan", "emulation-plan", "result", "openapi"])]
    name: String,

    /// Write it to a file of this machine
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Execute for Schema {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        written(session.client.schema(&self.name)?, self.output.as_deref())
    }
}

/// Print changes on the server.
#[derive(Args, Debug)]
pub(crate) struct Events {
    /// Number of changes; the first are the ports and the active runs of now
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    count: usize,
}

impl Execute for Events {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        if session.has_tables {
            // It could not be cancelled while nothing changes.
            return Err(CommandError::usage("the log shows the changes already"));
        }
        let mut lines = Vec::new();
        for event in session.client.events()?.take(self.count) {
            lines.push(event_text(&event?));
        }
        Ok(Answer::Text(lines.join("\n")))
    }
}

/// Returns an event in a line.
fn event_text(event: &Event) -> String {
    match event {
        Event::Ports { ports } => {
            let port = |port: &wirestorm_api::port::Port| {
                let link = super::ports::link(port.link);
                let owner = port.lease.as_ref().map(|lease| format!(", owner {}", owner(lease)));
                let capturing = match port.capturing.is_empty() {
                    true => String::new(),
                    false => format!(", captured by {}", port.capturing.join(" and ")),
                };
                format!("{} {link}{}{capturing}", port.name, owner.unwrap_or_default())
            };
            let ports: Vec<String> = ports.iter().map(port).collect();
            format!("ports: {}", ports.join("; "))
        }
        Event::Run { run } => format!("run {}", ended(run)),
        Event::RunDeleted { id } => format!("run {id} deleted"),
        Event::PlanStored { plan } => format!("plan {} stored", plan.name),
        Event::PlanDeleted { name } => format!("plan {name} deleted"),
        Event::CaptureUploaded { capture } => format!("capture {} uploaded", capture.name),
        Event::CaptureDeleted { name } => format!("capture {name} deleted"),
        Event::Missed { events } => format!("{events} events missed"),
    }
}

/// Print the history.
#[derive(Args, Debug)]
pub(crate) struct History {}

impl Execute for History {
    fn execute(self, _: &mut Session) -> Result<Answer> {
        Ok(Answer::History)
    }
}

/// Print help.
#[derive(Args, Debug)]
pub(crate) struct Help {
    /// Command
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

impl Execute for Help {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let Some(name) = self.command else {
            let keys = if session.has_tables { KEYS } else { "" };
            return Ok(Answer::Text(help() + keys));
        };
        let found = definition(&name).ok_or_else(|| unknown(&name))?;
        Ok(Answer::Text(found.help()))
    }
}

/// Leave the console.
#[derive(Args, Debug)]
pub(crate) struct Quit {}

impl Execute for Quit {
    fn execute(self, _: &mut Session) -> Result<Answer> {
        Ok(Answer::Quit)
    }
}
