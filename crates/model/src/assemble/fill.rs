//! Values of header fields.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::error::{AssembleError, Problem};
use super::header::{Header, Value};
use super::position::{FieldPosition, PlacedHeader, flag_value};
use super::sum;
use crate::stream::{Checksum, PseudoHeader, Step};
use wirestorm_wire::layout::{ChecksumCoverage, Field, Layout, Padding, Role, Space, ipv4, ipv6};

/// Writes all fields and returns the steps that keep them correct.
///
/// The payload must already be in the frame.
pub(super) fn fill(
    headers: &[Header],
    placed: &[PlacedHeader],
    frame: &mut [u8],
    packet_end: PacketEnd,
) -> Result<Vec<Step>, AssembleError> {
    let mut filler = Filler { frame, packet_end, steps: Vec::new(), sums: Vec::new() };
    for (index, (header, place)) in headers.iter().zip(placed).enumerate() {
        let error = |(field, problem): FieldError| AssembleError {
            header: Some((index, header.layout.name)),
            field: Some(field),
            problem,
        };
        let before = index.checked_sub(1).and_then(|before| headers.get(before));
        let behind = headers.get(index + 1..).unwrap_or_default();
        check_no_conflict(header, place, before).map_err(error)?;
        filler.header(index, header, place, behind).map_err(error)?;
    }
    // Inner checksums first, since an outer checksum covers them.
    for checksum in core::mem::take(&mut filler.sums).into_iter().rev() {
        let sum = filler.sum(&checksum, placed).map_err(|problem| AssembleError {
            header: headers
                .get(checksum.header)
                .map(|header| (checksum.header, header.layout.name)),
            field: Some(checksum.place.field.name.to_string()),
            problem,
        })?;
        sum::write(&sum, checksum.is_wrong, filler.frame);
        let step = if checksum.is_wrong { Step::WrongChecksum(sum) } else { Step::Checksum(sum) };
        filler.steps.push(step);
    }
    Ok(filler.steps)
}

/// End of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketEnd {
    /// The end of the frame, whatever its length.
    OfFrame,
    /// A fixed offset; padding follows.
    At(usize),
}

impl PacketEnd {
    /// Returns the end of a packet with a trailer in a frame of this length.
    fn before(self, trailer: usize, frame_length: usize) -> Self {
        match self {
            Self::OfFrame if trailer > 0 => Self::At(frame_length.saturating_sub(trailer)),
            end => end,
        }
    }
}

/// Name or path of the field, and the problem.
type FieldError = (String, Problem);

struct Filler<'a> {
    frame: &'a mut [u8],
    packet_end: PacketEnd,
    steps: Vec<Step>,
    sums: Vec<PendingChecksum>,
}

/// A checksum to compute.
struct PendingChecksum {
    header: usize,
    place: FieldPosition,
    covered: ChecksumCoverage,
    is_wrong: bool,
    packet_end: PacketEnd,
}

