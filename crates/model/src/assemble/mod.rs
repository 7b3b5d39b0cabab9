//! Frames from lists of headers.
//!
//! ```text
//! [Header], Payload, frame length
//!     │ place: where each header, item and field stands
//!     │ fill:  values as given; lengths, next protocols, counts; then checksums, inner ones first
//!     └─ Assembled: the frame, the places, and the steps that keep it right where fields vary
//! ```
//!
//! What was given is written as it was given, so that frames can be wrong on purpose; what was
//! not is filled in by the layout's roles.
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
//! // The source address shall be the program's variable 0: two checksums follow it.
//! let steps = assembled.program_steps(None, &[assembled.write(1, "src", 0)?], false);
//! assert!(matches!(steps[..], [Step::Write(_), Step::Checksum(_), Step::Checksum(_)]));
//! # Ok(())
//! # }
//! ```

mod error;
mod fill;
mod header;
mod payload;
mod place;
mod recognise;
mod sum;

pub use error::{AssembleError, Problem};
pub use header::{Header, Value};
pub use payload::Payload;
pub use place::{Place, Placed};
pub use recognise::recognise;

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use self::fill::PacketEnd;
use crate::stream::{ByteOrder, Checksum, PseudoHeader, Step, Write};

/// The longest frame that is assembled, in bytes without FCS.
pub const FRAME_LENGTH_MAX: usize = 65_535;

/// A frame, and where everything is in it.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The frame without FCS.
    pub frame: Vec<u8>,
    /// Its headers, in their order.
    pub headers: Vec<Placed>,
    /// What makes lengths and checksums right again, whatever of the frame varies, its length
    /// too, in the order in which it must be done. Those that were given a value are left alone.
    pub steps: Vec<Step>,
}

/// Makes a frame of `frame_length` bytes without FCS.
///
/// # Errors
/// Where a header has no such field or item, a value does not fit its field, a checksum has
/// nothing to stand on, or the frame is too short or too long.
pub fn assemble(
    headers: &[Header],
    payload: &Payload,
    frame_length: usize,
) -> Result<Assembled, AssembleError> {
    if frame_length > FRAME_LENGTH_MAX {
        let problem = Problem::FrameTooLong { found: frame_length, limit: FRAME_LENGTH_MAX };
        return Err(AssembleError::of_frame(problem));
    }
    let placed = place::place(headers)?;
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

/// The least length of a frame with these headers and this payload, in bytes without FCS.
///
/// # Errors
/// Where a header has no such field or item, or its places cannot be told.
pub fn length_min(headers: &[Header], payload: &Payload) -> Result<usize, AssembleError> {
    Ok(end(&place::place(headers)?) + payload.length_min())
}

/// Where the last header ends.
fn end(placed: &[Placed]) -> usize {
    placed.last().map_or(0, |last| last.offset + last.length)
}

impl Assembled {
    /// Where a field of a header stands; `field` is a name, or for an item's field a path of the
    /// items' number, from 0, and its name, as in `options.0.value`.
    ///
    /// # Errors
    /// Where there is no such header or field, or the header does not have it here.
    pub fn place(&self, header: usize, field: &str) -> Result<Place, AssembleError> {
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

    /// A way for the values of the program's variable `variable` into a field.
    ///
    /// # Errors
    /// As [`place`](Self::place); where the field has more than 16 bytes or none.
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

    /// The steps of a program that makes `writes`, and varies the frame's length by the variable
    /// `length` where there is one: all that is needed for that, nothing that is not.
    ///
    /// A length or checksum that one of `writes` writes is left as it was written. Where each frame
    /// is to carry a signature, `is_measured`, a CRC that covers it is made for each.
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

/// What a checksum covers: its part of the frame, and addresses.
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
