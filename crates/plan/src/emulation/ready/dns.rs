//! DNS over UDP: RFC 1035.

use wirestorm_wire::conversation::Side;

use super::dialogue::Line;
use super::words::{wait, word};
use crate::document::error::PlanError;
use crate::document::place::Place;

pub(in crate::emulation) const DNS: [&str; 5] = ["name", "type", "answers", "queries", "delay"];

/// Labels and names are no longer (section 2.3.4).
const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 253;

pub(super) fn read(place: &Place<'_>) -> Result<Vec<Line>, PlanError> {
    let fields = place.fields(&DNS)?;
    let name = word(fields.get("name"), "www.example.net")?;
    let labels: Vec<_> = name.trim_end_matches('.').split('.').collect();
    if name.len() > NAME_MAX || labels.iter().any(|it| !(1..=LABEL_MAX).contains(&it.len())) {
        return Err(fields.need("name", "a name")?.wrong("a name such as www.example.net"));
    }
    let is_ipv6 = match fields.get("type") {
        None => false,
        Some(place) => match place.text("A or AAAA")? {
            "A" => false,
            "AAAA" => true,
            _ => return Err(place.wrong("A or AAAA")),
        },
    };
    // So many fit a datagram of Ethernet.
    let answers = fields.get("answers").map_or(Ok(1), |it| it.integer(0, 40))? as u16;
    let queries = fields.get("queries").map_or(Ok(1), |it| it.integer(1, 10_000))?;
    let wait = wait(fields.get("delay"), Side::Server)?;
    let mut lines = Vec::new();
    for number in 1..=queries as u16 {
        let question = Question { number, labels: &labels, is_ipv6 };
        let asks = [Line::client(question.query())].into_iter().chain(wait.clone());
        lines.extend(Line::timed("dns", asks.chain([Line::server(question.answer(answers))])));
    }
    Ok(lines)
}

struct Question<'a> {
    number: u16,
    labels: &'a [&'a str],
    is_ipv6: bool,
}

impl Question<'_> {
    const fn kind(&self) -> u16 {
        if self.is_ipv6 { 28 } else { 1 }
    }

    /// The header, with these flags and so many answers, and the question behind it.
    fn message(&self, flags: u16, answers: u16) -> Vec<u8> {
        let header = [self.number, flags, 1, answers, 0, 0];
        let mut message: Vec<u8> = header.into_iter().flat_map(u16::to_be_bytes).collect();
        for label in self.labels {
            message.push(label.len() as u8);
            message.extend_from_slice(label.as_bytes());
        }
        message.push(0);
        message.extend([self.kind(), 1].into_iter().flat_map(u16::to_be_bytes));
        message
    }

    /// Recursion is desired.
    fn query(&self) -> Vec<u8> {
        self.message(0x0100, 0)
    }

    fn answer(&self, answers: u16) -> Vec<u8> {
        let mut message = self.message(0x8180, answers);
        for answer in 1..=answers {
            // The name is that of the question, at byte 12; an hour.
            message
                .extend([0xc00c, self.kind(), 1, 0, 3_600].into_iter().flat_map(u16::to_be_bytes));
            let address: &[u8] = match self.is_ipv6 {
                true => &[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, answer as u8],
                false => &[192, 0, 2, answer as u8],
            };
            message.extend((address.len() as u16).to_be_bytes());
            message.extend_from_slice(address);
        }
        message
    }
}
