//! System clocks, and waiting until an instant.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use wirestorm_base::time::{Duration, Instant, NANOSECONDS_PER_SECOND};
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_clock::virtual_clock::{VirtualClock, VirtualClockOptions};

/// Last part of a wait, which spins instead of sleeping. The kernel's default timer slack is 50 us,
/// and a wake-up takes some more.
pub const SPIN: Duration = Duration::from_micros(60);

/// Returns the time of `CLOCK_MONOTONIC` in nanoseconds since an arbitrary point. It never goes
/// back. All ports on interfaces use this clock. The vDSO reads it without a system call.
#[inline]
pub fn now() -> Instant {
    of_kernel(read(libc::CLOCK_MONOTONIC))
}

/// Converts a reading of `CLOCK_MONOTONIC` that the kernel made to an instant of [`now`]'s clock.
#[inline]
pub fn of_kernel(nanoseconds: u64) -> Instant {
    match VIRTUAL.get() {
        None => Instant::from_nanos(nanoseconds),
        Some(clock) => virtual_instant(clock, nanoseconds),
    }
}

/// Clock that replaces the real one in this process, for tests.
static VIRTUAL: OnceLock<VirtualClock> = OnceLock::new();

/// Reason why a process does not get a virtual clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetVirtualError {
    /// The clock would go back.
    #[error("a virtual clock must not go back: remove the negative steps")]
    Backwards,
    /// There is one already.
    #[error("this process has a virtual clock already")]
    AlreadySet,
}

/// Replaces the clock of this process, and all time stamps of the kernel in it, by one with a known
/// error, for tests of what compares clocks. To be called before ports open: backends that stamp
/// frames in the kernel refuse to work with it ([`is_virtual`]).
///
/// # Errors
/// See [`SetVirtualError`].
pub fn set_virtual(options: VirtualClockOptions) -> Result<(), SetVirtualError> {
    let clock = VirtualClock::new(read(libc::CLOCK_MONOTONIC) as i64, options);
    if !clock.is_monotonic() {
        return Err(SetVirtualError::Backwards);
    }
    VIRTUAL.set(clock).map_err(|_| SetVirtualError::AlreadySet)
}

/// Returns the kernel's reading of `CLOCK_MONOTONIC` in nanoseconds, without the error of a virtual
/// clock. See [`of_kernel`].
pub fn kernel_now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns whether the clock of this process has an intended error.
pub fn is_virtual() -> bool {
    VIRTUAL.get().is_some()
}

#[cold]
fn virtual_instant(clock: &VirtualClock, nanoseconds: u64) -> Instant {
    Instant::from_nanos(clock.reading(nanoseconds as i64).max(0) as u64)
}

/// Time of this machine for comparisons with other machines: [`now`]'s clock plus a constant.
///
/// It was wall time when the process read it first. Later it differs if the system clock is set,
/// since a step would look like a change of the delay.
pub fn node_time(instant: Instant) -> Timestamp {
    Timestamp::from_nanos(instant.as_nanos() as i64) + node_offset()
}

/// Converts a time stamp of [`node_time`] back to an instant; times before its start are zero.
pub fn of_node_time(time: Timestamp) -> Instant {
    let nanoseconds = time - Timestamp::from_nanos(node_offset());
    Instant::from_nanos(nanoseconds.max(0) as u64)
}

fn node_offset() -> i64 {
    static OFFSET: OnceLock<i64> = OnceLock::new();
    *OFFSET.get_or_init(|| RealtimeOffset::read().0 as i64)
}

/// Returns the time of `CLOCK_REALTIME` in nanoseconds since the Unix epoch.
#[inline]
pub fn realtime_nanos() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns the CPU time of the calling thread. Makes a system call.
pub fn thread_time() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// Nanoseconds that `CLOCK_REALTIME` is ahead of `CLOCK_MONOTONIC`.
///
/// The offset changes when the wall clock is set, and slowly while the clock is slewed. Code that
/// converts many time stamps reads the offset again about once a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealtimeOffset(u64);

impl RealtimeOffset {
    /// Reads the current offset, accurate to some tens of nanoseconds. It takes the fastest of
    /// three readings.
    pub fn read() -> Self {
        let mut best = (u64::MAX, 0);
        for _ in 0..3 {
            let before = read(libc::CLOCK_MONOTONIC);
            let realtime = realtime_nanos();
            let after = read(libc::CLOCK_MONOTONIC);
            let width = after.saturating_sub(before);
            best = best.min((width, realtime.saturating_sub(before + width / 2)));
        }
        Self(best.1)
    }

    /// Reads both clocks once; returns the least and the greatest possible offset.
    fn limits() -> (u64, u64) {
        let before = read(libc::CLOCK_MONOTONIC);
        let realtime = realtime_nanos();
        let after = read(libc::CLOCK_MONOTONIC);
        (realtime.saturating_sub(after), realtime.saturating_sub(before))
    }

    /// Converts nanoseconds since the Unix epoch to an instant of [`now`]'s clock.
    pub fn to_monotonic(self, realtime_nanos: u64) -> Instant {
        of_kernel(realtime_nanos.saturating_sub(self.0))
    }

