//! HTTP/1.1 (RFC 9110, RFC 9112), and the same messages over HTTP/2 (RFC 9113).

use wirestorm_model::program::Variable;
use wirestorm_model::program::{
    Composition, Condition, JumpCondition, Label, MessageFraming, Piece, Step,
};
use wirestorm_wire::conversation::Side;
use wirestorm_wire::pattern::Pattern;

use super::dialogue_lines::{Line, PlayedSides};
use super::headers::{Headers, is_token};
use super::values::{Content, EXPANDED_MAX, TextKind, wait, word, word_of_kind};
use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::composition::{may_have_values, read_text};
use crate::emulation::control_steps;
use crate::emulation::names::Names;

pub(in crate::emulation) const HTTP: [&str; 13] = [
    "version",
    "set",
    "method",
    "path",
    "host",
    "headers",
    "body",
    "requests",
    "pipeline",
    "think_time",
    "reconnect",
    "response_bytes",
    "response",
];
pub(in crate::emulation) const RESPONSE: [&str; 5] =
    ["status", "headers", "body", "chunk", "delay"];

/// Transaction from the first request of a pipeline until its last response.
const TRANSACTION: &str = "http";

/// Maximum number of requests of a connection, and of bytes of a response.
const COUNT_MAX: u64 = 1 << 30;

/// Header fields of both sides that other keys of the plan determine.
const DETERMINED_BY_PLAN: [&str; 3] = ["Content-Length", "Transfer-Encoding", "Connection"];

/// Returns whether the version is HTTP/2.
pub(super) fn is_version_2(place: &ValueAt<'_>) -> Result<bool, PlanError> {
    let Some(version) = place.fields(&HTTP)?.get("version") else { return Ok(false) };
    match version.number_text().as_deref() {
        Some("1.1") => Ok(false),
        Some("2") => Ok(true),
        _ => Err(version.unexpected("1.1 or 2")),
    }
}

/// Returns whether the programs parse messages, instead of counting bytes of known length.
///
/// HTTP/2 and other hosts' messages need parsing, and so do requests with values.
/// `has_server_selection` is whether `first_bytes` selects the server among several at its port.
/// Such a server cannot parse messages.
pub(super) fn follows_messages(
    place: &ValueAt<'_>,
    who: PlayedSides,
    has_server_selection: bool,
) -> Result<bool, PlanError> {
    let fields = place.fields(&HTTP)?;
    let has_response_bytes = fields.get("response_bytes").is_some();
    Ok(match who {
        _ if is_version_2(place)? => true,
        // The length of a request with values is not known in advance.
        PlayedSides::Both => may_differ(&fields) && !has_server_selection && !has_response_bytes,
        PlayedSides::Client => !has_response_bytes,
        PlayedSides::Server => !has_server_selection,
    })
}

/// Returns whether requests may contain values.
fn may_differ(fields: &Fields<'_>) -> bool {
    let values = ["path", "host"].into_iter().filter_map(|name| fields.get(name)?.number_text());
    let headers = fields.get("headers");
    let headers = headers.iter().filter_map(|it| it.value().as_object()).flat_map(|it| it.values());
    let mut texts = values.chain(headers.filter_map(|it| it.as_str().map(str::to_owned)));
    fields.get("set").is_some() || texts.any(|it| may_have_values(&it))
}

