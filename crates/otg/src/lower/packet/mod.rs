//! Frames of a flow: headers, payload and the program that changes them.
//!
//! ```text
//! FlowHeader ─ known.rs: headers with a layout in `wirestorm_wire::layout`
//!            ├ plain.rs: headers by their layout in the models
//!            └ rsvp.rs, snmp.rs, cfm.rs
//!                  │ pattern.rs: values of a field, tag.rs: bits to count by
//!                  └─ Packet ── build ── template, program, tags
//! ```
//!
//! The layouts of `wirestorm_wire` have the field names of the models, and compute lengths, next
//! protocols and checksums. A field that the packet does not have follows its role in the layout;
//! if it has none, it has the default of the models.

mod bits;
mod cfm;
mod fields;
mod known;
mod pattern;
mod plain;
mod rsvp;
mod snmp;
mod tag;

pub(super) use known::hex;
pub use tag::MetricTag;

use std::num::NonZeroU64;
use std::ops::Range;

use wirestorm_model::assemble::{self, AssembleError, Assembled, Header, Payload, Value};
use wirestorm_model::stream::{
    ByteOrder, Checksum, Program, PseudoHeader, Step, Values, Variable, Write,
};
use wirestorm_plan::traffic::FrameSize;

use super::problems::{ConfigError, Problems, unsupported};
use super::size;
use crate::encoded::EncodedMessage;
use crate::view::View;

/// Bytes at the end of a measured frame that are reserved for its signature.
const SIGNATURE_BYTES: usize = 18;

/// Bytes of the FCS of a frame in a tunnel. Analysers and the conformance tests of the models count
/// it in the outer headers.
const FCS: usize = 4;

/// Minimum length of a frame: its Ethernet header.
const FRAME_LENGTH_MIN: usize = 14;

/// Fields that select the member of a link aggregation group, by layout.
const ADDRESSES: [(&str, [&str; 2]); 5] = [
    ("ethernet", ["dst", "src"]),
    ("ipv4", ["src", "dst"]),
    ("ipv6", ["src", "dst"]),
    ("tcp", ["src_port", "dst_port"]),
    ("udp", ["src_port", "dst_port"]),
];

/// First bytes of the payload of measured flows, if the configuration leaves the payload open: the
/// signature by which analysers, and the conformance tests of the models, recognise test traffic.
const MARK: [u8; 12] = [0x87, 0x73, 0x67, 0x49, 0x42, 0x87, 0x11, 0x80, 0x08, 0x71, 0x18, 0x05];

/// Headers of a frame, before it is assembled.
#[derive(Clone, Debug, Default)]
pub(super) struct Packet {
    headers: Vec<Header>,
    /// Path of each header, for errors.
    paths: Vec<String>,
    varying: Vec<Varying>,
    tags: Vec<HeaderTag>,
    lengths: Vec<OpenLength>,
    checksums: Vec<OpenChecksum>,
    /// Whether members of a link aggregation group share the frames.
    pub(super) is_distributed: bool,
}

/// A length of 16 bits, from a byte of its header to the end of the frame, in a header that is
/// written as bytes.
#[derive(Clone, Copy, Debug)]
struct OpenLength {
    header: usize,
    offset: usize,
    from: usize,
}

/// An Internet checksum over a header that is written as bytes, some of which vary.
#[derive(Clone, Copy, Debug)]
struct OpenChecksum {
    header: usize,
    offset: usize,
    /// End of the covered bytes in the header.
    end: usize,
    is_wrong: bool,
}

/// A field with different values.
#[derive(Clone, Debug)]
struct Varying {
    header: usize,
    place: Place,
    values: Values,
    restart_after: Option<NonZeroU64>,
}

/// Place of a field in its header.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// A field of the layout, or the path of one in an item.
    Field(String),
    /// Bits of a header that is written as bytes.
    Bits { offset: usize, bits: usize },
}

/// A tag, with its offset in the field.
#[derive(Clone, Debug)]
struct HeaderTag {
    header: usize,
    place: Place,
    tag: MetricTag,
}

/// A template with its program.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) template: Vec<u8>,
    pub(super) program: Program,
    /// Offset of the payload, if it is the same in every frame.
    pub(super) payload: Option<usize>,
    /// Bytes behind the payload: the FCS of frames in tunnels.
    pub(super) trailer: u8,
    pub(super) tags: Vec<MetricTag>,
    /// Bytes of the addresses, if members of a link aggregation group share the frames.
    pub(super) addresses: Vec<Range<usize>>,
}

