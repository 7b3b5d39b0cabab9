//! Responder threads of a run. Each answers ARP, neighbour discovery and pings for one port.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::port::PortError;
use wirestorm_base::time::Duration;
use wirestorm_io::clock;

use super::packet_socket_host::PacketSocketHost;
use super::prober::Prober;

/// Responder threads; dropping this stops them.
pub(crate) struct ResponderThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Interval at which a thread checks for the end.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The same with probes. They start and end at these checks, so the interval is short.
const PROBE_INTERVAL: Duration = Duration::from_millis(1);
/// Time between attempts while the interface is down.
const LINK_DOWN_RETRY: StdDuration = StdDuration::from_millis(20);

impl ResponderThreads {
    /// Starts a responder thread for each host.
    ///
    /// # Errors
    /// Fails if a thread does not start.
    pub(crate) fn host(hosts: Vec<PacketSocketHost>) -> std::io::Result<Self> {
        Self::start_with_probers(hosts.into_iter().map(|host| (host, Vec::new())).collect())
    }

    /// Starts a thread for each host, which also sends the probes of its probers.
    ///
    /// # Errors
    /// As [`host`](Self::host).
    pub(crate) fn start_with_probers(
        hosts: Vec<(PacketSocketHost, Vec<Prober>)>,
    ) -> std::io::Result<Self> {
        let mut threads = Self { stop: Arc::default(), threads: Vec::new() };
        for (mut host, mut probers) in hosts {
            let stop = Arc::clone(&threads.stop);
            // No call wakes this thread when the probes start, so it checks often.
            let interval = if probers.is_empty() { STOP_CHECK_INTERVAL } else { PROBE_INTERVAL };
            let mut was_down = false;
            let mut step = move || {
                if std::mem::take(&mut was_down) {
                    // Neighbours may have removed the entry while the interface was down.
                    host.announce().inspect_err(|_| was_down = true)?;
                }
                let outcome = answer(&mut host, &mut probers, interval);
                was_down = outcome.is_err();
                outcome
            };
            let answer = move || {
                while !stop.load(Ordering::Relaxed) {
                    match step() {
                        Ok(()) => {}
                        // The interface may come up again. If it does not, the run reports it.
                        Err(PortError::Down { .. }) => std::thread::sleep(LINK_DOWN_RETRY),
                        Err(_) => return,
                    }
                }
            };
            threads.threads.push(std::thread::Builder::new().name("host".into()).spawn(answer)?);
        }
        Ok(threads)
    }
}

/// Sends due probes and answers requests for at most `interval`.
fn answer(
    host: &mut PacketSocketHost,
    probers: &mut [Prober],
    interval: Duration,
) -> Result<(), PortError> {
    let mut until = clock::now().saturating_add(interval).min(host.probe()?);
    for prober in &mut *probers {
        until = until.min(prober.send_due(host)?);
    }
    host.listen(until, |event, arrival| {
        probers.iter_mut().for_each(|prober| prober.receive(&event, arrival));
        ControlFlow::<()>::Continue(())
    })?;
    Ok(())
}

impl Drop for ResponderThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The panic hook has printed a panic. It does not affect the measurements.
            let _ = thread.join();
        }
    }
}
