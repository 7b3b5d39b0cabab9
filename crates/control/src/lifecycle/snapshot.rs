//! The progress of a run, and subscriptions to it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::Duration;
use wirestorm_engine::impairment::ImpairmentCounters;
use wirestorm_engine::replay::ReplayCounters;
use wirestorm_engine::stream::StreamCounters;

use super::state::RunState;
use crate::result::{LatencyReport, SampledFlow};

/// How far a run has come. Runs publish one about ten times a second, and a last one at the end.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// How far the run is.
    pub state: Option<RunState>,
    /// While it is prepared: what it waits for, or what the user should know before the start.
    pub waiting_for: Option<String>,
    /// Since the start.
    pub elapsed: Duration,
    /// The part of the run that is done, 0 to 1; `None` where its end is not known.
    pub fraction: Option<f64>,
    /// What all ports sent together.
    pub transmitted: TransmitCounters,
    /// Each port that is used, in the plan's order.
    pub ports: Vec<PortSnapshot>,
    /// Each flow of a plan of streams, in the plan's order.
    pub flows: Vec<FlowSnapshot>,
    /// What the workers of a replay counted.
    pub replay: ReplayCounters,
    /// Whether this is the end of a pass over the captures, where those are published.
    pub pass_ended: bool,
    /// What latency probes measured so far.
    pub latency: Vec<LatencyReport>,
    /// CPU time that the workers took so far, all together. What ports do in the kernel by threads
    /// of their own is no part of it.
    pub worker_time: Duration,
}

/// How far a port has come.
#[derive(Clone, Debug, Default)]
pub struct PortSnapshot {
    /// Its name in the plan; its interface where the plan has no names.
    pub name: String,
    /// Its interface.
    pub interface: String,
    /// What it sent.
    pub transmitted: TransmitCounters,
    /// What it received.
    pub received: ReceiveCounters,
    /// Its connections, of clients and servers.
    pub connections: ConnectionSnapshot,
    /// What happened to frames on the impaired way from it.
    pub impairment: ImpairmentCounters,
    /// Sampled flows, each with its last sample alone.
    pub sampled: Vec<SampledFlow>,
}

/// The connections of a port.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionSnapshot {
    /// Connections that were established.
    pub established: u64,
    /// Connections now.
    pub active: u64,
    /// Connections that ended otherwise than by both sides closing them.
    pub failed: u64,
    /// Bytes of data that were sent, retransmissions not included.
    pub sent_bytes: u64,
    /// Bytes of data that arrived in sequence.
    pub received_bytes: u64,
    /// Segments with data that were retransmitted.
    pub retransmitted: u64,
}

/// How far a flow has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowSnapshot {
    /// What was sent of it.
    pub sent: StreamCounters,
    /// What arrived of it; nothing where it is not measured.
    pub received: MeasuredSnapshot,
}

/// What arrived of a measured flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredSnapshot {
    /// Frames that arrived, each counted once.
    pub frames: u64,
    /// Bytes without FCS of all arrivals, duplicates included.
    pub bytes: u64,
    /// Arrivals of a frame beyond its first one.
    pub duplicated: u64,
    /// Frames that arrived after one sent later.
    pub reordered: u64,
    /// Mean delay in nanoseconds; `None` where nothing was timed.
    pub delay_mean_ns: Option<f64>,
}

/// What becomes of snapshots that a subscriber does not fetch in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The oldest are dropped, and counted in [`Subscription::missed`]. The run never waits.
    Latest,
    /// The run waits for the subscriber, which must keep fetching. For output that has to be
    /// complete, such as a line for each pass.
    Every,
}

/// How many snapshots wait for a subscriber.
const QUEUE_MAX: usize = 64;

/// The snapshots of a run, for one reader. Dropping it ends the subscription.
pub struct Subscription(Arc<Queue>);

