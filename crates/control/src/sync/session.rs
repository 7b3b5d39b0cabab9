//! A STAMP session: a thread that sends requests at an interval and collects exchanges.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::time::Duration;
use wirestorm_clock::exchange::Exchange;
use wirestorm_clock::stamp::{Sender, SenderCounters};
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_io::clock::{self, RealtimeOffsetTracker};
use wirestorm_io::namespace::Namespace;
use wirestorm_io::timestamps::{SendNumber, StampedSocket};
use wirestorm_io::udp::UdpError;

use super::{DATAGRAM_BYTES, PATIENCE, node_time, now, unknown_error};

/// Number of exchanges that a session keeps. When there are more, every second one goes: at 100 a
/// second that happens after three hours.
const EXCHANGES_MAX: usize = 1 << 20;

/// Time between the first requests of a session.
const QUICK_INTERVAL: Duration = Duration::from_millis(5);

/// A session with one reflector.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Namespace of the socket.
    pub namespace: Namespace,
    /// Source address and port; the unspecified address and port 0 leave both to the system.
    pub source: SocketAddr,
    /// Reflector.
    pub target: SocketAddr,
    /// Time between requests; at least 1 ms counts.
    pub interval: Duration,
    /// Number of first requests that follow each other after 5 ms, or `interval` if that is shorter,
    /// so that the offset is known soon.
    pub quick: u64,
    /// Number of requests; `None` until the session is stopped.
    pub count: Option<u64>,
    /// Session identifier, not 0.
    pub session: u16,
}

