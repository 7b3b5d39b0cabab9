//! The tracking report of chronyd (protocol version 6, chrony 2.3 and later).
//!
//! The client sends one datagram and gets one. The layout is that of chrony's `candm.h`.

use wirestorm_base::bytes::Reader;

use crate::source::{SourceKind, SourceReport};

const VERSION: u8 = 6;
const PACKET_REQUEST: u8 = 1;
const PACKET_REPLY: u8 = 2;
const COMMAND_TRACKING: u16 = 33;
const REPLY_TRACKING: u16 = 5;
const STATUS_SUCCESS: u16 = 0;

/// Length of a reply in bytes; chronyd ignores requests that are shorter than their reply.
pub const REPLY_BYTES: usize = 104;

/// Reference IDs that are no clock: none, and "local stratum" of this daemon.
const REFERENCE_NONE: u32 = 0;
const REFERENCE_LOCAL: u32 = 0x7f7f_0101;
/// Leap status of a daemon that is not synchronised.
const LEAP_UNSYNCHRONISED: u16 = 3;

/// Family codes of an address in a report.
const FAMILY_IPV4: u16 = 1;
const FAMILY_IPV6: u16 = 2;

/// The tracking report: how far the system clock is from the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracking {
    /// Reference ID: an IPv4 address, a hash, or four letters.
    pub reference_id: u32,
    /// Address of the server; `None` for a hardware reference.
    pub server: Option<std::net::IpAddr>,
    /// Steps from the primary reference.
    pub stratum: u16,
    /// Leap status; 3 means not synchronised.
    pub leap: u16,
    /// Time of the last measurement, in ns since 1970.
    pub reference_time_ns: i64,
    /// Seconds that the system clock is slow.
    pub correction: f64,
    /// Round trip to the primary reference in seconds.
    pub root_delay: f64,
    /// Error that has accumulated since the primary reference, in seconds.
    pub root_dispersion: f64,
}

/// Reason why bytes are no tracking report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChronyError {
    /// The datagram is shorter than its header or the report.
    #[error("reply of {0} bytes; expected {REPLY_BYTES}")]
    Short(usize),
    /// Another protocol version.
    #[error("protocol version {0}; expected {VERSION} (chrony 2.3 or later)")]
    Version(u8),
    /// No reply to this request.
    #[error("reply to another request")]
    Unmatched,
    /// The daemon refuses the request.
    #[error("chronyd refused the request with status {0}; see STT_* in candm.h")]
    Status(u16),
}

/// Returns a request for the tracking report.
pub fn tracking_request(sequence: u32) -> [u8; REPLY_BYTES] {
    let mut bytes = [0; REPLY_BYTES];
    let [command_high, command_low] = COMMAND_TRACKING.to_be_bytes();
    let [a, b, c, d] = sequence.to_be_bytes();
    // Two reserved bytes before the command, and the number of the attempt behind it.
    let header = [VERSION, PACKET_REQUEST, 0, 0, command_high, command_low, 0, 0, a, b, c, d];
    bytes[..header.len()].copy_from_slice(&header);
    bytes
}

impl Tracking {
    /// Reads the reply to the request with this number.
    ///
    /// # Errors
    /// See [`ChronyError`].
    pub fn read(bytes: &[u8], sequence: u32) -> Result<Self, ChronyError> {
        let short = ChronyError::Short(bytes.len());
        let mut reader = Reader::new(bytes);
        let [version, packet, _, _] = reader.array().ok_or(short)?;
        if version != VERSION {
            return Err(ChronyError::Version(version));
        }
        let mut header = || {
            let (command, reply, status) = (reader.u16()?, reader.u16()?, reader.u16()?);
            reader.bytes(6)?;
            let number = reader.u32()?;
            reader.bytes(8)?;
            Some((command, reply, status, number))
        };
        let (command, reply, status, number) = header().ok_or(short)?;
        if packet != PACKET_REPLY || command != COMMAND_TRACKING || number != sequence {
            return Err(ChronyError::Unmatched);
        }
        if status != STATUS_SUCCESS {
            return Err(ChronyError::Status(status));
        }
        if reply != REPLY_TRACKING {
            return Err(ChronyError::Unmatched);
        }
        Self::read_report(&mut reader).ok_or(short)
    }

    fn read_report(reader: &mut Reader<'_>) -> Option<Self> {
        let reference_id = reader.u32()?;
        let address: [u8; 16] = reader.array()?;
        let family = reader.u16()?;
        let _padding = reader.u16()?;
        let [a, b, c, d, ..] = address;
        let server = match family {
            FAMILY_IPV4 => Some([a, b, c, d].into()),
            FAMILY_IPV6 => Some(address.into()),
            _ => None,
        };
        let (stratum, leap) = (reader.u16()?, reader.u16()?);
        let seconds = i64::from(reader.u32()?) << 32 | i64::from(reader.u32()?);
        let nanoseconds = i64::from(reader.u32()?);
        let reference_time_ns = seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        let correction = float(reader.u32()?);
        // Last offset, RMS offset, frequency, its residual and its skew.
        reader.bytes(20)?;
        let root_delay = float(reader.u32()?);
        let root_dispersion = float(reader.u32()?);
        // The interval of updates is the last value.
        reader.u32()?;
        Some(Self {
            reference_id,
            server,
            stratum,
            leap,
            reference_time_ns,
            correction,
            root_delay,
            root_dispersion,
        })
    }

    /// Returns the bound of the error of the system clock in ns (RFC 5905 section 11.2, plus the
    /// part of the offset that is not corrected yet).
    pub fn bound_ns(&self) -> u64 {
        let seconds = self.correction.abs() + self.root_dispersion + self.root_delay / 2.0;
        // Saturates; a negative or undefined number becomes 0.
        (seconds * 1e9).ceil() as u64
    }

