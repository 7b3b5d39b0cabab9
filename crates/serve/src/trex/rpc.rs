//! JSON-RPC 2.0 as TRex speaks it: requests, batches, errors.

use std::fmt;

use serde::Deserializer;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use super::compression::{REQUEST_BYTES_MAX, pack, unpack};

/// Maximum number of requests of a batch.
const BATCH_MAX: usize = 100_000;

/// Result of a command.
pub(super) type Answer = Result<Value, RpcError>;

/// Error of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    kind: ErrorKind,
    /// Text that TRex's client shows; `None` if the kind says it all.
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorKind {
    Parse,
    Parameters,
    Execution,
    NoResults,
    Unregistered,
}

impl RpcError {
    /// Wrong parameters.
    pub(super) fn parameters(text: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Parameters, text: Some(text.into()) }
    }

    /// The command failed.
    pub(super) fn execution(text: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Execution, text: Some(text.into()) }
    }

    /// No ticket of this number.
    pub(super) fn no_results() -> Self {
        Self { kind: ErrorKind::NoResults, text: None }
    }

    fn unregistered(method: &str) -> Self {
        let text = format!("Method {method} not registered");
        Self { kind: ErrorKind::Unregistered, text: Some(text) }
    }

    fn parse(text: &str) -> Self {
        Self { kind: ErrorKind::Parse, text: Some(text.to_owned()) }
    }

    fn document(&self) -> Value {
        let (code, message) = match self.kind {
            ErrorKind::Parse => return json!({"code": -32600, "message": self.text}),
            ErrorKind::Unregistered => return json!({"code": -32601, "message": self.text}),
            ErrorKind::Parameters => (-32602, "Bad parameters for method"),
            ErrorKind::Execution => (-32000, "Failed To Execute Method"),
            ErrorKind::NoResults => (-32003, "No results for request"),
        };
        let mut document = json!({"code": code, "message": message});
        if let Some(text) = &self.text {
            document["specific_err"] = text.as_str().into();
        }
        document
    }

    /// Returns the text of the error.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }
}

/// Executes commands.
pub(super) trait Execute {
    /// Executes a command; `None` if there is no such command.
    fn execute(&self, method: &str, parameters: Option<&Value>) -> Option<Answer>;
}

/// Returns the answer to a message.
pub(super) fn answer(message: &[u8], commands: &dyn Execute) -> Vec<u8> {
    let unpacked = match unpack(message) {
        Ok(unpacked) => unpacked,
        Err(length) => return too_large(length).to_string().into_bytes(),
    };
    let answer = answer_text(&unpacked.text, commands).into_bytes();
    if unpacked.is_compressed { pack(&answer) } else { answer }
}

fn too_large(length: usize) -> Value {
    let message = format!(
        "Request is too large ({length} bytes). Consider splitting to smaller chunks; at most \
         {REQUEST_BYTES_MAX} bytes."
    );
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": message}})
}

fn not_json() -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": null,
        "error": {"code": -32700, "message": "Bad JSON Format"},
    })
}

fn answer_text(text: &[u8], commands: &dyn Execute) -> String {
    if !text.trim_ascii_start().starts_with(b"[") {
        return match serde_json::from_slice(text) {
            Ok(request) => answer_one(&request, commands).to_string(),
            Err(_) => not_json().to_string(),
        };
    }
    // A batch with an error of syntax executes nothing.
    match serde_json::from_slice::<Vec<IgnoredAny>>(text) {
        Ok(requests) if requests.len() > BATCH_MAX => return too_large(text.len()).to_string(),
        Ok(_) => {}
        Err(_) => return not_json().to_string(),
    }
    let mut batch = Batch { commands, answers: Vec::new() };
    if serde_json::Deserializer::from_slice(text).deserialize_seq(&mut batch).is_err() {
        // A value that is JSON, but cannot be represented, such as 1e999.
        batch.answers.push(not_json().to_string());
    }
    // TRex answers a batch of one with an object, and an empty one with null.
    match batch.answers.as_mut_slice() {
        [] => Value::Null.to_string(),
        [answer] => std::mem::take(answer),
        answers => format!("[{}]", answers.join(",")),
    }
}

