//! The kernel's own estimate of the error of its clock (`adjtimex(2)`).

use crate::source::{SourceKind, SourceReport};

/// Bit of `status`: the clock is not synchronised.
const STA_UNSYNC: i32 = 0x40;
/// Largest error that the kernel counts up to, in us (`NTP_PHASE_LIMIT`).
const ERROR_MAX_US: i64 = 16_000_000;

/// State of the kernel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelClock {
    /// `STA_*` bits.
    pub status: i32,
    /// Largest error in us. The kernel adds 500 ppm until a daemon sets it again.
    pub error_max_us: i64,
    /// Estimated error in us.
    pub error_estimate_us: i64,
    /// TAI minus UTC in seconds; 0 if no daemon has set it.
    pub tai_offset: i32,
}

impl KernelClock {
    /// Describes the source.
    pub fn report(&self) -> SourceReport {
        let is_known = (0..ERROR_MAX_US).contains(&self.error_max_us);
        let problem = if self.status & STA_UNSYNC != 0 {
            Some("no daemon keeps the clock synchronised (STA_UNSYNC)".to_owned())
        } else if !is_known {
            Some(format!("the largest error is {} us or more", ERROR_MAX_US))
        } else {
            None
        };
        let bound = u64::try_from(self.error_max_us).ok().filter(|_| is_known);
        SourceReport {
            kind: SourceKind::Kernel,
            name: "adjtimex".to_owned(),
            reference: None,
            offset_ns: None,
            bound_ns: bound.map(|microseconds| microseconds * 1_000),
            is_independent: problem.is_none(),
            last_update_ns: None,
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_is_the_largest_error_of_a_synchronised_clock() {
        let clock = KernelClock { error_max_us: 1_500, ..KernelClock::default() };
        let report = clock.report();
        assert_eq!((report.bound_ns, report.is_usable()), (Some(1_500_000), true));
        let unsynchronised = KernelClock { status: STA_UNSYNC, ..clock };
        assert!(!unsynchronised.report().is_usable());
        for error_max_us in [ERROR_MAX_US, i64::MAX, -1] {
            let report = KernelClock { error_max_us, ..clock }.report();
            assert_eq!((report.bound_ns, report.is_usable()), (None, false));
        }
    }
}
