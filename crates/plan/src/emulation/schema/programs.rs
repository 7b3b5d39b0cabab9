//! JSON Schema of the steps of programs, and of their data and conditions.

use serde_json::{Value, json};

use wirestorm_model::program::Composition;

use super::{boolean, defined, ports};
use crate::document::schema::{
    any_of, choice, described, integer, list, matches_nothing, object, pattern, text, time,
};
use crate::emulation::composition::{COUNTER, FIELD, PAYLOAD_FIELDS, RANDOM, RANDOM_MAX, SET};
use crate::emulation::control_steps::{
    COMPARISONS, COUNTERS, DECREMENT_AND_JUMP, JUMP, LISTEN, SINCE, START_FLOW,
};
use crate::emulation::delay::DELAY;
use crate::emulation::expect::{
    CHECKED_BYTES_MAX, EXPECT, MESSAGES, OTHERWISE, PART, RECEIVE, TEXT_MAX,
};
use crate::emulation::payload_size::{SEND_BYTES_MAX, SIZE_MAX};
use crate::emulation::program::{
    IDLE, LONE_STEPS, RECEIVE_DATAGRAMS, REPEAT, SEND, STEPS, TRANSACTION,
};

/// Returns the schema of fixed data: a text, or text, size and fill.
pub(super) fn content() -> Value {
    let fields = object(&SEND, &[], |name| match name {
        "text" => described("Text at the start.", text()),
        "size" => described("Size in bytes, filled up with `fill`.", integer(0, SIZE_MAX)),
        "fill" => described("Text that repeats up to `size`. Default: the bytes 0 to 255.", text()),
        _ => matches_nothing(),
    });
    any_of([text(), fields])
}

/// Returns the schema of the data of a send step, with values of the flow.
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
        _ => matches_nothing(),
    });
    let fields = object(&PAYLOAD_FIELDS, &[], |name| match name {
        "text" => described(
            "Text at the start. `${NAME}` inserts a value; `$${` is a literal `${`.",
            text(),
        ),
        "hex" => described("Bytes at the start, in hexadecimal.", hex()),
        "size" => described("Size in bytes, filled up with `fill`.", integer(0, SEND_BYTES_MAX)),
        "fill" => described("Text that repeats up to `size`. Default: the bytes 0 to 255.", text()),
        "fields" => {
            described("Binary values that overwrite bytes of the payload.", list(field.clone()))
        }
        _ => matches_nothing(),
    });
    any_of([text(), fields])
}

fn hex() -> Value {
    pattern(r"\s*([0-9a-fA-F]\s*[0-9a-fA-F]\s*)+")
}

/// Returns the schema of the step `set`: one name with its value.
fn set() -> Value {
    only(setting())
}

/// Returns the schema of several names with their values.
pub(super) fn settings() -> Value {
    json!({"type": "object", "additionalProperties": setting()})
}

fn setting() -> Value {
    let counter = object(&COUNTER, &[], |name| match name {
        "start" => described("First value. Default: 1.", integer(0, u64::MAX)),
        "step" => described("Increment. Default: 1.", integer(1, u64::MAX)),
        "max" => described("Maximum; `start` follows it. Default: 2^64 - 1.", integer(0, u64::MAX)),
        _ => matches_nothing(),
    });
    let random = object(&RANDOM, &["max"], |name| match name {
        "min" => described("Minimum. Default: 0.", integer(0, u64::MAX)),
        "max" => described("Maximum.", integer(0, u64::MAX)),
        _ => matches_nothing(),
    });
    let forms = choice(&SET, |name| match name {
        "counter" => {
            let forms = any_of([integer(0, u64::MAX), counter.clone()]);
            described(
                "Next value of a counter that all flows of the template's side share. A number is \
                its start.",
                forms,
            )
        }
        "random" => {
            described("Uniformly distributed random number, derived from `--seed`.", random.clone())
        }
        "random_text" => described("This many random letters and digits.", integer(1, RANDOM_MAX)),
        "random_bytes" => described("This many random bytes.", integer(1, RANDOM_MAX)),
        "text" => described("Text, with values as in `send`, up to 16,384 bytes.", text()),
        _ => matches_nothing(),
    });
    any_of([integer(0, u64::MAX), forms])
}