/// Executes the requests of a batch one by one, so that the memory of one serves the next.
struct Batch<'a> {
    commands: &'a dyn Execute,
    answers: Vec<String>,
}

impl<'de> Visitor<'de> for &mut Batch<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut requests: A) -> Result<(), A::Error> {
        while let Some(request) = requests.next_element()? {
            self.answers.push(answer_one(&request, self.commands).to_string());
        }
        Ok(())
    }
}

fn answer_one(request: &Value, commands: &dyn Execute) -> Value {
    let id = request.get("id").filter(|id| !id.is_null());
    let outcome = execute(request, id, commands);
    let id = id.cloned().unwrap_or_default();
    let mut answer = Map::new();
    match outcome {
        Ok(result) => answer.insert("result".to_owned(), result),
        Err(error) => answer.insert("error".to_owned(), error.document()),
    };
    answer.insert("id".to_owned(), id);
    answer.insert("jsonrpc".to_owned(), "2.0".into());
    Value::Object(answer)
}

fn execute(request: &Value, id: Option<&Value>, commands: &dyn Execute) -> Answer {
    if id.is_none() {
        return Err(RpcError::parse("Missing 'id' field"));
    }
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(RpcError::parse("Invalid JSONRPC Version"));
    }
    let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
    if method.is_empty() {
        return Err(RpcError::parse("Missing Method Name"));
    }
    let answer = commands.execute(method, request.get("params"));
    answer.unwrap_or_else(|| Err(RpcError::unregistered(method)))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Execute for Echo {
        fn execute(&self, method: &str, parameters: Option<&Value>) -> Option<Answer> {
            match method {
                "echo" => Some(Ok(parameters.cloned().unwrap_or_default())),
                "fail" => Some(Err(RpcError::execution("no"))),
                _ => None,
            }
        }
    }

    fn ask(text: &str) -> Value {
        serde_json::from_slice(&answer(text.as_bytes(), &Echo)).unwrap()
    }

    #[test]
    fn each_request_has_one_answer_and_a_batch_of_one_is_an_object() {
        let echo = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo","params":[{id}]}}"#);
        let one = json!({"jsonrpc": "2.0", "id": 1, "result": [1]});
        assert_eq!(ask(&echo(1)), one);
        assert_eq!(ask(&format!("[{}]", echo(1))), one);
        assert_eq!(ask("[]"), Value::Null);
        let two = ask(&format!("[{}, {}]", echo(1), echo(2)));
        assert_eq!(two[1]["id"], 2);
        let packed = answer(&pack(echo(1).as_bytes()), &Echo);
        assert_eq!(unpack(&packed).unwrap().text, one.to_string().as_bytes());
    }

    #[test]
    fn batch_ends_at_a_value_that_cannot_be_represented() {
        let echo = r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[]}"#;
        let answers = ask(&format!("[{echo}, 1e999, {echo}]"));
        assert_eq!(answers[0]["result"], json!([]));
        assert_eq!(answers[1]["error"]["code"], -32700);
        assert_eq!(answers.as_array().unwrap().len(), 2);
    }

    #[test]
    fn errors_have_the_codes_of_trex() {
        let code = |text: &str| ask(text)["error"]["code"].as_i64().unwrap();
        assert_eq!(code("{"), -32700);
        assert_eq!(code("[{}, {]"), -32700);
        assert_eq!(code("1"), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"echo"}"#), -32600);
        assert_eq!(code(r#"{"id":1,"method":"echo"}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"other"}"#), -32601);
        let failed = ask(r#"{"jsonrpc":"2.0","id":1,"method":"fail"}"#);
        assert_eq!(failed["error"]["code"], -32000);
        assert_eq!(failed["error"]["specific_err"], "no");
    }
}
