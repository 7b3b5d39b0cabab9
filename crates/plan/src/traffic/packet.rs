//! Packets of flows: lowers a list of headers, or a captured frame, to a template and a program.

use std::mem;

use serde_json::Value;
use wirestorm_model::assemble::{self, AssembleError, Assembled, Header, Payload, Problem};
use wirestorm_model::stream::{Program, Values, Variable, Write};
use wirestorm_wire::layout::{self, Field, Layout, Role, ValueKind};

use super::advance_order::resolve_advances;
use super::bytes;
use super::captured_packet::{self, FrameLoader};
use super::pattern::{self, BitSlice, Pattern};
use super::size::FrameSize;
use super::template::{AutoAddresses, FRAME_LENGTH_MIN, Packet, SIGNATURE_BYTES};
use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::value_at::{Fields, ValueAt};

/// Items of a packet that are not headers.
pub(super) const NON_HEADERS: [&str; 2] = ["payload", "capture"];

pub(super) const PAYLOADS: [&str; 6] =
    ["fixed", "bytes", "text", "increment_byte", "increment_word", "zeros"];

/// Reads a packet.
pub(super) fn read(
    place: &ValueAt<'_>,
    size: &FrameSize,
    is_measured: bool,
    load: &mut FrameLoader<'_>,
) -> Result<Packet, PlanErrors> {
    let items = place.items("headers, such as ethernet, ipv4, udp")?;
    let mut names: Vec<_> = layout::all().iter().map(|layout| layout.name).collect();
    names.extend(NON_HEADERS);
    let mut reader = Reader::default();
    let mut payload = None;
    for (position, item) in items.iter().enumerate() {
        let Some((name, value)) = reader.problems.take(item.choice(&names)) else { continue };
        if name == "capture" {
            if items.len() == 1 {
                return Ok(captured_packet::read(&value, size, is_measured, load)?);
            }
            let error = value.error("a capture among headers", "the capture alone");
            reader.problems.take::<()>(Err(error));
        } else if name == "payload" {
            if position + 1 != items.len() {
                let error = value.error("a payload in the middle", "the payload last");
                reader.problems.take::<()>(Err(error));
            }
            payload = reader.problems.take(read_payload(&value));
        } else if let Some(layout) = layout::find(name) {
            reader.header(layout, &value);
        }
    }
    mem::take(&mut reader.problems).finish(())?;
    if reader.headers.is_empty() {
        return Err(place.unexpected("at least one header").into());
    }
    Ok(reader.finish(place, size, payload, is_measured)?)
}

/// A field that varies.
struct Varying<'a> {
    /// Index of the header in the packet.
    header: usize,
    /// Name of the field, with the path of its item.
    field: String,
    values: Values,
    restart_after: Option<std::num::NonZeroU64>,
    after: Option<ValueAt<'a>>,
    part: Option<BitSlice>,
}

#[derive(Default)]
struct Reader<'a> {
    headers: Vec<Header>,
    /// Place of each header in the plan.
    header_places: Vec<ValueAt<'a>>,
    varying: Vec<Varying<'a>>,
    /// Errors of the headers.
    problems: ErrorCollector,
}

impl<'a> Reader<'a> {
    fn header(&mut self, layout: &'static Layout, place: &ValueAt<'a>) {
        let header = self.fields(layout, place, "");
        self.headers.push(header);
        self.header_places.push(place.clone());
    }

