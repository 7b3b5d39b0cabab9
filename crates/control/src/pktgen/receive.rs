//! The receiving end by itself, as pktgen's receive side (pgrx) has it.

use std::sync::atomic::Ordering;
use std::time::Duration as StdDuration;

use wirestorm_base::time::Duration;
use wirestorm_io::clock;
use wirestorm_plan::replay::ReceivePlan;

use crate::receive::Arrivals;
use crate::replay::Control;
use crate::result::ReceiveReport;
use crate::workers::OBSERVE_INTERVAL;

/// Counts what arrives at an interface.
pub struct Receiver(Arrivals);

impl Receiver {
    /// Counts from now on.
    ///
    /// # Errors
    /// What was tried, and what the system said.
    pub fn open(interface: &str) -> Result<Self, String> {
        let plan = ReceivePlan { interface: interface.to_owned(), verify: false };
        Arrivals::open(&plan, false, None).map(Self)
    }

    /// Waits until it is told to stop, but no longer than `duration`; `observe` is told about ten
    /// times a second how many frames have arrived.
    pub fn wait(&self, duration: Duration, control: &Control, mut observe: impl FnMut(u64)) {
        let start = clock::now();
        while !control.stop.load(Ordering::Relaxed) {
            let left = duration.saturating_sub(clock::now().saturating_since(start));
            if left == Duration::ZERO {
                return;
            }
            // The counters in the kernel wake nobody, and a stop is a flag that a signal sets: both
            // are looked at when the observer is told.
            std::thread::sleep(OBSERVE_INTERVAL.min(StdDuration::from_nanos(left.as_nanos())));
            observe(self.0.packets());
        }
    }

    /// Waits for the last of `sent` frames, then reports.
    pub fn finish(self, sent: u64) -> ReceiveReport {
        self.0.finish(sent).0
    }
}
