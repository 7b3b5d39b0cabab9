//! Computation of checksums in a complete frame.

use crate::stream::{Checksum, PseudoHeader};
use wirestorm_wire::checksum::{self, combine};

/// Writes a correct checksum, or a wrong one as [`Step::WrongChecksum`] defines. Ignores ranges
/// beyond the frame.
///
/// [`Step::WrongChecksum`]: crate::stream::Step::WrongChecksum
pub(super) fn write(sum: &Checksum, is_wrong: bool, frame: &mut [u8]) {
    let target = sum.target();
    if let Some(field) = frame.get_mut(target.clone()) {
        field.fill(0);
    }
    match *sum {
        Checksum::Internet { start, end, pseudo_header, never_zero, .. } => {
            let part = frame.get(start..end.unwrap_or(frame.len())).unwrap_or_default();
            let addresses = pseudo_header_sum(pseudo_header, frame, part.len());
            let total = combine(checksum::sum(part), combine(addresses, u16::from(is_wrong)));
            let checksum = match !total {
                0 if never_zero => 0xffff,
                checksum => checksum,
            };
            put(frame, target.start, &checksum.to_be_bytes());
        }
        Checksum::Crc32c { start, .. } => {
            let crc = checksum::crc32c(frame.get(start..).unwrap_or_default());
            let crc = if is_wrong { !crc } else { crc };
            put(frame, target.start, &crc.to_le_bytes());
        }
    }
}

fn put(frame: &mut [u8], offset: usize, bytes: &[u8]) {
    if let Some(field) = frame.get_mut(offset..offset + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}

fn pseudo_header_sum(pseudo_header: PseudoHeader, frame: &[u8], length: usize) -> u16 {
    match pseudo_header {
        PseudoHeader::None => 0,
        PseudoHeader::Ipv4 { header, protocol } => checksum::pseudo_header_ipv4(
            address(frame, header + 12),
            address(frame, header + 16),
            protocol,
            length as u16,
        ),
        PseudoHeader::Ipv6 { header, protocol } => checksum::pseudo_header_ipv6(
            address(frame, header + 8),
            address(frame, header + 24),
            protocol,
            length as u32,
        ),
    }
}

fn address<const N: usize>(frame: &[u8], offset: usize) -> [u8; N] {
    frame.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
