//! Progress snapshots of a run, and subscriptions to them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_base::port::{ReceiveCounters, TransmitCounters};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::impairment::ImpairmentCounters;
use wirestorm_engine::replay::ReplayCounters;
use wirestorm_engine::stream::StreamCounters;

use super::run_state::RunState;
use crate::result::{LatencyReport, SampledFlow};

/// Progress of a run. Runs publish a snapshot about ten times a second and at the end.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// State of the run.
    pub state: Option<RunState>,
    /// During preparation: what the run waits for, or a note for the user.
    pub waiting_for: Option<String>,
    /// Time since the start.
    pub elapsed: Duration,
    /// Completed part of the run, 0 to 1; `None` if its end is unknown.
    pub fraction: Option<f64>,
    /// Transmit counters of all ports.
    pub transmitted: TransmitCounters,
    /// Ports in use, in plan order. In scripts of pktgen, a port for each device.
    pub ports: Vec<PortSnapshot>,
    /// Flows of a plan of streams, in plan order.
    pub flows: Vec<FlowSnapshot>,
    /// Counters of the workers of a replay.
    pub replay: ReplayCounters,
    /// Whether this snapshot marks the end of a pass over the captures.
    pub pass_ended: bool,
    /// Results of latency probes so far.
    pub latency: Vec<LatencyReport>,
    /// CPU time of all workers so far, without kernel threads of the ports.
    pub worker_time: Duration,
}

/// Progress of a port.
#[derive(Clone, Debug, Default)]
pub struct PortSnapshot {
    /// Port name in the plan, or the interface if the plan has no port names.
    pub name: String,
    /// Interface.
    pub interface: String,
    /// Transmit counters.
    pub transmitted: TransmitCounters,
    /// Receive counters.
    pub received: ReceiveCounters,
    /// Connections of its clients and servers.
    pub connections: ConnectionSnapshot,
    /// Counters of the impaired link in front of the port; `None` without one.
    pub impairment: Option<ImpairmentCounters>,
    /// Sampled flows, each with only its last sample.
    pub sampled: Vec<SampledFlow>,
}

/// Connections of a port.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionSnapshot {
    /// Connections established so far.
    pub established: u64,
    /// Open connections.
    pub active: u64,
    /// Connections that ended without a close by both sides.
    pub failed: u64,
    /// Payload bytes sent, without retransmissions.
    pub sent_bytes: u64,
    /// Payload bytes received in sequence.
    pub received_bytes: u64,
    /// Retransmitted data segments.
    pub retransmitted: u64,
}

/// Progress of a flow.
#[derive(Clone, Debug, Default)]
pub struct FlowSnapshot {
    /// Name in the plan.
    pub name: Arc<str>,
    /// Counters of the sender.
    pub sent: StreamCounters,
    /// Counters of the receivers; `None` if no port recognises the frames of the flow.
    pub received: Option<MeasuredSnapshot>,
    /// Whether the flow is paused on its own. The pause of the whole run does not count.
    pub is_paused: bool,
}

/// Receive counters of a measured flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredSnapshot {
    /// Distinct frames received.
    pub frames: u64,
    /// Bytes received without FCS, duplicates included.
    pub bytes: u64,
    /// Duplicates.
    pub duplicated: u64,
    /// Frames that arrived after one sent later.
    pub reordered: u64,
    /// Mean delay in nanoseconds; `None` without timestamps.
    pub delay_mean_ns: Option<f64>,
    /// Shortest delay in nanoseconds; `None` without timestamps.
    pub delay_min_ns: Option<i64>,
    /// Longest delay in nanoseconds; `None` without timestamps.
    pub delay_max_ns: Option<i64>,
    /// Interarrival jitter in nanoseconds, the greatest of all parts of the flow; `None` for frames
    /// without sequence numbers.
    pub jitter_ns: Option<u64>,
    /// Arrival of the first and the last frame on the monotonic clock; `None` before the first one.
    pub arrivals: Option<(Instant, Instant)>,
}

/// Treatment of snapshots that a subscriber does not fetch in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Drop the oldest and count them in [`Subscription::missed`]. The run never waits.
    Latest,
    /// The run waits for the subscriber, which must keep fetching. For output that must be
    /// complete, such as a line for each pass.
    Every,
}

/// Maximum number of snapshots queued for a subscriber.
const QUEUE_MAX: usize = 64;

/// Subscription of one reader to the snapshots of a run. Dropping it ends the subscription.
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
    /// Waits for the next snapshot. Returns `None` when the run is over and all were fetched.
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

    /// Waits for the next snapshot for at most `timeout`. Returns `None` after a timeout, or when
    /// the run is over.
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

    /// Returns the number of snapshots dropped because they were not fetched in time.
    pub fn missed(&self) -> u64 {
        self.0.lock().missed
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        // The run may wait for free space in the queue.
        self.0.changed.notify_all();
    }
}

/// Subscribers to the snapshots of a run.
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

    /// Ends all subscriptions. Subscribers can still fetch queued snapshots.
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
    fn slow_reader_loses_the_oldest_snapshots_and_counts_them() {
        let subscribers = Subscribers::default();
        let slow = subscribers.add(Delivery::Latest);
        (0..QUEUE_MAX as u64 + 3).for_each(|number| subscribers.publish(numbered(number)));
        subscribers.close();
        assert_eq!(slow.missed(), 3);
        assert_eq!(numbers(&slow), (3..QUEUE_MAX as u64 + 3).collect::<Vec<_>>());
    }

    #[test]
    fn reader_of_all_snapshots_blocks_the_run_until_it_fetches_or_drops() {
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