impl Filler<'_> {
    fn header(
        &mut self,
        index: usize,
        header: &Header,
        placed: &PlacedHeader,
        behind: &[Header],
    ) -> Result<(), FieldError> {
        for place in placed.places.iter().flatten() {
            let context = FieldContext { index, header, placed, behind };
            self.field(*place, &context)
                .map_err(|problem| (place.field.name.to_string(), problem))?;
        }
        for (number, (item, place)) in header.items.iter().zip(&placed.items).enumerate() {
            let within = |(field, problem)| {
                (format!("{}.{number}.{field}", header.layout.items.name), problem)
            };
            check_no_conflict(item, place, None).map_err(within)?;
            self.header(index, item, place, &[]).map_err(within)?;
        }
        if header.layout.padding == Padding::Ipv6Options {
            self.pad(placed);
        }
        Ok(())
    }

    fn field(&mut self, place: FieldPosition, context: &FieldContext<'_>) -> Result<(), Problem> {
        let is_wrong = match context.header.value(place.field.name) {
            Some(Value::Number(number)) => return self.number(place, *number),
            Some(Value::Bytes(bytes)) => return self.bytes(place, bytes),
            Some(Value::WrongChecksum) if !matches!(place.field.role, Role::Checksum(_)) => {
                return Err(Problem::BadWithoutChecksum);
            }
            Some(Value::WrongChecksum) => true,
            Some(Value::Auto) | None => false,
        };
        match place.field.role {
            Role::View | Role::OwnNumber(_) => Ok(()),
            Role::Plain => self.number(place, place.field.default),
            Role::HeaderLength { unit, subtract: less } => {
                let units = context.placed.content_length.div_ceil(unit.max(1));
                self.computed(place, units.saturating_sub(less))
            }
            Role::LengthToEnd { from } => {
                let first = context.placed.offset + from;
                let end = match self.packet_end.before(context.header.trailer, self.frame.len()) {
                    PacketEnd::At(end) => end,
                    PacketEnd::OfFrame => {
                        let offset = place.bit_offset / 8;
                        self.steps.push(Step::WriteLength { offset, less: first });
                        self.frame.len()
                    }
                };
                self.computed(place, end.saturating_sub(first))
            }
            Role::ItemCount { less } => {
                self.computed(place, context.placed.items.len().saturating_sub(less))
            }
            Role::NextProtocol(space) => {
                let number = context.next_number(space).map(u128::from);
                self.number(place, number.unwrap_or(place.field.default))
            }
            Role::IsLast => {
                let is_last = context
                    .behind
                    .first()
                    .is_none_or(|next| !next.layout.is(context.header.layout));
                self.number(place, u128::from(is_last))
            }
            Role::Flag(_) => self.number(place, flag_value(context.header, place.field.name)),
            Role::Checksum(covered) => {
                let trailer = context.header.trailer;
                let packet_end = self.packet_end.before(trailer, self.frame.len());
                let header = context.index;
                self.sums.push(PendingChecksum { header, place, covered, is_wrong, packet_end });
                Ok(())
            }
        }
    }

    fn number(&mut self, place: FieldPosition, number: u128) -> Result<(), Problem> {
        if number.checked_shr(place.bits as u32).unwrap_or(0) != 0 {
            return Err(Problem::TooLarge { found: number, bits: place.bits });
        }
        place.write(self.frame, number);
        Ok(())
    }

    fn computed(&mut self, place: FieldPosition, value: usize) -> Result<(), Problem> {
        let too_long = Problem::TooLong { found: value, bits: place.bits };
        self.number(place, value as u128).map_err(|_| too_long)
    }

    fn bytes(&mut self, place: FieldPosition, bytes: &[u8]) -> Result<(), Problem> {
        let found = bytes.len();
        if !(place.bits | place.bit_offset).is_multiple_of(8) {
            return Err(Problem::NotBytes { found, bits: place.bits });
        }
        if place.bits != 8 * found {
            return Err(Problem::WrongLength { found, expected: place.bits / 8 });
        }
        if let Some(field) = self.frame.get_mut(place.bytes()) {
            field.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Pads with one option, RFC 8200 section 4.2: `Pad1` is a zero byte, `PadN` has a length.
    fn pad(&mut self, placed: &PlacedHeader) {
        let (start, end) = (placed.offset + placed.bare_length, placed.offset + placed.length);
        if let Some([kind, length, ..]) = self.frame.get_mut(start..end) {
            *kind = 1;
            // Cannot truncate: the padding is less than 8 bytes.
            *length = (end - start - 2) as u8;
        }
    }

    fn sum(
        &self,
        checksum: &PendingChecksum,
        placed: &[PlacedHeader],
    ) -> Result<Checksum, Problem> {
        let header = placed.get(checksum.header);
        let (start, header_end) =
            header.map_or((0, 0), |header| (header.offset, header.offset + header.length));
        let offset = checksum.place.bit_offset / 8;
        let end = match (checksum.covered, checksum.packet_end) {
            (ChecksumCoverage::Header, _) => Some(header_end),
            (_, PacketEnd::At(end)) => Some(end),
            (_, PacketEnd::OfFrame) => None,
        };
        let (pseudo_header, never_zero) = match checksum.covered {
            ChecksumCoverage::Crc32c => {
                return match end {
                    Some(end) if end != self.frame.len() => Err(Problem::Padded),
                    _ => Ok(Checksum::Crc32c { offset, start }),
                };
            }
            ChecksumCoverage::Header | ChecksumCoverage::Packet => (PseudoHeader::None, false),
            ChecksumCoverage::PacketAndAddresses { never_zero } => {
                let (before, rest) = placed.split_at_checked(checksum.header).unwrap_or_default();
                let layout = rest.first().map(|header| header.layout);
                (pseudo_header(self.frame, before, layout)?, never_zero)
            }
        };
        Ok(Checksum::Internet { offset, start, end, pseudo_header, never_zero })
    }
}

/// Returns the pseudo-header for a transport header behind the headers `before`.
pub(super) fn pseudo_header(
    frame: &[u8],
    before: &[PlacedHeader],
    transport: Option<&Layout>,
) -> Result<PseudoHeader, Problem> {
    let number = transport.and_then(|layout| layout.number(Space::IpProtocol));
    let protocol = number.map_or(0, |number| number.number as u8);
    for header in before.iter().rev() {
        let layout = header.layout;
        if layout.is(&ipv4::IPV4) {
            return Ok(PseudoHeader::Ipv4 { header: header.offset, protocol });
        }
        if layout.is(&ipv6::IPV6) {
            return Ok(PseudoHeader::Ipv6 { header: header.offset, protocol });
        }
        // RFC 8200 section 8.1: "If the IPv6 packet contains a Routing header, the
        // Destination Address used in the pseudo-header is that of the final destination."
        if layout.is(&ipv6::ROUTING) {
            let left = header.field("segments_left").ok();
            if left.and_then(|left| left.read(frame)).is_some_and(|left| left != 0) {
                return Err(Problem::SegmentsLeft);
            }
        } else if !ipv6::is_extension(layout) {
            break;
        }
    }
    Err(Problem::NoIpHeader)
}

/// The header or item to fill, and its surroundings.
struct FieldContext<'a> {
    index: usize,
    header: &'a Header,
    placed: &'a PlacedHeader,
    behind: &'a [Header],
}

