//! The steps of programs, and what they send, receive and compare.

use serde_json::{Value, json};

use wirestorm_model::program::Composition;

use super::{boolean, defined, ports};
use crate::document::schema::{
    any_of, choice, described, integer, list, object, pattern, text, time, unknown,
};
use crate::emulation::composition::{COUNTER, FIELD, RANDOM, RANDOM_MAX, SENDING, SET};
use crate::emulation::control::{
    COMPARISONS, COUNT_DOWN, COUNTERS, JUMP, LISTEN, SINCE, START_NEXT,
};
use crate::emulation::delay::DELAY;
use crate::emulation::expect::{
    EXPECT, LOOKED_AT_MAX, MESSAGES, OTHERWISE, PART, RECEIVE, TEXT_MAX,
};
use crate::emulation::filling::{SENT_MAX, SIZE_MAX};
use crate::emulation::program::{
    IDLE, LONE_STEPS, RECEIVE_DATAGRAMS, REPEAT, SEND, STEPS, TRANSACTION,
};

/// What is sent.
pub(super) fn content() -> Value {
    let fields = object(&SEND, &[], |name| match name {
        "text" => described("Text at the start.", text()),
        "size" => described("Size in bytes, filled up with `fill`.", integer(0, SIZE_MAX)),
        "fill" => described("Text that repeats up to `size`. Default: the bytes 0 to 255.", text()),
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// What a step sends, with values of the flow.
pub(super) fn sending() -> Value {
    let field = object(&FIELD, &FIELD, |name| match name {
        "offset" => described(
            "Offset of the field in bytes.",
            integer(0, Composition::LENGTH_MAX as u64 - 1),
        ),
        "width" => {
            described("Width of the field in bytes, big-endian.", integer(1, u16::MAX.into()))
        }
        "value" => described("Name of the value.", text()),
        _ => unknown(),
    });
    let fields = object(&SENDING, &[], |name| match name {
        "text" => described(
            "Text at the start. `${name}` inserts a value, `$${` is a literal `${`.",
            text(),
        ),
        "hex" => described("Bytes at the start, in hexadecimal.", hex()),
        "size" => described("Size in bytes, filled up with `fill`.", integer(0, SENT_MAX)),
        "fill" => described("Text that repeats up to `size`. Default: the bytes 0 to 255.", text()),
        "fields" => described("Binary values written over the bytes.", list(field.clone())),
        _ => unknown(),
    });
    any_of([text(), fields])
}

fn hex() -> Value {
    pattern(r"\s*([0-9a-fA-F]\s*[0-9a-fA-F]\s*)+")
}

/// What a name is set to.
fn set() -> Value {
    only(setting())
}

/// What names are set to.
pub(super) fn settings() -> Value {
    json!({"type": "object", "additionalProperties": setting()})
}

fn setting() -> Value {
    let counter = object(&COUNTER, &[], |name| match name {
        "start" => described("First value. Default: 1.", integer(0, u64::MAX)),
        "step" => described("Difference between values. Default: 1.", integer(1, u64::MAX)),
        "max" => described("Last value; the first one follows it.", integer(0, u64::MAX)),
        _ => unknown(),
    });
    let random = object(&RANDOM, &["max"], |name| match name {
        "min" => described("Smallest value. Default: 0.", integer(0, u64::MAX)),
        "max" => described("Greatest value.", integer(0, u64::MAX)),
        _ => unknown(),
    });
    let forms = choice(&SET, |name| match name {
        "counter" => {
            let forms = any_of([integer(0, u64::MAX), counter.clone()]);
            described(
                "Next value of a counter that all flows of the template's side share; a number is \
                its start.",
                forms,
            )
        }
        "random" => described("Random number, uniform, derived from `--seed`.", random.clone()),
        "random_text" => {
            described("Random letters and digits, of this length.", integer(1, RANDOM_MAX))
        }
        "random_bytes" => described("Random bytes, of this length.", integer(1, RANDOM_MAX)),
        "text" => described("Text with values as in `send`, up to 16,384 bytes.", text()),
        _ => unknown(),
    });
    any_of([integer(0, u64::MAX), forms])
}

fn receive() -> Value {
    let fields = choice(&RECEIVE, |name| match name {
        "until" => described("Read up to this text, inclusive.", text()),
        "bytes" => described(
            "Read this many bytes. If the peer closes before, the flow fails.",
            integer(1, u64::MAX),
        ),
        "message" => described(
            "Read a message. `http`: a request or response of HTTP/1, ended by Content-Length, the \
            last chunk or the close; chunked bodies are decoded and interim responses skipped. \
            `http_head`: a response to HEAD. `reply`: a reply of FTP or SMTP, of one or several \
            lines. `rtsp`: a response of RTSP; interleaved media before it are skipped.",
            json!({"enum": MESSAGES}),
        ),
        _ => unknown(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn expect() -> Value {
    let fields = choice(&EXPECT, |name| match name {
        "text" => described("Equal to this text, with values as in `send`.", text()),
        "hex" => described("Equal to these bytes, in hexadecimal.", hex()),
        "contains" => described("Contains this text, with values as in `send`.", text()),
        "pattern" => {
            described("Matches this regular expression (Rust syntax, over bytes).", text())
        }
        _ => unknown(),
    });
    any_of([text(), fields])
}

/// The same in a step by itself.
fn expecting() -> Value {
    let mut expected = expect();
    let fields = &mut expected["anyOf"][1];
    fields["properties"][OTHERWISE] = described(
        "Label to continue at. The flow counts as failed, but its program goes on.",
        text(),
    );
    fields["maxProperties"] = 2.into();
    expected
}

fn part() -> Value {
    object(&PART, &[], |name| match name {
        "pattern" => {
            described("Regular expression; the value is a group of its first match.", text())
        }
        "group" => described(
            "Group of the match. Default: 1, or the whole match without groups.",
            integer(0, u16::MAX.into()),
        ),
        "between" => {
            let mut texts = list(text());
            texts["minItems"] = 2.into();
            texts["maxItems"] = 2.into();
            described(
                "Text between the first occurrence of one text and the next of another.",
                texts,
            )
        }
        "offset" => described("Offset of the bytes.", integer(0, LOOKED_AT_MAX - 1)),
        "length" => described("Number of bytes.", integer(1, TEXT_MAX)),
        _ => unknown(),
    })
}

fn transaction() -> Value {
    choice(&TRANSACTION, |name| match name {
        "start" => described("Start of the transaction of this name.", text()),
        "end" => described("End of the transaction of this name.", text()),
        _ => unknown(),
    })
}

/// So many bytes, or as what is sent.
pub(super) fn body() -> Value {
    let size = json!({"type": "integer", "minimum": 0, "maximum": SIZE_MAX});
    any_of([size, defined("content")])
}

pub(super) fn delay() -> Value {
    let between = object(&DELAY[..2], &DELAY[..2], |name| match name {
        "min" => described("Shortest time.", time()),
        "max" => described("Longest time.", time()),
        _ => unknown(),
    });
    let about = object(&DELAY[2..], &DELAY[2..3], |name| match name {
        "mean" => described("Mean time.", time()),
        "deviation" => described(
            "Standard deviation of a normal distribution. Default: an exponential distribution.",
            time(),
        ),
        _ => unknown(),
    });
    any_of([time(), between, about])
}

pub(super) fn steps() -> Value {
    let step = choice(&STEPS, |name| match name {
        "send" => described("Send, and wait until it is acknowledged.", defined("sending")),
        "receive" => described(
            "Wait for this many bytes since the last `receive`. Surplus bytes do not count for the \
            next one. If the peer closes before, the program ends. In a program with `expect`, \
            `extract` or messages it takes exactly these bytes and leaves the rest. Or read a \
            message, a text or bytes. The first 65,536 bytes are available to `expect` and \
            `extract`; up to 1 MiB is buffered.",
            receive(),
        ),
        "receive_total" => described(
            "Wait for this many bytes since the last `receive`, or the start.",
            integer(1, u64::MAX),
        ),
        "send_datagram" => described(
            "Send a datagram: up to 65,507 bytes over IPv4, 65,527 over IPv6.",
            defined("sending"),
        ),
        "expect" => described(
            "Compare what the last `receive` took, or the last datagram. If it differs, the \
            program ends and the flow fails.",
            expecting(),
        ),
        "extract" => described(
            "Store a part of what the last `receive` took, or of the last datagram, as a text.",
            only(part()),
        ),
        "transaction" => described(
            "Time a transaction. The result has a histogram for each name.",
            transaction(),
        ),
        "receive_datagrams" => {
            described("Wait for this many datagrams since the last such step.", receive_datagrams())
        }
        "idle" => described(
            "Time without datagrams after which the flow ends. Default: 1s; for built-in protocols \
            twice the longest delay from 500 ms up.",
            idle(),
        ),
        "select_group" => described(
            "Choose a random template of this group for `run_flow` and `start_flow`. Each path to \
            these steps needs it.",
            text(),
        ),
        "start_flow" => described(
            "Open a flow of the chosen template to the same server, at a port that a value holds \
            (`50000`, or `195,80` as in FTP). The program continues beside it. If that flow fails, \
            this one fails.",
            start_flow(),
        ),
        "listen" => described(
            "Listen on a free port for one connection of the same client; the port becomes a \
            variable.",
            listen(),
        ),
        "delay" => described("Wait for a time: never shorter, and up to 1 ms longer.", delay()),
        "blocking" => described(
            "Whether later `send` steps wait for acknowledgement, or only until the data has left. \
            Default: true.",
            boolean(),
        ),
        "tos" => described(
            "Type of service or traffic class of later packets; it replaces that of `ip`.",
            integer(0, 255),
        ),
        "repeat" => described("Repeat steps.", repeat()),
        "label" => described("Label for `jump`, `decrement_and_jump` and `otherwise`.", text()),
        "jump" => described(
            "Continue at a label, always or under a condition. A loop without an end needs a step \
            that waits.",
            any_of([text(), jump()]),
        ),
        "decrement_and_jump" => {
            let fields = object(&COUNT_DOWN, &COUNT_DOWN, |_| text());
            described("Decrement a variable and continue at a label while it is above 0.", fields)
        }
        "set" => described(
            "Set a variable or a text. A flow has up to 10 of each; variables start at 0.",
            set(),
        ),
        "add" => {
            let number = any_of([json!({"type": "integer"}), text()]);
            described("Add to a variable.", only(number))
        }
        "remember" => described("Store the present time under a name.", text()),
        "postpone" => described("Move a stored time forward.", only(time())),
        "count" => described(
            "Add to one of the counters A to D: a number, or the milliseconds since a stored \
            time.",
            count(),
        ),
        _ => unknown(),
    });
    let lone = LONE_STEPS.map(|name| described(lone_step(name), json!({"const": name})));
    list(any_of(lone.into_iter().chain([step]).collect::<Vec<_>>()))
}

/// What a step without fields does.
fn lone_step(name: &str) -> &'static str {
    match name {
        "connect" => "Wait until the connection is established.",
        "wait_for_close" => "Wait until the peer closes.",
        "reset" => {
            "Reset the connection; the last step. It is no failure on either side. It does not \
            wait for the connection: one that has no answer yet is dropped."
        }
        "run_flow" => "Open a flow of the chosen template, and wait until it is over.",
        "wait_flow" => "Wait until the flow of `start_flow` is over.",
        "accept_flow" => {
            "Wait for the connection to the port of `listen`, give it to a template of the chosen \
            group with `port: on_demand`, and wait until it is over."
        }
        "start_tls" => {
            "Start TLS here, and wait for the handshake. Both programs have this step, or neither. \
            Bytes that no step has received belong to TLS."
        }
        _ => "",
    }
}

/// One field of any name.
fn only(value: Value) -> Value {
    json!({
        "type": "object",
        "additionalProperties": value,
        "minProperties": 1,
        "maxProperties": 1,
    })
}

fn receive_datagrams() -> Value {
    let fields = object(&RECEIVE_DATAGRAMS, &["count"], |name| match name {
        "count" => described("Number of datagrams.", integer(1, u64::MAX)),
        "clear" => described(
            "Whether counting restarts here; if false, surplus datagrams count for the next step. \
            Default: true.",
            boolean(),
        ),
        _ => unknown(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn idle() -> Value {
    let fields = object(&IDLE, &["time"], |name| match name {
        "time" => described("Idle time.", time()),
        "receive_only" => {
            described("Whether only received datagrams count. Default: false.", boolean())
        }
        _ => unknown(),
    });
    any_of([time(), fields])
}

fn repeat() -> Value {
    object(&REPEAT, &["steps"], |name| match name {
        "times" => described("Number of repetitions. Default: no end.", integer(1, u64::MAX)),
        "steps" => {
            let mut steps = defined("steps");
            steps["minItems"] = 1.into();
            described("Steps to repeat.", steps)
        }
        _ => unknown(),
    })
}

fn jump() -> Value {
    object(&JUMP, &["to"], |name| match name {
        "to" => described("Label to continue at.", text()),
        "variable" => described("Variable to compare.", text()),
        "within" => {
            described("Continue there while less time than this has passed since `since`.", time())
        }
        "since" => described("Name of a stored time.", text()),
        "received" => {
            described("Continue there if the last received data matches, as in `expect`.", expect())
        }
        name if COMPARISONS.iter().any(|(known, _)| *known == name) => {
            described("Compare the variable with this number.", integer(0, u64::MAX))
        }
        _ => unknown(),
    })
}

fn listen() -> Value {
    let fields = object(&LISTEN, &LISTEN[..1], |name| match name {
        "variable" => described("Variable that receives the port.", text()),
        "ports" => {
            described("Ports to choose from: one, or first-last. Default: 49152-65535.", ports())
        }
        _ => unknown(),
    });
    any_of([text(), fields])
}

fn start_flow() -> Value {
    object(&START_NEXT, &START_NEXT[..1], |name| match name {
        "port" => described("Value that holds the server's port.", text()),
        "client_port" => described(
            "Value that holds the client's source port. Default: one of the template's.",
            text(),
        ),
        _ => unknown(),
    })
}

fn count() -> Value {
    choice(&COUNTERS, |_| {
        let since = object(&SINCE, &SINCE, |_| described("Name of a stored time.", text()));
        described("Number to add, or a stored time.", any_of([integer(0, u64::MAX), since]))
    })
}
