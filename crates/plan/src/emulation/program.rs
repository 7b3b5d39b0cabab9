//! Parses programs: the steps of one side of a flow.

use wirestorm_model::program::Step;

use super::composition::{Sending, read_literal, read_sending};
use super::control;
use super::delay::read_delay;
use super::expect;
use super::filling::{SIZE_MAX, read_filling};
use super::names::Names;
use crate::document::error::PlanError;
use crate::document::place::Place;

/// Maximum depth of nested loops.
pub(super) const DEPTH_MAX: usize = 8;

pub(super) const STEPS: [&str; 24] = [
    "send",
    "receive",
    "delay",
    "blocking",
    "tos",
    "repeat",
    "receive_total",
    "label",
    "jump",
    "decrement_and_jump",
    "set",
    "add",
    "remember",
    "postpone",
    "count",
    "send_datagram",
    "receive_datagrams",
    "idle",
    "select_group",
    "expect",
    "extract",
    "transaction",
    "listen",
    "start_flow",
];
pub(super) const TRANSACTION: [&str; 2] = ["start", "end"];
pub(super) const LONE_STEPS: [&str; 7] =
    ["connect", "wait_for_close", "reset", "run_flow", "wait_flow", "accept_flow", "start_tls"];
const WORDS: &str = "connect, wait_for_close, reset, run_flow, wait_flow, accept_flow or start_tls";
pub(super) const RECEIVE_DATAGRAMS: [&str; 2] = ["count", "clear"];
pub(super) const IDLE: [&str; 2] = ["time", "receive_only"];
pub(super) const SEND: [&str; 3] = ["text", "size", "fill"];

pub(super) const REPEAT: [&str; 2] = ["times", "steps"];

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Step>, PlanError> {
    let mut names = Names::default();
    let steps = read_steps(place, 0, &mut names)?;
    names.finish(place)?;
    Ok(steps)
}

fn read_steps(place: &Place<'_>, depth: usize, names: &mut Names) -> Result<Vec<Step>, PlanError> {
    let items = place.items("steps")?;
    let last = items.len();
    let mut steps = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let step = read_step(item, depth, names)?;
        // A jump may reach the next step if that is a label.
        let is_reached = items.get(index + 1).is_some_and(|next| next.value()["label"].is_string());
        if step == Step::Reset && (depth > 0 || index + 1 < last) && !is_reached {
            return Err(item.error("a reset before other steps", "it as the last step"));
        }
        steps.push(step);
    }
    Ok(steps)
}

fn read_step(place: &Place<'_>, depth: usize, names: &mut Names) -> Result<Step, PlanError> {
    if let Some(word) = place.value().as_str() {
        return match word {
            "connect" => Ok(Step::Connect),
            "wait_for_close" => Ok(Step::WaitForClose),
            "reset" => Ok(Step::Reset),
            "run_flow" => Ok(Step::RunFlow),
            "wait_flow" => Ok(Step::WaitFlow),
            "accept_flow" => Ok(Step::AcceptFlow),
            "start_tls" => Ok(Step::StartTls),
            _ => Err(place.wrong(format!("{WORDS}, or a field: {}", STEPS.join(", ")))),
        };
    }
    if !place.value().is_object() {
        return Err(place.wrong(format!("a field: {}; or {WORDS}", STEPS.join(", "))));
    }
    let (name, value) = place.choice(&STEPS).map_err(|mut error| {
        error.message.push_str("; or one of the words ");
        error.message.push_str(WORDS);
        error
    })?;
    match name {
        "send" => read_sending(&value, names).map(|sending| match sending {
            Sending::Same(text, size, fill) => Step::Send { text, size, fill },
            Sending::Own(composition) => Step::SendOwn(composition),
        }),
        "send_datagram" => read_sending(&value, names).map(|sending| match sending {
            Sending::Same(text, size, fill) => Step::SendDatagram { text, size, fill },
            Sending::Own(composition) => Step::SendOwnDatagram(composition),
        }),
        "expect" => expect::read_expecting(&value, names),
        "extract" => expect::read_extract(&value, names),
        "transaction" => match value.choice(&TRANSACTION)? {
            ("start", name) => names.transaction(&name, true).map(Step::StartTransaction),
            (_, name) => names.transaction(&name, false).map(Step::EndTransaction),
        },
        "receive_datagrams" => {
            names.receives = true;
            read_receive_datagrams(&value)
        }
        "idle" => read_idle(&value),
        "select_group" => {
            value.free_text("the name of a group").map(|name| Step::SelectGroup(name.to_owned()))
        }
        "receive" => {
            names.receives = true;
            expect::read_receive(&value)
        }
        "receive_total" => value.integer(1, u64::MAX).map(Step::ReceiveTotal),
        "delay" => read_delay(&value),
        "blocking" => value.boolean().map(Step::Blocking),
        "tos" => Ok(Step::TrafficClass(value.integer(0, 255)? as u8)),
        "repeat" => read_repeat(&value, depth, names),
        "label" => names.define(&value).map(Step::Label),
        "listen" => control::read_listen(&value, names),
        "start_flow" => control::read_start_next(&value, names),
        "jump" => control::read_jump(&value, names),
        "decrement_and_jump" => control::read_count_down(&value, names),
        "set" => control::read_set(&value, names),
        "add" => control::read_add(&value, names),
        "remember" => names.remember(&value).map(Step::Remember),
        "postpone" => control::read_postpone(&value, names),
        _ => control::read_count(&value, names),
    }
}

