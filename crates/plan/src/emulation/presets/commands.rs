//! Protocols of commands and replies, written as plans have them: FTP and SMTP, one line after the
//! other, and RTSP.

use serde_json::{Value, json};

use wirestorm_model::program::Step;

use crate::document::error::PlanError;
use crate::document::place::Place;
use crate::emulation::program;

/// Steps as plans have them.
pub(super) fn steps(steps: Vec<Value>, place: &Place<'_>) -> Result<Vec<Step>, PlanError> {
    program::read(&place.below("program", &Value::Array(steps)))
}

/// Says a line.
pub(super) fn say(steps: &mut Vec<Value>, line: &str) {
    steps.push(json!({"send": format!("{line}\r\n")}));
}

/// Takes a reply, which is to be so.
pub(super) fn hear(steps: &mut Vec<Value>, pattern: &str) {
    steps.push(json!({"receive": {"message": "reply"}}));
    steps.push(json!({"expect": {"pattern": pattern}}));
}

/// A text in which nothing stands for a value.
pub(super) fn in_text(text: String) -> String {
    text.replace("${", "$${")
}

/// What a server does for each command that comes at a label: one table entry and some steps each.
pub(super) struct Commands {
    label: &'static str,
    /// What a command ends with.
    end: &'static str,
    table: Vec<Value>,
    answers: Vec<Value>,
    count: usize,
}

impl Commands {
    /// Commands of a line.
    pub(super) const fn at(label: &'static str) -> Self {
        Self::up_to(label, "\n")
    }

    /// Commands that end so.
    pub(super) const fn up_to(label: &'static str, end: &'static str) -> Self {
        Self { label, end, table: Vec::new(), answers: Vec::new(), count: 0 }
    }

    /// Does some steps, which lead on.
    pub(super) fn does(&mut self, pattern: &str, mut steps: Vec<Value>) {
        let label = format!("{} {}", self.label, self.count);
        self.count += 1;
        let pattern = format!("(?i){pattern}");
        self.table.push(json!({"jump": {"to": label, "received": {"pattern": pattern}}}));
        self.answers.push(json!({"label": label}));
        self.answers.append(&mut steps);
    }

    /// Does some steps, answers, and waits for the next command.
    pub(super) fn answers(&mut self, pattern: &str, mut steps: Vec<Value>, reply: &str) {
        say(&mut steps, reply);
        steps.push(json!({"jump": self.label}));
        self.does(pattern, steps);
    }

    /// Takes a command, does what comes first, which may be a wait, and then what is to be done;
    /// `unknown` answers all others.
    pub(super) fn finish(
        mut self,
        first: impl IntoIterator<Item = Value>,
        unknown: &str,
    ) -> Vec<Value> {
        let mut steps = vec![json!({"label": self.label}), json!({"receive": {"until": self.end}})];
        steps.extend(first);
        steps.append(&mut self.table);
        say(&mut steps, unknown);
        steps.push(json!({"jump": self.label}));
        steps.append(&mut self.answers);
        steps
    }
}