/// Returns the dialogue of HTTP/1.1 without parsing of messages.
pub(super) fn read(place: &ValueAt<'_>, who: PlayedSides) -> Result<Vec<Line>, PlanError> {
    let HttpPreset { exchange, request, response, think, .. } = read_preset(place, who, false)?;
    let count = exchange.pipeline;
    let request = match request {
        Request::Same(content) => content,
        Request::PerRequest { .. } => return Err(no_values(place)),
    };
    let mut lines = vec![times(place, Side::Client, request, count)?];
    match exchange.response_bytes {
        Some(bytes) => lines.push(Line::Receives { side: Side::Client, bytes: bytes * count }),
        None => {
            lines.extend(response.wait);
            lines.push(times(place, Side::Server, response.content, count)?);
        }
    }
    let mut lines = Line::timed(TRANSACTION, lines);
    if exchange.closes() {
        // Other hosts' servers may ignore `Connection: close`. The response is complete, so the
        // client closes.
        let has_response_bytes = exchange.response_bytes.is_some();
        lines.push(Line::Closes(if has_response_bytes { Side::Client } else { Side::Server }));
        return Ok(lines);
    }
    if who == PlayedSides::Server {
        return Ok(vec![Line::Repeat { times: None, lines }]);
    }
    let rounds = exchange.requests / count;
    if rounds > 1 {
        let mut repeated = lines.clone();
        repeated.extend(think);
        let step = exchange.look_for_close(false);
        repeated.push(Line::Waits { side: Side::Client, step });
        lines.insert(0, Line::Repeat { times: Some(rounds - 1), lines: repeated });
    }
    lines.push(Line::Closes(Side::Client));
    Ok(lines)
}

/// Returns the error for requests with values in programs that do not parse messages.
fn no_values(place: &ValueAt<'_>) -> PlanError {
    let response_bytes = place.fields(&HTTP).ok().and_then(|it| it.get("response_bytes"));
    match response_bytes {
        Some(response_bytes) => {
            response_bytes.message_error("cannot be set if requests have values; remove it")
        }
        None => place.error("requests with values", "none, since `first_bytes` selects the server"),
    }
}

/// Returns the programs of client and server that parse HTTP/1 messages. Servers answer until the
/// client closes. Clients fail if a response is missing.
///
/// `streams` is the maximum number of concurrent HTTP/2 streams; `None`: HTTP/1.1.
pub(super) fn read_messages(
    place: &ValueAt<'_>,
    who: PlayedSides,
    streams: Option<u32>,
) -> Result<[Vec<Step>; 2], PlanError> {
    let HttpPreset { exchange, request, response, think, is_head } =
        read_preset(place, who, streams.is_some())?;
    let count = exchange.pipeline;
    // The program sends all pipelined requests before it reads a response. With fewer streams,
    // responses would pile up before all requests are sent.
    if let Some(streams) = streams
        && count > streams.into()
        && let Some(pipeline) = place.fields(&HTTP)?.get("pipeline")
    {
        return Err(pipeline.unexpected(format!("at most {streams}, the streams of http2")));
    }
    let wait = |line| match line {
        Some(Line::Waits { step, .. }) => Some(step),
        _ => None,
    };
    let send = |content| -> Result<Step, PlanError> {
        let Content { text, size, fill } = several(place, content, count)?;
        Ok(Step::Send { text, size, fill })
    };
    let several = |count: u64, steps: Vec<Step>| match count {
        0 => Vec::new(),
        1 => steps,
        count => vec![Step::Repeat { times: Some(count), steps }],
    };
    let response_to = if is_head { MessageFraming::HttpHead } else { MessageFraming::Http };
    let receive_response = match streams {
        Some(_) => Step::ReceiveMessage(MessageFraming::Http),
        None => Step::ReceiveMessageOrFail(response_to),
    };
    // RFC 9112 section 9.6: "A client that receives a "close" connection option MUST cease sending
    // requests on that connection". A connection of HTTP/2 has no such option.
    let keeps = Step::Expect { expected: Condition::KeepsConnection, on_failure: None };
    let keeps = streams.is_none().then_some(keeps);
    let (send_request, counter) = match request {
        Request::Same(content) => (vec![send(content)?], None),
        Request::PerRequest { mut set, head, counter } => {
            set.push(Step::SendComposed(head));
            // Pipelined requests do not wait for acknowledgements.
            let pipelined = (count > 1).then_some(Step::SetBlocking(false));
            (pipelined.into_iter().chain(several(count, set)).collect(), Some(counter))
        }
    };
    let mut ask = vec![Step::StartTransaction(TRANSACTION.to_owned())];
    ask.extend(send_request);
    match &keeps {
        None => ask.extend(several(count, vec![receive_response.clone()])),
        Some(keeps) => {
            ask.extend(several(count - 1, vec![receive_response.clone(), keeps.clone()]));
            ask.push(receive_response.clone());
        }
    }
    ask.push(Step::EndTransaction(TRANSACTION.to_owned()));
    // A client that reconnects does so only when it has another request.
    let keeps = keeps.filter(|_| !exchange.reconnects);
    let last = exchange.look_for_close(streams.is_none());
    let between = keeps.into_iter().chain(wait(think)).chain([last]).collect();
    // The client does not wait for the server's close after the last response, since a server may
    // ignore `Connection: close`.
    let client = rounds(exchange.requests / count, ask, between, counter);
    if streams.is_none() {
        return Ok([client, server(place, &exchange, response)?]);
    }
    let mut answers = several(count, vec![Step::ReceiveMessage(MessageFraming::Http)]);
    answers.extend(since_received(response.wait));
    answers.push(send(response.content)?);
    // Pipelined responses do not wait for acknowledgements.
    Ok([client, vec![Step::SetBlocking(false), Step::Repeat { times: None, steps: answers }]])
}

