//! How long a program waits, and the idle timeout that follows from it.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;

/// The longest that steps wait at once; where that has no bound, one that is hardly ever exceeded.
pub(super) fn longest_wait(steps: &[Step]) -> Duration {
    let longest = |step: &Step| match *step {
        Step::Delay { max, .. } => max,
        // Once in 10^8 times.
        Step::DelayAbout { mean, deviation: None } => multiplied(mean, 20),
        Step::DelayAbout { mean, deviation: Some(deviation) } => {
            mean.saturating_add(multiplied(deviation, 6))
        }
        Step::Repeat { ref steps, .. } => longest_wait(steps),
        _ => Duration::ZERO,
    };
    steps.iter().map(longest).max().unwrap_or(Duration::ZERO)
}

fn multiplied(time: Duration, times: u64) -> Duration {
    Duration::from_nanos(time.as_nanos().saturating_mul(times))
}

/// A flow of datagrams is not given up while either side waits, so long at most: what says so to
/// both sides' programs, where what is usual would not do. `least`: so long it goes on anyway.
pub(super) fn stay(longest: Duration, least: Duration) -> Option<Step> {
    /// Half of what is usual.
    const LONG: Duration = Duration::from_millis(500);
    let time = if longest < LONG { Duration::ZERO } else { multiplied(longest, 2) };
    let millis = time.max(least).as_nanos().div_ceil(1_000_000);
    let time = Duration::from_millis(millis);
    (time > Duration::ZERO).then_some(Step::Idle { time, receive_only: false })
}
