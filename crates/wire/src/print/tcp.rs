//! A TCP segment as tcpdump shows it with absolute sequence numbers.

use core::fmt::{self, Formatter};

use crate::packet::tcp::{Flags, Packet};

/// Writes the segment that `data` begins with, of which `length` bytes were on the wire.
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

/// RFC 9293 section 3.2: a kind of 0 ends the list, 1 is padding, all others have a length that
/// counts kind and length too.
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