/// Returns `times` rounds with the steps `between` them.
///
/// With `counter`, a loop over this variable contains each step once. Steps that set a counter of
/// all flows need that, since each copy would be a separate counter.
fn rounds(
    times: u64,
    round: Vec<Step>,
    between: Vec<Step>,
    counter: Option<Variable>,
) -> Vec<Step> {
    const NEXT: Label = Label(0);
    const BETWEEN: Label = Label(1);
    const END: Label = Label(2);
    if times == 1 {
        return round;
    }
    let Some(variable) = counter else {
        let steps = [round.clone(), between].concat();
        return [vec![Step::Repeat { times: Some(times - 1), steps }], round].concat();
    };
    let jump = |to| Step::Jump { to, when: JumpCondition::Always };
    let mut steps = vec![Step::Set { variable, value: times }, Step::Label(NEXT)];
    steps.extend(round);
    steps.extend([
        Step::DecrementAndJump { variable, to: BETWEEN },
        jump(END),
        Step::Label(BETWEEN),
    ]);
    steps.extend(between);
    steps.extend([jump(NEXT), Step::Label(END)]);
    steps
}

/// Returns the server's program for HTTP/1.1: one response to each request. Requests may be of any
/// length and pipelined.
fn server(
    place: &ValueAt<'_>,
    exchange: &Exchange,
    response: Response,
) -> Result<Vec<Step>, PlanError> {
    const NEXT: Label = Label(0);
    const HEAD: Label = Label(1);
    const END: Label = Label(2);
    const OLD: Label = Label(3);
    let Response { head, content, unchunked, wait } = response;
    let is_head = Pattern::new(r"\AHEAD ").map_err(|error| place.message_error(error))?;
    let received = |to, it| Step::Jump { to, when: JumpCondition::Received(it) };
    // RFC 9112 section 9.6: "A server that receives a "close" connection option MUST initiate
    // closure of the connection [...] after it sends the final response".
    let next = (!exchange.closes()).then(|| received(NEXT, Condition::KeepsConnection));
    let mut steps = vec![
        Step::SetBlocking(false),
        Step::Label(NEXT),
        Step::ReceiveMessage(MessageFraming::Http),
    ];
    steps.extend(since_received(wait));
    steps.push(received(HEAD, Condition::Matches(is_head)));
    if unchunked.is_some() {
        let is_old = Pattern::new(r"\A\S+ \S+ HTTP/1\.0\r?\n")
            .map_err(|error| place.message_error(error))?;
        steps.push(received(OLD, Condition::Matches(is_old)));
    }
    steps.push(Step::Send { text: content.text, size: content.size, fill: content.fill });
    steps.extend(next.clone());
    steps.extend([Step::Jump { to: END, when: JumpCondition::Always }, Step::Label(HEAD)]);
    // RFC 9110 section 9.3.2: "the server MUST NOT send content in the response" to HEAD.
    steps.push(Step::Send { size: head.len() as u32, text: head, fill: Vec::new() });
    steps.extend(next);
    if let Some(Content { text, size, fill }) = unchunked {
        let end = Step::Jump { to: END, when: JumpCondition::Always };
        steps.extend([end, Step::Label(OLD), Step::Send { text, size, fill }]);
    }
    steps.push(Step::Label(END));
    Ok(steps)
}

