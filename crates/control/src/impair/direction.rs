//! Worker of one direction of an impaired link.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use wirestorm_base::histogram::Histogram;
use wirestorm_base::port::{
    PortError, Receive, ReceiveCounters, Received, Transmit, TransmitCounters,
};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::impairment::{ImpairmentCounters, Link};
use wirestorm_io::clock;

use super::report::DirectionOutcome;
use crate::backend::TransmitPort;
use crate::port::{Interfaces, ReceivePort, Watch};
use crate::work::{drain, final_counters};

/// Interval at which the worker publishes counters and checks its interface.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum wait, so that the worker sees a stop request in time.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// Maximum number of frames fetched at once.
const ROOM: usize = 64;

/// Counters of a direction so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirectionSnapshot {
    pub(super) impairment: ImpairmentCounters,
    pub(super) received: ReceiveCounters,
    pub(super) transmitted: TransmitCounters,
    /// CPU time of the thread.
    pub(super) time: Duration,
}

/// One direction: frames from one interface to the other.
pub(super) struct Direction<'a> {
    pub(super) receive: [ReceivePort; 1],
    pub(super) transmit: TransmitPort,
    pub(super) link: Link,
    pub(super) duration: Duration,
    pub(super) interfaces: &'a Interfaces,
    /// Index of the receiving interface.
    pub(super) index: usize,
    pub(super) stop: &'a AtomicBool,
    pub(super) snapshot: &'a Mutex<DirectionSnapshot>,
}

impl Direction<'_> {
    pub(super) fn work(mut self, start: Instant) -> DirectionOutcome {
        let (mut unfit, mut lateness) = (0, Histogram::new());
        let carried = self.carry(start, &mut unfit, &mut lateness);
        // Send the frames that have left the link, even after an error.
        let port = std::slice::from_mut(&mut self.transmit);
        let outcome = carried.and_then(|()| drain(port, &AtomicBool::new(false), |_| ()));
        if outcome.is_err() {
            // A link with one direction is useless: stop the other direction too.
            self.stop.store(true, Ordering::Relaxed);
        }
        self.publish();
        let transmitted = final_counters(&mut self.transmit, outcome.is_err());
        DirectionOutcome {
            counters: *self.link.counters(),
            unfit,
            transmitted,
            received: self.receive[0].received(),
            lateness,
            cpu: clock::thread_time(),
            error: outcome.err().map(|error| self.interfaces.settle(error).to_string()),
        }
    }

    fn carry(
        &mut self,
        start: Instant,
        unfit: &mut u64,
        lateness: &mut Histogram,
    ) -> Result<(), PortError> {
        let mut watch = self.interfaces.watch().into_iter().nth(self.index);
        let mut publish_at = start;
        let mut batch = Vec::with_capacity(ROOM);
        let mut entered_at = Instant::ZERO;
        loop {
            let arrived = self.receive[0].receive(ROOM, &mut batch)?;
            for received in batch.drain(..) {
                // Timestamps increase within a queue, but may go back between queues.
                entered_at = entered_at.max(received.arrival);
                if !self.enter(entered_at, received) {
                    *unfit += 1;
                }
            }
            let now = clock::now();
            self.leave(now, lateness)?;
            if now >= publish_at {
                publish_at = now.saturating_add(PUBLISH_INTERVAL);
                self.publish();
                watch.as_mut().map_or(Ok(()), Watch::check)?;
            }
            let is_over = now.saturating_since(start) >= self.duration;
            if is_over || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if arrived == 0 {
                let next = self.link.next().unwrap_or(Instant::MAX);
                let next = next.min(now.saturating_add(WAIT_MAX));
                let patience = next.saturating_since(clock::now());
                if patience > Duration::ZERO {
                    ReceivePort::wait(&mut self.receive, patience);
                }
            }
        }
    }

    /// Puts a frame on the link. Returns false if the other interface cannot send it.
    fn enter(&mut self, arrival: Instant, received: Received) -> bool {
        let [port] = &mut self.receive;
        let frame = port.frame(&received);
        let is_whole = received.length == received.original_length;
        let is_fit = is_whole && self.transmit.capabilities().accepts(frame);
        if is_fit {
            self.link.enter(arrival, frame);
        }
        port.release(received);
        is_fit
    }

    /// Sends the frames that are due, as long as the port has free buffers.
    fn leave(&mut self, now: Instant, lateness: &mut Histogram) -> Result<(), PortError> {
        while let Some(due) = self.link.next().filter(|due| *due <= now) {
            let Some(buffer) = self.transmit.take() else { break };
            match self.link.leave(now) {
                Some(frame) => {
                    self.transmit.frame_mut(&buffer)[..frame.len()].copy_from_slice(frame);
                    self.transmit.send(buffer, frame.len(), Instant::ZERO);
                    lateness.record(now.saturating_since(due));
                }
                None => self.transmit.release(buffer),
            }
        }
        self.transmit.flush()
    }

    fn publish(&self) {
        if let Ok(mut snapshot) = self.snapshot.lock() {
            *snapshot = DirectionSnapshot {
                impairment: *self.link.counters(),
                received: self.receive[0].received(),
                transmitted: self.transmit.transmitted(),
                time: clock::thread_time(),
            };
        }
    }
}
