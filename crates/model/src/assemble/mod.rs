//! Frames from lists of headers.
//!
//! ```text
//! [Header], Payload, frame length
//!     │ place: position of each header, item and field
//!     │ fill:  given values; lengths, next protocols, counts; then checksums, inner ones first
//!     └─ Assembled: frame, positions, and steps that keep it correct when fields vary
//! ```
//!
//! Given values are written unchanged, so that frames can be malformed on purpose. The roles of the
//! layout determine the other values.
//!
//! ```
//! use wirestorm_model::assemble::{AssembleError, Header, Payload, assemble};
//! use wirestorm_wire::layout::{ethernet::ETHERNET, ipv4::IPV4, udp::UDP};
//! use wirestorm_model::stream::Step;
//!
//! # fn main() -> Result<(), AssembleError> {
//! let headers = [
//!     Header::new(&ETHERNET),
//!     Header::new(&IPV4).with("dst", 0xc000_0201),
//!     Header::new(&UDP).with("dst_port", 53),
//! ];
//! let assembled = assemble(&headers, &Payload::Zeros, 60)?;
//! // Variable 0 of the program sets the source address, so two checksums need an update.
//! let steps = assembled.program_steps(None, &[assembled.write(1, "src", 0)?], false);
//! assert!(matches!(steps[..], [Step::Write(_), Step::Checksum(_), Step::Checksum(_)]));
//! # Ok(())
//! # }
//! ```

mod error;
mod fill;
mod header;
mod payload;
mod position;
mod recognise;
mod sum;

pub use error::{AssembleError, Problem};
pub use header::{Header, Value};
pub use payload::Payload;
pub use position::{FieldPosition, PlacedHeader};
pub use recognise::recognise;

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use self::fill::PacketEnd;
use crate::stream::{ByteOrder, Checksum, PseudoHeader, Step, Write};

/// Longest frame in bytes without FCS.
pub const FRAME_LENGTH_MAX: usize = 65_535;

/// An assembled frame with the positions of its headers.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The frame without FCS.
    pub frame: Vec<u8>,
    /// Headers in their order.
    pub headers: Vec<PlacedHeader>,
    /// Steps that correct lengths and checksums after any change of the frame or its length, in the
    /// order to run them. Fields with given values have no steps.
    pub steps: Vec<Step>,
}

/// Assembles a frame of `frame_length` bytes without FCS.
///
/// # Errors
/// If a field or item does not exist, or a value does not fit its field. If a checksum
/// lacks the header that it covers, or the frame is too short or too long.
pub fn assemble(
    headers: &[Header],
    payload: &Payload,
    frame_length: usize,
) -> Result<Assembled, AssembleError> {
    if frame_length > FRAME_LENGTH_MAX {
        let problem = Problem::FrameTooLong { found: frame_length, limit: FRAME_LENGTH_MAX };
        return Err(AssembleError::of_frame(problem));
    }
    let placed = position::place(headers)?;
    let payload_start = end(&placed);
    let needed = payload_start + payload.length_min();
    if frame_length < needed {
        let problem =
            Problem::FrameTooShort { found: frame_length, needed, headers: payload_start };
        return Err(AssembleError::of_frame(problem));
    }
    let mut frame = vec![0; frame_length];
    if let Some(room) = frame.get_mut(payload_start..) {
        payload.write(room);
    }
    let packet_end = match payload {
        Payload::Padding => PacketEnd::At(payload_start),
        _ => PacketEnd::OfFrame,
    };
    let steps = fill::fill(headers, &placed, &mut frame, packet_end)?;
    Ok(Assembled { frame, headers: placed, steps })
}

/// Returns the minimum length of a frame with these headers and this payload, in bytes without FCS.
///
/// # Errors
/// If a field or item does not exist, or its position is undefined.
pub fn length_min(headers: &[Header], payload: &Payload) -> Result<usize, AssembleError> {
    Ok(end(&position::place(headers)?) + payload.length_min())
}

/// Returns the end of the last header.
fn end(placed: &[PlacedHeader]) -> usize {
    placed.last().map_or(0, |last| last.offset + last.length)
}

