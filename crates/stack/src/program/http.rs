//! Consumption of an HTTP/1 message by a program.

use super::reading::{Reading, Taken};
use crate::http1::{Follows, MessageReader, Piece};

/// HTTP/1 message that is being consumed.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    reader: MessageReader,
    /// Whether the message is a response to HEAD.
    is_to_head: bool,
}

impl Message {
    /// Creates the state for a response to HEAD.
    pub(super) fn to_head() -> Self {
        Self { is_to_head: true, ..Self::default() }
    }

    /// Whether only the end of the connection ends the message.
    pub(super) fn ends_with_peer(&self) -> bool {
        self.reader.ends_with_connection()
    }

    /// Consumes the bytes that belong to the message. Returns their number and the progress.
    pub(super) fn read(&mut self, bytes: &[u8], taken: &mut Taken) -> (usize, Reading) {
        let mut done = 0;
        while done < bytes.len() {
            let (length, piece) = self.reader.next(&bytes[done..]);
            done += length;
            match piece {
                Piece::Framing => {}
                // RFC 9110 section 9.3.2: "the server MUST NOT send content in the response".
                Piece::HeadEnd(head, Follows::Body) if self.is_to_head => {
                    taken.add(head);
                    return (done, Reading::Done);
                }
                Piece::Head(head) | Piece::HeadEnd(head, Follows::Body) => taken.add(head),
                Piece::HeadEnd(_, Follows::Response) => taken.clear(),
                Piece::HeadEnd(head, Follows::Message) => {
                    taken.add(head);
                    return (done, Reading::Done);
                }
                Piece::Body(body) => {
                    taken.add(body);
                    done += body.len();
                    if self.reader.advance(body.len()) {
                        return (done, Reading::Done);
                    }
                }
                Piece::End => return (done, Reading::Done),
                Piece::Invalid(head) => {
                    taken.add(head);
                    return (done, Reading::Wrong);
                }
            }
        }
        (done, Reading::Unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::{Reading, Taken};

    use super::super::rule::Reader;
    use crate::http1::{LINE_MAX, keeps_connection};
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use wirestorm_model::program::MessageFraming;

    /// Returns what is consumed of bytes that arrive in parts of a length, and how many bytes are
    /// left.
    fn read(bytes: &[u8], part: usize) -> (Reading, Vec<u8>, usize, bool) {
        read_by(&MessageFraming::Http, bytes, part)
    }

    fn read_by(
        rule: &MessageFraming,
        bytes: &[u8],
        part: usize,
    ) -> (Reading, Vec<u8>, usize, bool) {
        let (mut reader, mut taken) = (Reader::new(rule), Taken::default());
        let mut read = 0;
        for part in bytes.chunks(part) {
            let (length, reading) = reader.read(rule, part, &mut taken);
            read += length;
            if reading != Reading::Unfinished {
                return (reading, taken.bytes, bytes.len() - read, false);
            }
        }
        (Reading::Unfinished, taken.bytes, bytes.len() - read, reader.ends_with_peer())
    }

    #[test]
    fn messages_end_at_their_framing() {
        for (message, body, left) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "", "GET"),
            ("POST / HTTP/1.1\r\ncontent-length:  3 \r\n\r\n", "abc", "def"),
            ("\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "abc", "HTTP"),
            ("HTTP/1.0 200\nContent-Length: 3\n\n", "abc", "x"),
            ("HTTP/1.1 204 No Content\r\n\r\n", "", "x"),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "", "x"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "x"),
        ] {
            let all = [message, body, left].concat();
            for part in 1..all.len() {
                let (reading, taken, rest, _) = read(all.as_bytes(), part);
                assert_eq!((reading, rest), (Reading::Done, left.len()), "{message} by {part}");
                let expected = [message, body].concat();
                assert_eq!(taken, expected.trim_start().as_bytes(), "{message} by {part}");
            }
        }
    }

    #[test]
    fn chunk_content_is_kept_and_interim_responses_are_not() {
        let head =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nContent-Length: 1\r\n\r\n";
        let chunks = "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\n";
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let all = [interim, head, chunks, "next"].concat();
        for part in 1..all.len() {
            let (reading, taken, left, _) = read(all.as_bytes(), part);
            assert_eq!((reading, left), (Reading::Done, 4), "by {part}");
            assert_eq!(taken, [head, "abc0123456789"].concat().as_bytes(), "by {part}");
        }
    }

    #[test]
    fn a_response_to_head_ends_with_its_head() {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n";
        for length in ["Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n", ""] {
            let head = format!("HTTP/1.1 200 OK\r\n{length}\r\n");
            let all = [interim, &head, "HTTP/1.1 404"].concat();
            for part in 1..all.len() {
                let (reading, taken, left, _) =
                    read_by(&MessageFraming::HttpHead, all.as_bytes(), part);
                assert_eq!((reading, left), (Reading::Done, 12), "{length} by {part}");
                assert_eq!(taken, head.as_bytes(), "{length} by {part}");
            }
        }
    }

    #[test]
    fn a_connection_persists_unless_a_message_closes_it() {
        for (message, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("GET / HTTP/1.1\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nX: close\r\n\r\nConnection: close", true),
            ("HTTP/1.1 200 OK\r\nA: b\r\nconnection:x ,CLOSE\r\n\r\n", false),
            ("HTTP/1.1 200 OK\nConnection: a\nConnection: close\n\n", false),
            ("HTTP/1.1 200 OK\r\nConnection: closed\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", true),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\n\r\n", false),
            ("GET /HTTP/1.1 HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true),
        ] {
            assert_eq!(keeps_connection(message.as_bytes()), expected, "{message}");
        }
    }

    #[test]
    fn a_response_without_a_length_ends_with_its_connection() {
        let (reading, taken, _, ends) = read(b"HTTP/1.1 200 OK\r\n\r\nall of it", 7);
        assert_eq!((reading, ends), (Reading::Unfinished, true));
        assert!(taken.ends_with(b"all of it"));
        let (_, _, _, ends) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234", 7);
        assert!(!ends);
    }

    #[test]
    fn malformed_messages_are_rejected() {
        for message in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 abc\r\n",
            "HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nno field\r\n",
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
        ] {
            assert_eq!(read(message.as_bytes(), 5).0, Reading::Wrong, "{message}");
        }
        let endless = alloc::vec![b'x'; LINE_MAX + 10];
        assert_eq!(read(&endless, 1_000).0, Reading::Wrong);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_read_the_same_whole_and_in_parts(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
                    Just(b"GET / HTTP/1.1\r\n".to_vec()),
                    Just(b"Content-Length: 7\r\n".to_vec()),
                    Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
                    Just(b"\r\n".to_vec()),
                    Just(b"5\r\n".to_vec()),
                    Just(b"hello".to_vec()),
                    proptest::collection::vec(any::<u8>(), 0..9),
                ],
                0..12,
            ),
            part in 1_usize..20,
        ) {
            let bytes = bytes.concat();
            prop_assert_eq!(read(&bytes, part), read(&bytes, bytes.len().max(1)));
        }
    }
}
