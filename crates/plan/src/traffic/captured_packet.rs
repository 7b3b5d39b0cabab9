//! Packets of flows from a capture: a captured frame and its changes.

use std::num::NonZeroU64;

use wirestorm_model::assemble::{Assembled, FRAME_LENGTH_MAX, recognise};
use wirestorm_model::stream::{Program, Step, Values, Variable, Write};
use wirestorm_wire::layout::{Role, ValueKind};

use super::advance_order::resolve_advances;
use super::bytes;
use super::pattern::{self, Pattern};
use super::size::FrameSize;
use super::template::{AutoAddresses, FRAME_LENGTH_MIN, Packet, SIGNATURE_BYTES};
use crate::document::error::PlanError;
use crate::document::value_at::{ValueAt, suggestion};

/// Returns the frame with this number, from 1, of the capture with this name in the plan. Returns
/// an Ethernet frame without FCS, or the reason why there is none.
pub(super) type FrameLoader<'a> = dyn FnMut(&str, u64) -> Result<Vec<u8>, String> + 'a;

pub(super) const CAPTURE: [&str; 3] = ["file", "number", "fields"];

/// Bytes of an Ethernet header, the shortest frame that is accepted.
const ETHERNET_BYTES: usize = 14;

/// Reads the `capture` item of a packet.
pub(super) fn read(
    place: &ValueAt<'_>,
    size: &FrameSize,
    is_measured: bool,
    load: &mut FrameLoader<'_>,
) -> Result<Packet, PlanError> {
    let fields = place.fields(&CAPTURE)?;
    let file = fields.required("file", "the name of a capture file")?;
    let number = fields.get("number").map_or(Ok(1), |number| number.integer(1, u64::MAX))?;
    let frame = load(file.string("the name of a capture file")?, number)
        .map_err(|message| file.message_error(message))?;
    if !(ETHERNET_BYTES..=FRAME_LENGTH_MAX).contains(&frame.len()) {
        let found = format!("{} bytes in packet {number}", frame.len());
        let expected = format!("a frame of {ETHERNET_BYTES} to {FRAME_LENGTH_MAX}");
        return Err(file.error(found, expected));
    }
    let is_resized = is_measured || *size != FrameSize::AsBuilt;
    let assembled = if is_resized {
        resized(frame, place, size, is_measured)?
    } else {
        let mut frame = frame;
        frame.resize(frame.len().max(FRAME_LENGTH_MIN), 0);
        recognise(frame)
    };
    let mut changes = Changes { assembled, is_measured, constant: Vec::new(), varying: Vec::new() };
    if let Some(fields) = fields.get("fields") {
        for (name, value) in fields.entries("fields, such as ipv4.src or bytes[42..44]")? {
            changes.field(name, &value)?;
        }
    }
    changes.finish(size, is_resized)
}

/// Returns the frame with its new length: truncated, or extended with zeros.
fn resized(
    mut frame: Vec<u8>,
    place: &ValueAt<'_>,
    size: &FrameSize,
    is_measured: bool,
) -> Result<Assembled, PlanError> {
    // Without padding behind the packet, its length fields follow the frame's length.
    let assembled = recognise(frame);
    let packet_end = assembled.packet_end();
    frame = assembled.frame;
    frame.truncate(packet_end);
    let mut assembled = recognise(frame);
    let reserved = if is_measured { SIGNATURE_BYTES } else { 0 };
    let length = match size {
        FrameSize::AsBuilt => (packet_end + reserved).max(FRAME_LENGTH_MIN),
        FrameSize::IpPacket(bytes) => {
            let mut headers = assembled.headers.iter();
            let ip = headers.find(|header| matches!(header.layout.name, "ipv4" | "ipv6"));
            let ip =
                ip.ok_or_else(|| place.message_error("a size by IP length needs an IP packet"))?;
            ip.offset + bytes
        }
        other => other.max().unwrap_or(packet_end),
    };
    let (shortest, needed) = (size.min().unwrap_or(length), assembled.headers_end() + reserved);
    if shortest < needed || length > FRAME_LENGTH_MAX {
        let what = if is_measured { "its headers and a signature" } else { "its headers" };
        let (least, most) = (needed + 4, FRAME_LENGTH_MAX + 4);
        let found = if shortest < needed { shortest + 4 } else { length + 4 };
        return Err(place.message_error(format!(
            "{what} need a frame of {least} bytes with FCS, at most {most}, and the size is {found}"
        )));
    }
    assembled.frame.resize(length, 0);
    assembled.frame[length - reserved..].fill(0);
    Ok(assembled)
}

/// Changes of a captured frame.
struct Changes<'a> {
    assembled: Assembled,
    is_measured: bool,
    /// Fields with a new constant value.
    constant: Vec<Write>,
    varying: Vec<Varying<'a>>,
}

/// A field that varies.
struct Varying<'a> {
    name: &'a str,
    write: Write,
    values: Values,
    restart_after: Option<NonZeroU64>,
    after: Option<ValueAt<'a>>,
}

/// A field and its write.
struct Target {
    kind: ValueKind,
    bits: u32,
    is_checksum: bool,
    write: Write,
}

