//! What every worker's thread does between and after its breaths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use wirestorm_base::departure::{DeparturePolicy, DepartureRecord};
use wirestorm_base::port::{PortError, StampPoint, Transmit, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{GeneratorOptions, Share};
use wirestorm_io::clock;

use crate::backend::TransmitPort;
use crate::lifecycle::Controls;

/// How far ahead frames are given to ports that hold departures. It bridges times when the
/// worker is off its CPU; what is queued is dropped at once when the run is interrupted.
pub(crate) const HORIZON: Duration = Duration::from_millis(20);

/// How long a port may take to empty its queue without any progress.
const DRAIN_STALL_MAX: Duration = Duration::from_secs(2);

/// How a worker's generator sends on interfaces.
pub(crate) fn generator_options(
    share: Share,
    policy: DeparturePolicy,
    duration_max: Duration,
) -> GeneratorOptions {
    GeneratorOptions {
        share,
        policy,
        duration_max,
        frames_max: u64::MAX,
        virtual_time: false,
        horizon: HORIZON,
        numbered_from: 0,
    }
}

/// How much later than its duration a run may end that was held up: enough to catch up with what
/// takes a machine away for a while, not for a rate that it cannot send. A tenth of the duration,
/// but at least 1 s and at most 5 s.
pub(crate) fn late_end_max(duration: Duration) -> Duration {
    let tenth = Duration::from_nanos(duration.as_nanos() / 10);
    tenth.clamp(Duration::from_secs(1), Duration::from_secs(5))
}

/// Waits while a run is paused; returns how long that was.
#[cold]
pub(crate) fn wait_while_paused(controls: &Controls) -> Duration {
    const LOOK_INTERVAL: StdDuration = StdDuration::from_millis(5);
    let began = clock::now();
    while controls.is_paused() && !controls.is_stopped() {
        std::thread::sleep(LOOK_INTERVAL);
    }
    clock::now().saturating_since(began)
}

/// Passes the time until there is something to do, without missing it.
pub(crate) fn rest(state: WorkerState, now: Instant, holds_departures: bool) {
    /// A wait is cut to this, so that stop requests are noticed.
    const WAIT_MAX: Duration = Duration::from_millis(20);
    /// Being late by less than this costs nothing where the port keeps the time.
    const NAP_MIN: Duration = Duration::from_micros(100);
    match state {
        WorkerState::Active | WorkerState::Held | WorkerState::Done => {}
        WorkerState::Waiting(until) if holds_departures => {
            let nap = until.min(now.saturating_add(WAIT_MAX)).saturating_since(now);
            std::thread::sleep(StdDuration::from_nanos(nap.max(NAP_MIN).as_nanos()));
        }
        WorkerState::Waiting(until) => {
            clock::wait_until(until.min(now.saturating_add(WAIT_MAX)));
        }
        WorkerState::Blocked if holds_departures => leave_to_sender(now),
        WorkerState::Blocked => std::thread::yield_now(),
        WorkerState::Starved => std::thread::sleep(StdDuration::from_micros(50)),
    }
}

/// Leaves a ring to the sender on another core for a moment. At several million frames a second a
/// full ring has room for 20 or more after this. A sleep would take a hundred microseconds and let
/// the ring run dry; looking more often would take the ring's counters away from the sender that
/// writes them.
fn leave_to_sender(now: Instant) {
    const RING_WAIT: Duration = Duration::from_micros(4);
    let until = now.saturating_add(RING_WAIT);
    while clock::now() < until {
        std::hint::spin_loop();
    }
}

/// What a port did in the end: what it still holds never left. Where its interface failed, it is
/// told to give that up first.
pub(crate) fn settled(port: &mut impl Transmit, has_failed: bool) -> TransmitCounters {
    if has_failed {
        port.abort();
    }
    let mut transmitted = port.transmitted();
    transmitted.unsent += port.in_flight() as u64;
    transmitted
}

/// When frames left, and where that was stamped.
pub(crate) type Stamped = (DepartureRecord, StampPoint);

/// When frames left: as the ports know that hold departures, and as the process saw it. Beside
/// frames without a due time it is the process that waits, and once there are none of those left,
/// the ports are.
pub(crate) fn departures(mut own: DepartureRecord, ports: &[TransmitPort]) -> Option<Stamped> {
    let of_port =
        |port: &TransmitPort| Some((port.departures()?, port.capabilities().departure_stamp));
    let of_ports = departures_of_all(ports.iter().filter_map(of_port));
    if own.frames == 0 {
        return of_ports;
    }
    if let Some((record, _)) = of_ports {
        own.merge(&record);
    }
    Some((own, StampPoint::Process))
}

/// The records of several ports or workers as one; all are stamped alike.
pub(crate) fn departures_of_all(records: impl Iterator<Item = Stamped>) -> Option<Stamped> {
    records.reduce(|(mut sum, stamp), (record, _)| {
        sum.merge(&record);
        (sum, stamp)
    })
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
        leave_to_sender(now);
    }
}