/// Reads the headers of a packet. An empty packet has an Ethernet header.
pub(super) fn read(packet: &[EncodedMessage], path: &str, problems: &mut Problems) -> Packet {
    let ethernet = [EncodedMessage::default()];
    let packet = if packet.is_empty() { &ethernet } else { packet };
    let mut found = Packet::default();
    for (index, header) in packet.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let Some(view) = View::of("FlowHeader", header) else { continue };
        let is_last = index + 1 == packet.len();
        let outcome = found.header(view, is_last, &path, problems);
        problems.take(outcome);
    }
    found
}

impl Packet {
    fn header(
        &mut self,
        view: View<'_>,
        is_last: bool,
        path: &str,
        problems: &mut Problems,
    ) -> Result<(), ConfigError> {
        let choice = view.choice().ok_or_else(|| ConfigError::new(path, "found no choice"))?;
        let path = format!("{path}.{choice}");
        let inner = view.message(choice).ok_or_else(|| unsupported(&path))?;
        if known::read(self, choice, inner, is_last, &path, problems)? {
            return Ok(());
        }
        match choice {
            "rsvp" => rsvp::read(self, inner, &path, problems),
            "snmpv2c" => snmp::read(self, inner, &path, problems),
            "cfm" => cfm::read(self, inner, &path, problems),
            _ if plain::read(self, choice, inner, &path, problems)? => Ok(()),
            _ => Err(unsupported(path)),
        }
    }

    fn push(&mut self, header: Header, path: &str) {
        self.headers.push(header);
        self.paths.push(path.to_owned());
    }

    /// Returns the index of the first header with one of these layouts.
    fn find(&self, layouts: &[&str]) -> Option<usize> {
        self.headers.iter().position(|header| layouts.contains(&header.layout.name))
    }

    /// Returns whether there is a header with this layout.
    pub(super) fn has(&self, layout: &str) -> bool {
        self.find(&[layout]).is_some()
    }

    /// Sets a field of the first header with this layout, unless the packet gives its value. The
    /// values change with every frame. Returns whether it did.
    pub(super) fn set_if_open(
        &mut self,
        layout: &str,
        field: &'static str,
        values: &[u128],
    ) -> bool {
        let Some(index) = self.find(&[layout]) else { return false };
        let given = &mut self.headers[index].values;
        let is_open = given.iter().all(|(name, value)| *name != field || *value == Value::Auto);
        let Some(first) = values.first().filter(|_| is_open) else { return false };
        given.retain(|(name, _)| *name != field);
        given.push((field.into(), Value::Number(*first)));
        if values.iter().any(|value| value != first) {
            self.varying.push(Varying {
                header: index,
                place: Place::Field(field.to_owned()),
                values: Values::List(values.to_vec()),
                restart_after: None,
            });
        }
        true
    }

    /// Returns whether the packet starts with an Ethernet and an IP header.
    pub(super) fn has_ip_behind_ethernet(&self) -> bool {
        let mut names = self.headers.iter().map(|header| header.layout.name);
        names.next() == Some("ethernet") && matches!(names.next(), Some("ipv4" | "ipv6"))
    }

    /// Returns the values of a field of the first header with this layout, as a list of at most
    /// `count`; `None` if the packet does not give them.
    pub(super) fn values(&self, layout: &str, field: &str, count: u64) -> Option<Vec<u128>> {
        let index = self.find(&[layout])?;
        let is_field = |varying: &&Varying| {
            varying.header == index && varying.place == Place::Field(field.to_owned())
        };
        if let Some(varying) = self.varying.iter().find(is_field) {
            return Some((0..count).map(|n| varying.values.nth(n)).collect());
        }
        let mut given = self.headers[index].values.iter();
        match given.find(|(name, _)| *name == field)?.1 {
            Value::Number(number) => Some(vec![number]),
            _ => None,
        }
    }