    /// Reads the fields and items of a header, or of an item below `path`. Records errors, and
    /// skips the faulty fields.
    fn fields(&mut self, layout: &'static Layout, place: &ValueAt<'a>, path: &str) -> Header {
        let mut header = Header::new(layout);
        if place.value().is_null() {
            return header;
        }
        let mut known: Vec<_> = layout.fields.iter().map(|field| field.name).collect();
        if !layout.items.name.is_empty() {
            known.push(layout.items.name);
        }
        let is_raw = layout.is(&layout::custom::CUSTOM) && path.is_empty();
        let is_range = |name: &str| is_raw && name.starts_with("bytes[");
        let fields = place.fields_collecting(&known, is_range, &mut self.problems);
        let Some(fields) = fields else { return header };
        if is_raw {
            let raw = self.raw(layout, &fields);
            return self.problems.take(raw).unwrap_or(header);
        }
        for (name, value) in fields.all().filter(|(name, _)| known.contains(name)) {
            let Some(field) = layout.field(name) else {
                header.items = self.items(layout, &value, &format!("{path}{name}."));
                continue;
            };
            let value = self.field(field, &value, path);
            if let Some(value) = self.problems.take(value) {
                header = header.with(name.to_owned(), value);
            }
        }
        header
    }

    /// Reads a field of a header, or of an item below `path`. Returns the first value of a field
    /// that varies.
    fn field(
        &mut self,
        field: &Field,
        place: &ValueAt<'a>,
        path: &str,
    ) -> Result<assemble::Value, PlanError> {
        if field.kind == ValueKind::Bytes {
            return Ok(read_bytes(place)?.into());
        }
        let is_checksum = matches!(field.role, Role::Checksum(_));
        Ok(match pattern::read(place, field.kind, field.bits as u32, is_checksum)? {
            Pattern::Auto => assemble::Value::Auto,
            Pattern::Bad => assemble::Value::WrongChecksum,
            Pattern::Value(number) => number.into(),
            Pattern::Varies { values, restart_after, after, part } => {
                let first = part.map_or(values.nth(0), |part| {
                    part.with(part.base.unwrap_or(field.default), values.nth(0))
                });
                let first = first & (u128::MAX >> (128 - field.bits.clamp(1, 128)));
                let (header, field) = (self.headers.len(), format!("{path}{}", field.name));
                self.varying.push(Varying { header, field, values, restart_after, after, part });
                first.into()
            }
        })
    }

    /// Reads the `custom` header: raw bytes, of which ranges can vary.
    fn raw(&mut self, layout: &'static Layout, fields: &Fields<'a>) -> Result<Header, PlanError> {
        let mut raw = fields.get("bytes").map_or(Ok(Vec::new()), |bytes| read_bytes(&bytes))?;
        for (name, place) in fields.all().filter(|(name, _)| *name != "bytes") {
            let range = bytes::range(name).filter(|range| range.end <= raw.len());
            let range = range.ok_or_else(|| {
                let (most, length) = (bytes::WIDTH_MAX, raw.len());
                let expected = format!(
                    "bytes[FIRST..END], at most {most} of the {length} of the field bytes, from 0"
                );
                place.error(name, expected)
            })?;
            let range_write = bytes::write(&range, 0);
            match pattern::read(&place, ValueKind::Uint, bytes::bits(&range), false)? {
                Pattern::Value(value) => range_write.apply(value, &mut raw),
                Pattern::Varies { values, restart_after, after, part } => {
                    if let Some(base) = part.and_then(|part| part.base) {
                        range_write.apply(base, &mut raw);
                    }
                    part.map_or(range_write.clone(), |part| part.of(range_write))
                        .apply(values.nth(0), &mut raw);
                    let (header, field) = (self.headers.len(), name.to_owned());
                    self.varying.push(Varying {
                        header,
                        field,
                        values,
                        restart_after,
                        after,
                        part,
                    });
                }
                Pattern::Auto | Pattern::Bad => {
                    return Err(place.unexpected("a value, or a pattern"));
                }
            }
        }
        Ok(Header::new(layout).with("bytes", raw))
    }

    fn items(&mut self, layout: &'static Layout, place: &ValueAt<'a>, path: &str) -> Vec<Header> {
        let names: Vec<_> = layout.items.layouts.iter().map(|item| item.name).collect();
        let item_places = self.problems.take(place.items(layout.items.name)).unwrap_or_default();
        let mut items = Vec::new();
        for (position, item) in item_places.iter().enumerate() {
            let Some((name, value)) = self.problems.take(item.choice(&names)) else { continue };
            if let Some(layout) = layout.item(name) {
                items.push(self.fields(layout, &value, &format!("{path}{position}.")));
            }
        }
        items
    }