/// Reads a payload that is the same for all flows: text, size in bytes, and fill pattern.
pub(super) fn read_send(place: &Place<'_>) -> Result<(Vec<u8>, u32, Vec<u8>), PlanError> {
    const EXPECTED: &str = "a text, or the fields text, size, fill";
    if let Some(text) = place.value().as_str() {
        let text = read_literal(text, place)?.into_bytes();
        return match u32::try_from(text.len()) {
            Ok(size @ 1..) => Ok((text, size, Vec::new())),
            _ => Err(place.wrong("something to send")),
        };
    }
    if !place.value().is_object() {
        return Err(place.wrong(EXPECTED));
    }
    let fields = place.fields(&SEND)?;
    let text = match fields.get("text") {
        None => Vec::new(),
        Some(place) => read_literal(place.free_text("a text")?, &place)?.into_bytes(),
    };
    let (size, fill) = read_filling(place, &fields, text.len(), SIZE_MAX)?;
    Ok((text, size, fill))
}

fn read_receive_datagrams(place: &Place<'_>) -> Result<Step, PlanError> {
    if !place.value().is_object() {
        return Ok(Step::ReceiveDatagrams { count: place.integer(1, u64::MAX)?, clear: true });
    }
    let fields = place.fields(&RECEIVE_DATAGRAMS)?;
    let count = fields.need("count", "how many datagrams")?.integer(1, u64::MAX)?;
    let clear = fields.get("clear").map_or(Ok(true), |it| it.boolean())?;
    Ok(Step::ReceiveDatagrams { count, clear })
}

fn read_idle(place: &Place<'_>) -> Result<Step, PlanError> {
    if !place.value().is_object() {
        return Ok(Step::Idle { time: control::read_millis(place)?, receive_only: false });
    }
    let fields = place.fields(&IDLE)?;
    let time = control::read_millis(&fields.need("time", "a time with its unit")?)?;
    let receive_only = fields.get("receive_only").map_or(Ok(false), |it| it.boolean())?;
    Ok(Step::Idle { time, receive_only })
}

fn read_repeat(place: &Place<'_>, depth: usize, names: &mut Names) -> Result<Step, PlanError> {
    if depth == DEPTH_MAX {
        return Err(place.says(format!("a program has at most {DEPTH_MAX} nested loops")));
    }
    let fields = place.fields(&REPEAT)?;
    let times = fields.get("times").map(|it| it.integer(1, u64::MAX)).transpose()?;
    let list = fields.need("steps", "a list of steps")?;
    names.note_loop(depth + 1);
    let steps = read_steps(&list, depth + 1, names)?;
    if steps.is_empty() {
        return Err(list.wrong("at least one step"));
    }
    Ok(Step::Repeat { times, steps })
}
