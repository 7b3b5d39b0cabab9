//! Times and corrections in messages.

use wirestorm_base::bytes::Reader;

use crate::timestamp::Timestamp;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// A time of the PTP timescale: 48 bits of seconds, and nanoseconds (5.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PtpTime {
    /// Seconds since the epoch of the timescale, at most 2^48 - 1.
    seconds: u64,
    /// Nanoseconds, below 10^9.
    nanoseconds: u32,
}

impl PtpTime {
    /// Length of an encoded time in bytes.
    pub(crate) const BYTES: usize = 10;

    /// Converts a reading of the local clock; readings before 1970 become zero.
    pub fn from_timestamp(time: Timestamp) -> Self {
        let nanoseconds = time.as_nanos().max(0);
        Self {
            seconds: (nanoseconds / NANOSECONDS_PER_SECOND) as u64,
            nanoseconds: (nanoseconds % NANOSECONDS_PER_SECOND) as u32,
        }
    }

    /// Converts to a reading of a clock; `None` after the year 2262.
    pub fn to_timestamp(self) -> Option<Timestamp> {
        let seconds = i64::try_from(self.seconds).ok()?.checked_mul(NANOSECONDS_PER_SECOND)?;
        Some(Timestamp::from_nanos(seconds.checked_add(i64::from(self.nanoseconds))?))
    }

    /// Reads a time; `None` if bytes are missing or the nanoseconds are a second or more.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let seconds = u64::from(reader.u16()?) << 32 | u64::from(reader.u32()?);
        let nanoseconds = reader.u32()?;
        (i64::from(nanoseconds) < NANOSECONDS_PER_SECOND).then_some(Self { seconds, nanoseconds })
    }

    pub(crate) fn write(self, bytes: &mut Vec<u8>) {
        let [_, _, seconds @ ..] = self.seconds.to_be_bytes();
        bytes.extend(seconds);
        bytes.extend(self.nanoseconds.to_be_bytes());
    }
}

/// A correction field: nanoseconds times 2^16 (13.3.2.9). Transparent clocks add the time that a
/// message spent in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction(pub i64);

impl Correction {
    /// Returns the sum; stops at the ends of the range.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns whole nanoseconds, rounded to the nearest; a half goes up.
    pub const fn to_nanos(self) -> i64 {
        self.0.saturating_add(1 << 15) >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_wire() {
        let time = Timestamp::from_nanos(1_700_000_000_123_456_789);
        let ptp = PtpTime::from_timestamp(time);
        let mut bytes = Vec::new();
        ptp.write(&mut bytes);
        assert_eq!(bytes, [0, 0, 0x65, 0x53, 0xf1, 0, 0x07, 0x5b, 0xcd, 0x15]);
        let read = PtpTime::read(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(read.to_timestamp(), Some(time));
    }

    #[test]
    fn a_full_second_of_nanoseconds_is_refused() {
        let read = |nanoseconds: u32| {
            let bytes = [&[0; 6][..], &nanoseconds.to_be_bytes()].concat();
            PtpTime::read(&mut Reader::new(&bytes))
        };
        assert!(read(999_999_999).is_some());
        assert_eq!(read(1_000_000_000), None);
    }

    #[test]
    fn seconds_beyond_the_range_have_no_timestamp() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let time = PtpTime::read(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(time.to_timestamp(), None);
    }

    #[test]
    fn corrections_round_to_the_nearest_nanosecond() {
        let nanos = [0, 0x7fff, 0x8000, 0x1_0000, -0x8000, -0x8001, i64::MAX, i64::MIN]
            .map(|value| Correction(value).to_nanos());
        assert_eq!(nanos, [0, 0, 1, 1, 0, -1, i64::MAX >> 16, i64::MIN >> 16]);
    }
}