/// Returns the server's delay step. A constant or uniform delay counts from the arrival of the
/// request, so pipelined requests are delayed in parallel. Other distributions count from the
/// previous response.
fn since_received(wait: Option<Line>) -> Option<Step> {
    match wait {
        Some(Line::Waits { step: Step::Delay { min, max }, .. }) => {
            Some(Step::DelaySinceReceived { min, max })
        }
        Some(Line::Waits { step, .. }) => Some(step),
        _ => None,
    }
}

/// Messages and timing of both sides.
struct HttpPreset {
    exchange: Exchange,
    request: Request,
    response: Response,
    think: Option<Line>,
    /// Whether the method is HEAD.
    is_head: bool,
}

fn read_preset(
    place: &ValueAt<'_>,
    who: PlayedSides,
    is_version_2: bool,
) -> Result<HttpPreset, PlanError> {
    let fields = place.fields(&HTTP)?;
    let method = word(fields.get("method"), "GET")?;
    if !is_token(&method) {
        return Err(fields.required("method", "a method")?.unexpected("a method such as GET"));
    }
    let exchange = read_exchange(&fields, who, is_version_2)?;
    Ok(HttpPreset {
        request: read_request(place, &fields, &method, &exchange)?,
        response: read_response(fields.get("response"), &method, &exchange)?,
        think: wait(fields.get("think_time"), Side::Client)?,
        is_head: method == "HEAD",
        exchange,
    })
}

/// Settings of one connection.
struct Exchange {
    is_version_2: bool,
    requests: u64,
    /// Number of requests that are sent before their first response is read.
    pipeline: u64,
    /// Size in bytes of a response from other hosts' servers.
    response_bytes: Option<u64>,
    /// Whether a client opens a new connection if the server closes between two requests.
    reconnects: bool,
}

impl Exchange {
    /// Returns whether the server closes after its response, and both send `Connection: close`.
    const fn closes(&self) -> bool {
        self.requests == 1 && !self.is_version_2
    }

    /// Returns the client's step before its next request. The server may have closed meanwhile, as
    /// servers do with connections that are idle or have carried many requests.
    ///
    /// RFC 9112 section 9.5: "A client, server, or proxy MAY close the transport connection at any
    /// time", and "Implementations SHOULD constantly monitor open connections for a received
    /// closure signal and respond to it as appropriate".
    const fn look_for_close(&self, follows_http: bool) -> Step {
        match self.reconnects {
            true => Step::Reconnect { follows_http },
            false => Step::FailIfClosed,
        }
    }
}

fn read_exchange(
    fields: &Fields<'_>,
    who: PlayedSides,
    is_version_2: bool,
) -> Result<Exchange, PlanError> {
    let number = |name: &str, most: u64| {
        fields.get(name).map(|it| it.integer(1, most).map(|number| (it, number))).transpose()
    };
    let requests = number("requests", COUNT_MAX)?;
    let response_bytes = number("response_bytes", COUNT_MAX)?;
    let count = requests.as_ref().map_or(1, |(_, count)| *count);
    let pipeline = number("pipeline", count)?;
    if let Some((place, _)) = &response_bytes
        && is_version_2
    {
        return Err(place.message_error("is for HTTP/1.1: HTTP/2 messages carry their length"));
    }
    if let Some((place, _)) = &response_bytes
        && who != PlayedSides::Client
    {
        return Err(place.message_error("is for other hosts' servers: this template has one"));
    }
    let reconnect = fields.get("reconnect");
    if let Some(place) = reconnect.as_ref().filter(|_| who == PlayedSides::Server) {
        return Err(place.message_error("is for clients: this template has none"));
    }
    if let Some((place, pipeline)) = &pipeline {
        if who == PlayedSides::Server && *pipeline > 1 {
            return Err(place.message_error("is for clients: this template has none"));
        }
        if !count.is_multiple_of(*pipeline) {
            return Err(place.unexpected(format!("a divisor of the {count} requests")));
        }
    }
    Ok(Exchange {
        is_version_2,
        requests: count,
        pipeline: pipeline.map_or(1, |(_, pipeline)| pipeline),
        response_bytes: response_bytes.map(|(_, bytes)| bytes),
        reconnects: reconnect.map_or(Ok(true), |it| it.boolean())?,
    })
}