    /// Converts an instant of [`now`]'s clock to nanoseconds since the Unix epoch.
    pub fn to_realtime_nanos(self, instant: Instant) -> u64 {
        kernel_nanos(instant).saturating_add(self.0)
    }
}

/// The offset of `CLOCK_REALTIME`, more exact with each reading.
///
/// Both clocks have the same rate, also while they are slewed, so their offset changes only when the
/// wall clock is set. Each reading narrows the range of possible offsets down to some nanoseconds,
/// even if a thread loses its CPU between two readings.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealtimeOffsetTracker(Option<(u64, u64)>);

impl RealtimeOffsetTracker {
    /// Reads the clocks, and returns the offset.
    pub fn update(&mut self) -> RealtimeOffset {
        let (mut low, mut high) = RealtimeOffset::limits();
        // Ranges that do not overlap mean that the clock was set.
        if let Some((low_before, high_before)) = self.0
            && low <= high_before
            && low_before <= high
        {
            (low, high) = (low.max(low_before), high.min(high_before));
        }
        self.0 = Some((low, high));
        RealtimeOffset(low + (high - low) / 2)
    }
}

/// Waits until [`now`] reaches `instant` and returns the time after the wait. Sleeps until [`SPIN`]
/// before `instant`, then spins, unless a thread already spins on each CPU. A signal does not end
/// the wait, so split a long one.
pub fn wait_until(instant: Instant) -> Instant {
    let wake = instant.saturating_sub(SPIN);
    let mut spinner = None;
    loop {
        let time = now();
        if time >= instant {
            return time;
        }
        if time < wake {
            sleep_until(wake);
        } else if spinner.is_some() {
            std::hint::spin_loop();
        } else {
            spinner = Spinner::begin();
            if spinner.is_none() {
                sleep_until(instant);
            }
        }
    }
}

/// A thread that spins. More of them than CPUs would take the time from threads that have to send.
struct Spinner;

/// Number of threads that spin.
static SPINNERS: AtomicUsize = AtomicUsize::new(0);

impl Spinner {
    fn begin() -> Option<Self> {
        static CPUS: OnceLock<usize> = OnceLock::new();
        let cpus = *CPUS.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
        let spinner = Self;
        // Dropping the value takes the count back.
        (SPINNERS.fetch_add(1, Ordering::Relaxed) < cpus).then_some(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        SPINNERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the reading of `CLOCK_MONOTONIC` at an instant of [`now`]'s clock, for instants close to
/// now if the clock is virtual.
fn kernel_nanos(instant: Instant) -> u64 {
    match VIRTUAL.get() {
        None => instant.as_nanos(),
        Some(clock) => {
            let error = clock.error_ns(read(libc::CLOCK_MONOTONIC) as i64) as i64;
            instant.as_nanos().saturating_add_signed(error.saturating_neg())
        }
    }
}

/// Sleeps until about `instant` plus the timer slack. Returns early on a signal.
fn sleep_until(instant: Instant) {
    let nanoseconds = kernel_nanos(instant);
    let until = libc::timespec {
        tv_sec: (nanoseconds / NANOSECONDS_PER_SECOND) as libc::time_t,
        tv_nsec: (nanoseconds % NANOSECONDS_PER_SECOND) as libc::c_long,
    };
    // SAFETY: the timespec outlives the call, and the remainder pointer may be null. The result
    // does not matter: the caller reads the clock again.
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
    // SAFETY: the timespec is writable. The call cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec as u64) * NANOSECONDS_PER_SECOND + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_until_never_returns_early() {
        for microseconds in [0, 1, 30, 100, 1_000] {
            let due = now() + Duration::from_micros(microseconds);
            assert!(wait_until(due) >= due);
            assert!(now() >= due);
        }
    }

    #[test]
    fn at_most_one_thread_spins_for_each_cpu() {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        // Other tests of this process may spin, so there may be room for less.
        let spinners: Vec<_> = std::iter::from_fn(Spinner::begin).take(cpus + 1).collect();
        assert!(spinners.len() <= cpus);
        let due = now() + Duration::from_micros(100);
        assert!(wait_until(due) >= due, "it sleeps instead");
        drop(spinners);
        assert!(Spinner::begin().is_some());
    }

    #[test]
    fn offset_gets_more_exact_with_each_reading() {
        let mut tracker = RealtimeOffsetTracker::default();
        for _ in 0..10_000 {
            tracker.update();
        }
        let (low, high) = tracker.0.unwrap();
        assert!(high - low < 1_000, "{low} {high}");
        // The wall clock was set: the ranges do not overlap.
        let mut set = RealtimeOffsetTracker(Some((low - 1_000_000, high - 1_000_000)));
        let offset = set.update();
        assert!(offset.0.abs_diff(low) < 500_000, "{offset:?} {low}");
    }

    #[test]
    fn realtime_offset_converts_both_ways() {
        let offset = RealtimeOffset::read();
        let instant = now();
        assert_eq!(offset.to_monotonic(offset.to_realtime_nanos(instant)), instant);
        let apart = realtime_nanos().abs_diff(offset.to_realtime_nanos(now()));
        assert!(apart < 1_000_000, "{apart} ns between the two clocks");
    }
}
