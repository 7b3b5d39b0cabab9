//! Positions of headers and fields in a frame.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::error::{AssembleError, Problem};
use super::header::{Header, Value};
use wirestorm_wire::layout::{Field, Layout, Padding, Presence, Role, ValueKind};

/// A header in a frame, or an item in a header.
#[derive(Clone, Debug)]
pub struct PlacedHeader {
    /// Layout of the header.
    pub layout: &'static Layout,
    /// Offset in the frame.
    pub offset: usize,
    /// Length in bytes, items and padding included.
    pub length: usize,
    /// Items in their order.
    pub items: Vec<Self>,
    /// Position of each field of the layout, in the same order; `None` for absent fields.
    pub(super) places: Vec<Option<FieldPosition>>,
    /// Length in bytes without padding.
    pub(super) bare_length: usize,
    /// Length in bytes as the header's own length field counts it.
    pub(super) content_length: usize,
}

/// Position of a field in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPosition {
    /// The field.
    pub field: &'static Field,
    /// Offset in bits from the start of the frame.
    pub bit_offset: usize,
    /// Size in bits.
    pub bits: usize,
}

impl FieldPosition {
    /// Returns the range of bytes that contain bits of the field.
    pub const fn bytes(&self) -> Range<usize> {
        self.bit_offset / 8..(self.bit_offset + self.bits).div_ceil(8)
    }

    /// Returns the value; `None` if the frame ends before it or the field exceeds 128 bits.
    pub fn read(&self, frame: &[u8]) -> Option<u128> {
        if self.bits > 128 {
            return None;
        }
        let mut value = 0;
        for bit in self.bit_offset..self.bit_offset + self.bits {
            let byte = frame.get(bit / 8)?;
            value = value << 1 | u128::from(byte >> (7 - bit % 8) & 1);
        }
        Some(value)
    }

    /// Writes the lowest bits of `value`.
    pub(super) fn write(&self, frame: &mut [u8], value: u128) {
        for index in 0..self.bits {
            let bit = self.bit_offset + index;
            let is_set = value.checked_shr((self.bits - 1 - index) as u32).unwrap_or(0) & 1 == 1;
            if let Some(byte) = frame.get_mut(bit / 8) {
                let mask = 0x80 >> (bit % 8);
                *byte = if is_set { *byte | mask } else { *byte & !mask };
            }
        }
    }
}

impl PlacedHeader {
    /// Returns the positions of the present fields, in layout order.
    pub fn fields(&self) -> impl Iterator<Item = &FieldPosition> {
        self.places.iter().flatten()
    }

    /// Returns the position of a field by its name or path, as in `options.0.value`.
    pub(super) fn field(&self, path: &str) -> Result<FieldPosition, Problem> {
        if let Some(rest) = self.item_path(path) {
            let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let item = index.parse().ok().and_then(|index: usize| self.items.get(index));
            return item.ok_or(Problem::UnknownItem { count: self.items.len() })?.field(rest);
        }
        let index = self.layout.fields.iter().position(|field| field.name == path);
        let index = index.ok_or_else(|| unknown_field(self.layout))?;
        self.places.get(index).copied().flatten().ok_or(Problem::FieldAbsent)
    }

    fn item_path<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (name, rest) = path.split_once('.')?;
        (!name.is_empty() && name == self.layout.items.name).then_some(rest)
    }

    /// Returns the position of the first field whose role matches.
    pub(super) fn find(&self, fits: impl Fn(Role) -> bool) -> Option<FieldPosition> {
        self.places.iter().flatten().find(|place| fits(place.field.role)).copied()
    }
}

/// Places all headers, one behind the other.
pub(super) fn place(headers: &[Header]) -> Result<Vec<PlacedHeader>, AssembleError> {
    let mut placed: Vec<PlacedHeader> = Vec::with_capacity(headers.len());
    let mut offset = 0;
    for (index, header) in headers.iter().enumerate() {
        let one = place_one(header, offset, placed.last()).map_err(|(field, problem)| {
            AssembleError { header: Some((index, header.layout.name)), field, problem }
        })?;
        offset += one.length;
        placed.push(one);
    }
    Ok(placed)
}

/// Name or path of the field, and the problem.
pub(super) type FieldError = (Option<String>, Problem);