impl<'a> Changes<'a> {
    fn field(&mut self, name: &'a str, place: &ValueAt<'a>) -> Result<(), PlanError> {
        let Target { kind, bits, is_checksum, write } = self.target(name, place)?;
        let others = self.constant.iter().chain(self.varying.iter().map(|other| &other.write));
        if others.into_iter().any(|other| bits_overlap(other, &write)) {
            return Err(place
                .message_error("overlaps a field that already has a value: remove one of them"));
        }
        match pattern::read(place, kind, bits, is_checksum)? {
            Pattern::Value(value) => {
                write.apply(value, &mut self.assembled.frame);
                let target = write.target();
                self.assembled.steps.retain(|step| !overlap(&step.target(), &target));
                self.constant.push(write);
            }
            Pattern::Varies { values, restart_after, after, part } => {
                if let Some(base) = part.and_then(|part| part.base) {
                    write.apply(base, &mut self.assembled.frame);
                }
                let write = part.map_or(write.clone(), |part| part.of(write));
                write.apply(values.nth(0), &mut self.assembled.frame);
                let write = Write { variable: self.varying.len(), ..write };
                self.varying.push(Varying { name, write, values, restart_after, after });
            }
            pattern @ (Pattern::Auto | Pattern::Bad) => {
                let target = write.target();
                let mut steps = self.assembled.steps.iter_mut();
                let Some(step) = steps.find(|step| step.target() == target) else {
                    return Err(place.unexpected("a value: Wirestorm cannot compute this field"));
                };
                if let (Pattern::Bad, Step::Checksum(sum)) = (pattern, &*step) {
                    *step = Step::WrongChecksum(*sum);
                }
                // Outer checksums and lengths depend on this field, so repair them too.
                let step = step.clone();
                self.assembled.repair(&[step]);
                let around =
                    self.assembled.program_steps(None, std::slice::from_ref(&write), false);
                self.assembled.repair(&around);
            }
        }
        Ok(())
    }

    /// Finds a field by name: `ipv4.src`, `ipv4[1].src` for the second IPv4 header, or
    /// `bytes[42..44]` for any bytes of the frame.
    fn target(&self, name: &str, place: &ValueAt<'_>) -> Result<Target, PlanError> {
        if name.starts_with("bytes[") {
            let length = self.assembled.frame.len();
            let range =
                bytes::range(name).filter(|range| range.end <= length).ok_or_else(|| {
                    let most = bytes::WIDTH_MAX;
                    let expected = format!(
                        "bytes[FIRST..END], at most {most} of the frame's {length}, from 0"
                    );
                    place.error(name, expected)
                })?;
            let (bits, write) = (bytes::bits(&range), bytes::write(&range, 0));
            return Ok(Target { kind: ValueKind::Uint, bits, is_checksum: false, write });
        }
        let (header, field) = name.split_once('.').unwrap_or((name, ""));
        let (header, nth) = match header.strip_suffix(']').and_then(|it| it.split_once('[')) {
            Some((header, nth)) => (header, nth.parse().ok()),
            None => (header, Some(0)),
        };
        let headers = &self.assembled.headers;
        let mut same = (0..headers.len()).filter(|&index| headers[index].layout.name == header);
        let Some(index) = nth.and_then(|nth: usize| same.nth(nth)) else {
            let names: Vec<_> = headers.iter().map(|header| header.layout.name).collect();
            let expected = format!("a field of {}, or bytes[FIRST..END]", names.join(", "));
            return Err(place.error("no such header in the frame", expected));
        };
        let fields = headers[index].layout.fields;
        let outcome = (self.assembled.place(index, field), self.assembled.write(index, field, 0));
        let (Ok(found), Ok(write)) = outcome else {
            let is_there = |name: &&str| self.assembled.place(index, name).is_ok();
            let names: Vec<_> = fields.iter().map(|field| field.name).filter(is_there).collect();
            return Err(place.error("an unknown field", suggestion(field, &names)));
        };
        let is_checksum = matches!(found.field.role, Role::Checksum(_));
        Ok(Target { kind: found.field.kind, bits: found.bits as u32, is_checksum, write })
    }

    fn finish(mut self, size: &FrameSize, is_resized: bool) -> Result<Packet, PlanError> {
        let writes: Vec<Write> = self.varying.iter().map(|it| it.write.clone()).collect();
        let written = [self.constant.as_slice(), &writes].concat();
        // The template is a valid frame: repair all that depends on the written fields.
        let steps = self.assembled.program_steps(is_resized.then_some(0), &written, false);
        self.assembled.repair(&steps);

        let afters: Vec<_> = self.varying.iter().map(|it| it.after.clone()).collect();
        let advances =
            resolve_advances(&afters, |name| self.varying.iter().position(|it| it.name == name))?;
        let mut variables: Vec<Variable> = self
            .varying
            .into_iter()
            .zip(advances)
            .map(|(it, advance)| Variable {
                values: it.values,
                advance,
                restart_after: it.restart_after,
            })
            .collect();
        let length = size.values().map(|values| {
            variables.push(Variable::new(values));
            variables.len() - 1
        });
        let start = self.assembled.headers_end();
        let steps = self.assembled.program_steps(length, &writes, self.is_measured);
        Ok(Packet {
            template: self.assembled.frame,
            program: Program { variables, steps },
            payload: length.is_none().then_some(start),
            found: AutoAddresses::default(),
        })
    }
}

fn overlap(a: &std::ops::Range<usize>, b: &std::ops::Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Returns whether two fields share bits.
fn bits_overlap(a: &Write, b: &Write) -> bool {
    let bits = |write: &Write, byte: usize| {
        let behind = (write.target().end - 1 - byte) as u32;
        (write.mask >> (8 * behind)) as u8
    };
    let (first, second) = (a.target(), b.target());
    let common = first.start.max(second.start)..first.end.min(second.end);
    common.into_iter().any(|byte| bits(a, byte) & bits(b, byte) != 0)
}