/// Request of a client.
enum Request {
    /// The same for all flows.
    Same(Content),
    /// With values, which are set before each request.
    PerRequest {
        set: Vec<Step>,
        /// The request, with its body.
        head: Composition,
        /// Variable for the loop over requests; no other step uses it.
        counter: Variable,
    },
}

fn read_request(
    place: &ValueAt<'_>,
    fields: &Fields<'_>,
    method: &str,
    exchange: &Exchange,
) -> Result<Request, PlanError> {
    let mut names = Names::default();
    let mut set = Vec::new();
    if let Some(place) = fields.get("set") {
        for (name, value) in place.entries("values, such as {n: {counter: 1}}")? {
            set.push(control_steps::read_setting(name, &value, &mut names)?);
        }
        // The loop over pipelined requests, or over their responses.
        names.record_loop_depth(1);
    }
    let texts = TextKind::WithValues(&names);
    let path = word_of_kind(fields.get("path"), "/", texts)?;
    let host = word_of_kind(fields.get("host"), "www.example.net", texts)?;
    let usual = [("Host", host.as_str()), ("User-Agent", "wirestorm"), ("Accept", "*/*")];
    let determined = [&DETERMINED_BY_PLAN[..], &["Host"]].concat();
    let mut headers = Headers::read(fields.get("headers"), &usual, &determined, texts)?;
    if exchange.closes() {
        headers.push("Connection", "close");
    }
    let body = fields.get("body").map(|it| Content::read(&it)).transpose()?;
    if let Some(body) = &body {
        headers.push("Content-Length", body.size);
    }
    let head = headers.behind(&format!("{method} {path} HTTP/1.1"));
    let mut head =
        Composition { pieces: read_text(&head, place, &names)?, ..Composition::default() };
    let counter = names.anonymous_variable();
    names.finish(place)?;
    if let Some(bytes) = head.fixed_bytes().filter(|_| set.is_empty()) {
        return Ok(Request::Same(behind(bytes, body.unwrap_or_default())));
    }
    if let (Some(body), Some(place)) = (body, fields.get("body")) {
        if u64::from(body.size) > Composition::LENGTH_MAX as u64 {
            let expected = format!("at most {} bytes with values", Composition::LENGTH_MAX as u64);
            return Err(place.unexpected(expected));
        }
        head.pieces.push(Piece::Bytes(body.expanded(&place)?));
    }
    Ok(Request::PerRequest { set, head, counter })
}

/// Response of a server, and its delay.
struct Response {
    /// Head without the body, for HEAD.
    head: Vec<u8>,
    content: Content,
    /// Response without chunks, for clients of HTTP/1.0; `None`: `content` has no chunks either.
    /// RFC 9112 section 6.1: "A server MUST NOT send a response containing Transfer-Encoding unless
    /// the corresponding request indicates HTTP/1.1".
    unchunked: Option<Content>,
    wait: Option<Line>,
}

