//! A bus that repeats, delays and loses by a seed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::bus::{STATE_CHANGES_MAX, Source, StateChanges};
use crate::queue::Queue;
use crate::{
    Appended, BucketConfig, Bus, BusError, ConnectionState, Entry, LogConfig, LogEntry, Message,
    ObjectsConfig, RecvError, Revision, Subscription, Watch,
};

/// Most messages that a subscription holds back; more pass at once.
const HELD_MAX: usize = 10_000;

/// How often what happens. The same seed gives the same faults for the same calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Seed.
    pub seed: u64,
    /// Messages and requests that a subscription receives twice, per thousand.
    pub repeated: u32,
    /// Messages and requests that a subscription receives later, per thousand. Later ones overtake
    /// them.
    pub delayed: u32,
    /// Longest such delay.
    pub delay_max: Duration,
    /// Requests and writes that happen, but whose answer is lost, per thousand: the caller gets
    /// `Timeout`.
    pub lost_answers: u32,
}

/// A bus that adds faults to another one.
#[derive(Debug)]
pub struct FaultyBus {
    bus: Arc<dyn Bus>,
    faults: Faults,
    random: Mutex<Random>,
    connection: Arc<Connection>,
}

/// Whether this end of the bus is connected.
#[derive(Debug, Default)]
struct Connection {
    is_cut: AtomicBool,
    since: Mutex<Option<Instant>>,
    followers: Mutex<Vec<Weak<Queue<ConnectionState>>>>,
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, per_thousand: u32) -> bool {
        self.next() % 1000 < u64::from(per_thousand)
    }

    fn time(&mut self, most: Duration) -> Duration {
        let part = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        most.mul_f64(part)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FaultyBus {
    /// Returns a bus with faults.
    pub fn new(bus: Arc<dyn Bus>, faults: Faults) -> Self {
        let random = Mutex::new(Random(faults.seed));
        Self { bus, faults, random, connection: Arc::default() }
    }

    /// Cuts this end off: all calls fail as `Disconnected`, and what arrives is lost.
    pub fn cut(&self) {
        *lock(&self.connection.since) = Some(Instant::now());
        self.connection.is_cut.store(true, Ordering::SeqCst);
        self.tell();
    }

    /// Ends [`Self::cut`].
    pub fn restore(&self) {
        self.connection.is_cut.store(false, Ordering::SeqCst);
        self.tell();
    }

    fn tell(&self) {
        let state = self.state();
        let followers = lock(&self.connection.followers);
        followers.iter().filter_map(Weak::upgrade).for_each(|queue| queue.push(state.clone()));
    }

    /// Does an operation, and loses its answer now and then.
    fn perform<T>(
        &self,
        what: &str,
        operation: impl FnOnce(&dyn Bus) -> Result<T, BusError>,
    ) -> Result<T, BusError> {
        self.connected(what)?;
        let is_lost = lock(&self.random).happens(self.faults.lost_answers);
        let result = operation(&*self.bus);
        // A cut during the operation loses its answer too.
        self.connected(what)?;
        match is_lost {
            true => Err(BusError::Timeout { what: what.into(), after: Duration::ZERO }),
            false => result,
        }
    }

    fn connected(&self, what: &str) -> Result<(), BusError> {
        match self.connection.is_cut.load(Ordering::SeqCst) {
            true => {
                Err(BusError::Disconnected { what: what.into(), reason: "the test cut it".into() })
            }
            false => Ok(()),
        }
    }
}

impl Bus for FaultyBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        self.connected(subject)?;
        self.bus.publish(subject, payload)
    }

    fn flush(&self, timeout: Duration) -> Result<(), BusError> {
        self.connected("flush")?;
        self.bus.flush(timeout)
    }

    fn request(&self, subject: &str, payload: &[u8], timeout: Duration) -> Result<Bytes, BusError> {
        self.perform(subject, |bus| bus.request(subject, payload, timeout))
    }

    fn subscribe(&self, pattern: &str, capacity: usize) -> Result<Subscription, BusError> {
        self.connected(pattern)?;
        let seed = lock(&self.random).next();
        Ok(Subscription::new(FaultySource {
            subscription: self.bus.subscribe(pattern, capacity)?,
            faults: self.faults,
            connection: Arc::clone(&self.connection),
            held: Mutex::new((Random(seed), Vec::new())),
        }))
    }

    fn respond(&self, message: &Message, payload: &[u8]) -> Result<(), BusError> {
        self.connected(&message.subject)?;
        self.bus.respond(message, payload)
    }

    fn create_bucket(&self, config: &BucketConfig) -> Result<(), BusError> {
        self.perform(&config.name, |bus| bus.create_bucket(config))
    }

    fn create(&self, bucket: &str, key: &str, value: &[u8]) -> Result<Revision, BusError> {
        self.perform(key, |bus| bus.create(bucket, key, value))
    }

    fn update(
        &self,
        bucket: &str,
        key: &str,
        value: &[u8],
        revision: Revision,
    ) -> Result<Revision, BusError> {
        self.perform(key, |bus| bus.update(bucket, key, value, revision))
    }

    fn get(&self, bucket: &str, key: &str) -> Result<Option<Entry>, BusError> {
        self.perform(key, |bus| bus.get(bucket, key))
    }

    fn delete(&self, bucket: &str, key: &str, revision: Revision) -> Result<(), BusError> {
        self.perform(key, |bus| bus.delete(bucket, key, revision))
    }

    fn keys(&self, bucket: &str) -> Result<Vec<String>, BusError> {
        self.perform(bucket, |bus| bus.keys(bucket))
    }

    fn watch(&self, bucket: &str, pattern: &str) -> Result<Watch, BusError> {
        self.connected(pattern)?;
        self.bus.watch(bucket, pattern)
    }

    fn create_log(&self, config: &LogConfig) -> Result<(), BusError> {
        self.perform(&config.name, |bus| bus.create_log(config))
    }

    fn append(
        &self,
        log: &str,
        subject: &str,
        message_id: &str,
        payload: &[u8],
    ) -> Result<Appended, BusError> {
        self.perform(subject, |bus| bus.append(log, subject, message_id, payload))
    }

    fn read(
        &self,
        log: &str,
        pattern: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<LogEntry>, BusError> {
        self.perform(pattern, |bus| bus.read(log, pattern, from, max))
    }

    fn create_objects(&self, config: &ObjectsConfig) -> Result<(), BusError> {
        self.perform(&config.name, |bus| bus.create_objects(config))
    }

    fn put_object(&self, store: &str, name: &str, bytes: &[u8]) -> Result<(), BusError> {
        self.perform(name, |bus| bus.put_object(store, name, bytes))
    }

    fn get_object(
        &self,
        store: &str,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<Bytes>, BusError> {
        self.perform(name, |bus| bus.get_object(store, name, bytes_max))
    }

    fn remove_object(&self, store: &str, name: &str) -> Result<(), BusError> {
        self.perform(name, |bus| bus.remove_object(store, name))
    }

    fn state(&self) -> ConnectionState {
        let since = *lock(&self.connection.since);
        match (self.connected(""), since) {
            (Err(_), Some(since)) => {
                ConnectionState::Disconnected { since, reason: "the test cut it".into() }
            }
            _ => self.bus.state(),
        }
    }

    /// Follows [`FaultyBus::cut`] and [`FaultyBus::restore`] alone.
    fn state_changes(&self) -> StateChanges {
        let queue = Arc::new(Queue::new(STATE_CHANGES_MAX));
        queue.push(self.state());
        lock(&self.connection.followers).push(Arc::downgrade(&queue));
        StateChanges { queue }
    }
}

/// A subscription that repeats and delays.
#[derive(Debug)]
struct FaultySource {
    subscription: Subscription,
    faults: Faults,
    connection: Arc<Connection>,
    held: Mutex<(Random, Vec<(Instant, Message)>)>,
}

impl Source<Message> for FaultySource {
    fn recv(&self, timeout: Duration) -> Result<Message, RecvError> {
        let started = Instant::now();
        let mut guard = lock(&self.held);
        let (random, held) = &mut *guard;
        loop {
            let now = Instant::now();
            let next = (0..held.len()).min_by_key(|&place| held.get(place).map(|(due, _)| *due));
            let due = next.and_then(|place| held.get(place)).map(|(due, _)| *due);
            if let (Some(place), Some(due)) = (next, due)
                && due <= now
            {
                return Ok(held.remove(place).1);
            }
            let left = timeout.saturating_sub(started.elapsed());
            let until_due = due.map_or(left, |due| due.saturating_duration_since(now));
            match self.subscription.recv(left.min(until_due)) {
                Ok(message) if self.connection.is_cut.load(Ordering::SeqCst) => drop(message),
                Ok(message) => {
                    let copies = 1 + usize::from(random.happens(self.faults.repeated));
                    for _ in 0..copies {
                        let is_delayed =
                            random.happens(self.faults.delayed) && held.len() < HELD_MAX;
                        let delay = match is_delayed {
                            true => random.time(self.faults.delay_max),
                            false => Duration::ZERO,
                        };
                        held.push((Instant::now() + delay, message.clone()));
                    }
                }
                Err(RecvError::Closed) if due.is_none() => return Err(RecvError::Closed),
                Err(RecvError::Closed) => std::thread::sleep(left.min(until_due)),
                Err(RecvError::Timeout) => {}
            }
            if started.elapsed() >= timeout && due.is_none_or(|due| due > Instant::now()) {
                // A message that just came is due now.
                let is_due = held.iter().any(|(due, _)| *due <= Instant::now());
                if !is_due {
                    return Err(RecvError::Timeout);
                }
            }
        }
    }

    fn dropped(&self) -> u64 {
        self.subscription.dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalBus;

    /// Time for what must happen.
    const SOON: Duration = Duration::from_secs(10);

    fn received(faults: Faults) -> Vec<u8> {
        let bus = FaultyBus::new(Arc::new(LocalBus::new()), faults);
        let subscription = bus.subscribe("a", 1000).unwrap();
        (0..200_u8).for_each(|number| bus.publish("a", &[number]).unwrap());
        let wait = Duration::from_millis(200);
        std::iter::from_fn(|| Some(subscription.recv(wait).ok()?.payload[0])).collect()
    }

    #[test]
    fn without_faults_nothing_changes() {
        assert_eq!(received(Faults::default()), (0..200).collect::<Vec<u8>>());
    }

    #[test]
    fn messages_are_repeated_delayed_and_reordered_but_not_lost() {
        let delay_max = Duration::from_millis(20);
        let faults =
            Faults { seed: 1, repeated: 200, delayed: 300, delay_max, ..Faults::default() };
        let received = received(faults);
        assert!(received.len() > 200 && received.len() < 300, "{} messages", received.len());
        assert!(!received.is_sorted());
        let mut distinct = received.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct, (0..200).collect::<Vec<u8>>());
    }

    #[test]
    fn a_lost_answer_is_of_a_write_that_happened() {
        let local = LocalBus::new();
        let config = BucketConfig { name: "b".into(), time_to_live: None, bytes_max: 1000 };
        local.create_bucket(&config).unwrap();
        let faults = Faults { lost_answers: 1000, ..Faults::default() };
        let bus = FaultyBus::new(Arc::new(local.clone()), faults);
        assert!(matches!(bus.create("b", "key", b"1"), Err(BusError::Timeout { .. })));
        assert_eq!(&*local.get("b", "key").unwrap().unwrap().value, b"1");
    }

    #[test]
    fn a_cut_bus_fails_and_loses_what_arrives() {
        let local: Arc<dyn Bus> = Arc::new(LocalBus::new());
        let bus = FaultyBus::new(Arc::clone(&local), Faults::default());
        let changes = bus.state_changes();
        let subscription = bus.subscribe("a", 10).unwrap();
        bus.cut();
        assert!(matches!(bus.publish("a", b""), Err(BusError::Disconnected { .. })));
        assert!(matches!(bus.request("a", b"", SOON), Err(BusError::Disconnected { .. })));
        local.publish("a", b"lost").unwrap();
        assert_eq!(subscription.recv(Duration::from_millis(50)), Err(RecvError::Timeout));
        bus.restore();
        local.publish("a", b"there").unwrap();
        assert_eq!(&*subscription.recv(SOON).unwrap().payload, b"there");
        let states: Vec<bool> =
            (0..3).map(|_| changes.recv(SOON).unwrap().is_connected()).collect();
        assert_eq!(states, [true, false, true]);
    }
}
