//! Reading of values from the front of bytes.

use wirestorm_base::bytes::Reader;

/// Reads bytes behind their length of 32 bits, and XDR's padding to 4 bytes (RFC 4506 section 4.10).
/// Padding that is missing at the end is accepted.
pub(crate) fn opaque<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(reader.u32()?).ok()?;
    let bytes = reader.bytes(length)?;
    let padding = (length.wrapping_neg() & 3).min(reader.rest().len());
    reader.bytes(padding)?;
    Some(bytes)
}

/// Reads an unsigned number of any length; only the last 8 bytes count.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
