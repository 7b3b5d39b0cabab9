//! Templates: which fields the records of a data set have.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wirestorm_base::bytes::Reader;

use crate::element::{self, FieldId, V9_SCOPE};
use crate::header::Version;
use crate::layout::Layout;
use crate::malformed::Malformed;

/// Length of a field whose length is in each record (RFC 7011 section 7).
pub const VARIABLE_LENGTH: u16 = u16::MAX;
/// Smallest identifier of a template; smaller ones identify other sets.
pub const TEMPLATE_ID_MIN: u16 = 256;

/// Longest record: what a message has room for behind a set header.
const RECORD_LENGTH_MAX: u32 = u16::MAX as u32;

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateField {
    /// What the field contains.
    pub id: FieldId,
    /// Length in bytes, or [`VARIABLE_LENGTH`].
    pub length: u16,
    /// Whether the field is part of the scope of options data (RFC 7011 section 3.4.2.1).
    pub is_scope: bool,
}

/// Offset and length of a field in a record, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: u16,
    pub(crate) length: u16,
}

impl Position {
    /// Returns the field of a record.
    pub(crate) fn of(self, record: &[u8]) -> &[u8] {
        let start = usize::from(self.offset);
        record.get(start..start + usize::from(self.length)).unwrap_or_default()
    }
}

/// A template that can decode records.
#[derive(Clone, Debug)]
pub struct Template {
    id: u16,
    fields: Box<[TemplateField]>,
    /// Offset of each field in a record, if no field has a variable length.
    offsets: Box<[u16]>,
    layout: Layout,
    record_length_min: u16,
    is_variable: bool,
    is_options: bool,
}

impl Template {
    /// Creates a template. It is an options template if a field is part of a scope.
    ///
    /// # Errors
    /// If `id` is less than [`TEMPLATE_ID_MIN`], or if records would be empty or longer than 65,535
    /// bytes.
    pub fn new(id: u16, fields: Vec<TemplateField>) -> Result<Self, Malformed> {
        match id {
            0..TEMPLATE_ID_MIN => Err(Malformed::TemplateId),
            _ => Self::build(id, fields),
        }
    }

    fn build(id: u16, fields: Vec<TemplateField>) -> Result<Self, Malformed> {
        let mut offsets = Vec::with_capacity(fields.len());
        let (mut length, mut is_variable) = (0_u32, false);
        for field in &fields {
            // A longer record is refused below.
            offsets.push(length.min(RECORD_LENGTH_MAX) as u16);
            is_variable |= field.length == VARIABLE_LENGTH;
            // A field of variable length has at least one byte, which is its length.
            length += if field.length == VARIABLE_LENGTH { 1 } else { field.length.into() };
            if length > RECORD_LENGTH_MAX {
                return Err(Malformed::RecordLength);
            }
        }
        if length == 0 {
            return Err(Malformed::RecordLength);
        }
        Ok(Self {
            id,
            layout: Layout::new(&fields, &offsets),
            is_options: fields.iter().any(|field| field.is_scope),
            fields: fields.into_boxed_slice(),
            offsets: offsets.into_boxed_slice(),
            record_length_min: length as u16,
            is_variable,
        })
    }

    /// The records of NetFlow v5, whose fields are those of NetFlow v9.
    pub(crate) fn v5() -> Self {
        let fields = V5_FIELDS.map(|(id, length)| TemplateField { id, length, is_scope: false });
        // The fields are constant, and a test decodes them.
        Self::build(0, fields.to_vec()).unwrap_or_else(|_| unreachable!())
    }

    /// Returns the identifier, 256 or more; 0 for the fixed fields of NetFlow v5.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Returns the fields in the order of the record.
    pub const fn fields(&self) -> &[TemplateField] {
        &self.fields
    }

    /// Returns whether the template describes options data rather than flows.
    pub const fn is_options(&self) -> bool {
        self.is_options
    }

    /// Returns the length of the shortest record in bytes. Without fields of variable length, it is
    /// the length of each record.
    pub const fn record_length_min(&self) -> u16 {
        self.record_length_min
    }

