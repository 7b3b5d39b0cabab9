//! What every worker's thread does between and after its breaths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use wirestorm_base::port::{PortError, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_io::clock;

use crate::port::TransmitPort;

/// How long a port may take to empty its queue without any progress.
const DRAIN_STALL_MAX: Duration = Duration::from_secs(2);

/// Passes the time until there is something to do, without missing it.
pub(crate) fn rest(state: WorkerState, now: Instant, holds_departures: bool) {
    /// A wait is cut to this, so that stop requests are noticed.
    const WAIT_MAX: Duration = Duration::from_millis(20);
    /// Being late by less than this costs nothing where the port keeps the time.
    const NAP_MIN: Duration = Duration::from_micros(100);
    /// At several million frames a second a full ring has room for 20 or more after this. A
    /// sleep would take a hundred microseconds and let the ring run dry; looking more often
    /// would take the ring's counters away from the sender that writes them.
    const RING_WAIT: Duration = Duration::from_micros(4);
    match state {
        WorkerState::Active | WorkerState::Held | WorkerState::Done => {}
        WorkerState::Waiting(until) if holds_departures => {
            let nap = until.min(now.saturating_add(WAIT_MAX)).saturating_since(now);
            std::thread::sleep(StdDuration::from_nanos(nap.max(NAP_MIN).as_nanos()));
        }
        WorkerState::Waiting(until) => {
            clock::wait_until(until.min(now.saturating_add(WAIT_MAX)));
        }
        WorkerState::Blocked if holds_departures => {
            let until = now.saturating_add(RING_WAIT);
            while clock::now() < until {
                std::hint::spin_loop();
            }
        }
        WorkerState::Blocked => std::thread::yield_now(),
        WorkerState::Starved => std::thread::sleep(StdDuration::from_micros(50)),
    }
}

/// What a port did in the end: what it still holds never left. Where its interface failed, it is
/// told to give that up first.
pub(crate) fn settled(port: &mut TransmitPort, has_failed: bool) -> TransmitCounters {
    if has_failed {
        port.abort();
    }
    let mut transmitted = port.transmitted();
    transmitted.unsent += port.in_flight() as u64;
    transmitted
}

/// Waits until the ports have sent what they hold; what cannot leave counts as unsent. `look` is
/// shown the ports again and again.
pub(crate) fn drain(
    ports: &mut [TransmitPort],
    stop: &AtomicBool,
    mut look: impl FnMut(&[TransmitPort]),
) -> Result<(), PortError> {
    let mut in_flight = usize::MAX;
    let mut progressed = clock::now();
    let mut aborted = false;
    loop {
        let mut left = 0;
        for port in &mut *ports {
            port.flush()?;
            left += port.in_flight();
        }
        look(ports);
        if left == 0 {
            return Ok(());
        }
        let now = clock::now();
        if left != in_flight {
            in_flight = left;
            progressed = now;
        }
        // A frame held for a far departure is no stall: departures lie within the horizon.
        let is_stalled = now.saturating_since(progressed) > DRAIN_STALL_MAX;
        if !aborted && (stop.load(Ordering::Relaxed) || is_stalled) {
            aborted = true;
            progressed = now;
            ports.iter_mut().for_each(TransmitPort::abort);
        } else if aborted && is_stalled {
            return Ok(());
        }
        std::hint::spin_loop();
    }
}
