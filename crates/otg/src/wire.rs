//! The protobuf wire format: fields of a message one by one.

/// A field as it stands on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// Iterates over the fields of an encoded message. Ends behind the first malformed field.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

/// A field with its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WireField<'a> {
    pub(crate) number: u32,
    pub(crate) payload: Payload<'a>,
    /// The field with its tag.
    pub(crate) encoded: &'a [u8],
}

/// The bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<'a> Fields<'a> {
    pub(crate) const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let (value, used) = varint(self.rest).ok_or(Malformed)?;
        self.take(used)?;
        Ok(value)
    }

    fn field(&mut self) -> Result<WireField<'a>, Malformed> {
        let start = self.rest;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| Malformed)?;
        if number == 0 || number >= 1 << 29 {
            return Err(Malformed);
        }
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(array(self.take(8)?)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
                Payload::Bytes(self.take(length)?)
            }
            5 => Payload::Fixed32(u32::from_le_bytes(array(self.take(4)?)?)),
            // Groups are no part of proto3.
            _ => return Err(Malformed),
        };
        let encoded = &start[..start.len() - self.rest.len()];
        Ok(WireField { number, payload, encoded })
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Malformed> {
    bytes.try_into().map_err(|_| Malformed)
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<WireField<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Reads a varint; returns the value and the number of its bytes.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte holds one bit.
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    None
}

/// Appends a varint.
pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the tag of a field.
pub(crate) fn put_tag(number: u32, wire_type: u8, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | u64::from(wire_type), out);
}

/// Inserts the length of what follows `start` before it.
pub(crate) fn put_length_at(start: usize, out: &mut Vec<u8>) {
    let length = out.len() - start;
    let mut prefix = Vec::with_capacity(5);
    put_varint(length as u64, &mut prefix);
    out.resize(out.len() + prefix.len(), 0);
    out.copy_within(start..start + length, start + prefix.len());
    out[start..start + prefix.len()].copy_from_slice(&prefix);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_their_order() {
        let mut message = Vec::new();
        put_tag(1, 0, &mut message);
        put_varint(300, &mut message);
        put_tag(20, 2, &mut message);
        let start = message.len();
        message.extend(b"text");
        put_length_at(start, &mut message);
        let fields: Vec<_> = Fields::new(&message).map(Result::unwrap).collect();
        assert_eq!((fields[0].number, fields[0].payload), (1, Payload::Varint(300)));
        assert_eq!((fields[1].number, fields[1].payload), (20, Payload::Bytes(b"text")));
        assert_eq!(fields[0].encoded, [8, 0xac, 2]);
    }

    #[test]
    fn malformed_fields_end_the_message() {
        for bytes in [&[8][..], &[10, 4, 1], &[0, 1], &[11], &[8, 0xff, 0xff]] {
            let fields: Vec<_> = Fields::new(bytes).collect();
            assert_eq!(fields, [Err(Malformed)], "{bytes:?}");
        }
    }
}