fn read_response(
    place: Option<ValueAt<'_>>,
    method: &str,
    exchange: &Exchange,
) -> Result<Response, PlanError> {
    let response_fields = place.map(|place| place.fields(&RESPONSE)).transpose()?;
    let get = |name: &str| response_fields.as_ref().and_then(|it| it.get(name));
    let status = get("status").map_or(Ok(200), |it| it.integer(200, 599))?;
    let (body, chunk) = (get("body"), get("chunk"));
    // RFC 9110 sections 15.3.5 and 15.4.5: these responses have no content.
    let is_empty = matches!(status, 204 | 304);
    if is_empty && let Some(part) = body.as_ref().or(chunk.as_ref()) {
        return Err(part.message_error(format!("a response of status {status} has no body")));
    }
    let is_text =
        body.as_ref().is_some_and(|it| !it.value()["text"].is_null() || it.value().is_string());
    let kind = if is_text { "text/html" } else { "application/octet-stream" };
    let usual = [("Server", "wirestorm"), ("Content-Type", kind)];
    let usual = if is_empty { &usual[..1] } else { &usual };
    let mut headers = Headers::read(get("headers"), usual, &DETERMINED_BY_PLAN, TextKind::Same)?;
    if exchange.closes() {
        headers.push("Connection", "close");
    }
    if let Some(chunk) = chunk.as_ref().filter(|_| exchange.is_version_2) {
        return Err(chunk.message_error("is for HTTP/1.1: HTTP/2 has no chunks"));
    }
    let mut content = body.map_or_else(|| Ok(Content::default()), |it| Content::read(&it))?;
    let status_line = format!("HTTP/1.1 {status} {}", reason(status));
    let mut unchunked = None;
    match chunk {
        Some(place) => {
            let mut of_old = headers.clone();
            of_old.set("Connection", "close".to_owned());
            of_old.push("Content-Length", content.size);
            unchunked = Some(behind(of_old.behind(&status_line).into_bytes(), content.clone()));
            headers.push("Transfer-Encoding", "chunked");
            content = chunked(&content.expanded(&place)?, place.integer(1, EXPANDED_MAX)? as usize);
        }
        None if is_empty => {}
        None => headers.push("Content-Length", content.size),
    }
    // RFC 9110 section 9.3.2: a response to HEAD has the same header fields, but no content.
    if method == "HEAD" {
        content = Content::default();
    }
    let head = headers.behind(&status_line).into_bytes();
    let wait = wait(get("delay"), Side::Server)?;
    Ok(Response { content: behind(head.clone(), content), head, unchunked, wait })
}

/// Encodes a body in chunks of `chunk` bytes (RFC 9112 section 7.1).
fn chunked(body: &[u8], chunk: usize) -> Content {
    let mut text = Vec::with_capacity(body.len() + body.len() / chunk * 8 + 16);
    for chunk in body.chunks(chunk) {
        text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        text.extend_from_slice(chunk);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"0\r\n\r\n");
    Content { size: text.len() as u32, text, fill: Vec::new() }
}

/// Joins a head and a body.
fn behind(head: Vec<u8>, body: Content) -> Content {
    let size = (head.len() as u32).saturating_add(body.size);
    Content { text: [head, body.text].concat(), size, fill: body.fill }
}

/// Returns a line in which a side sends the content `count` times at once.
fn times(place: &ValueAt<'_>, side: Side, content: Content, count: u64) -> Result<Line, PlanError> {
    let Content { text, size, fill } = several(place, content, count)?;
    Ok(Line::Sends { side, text, size, fill })
}

/// Repeats the content `count` times, up to [`EXPANDED_MAX`] bytes.
fn several(place: &ValueAt<'_>, content: Content, count: u64) -> Result<Content, PlanError> {
    if count == 1 {
        return Ok(content);
    }
    let Content { text, size, fill } = content;
    if u64::from(size).saturating_mul(count) > EXPANDED_MAX {
        let found = format!("{count} times {size} bytes at once");
        return Err(place.error(found, format!("at most {EXPANDED_MAX} bytes")));
    }
    let text = Content { text, size, fill }.expanded(place)?.repeat(count as usize);
    let size = text.len() as u32;
    Ok(Content { text, size, fill: Vec::new() })
}

/// Returns the reason phrase of a status (RFC 9110 section 15), or an empty text.
const fn reason(status: u64) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
