//! Counts all frames that arrive on an interface by the values of their bits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::port::{PortError, Receive};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::ValueCounter;
use wirestorm_io::af_packet::{AfPacketError, AfPacketOptions, AfPacketReceive};
use wirestorm_io::clock;
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};
use wirestorm_model::stream::FrameBits;

use crate::to_unix_ns;

/// Counters of the frames with the same values.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueArrivals {
    /// Values of the bits.
    pub values: Vec<u128>,
    /// Frames.
    pub frames: u64,
    /// Bytes without FCS.
    pub bytes: u64,
    /// Arrival of the first frame, in nanoseconds since the Unix epoch.
    pub first_unix_ns: u64,
    /// Arrival of the last frame, in nanoseconds since the Unix epoch.
    pub last_unix_ns: u64,
    /// Frames per second.
    pub frames_rate: f64,
    /// Bytes per second without FCS.
    pub bytes_rate: f64,
}

/// Error of a counter that does not start.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalsError {
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The packet socket does not open.
    #[error(transparent)]
    Open(#[from] AfPacketError),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// Counts all frames that arrive on an interface, with a packet socket, until this is dropped.
/// Outages of the interface do not end it.
pub struct ArrivalsByValue {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct State {
    counter: ValueCounter,
    /// Frames that the packet socket has dropped, and those before the last clear.
    dropped: u64,
    dropped_before: u64,
    /// Counters for rates, the older ones first.
    samples: [(Instant, Counts); 2],
}

/// Frames and bytes by values.
type Counts = BTreeMap<Vec<u128>, (u64, u64)>;

/// Minimum time between two samples; a rate covers one to two of it.
const RATE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum time until a stop takes effect.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time between attempts while the interface is down.
const OUTAGE_PAUSE: StdDuration = StdDuration::from_millis(20);

impl ArrivalsByValue {
    /// Opens the interface and starts to count by these bits.
    ///
    /// # Errors
    /// The interface or the thread does not open.
    pub fn start(interface: &str, bits: Vec<FrameBits>) -> Result<Self, ArrivalsError> {
        let interface: InterfaceName = interface.parse()?;
        let port = AfPacketReceive::open(&AfPacketOptions::new(interface))?;
        let samples = [(clock::now(), Counts::new()), (clock::now(), Counts::new())];
        let counter = ValueCounter::new(bits);
        let state = State { counter, dropped: 0, dropped_before: 0, samples };
        let (state, stop) = (Arc::new(Mutex::new(state)), Arc::new(AtomicBool::new(false)));
        let (counted, stopped) = (Arc::clone(&state), Arc::clone(&stop));
        let run = move || count(port, &counted, &stopped);
        let thread = std::thread::Builder::new().name("arrivals".to_owned()).spawn(run)?;
        Ok(Self { state, stop, thread: Some(thread) })
    }

    /// Sets all counters to zero.
    pub fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.counter.clear();
        state.dropped_before = state.dropped;
        state.samples = [(clock::now(), Counts::new()), (clock::now(), Counts::new())];
    }

    /// Returns the counters by values, in the order of the values.
    pub fn values(&self) -> Vec<ValueArrivals> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        state.sample(now);
        let (since, before) = &state.samples[0];
        let seconds = now.saturating_since(*since).as_secs_f64();
        let rate = |now: u64, before: u64| match seconds > 0.0 {
            true => now.saturating_sub(before) as f64 / seconds,
            false => 0.0,
        };
        let arrivals = state.counter.records().map(|(values, record)| {
            let (frames, bytes) = (record.arrived.frames, record.arrived.bytes);
            let (frames_before, bytes_before) = before.get(values).copied().unwrap_or_default();
            ValueArrivals {
                values: values.to_vec(),
                frames,
                bytes,
                first_unix_ns: to_unix_ns(record.first),
                last_unix_ns: to_unix_ns(record.last),
                frames_rate: rate(frames, frames_before),
                bytes_rate: rate(bytes, bytes_before),
            }
        });
        arrivals.collect()
    }

    /// Returns the number of frames that arrived and have no values: the socket had no buffer for
    /// them, they are too short for the bits, or there are too many values.
    pub fn without_values(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.counter.beyond().frames + state.dropped.saturating_sub(state.dropped_before)
    }
}

impl State {
    fn sample(&mut self, now: Instant) {
        if now.saturating_since(self.samples[1].0) < RATE_INTERVAL {
            return;
        }
        let counts = self.counter.records().map(|(values, record)| {
            (values.to_vec(), (record.arrived.frames, record.arrived.bytes))
        });
        let latest = (now, counts.collect());
        self.samples[0] = std::mem::replace(&mut self.samples[1], latest);
    }
}

fn count(mut port: AfPacketReceive, state: &Mutex<State>, stop: &AtomicBool) {
    const ROOM: usize = 256;
    let mut batch = Vec::with_capacity(ROOM);
    while !stop.load(Ordering::Relaxed) {
        let fetched = match port.receive(ROOM, &mut batch) {
            Ok(fetched) => fetched,
            Err(PortError::Down { .. }) => {
                std::thread::sleep(OUTAGE_PAUSE);
                0
            }
            // The interface is gone: the counters stay.
            Err(_) => return,
        };
        if fetched == 0 {
            port.wait(PATIENCE);
            continue;
        }
        let dropped = port.received().rx_dropped;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.dropped = dropped;
        for received in batch.drain(..) {
            let frame = port.frame(&received);
            state.counter.note(frame, received.original_length, received.arrival);
            port.release(received);
        }
    }
}

impl Drop for ArrivalsByValue {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The panic hook has printed a panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
