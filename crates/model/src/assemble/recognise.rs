//! Recognition of the headers in an existing frame.

use alloc::vec::Vec;

use super::fill::pseudo_header;
use super::header::Header;
use super::position::{FieldPosition, PlacedHeader, place_one};
use super::{Assembled, end, sum};
use crate::stream::{Checksum, PseudoHeader, Step};
use wirestorm_wire::layout::{self, ChecksumCoverage, Layout, Role};
use wirestorm_wire::layout::{
    ethernet::ETHERNET, gtp::GTPV1, ipv4::IPV4, ipv6::FRAGMENT, ipv6::IPV6, mpls::MPLS, ppp::PPP,
    ppp::PPPOE, vxlan::VXLAN,
};

/// Largest number of headers; what follows is payload.
const HEADERS_MAX: usize = 64;

/// Recognises the headers of an Ethernet frame, as if it had been assembled from them. Each header
/// determines the next one; the first unknown one begins the payload. Options are part of their
/// header, and their fields are not recognised.
///
/// The frame stays unchanged. The steps include only lengths and checksums that can be kept
/// correct. They exclude those over an incomplete packet (truncated or a fragment), absent UDP
/// checksums, and a CRC with padding behind it.
pub fn recognise(frame: Vec<u8>) -> Assembled {
    let mut headers: Vec<PlacedHeader> = Vec::new();
    let mut layout = Some(&ETHERNET);
    while let Some(next) = layout.filter(|_| headers.len() < HEADERS_MAX) {
        let Some(header) = header_at(next, &frame, end(&headers), headers.last()) else { break };
        layout = next_layout(&frame, &header);
        headers.push(header);
    }
    let steps = steps(&frame, &headers);
    Assembled { frame, headers, steps }
}

fn header_at(
    layout: &'static Layout,
    frame: &[u8],
    offset: usize,
    before: Option<&PlacedHeader>,
) -> Option<PlacedHeader> {
    let mut header = Header::new(layout);
    // Flags determine which fields are present, and precede those fields.
    for field in layout.fields.iter().filter(|field| matches!(field.role, Role::Flag(_))) {
        let place =
            FieldPosition { field, bit_offset: 8 * offset + field.bit_offset, bits: field.bits };
        header = header.with(field.name, place.read(frame)?);
    }
    let mut placed = place_one(&header, offset, before).ok()?;
    for place in placed.places.iter().flatten() {
        if let Role::HeaderLength { unit, subtract: less } = place.field.role {
            let length = (place.read(frame)? as usize + less) * unit;
            if length < placed.length {
                return None;
            }
            placed.length = length;
            break;
        }
    }
    (placed.offset + placed.length <= frame.len()).then_some(placed)
}

/// Returns the layout of the next header.
fn next_layout(frame: &[u8], header: &PlacedHeader) -> Option<&'static Layout> {
    let value = |name| header.field(name).ok().and_then(|place| place.read(frame));
    // RFC 4928 section 3: the first four bits identify an IP packet.
    let by_version = || match frame.get(header.offset + header.length)? >> 4 {
        4 => Some(&IPV4),
        6 => Some(&IPV6),
        _ => None,
    };
    if header.layout.is(&MPLS) {
        return if value("bottom_of_stack") == Some(0) { Some(&MPLS) } else { by_version() };
    }
    if header.layout.is(&VXLAN) {
        return Some(&ETHERNET);
    }
    if header.layout.is(&PPPOE) {
        return (value("code") == Some(0)).then_some(&PPP);
    }
    if header.layout.is(&GTPV1) {
        let is_packet = value("message_type") == Some(255) && value("e_flag") == Some(0);
        return is_packet.then(by_version).flatten();
    }
    if is_fragment(frame, header) {
        return None;
    }
    let place = header.find(|role| matches!(role, Role::NextProtocol(_)))?;
    let Role::NextProtocol(space) = place.field.role else { return None };
    let number = u16::try_from(place.read(frame)?).ok()?;
    // The first layout with this number has the fields that all of them share.
    layout::all().iter().copied().find(|layout| {
        layout.number(space).is_some_and(|it| it.number == number || it.outer == number)
    })
}

/// Returns whether the header is followed by only a part of a packet.
fn is_fragment(frame: &[u8], header: &PlacedHeader) -> bool {
    let is_set = |name| {
        let value = header.field(name).ok().and_then(|place| place.read(frame));
        value.is_some_and(|value| value != 0)
    };
    let can_be = header.layout.is(&IPV4) || header.layout.is(&FRAGMENT);
    can_be && (is_set("more_fragments") || is_set("fragment_offset"))
}