    /// Exchanges two fields of the first header with this layout, with their values.
    pub(super) fn exchange(&mut self, layout: &str, one: &'static str, other: &'static str) {
        let Some(index) = self.find(&[layout]) else { return };
        let exchanged = |name: &str| match name {
            name if name == one => Some(other),
            name if name == other => Some(one),
            _ => None,
        };
        for (name, _) in &mut self.headers[index].values {
            if let Some(new) = exchanged(name) {
                *name = new.into();
            }
        }
        for varying in self.varying.iter_mut().filter(|varying| varying.header == index) {
            if let Place::Field(name) = &mut varying.place
                && let Some(new) = exchanged(name)
            {
                *name = new.to_owned();
            }
        }
    }

    /// Returns the tags with their offsets in the frame.
    ///
    /// # Errors
    /// If the headers cannot be assembled.
    pub(super) fn tags(&self) -> Result<Vec<MetricTag>, ConfigError> {
        if self.tags.is_empty() {
            return Ok(Vec::new());
        }
        let error = |error: AssembleError| self.error(&error);
        let length = assemble::length_min(&self.headers, &Payload::Zeros).map_err(error)?;
        let assembled =
            assemble::assemble(&self.headers, &Payload::Zeros, length).map_err(error)?;
        self.placed_tags(&assembled)
    }

    fn placed_tags(&self, assembled: &Assembled) -> Result<Vec<MetricTag>, ConfigError> {
        let mut placed = Vec::with_capacity(self.tags.len());
        for HeaderTag { header, place, tag } in &self.tags {
            let start = match place {
                Place::Field(field) => {
                    let place = assembled.place(*header, field);
                    place.map_err(|error| self.error(&error))?.bit_offset
                }
                Place::Bits { offset, .. } => offset + 8 * header_offset(assembled, *header),
            };
            placed.push(MetricTag { bit_offset: start + tag.bit_offset, ..tag.clone() });
        }
        Ok(placed)
    }

    /// Assembles the frames. Frames that are too short for their headers and the signature are
    /// longer than asked for, with a warning.
    ///
    /// # Errors
    /// If a value does not fit, or a checksum lacks its headers.
    pub(super) fn build(
        mut self,
        size: FrameSize,
        payload: &Payload,
        is_measured: bool,
        path: &str,
        problems: &mut Problems,
    ) -> Result<Built, ConfigError> {
        let headers_end = assemble::length_min(&self.headers, &Payload::Zeros);
        let headers_end = headers_end.map_err(|error| self.error(&error))?;
        let trailer = if size.values().is_none() { self.reserve_trailers() } else { 0 };
        let reserved = trailer + if is_measured { SIGNATURE_BYTES } else { 0 };
        let least = (headers_end + reserved).max(FRAME_LENGTH_MIN);
        let size = size::at_least(size, least, is_measured, &format!("{path}.size"), problems);
        let length = size.max().unwrap_or(least);
        let assemble = |this: &Self, payload: &Payload| {
            assemble::assemble(&this.headers, payload, length).map_err(|error| this.error(&error))
        };
        let mut assembled = assemble(&self, payload)?;
        if !self.lengths.is_empty() {
            self.fill_lengths(&assembled);
            assembled = assemble(&self, payload)?;
        }
        if is_measured {
            let mut bytes = assembled.frame[headers_end..].to_vec();
            // The signature is neutral to checksums if the template has zeros in its place.
            let signature = bytes.len().saturating_sub(SIGNATURE_BYTES + trailer);
            bytes[signature..].fill(0);
            let has_room = signature >= MARK.len() && size.values().is_none();
            // Other protocols give their payload a meaning.
            let is_data =
                self.headers.last().is_some_and(|it| ["udp", "tcp"].contains(&it.layout.name));
            if *payload == Payload::Zeros && has_room && is_data {
                bytes[..MARK.len()].copy_from_slice(&MARK);
            }
            assembled = assemble(&self, &Payload::Bytes(bytes))?;
        }
        let tags = self.placed_tags(&assembled)?;
        let program = self.program(&size, &assembled, is_measured)?;
        let payload = size.values().is_none().then_some(headers_end);
        let trailer = u8::try_from(trailer).unwrap_or(0);
        let addresses = if self.is_distributed { self.addresses(&assembled)? } else { Vec::new() };
        Ok(Built { template: assembled.frame, program, payload, trailer, tags, addresses })
    }

