//! Ethernet addresses.

use core::fmt;
use core::str::FromStr;

/// An EUI-48 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Returns whether this is a group address, broadcast included (IEEE 802 section 8.2.2).
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns whether this is the broadcast address.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }
}

impl fmt::Display for MacAddress {
    /// Formats as `02:00:00:00:00:01`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Error for a text that is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address; expected six pairs of hexadecimal digits, as in 02:00:00:00:00:01")]
pub struct ParseMacAddressError;

impl FromStr for MacAddress {
    type Err = ParseMacAddressError;

    /// Parses six numbers of one or two hexadecimal digits, separated by colons or hyphens.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut address = [0; 6];
        let mut parts = text.split(separator);
        for byte in &mut address {
            let part = parts.next().ok_or(ParseMacAddressError)?;
            let digits = part.bytes().all(|digit| digit.is_ascii_hexdigit());
            if !digits || !(1..=2).contains(&part.len()) {
                return Err(ParseMacAddressError);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseMacAddressError)?;
        }
        if parts.next().is_some() {
            return Err(ParseMacAddressError);
        }
        Ok(Self(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn an_address_parses_from_its_displayed_form() {
        let address = MacAddress([2, 0, 0x5e, 0xff, 0x10, 0xa0]);
        assert_eq!(address.to_string(), "02:00:5e:ff:10:a0");
        assert_eq!("02:00:5e:ff:10:a0".parse(), Ok(address));
        assert_eq!("2-0-5E-FF-10-A0".parse(), Ok(address));
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "02:00:00:00:00:g1",
            "002:0:0:0:0:0",
            "+2:0:0:0:0:0",
            "02:00-00:00:00:00",
        ] {
            assert_eq!(text.parse::<MacAddress>(), Err(ParseMacAddressError), "{text}");
        }
    }

    #[test]
    fn group_addresses_have_the_lowest_bit_set() {
        assert!(MacAddress::BROADCAST.is_broadcast() && MacAddress::BROADCAST.is_multicast());
        assert!(MacAddress([1, 0, 0x5e, 0, 0, 1]).is_multicast());
        assert!(!MacAddress([2, 0, 0, 0, 0, 1]).is_multicast());
    }
}