/// Places a header or an item at an offset.
pub(super) fn place_one(
    header: &Header,
    offset: usize,
    before: Option<&PlacedHeader>,
) -> Result<PlacedHeader, FieldError> {
    let layout = header.layout;
    for (name, _) in &header.values {
        if layout.field(name).is_none() {
            return Err((Some(name.as_ref().into()), unknown_field(layout)));
        }
    }
    let mut places = Vec::with_capacity(layout.fields.len());
    // Size of absent fields so far, and the end of the last present field.
    let (mut absent, mut end) = (0, 8 * offset);
    for field in layout.fields {
        let at = |problem| (Some(field.name.into()), problem);
        let place = if let Role::OwnNumber(space) = field.role {
            let in_front =
                before.and_then(|before| before.find(|role| role == Role::NextProtocol(space)));
            if header.value(field.name).is_some() && in_front.is_none() {
                return Err(at(Problem::NoHeaderBefore));
            }
            in_front.map(|place| FieldPosition { field, ..place })
        } else if is_present(header, field).map_err(at)? {
            let bits = size(header, field).map_err(at)?;
            let bit_offset = 8 * offset + field.bit_offset - absent;
            end = end.max(bit_offset + bits);
            Some(FieldPosition { field, bit_offset, bits })
        } else {
            absent += field.bits;
            None
        };
        places.push(place);
    }
    let mut end = end / 8;
    let mut items = Vec::with_capacity(header.items.len());
    for (index, item) in header.items.iter().enumerate() {
        let path = |rest: Option<String>| match rest {
            Some(rest) => format!("{}.{index}.{rest}", layout.items.name),
            None => format!("{}.{index}", layout.items.name),
        };
        if !layout.items.layouts.iter().any(|taken| taken.is(item.layout)) {
            let known = layout.items.layouts.iter().map(|layout| layout.name).collect();
            let problem = Problem::ItemNotAllowed { found: item.layout.name, known };
            return Err(((!layout.items.name.is_empty()).then(|| path(None)), problem));
        }
        let one = place_one(item, end, None).map_err(|(at, problem)| (Some(path(at)), problem))?;
        end += one.length;
        items.push(one);
    }
    let bare_length = end - offset;
    let length = bare_length.next_multiple_of(layout.align.max(1));
    let content_length = match layout.padding {
        Padding::UncountedZeros => bare_length,
        Padding::Zeros | Padding::Ipv6Options => length,
    };
    Ok(PlacedHeader { layout, offset, length, items, places, bare_length, content_length })
}

fn unknown_field(layout: &Layout) -> Problem {
    Problem::UnknownField { known: layout.fields.iter().map(|field| field.name).collect() }
}

fn is_present(header: &Header, field: &Field) -> Result<bool, Problem> {
    match field.presence {
        Presence::Always => Ok(true),
        Presence::IfSet(names) => Ok(names.iter().any(|name| header.value(name).is_some())),
        Presence::IfFlagSet(flags) => {
            let is_present = flags.iter().any(|flag| flag_value(header, flag) != 0);
            match flags.first() {
                Some(flag) if !is_present && header.value(field.name).is_some() => {
                    Err(Problem::FlagNotSet { flag })
                }
                _ => Ok(is_present),
            }
        }
    }
}

/// Returns the value of a flag: the given one, or 1 if a value needs the flag.
pub(super) fn flag_value(header: &Header, flag: &str) -> u128 {
    let Some(Field { role: Role::Flag(names), default, .. }) = header.layout.field(flag) else {
        return 0;
    };
    match header.value(flag) {
        Some(Value::Number(number)) => *number,
        _ => {
            let has_items = !header.items.is_empty();
            let has_value = names.iter().any(|name| {
                header.value(name).is_some() || has_items && *name == header.layout.items.name
            });
            if has_value { 1 } else { *default }
        }
    }
}

/// Returns the size of a field in bits.
fn size(header: &Header, field: &Field) -> Result<usize, Problem> {
    if field.kind != ValueKind::Bytes {
        return Ok(field.bits);
    }
    match header.value(field.name) {
        Some(Value::Bytes(bytes)) => Ok(8 * bytes.len()),
        Some(Value::Number(number)) => Err(Problem::NotANumber { found: *number }),
        Some(Value::Auto | Value::WrongChecksum) | None => Ok(0),
    }
}
