//! DNS over UDP: RFC 1035.

use wirestorm_base::time::Duration;
use wirestorm_model::program::{
    Composition, Condition, JumpCondition, Label, MessagePart, Piece, Step, Value, ValueFormat,
};
use wirestorm_model::program::{TextVariable, Variable};
use wirestorm_wire::conversation::Side;
use wirestorm_wire::pattern::Pattern;

use super::dialogue_lines::Line;
use super::idle_timeout::{idle_timeout, longest_delay};
use super::values::{wait, word};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

pub(in crate::emulation) const DNS: [&str; 5] = ["name", "type", "answers", "queries", "delay"];

/// Maximum lengths of labels and names in bytes (section 2.3.4).
const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 253;

/// Settings of the preset.
struct DnsSettings {
    labels: Vec<String>,
    is_ipv6: bool,
    answers: u16,
    queries: u16,
    wait: Option<Line>,
}

fn read_settings(place: &ValueAt<'_>) -> Result<DnsSettings, PlanError> {
    let fields = place.fields(&DNS)?;
    let name = word(fields.get("name"), "www.example.net")?;
    let labels: Vec<_> = name.trim_end_matches('.').split('.').map(str::to_owned).collect();
    if name.len() > NAME_MAX || labels.iter().any(|it| !(1..=LABEL_MAX).contains(&it.len())) {
        return Err(fields
            .required("name", "a name")?
            .unexpected("a name such as www.example.net"));
    }
    let is_ipv6 = match fields.get("type") {
        None => false,
        Some(place) => match place.text("A or AAAA")? {
            "A" => false,
            "AAAA" => true,
            _ => return Err(place.unexpected("A or AAAA")),
        },
    };
    // 40 AAAA records, the question and the headers fit an Ethernet frame.
    let answers = fields.get("answers").map_or(Ok(1), |it| it.integer(0, 40))? as u16;
    let queries = fields.get("queries").map_or(Ok(1), |it| it.integer(1, 10_000))? as u16;
    let wait = wait(fields.get("delay"), Side::Server)?;
    Ok(DnsSettings { labels, is_ipv6, answers, queries, wait })
}

/// Returns the dialogue of Wirestorm's own clients and servers.
pub(super) fn read(place: &ValueAt<'_>) -> Result<Vec<Line>, PlanError> {
    let DnsSettings { labels, is_ipv6, answers, queries, wait } = read_settings(place)?;
    let mut lines = Vec::new();
    for number in 1..=queries {
        let question = Question { number, labels: &labels, is_ipv6 };
        let asks = [Line::client(question.query())].into_iter().chain(wait.clone());
        lines.extend(Line::timed("dns", asks.chain([Line::server(question.answer(answers))])));
    }
    Ok(lines)
}

/// Returns the program of a client for other hosts' servers. It ignores answers with another ID and
/// fails at a response code other than NOERROR.
pub(super) fn client(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    let DnsSettings { labels, is_ipv6, queries, wait, .. } = read_settings(place)?;
    let mut steps: Vec<_> = stay_through(&steps_of(wait)).into_iter().collect();
    for number in 1..=queries {
        let text = Question { number, labels: &labels, is_ipv6 }.query();
        let again = Label(number.into());
        let when = JumpCondition::Received(Condition::NotDnsAnswer(number));
        steps.extend([
            Step::StartTransaction("dns".to_owned()),
            Step::SendDatagram { size: text.len() as u32, text, fill: Vec::new() },
            Step::Label(again),
            Step::ReceiveDatagrams { count: 1, clear: true },
            Step::Jump { to: again, when },
            Step::Expect { expected: Condition::DnsNoError, on_failure: None },
            Step::EndTransaction("dns".to_owned()),
        ]);
    }
    Ok(steps)
}

