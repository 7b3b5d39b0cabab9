//! Header fields of DNS messages: RFC 1035 section 4.1.1.

/// Length of the header in bytes.
const HEADER: usize = 12;

/// Whether a message answers the query with this ID.
pub(super) fn answers(message: &[u8], number: u16) -> bool {
    // QR is the first bit of the flags: "a query (0), or a response (1)".
    message.len() >= HEADER && message[..2] == number.to_be_bytes() && message[2] & 0x80 != 0
}

/// Returns the response code, or `None` if the message is too short.
pub(super) fn code(message: &[u8]) -> Option<u8> {
    (message.len() >= HEADER).then(|| message[3] & 0x0f)
}

/// Returns the failure text of a response code, from the registry of IANA (RFC 6895 section 2.3).
pub(super) const fn name(code: u8) -> &'static str {
    match code {
        1 => "answered FORMERR (1)",
        2 => "answered SERVFAIL (2)",
        3 => "answered NXDOMAIN (3)",
        4 => "answered NOTIMP (4)",
        5 => "answered REFUSED (5)",
        6 => "answered YXDOMAIN (6)",
        7 => "answered YXRRSET (7)",
        8 => "answered NXRRSET (8)",
        9 => "answered NOTAUTH (9)",
        10 => "answered NOTZONE (10)",
        _ => "answered with an unassigned response code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_match_the_query_id_and_have_a_code() {
        let answer = [0xbe, 0xef, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0];
        assert!(answers(&answer, 0xbeef));
        assert!(!answers(&answer, 0xbeee), "another ID");
        assert!(!answers(&[&answer[..2], &[1], &answer[3..]].concat(), 0xbeef), "a query");
        assert!(!answers(&answer[..11], 0xbeef), "too short");
        assert_eq!((code(&answer), code(&answer[..11])), (Some(3), None));
    }
}
