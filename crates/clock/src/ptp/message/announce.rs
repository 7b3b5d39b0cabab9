//! Announce messages: properties of the grandmaster (13.5).

use std::cmp::Ordering;

use wirestorm_base::bytes::Reader;

use crate::ptp::identity::ClockIdentity;
use crate::ptp::time::PtpTime;

/// Body of an Announce message. Masters are compared by it (9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    /// Estimate of the time of the message.
    pub origin: PtpTime,
    /// TAI minus UTC in seconds.
    pub utc_offset: i16,
    /// First priority of the grandmaster; the lowest wins.
    pub priority1: u8,
    /// Class of the grandmaster: 6 and 7 with a primary reference, 248 by default.
    pub clock_class: u8,
    /// Code of the grandmaster's accuracy; 0xfe is unknown.
    pub accuracy: u8,
    /// Stability of the grandmaster as a scaled logarithm of its variance.
    pub variance: u16,
    /// Second priority of the grandmaster.
    pub priority2: u8,
    /// The grandmaster.
    pub grandmaster: ClockIdentity,
    /// Number of clocks between the sender and the grandmaster.
    pub steps_removed: u16,
    /// Code of the source of the grandmaster's time.
    pub time_source: u8,
}

impl Announce {
    /// Length of an encoded body in bytes.
    pub(super) const BYTES: usize = 30;

    /// Compares masters: the lesser one is the better (9.3.4, without the tie-breaks of clocks that
    /// receive their own messages, which a slave with one port does not need).
    pub fn compare(&self, other: &Self) -> Ordering {
        let key = |it: &Self| {
            let quality = (it.clock_class, it.accuracy, it.variance);
            (it.priority1, quality, it.priority2, it.grandmaster, it.steps_removed)
        };
        key(self).cmp(&key(other))
    }

    /// Reads a body; `None` if bytes are missing or the time is out of range.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let origin = PtpTime::read(reader)?;
        let utc_offset = reader.i16()?;
        let _reserved = reader.u8()?;
        Some(Self {
            origin,
            utc_offset,
            priority1: reader.u8()?,
            clock_class: reader.u8()?,
            accuracy: reader.u8()?,
            variance: reader.u16()?,
            priority2: reader.u8()?,
            grandmaster: ClockIdentity(reader.array()?),
            steps_removed: reader.u16()?,
            time_source: reader.u8()?,
        })
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        self.origin.write(bytes);
        bytes.extend(self.utc_offset.to_be_bytes());
        bytes.extend([0, self.priority1, self.clock_class, self.accuracy]);
        bytes.extend(self.variance.to_be_bytes());
        bytes.push(self.priority2);
        bytes.extend(self.grandmaster.0);
        bytes.extend(self.steps_removed.to_be_bytes());
        bytes.push(self.time_source);
    }
}