/// Returns the program of a server for other hosts' clients. It answers queries for any name: with
/// the plan's records if the type is the plan's, else with none.
///
/// A flow answers `queries` queries. The next query starts a new flow, since a client does not
/// announce its last query.
pub(super) fn server(place: &ValueAt<'_>) -> Result<Vec<Step>, PlanError> {
    /// ID and question of the query, and the flags of the answer.
    const ID: TextVariable = TextVariable::named(0);
    const QUESTION: TextVariable = TextVariable::named(1);
    const FLAGS: Variable = Variable::named(0);
    const OURS: Label = Label(0);
    const KNOWN: Label = Label(1);
    const END: Label = Label(2);
    let DnsSettings { is_ipv6, answers, queries, wait, .. } = read_settings(place)?;
    let pattern = |text: &str| Pattern::new(text).map_err(|error| place.message_error(error));
    // A query (section 4.1.1) with one question. Its name ends at the first zero byte, which holds
    // for names without zero bytes in their labels.
    let question = pattern(r"(?s)\A..[\x00\x01].\x00\x01.{6}([^\x00]{0,254}\x00....)")?;
    let kind = record_type(is_ipv6);
    let is_ours = pattern(&format!(r"(?s)\A.{{12}}[^\x00]*\x00\x00\x{kind:02x}\x00\x01"))?;
    let is_recursive = pattern(r"(?s)\A..\x01")?;
    let received =
        |to, it| Step::Jump { to, when: JumpCondition::Received(Condition::Matches(it)) };
    let answer = |count: u16| {
        let mut records = Vec::new();
        push_records(&mut records, is_ipv6, count);
        let counts: Vec<u8> = [1, count, 0, 0].into_iter().flat_map(u16::to_be_bytes).collect();
        let pieces = vec![
            Piece::Value(Value::Text(ID), ValueFormat::Plain),
            Piece::Value(Value::Number(FLAGS), ValueFormat::Width(2)),
            Piece::Bytes(counts),
            Piece::Value(Value::Text(QUESTION), ValueFormat::Plain),
            Piece::Bytes(records),
        ];
        Step::SendComposedDatagram(Composition { pieces, ..Composition::default() })
    };
    let wait = steps_of(wait);
    let stay = stay_through(&wait);
    let mut steps = vec![Step::ReceiveDatagrams { count: 1, clear: true }];
    steps.extend(wait);
    steps.extend([
        Step::Extract { text: ID, part: MessagePart::Bytes { offset: 0, length: 2 } },
        Step::Extract { text: QUESTION, part: MessagePart::Group(question, 1) },
        // RFC 1035 section 4.1.1: whether recursion is desired "is copied into the response".
        Step::Set { variable: FLAGS, value: ANSWERS.into() },
        received(KNOWN, is_recursive),
        Step::Set { variable: FLAGS, value: (ANSWERS & !RECURSION_DESIRED).into() },
        Step::Label(KNOWN),
        received(OURS, is_ours),
        answer(0),
        Step::Jump { to: END, when: JumpCondition::Always },
        Step::Label(OURS),
        answer(answers),
        Step::Label(END),
    ]);
    if queries > 1 {
        steps = vec![Step::Repeat { times: Some(queries.into()), steps }];
    }
    Ok(stay.into_iter().chain(steps).collect())
}

fn steps_of(wait: Option<Line>) -> Vec<Step> {
    match wait {
        Some(Line::Waits { step, .. }) => vec![step],
        _ => Vec::new(),
    }
}

/// Returns the step that keeps a flow open during the server's delay, if it needs one.
fn stay_through(wait: &[Step]) -> Option<Step> {
    idle_timeout(longest_delay(wait), Duration::ZERO)
}

/// Flag RD, recursion desired (section 4.1.1).
const RECURSION_DESIRED: u16 = 0x0100;
/// Flags of an answer: QR, RD, and RA, recursion available.
const ANSWERS: u16 = 0x8080 | RECURSION_DESIRED;

/// Returns the record type: A (1) or AAAA (28).
const fn record_type(is_ipv6: bool) -> u16 {
    if is_ipv6 { 28 } else { 1 }
}

/// Appends `count` records for the name at offset 12, the name of the question.
fn push_records(message: &mut Vec<u8>, is_ipv6: bool, count: u16) {
    for number in 1..=count {
        // Compression pointer to offset 12 (section 4.1.4), type, class IN, TTL of 3,600 s.
        let kind = record_type(is_ipv6);
        message.extend([0xc00c, kind, 1, 0, 3_600].into_iter().flat_map(u16::to_be_bytes));
        let address: &[u8] = match is_ipv6 {
            true => &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number as u8],
            false => &[192, 0, 2, number as u8],
        };
        message.extend((address.len() as u16).to_be_bytes());
        message.extend_from_slice(address);
    }
}

struct Question<'a> {
    number: u16,
    labels: &'a [String],
    is_ipv6: bool,
}

impl Question<'_> {
    /// Returns a header with these flags and answer count, followed by the question.
    fn message(&self, flags: u16, answers: u16) -> Vec<u8> {
        let header = [self.number, flags, 1, answers, 0, 0];
        let mut message: Vec<u8> = header.into_iter().flat_map(u16::to_be_bytes).collect();
        for label in self.labels {
            message.push(label.len() as u8);
            message.extend_from_slice(label.as_bytes());
        }
        message.push(0);
        message.extend([record_type(self.is_ipv6), 1].into_iter().flat_map(u16::to_be_bytes));
        message
    }

    fn query(&self) -> Vec<u8> {
        self.message(RECURSION_DESIRED, 0)
    }

    fn answer(&self, answers: u16) -> Vec<u8> {
        let mut message = self.message(ANSWERS, answers);
        push_records(&mut message, self.is_ipv6, answers);
        message
    }
}
