//! The real clocks, and waiting until an instant.

use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};

/// A sleeping thread may be woken this much late, so the last stretch of a wait is spun: the
/// kernel's default timer slack is 50 us, and waking takes some more.
pub const SPIN: Duration = Duration::from_micros(60);

/// Now, by `CLOCK_MONOTONIC`: nanoseconds since an arbitrary point, never set back, and the
/// clock of every real port. Read without a system call.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// Nanoseconds since the Unix epoch, by `CLOCK_REALTIME`.
#[inline]
pub fn realtime_nanos() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// The CPU time that the calling thread has taken. Takes a system call.
pub fn thread_time() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// How far `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`.
///
/// It changes when the wall clock is set and, slowly, while it is slewed; whoever converts many
/// time stamps reads it anew about once a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeOffset(u64);

impl RealtimeOffset {
    /// The offset now, good to some tens of nanoseconds: of three readings the one that took
    /// least time.
    pub fn read() -> Self {
        let mut best = (u64::MAX, 0);
        for _ in 0..3 {
            let before = now().as_nanos();
            let realtime = realtime_nanos();
            let after = now().as_nanos();
            let width = after.saturating_sub(before);
            best = best.min((width, realtime.saturating_sub(before + width / 2)));
        }
        Self(best.1)
    }

    /// A time stamp of `CLOCK_REALTIME` as an instant of [`now`]'s clock.
    pub fn to_monotonic(self, realtime_nanos: u64) -> Instant {
        Instant::from_nanos(realtime_nanos.saturating_sub(self.0))
    }

    /// An instant of [`now`]'s clock as nanoseconds since the Unix epoch.
    pub fn to_realtime_nanos(self, instant: Instant) -> u64 {
        instant.as_nanos().saturating_add(self.0)
    }
}

/// Returns when [`now`] has reached `instant`, and says what it is then: sleeps until [`SPIN`]
/// before, then spins. A signal does not end the wait; split a long one.
pub fn wait_until(instant: Instant) -> Instant {
    let wake = instant.saturating_sub(SPIN);
    loop {
        let time = now();
        if time >= instant {
            return time;
        }
        if time < wake {
            sleep_until(wake);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps until about `instant`, later by the timer's slack; returns early on a signal.
fn sleep_until(instant: Instant) {
    let until = libc::timespec {
        tv_sec: (instant.as_nanos() / NANOSECONDS_PER_SECOND) as libc::time_t,
        tv_nsec: (instant.as_nanos() % NANOSECONDS_PER_SECOND) as libc::c_long,
    };
    // SAFETY: the timespec outlives the call, and no remainder is asked for. The result does
    // not matter: the caller looks at the clock again.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &until,
            std::ptr::null_mut(),
        );
    }
}

#[inline]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is writable. The call cannot fail for these two clocks.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64) * NANOSECONDS_PER_SECOND + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_never_ends_early() {
        for microseconds in [0, 1, 30, 100, 1_000] {
            let due = now() + Duration::from_micros(microseconds);
            assert!(wait_until(due) >= due);
            assert!(now() >= due);
        }
    }

    #[test]
    fn the_realtime_offset_leads_there_and_back() {
        let offset = RealtimeOffset::read();
        let instant = now();
        assert_eq!(offset.to_monotonic(offset.to_realtime_nanos(instant)), instant);
        let apart = realtime_nanos().abs_diff(offset.to_realtime_nanos(now()));
        assert!(apart < 1_000_000, "{apart} ns between the two clocks");
    }
}
