//! This machine's clock beside its reference, read again and again.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_clock::reference::ReferenceReading;
use wirestorm_clock::source::{SourceKind, SourceReport};
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_io::clock::{self, RealtimeOffset};

use super::sources::{SourceOptions, gather};

/// Time between two readings.
const INTERVAL: StdDuration = StdDuration::from_secs(1);
/// Readings that are kept: those of a day.
const READINGS_MAX: usize = 86_400;

/// Reads the best source of this machine once a second, in a thread, until it is dropped.
#[derive(Debug)]
pub struct ReferenceMonitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    readings: VecDeque<ReferenceReading>,
    source: Option<String>,
    is_stopped: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReferenceMonitor {
    /// Starts to read.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(options: SourceOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("clock-reference".into());
        let thread = thread.spawn(move || read(&options, &of_thread))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the readings after a time of this machine's clock, in order.
    pub fn after(&self, time: Timestamp) -> Vec<ReferenceReading> {
        let state = self.shared.state();
        let from = state.readings.partition_point(|reading| reading.at <= time);
        state.readings.range(from..).copied().collect()
    }

    /// Returns the last reading, and its source in words; `None` without a source.
    pub fn latest(&self) -> Option<(ReferenceReading, String)> {
        let state = self.shared.state();
        Some((*state.readings.back()?, state.source.clone()?))
    }
}

impl Drop for ReferenceMonitor {
    fn drop(&mut self) {
        self.shared.state().is_stopped = true;
        self.shared.changed.notify_all();
        // A panic has been reported by the thread itself.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn read(options: &SourceOptions, shared: &Shared) {
    loop {
        let sources = gather(options);
        let reading = sources.chosen().and_then(|it| Some((reading(it)?, name(it))));
        let mut state = shared.state();
        match reading {
            Some((reading, name)) => {
                state.source = Some(name);
                state.readings.push_back(reading);
                if state.readings.len() > READINGS_MAX {
                    state.readings.pop_front();
                }
            }
            None => state.source = None,
        }
        let wait = shared.changed.wait_timeout_while(state, INTERVAL, |it| !it.is_stopped);
        if wait.unwrap_or_else(PoisonError::into_inner).0.is_stopped {
            return;
        }
    }
}

/// Returns the error of this machine's clock by a source of the system clock; `None` if the source
/// does not know its error.
fn reading(source: &SourceReport) -> Option<ReferenceReading> {
    let now = clock::now();
    let at = clock::node_time(now);
    let realtime_ns = RealtimeOffset::read().to_realtime_nanos(now) as i64;
    let system_ns = source.offset_ns.unwrap_or(0);
    Some(ReferenceReading {
        at,
        offset_ns: (at.as_nanos() - realtime_ns).saturating_add(system_ns),
        // The bound has the offset in it, which is corrected here.
        error_ns: source.bound_ns?.saturating_sub(system_ns.unsigned_abs()),
    })
}

fn name(source: &SourceReport) -> String {
    let kind = match source.kind {
        SourceKind::Phc => "hardware clock",
        SourceKind::Ptp4l => "ptp4l",
        SourceKind::Chrony => "chrony",
        SourceKind::Kernel => "kernel",
    };
    match &source.reference {
        Some(reference) => format!("{kind} ({reference})"),
        None => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_of_the_system_clock_is_corrected_and_not_in_the_error() {
        let mut source = SourceReport::failed(SourceKind::Chrony, "chrony", String::new());
        (source.offset_ns, source.bound_ns) = (Some(-400_000), Some(1_000_000));
        let reading = reading(&source).unwrap();
        assert_eq!(reading.error_ns, 600_000);
        // This process has the system clock, so its error is the system clock's.
        assert!((reading.offset_ns + 400_000).abs() < 100_000, "{reading:?}");
        source.bound_ns = None;
        assert!(super::reading(&source).is_none());
    }

    #[test]
    fn monitor_without_sources_has_no_reading_and_ends() {
        let nowhere = || "/nonexistent/socket".into();
        let options = SourceOptions {
            chrony: nowhere(),
            chrony_port: 1,
            ptp4l: vec![nowhere()],
            ..SourceOptions::default()
        };
        let monitor = ReferenceMonitor::start(options).unwrap();
        // The kernel may have a bound of its own, on a machine that a daemon synchronises.
        let readings = monitor.after(Timestamp::from_nanos(i64::MIN));
        assert_eq!(monitor.latest().is_some(), !readings.is_empty());
    }
}
