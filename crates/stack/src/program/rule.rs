//! How much received data a step consumes.

use wirestorm_model::program::MessageFraming;

use super::http::Message;
use super::reading::{Reading, Taken};
use super::reply::Reply;
use super::rtsp::Rtsp;

/// Reader that consumes data by a rule.
#[derive(Clone, Debug)]
pub(super) enum Reader {
    /// Bytes missing.
    Count(u64),
    /// Bytes of the delimiter matched.
    Until(usize),
    Http(Message),
    Reply(Reply),
    Rtsp(Rtsp),
}

impl Reader {
    pub(super) fn new(rule: &MessageFraming) -> Self {
        match rule {
            MessageFraming::Count(bytes) => Self::Count(*bytes),
            MessageFraming::Until(_) => Self::Until(0),
            MessageFraming::Http => Self::Http(Message::default()),
            MessageFraming::HttpHead => Self::Http(Message::to_head()),
            MessageFraming::Reply => Self::Reply(Reply::default()),
            MessageFraming::Rtsp => Self::Rtsp(Rtsp::default()),
        }
    }

    /// Consumes the bytes that belong to the data of the rule. Returns their number and the
    /// progress.
    pub(super) fn read(
        &mut self,
        rule: &MessageFraming,
        bytes: &[u8],
        taken: &mut Taken,
    ) -> (usize, Reading) {
        match (self, rule) {
            (Self::Http(message), _) => message.read(bytes, taken),
            (Self::Reply(reply), _) => reply.read(bytes, taken),
            (Self::Rtsp(response), _) => response.read(bytes, taken),
            (Self::Until(matched), MessageFraming::Until(delimiter)) => {
                let is_end = |byte: &u8| {
                    *matched = delimiter.advance(*matched, *byte);
                    *matched == delimiter.length()
                };
                let end = bytes.iter().position(is_end);
                let length = end.map_or(bytes.len(), |end| end + 1);
                taken.add(&bytes[..length]);
                (length, if end.is_some() { Reading::Done } else { Reading::Unfinished })
            }
            (Self::Count(left), _) => {
                let length = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= length as u64;
                taken.add(&bytes[..length]);
                (length, if *left == 0 { Reading::Done } else { Reading::Unfinished })
            }
            // The reader was created by this rule.
            (Self::Until(_), _) => (0, Reading::Wrong),
        }
    }

    /// Whether the end of the connection completes the data.
    pub(super) fn ends_with_peer(&self) -> bool {
        matches!(self, Self::Http(message) if message.ends_with_peer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use wirestorm_model::program::Delimiter;

    /// Returns what a rule consumes of data that arrives in parts, and what is left.
    fn read(rule: &MessageFraming, parts: &[&[u8]]) -> (Reading, Vec<u8>, Vec<u8>) {
        let (mut reader, mut taken) = (Reader::new(rule), Taken::default());
        let mut left = Vec::new();
        let mut reading = Reading::Unfinished;
        for part in parts {
            let mut part = *part;
            if reading == Reading::Unfinished {
                let (length, now) = reader.read(rule, part, &mut taken);
                (reading, part) = (now, &part[length..]);
            }
            left.extend_from_slice(part);
        }
        (reading, taken.bytes, left)
    }

    #[test]
    fn a_count_consumes_exactly_its_bytes() {
        let rule = MessageFraming::Count(5);
        assert_eq!(read(&rule, &[b"abc"]), (Reading::Unfinished, b"abc".to_vec(), vec![]));
        let expected = (Reading::Done, b"abcde".to_vec(), b"fg".to_vec());
        assert_eq!(read(&rule, &[b"abc", b"defg"]), expected);
    }

    #[test]
    fn kept_bytes_have_a_bound() {
        let mut taken = Taken::default();
        for _ in 0..100 {
            taken.add(&[7; 1_000]);
        }
        assert_eq!((taken.bytes.len(), taken.length), (Taken::KEPT_MAX, 100_000));
    }

    proptest! {
        #[test]
        fn delimiter_matches_at_its_first_occurrence(
            text in "[ab]{0,60}",
            delimiter in "[ab]{1,6}",
            cut in 0_usize..60,
        ) {
            let rule = MessageFraming::Until(Delimiter::new(delimiter.as_bytes()).unwrap());
            let cut = cut.min(text.len());
            let parts = [&text.as_bytes()[..cut], &text.as_bytes()[cut..]];
            let (reading, taken, left) = read(&rule, &parts);
            match text.find(&delimiter) {
                Some(place) => {
                    let end = place + delimiter.len();
                    prop_assert_eq!(reading, Reading::Done);
                    prop_assert_eq!(taken, &text.as_bytes()[..end]);
                    prop_assert_eq!(left, &text.as_bytes()[end..]);
                }
                None => {
                    prop_assert_eq!(reading, Reading::Unfinished);
                    prop_assert_eq!(taken, text.as_bytes());
                }
            }
        }
    }
}