    /// Describes the source whose socket has this name.
    pub fn report(&self, name: &str) -> SourceReport {
        let problem = if self.leap == LEAP_UNSYNCHRONISED || self.reference_id == REFERENCE_NONE {
            Some("chronyd is not synchronised".to_owned())
        } else if self.reference_id == REFERENCE_LOCAL {
            Some("chronyd serves its local clock (`local stratum`) and has no reference".to_owned())
        } else {
            None
        };
        SourceReport {
            kind: SourceKind::Chrony,
            name: name.to_owned(),
            reference: Some(self.reference()),
            offset_ns: Some((-self.correction * 1e9).round() as i64),
            bound_ns: Some(self.bound_ns()),
            is_independent: problem.is_none(),
            last_update_ns: (self.reference_time_ns > 0).then_some(self.reference_time_ns),
            problem,
        }
    }

    /// Names the reference: the address of a server, or the letters of a hardware clock.
    fn reference(&self) -> String {
        let stratum = self.stratum;
        let id = self.reference_id.to_be_bytes();
        let text: String =
            id.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
        let is_text = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic());
        match self.server {
            Some(server) => format!("{server}, stratum {stratum}"),
            None if is_text => format!("{text}, stratum {stratum}"),
            None => format!("{:08X}, stratum {stratum}", self.reference_id),
        }
    }
}

/// Reads chrony's 32-bit floating point number: 7 bits of exponent and 25 of coefficient, both two's
/// complement.
fn float(bits: u32) -> f64 {
    const COEFFICIENT_BITS: u32 = 25;
    // Shifts sign the numbers.
    let exponent = bits.cast_signed() >> COEFFICIENT_BITS;
    let coefficient = (bits << (32 - COEFFICIENT_BITS)).cast_signed() >> (32 - COEFFICIENT_BITS);
    f64::from(coefficient) * 2_f64.powi(exponent - COEFFICIENT_BITS.cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Encodes a number as chrony does, exactly for small fractions.
    fn encoded(value: f64) -> u32 {
        let exponent = 2;
        let coefficient = (value * f64::from(1 << (25 - exponent))) as i32;
        (exponent as u32) << 25 | coefficient.cast_unsigned() & 0x1ff_ffff
    }

    fn reply(reference_id: u32, leap: u16) -> Vec<u8> {
        let mut bytes = vec![VERSION, PACKET_REPLY, 0, 0];
        for field in [COMMAND_TRACKING, REPLY_TRACKING, STATUS_SUCCESS, 0, 0, 0] {
            bytes.extend(field.to_be_bytes());
        }
        for field in [7, 0, 0, reference_id, u32::from_be_bytes([192, 0, 2, 1]), 0, 0, 0] {
            bytes.extend(field.to_be_bytes());
        }
        for field in [FAMILY_IPV4, 0, 3, leap] {
            bytes.extend(field.to_be_bytes());
        }
        for field in [0, 1_700_000_000, 5] {
            bytes.extend(u32::to_be_bytes(field));
        }
        let floats = [0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.125, 64.0];
        bytes.extend(floats.into_iter().flat_map(|value| encoded(value).to_be_bytes()));
        bytes
    }

    #[test]
    fn numbers_have_signs() {
        for value in [0.0, 1.0, -1.0, 0.25, -0.125, 1.999] {
            assert!((float(encoded(value)) - value).abs() < 1e-6, "{value}");
        }
        // The exponent -10, as a small dispersion has.
        let bits = (0x76_u32 << 25) | 0x80_0000;
        assert_eq!(float(bits), 2_f64.powi(23 - 25 - 10));
    }

    #[test]
    fn bound_is_offset_plus_dispersion_plus_half_the_delay() {
        let tracking = Tracking::read(&reply(0xc000_0201, 0), 7).unwrap();
        let report = tracking.report("chronyd");
        assert_eq!(report.bound_ns, Some(625_000_000));
        assert_eq!(report.offset_ns, Some(-250_000_000), "the clock is slow");
        assert_eq!(report.reference.as_deref(), Some("192.0.2.1, stratum 3"));
        assert_eq!(report.last_update_ns, Some(1_700_000_000_000_000_005));
        assert!(report.is_usable(), "{report:?}");
    }

    #[test]
    fn daemon_without_a_reference_cannot_be_used() {
        for (reference, leap) in [(REFERENCE_LOCAL, 0), (REFERENCE_NONE, 0), (0xc000_0201, 3)] {
            let report = Tracking::read(&reply(reference, leap), 7).unwrap().report("chronyd");
            assert!(!report.is_usable() && report.problem.is_some(), "{report:?}");
        }
    }

    #[test]
    fn other_replies_are_refused() {
        let good = reply(0xc000_0201, 0);
        assert_eq!(Tracking::read(&good, 8), Err(ChronyError::Unmatched));
        assert_eq!(Tracking::read(&good[..103], 7), Err(ChronyError::Short(103)));
        let with = |position: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[position] = value;
            Tracking::read(&bytes, 7)
        };
        assert_eq!(with(0, 5), Err(ChronyError::Version(5)));
        assert_eq!(with(9, 2), Err(ChronyError::Status(2)));
        assert_eq!(with(7, 1), Err(ChronyError::Unmatched));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
            let _ = Tracking::read(&bytes, 7);
        }

        #[test]
        fn any_report_has_a_description(noise in prop::collection::vec(any::<u8>(), 76)) {
            let mut bytes = reply(0, 0);
            bytes[28..].copy_from_slice(&noise);
            if let Ok(tracking) = Tracking::read(&bytes, 7) {
                tracking.report("chronyd");
            }
        }
    }
}
