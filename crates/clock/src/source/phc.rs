//! Hardware clocks: readings of the device between readings of the system clock.

use crate::source::{SourceKind, SourceReport};

/// A reading of the device, and of the system clock before and after it, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhcReading {
    /// System clock before; the same as `after` if the hardware read both at once.
    pub before: i64,
    /// The device.
    pub device: i64,
    /// System clock after.
    pub after: i64,
}

/// System clock minus device, with its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhcOffset {
    /// System clock minus device in ns.
    pub offset_ns: i64,
    /// Half of the time that the reading took, in ns.
    pub error_ns: u64,
    /// System clock at the reading, in ns since 1970.
    pub at_ns: i64,
}

/// Largest offset in ns at which device and system clock have the same timescale.
const SAME_TIMESCALE: u64 = 500_000_000;

impl PhcOffset {
    /// Returns the offset of the shortest of several readings; `None` if each is impossible.
    pub fn best(readings: &[PhcReading]) -> Option<Self> {
        let width = |reading: &PhcReading| reading.after.checked_sub(reading.before);
        let possible = readings.iter().filter(|it| width(it).is_some_and(|width| width >= 0));
        let best = possible.min_by_key(|it| width(it))?;
        let width = best.after - best.before;
        let middle = best.before + width / 2;
        Some(Self {
            offset_ns: middle.checked_sub(best.device)?,
            error_ns: (width.unsigned_abs()).div_ceil(2),
            at_ns: middle,
        })
    }

    /// Describes the source. `tai_offset` is TAI minus UTC in seconds as the kernel knows it, since
    /// devices may count TAI; `error_ns` is the error of the device, which the kernel does not know.
    pub fn report(
        &self,
        device: &str,
        hardware: Option<String>,
        tai_offset: i32,
        error_ns: Option<u64>,
    ) -> SourceReport {
        let tai = self.offset_ns.saturating_add(i64::from(tai_offset) * 1_000_000_000);
        let is_tai = tai.unsigned_abs() < self.offset_ns.unsigned_abs();
        let offset_ns = if is_tai { tai } else { self.offset_ns };
        let bound = error_ns.map(|error| {
            error.saturating_add(self.error_ns).saturating_add(offset_ns.unsigned_abs())
        });
        let problem = if offset_ns.unsigned_abs() > SAME_TIMESCALE {
            Some(format!(
                "the device is {:.3} s from the system clock: it is not set, or counts TAI and the \
                 kernel does not know the offset",
                offset_ns as f64 / -1e9
            ))
        } else if bound.is_none() {
            Some("the error of the device is not known; state it with --phc-error".to_owned())
        } else {
            None
        };
        SourceReport {
            kind: SourceKind::Phc,
            name: device.to_owned(),
            reference: hardware,
            offset_ns: Some(offset_ns),
            bound_ns: bound,
            is_independent: bound.is_some(),
            last_update_ns: Some(self.at_ns),
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn reading(before: i64, device: i64, after: i64) -> PhcReading {
        PhcReading { before, device, after }
    }

    #[test]
    fn shortest_reading_counts() {
        let readings = [reading(1_000, 900, 2_000), reading(3_000, 3_100, 3_201), reading(9, 0, 8)];
        let best = PhcOffset::best(&readings).unwrap();
        assert_eq!(best, PhcOffset { offset_ns: 0, error_ns: 101, at_ns: 3_100 });
        assert_eq!(PhcOffset::best(&[]), None);
        assert_eq!(PhcOffset::best(&[reading(i64::MIN, 0, i64::MAX)]), None);
    }

    #[test]
    fn bound_needs_the_error_of_the_device() {
        let offset = PhcOffset { offset_ns: -700, error_ns: 50, at_ns: SECOND };
        let report = offset.report("/dev/ptp0", Some("ena".into()), 37, Some(20_000));
        assert_eq!((report.offset_ns, report.bound_ns), (Some(-700), Some(20_750)));
        assert!(report.is_usable());
        let report = offset.report("/dev/ptp0", None, 37, None);
        assert!(!report.is_usable() && report.problem.unwrap().contains("--phc-error"));
    }

    #[test]
    fn device_that_counts_tai_is_compared_with_utc() {
        let offset = PhcOffset { offset_ns: -37 * SECOND + 400, error_ns: 50, at_ns: SECOND };
        let report = offset.report("/dev/ptp0", None, 37, Some(1_000));
        assert_eq!((report.offset_ns, report.bound_ns), (Some(400), Some(1_450)));
        let report = offset.report("/dev/ptp0", None, 0, Some(1_000));
        assert!(report.problem.unwrap().contains("counts TAI"));
    }
}
