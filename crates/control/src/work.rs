//! Common parts of worker threads: waiting between iterations, draining ports at the end.

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

/// Time that frames are queued ahead in ports that hold departures. It bridges times when the
/// worker is off its CPU. An interruption drops queued frames at once.
pub(crate) const HORIZON: Duration = Duration::from_millis(20);

/// Maximum time without progress while a port drains its queue.
const DRAIN_STALL_MAX: Duration = Duration::from_secs(2);

/// Returns the options of a worker's generator for sending on interfaces in real time.
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
        first_number: 0,
    }
}

/// Returns how long a delayed run may exceed its duration: a tenth of it, within 1 s to 5 s. This
/// is enough to catch up after a short stall, but not for a rate that the machine cannot send.
pub(crate) fn late_end_max(duration: Duration) -> Duration {
    let tenth = Duration::from_nanos(duration.as_nanos() / 10);
    tenth.clamp(Duration::from_secs(1), Duration::from_secs(5))
}

/// Waits while the run is paused. Returns the time waited.
#[cold]
pub(crate) fn wait_while_paused(controls: &Controls) -> Duration {
    const LOOK_INTERVAL: StdDuration = StdDuration::from_millis(5);
    let began = clock::now();
    while controls.is_paused() && !controls.is_stopped() {
        std::thread::sleep(LOOK_INTERVAL);
    }
    clock::now().saturating_since(began)
}

/// Returns what a worker waits for. Before the start, no frame leaves a full ring: a worker that polls
/// it would only keep senders and other workers off their CPUs, and delay their first frames.
pub(crate) fn awaited(state: WorkerState, now: Instant, start: Instant) -> WorkerState {
    match state {
        WorkerState::Blocked if now < start => WorkerState::Waiting(start),
        other => other,
    }
}

/// Waits until the worker has something to do. The kind of wait depends on `state`.
pub(crate) fn rest(state: WorkerState, now: Instant, holds_departures: bool) {
    /// Maximum wait, so that the worker sees a stop request in time.
    const WAIT_MAX: Duration = Duration::from_millis(20);
    /// Minimum sleep. The port holds departures, so a wake-up this late does no harm.
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
        WorkerState::Blocked if holds_departures => spin_for_ring_space(now),
        WorkerState::Blocked => std::thread::yield_now(),
        WorkerState::Underrun => std::thread::sleep(StdDuration::from_micros(50)),
    }
}

/// Leaves a full ring to the sender on another core for 4 microseconds. At several million frames a
/// second, the ring then has room for 20 frames or more. A sleep takes about 100 microseconds, in
/// which the ring could run dry. More frequent polling would take the cache line of the ring's
/// counters away from the sender.
fn spin_for_ring_space(now: Instant) {
    const RING_WAIT: Duration = Duration::from_micros(4);
    let until = now.saturating_add(RING_WAIT);
    while clock::now() < until {
        std::hint::spin_loop();
    }
}

/// Returns the final counters of a port. Frames that it still holds count as unsent. If the
/// interface failed, this aborts the port first.
pub(crate) fn final_counters(port: &mut impl Transmit, has_failed: bool) -> TransmitCounters {
    if has_failed {
        port.abort();
    }
    let mut transmitted = port.transmitted();
    transmitted.unsent += port.in_flight() as u64;
    transmitted
}

/// Departures, and the point where they were timestamped.
pub(crate) type Stamped = (DepartureRecord, StampPoint);

/// Merges the departures recorded by the ports with those recorded by the process (`of_process`).
/// While frames without a due time are pending, the process waits for departures. Otherwise the
/// ports that hold departures do.
pub(crate) fn departures(
    mut of_process: DepartureRecord,
    ports: &[TransmitPort],
) -> Option<Stamped> {
    let of_port =
        |port: &TransmitPort| Some((port.departures()?, port.capabilities().departure_stamp));
    let of_ports = merge_departures(ports.iter().filter_map(of_port));
    if of_process.frames == 0 {
        return of_ports;
    }
    if let Some((record, _)) = of_ports {
        of_process.merge(&record);
    }
    Some((of_process, StampPoint::Process))
}

/// Merges the records of several ports or workers, which all use the same timestamp point.
pub(crate) fn merge_departures(records: impl Iterator<Item = Stamped>) -> Option<Stamped> {
    records.reduce(|(mut sum, stamp), (record, _)| {
        sum.merge(&record);
        (sum, stamp)
    })
}

/// Waits until the ports have sent their queued frames. Frames that cannot leave count as unsent.
/// Calls `look` with the ports at each iteration.
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
        // A frame held for its departure time is no stall: departures lie within the horizon.
        let is_stalled = now.saturating_since(progressed) > DRAIN_STALL_MAX;
        if !aborted && (stop.load(Ordering::Relaxed) || is_stalled) {
            aborted = true;
            progressed = now;
            ports.iter_mut().for_each(TransmitPort::abort);
        } else if aborted && is_stalled {
            return Ok(());
        }
        spin_for_ring_space(now);
    }
}