/// Returns the end of the packet according to the header, if it has a length.
fn declared_end(frame: &[u8], header: &PlacedHeader) -> Option<usize> {
    let place = header.find(|role| matches!(role, Role::LengthToEnd { .. }))?;
    let Role::LengthToEnd { from } = place.field.role else { return None };
    Some(header.offset + from + place.read(frame)? as usize)
}

/// Returns the steps that keep lengths and checksums correct: lengths first, then inner checksums
/// before outer ones.
fn steps(frame: &[u8], headers: &[PlacedHeader]) -> Vec<Step> {
    let mut lengths = Vec::new();
    let mut sums = Vec::new();
    // End of the packet; `None` once the packet is incomplete.
    let mut packet_end = Some(frame.len());
    for (index, header) in headers.iter().enumerate() {
        if let Some(declared) = declared_end(frame, header) {
            let is_within =
                |end: &usize| (header.offset + header.length..=*end).contains(&declared);
            packet_end = packet_end.filter(is_within).map(|_| declared);
        }
        for place in header.places.iter().flatten() {
            let offset = place.bit_offset / 8;
            match place.field.role {
                Role::LengthToEnd { from } if packet_end == Some(frame.len()) => {
                    lengths.push(Step::WriteLength { offset, less: header.offset + from });
                }
                Role::Checksum(covered) => {
                    let checksum = ChecksumContext { frame, headers, index, place, packet_end };
                    sums.extend(checksum.sum(covered).map(Step::Checksum));
                }
                _ => {}
            }
        }
        if is_fragment(frame, header) {
            packet_end = None;
        }
    }
    lengths.extend(sums.into_iter().rev());
    lengths
}

/// A checksum and its surroundings.
struct ChecksumContext<'a> {
    frame: &'a [u8],
    headers: &'a [PlacedHeader],
    index: usize,
    place: &'a FieldPosition,
    packet_end: Option<usize>,
}

impl ChecksumContext<'_> {
    /// Returns the checksum with its covered range; `None` if the data is incomplete.
    fn sum(&self, covered: ChecksumCoverage) -> Option<Checksum> {
        let (before, rest) = self.headers.split_at_checked(self.index)?;
        let header = rest.first()?;
        let (start, offset) = (header.offset, self.place.bit_offset / 8);
        let is_open = self.packet_end == Some(self.frame.len());
        let end = if is_open { None } else { self.packet_end };
        let (end, pseudo_header, never_zero) = match covered {
            ChecksumCoverage::Header => (Some(start + header.length), PseudoHeader::None, false),
            ChecksumCoverage::Crc32c => {
                return is_open.then_some(Checksum::Crc32c { offset, start });
            }
            _ if self.packet_end.is_none() => return None,
            ChecksumCoverage::Packet => (end, PseudoHeader::None, false),
            ChecksumCoverage::PacketAndAddresses { never_zero } => {
                // RFC 768: zero means no checksum.
                if never_zero && self.place.read(self.frame) == Some(0) {
                    return None;
                }
                let pseudo_header = pseudo_header(self.frame, before, Some(header.layout)).ok()?;
                (end, pseudo_header, never_zero)
            }
        };
        Some(Checksum::Internet { offset, start, end, pseudo_header, never_zero })
    }
}

impl Assembled {
    /// Returns the end of the first packet with a length field; padding follows. The end of the
    /// frame if there is none.
    pub fn packet_end(&self) -> usize {
        let declared = self.headers.iter().find_map(|header| declared_end(&self.frame, header));
        declared.unwrap_or(self.frame.len()).min(self.frame.len())
    }

    /// Returns the end of the headers.
    pub fn headers_end(&self) -> usize {
        end(&self.headers)
    }

    /// Corrects those lengths and checksums of the frame that `steps` name. A
    /// [`Step::WrongChecksum`] makes a checksum wrong.
    pub fn repair(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::WriteLength { offset, less } => {
                    let length = self.frame.len().saturating_sub(*less) as u16;
                    if let Some(field) = self.frame.get_mut(*offset..offset + 2) {
                        field.copy_from_slice(&length.to_be_bytes());
                    }
                }
                Step::Checksum(checksum) => sum::write(checksum, false, &mut self.frame),
                Step::WrongChecksum(checksum) => sum::write(checksum, true, &mut self.frame),
                Step::Write(_) | Step::Length { .. } => {}
            }
        }
    }
}