fn receive() -> Value {
    let fields = choice(&RECEIVE, |name| match name {
        "until" => described("Read up to and including this text, up to 1,024 bytes long.", text()),
        "bytes" => described(
            "Read this many bytes. The flow fails if the peer closes before.",
            integer(1, u64::MAX),
        ),
        "message" => described(
            "Read a message. `http`: HTTP/1, up to Content-Length, the last chunk or the close; \
            chunked bodies are decoded, interim responses skipped. `http_head`: a response to \
            HEAD. `reply`: a reply of FTP or SMTP, of one or several lines. `rtsp`: an RTSP \
            response; interleaved media before it is skipped.",
            json!({"enum": MESSAGES}),
        ),
        _ => matches_nothing(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn expect() -> Value {
    let fields = choice(&EXPECT, |name| match name {
        "text" => described("Equals this text, with values as in `send`.", text()),
        "hex" => described("Equals these bytes, in hexadecimal.", hex()),
        "contains" => described("Contains this text, with values as in `send`.", text()),
        "pattern" => {
            described("Matches this regular expression (Rust syntax, over bytes).", text())
        }
        _ => matches_nothing(),
    });
    any_of([text(), fields])
}

/// Returns the schema of the step `expect`: a condition with an optional `on_failure`.
fn expecting() -> Value {
    let mut expected = expect();
    let fields = &mut expected["anyOf"][1];
    fields["properties"][OTHERWISE] = described(
        "Label at which the program of the failed flow continues. Default: the program ends.",
        text(),
    );
    fields["maxProperties"] = 2.into();
    expected
}

fn part() -> Value {
    object(&PART, &[], |name| match name {
        "pattern" => described(
            "Regular expression (Rust syntax, over bytes). The value is a group of its first \
            match.",
            text(),
        ),
        "group" => described(
            "Number of the group; 0 is the whole match. Default: 1, or 0 if the pattern has no \
            groups.",
            integer(0, u16::MAX.into()),
        ),
        "between" => {
            let mut texts = list(text());
            texts["minItems"] = 2.into();
            texts["maxItems"] = 2.into();
            described(
                "Bytes between the first occurrence of one text and the next occurrence of \
                another.",
                texts,
            )
        }
        "offset" => {
            described("Offset of the bytes in the message.", integer(0, CHECKED_BYTES_MAX - 1))
        }
        "length" => described("Number of bytes.", integer(1, TEXT_MAX)),
        _ => matches_nothing(),
    })
}

fn transaction() -> Value {
    choice(&TRANSACTION, |name| match name {
        "start" => described("Start the transaction with this name.", text()),
        "end" => described("End the transaction with this name.", text()),
        _ => matches_nothing(),
    })
}

/// Returns the schema of a body: a size in bytes, or fixed data.
pub(super) fn body() -> Value {
    let size = json!({"type": "integer", "minimum": 0, "maximum": SIZE_MAX});
    any_of([size, defined("content")])
}

pub(super) fn delay() -> Value {
    let between = object(&DELAY[..2], &DELAY[..2], |name| match name {
        "min" => described("Minimum of a uniform distribution, at most 4294 s.", time()),
        "max" => described("Maximum of a uniform distribution, at most 4294 s.", time()),
        _ => matches_nothing(),
    });
    let about = object(&DELAY[2..], &DELAY[2..3], |name| match name {
        "mean" => described("Mean, at most 4294 s.", time()),
        "stddev" => described(
            "Standard deviation of a normal distribution. Default: exponential distribution.",
            time(),
        ),
        _ => matches_nothing(),
    });
    any_of([time(), between, about])
}

pub(super) fn steps() -> Value {
    let step = choice(&STEPS, |name| match name {
        "send" => described(
            "Send, and wait for the acknowledgement, unless `blocking` is false.",
            defined("sending"),
        ),
        "receive" => described(
            "Wait for this many bytes since the last `receive`, or read a message, a text or \
            bytes. If the peer closes before, the program ends. Surplus bytes do not count for the \
            next `receive`; with `expect`, `extract` or messages in the program they do. `expect` \
            and `extract` see the first 65,536 bytes. Up to 1 MiB is buffered.",
            receive(),
        ),
        "receive_total" => described(
            "Wait for this many bytes since the last `receive`, or since the start of the flow.",
            integer(1, u64::MAX),
        ),
        "send_datagram" => described(
            "Send a datagram of up to 65,507 bytes over IPv4, 65,527 over IPv6.",
            defined("sending"),
        ),
        "expect" => described(
            "Check the data of the last `receive`, or the last datagram. If it does not match, the \
            flow fails and its program ends.",
            expecting(),
        ),
        "extract" => described(
            "Store a part of the data of the last `receive`, or of the last datagram, in a text. \
            If it is absent, the flow fails.",
            only(part()),
        ),
        "transaction" => described(
            "Start or end a timed transaction. The result has a histogram for each of up to 32 \
            names.",
            transaction(),
        ),
        "receive_datagrams" => described(
            "Wait for this many datagrams since the last `receive_datagrams`.",
            receive_datagrams(),
        ),
        "idle" => described(
            "Time without datagrams after which the flow ends, in whole milliseconds; `0ms`: none. \
            Default: 1s; for built-in protocols twice the longest delay from 500 ms up.",
            idle(),
        ),
        "select_group" => described(
            "Select the group for `run_flow`, `start_flow` and `accept_flow`; each flow uses a \
            random template of it. Each path to `run_flow` and `start_flow` needs it.",
            text(),
        ),
        "start_flow" => described(
            "Open a flow of the selected group to another port of the same server, and continue \
            beside it. If that flow fails, this one fails.",
            start_flow(),
        ),
        "listen" => described(
            "Listen on a free port for one connection of the same client, and store the port in a \
            variable.",
            listen(),
        ),
        "delay" => {
            described("Wait for a time of at most 4294 s; the pause is up to 1 ms longer.", delay())
        }
        "blocking" => described(
            "Whether later `send` steps wait for the acknowledgement, or only until the data has \
            left. Default: true.",
            boolean(),
        ),
        "tos" => described(
            "Type of service (IPv4) or traffic class (IPv6) of later packets. Default: that of \
            `ip`.",
            integer(0, 255),
        ),
        "repeat" => described("Repeat steps; up to 8 nested loops.", repeat()),
        "label" => {
            described("Define a label for `jump`, `decrement_and_jump` and `on_failure`.", text())
        }
        "jump" => described(
            "Continue at a label, always or under a condition. An endless loop needs a step that \
            waits.",
            any_of([text(), jump()]),
        ),
        "decrement_and_jump" => {
            let fields = object(&DECREMENT_AND_JUMP, &DECREMENT_AND_JUMP, |_| text());
            described(
                "Decrement a variable that is above 0, and continue at a label if it is still \
                above 0.",
                fields,
            )
        }
        "set" => described(
            "Set a variable (64 bits, initially 0) or a text. A flow has up to 10 variables, \
            nested loops included, and 10 texts.",
            set(),
        ),
        "add" => {
            let number = any_of([json!({"type": "integer"}), text()]);
            described("Add to a variable, modulo 2^64. The number may be negative.", only(number))
        }
        "save_time" => described("Store the current time under a name, up to 10 names.", text()),
        "add_time" => described("Move a stored time forward, by whole milliseconds.", only(time())),
        "count" => described(
            "Add a number, or the milliseconds since a stored time, to one of the counters A to D.",
            count(),
        ),
        _ => matches_nothing(),
    });
    let lone = LONE_STEPS.map(|name| described(lone_step(name), json!({"const": name})));
    list(any_of(lone.into_iter().chain([step]).collect::<Vec<_>>()))
}

/// Returns the description of a step without fields.
fn lone_step(name: &str) -> &'static str {
    match name {
        "connect" => "Wait until the connection is established.",
        "wait_for_close" => "Wait until the peer closes.",
        "reset" => {
            "Reset the connection, as the last step. It is no failure on either side. A connection \
            without an answer to its SYN is dropped."
        }
        "run_flow" => "Open a flow of the selected group, and wait until it is over.",
        "wait_flow" => "Wait until the flow of `start_flow` is over.",
        "accept_flow" => {
            "Accept the connection to the port of `listen` for a template of the selected group \
            with `port: on_demand`, and wait until it is over."
        }
        "start_tls" => {
            "Start TLS and wait for the handshake, in both programs or none. Bytes that no step \
            has received belong to TLS."
        }
        _ => "",
    }
}

/// Returns the schema of an object with exactly one field, of any name.
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
            "Whether the count restarts afterwards; if false, surplus datagrams count for the next \
            step. Default: true.",
            boolean(),
        ),
        _ => matches_nothing(),
    });
    any_of([integer(1, u64::MAX), fields])
}

