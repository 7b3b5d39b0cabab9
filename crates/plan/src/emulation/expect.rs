//! Parses the steps that read received data: `receive`, `expect` and `extract`.

use wirestorm_model::program::{
    Composition, Condition, Delimiter, MessageFraming, MessagePart, Piece, Step,
};
use wirestorm_wire::pattern::Pattern;

use super::composition::{read_hex, read_text};
use super::names::Names;
use super::steps::need_payload_bytes;
use super::types::{Server, Template, Transport};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

pub(super) const RECEIVE: [&str; 3] = ["until", "message", "bytes"];
pub(super) const MESSAGES: [&str; 4] = ["http", "http_head", "reply", "rtsp"];
pub(super) const EXPECT: [&str; 4] = ["text", "hex", "contains", "pattern"];
/// Label for a failed `expect`, next to one of [`EXPECT`].
pub(super) const OTHERWISE: &str = "on_failure";
pub(super) const PART: [&str; 5] = ["pattern", "group", "between", "offset", "length"];
/// Number of bytes of a message that a flow keeps for checks.
pub(super) const CHECKED_BYTES_MAX: u64 = 64 << 10;
pub(super) fn read_receive(place: &ValueAt<'_>) -> Result<Step, PlanError> {
    if !place.value().is_object() {
        return place.integer(1, u64::MAX).map(Step::Receive);
    }
    let (what, value) = place.choice(&RECEIVE)?;
    let received = match what {
        "bytes" => return value.integer(1, u64::MAX).map(Step::ReceiveOrFail),
        "until" => {
            let expected = format!("a text of 1 to {} bytes", Delimiter::LENGTH_MAX);
            let text = value.string(&expected)?.as_bytes();
            MessageFraming::Until(Delimiter::new(text).ok_or_else(|| value.unexpected(expected))?)
        }
        _ if value.value() == "http" => MessageFraming::Http,
        _ if value.value() == "http_head" => MessageFraming::HttpHead,
        _ if value.value() == "reply" => MessageFraming::Reply,
        _ if value.value() == "rtsp" => MessageFraming::Rtsp,
        _ => return Err(value.unexpected(MESSAGES.join(", "))),
    };
    Ok(Step::ReceiveMessage(received))
}

/// Reads the step `expect`: the expected content, and the label of a flow that fails.
pub(super) fn read_expect_step(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    let Some(otherwise) = place.value().get(OTHERWISE) else {
        return Ok(Step::Expect { expected: read_expect(place, names)?, on_failure: None });
    };
    let label = names.jump(&place.child(OTHERWISE, otherwise))?;
    let mut rest = place.value().clone();
    rest.as_object_mut().and_then(|fields| fields.remove(OTHERWISE));
    let expected = read_expect(&place.with(&rest), names)?;
    Ok(Step::Expect { expected, on_failure: Some(label) })
}

pub(super) fn read_expect(place: &ValueAt<'_>, names: &Names) -> Result<Condition, PlanError> {
    require_receive(place, names)?;
    let of_pieces = |pieces| Composition { pieces, ..Composition::default() };
    if let Some(text) = place.value().as_str() {
        let expected = Condition::Equals(of_pieces(read_text(text, place, names)?));
        return check_length(expected, place);
    }
    if !place.value().is_object() {
        return Err(place.unexpected(format!("a text, or a field: {}", EXPECT.join(", "))));
    }
    let (what, value) = place.choice(&EXPECT)?;
    let text = || read_text(value.string("a text")?, &value, names).map(of_pieces);
    let expected = match what {
        "text" => Condition::Equals(text()?),
        "hex" => Condition::Equals(of_pieces(vec![Piece::Bytes(read_hex(&value)?)])),
        "contains" => Condition::Contains(text()?),
        _ => Condition::Matches(read_pattern(&value)?),
    };
    check_length(expected, &value)
}

/// Refuses expected content that is empty or longer than [`CHECKED_BYTES_MAX`].
fn check_length(expected: Condition, place: &ValueAt<'_>) -> Result<Condition, PlanError> {
    let (Condition::Equals(composition) | Condition::Contains(composition)) = &expected else {
        return Ok(expected);
    };
    match composition.pieces.as_slice() {
        [] => Err(place.unexpected("something to expect")),
        _ if composition.length_min() as u64 > CHECKED_BYTES_MAX => {
            let found = format!("{} bytes", composition.length_min());
            Err(place
                .error(found, format!("at most {CHECKED_BYTES_MAX}, the most that a flow checks")))
        }
        _ => Ok(expected),
    }
}

