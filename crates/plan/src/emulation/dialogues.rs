//! What both sides of a template say, where it is not written step by step.

use serde_json::Value;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;

use super::conversation;
use super::dialogue::{Load, Speech};
use super::presets::{self, Who};
use super::program;
use super::types::Transport;
use crate::document::error::PlanError;
use crate::document::place::Fields;

/// Fields of a template that say what both sides say; at most one of them.
pub(super) const SPEECHES: [&str; 8] =
    ["conversation", "http", "smtp", "ftp", "rtsp", "sip", "rtp", "dns"];

/// Reads what both sides of a template say; nothing where each has its steps. `is_told_apart`:
/// whether its server is told from others at its port by first bytes.
pub(super) fn read(
    fields: &Fields<'_>,
    load: &mut Load<'_>,
    is_told_apart: bool,
) -> Result<Vec<Speech>, PlanError> {
    let mut given = SPEECHES.iter().filter_map(|name| fields.get(name));
    let first = given.next();
    if let (Some(_), Some(second)) = (&first, given.next()) {
        return Err(second.says("what both sides say is said already: leave one out"));
    }
    let is_timed = fields.get("transactions").map(|it| Ok((it.boolean()?, it))).transpose()?;
    let conversation = fields.get("conversation");
    if let Some((_, place)) = &is_timed
        && (first.is_none() || conversation.is_some())
    {
        return Err(
            place.says("is for ready-made protocols: programs of your own say what is timed")
        );
    }
    if let Some(place) = conversation {
        return conversation::read(&place, load);
    }
    let who = match (fields.get("client"), fields.get("server")) {
        (Some(_), None) => Who::Client,
        (None, Some(_)) => Who::Server,
        _ => Who::Both,
    };
    let mut speeches = presets::read(fields, who, is_told_apart)?;
    let is_timed = is_timed.is_none_or(|(is_timed, _)| is_timed);
    for Speech { client, server, transport, .. } in &mut speeches {
        if !is_timed {
            untimed(client);
            untimed(server);
        } else if *transport == Transport::Tcp && begins_timed(client) && !opens_fast(fields) {
            // What is asked is timed, not how long the connection takes, which is told by itself.
            client.insert(0, Step::Connect);
        }
    }
    Ok(speeches)
}

/// Whether what clients say leaves with SYN, before their connections are open.
fn opens_fast(fields: &Fields<'_>) -> bool {
    let asked = |tcp: &Value| tcp["fast_open"].as_bool();
    let own = fields.get("client").and_then(|it| asked(&it.value()["tcp"]));
    own.or_else(|| fields.get("tcp").and_then(|it| asked(it.value()))).unwrap_or(false)
}

/// Whether what is timed is what comes first.
fn begins_timed(steps: &[Step]) -> bool {
    match steps.iter().find(|it| !matches!(it, Step::Set { .. } | Step::Label(_))) {
        Some(Step::Repeat { steps, .. }) => begins_timed(steps),
        first => matches!(first, Some(Step::StartTransaction(_))),
    }
}

/// Leaves out what times transactions.
fn untimed(steps: &mut Vec<Step>) {
    steps.retain_mut(|step| match step {
        Step::Repeat { steps, .. } => {
            untimed(steps);
            true
        }
        step => !matches!(step, Step::StartTransaction(_) | Step::EndTransaction(_)),
    });
}

/// The steps of a side, whose fields these are.
pub(super) fn steps(
    fields: &Fields<'_>,
    speech: Option<&Speech>,
    side: Side,
) -> Result<Vec<Step>, PlanError> {
    match (fields.get("program"), speech) {
        (None, Some(speech)) if side == Side::Client => Ok(speech.client.clone()),
        (None, Some(speech)) => Ok(speech.server.clone()),
        (Some(program), Some(_)) => {
            Err(program.says("what both sides say is said already: leave one out"))
        }
        (_, None) => program::read(&fields.need("program", "a list of steps")?),
    }
}

/// A port that servers listen at; `usual` where nothing is said.
pub(super) fn port(fields: &Fields<'_>, name: &str, usual: Option<u16>) -> Result<u16, PlanError> {
    match (fields.get(name), usual) {
        (None, Some(usual)) => Ok(usual),
        _ => {
            let port = fields.need(name, "the number of a port, such as 80")?;
            Ok(port.integer(1, u16::MAX.into())? as u16)
        }
    }
}
