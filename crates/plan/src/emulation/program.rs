//! Parses programs: the steps of one side of a flow.

use wirestorm_model::program::Step;

use super::composition::{Payload, read_literal, read_payload};
use super::control_steps;
use super::delay::read_delay;
use super::expect;
use super::names::Names;
use super::payload_size::{SIZE_MAX, read_size_and_fill};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

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
    "save_time",
    "add_time",
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
const LONE_STEPS_TEXT: &str =
    "connect, wait_for_close, reset, run_flow, wait_flow, accept_flow or start_tls";
pub(super) const RECEIVE_DATAGRAMS: [&str; 2] = ["count", "clear"];
pub(super) const IDLE: [&str; 2] = ["time", "receive_only"];
pub(super) const SEND: [&str; 3] = ["text", "size", "fill"];

pub(super) const REPEAT: [&str; 2] = ["times", "steps"];

pub(super) fn read(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    let mut names = Names::default();
    let steps = read_steps(place, 0, &mut names)?;
    names.finish(place)?;
    Ok(steps)
}

fn read_steps(
    place: &ValueAt<'_>,
    depth: usize,
    names: &mut Names,
) -> Result<Vec<Step>, PlanError> {
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

fn read_step(place: &ValueAt<'_>, depth: usize, names: &mut Names) -> Result<Step, PlanError> {
    if let Some(word) = place.value().as_str() {
        return match word {
            "connect" => Ok(Step::Connect),
            "wait_for_close" => Ok(Step::WaitForClose),
            "reset" => Ok(Step::Reset),
            "run_flow" => Ok(Step::RunFlow),
            "wait_flow" => Ok(Step::WaitFlow),
            "accept_flow" => Ok(Step::AcceptFlow),
            "start_tls" => Ok(Step::StartTls),
            _ => {
                Err(place
                    .unexpected(format!("{LONE_STEPS_TEXT}, or a field: {}", STEPS.join(", "))))
            }
        };
    }
    if !place.value().is_object() {
        return Err(
            place.unexpected(format!("a field: {}; or {LONE_STEPS_TEXT}", STEPS.join(", ")))
        );
    }
    let (name, value) = place.choice(&STEPS).map_err(|mut error| {
        error.message.push_str("; or one of the words ");
        error.message.push_str(LONE_STEPS_TEXT);
        error
    })?;
    match name {
        "send" => read_payload(&value, names).map(|sending| match sending {
            Payload::Fixed(text, size, fill) => Step::Send { text, size, fill },
            Payload::Composed(composition) => Step::SendComposed(composition),
        }),
        "send_datagram" => read_payload(&value, names).map(|sending| match sending {
            Payload::Fixed(text, size, fill) => Step::SendDatagram { text, size, fill },
            Payload::Composed(composition) => Step::SendComposedDatagram(composition),
        }),
        "expect" => expect::read_expect_step(&value, names),
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
            value.string("the name of a group").map(|name| Step::SelectGroup(name.to_owned()))
        }
        "receive" => {
            names.receives = true;
            expect::read_receive(&value)
        }
        "receive_total" => value.integer(1, u64::MAX).map(Step::ReceiveTotal),
        "delay" => read_delay(&value),
        "blocking" => value.boolean().map(Step::SetBlocking),
        "tos" => Ok(Step::SetTrafficClass(value.integer(0, 255)? as u8)),
        "repeat" => read_repeat(&value, depth, names),
        "label" => names.define(&value).map(Step::Label),
        "listen" => control_steps::read_listen(&value, names),
        "start_flow" => control_steps::read_start_flow(&value, names),
        "jump" => control_steps::read_jump(&value, names),
        "decrement_and_jump" => control_steps::read_decrement_and_jump(&value, names),
        "set" => control_steps::read_set(&value, names),
        "add" => control_steps::read_add(&value, names),
        "save_time" => names.remember(&value).map(Step::StoreTime),
        "add_time" => control_steps::read_postpone(&value, names),
        _ => control_steps::read_count(&value, names),
    }
}

/// Reads a payload that is the same for all flows: text, size in bytes, and fill pattern.
pub(super) fn read_send(place: &ValueAt<'_>) -> Result<(Vec<u8>, u32, Vec<u8>), PlanError> {
    const EXPECTED: &str = "a text, or the fields text, size, fill";
    if let Some(text) = place.value().as_str() {
        let text = read_literal(text, place)?.into_bytes();
        return match u32::try_from(text.len()) {
            Ok(size @ 1..) => Ok((text, size, Vec::new())),
            _ => Err(place.unexpected("something to send")),
        };
    }
    if !place.value().is_object() {
        return Err(place.unexpected(EXPECTED));
    }
    let fields = place.fields(&SEND)?;
    let text = match fields.get("text") {
        None => Vec::new(),
        Some(place) => read_literal(place.string("a text")?, &place)?.into_bytes(),
    };
    let (size, fill) = read_size_and_fill(place, &fields, text.len(), SIZE_MAX)?;
    Ok((text, size, fill))
}

fn read_receive_datagrams(place: &ValueAt<'_>) -> Result<Step, PlanError> {
    if !place.value().is_object() {
        return Ok(Step::ReceiveDatagrams { count: place.integer(1, u64::MAX)?, clear: true });
    }
    let fields = place.fields(&RECEIVE_DATAGRAMS)?;
    let count = fields.required("count", "how many datagrams")?.integer(1, u64::MAX)?;
    let clear = fields.get("clear").map_or(Ok(true), |it| it.boolean())?;
    Ok(Step::ReceiveDatagrams { count, clear })
}

fn read_idle(place: &ValueAt<'_>) -> Result<Step, PlanError> {
    if !place.value().is_object() {
        return Ok(Step::SetIdleTimeout {
            time: control_steps::read_millis(place)?,
            receive_only: false,
        });
    }
    let fields = place.fields(&IDLE)?;
    let time = control_steps::read_millis(&fields.required("time", "a time with its unit")?)?;
    let receive_only = fields.get("receive_only").map_or(Ok(false), |it| it.boolean())?;
    Ok(Step::SetIdleTimeout { time, receive_only })
}

fn read_repeat(place: &ValueAt<'_>, depth: usize, names: &mut Names) -> Result<Step, PlanError> {
    if depth == DEPTH_MAX {
        return Err(place.message_error(format!("a program has at most {DEPTH_MAX} nested loops")));
    }
    let fields = place.fields(&REPEAT)?;
    let times = fields.get("times").map(|it| it.integer(1, u64::MAX)).transpose()?;
    let list = fields.required("steps", "a list of steps")?;
    names.record_loop_depth(depth + 1);
    let steps = read_steps(&list, depth + 1, names)?;
    if steps.is_empty() {
        return Err(list.unexpected("at least one step"));
    }
    Ok(Step::Repeat { times, steps })
}
