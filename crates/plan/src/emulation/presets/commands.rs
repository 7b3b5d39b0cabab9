//! Builder of programs for protocols of commands and replies: FTP, SMTP and RTSP. It writes the
//! steps in the JSON form of plans.

use serde_json::{Value, json};

use wirestorm_model::program::Step;

use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;
use crate::emulation::program;

/// Parses steps in the JSON form of plans; `place` locates errors.
pub(super) fn steps(steps: Vec<Value>, place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    program::read(&place.child("program", &Value::Array(steps)))
}

/// Appends a step that sends a line.
pub(super) fn send_line(steps: &mut Vec<Value>, line: &str) {
    steps.push(json!({"send": format!("{line}\r\n")}));
}

/// Appends steps that receive a reply and require that it matches a pattern.
pub(super) fn expect_reply(steps: &mut Vec<Value>, pattern: &str) {
    steps.push(json!({"receive": {"message": "reply"}}));
    steps.push(json!({"expect": {"pattern": pattern}}));
}

/// Escapes `${`, so that the text inserts no values.
pub(super) fn escape_values(text: String) -> String {
    text.replace("${", "$${")
}

/// Command loop of a server: a table with a jump for each command, and the steps of each command.
pub(super) struct CommandLoop {
    label: &'static str,
    /// Delimiter at the end of each command.
    end: &'static str,
    table: Vec<Value>,
    command_steps: Vec<Value>,
    count: usize,
}

impl CommandLoop {
    /// Creates a command loop at a label, with one command per line.
    pub(super) const fn lines(label: &'static str) -> Self {
        Self::with_delimiter(label, "\n")
    }

    /// Creates a command loop at a label, with commands that end in `end`.
    pub(super) const fn with_delimiter(label: &'static str, end: &'static str) -> Self {
        Self { label, end, table: Vec::new(), command_steps: Vec::new(), count: 0 }
    }

    /// Adds a command with steps that end in a jump of their own. Case does not matter.
    pub(super) fn command(&mut self, pattern: &str, mut steps: Vec<Value>) {
        let label = format!("{} {}", self.label, self.count);
        self.count += 1;
        let pattern = format!("(?i){pattern}");
        self.table.push(json!({"jump": {"to": label, "received": {"pattern": pattern}}}));
        self.command_steps.push(json!({"label": label}));
        self.command_steps.append(&mut steps);
    }

    /// Adds a command with steps, a reply, and a jump to the next command.
    pub(super) fn reply(&mut self, pattern: &str, mut steps: Vec<Value>, reply: &str) {
        send_line(&mut steps, reply);
        steps.push(json!({"jump": self.label}));
        self.command(pattern, steps);
    }

    /// Returns the steps of the loop: receive a command, run `first`, such as a delay, and jump to
    /// its steps. `unknown` is the reply to other commands.
    pub(super) fn finish(
        mut self,
        first: impl IntoIterator<Item = Value>,
        unknown: &str,
    ) -> Vec<Value> {
        let mut steps = vec![json!({"label": self.label}), json!({"receive": {"until": self.end}})];
        steps.extend(first);
        steps.append(&mut self.table);
        send_line(&mut steps, unknown);
        steps.push(json!({"jump": self.label}));
        steps.append(&mut self.command_steps);
        steps
    }
}
