//! Reads the dialogue of a template: a conversation of a capture, a preset protocol, or the
//! programs of both sides.

use serde_json::Value;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::conversation;
use super::dialogue::{Dialogue, LoadCapture};
use super::presets::{self, PlayedSides};
use super::program;
use super::types::Transport;
use crate::document::error::PlanError;
use crate::document::value_at::Fields;

/// Fields of a template that define the dialogue; at most one of them is present.
pub(super) const DIALOGUE_FIELDS: [&str; 8] =
    ["conversation", "http", "smtp", "ftp", "rtsp", "sip", "rtp", "dns"];

/// Reads the dialogues of a template; none if each side has a program. `has_server_selection`:
/// whether first bytes select the server at its port.
pub(super) fn read(
    fields: &Fields<'_>,
    load: &mut LoadCapture<'_>,
    has_server_selection: bool,
) -> Result<Vec<Dialogue>, PlanError> {
    let mut sources = DIALOGUE_FIELDS.iter().filter_map(|name| fields.get(name));
    let first = sources.next();
    if let (Some(_), Some(second)) = (&first, sources.next()) {
        return Err(second.message_error("another field defines the dialogue: remove one of them"));
    }
    let has_transactions =
        fields.get("transactions").map(|it| Ok((it.boolean()?, it))).transpose()?;
    let conversation = fields.get("conversation");
    if let Some((_, place)) = &has_transactions
        && (first.is_none() || conversation.is_some())
    {
        return Err(place
            .message_error("is for preset protocols: a program has steps `transaction` instead"));
    }
    if let Some(place) = conversation {
        return conversation::read(&place, load);
    }
    let who = match (fields.get("client"), fields.get("server")) {
        (Some(_), None) => PlayedSides::Client,
        (None, Some(_)) => PlayedSides::Server,
        _ => PlayedSides::Both,
    };
    let mut dialogues = presets::read(fields, who, has_server_selection)?;
    let is_timed = has_transactions.is_none_or(|(is_timed, _)| is_timed);
    for Dialogue { client, server, transport, .. } in &mut dialogues {
        if !is_timed {
            remove_transactions(client);
            remove_transactions(server);
        } else if *transport == Transport::Tcp
            && starts_with_transaction(client)
            && !uses_fast_open(fields)
        {
            // A transaction excludes the connection setup, which has a statistic of its own.
            client.insert(0, Step::Connect);
        }
    }
    Ok(dialogues)
}

/// Returns whether clients use TCP Fast Open: their first data leaves with the SYN.
fn uses_fast_open(fields: &Fields<'_>) -> bool {
    let fast_open = |tcp: &Value| tcp["fast_open"].as_bool();
    let client_setting = fields.get("client").and_then(|it| fast_open(&it.value()["tcp"]));
    client_setting
        .or_else(|| fields.get("tcp").and_then(|it| fast_open(it.value())))
        .unwrap_or(false)
}

/// Returns whether the start of a transaction is the first step, apart from settings and labels.
fn starts_with_transaction(steps: &[Step]) -> bool {
    match steps.iter().find(|it| !matches!(it, Step::Set { .. } | Step::Label(_))) {
        Some(Step::Repeat { steps, .. }) => starts_with_transaction(steps),
        first => matches!(first, Some(Step::StartTransaction(_))),
    }
}

/// Removes the steps that time transactions.
fn remove_transactions(steps: &mut Vec<Step>) {
    steps.retain_mut(|step| match step {
        Step::Repeat { steps, .. } => {
            remove_transactions(steps);
            true
        }
        step => !matches!(step, Step::StartTransaction(_) | Step::EndTransaction(_)),
    });
}

/// Reads the steps of a side from its fields, or takes them from the dialogue.
pub(super) fn steps(
    fields: &Fields<'_>,
    dialogue: Option<&Dialogue>,
    side: Side,
) -> Result<Vec<Step>, PlanError> {
    match (fields.get("program"), dialogue) {
        (None, Some(dialogue)) if side == Side::Client => Ok(dialogue.client.clone()),
        (None, Some(dialogue)) => Ok(dialogue.server.clone()),
        (Some(program), Some(_)) => {
            Err(program.message_error("another field defines the dialogue: remove one of them"))
        }
        (_, None) => program::read(&fields.required("program", "a list of steps")?),
    }
}

/// Reads a port number. `usual`: the default; `None`: the field is required.
pub(super) fn port(fields: &Fields<'_>, name: &str, usual: Option<u16>) -> Result<u16, PlanError> {
    match (fields.get(name), usual) {
        (None, Some(usual)) => Ok(usual),
        _ => {
            let port = fields.required(name, "the number of a port, such as 80")?;
            Ok(port.integer(1, u16::MAX.into())? as u16)
        }
    }
}
