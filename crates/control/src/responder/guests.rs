//! The hosts of a run: each answers for its port's addresses as long as frames are sent.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::port::PortError;
use wirestorm_base::time::Duration;
use wirestorm_io::clock;

use super::prober::Prober;
use super::station::Station;

/// Threads that answer, until this is dropped.
pub(crate) struct Guests {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How often it is looked whether all is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// The same where there are probes, which begin and end then.
const PROBE_INTERVAL: Duration = Duration::from_millis(1);
/// How long a host is left alone where its interface is down.
const DOWN_PAUSE: StdDuration = StdDuration::from_millis(20);

impl Guests {
    /// Lets stations answer from now on.
    ///
    /// # Errors
    /// Where a thread does not start.
    pub(crate) fn host(stations: Vec<Station>) -> std::io::Result<Self> {
        Self::host_and_probe(stations.into_iter().map(|station| (station, Vec::new())).collect())
    }

    /// The same, and stations ask others as well.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    pub(crate) fn host_and_probe(stations: Vec<(Station, Vec<Prober>)>) -> std::io::Result<Self> {
        let mut guests = Self { stop: Arc::default(), threads: Vec::new() };
        for (mut station, mut probers) in stations {
            let stop = Arc::clone(&guests.stop);
            // Probes begin without a call.
            let interval = if probers.is_empty() { LOOK_INTERVAL } else { PROBE_INTERVAL };
            let mut was_down = false;
            let mut turn = move || {
                if std::mem::take(&mut was_down) {
                    // Neighbours may have forgotten it.
                    station.announce().inspect_err(|_| was_down = true)?;
                }
                let outcome = answer(&mut station, &mut probers, interval);
                was_down = outcome.is_err();
                outcome
            };
            let answer = move || {
                while !stop.load(Ordering::Relaxed) {
                    match turn() {
                        Ok(()) => {}
                        // It may come up again; the run itself says so if it does not.
                        Err(PortError::Down { .. }) => std::thread::sleep(DOWN_PAUSE),
                        Err(_) => return,
                    }
                }
            };
            guests.threads.push(std::thread::Builder::new().name("host".into()).spawn(answer)?);
        }
        Ok(guests)
    }
}

/// Asks and answers for a while.
fn answer(
    station: &mut Station,
    probers: &mut [Prober],
    interval: Duration,
) -> Result<(), PortError> {
    let mut until = clock::now().saturating_add(interval).min(station.probe()?);
    for prober in &mut *probers {
        until = until.min(prober.ask(station)?);
    }
    station.listen(until, |heard, arrival| {
        probers.iter_mut().for_each(|prober| prober.hear(&heard, arrival));
        ControlFlow::<()>::Continue(())
    })?;
    Ok(())
}

impl Drop for Guests {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there was printed; it does not spoil what was measured.
            let _ = thread.join();
        }
    }
}