    fn finish(
        self,
        place: &ValueAt<'a>,
        size: &FrameSize,
        payload: Option<Payload>,
        is_measured: bool,
    ) -> Result<Packet, PlanError> {
        let error = |error: AssembleError| self.error(place, &error);
        let reserved = if is_measured { SIGNATURE_BYTES } else { 0 };
        let payload_or_zeros = payload.clone().unwrap_or(Payload::Zeros);
        let needed = assemble::length_min(&self.headers, &payload_or_zeros).map_err(error)?;
        let least = needed + reserved;
        let length = match size {
            FrameSize::AsBuilt => least.max(FRAME_LENGTH_MIN),
            FrameSize::IpPacket(bytes) => self.ip_offset(place)? + bytes,
            other => other.max().unwrap_or(least),
        };
        let shortest = size.min().unwrap_or(length);
        if shortest < least {
            let what =
                if is_measured { "headers, payload and signature" } else { "headers and payload" };
            return Err(place.message_error(format!(
                "{what} need a frame of {} bytes with FCS, and the size is {}",
                least + 4,
                shortest + 4
            )));
        }
        let payload = match payload {
            // Without a payload, the bytes up to Ethernet's minimum length are padding and belong
            // to no packet.
            None if *size == FrameSize::AsBuilt && !is_measured => Payload::Padding,
            None => Payload::Zeros,
            Some(payload) => payload,
        };
        let assembled = match assemble::assemble(&self.headers, &payload, length) {
            // Some packets have no length field and extend to the end of the frame.
            Err(AssembleError { problem: Problem::Padded, .. }) if payload == Payload::Padding => {
                assemble::assemble(&self.headers, &Payload::Zeros, length)
            }
            outcome => outcome,
        }
        .map_err(error)?;
        let start = assemble::length_min(&self.headers, &Payload::Zeros).map_err(error)?;
        let assembled = if is_measured {
            self.with_signature_zeroed(place, assembled, start)?
        } else {
            assembled
        };
        let program = self.program(place, size, &assembled, is_measured)?;
        let payload = size.values().is_none().then_some(start);
        let found = self.auto_addresses()?;
        Ok(Packet { template: assembled.frame, program, payload, found })
    }

    /// Returns which addresses of the first header are `auto`.
    fn auto_addresses(&self) -> Result<AutoAddresses, PlanError> {
        let (Some(header), Some(place)) = (self.headers.first(), self.header_places.first()) else {
            return Ok(AutoAddresses::default());
        };
        let is_auto = |field: &str| {
            let of_field = |(name, value): &(_, assemble::Value)| {
                name == field && *value == assemble::Value::Auto
            };
            header.layout.name == "ethernet" && header.values.iter().any(of_field)
        };
        let found = AutoAddresses { source: is_auto("src"), destination: is_auto("dst") };
        let second = self.headers.get(1).map_or("", |header| header.layout.name);
        if found.destination && !matches!(second, "ipv4" | "ipv6") {
            return Err(PlanError {
                path: format!("{}.dst", place.path()),
                message: "auto is the Ethernet address of the next hop to an IP destination; \
                          expected an ipv4 or ipv6 header next, or an address here"
                    .into(),
            });
        }
        Ok(found)
    }

    /// Reassembles the frame with zeros in place of its signature: a signature is neutral to
    /// checksums.
    fn with_signature_zeroed(
        &self,
        place: &ValueAt<'a>,
        assembled: Assembled,
        start: usize,
    ) -> Result<Assembled, PlanError> {
        let error = |error: AssembleError| self.error(place, &error);
        let mut payload = assembled.frame[start..].to_vec();
        let signature = payload.len().saturating_sub(SIGNATURE_BYTES);
        payload[signature..].fill(0);
        let length = assembled.frame.len();
        assemble::assemble(&self.headers, &Payload::Bytes(payload), length).map_err(error)
    }

