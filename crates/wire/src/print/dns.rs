//! The first question of a DNS message, RFC 1035 section 4.

use core::fmt::{self, Formatter, Write};

const HEADER_LENGTH: usize = 12;
/// Largest number of labels in a name, since a name has at most 255 bytes.
const LABELS_MAX: usize = 127;

/// The header of a DNS message and its first question.
pub(super) struct Question<'a> {
    header: &'a [u8; HEADER_LENGTH],
    /// The bytes behind the header: name, type and class.
    name: &'a [u8],
}

impl<'a> Question<'a> {
    /// Returns the first question of a message, if its name and type are complete.
    pub(super) fn first(message: &'a [u8]) -> Option<Self> {
        let (header, name) = message.split_first_chunk()?;
        let question = Self { header, name };
        (question.half(4) > 0 && question.kind().is_some()).then_some(question)
    }

    fn half(&self, at: usize) -> u16 {
        let bytes = self.header.get(at..).and_then(|rest| rest.first_chunk());
        u16::from_be_bytes(bytes.copied().unwrap_or_default())
    }

    /// Returns the labels of the name. A compression pointer ends it, since the first name of a
    /// message has no earlier name to point to.
    fn labels(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.name;
        core::iter::from_fn(move || {
            let (length, behind) = rest.split_first()?;
            let label = behind.get(..usize::from(*length)).filter(|_| *length < 64)?;
            rest = behind.get(label.len()..)?;
            (!label.is_empty()).then_some(label)
        })
        .take(LABELS_MAX)
    }

    /// Returns the type of the question; `None` if the name has no valid end.
    fn kind(&self) -> Option<u16> {
        let length: usize = self.labels().map(|label| label.len() + 1).sum();
        match self.name.get(length..)?.first_chunk()? {
            [0, high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    }
}

impl fmt::Display for Question<'_> {
    /// Formats a query as `4711+ A? example.com.` and a response as `4711 2/0/1 q: A?
    /// example.com.`. The numbers count answers, authorities and additional records.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const RESPONSE: u16 = 0x8000;
        const RECURSION_DESIRED: u16 = 0x0100;
        let flags = self.half(2);
        write!(f, "{}", self.half(0))?;
        if flags & RESPONSE == 0 {
            f.write_str(if flags & RECURSION_DESIRED == 0 { " " } else { "+ " })?;
        } else {
            match flags & 0x0f {
                0 => {}
                1 => f.write_str(" FormErr")?,
                2 => f.write_str(" ServFail")?,
                3 => f.write_str(" NXDomain")?,
                4 => f.write_str(" NotImp")?,
                5 => f.write_str(" Refused")?,
                code => write!(f, " Resp{code}")?,
            }
            write!(f, " {}/{}/{} q: ", self.half(6), self.half(8), self.half(10))?;
        }
        write_kind(f, self.kind().unwrap_or_default())?;
        f.write_str("? ")?;
        let mut empty = true;
        for label in self.labels() {
            empty = false;
            for byte in label {
                let shown = if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
                f.write_char(shown)?;
            }
            f.write_char('.')?;
        }
        if empty { f.write_char('.') } else { Ok(()) }
    }
}

fn write_kind(f: &mut Formatter<'_>, kind: u16) -> fmt::Result {
    let name = match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        65 => "HTTPS",
        255 => "ANY",
        kind => return write!(f, "Type{kind}"),
    };
    f.write_str(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn message(header: [u8; HEADER_LENGTH], name: &[u8], kind: u16) -> Vec<u8> {
        [&header[..], name, &kind.to_be_bytes(), &[0, 1]].concat()
    }

    #[test]
    fn a_query_and_its_answer_show_the_name() {
        let query = message([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], b"\x03www\x01x\0", 28);
        assert_eq!(Question::first(&query).unwrap().to_string(), "7+ AAAA? www.x.");
        let answer = message([0, 7, 0x81, 0x83, 0, 1, 0, 0, 0, 1, 0, 2], b"\0", 2);
        assert_eq!(Question::first(&answer).unwrap().to_string(), "7 NXDomain 0/1/2 q: NS? .");
    }

    #[test]
    fn a_name_without_an_end_is_not_a_question() {
        let header = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for name in [&b"\x03ww"[..], b"\xc0\x0c", b"\x40", b"\x03www"] {
            assert!(Question::first(&[&header[..], name].concat()).is_none(), "{name:02x?}");
        }
        assert!(Question::first(&message([0; 12], b"\0", 1)).is_none());
    }

    #[test]
    fn bytes_that_are_not_text_do_not_reach_the_terminal() {
        let query = message([0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], b"\x03\x1b[m\0", 1);
        assert_eq!(Question::first(&query).unwrap().to_string(), "7 A? ?[m.");
    }
}