    /// Returns whether a field has a variable length.
    pub const fn is_variable(&self) -> bool {
        self.is_variable
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the position of a field, if no field has a variable length.
    pub(crate) fn position(&self, number: usize) -> Option<Position> {
        let (field, &offset) = (self.fields.get(number)?, self.offsets.get(number)?);
        (!self.is_variable).then_some(Position { offset, length: field.length })
    }

    /// Finds the fields of the record that `bytes` begins with, and returns its length. `positions`
    /// is overwritten. Returns `None` if the record ends beyond `bytes`.
    pub(crate) fn locate(&self, bytes: &[u8], positions: &mut Vec<Position>) -> Option<usize> {
        positions.clear();
        let mut reader = Reader::new(bytes);
        for field in &*self.fields {
            let length = match field.length {
                VARIABLE_LENGTH => match reader.u8()? {
                    255 => reader.u16()?,
                    length => length.into(),
                },
                length => length,
            };
            // A set has less than 65,536 bytes.
            let offset = (bytes.len() - reader.rest().len()) as u16;
            reader.bytes(length.into())?;
            positions.push(Position { offset, length });
        }
        Some(bytes.len() - reader.rest().len())
    }
}

/// A record of a template set.
#[derive(Debug)]
pub(crate) enum Definition {
    /// A template.
    Template(Template),
    /// A withdrawal of a template (RFC 7011 section 8.1); 2 or 3 for all.
    Withdrawal(u16),
}

/// Parser of the records of a template set or options template set.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    reader: Reader<'a>,
    version: Version,
    is_options: bool,
    fields_max: usize,
}

impl<'a> Definitions<'a> {
    /// Parses the body of a set of NetFlow v9 or IPFIX.
    pub(crate) const fn new(
        version: Version,
        is_options: bool,
        fields_max: usize,
        body: &'a [u8],
    ) -> Self {
        Self { reader: Reader::new(body), version, is_options, fields_max }
    }

    /// Returns the next record; `None` at the end, padding included.
    pub(crate) fn next(&mut self) -> Option<Result<Definition, Malformed>> {
        // Padding is shorter than a record, whose header has at least 4 bytes; and it is zero
        // (RFC 7011 section 3.3.1), while an identifier is not.
        let rest = self.reader.rest();
        if rest.len() < 4 || rest.iter().all(|&byte| byte == 0) {
            return None;
        }
        let record = match (self.version, self.is_options) {
            (Version::NetflowV9, true) => self.v9_options(),
            _ => self.record(),
        };
        Some(record)
    }

    /// RFC 7011 sections 3.4.1 and 3.4.2.2, RFC 3954 section 5.2.
    fn record(&mut self) -> Result<Definition, Malformed> {
        let truncated = Malformed::TruncatedTemplate;
        let id = self.reader.u16().ok_or(truncated)?;
        let count = self.reader.u16().ok_or(truncated)?;
        if count == 0 && self.version == Version::Ipfix {
            return Ok(Definition::Withdrawal(id));
        }
        let scopes = match self.is_options {
            true => self.reader.u16().ok_or(truncated)?,
            false => 0,
        };
        if self.is_options && !(1..=count).contains(&scopes) {
            return Err(Malformed::Scope);
        }
        let mut fields = self.fields(count.into())?;
        for number in 0..count {
            let mut field = self.field().ok_or(truncated)?;
            field.is_scope = number < scopes;
            fields.push(field);
        }
        Template::new(id, fields).map(Definition::Template)
    }

    /// RFC 3954 section 6.1: lengths in bytes instead of numbers of fields.
    fn v9_options(&mut self) -> Result<Definition, Malformed> {
        let truncated = Malformed::TruncatedTemplate;
        let id = self.reader.u16().ok_or(truncated)?;
        let scopes = self.reader.u16().ok_or(truncated)? / 4;
        let options = self.reader.u16().ok_or(truncated)? / 4;
        if scopes == 0 {
            return Err(Malformed::Scope);
        }
        let mut fields = self.fields(usize::from(scopes) + usize::from(options))?;
        for number in 0..u32::from(scopes) + u32::from(options) {
            let mut field = self.field().ok_or(truncated)?;
            if number < scopes.into() {
                field.is_scope = true;
                field.id.enterprise = V9_SCOPE;
            }
            fields.push(field);
        }
        Template::new(id, fields).map(Definition::Template)
    }