    /// Returns the offset of the first IP header.
    fn ip_offset(&self, place: &ValueAt<'a>) -> Result<usize, PlanError> {
        let assembled = assemble::assemble(&self.headers, &Payload::Zeros, 4_096)
            .map_err(|error| self.error(place, &error))?;
        let is_ip = |layout: &Layout| matches!(layout.name, "ipv4" | "ipv6");
        assembled
            .headers
            .iter()
            .find(|header| is_ip(header.layout))
            .map(|header| header.offset)
            .ok_or_else(|| place.message_error("a size by IP length needs an ipv4 or ipv6 header"))
    }

    fn program(
        &self,
        place: &ValueAt<'a>,
        size: &FrameSize,
        assembled: &Assembled,
        is_measured: bool,
    ) -> Result<Program, PlanError> {
        let afters: Vec<_> = self.varying.iter().map(|varying| varying.after.clone()).collect();
        let advances = resolve_advances(&afters, |text| self.find(text))?;
        let mut variables = Vec::new();
        let mut writes: Vec<Write> = Vec::new();
        for (index, (varying, advance)) in self.varying.iter().zip(advances).enumerate() {
            let (values, restart_after) = (varying.values.clone(), varying.restart_after);
            variables.push(Variable { values, advance, restart_after });
            let write = match bytes::range(&varying.field) {
                Some(range) => {
                    let start = assembled.headers.get(varying.header).map_or(0, |it| it.offset);
                    bytes::write(&(start + range.start..start + range.end), index)
                }
                None => assembled
                    .write(varying.header, &varying.field, index)
                    .map_err(|error| self.error(place, &error))?,
            };
            writes.push(varying.part.map_or(write.clone(), |part| part.of(write)));
        }
        let length = size.values().map(|values| {
            variables.push(Variable::new(values));
            variables.len() - 1
        });
        Ok(Program { steps: assembled.program_steps(length, &writes, is_measured), variables })
    }

    /// Finds a varying field by name: `ipv4.src`, or `packet[2].src` if there are several such
    /// headers.
    fn find(&self, text: &str) -> Option<usize> {
        let (header, field) = text.split_once('.')?;
        let number = header.strip_prefix("packet[").and_then(|rest| rest.strip_suffix(']'));
        let is_header = |index: usize| match number {
            Some(number) => number.parse() == Ok(index),
            None => self.headers[index].layout.name == header,
        };
        self.varying.iter().position(|varying| is_header(varying.header) && varying.field == field)
    }

    fn error(&self, place: &ValueAt<'a>, error: &AssembleError) -> PlanError {
        let at = error.header.and_then(|(index, _)| self.header_places.get(index)).unwrap_or(place);
        let mut path = at.path();
        if let Some(field) = &error.field {
            path = format!("{path}.{field}");
        }
        PlanError { path, message: error.problem.to_string() }
    }
}

fn read_payload(place: &ValueAt<'_>) -> Result<Payload, PlanError> {
    if place.value().as_str() == Some("zeros") {
        return Ok(Payload::Zeros);
    }
    let (form, value) = place.choice(&PAYLOADS)?;
    Ok(match form {
        "fixed" => Payload::Pattern(read_bytes(&value)?),
        "bytes" => Payload::Bytes(read_bytes(&value)?),
        "text" => Payload::text(value.string("a text")?),
        "increment_byte" => Payload::IncrementingBytes(value.integer(0, 255)? as u8),
        "increment_word" => Payload::IncrementingWords(value.integer(0, 65_535)? as u16),
        _ if matches!(value.value(), Value::Null | Value::Bool(true)) => Payload::Zeros,
        _ => return Err(value.unexpected("nothing, or true")),
    })
}

fn read_bytes(place: &ValueAt<'_>) -> Result<Vec<u8>, PlanError> {
    const EXPECTED: &str = "bytes as hexadecimal digits, such as \"deadbeef\" or \"de:ad:be:ef\"";
    let text = place.text(EXPECTED)?.replace([' ', '\n'], "");
    ValueKind::parse_bytes(&text).map_err(|_| place.unexpected(EXPECTED))
}
