//! Text form of field values.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::ValueKind;
use crate::packet::MacAddress;

/// A text that is not a value of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct ParseValueError {
    /// The text.
    pub found: String,
    /// Format that the field expects.
    pub expected: &'static str,
}

impl ValueKind {
    /// Returns a description of the expected format, for messages.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Uint => "a number, as in 80 or 0x50",
            Self::Mac => "a MAC address, as in 02:00:00:00:00:01",
            Self::Ipv4 => "an IPv4 address, as in 192.0.2.1",
            Self::Ipv6 => "an IPv6 address, as in 2001:db8::1",
            Self::Bytes => "bytes in pairs of hexadecimal digits, as in 00ff or 00:ff",
        }
    }

    /// Parses an address as a number in network order. Every kind but `Bytes` also accepts a
    /// decimal number, or a hexadecimal one after `0x`.
    ///
    /// # Errors
    /// If the text is neither, and always for `Bytes`.
    pub fn parse(self, text: &str) -> Result<u128, ParseValueError> {
        let address = match self {
            Self::Uint | Self::Bytes => None,
            Self::Mac => text.parse().ok().map(|MacAddress(bytes)| {
                bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
            }),
            Self::Ipv4 => text.parse().ok().map(|one: Ipv4Addr| u32::from(one).into()),
            Self::Ipv6 => text.parse().ok().map(|one: Ipv6Addr| one.into()),
        };
        let number = match self {
            Self::Bytes => None,
            _ => address.or_else(|| number(text)),
        };
        number.ok_or_else(|| ParseValueError { found: text.into(), expected: self.expected() })
    }

    /// Parses pairs of hexadecimal digits, optionally separated by colons.
    ///
    /// # Errors
    /// If there is any other character or half a byte.
    pub fn parse_bytes(text: &str) -> Result<Vec<u8>, ParseValueError> {
        let error = || ParseValueError { found: text.into(), expected: Self::Bytes.expected() };
        let mut bytes = Vec::with_capacity(text.len() / 2);
        for part in text.split(':') {
            let (pairs, rest) = part.as_bytes().as_chunks::<2>();
            // An empty text is no bytes, but an empty part between colons is an error.
            if !rest.is_empty() || part.is_empty() && !text.is_empty() {
                return Err(error());
            }
            for [high, low] in pairs {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(error)?;
                bytes.push((high << 4 | low) as u8);
            }
        }
        Ok(bytes)
    }

    /// Formats a number as this kind of field does.
    pub const fn display(self, value: u128) -> DisplayValue {
        DisplayValue { kind: self, value }
    }
}

fn number(text: &str) -> Option<u128> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` accepts a sign, so check for digits only.
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    if is_number { u128::from_str_radix(digits, radix).ok() } else { None }
}

/// A field value that implements `Display`.
#[derive(Clone, Copy, Debug)]
pub struct DisplayValue {
    kind: ValueKind,
    value: u128,
}

impl fmt::Display for DisplayValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ValueKind::Uint => write!(f, "{}", self.value),
            ValueKind::Mac => {
                let [_, _, _, _, _, _, _, _, _, _, address @ ..] = self.value.to_be_bytes();
                write!(f, "{}", MacAddress(address))
            }
            ValueKind::Ipv4 => write!(f, "{}", Ipv4Addr::from(self.value as u32)),
            ValueKind::Ipv6 => write!(f, "{}", Ipv6Addr::from(self.value)),
            ValueKind::Bytes => write!(f, "{:#x}", self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_value_parses_from_its_displayed_form() {
        for (kind, text, value) in [
            (ValueKind::Uint, "443", 443),
            (ValueKind::Mac, "02:00:00:00:01:0a", 0x0200_0000_010a),
            (ValueKind::Ipv4, "10.0.0.1", 0x0a00_0001),
            (ValueKind::Ipv6, "2001:db8::1", 0x2001_0db8 << 96 | 1),
        ] {
            assert_eq!(kind.parse(text), Ok(value));
            assert_eq!(kind.display(value).to_string(), text);
            assert_eq!(kind.parse("0x1F"), Ok(31));
        }
        assert_eq!(ValueKind::parse_bytes("00fF:10"), Ok([0, 255, 16].into()));
        assert_eq!(ValueKind::parse_bytes(""), Ok(Vec::new()));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (kind, text) in [
            (ValueKind::Uint, ""),
            (ValueKind::Uint, "+1"),
            (ValueKind::Uint, "-1"),
            (ValueKind::Uint, "0x"),
            (ValueKind::Uint, "1.5"),
            (ValueKind::Uint, "0x1_0000_0000_0000_0000_0000_0000_0000_0000"),
            (ValueKind::Uint, "340282366920938463463374607431768211456"),
            (ValueKind::Mac, "02:00:00:00:01"),
            (ValueKind::Ipv4, "10.0.0.256"),
            (ValueKind::Ipv6, "2001:db8:::1"),
            (ValueKind::Bytes, "1"),
        ] {
            assert!(kind.parse(text).is_err(), "{text}");
        }
        for text in ["0", "0g", "00:", ":00", "00 11", "0:0"] {
            assert!(ValueKind::parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(
            ValueKind::Ipv4.parse("10.0.0").unwrap_err().to_string(),
            "found \"10.0.0\", expected an IPv4 address, as in 192.0.2.1"
        );
    }
}