impl Assembled {
    /// Returns the position of a header's field. `field` is a name, or for an item's field a path
    /// with the item number from 0, as in `options.0.value`.
    ///
    /// # Errors
    /// If there is no such header or field, or the field is absent.
    pub fn place(&self, header: usize, field: &str) -> Result<FieldPosition, AssembleError> {
        let error = |name, problem| AssembleError {
            header: Some((header, name)),
            field: Some(field.to_string()),
            problem,
        };
        let Some(placed) = self.headers.get(header) else {
            let count = self.headers.len();
            return Err(error("none", Problem::UnknownHeader { count }));
        };
        placed.field(field).map_err(|problem| error(placed.layout.name, problem))
    }

    /// Returns a write of the program's variable `variable` to a field.
    ///
    /// # Errors
    /// As [`place`](Self::place), or if the field is empty or exceeds 16 bytes.
    pub fn write(
        &self,
        header: usize,
        field: &str,
        variable: usize,
    ) -> Result<Write, AssembleError> {
        let place = self.place(header, field)?;
        let bytes = place.bytes();
        if bytes.is_empty() || bytes.len() > 16 {
            let name = self.headers.get(header).map_or("none", |placed| placed.layout.name);
            return Err(AssembleError {
                header: Some((header, name)),
                field: Some(field.to_string()),
                problem: Problem::NotVariable { bits: place.bits },
            });
        }
        let shift = 8 * bytes.end - (place.bit_offset + place.bits);
        let ones = u128::MAX.checked_shr(128 - place.bits as u32).unwrap_or(0);
        Ok(Write {
            variable,
            offset: bytes.start,
            width: bytes.len(),
            add: 0,
            shift: shift as i32,
            mask: ones << shift,
            order: ByteOrder::Network,
        })
    }

    /// Returns the steps of a program that performs `writes` and, if `length` is given, sets the
    /// frame length to that variable. It includes only the corrections that these changes need.
    ///
    /// A length or checksum that `writes` write is not corrected. If `is_measured`, each frame
    /// carries a signature, so a CRC that covers it is computed for each frame.
    pub fn program_steps(
        &self,
        length: Option<usize>,
        writes: &[Write],
        is_measured: bool,
    ) -> Vec<Step> {
        let varies = length.is_some();
        let mut steps: Vec<Step> =
            length.map(|variable| Step::Length { variable }).into_iter().collect();
        steps.extend(writes.iter().cloned().map(Step::Write));
        let mut changed: Vec<_> = writes.iter().map(Write::target).collect();
        let written = changed.len();
        for step in &self.steps {
            let is_needed = match step {
                Step::WriteLength { .. } => varies,
                Step::Checksum(sum) | Step::WrongChecksum(sum) => {
                    let covered = covered(sum, self.frame.len());
                    let is_open = matches!(
                        sum,
                        Checksum::Internet { end: None, .. } | Checksum::Crc32c { .. }
                    );
                    let is_changed = changed.iter().any(|range| overlaps_any(range, &covered));
                    let is_signed = is_measured && matches!(sum, Checksum::Crc32c { .. });
                    is_changed || is_signed || varies && is_open
                }
                Step::Write(_) | Step::Length { .. } => false,
            };
            let target = step.target();
            let is_written = changed.iter().take(written).any(|range| overlap(range, &target));
            if is_needed && !is_written {
                steps.push(step.clone());
                changed.push(target);
            }
        }
        steps
    }
}

/// Returns the ranges that a checksum covers: a part of the frame, and addresses.
fn covered(sum: &Checksum, frame_length: usize) -> [Range<usize>; 2] {
    match *sum {
        Checksum::Internet { start, end, pseudo_header, .. } => {
            let addresses = match pseudo_header {
                PseudoHeader::None => 0..0,
                PseudoHeader::Ipv4 { header, .. } => header + 12..header + 20,
                PseudoHeader::Ipv6 { header, .. } => header + 8..header + 40,
            };
            [start..end.unwrap_or(frame_length), addresses]
        }
        Checksum::Crc32c { start, .. } => [start..frame_length, 0..0],
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn overlaps_any(range: &Range<usize>, others: &[Range<usize>]) -> bool {
    others.iter().any(|other| overlap(range, other))
}