struct Queue {
    delivery: Delivery,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    snapshots: VecDeque<Arc<Snapshot>>,
    missed: u64,
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscription {
    /// Waits for the next snapshot; `None` when the run is over and all were fetched.
    pub fn next(&self) -> Option<Arc<Snapshot>> {
        let mut waiting = self.0.lock();
        loop {
            if let Some(snapshot) = waiting.snapshots.pop_front() {
                self.0.changed.notify_all();
                return Some(snapshot);
            }
            if waiting.is_closed {
                return None;
            }
            waiting = self.0.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next snapshot if there is one within `timeout`; `None` too when the run is over.
    pub fn next_within(&self, timeout: StdDuration) -> Option<Arc<Snapshot>> {
        let deadline = StdInstant::now() + timeout;
        let mut waiting = self.0.lock();
        loop {
            if let Some(snapshot) = waiting.snapshots.pop_front() {
                self.0.changed.notify_all();
                return Some(snapshot);
            }
            let left = deadline.saturating_duration_since(StdInstant::now());
            if waiting.is_closed || left == StdDuration::ZERO {
                return None;
            }
            let waited = self.0.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Snapshots that were dropped because they were not fetched in time.
    pub fn missed(&self) -> u64 {
        self.0.lock().missed
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        // The run may wait for room.
        self.0.changed.notify_all();
    }
}

/// The readers of a run's snapshots.
#[derive(Default)]
pub(super) struct Subscribers(Mutex<State>);

#[derive(Default)]
struct State {
    queues: Vec<Weak<Queue>>,
    latest: Option<Arc<Snapshot>>,
}

impl Subscribers {
    pub(super) fn add(&self, delivery: Delivery) -> Subscription {
        let waiting = Mutex::default();
        let queue = Arc::new(Queue { delivery, waiting, changed: Condvar::new() });
        self.lock().queues.push(Arc::downgrade(&queue));
        Subscription(queue)
    }

    pub(super) fn latest(&self) -> Option<Arc<Snapshot>> {
        self.lock().latest.clone()
    }

    pub(super) fn publish(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        let queues: Vec<Arc<Queue>> = {
            let mut state = self.lock();
            state.latest = Some(Arc::clone(&snapshot));
            state.queues.retain(|queue| queue.strong_count() > 0);
            state.queues.iter().filter_map(Weak::upgrade).collect()
        };
        for queue in queues {
            let mut waiting = queue.lock();
            while queue.delivery == Delivery::Every
                && waiting.snapshots.len() >= QUEUE_MAX
                && !waiting.is_closed
            {
                waiting = queue.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            if waiting.is_closed {
                continue;
            }
            if waiting.snapshots.len() >= QUEUE_MAX {
                waiting.snapshots.pop_front();
                waiting.missed += 1;
            }
            waiting.snapshots.push_back(Arc::clone(&snapshot));
            queue.changed.notify_all();
        }
    }

    /// The run is over: what waits can be fetched, and nothing follows.
    pub(super) fn close(&self) {
        let queues = std::mem::take(&mut self.lock().queues);
        for queue in queues.iter().filter_map(Weak::upgrade) {
            queue.lock().is_closed = true;
            queue.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u64) -> Snapshot {
        Snapshot { elapsed: Duration::from_nanos(number), ..Snapshot::default() }
    }

    fn numbers(subscription: &Subscription) -> Vec<u64> {
        std::iter::from_fn(|| subscription.next()).map(|it| it.elapsed.as_nanos()).collect()
    }

    #[test]
    fn a_slow_reader_loses_the_oldest_snapshots_and_learns_how_many() {
        let subscribers = Subscribers::default();
        let slow = subscribers.add(Delivery::Latest);
        (0..QUEUE_MAX as u64 + 3).for_each(|number| subscribers.publish(numbered(number)));
        subscribers.close();
        assert_eq!(slow.missed(), 3);
        assert_eq!(numbers(&slow), (3..QUEUE_MAX as u64 + 3).collect::<Vec<_>>());
    }

    #[test]
    fn a_reader_of_every_snapshot_holds_the_run_until_it_fetches_or_leaves() {
        let subscribers = Subscribers::default();
        let every = subscribers.add(Delivery::Every);
        let count = 10 * QUEUE_MAX as u64;
        std::thread::scope(|scope| {
            let publisher = scope.spawn(|| {
                (0..count).for_each(|number| subscribers.publish(numbered(number)));
                subscribers.close();
            });
            assert_eq!(numbers(&every), (0..count).collect::<Vec<_>>());
            publisher.join().unwrap();
        });
        let leaves = subscribers.add(Delivery::Every);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..count).for_each(|number| subscribers.publish(numbered(number))));
            assert!(leaves.next().is_some());
            drop(leaves);
        });
    }
}