    /// Returns an empty list for `count` fields.
    fn fields(&self, count: usize) -> Result<Vec<TemplateField>, Malformed> {
        if count > self.fields_max {
            return Err(Malformed::TemplateFields);
        }
        // A field has at least 4 bytes: a wrong count reserves no memory beyond the set's.
        Ok(Vec::with_capacity(count.min(self.reader.rest().len() / 4)))
    }

    /// RFC 7011 section 3.2.
    fn field(&mut self) -> Option<TemplateField> {
        let number = self.reader.u16()?;
        let length = self.reader.u16()?;
        let id = match self.version {
            Version::Ipfix if number & 0x8000 != 0 => {
                FieldId { enterprise: self.reader.u32()?, number: number & 0x7fff }
            }
            _ => FieldId::iana(number),
        };
        Some(TemplateField { id, length, is_scope: false })
    }
}

/// Fields of a record of NetFlow v5, with their lengths.
pub(crate) const V5_FIELDS: [(FieldId, u16); 20] = [
    (element::SOURCE_IPV4, 4),
    (element::DESTINATION_IPV4, 4),
    (element::NEXT_HOP_IPV4, 4),
    (element::INPUT_INTERFACE, 2),
    (element::OUTPUT_INTERFACE, 2),
    (element::PACKET_DELTA_COUNT, 4),
    (element::OCTET_DELTA_COUNT, 4),
    (element::FIRST_SWITCHED, 4),
    (element::LAST_SWITCHED, 4),
    (element::SOURCE_PORT, 2),
    (element::DESTINATION_PORT, 2),
    (element::PADDING, 1),
    (element::TCP_FLAGS, 1),
    (element::PROTOCOL, 1),
    (element::TYPE_OF_SERVICE, 1),
    (element::SOURCE_AS, 2),
    (element::DESTINATION_AS, 2),
    (element::SOURCE_PREFIX_LENGTH, 1),
    (element::DESTINATION_PREFIX_LENGTH, 1),
    (element::PADDING, 2),
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn field(number: u16, length: u16) -> TemplateField {
        TemplateField { id: FieldId::iana(number), length, is_scope: false }
    }

    #[test]
    fn the_fields_of_netflow_v5_fill_its_record() {
        assert_eq!(Template::v5().record_length_min(), 48);
    }

    #[test]
    fn records_of_no_bytes_or_too_many_are_refused() {
        let error = |fields| Template::new(256, fields).unwrap_err();
        assert_eq!(error(vec![]), Malformed::RecordLength);
        assert_eq!(error(vec![field(1, 0)]), Malformed::RecordLength);
        assert_eq!(error(vec![field(1, 65_000), field(2, 1_000)]), Malformed::RecordLength);
        assert_eq!(Template::new(255, vec![field(1, 4)]).unwrap_err(), Malformed::TemplateId);
    }

    #[test]
    fn lengths_of_variable_fields_have_one_byte_or_three() {
        // RFC 7011 appendix A.5.
        let template = Template::new(256, vec![field(82, VARIABLE_LENGTH), field(1, 2)]).unwrap();
        let mut positions = Vec::new();
        let short = [5, b'I', b'N', b'F', b'O', b'1', 0, 7, 99];
        assert_eq!(template.locate(&short, &mut positions), Some(8));
        assert_eq!(positions[0].of(&short), b"INFO1");
        assert_eq!(positions[1].of(&short), [0, 7]);

        let mut long = vec![255, 3, 232];
        long.extend([9; 1_000]);
        long.extend([0, 8]);
        assert_eq!(template.locate(&long, &mut positions), Some(1_005));
        assert_eq!(positions[0].of(&long), [9; 1_000]);
        assert_eq!(positions[1].of(&long), [0, 8]);
        long.pop();
        assert_eq!(template.locate(&long, &mut positions), None);
    }
}
