//! The hosts of a run: each answers for its port's addresses as long as frames are sent.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use wirestorm_base::time::Duration;
use wirestorm_io::clock;

use super::station::Station;

/// Threads that answer, until this is dropped.
pub(crate) struct Guests {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How often it is looked whether all is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

impl Guests {
    /// Lets stations answer from now on.
    ///
    /// # Errors
    /// Where a thread does not start.
    pub(crate) fn host(stations: Vec<Station>) -> std::io::Result<Self> {
        let mut guests = Self { stop: Arc::default(), threads: Vec::new() };
        for mut station in stations {
            let stop = Arc::clone(&guests.stop);
            let answer = move || {
                while !stop.load(Ordering::Relaxed) {
                    let until = clock::now().saturating_add(LOOK_INTERVAL);
                    let heard = station.listen(until, |_, _| ControlFlow::<()>::Continue(()));
                    // The run itself says what became of the interface.
                    if heard.is_err() {
                        return;
                    }
                }
            };
            guests.threads.push(std::thread::Builder::new().name("host".into()).spawn(answer)?);
        }
        Ok(guests)
    }
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
