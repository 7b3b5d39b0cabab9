//! Plans on the server.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use wirestorm_api::plan::{FlowFrames, PlanSummary};

use super::{Answer, CommandError, Execute, Result, read_text};
use crate::session::Session;
use crate::text::table;

/// Plans on the server.
#[derive(Args, Debug)]
pub(crate) struct Plans {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List the stored plans
    List,
    /// Print a stored plan
    Show {
        /// Name
        #[arg(value_name = "STORED")]
        name: String,
    },
    /// Check a plan of this machine
    Check {
        /// Plan in YAML or JSON
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the first frames of each flow of a plan of this machine
    Frames {
        /// Plan in YAML or JSON
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Frames of each flow
        #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
        count: u64,
    },
    /// Store a plan, or replace it
    Store {
        /// Name
        #[arg(value_name = "NAME")]
        name: String,
        /// Plan in YAML or JSON on this machine
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Delete a stored plan
    Delete {
        /// Name
        #[arg(value_name = "STORED")]
        name: String,
    },
}

impl Execute for Plans {
    fn execute(self, session: &mut Session) -> Result<Answer> {
        let client = &session.client;
        let text = match self.action.unwrap_or(Action::List) {
            Action::List => {
                let plans = client.plans()?;
                let rows: Vec<_> =
                    plans.iter().map(|it| [it.name.clone(), it.bytes.to_string()]).collect();
                match rows.is_empty() {
                    true => "no plans: `plans store NAME FILE` stores one\n".to_owned(),
                    false => table(["plan", "bytes"], &rows),
                }
            }
            Action::Show { name } => client.plan(&name)?,
            Action::Check { file } => checked(&client.check_plan(&read_text(&file)?)?)
                .map_err(|error| CommandError::usage(format!("{}: {error}", file.display())))?,
            Action::Frames { file, count } => {
                let frames = client.frames(&read_text(&file)?, count);
                frames_text(&frames.map_err(|error| CommandError::usage(error.in_plan(&file)))?)
            }
            Action::Store { name, file } => {
                let stored = client.store_plan(&name, &read_text(&file)?);
                let plan = stored.map_err(|error| CommandError::failed(error.in_plan(&file)))?;
                format!("stored {} ({} bytes)", plan.name, plan.bytes)
            }
            Action::Delete { name } => {
                client.delete_plan(&name)?;
                format!("deleted plan {name}")
            }
        };
        Ok(Answer::Text(text))
    }
}

/// Returns what a plan contains, or its errors.
pub(super) fn checked(summary: &PlanSummary) -> Result<String> {
    if !summary.errors.is_empty() {
        let lines = summary.errors.iter().map(|error| match error.path.as_str() {
            "" => error.message.clone(),
            path => format!("{path}: {}", error.message),
        });
        return Err(CommandError::usage(lines.collect::<Vec<_>>().join("\n")));
    }
    let mut text = String::new();
    for port in &summary.ports {
        let interface = port.interface.as_deref().unwrap_or("to bind");
        text += &format!("port {}: {interface}\n", port.name);
    }
    text += &format!("flows: {}\n", summary.flows.join(", "));
    Ok(text)
}

fn frames_text(flows: &[FlowFrames]) -> String {
    let mut text = String::new();
    for flow in flows {
        for (index, frame) in flow.frames.iter().enumerate() {
            let time = frame.time_ns.map_or_else(String::new, |it| format!(", at {it} ns"));
            text += &format!("{} frame {}{time}\n  {}\n", flow.flow, index + 1, frame.bytes);
            for header in &frame.headers {
                let fields = header.fields.iter().map(|it| format!("{}={}", it.name, it.value));
                let fields: Vec<String> = fields.collect();
                text += &format!("  {} {}\n", header.protocol, fields.join(" "));
            }
        }
    }
    text
}