fn idle() -> Value {
    let fields = object(&IDLE, &["time"], |name| match name {
        "time" => described("Idle timeout in whole milliseconds; `0ms`: none.", time()),
        "receive_only" => {
            described("Whether only received datagrams reset the timer. Default: false.", boolean())
        }
        _ => matches_nothing(),
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
        _ => matches_nothing(),
    })
}

fn jump() -> Value {
    object(&JUMP, &["to"], |name| match name {
        "to" => described("Label to continue at.", text()),
        "variable" => described("Variable to compare.", text()),
        "within" => described(
            "Jump if less than this time, in whole milliseconds, has passed since `since`.",
            time(),
        ),
        "since" => described("Name of a stored time.", text()),
        "received" => {
            described("Jump if the last received data matches, as in `expect`.", expect())
        }
        name if COMPARISONS.iter().any(|(known, _)| *known == name) => described(
            "Jump if the comparison of `variable` with this number holds.",
            integer(0, u64::MAX),
        ),
        _ => matches_nothing(),
    })
}

fn listen() -> Value {
    let fields = object(&LISTEN, &LISTEN[..1], |name| match name {
        "variable" => described("Variable for the port.", text()),
        "ports" => {
            described("Ports to choose from: one, or first-last. Default: 49152-65535.", ports())
        }
        _ => matches_nothing(),
    });
    any_of([text(), fields])
}

fn start_flow() -> Value {
    object(&START_FLOW, &START_FLOW[..1], |name| match name {
        "port" => described(
            "Value with the server port: decimal, or two decimal bytes as in FTP (`195,80`).",
            text(),
        ),
        "client_port" => described(
            "Value with the client port. Default: any client port of the template.",
            text(),
        ),
        _ => matches_nothing(),
    })
}

fn count() -> Value {
    choice(&COUNTERS, |_| {
        let since = object(&SINCE, &SINCE, |_| described("Name of a stored time.", text()));
        described(
            "Number to add, or the stored time to count from.",
            any_of([integer(0, u64::MAX), since]),
        )
    })
}