impl FieldContext<'_> {
    /// Returns the number of the next header in this space, if it has one.
    fn next_number(&self, space: Space) -> Option<u16> {
        let (next, behind) = self.behind.split_first()?;
        let number = next.layout.number(space)?;
        let is_outer = behind.first().is_some_and(|behind| behind.layout.is(next.layout));
        Some(if is_outer { number.outer } else { number.number })
    }
}

/// Checks that no bits are given two values; `before` is the header before this one.
fn check_no_conflict(
    header: &Header,
    placed: &PlacedHeader,
    before: Option<&Header>,
) -> Result<(), FieldError> {
    let mut assigned: Vec<FieldPosition> = Vec::new();
    for (name, value) in &header.values {
        let Ok(place) = placed.field(name) else { continue };
        if *value == Value::Auto {
            continue;
        }
        let end = place.bit_offset + place.bits;
        let same = assigned.iter().find(|other| {
            let other_end = other.bit_offset + other.bits;
            place.bit_offset < other_end && other.bit_offset < end
                || place.field.name == other.field.name
        });
        let in_front = match (place.field.role, before) {
            (Role::OwnNumber(space), Some(before)) => assigned_next_protocol(before, space),
            _ => None,
        };
        if let Some(other) = same.map(|other| other.field).or(in_front) {
            return Err((name.to_string(), Problem::ConflictingValues { other: other.name }));
        }
        assigned.push(place);
    }
    Ok(())
}

/// Returns the field for the number of the next header if it has a value.
fn assigned_next_protocol(header: &Header, space: Space) -> Option<&'static Field> {
    let mut fields = header.layout.fields.iter();
    let field = fields.find(|field| field.role == Role::NextProtocol(space))?;
    matches!(header.value(field.name), Some(Value::Number(_) | Value::Bytes(_))).then_some(field)
}
