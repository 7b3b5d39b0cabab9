//! What must hold for any bytes that a client sends.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::parameters::Parameters;
use super::rpc::{Answer, Execute, answer};
use super::zmtp;

/// Commands that read all parameters as each type.
struct ReadAll;

impl Execute for ReadAll {
    fn execute(&self, _: &str, parameters: Option<&Value>) -> Option<Answer> {
        let parameters = Parameters(parameters?.as_object()?);
        for name in parameters.0.keys() {
            // Errors are as good as values here.
            let _ = parameters.text(name).map(str::len);
            let _ = (parameters.flag(name), parameters.number(name), parameters.int(name));
            let _ = (parameters.u64(name), parameters.u32(name), parameters.byte_or(name, 0));
            let _ = (parameters.u32s(name), parameters.u16s(name));
            let _ = parameters.choice(name, &["a", "b"]).map(str::len);
        }
        Some(Ok(Value::Null))
    }
}

/// Reads bytes as frames of ZeroMQ, and answers them as a message of TRex. There is exactly one
/// answer, without a panic.
#[doc(hidden)]
pub fn check_trex_message(input: &[u8]) {
    /// Maximum length of a message.
    const BYTES_MAX: u64 = 1 << 20;
    let mut rest = input;
    // Reading from memory never waits.
    while let Poll::Ready(Ok(_)) =
        pin!(zmtp::read(&mut rest, BYTES_MAX)).poll(&mut Context::from_waker(Waker::noop()))
    {}
    assert!(!answer(input, &ReadAll).is_empty());
}