    /// Returns the bytes of the addresses and ports of all headers.
    fn addresses(&self, assembled: &Assembled) -> Result<Vec<Range<usize>>, ConfigError> {
        let mut found = Vec::new();
        for (index, header) in self.headers.iter().enumerate() {
            let known = ADDRESSES.iter().filter(|(layout, _)| *layout == header.layout.name);
            for field in known.flat_map(|(_, fields)| fields) {
                let place = assembled.place(index, field).map_err(|error| self.error(&error))?;
                found.push(place.bytes());
            }
        }
        Ok(found)
    }

    /// Reserves the FCS of each frame in a tunnel behind the headers of that frame. Returns the
    /// number of bytes.
    fn reserve_trailers(&mut self) -> usize {
        let mut trailer = 0;
        for (index, header) in self.headers.iter_mut().enumerate() {
            if index > 0 && header.layout.name == "ethernet" {
                trailer += FCS;
            }
            header.trailer = trailer;
        }
        trailer
    }

    /// Writes the lengths for a frame into the bytes of their headers.
    fn fill_lengths(&mut self, assembled: &Assembled) {
        for length in &self.lengths {
            let start = header_offset(assembled, length.header) + length.from;
            let value = assembled.frame.len().saturating_sub(start) as u16;
            let values = self.headers.get_mut(length.header).map(|header| &mut header.values);
            if let Some((_, Value::Bytes(bytes))) = values.and_then(|values| values.first_mut())
                && let Some(field) = bytes.get_mut(length.offset..length.offset + 2)
            {
                field.copy_from_slice(&value.to_be_bytes());
            }
        }
    }

    fn program(
        &self,
        size: &FrameSize,
        assembled: &Assembled,
        is_measured: bool,
    ) -> Result<Program, ConfigError> {
        let mut variables = Vec::with_capacity(self.varying.len() + 1);
        let mut writes = Vec::with_capacity(self.varying.len());
        for (index, varying) in self.varying.iter().enumerate() {
            variables.push(Variable {
                restart_after: varying.restart_after,
                ..Variable::new(varying.values.clone())
            });
            writes.push(match &varying.place {
                Place::Field(field) => assembled
                    .write(varying.header, field, index)
                    .map_err(|error| self.error(&error))?,
                Place::Bits { offset, bits } => {
                    let start = 8 * header_offset(assembled, varying.header) + offset;
                    write_bits(start, *bits, index)
                }
            });
        }
        let length = size.values().map(|values| {
            variables.push(Variable::new(values));
            variables.len() - 1
        });
        let mut steps = assembled.program_steps(length, &writes, is_measured);
        // Before the checksums that cover them.
        let is_sum = |step: &Step| matches!(step, Step::Checksum(_) | Step::WrongChecksum(_));
        let place = steps.iter().position(is_sum).unwrap_or(steps.len());
        if length.is_some() {
            for open in &self.lengths {
                let start = header_offset(assembled, open.header);
                let (offset, less) = (start + open.offset, start + open.from);
                steps.insert(place, Step::WriteLength { offset, less });
            }
        }
        for open in &self.checksums {
            let start = header_offset(assembled, open.header);
            let sum = Checksum::Internet {
                offset: start + open.offset,
                start,
                end: Some(start + open.end),
                pseudo_header: PseudoHeader::None,
                never_zero: false,
            };
            let is_wrong = open.is_wrong;
            let step = if is_wrong { Step::WrongChecksum(sum) } else { Step::Checksum(sum) };
            steps.insert(place, step);
        }
        Ok(Program { steps, variables })
    }

    fn error(&self, error: &AssembleError) -> ConfigError {
        let at = error.header.and_then(|(index, _)| self.paths.get(index));
        let at = at.or_else(|| self.paths.first()).cloned().unwrap_or_default();
        let path = match &error.field {
            Some(field) => format!("{at}.{field}"),
            None => at,
        };
        ConfigError::new(path, error.problem.to_string())
    }
}

fn header_offset(assembled: &Assembled, header: usize) -> usize {
    assembled.headers.get(header).map_or(0, |placed| placed.offset)
}

/// Returns a write of `bits` bits, 1 to 120, from a bit of the frame.
fn write_bits(start: usize, bits: usize, variable: usize) -> Write {
    let (offset, end) = (start / 8, (start + bits).div_ceil(8));
    let shift = 8 * end - (start + bits);
    Write {
        variable,
        offset,
        width: end - offset,
        add: 0,
        shift: shift as i32,
        mask: pattern::max_of(bits as u32) << shift,
        order: ByteOrder::Network,
    }
}