pub(super) fn read_extract(place: &ValueAt<'_>, names: &mut Names) -> Result<Step, PlanError> {
    const WHAT: &str = "a name and what it becomes, such as {token: {pattern: \"id=(\\d+)\"}}";
    require_receive(place, names)?;
    let mut entries = place.entries(WHAT)?;
    let (Some((name, value)), None) = (entries.pop(), entries.pop()) else {
        return Err(place.unexpected(WHAT));
    };
    let part = read_part(&value)?;
    Ok(Step::Extract { text: names.text(name, &value)?, part })
}

fn read_part(place: &ValueAt<'_>) -> Result<MessagePart, PlanError> {
    let fields = place.fields(&PART)?;
    let field = |name| fields.get(name);
    let parts =
        (field("pattern"), field("group"), field("between"), field("offset"), field("length"));
    match parts {
        (Some(pattern), group, None, None, None) => {
            let pattern = read_pattern(&pattern)?;
            let groups = pattern.groups() as u64;
            // Default: the first group if the pattern has one, else the whole match.
            let group = group.map_or(Ok(groups.min(1)), |it| it.integer(0, groups))?;
            Ok(MessagePart::Group(pattern, group as u16))
        }
        (None, None, Some(between), None, None) => {
            const EXPECTED: &str = "two texts, such as [\"id=\", \"&\"]";
            let texts = between.items("two texts")?;
            let [before, behind] = texts.as_slice() else {
                return Err(between.unexpected(EXPECTED));
            };
            let text = |place: &ValueAt<'_>| match place.text(EXPECTED)? {
                "" => Err(place.unexpected("a text of at least one byte")),
                text => Ok(text.as_bytes().to_vec()),
            };
            Ok(MessagePart::Between(text(before)?, text(behind)?))
        }
        (None, None, None, Some(offset), Some(length)) => Ok(MessagePart::Bytes {
            offset: offset.integer(0, CHECKED_BYTES_MAX - 1)? as u32,
            length: length.integer(1, TEXT_MAX)? as u32,
        }),
        _ => Err(place.message_error(
            "select a part by `pattern` (with `group`), by `between`, or by `offset` and `length`",
        )),
    }
}

/// Maximum length of a text variable in bytes.
pub(super) const TEXT_MAX: u64 = 16 << 10;

fn read_pattern(place: &ValueAt<'_>) -> Result<Pattern, PlanError> {
    let text = place.string("a regular expression")?;
    Pattern::new(text).map_err(|error| {
        // The last line has the reason, the lines before it show the position.
        let why = error.lines().last().unwrap_or_default();
        let why = why.strip_prefix("error: ").unwrap_or(why);
        place.error(format!("{text:?} ({why})"), "a regular expression")
    })
}

/// Refuses a step that reads received data if no earlier step receives any.
fn require_receive(place: &ValueAt<'_>, names: &Names) -> Result<(), PlanError> {
    if names.receives {
        return Ok(());
    }
    Err(place.message_error("no earlier step receives data"))
}

/// Refuses payload steps in a TCP server's program if first bytes select the server at its port. A
/// flow with such steps must know its template from the start.
pub(super) fn check(template: &Template, all: &[Template]) -> Result<(), PlanError> {
    let Some(server) = template.server.as_ref().filter(|it| need_payload_bytes(&it.program)) else {
        return Ok(());
    };
    let Some(listen) = server.listen else { return Ok(()) };
    let is_looked_at = |other: &Server| {
        (other.transmit, other.listen) == (server.transmit, server.listen)
            && other.first_bytes.is_some()
    };
    let of_tcp = |it: &&Template| it.transport == Transport::Tcp;
    let mut servers = all.iter().filter(of_tcp).filter_map(|it| it.server.as_ref());
    if template.transport == Transport::Udp || !servers.any(is_looked_at) {
        return Ok(());
    }
    let message = format!(
        "found steps that write values or read received data at port {}, where first_bytes select \
         the server: use another port",
        listen
    );
    Err(PlanError { path: format!("{}.server.program", template.path), message })
}
