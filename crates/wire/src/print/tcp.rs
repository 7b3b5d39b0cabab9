//! TCP segments in tcpdump's format with absolute sequence numbers.

use core::fmt::{self, Formatter};

use crate::packet::tcp::{Flags, Packet};

/// Writes the segment at the start of `data`; it had `length` bytes on the wire.
pub(super) fn write(f: &mut Formatter<'_>, data: &[u8], length: usize) -> fmt::Result {
    let Ok(segment) = Packet::new(data) else { return write!(f, "[|tcp], length {length}") };
    let (flags, sequence) = (segment.flags(), segment.sequence());
    let length = length.saturating_sub(segment.header_length());
    write!(f, "Flags [{flags}]")?;
    if length > 0 {
        write!(f, ", seq {sequence}:{}", sequence.wrapping_add(length as u32))?;
    } else if flags.0 & (Flags::SYN | Flags::FIN | Flags::RST).0 != 0 {
        write!(f, ", seq {sequence}")?;
    }
    if flags.contains(Flags::ACK) {
        write!(f, ", ack {}", segment.acknowledgement())?;
    }
    write!(f, ", win {}", segment.window())?;
    if flags.contains(Flags::URG) {
        write!(f, ", urg {}", segment.urgent_pointer())?;
    }
    if !segment.options().is_empty() {
        f.write_str(", options [")?;
        write_options(f, segment.options())?;
        f.write_str("]")?;
    }
    write!(f, ", length {length}")
}

/// Writes the options. RFC 9293 section 3.2: kind 0 ends the list, kind 1 is padding. All others
/// have a length, which includes kind and length.
fn write_options(f: &mut Formatter<'_>, mut options: &[u8]) -> fmt::Result {
    let mut separator = "";
    while let Some((kind, rest)) = options.split_first() {
        f.write_str(separator)?;
        separator = ",";
        let value = match kind {
            0 => return f.write_str("eol"),
            1 => {
                f.write_str("nop")?;
                options = rest;
                continue;
            }
            _ => rest.first().and_then(|length| options.get(2..usize::from(*length))),
        };
        let Some(value) = value else { return f.write_str("bad opt") };
        write_option(f, *kind, value)?;
        options = options.get(value.len() + 2..).unwrap_or_default();
    }
    Ok(())
}

fn write_option(f: &mut Formatter<'_>, kind: u8, value: &[u8]) -> fmt::Result {
    let (words, _) = value.as_chunks::<4>();
    match (kind, value, words) {
        (2, [high, low], _) => write!(f, "mss {}", u16::from_be_bytes([*high, *low])),
        (3, [shift], _) => write!(f, "wscale {shift}"),
        (4, [], _) => f.write_str("sackOK"),
        (5, _, [_, ..]) => {
            write!(f, "sack {} ", words.len() / 2)?;
            for block in words.chunks_exact(2) {
                let [left, right] = [0, 1].map(|at| block.get(at).copied().unwrap_or_default());
                write!(f, "{{{}:{}}}", u32::from_be_bytes(left), u32::from_be_bytes(right))?;
            }
            Ok(())
        }
        (8, _, [value, echo]) => {
            write!(f, "TS val {} ecr {}", u32::from_be_bytes(*value), u32::from_be_bytes(*echo))
        }
        _ => write!(f, "unknown-{kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};

    struct Shown<'a>(&'a [u8], usize);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            write(f, self.0, self.1)
        }
    }

    /// Formats a segment with these flags and options whose payload of `payload` bytes is missing.
    fn shown(flags: Flags, options: &[u8], payload: usize) -> String {
        let offset = (5 + options.len() as u8 / 4) << 4;
        let header = [0, 1, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9, offset, flags.0, 0, 64, 0, 0, 0, 3];
        let segment = [&header, options].concat();
        Shown(&segment, segment.len() + payload).to_string()
    }

    #[test]
    fn numbers_are_shown_only_if_their_flag_is_set() {
        assert_eq!(shown(Flags::SYN, &[], 0), "Flags [S], seq 7, win 64, length 0");
        assert_eq!(shown(Flags::ACK, &[], 0), "Flags [.], ack 9, win 64, length 0");
        let push = Flags::PSH | Flags::ACK;
        assert_eq!(shown(push, &[], 1), "Flags [P.], seq 7:8, ack 9, win 64, length 1");
        assert_eq!(shown(Flags::URG, &[], 0), "Flags [U], win 64, urg 3, length 0");
        assert_eq!(shown(Flags::default(), &[], 0), "Flags [none], win 64, length 0");
        assert_eq!(Shown(&[0; 19], 40).to_string(), "[|tcp], length 40");
    }

    #[test]
    fn options_are_shown_one_by_one() {
        let options = [
            &[2, 4, 5, 0xb4][..],
            &[1, 3, 3, 7],
            &[4, 2, 1, 1],
            &[8, 10, 0, 0, 0, 5, 0, 0, 0, 6, 1, 1],
            &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 254, 2],
        ]
        .concat();
        assert_eq!(
            shown(Flags::ACK, &options, 0),
            "Flags [.], ack 9, win 64, options [mss 1460,nop,wscale 7,sackOK,nop,nop,\
             TS val 5 ecr 6,nop,nop,sack 1 {1:2},unknown-254], length 0"
        );
    }

    #[test]
    fn options_that_do_not_fit_end_the_list() {
        for options in [[1, 8, 9, 0], [1, 8, 0, 0], [1, 8, 1, 0]] {
            let expected = "Flags [.], ack 9, win 64, options [nop,bad opt], length 0";
            assert_eq!(shown(Flags::ACK, &options, 0), expected);
        }
        let expected = "Flags [.], ack 9, win 64, options [nop,eol], length 0";
        assert_eq!(shown(Flags::ACK, &[1, 0, 8, 9], 0), expected);
    }
}
