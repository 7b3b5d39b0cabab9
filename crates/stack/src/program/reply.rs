//! Replies of FTP and SMTP, of one line or several: RFC 959 section 4.2, RFC 5321 section 4.2.1.

use super::reading::{Reading, Taken};

/// Progress of a reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reply {
    /// The first bytes of the current line, and their number.
    start: [u8; 4],
    length: usize,
    /// Reply code of the first line of a multi-line reply.
    code: Option<[u8; 3]>,
}

impl Reply {
    /// Consumes the bytes that belong to the reply. Returns their number and the progress.
    pub(super) fn read(&mut self, bytes: &[u8], taken: &mut Taken) -> (usize, Reading) {
        for (place, byte) in bytes.iter().enumerate() {
            if *byte != b'\n' {
                if let Some(free) = self.start.get_mut(self.length) {
                    *free = *byte;
                    self.length += 1;
                }
                continue;
            }
            let reading = self.end_line();
            if reading != Reading::Unfinished {
                taken.add(&bytes[..=place]);
                return (place + 1, reading);
            }
        }
        taken.add(bytes);
        (bytes.len(), Reading::Unfinished)
    }

    /// Handles the end of a line.
    fn end_line(&mut self) -> Reading {
        let [digits @ .., separator] = self.start;
        // A code may be followed by nothing or by the line end, as well as by a space.
        let separator = if self.length > 3 { separator } else { b' ' };
        let has_code = self.length >= 3 && digits.iter().all(u8::is_ascii_digit);
        self.length = 0;
        match self.code {
            None if !has_code => Reading::Wrong,
            None if separator == b'-' => {
                self.code = Some(digits);
                Reading::Unfinished
            }
            // Lines between the first and the last may contain anything.
            Some(code) if !has_code || digits != code || separator == b'-' => Reading::Unfinished,
            _ => Reading::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_with_its_last_line() {
        const FEATURES: &str = "211-Features:\r\n EPSV\r\n211-more\r\n220 not this\r\n211 End\r\n";
        for (text, expected, left) in [
            ("220 ready\r\n331 ", Reading::Done, 4),
            ("220 ready", Reading::Unfinished, 0),
            ("220\r\n", Reading::Done, 0),
            ("22\r\n", Reading::Wrong, 0),
            ("ready when you are\r\n", Reading::Wrong, 0),
            ("\r\n", Reading::Wrong, 0),
            (FEATURES, Reading::Done, 0),
            (&FEATURES[..FEATURES.len() - 9], Reading::Unfinished, 0),
        ] {
            // In one part, and byte by byte.
            for step in [text.len(), 1] {
                let (mut reply, mut taken) = (Reply::default(), Taken::default());
                let (mut place, mut reading) = (0, Reading::Unfinished);
                while place < text.len() && reading == Reading::Unfinished {
                    let part = &text.as_bytes()[place..text.len().min(place + step)];
                    let (length, now) = reply.read(part, &mut taken);
                    place += length;
                    reading = now;
                }
                assert_eq!((reading, text.len() - place), (expected, left), "{text:?}");
                assert_eq!(taken.bytes, &text.as_bytes()[..place]);
            }
        }
    }
}