/// A running session. Dropping it ends the session.
#[derive(Debug)]
pub struct StampSession {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    exchanges: Vec<Exchange>,
    round_trip_min: Option<i64>,
    counters: SenderCounters,
    process_stamps: u64,
    follows_up: bool,
    is_over: bool,
    error: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StampSession {
    /// Starts a session.
    ///
    /// # Errors
    /// The source cannot be used, or there is no thread.
    pub fn start(options: SessionOptions) -> Result<Self, UdpError> {
        let source = options.source;
        let socket = StampedSocket::bind(&options.namespace, source)?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let work = move || {
            let outcome = exchange(socket, &options, &of_thread);
            let mut state = of_thread.state();
            state.is_over = true;
            state.error = outcome.err().map(|error| format!("{}: {error}", options.target));
            of_thread.changed.notify_all();
        };
        let thread = std::thread::Builder::new().name("stamp".into()).spawn(work);
        let thread = thread.map_err(|error| UdpError::Bind { address: source, error })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the exchanges so far, in the order of requests.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.state().exchanges.clone()
    }

    /// Returns the exchanges whose requests departed after `after`, in their order.
    pub fn exchanges_after(&self, after: Timestamp) -> Vec<Exchange> {
        let state = self.shared.state();
        let first = state.exchanges.partition_point(|exchange| exchange.t1 <= after);
        state.exchanges[first..].to_vec()
    }

    /// Returns the last `count` exchanges, or all if there are less.
    pub fn latest(&self, count: usize) -> Vec<Exchange> {
        let state = self.shared.state();
        state.exchanges[state.exchanges.len().saturating_sub(count)..].to_vec()
    }

    /// Returns the number of exchanges.
    pub fn count(&self) -> usize {
        self.shared.state().exchanges.len()
    }

    /// Returns the shortest round trip in ns; `None` without an exchange.
    pub fn round_trip_min(&self) -> Option<i64> {
        self.shared.state().round_trip_min
    }

    /// Returns the counters.
    pub fn counters(&self) -> SenderCounters {
        self.shared.state().counters
    }

    /// Returns the number of requests whose departure the kernel did not report, so that they have the
    /// less exact stamp of the process.
    pub fn process_stamps(&self) -> u64 {
        self.shared.state().process_stamps
    }

    /// Returns whether the reflector reports the exact departures of its replies.
    pub fn follows_up(&self) -> bool {
        self.shared.state().follows_up
    }

    /// Returns why the session ended early; `None` if it did not.
    pub fn error(&self) -> Option<String> {
        self.shared.state().error.clone()
    }

    /// Waits until there are `count` exchanges, the session is over, or `timeout` has passed; returns
    /// whether there are that many.
    pub fn wait(&self, count: usize, timeout: StdDuration) -> bool {
        let state = self.shared.state();
        let waits = |state: &mut State| state.exchanges.len() < count && !state.is_over;
        let outcome = self.shared.changed.wait_timeout_while(state, timeout, waits);
        let (state, _) = outcome.unwrap_or_else(PoisonError::into_inner);
        state.exchanges.len() >= count
    }

    /// Returns whether all requests are sent and the last reply arrived or is lost.
    pub fn is_over(&self) -> bool {
        self.shared.state().is_over
    }
}

impl Drop for StampSession {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Time to wait for the last reply.
const LAST_REPLY: Duration = Duration::from_secs(1);

/// A request whose departure the kernel has not reported.
struct Unreported {
    number: SendNumber,
    sequence: u32,
    /// Time before the request was handed to the kernel.
    built: Timestamp,
}

fn exchange(
    mut socket: StampedSocket,
    options: &SessionOptions,
    shared: &Shared,
) -> io::Result<()> {
    let mut sender = Sender::new(options.session);
    let interval = options.interval.max(Duration::from_millis(1));
    let mut clocks = RealtimeOffsetTracker::default();
    let mut unreported: Vec<Unreported> = Vec::new();
    let mut buffer = [0; DATAGRAM_BYTES];
    let mut due = clock::now();
    let mut left = options.count.unwrap_or(u64::MAX);
    let mut quick_left = options.quick;
    let mut end = None;
    while !shared.stop.load(Ordering::Acquire) {
        let time = clock::now();
        if left > 0 && time >= due {
            // The departure of the request before was not reported in a whole interval.
            for Unreported { sequence, built, .. } in unreported.drain(..) {
                sender.departed(sequence, built);
                shared.state().process_stamps += 1;
            }
            let built = now();
            let (sequence, packet) = sender.request(built, unknown_error());
            let number = socket.send_to(&packet, options.target)?;
            unreported.push(Unreported { number, sequence, built });
            left -= 1;
            let is_quick = quick_left > 0;
            quick_left = quick_left.saturating_sub(1);
            let interval = if is_quick { interval.min(QUICK_INTERVAL) } else { interval };
            // A late thread does not send a burst.
            due = due.saturating_add(interval).max(time);
            if left == 0 {
                end = Some(time.saturating_add(LAST_REPLY));
            }
        }
        let wake = if left > 0 { due } else { end.unwrap_or(due) };
        let patience = wake.saturating_since(clock::now()).min(PATIENCE);
        let arrival = socket.receive(&mut buffer, patience)?;
        let offset = clocks.update();
        while let Some(departure) = socket.departure()? {
            if let Some(place) = unreported.iter().position(|it| it.number == departure.number) {
                let Unreported { sequence, .. } = unreported.remove(place);
                sender.departed(sequence, node_time(departure.stamp, offset));
            }
        }
        if let Some(arrival) =
            arrival.filter(|arrival| arrival.from.port() == options.target.port())
        {
            let packet = buffer.get(..arrival.length).unwrap_or_default();
            sender.received(packet, node_time(arrival.stamp, offset));
        }
        publish(&mut sender, shared);
        let has_all = sender.counters().received >= sender.counters().sent;
        if end.is_some_and(|end| has_all || clock::now() >= end) {
            break;
        }
    }
    Ok(())
}

fn publish(sender: &mut Sender, shared: &Shared) {
    let complete = sender.exchanges();
    let mut state = shared.state();
    state.counters = *sender.counters();
    state.follows_up = sender.follows_up();
    if complete.is_empty() {
        return;
    }
    let shortest = complete.iter().map(Exchange::round_trip).chain(state.round_trip_min).min();
    state.round_trip_min = shortest;
    state.exchanges.extend(complete);
    if state.exchanges.len() > EXCHANGES_MAX {
        let mut is_kept = false;
        state.exchanges.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
    }
    shared.changed.notify_all();
}
