//! Longest delay of a program, and the idle timeout that it requires.

use wirestorm_base::time::Duration;
use wirestorm_model::program::Step;

/// Returns the longest single delay of the steps. For an unbounded distribution it returns a time
/// that is hardly ever exceeded.
pub(super) fn longest_delay(steps: &[Step]) -> Duration {
    let longest = |step: &Step| match *step {
        Step::Delay { max, .. } => max,
        // An exponential delay exceeds 20 times its mean with a probability of 2 in 10^9.
        Step::RandomDelay { mean, stddev: None } => multiplied(mean, 20),
        Step::RandomDelay { mean, stddev: Some(deviation) } => {
            mean.saturating_add(multiplied(deviation, 6))
        }
        Step::Repeat { ref steps, .. } => longest_delay(steps),
        _ => Duration::ZERO,
    };
    steps.iter().map(longest).max().unwrap_or(Duration::ZERO)
}

fn multiplied(time: Duration, times: u64) -> Duration {
    Duration::from_nanos(time.as_nanos().saturating_mul(times))
}

/// Returns the step that sets the idle timeout of both sides' programs, so that a UDP flow outlasts
/// their delays. `None`: the default timeout suffices.
///
/// The timeout is twice the `longest` delay if that is 500 ms or more, and at least `least`.
pub(super) fn idle_timeout(longest: Duration, least: Duration) -> Option<Step> {
    /// Half of the default timeout of 1 s.
    const LONG: Duration = Duration::from_millis(500);
    let time = if longest < LONG { Duration::ZERO } else { multiplied(longest, 2) };
    let millis = time.max(least).as_nanos().div_ceil(1_000_000);
    let time = Duration::from_millis(millis);
    (time > Duration::ZERO).then_some(Step::SetIdleTimeout { time, receive_only: false })
}
