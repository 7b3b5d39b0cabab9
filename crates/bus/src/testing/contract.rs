//! Tests that each back end passes.
//!
//! [`bus_contract`](crate::bus_contract) makes a test of each function here.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::{
    BucketConfig, Bus, BusError, Change, ConnectionState, LogConfig, Message, ObjectsConfig,
    RecvError, Revision, Watch,
};

/// Time for what must happen.
const SOON: Duration = Duration::from_secs(10);
/// Time in which nothing may happen.
const QUIET: Duration = Duration::from_millis(100);
/// Time to live of the bucket [`BRIEF`].
const TIME_TO_LIVE: Duration = Duration::from_secs(1);
/// Bucket whose keys expire.
const BRIEF: &str = "brief";
/// Bucket whose keys do not expire.
const LASTING: &str = "lasting";

/// What a back end gives for the contract: connections to one bus.
pub trait Fixture {
    /// Returns another connection to the bus.
    fn bus(&self) -> Arc<dyn Bus>;
}

/// Makes a test of each function of the contract. The argument is a function that returns an
/// `Option` of a [`Fixture`]; `None` skips the test.
#[macro_export]
macro_rules! bus_contract {
    ($open:expr) => {
        $crate::bus_contract!(@ $open;
            a_message_reaches_all_matching_subscriptions
            a_message_without_subscription_is_no_error
            messages_of_a_sender_stay_in_order
            a_dropped_subscription_receives_nothing_and_answers_nothing
            a_full_subscription_drops_and_counts
            a_request_is_answered
            requests_of_many_threads_get_their_own_answers
            a_request_without_subscription_has_no_responder
            a_request_without_answer_times_out
            only_the_first_answer_counts
            an_answer_to_a_message_is_invalid
            malformed_names_are_invalid
            large_payloads_are_refused
            create_succeeds_once
            one_of_many_creators_wins
            update_needs_the_revision
            a_deleted_key_can_be_created_again
            revisions_grow_over_all_keys
            keys_expire_after_their_last_write
            an_expired_key_cannot_be_updated
            keys_lists_what_exists
            a_missing_store_is_told
            settings_of_stores_can_change
            a_watch_tells_what_exists_and_what_changes
            a_watch_tells_expired_keys
            a_watch_follows_many_writes_to_the_last
            a_log_keeps_order_and_subjects
            a_repeated_message_is_stored_once
            a_log_refuses_other_subjects_and_overflow
            objects_come_back_as_they_were
            an_object_can_be_replaced
            objects_have_bounds
            the_state_is_connected
        );
    };
    (@ $open:expr; $($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                if let Some(fixture) = $open() {
                    $crate::testing::contract::$name(&fixture);
                }
            }
        )*
    };
}

/// Creates the stores of the tests.
fn with_stores(fixture: &dyn Fixture) -> Arc<dyn Bus> {
    let bus = fixture.bus();
    for (name, time_to_live) in [(BRIEF, Some(TIME_TO_LIVE)), (LASTING, None)] {
        let config = BucketConfig { name: name.into(), time_to_live, bytes_max: 1 << 20 };
        bus.create_bucket(&config).unwrap();
    }
    bus.create_log(&LogConfig {
        name: "results".into(),
        pattern: "test.result.*".into(),
        age_max: None,
        bytes_max: 4 << 20,
        duplicate_window: Duration::from_secs(600),
    })
    .unwrap();
    let config = ObjectsConfig { name: "plans".into(), age_max: None, bytes_max: 4 << 20 };
    bus.create_objects(&config).unwrap();
    bus
}

/// Answers all requests to a subject with `answer`, until it has answered `count` of them.
fn respond(
    bus: &Arc<dyn Bus>,
    subject: &str,
    count: usize,
    answer: impl Fn(&Message) -> Vec<u8> + Send + 'static,
) -> thread::JoinHandle<()> {
    let bus = Arc::clone(bus);
    let requests = bus.subscribe(subject, 1024).unwrap();
    thread::spawn(move || {
        for _ in 0..count {
            let request = requests.recv(SOON).unwrap();
            bus.respond(&request, &answer(&request)).unwrap();
        }
    })
}

/// Subscriptions get what fits their patterns, on all connections, also the sender's own.
pub fn a_message_reaches_all_matching_subscriptions(fixture: &dyn Fixture) {
    let (sender, other) = (fixture.bus(), fixture.bus());
    let own = sender.subscribe("test.*.status", 8).unwrap();
    let exact = other.subscribe("test.a.status", 8).unwrap();
    let rest = other.subscribe("test.>", 8).unwrap();
    let none = other.subscribe("test.b.status", 8).unwrap();
    sender.publish("test.a.status", b"hello").unwrap();
    for subscription in [&own, &exact, &rest] {
        let message = subscription.recv(SOON).unwrap();
        assert_eq!((&*message.subject, &*message.payload), ("test.a.status", &b"hello"[..]));
        assert_eq!(message.reply, None);
        assert_eq!(subscription.recv(QUIET), Err(RecvError::Timeout), "it came twice");
    }
    assert_eq!(none.recv(Duration::ZERO), Err(RecvError::Timeout));
}

/// Publishing is for whoever is there.
pub fn a_message_without_subscription_is_no_error(fixture: &dyn Fixture) {
    let bus = fixture.bus();
    bus.publish("test.nobody", b"hello").unwrap();
    bus.flush(SOON).unwrap();
}

/// Messages of one sender to one subscription arrive in the order of sending.
pub fn messages_of_a_sender_stay_in_order(fixture: &dyn Fixture) {
    let (sender, receiver) = (fixture.bus(), fixture.bus());
    let subscription = receiver.subscribe("test.order", 1000).unwrap();
    for number in 0..500_u32 {
        sender.publish("test.order", &number.to_be_bytes()).unwrap();
    }
    for number in 0..500_u32 {
        assert_eq!(&*subscription.recv(SOON).unwrap().payload, number.to_be_bytes());
    }
    assert_eq!(subscription.dropped(), 0);
}

/// The end of a subscription counts at once for the sender on the same connection.
pub fn a_dropped_subscription_receives_nothing_and_answers_nothing(fixture: &dyn Fixture) {
    let bus = fixture.bus();
    let subscription = bus.subscribe("test.drop", 8).unwrap();
    drop(subscription);
    let started = Instant::now();
    // The server may take a moment for it.
    loop {
        match bus.request("test.drop", b"", Duration::from_millis(200)) {
            Err(BusError::NoResponder { .. }) => return,
            other => assert!(started.elapsed() < SOON, "{other:?}"),
        }
    }
}

/// A slow reader loses messages and sees how many; the bus goes on.
pub fn a_full_subscription_drops_and_counts(fixture: &dyn Fixture) {
    let (sender, receiver) = (fixture.bus(), fixture.bus());
    let slow = receiver.subscribe("test.full", 3).unwrap();
    let fast = receiver.subscribe("test.full", 100).unwrap();
    for number in 0..10_u8 {
        sender.publish("test.full", &[number]).unwrap();
    }
    for number in 0..10_u8 {
        assert_eq!(&*fast.recv(SOON).unwrap().payload, [number]);
    }
    let started = Instant::now();
    while slow.dropped() < 7 && started.elapsed() < SOON {
        thread::yield_now();
    }
    assert_eq!(slow.dropped(), 7);
    for number in 0..3_u8 {
        assert_eq!(&*slow.recv(SOON).unwrap().payload, [number]);
    }
    assert_eq!(slow.recv(QUIET), Err(RecvError::Timeout));
}

/// The answer comes back to the sender of the request.
pub fn a_request_is_answered(fixture: &dyn Fixture) {
    let (client, server) = (fixture.bus(), fixture.bus());
    let responder =
        respond(&server, "test.rpc", 1, |request| [b"answer to ", &*request.payload].concat());
    let answer = client.request("test.rpc", b"question", SOON).unwrap();
    assert_eq!(&*answer, b"answer to question");
    responder.join().unwrap();
}

/// Answers do not get mixed up.
pub fn requests_of_many_threads_get_their_own_answers(fixture: &dyn Fixture) {
    let (client, server) = (fixture.bus(), fixture.bus());
    let responder = respond(&server, "test.rpc", 200, |request| request.payload.to_vec());
    let clients: Vec<_> = (0..8_u8)
        .map(|thread| {
            let client = Arc::clone(&client);
            thread::spawn(move || {
                for number in 0..25_u8 {
                    let answer = client.request("test.rpc", &[thread, number], SOON).unwrap();
                    assert_eq!(&*answer, [thread, number]);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    responder.join().unwrap();
}

/// A missing receiver is told at once, not after the timeout.
pub fn a_request_without_subscription_has_no_responder(fixture: &dyn Fixture) {
    let started = Instant::now();
    let answer = fixture.bus().request("test.nobody", b"", Duration::from_secs(60));
    assert_eq!(answer, Err(BusError::NoResponder { subject: "test.nobody".into() }));
    assert!(started.elapsed() < SOON);
}

/// A receiver that does not answer, which may have acted on the request.
pub fn a_request_without_answer_times_out(fixture: &dyn Fixture) {
    let (client, server) = (fixture.bus(), fixture.bus());
    let requests = server.subscribe("test.rpc", 8).unwrap();
    let answer = client.request("test.rpc", b"once", QUIET);
    assert!(matches!(answer, Err(BusError::Timeout { .. })), "{answer:?}");
    // The late answer reaches nobody, and the request came once.
    server.respond(&requests.recv(SOON).unwrap(), b"late").unwrap();
    assert_eq!(requests.recv(QUIET), Err(RecvError::Timeout));
    let responder = thread::spawn(move || {
        server.respond(&requests.recv(SOON).unwrap(), b"in time").unwrap();
    });
    assert_eq!(&*client.request("test.rpc", b"again", SOON).unwrap(), b"in time");
    responder.join().unwrap();
}

/// With several receivers, the sender gets one answer.
pub fn only_the_first_answer_counts(fixture: &dyn Fixture) {
    let (client, server) = (fixture.bus(), fixture.bus());
    let responders = [
        respond(&server, "test.rpc", 2, |request| request.payload.to_vec()),
        respond(&server, "test.rpc", 2, |request| request.payload.to_vec()),
    ];
    assert_eq!(&*client.request("test.rpc", b"1", SOON).unwrap(), b"1");
    assert_eq!(&*client.request("test.rpc", b"2", SOON).unwrap(), b"2");
    responders.into_iter().for_each(|responder| responder.join().unwrap());
}

/// A message that is no request has no answer.
pub fn an_answer_to_a_message_is_invalid(fixture: &dyn Fixture) {
    let bus = fixture.bus();
    let subscription = bus.subscribe("test.message", 8).unwrap();
    bus.publish("test.message", b"").unwrap();
    let message = subscription.recv(SOON).unwrap();
    let answer = bus.respond(&message, b"");
    assert!(matches!(answer, Err(BusError::Invalid { .. })), "{answer:?}");
}

/// Names that would mean something else on the wire do not get there.
pub fn malformed_names_are_invalid(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let is_invalid = |error: BusError| matches!(error, BusError::Invalid { .. });
    for subject in ["", "a..b", "a b", "test.*", "test.>", "a\r\nPUB b 0\r\n", ".a"] {
        assert!(is_invalid(bus.publish(subject, b"").unwrap_err()), "{subject:?}");
        assert!(is_invalid(bus.request(subject, b"", SOON).unwrap_err()), "{subject:?}");
        assert!(is_invalid(bus.create(LASTING, subject, b"").unwrap_err()), "{subject:?}");
        let error = bus.append("results", subject, "1", b"").unwrap_err();
        assert!(is_invalid(error), "{subject:?}");
    }
    for pattern in ["", "a..b", "a b", "a.>.b"] {
        assert!(is_invalid(bus.subscribe(pattern, 1).unwrap_err()), "{pattern:?}");
        assert!(is_invalid(bus.watch(LASTING, pattern).unwrap_err()), "{pattern:?}");
    }
    for name in ["", "A", "a.b", "a b", "*", "ä"] {
        assert!(is_invalid(bus.get(name, "key").unwrap_err()), "{name:?}");
        assert!(is_invalid(bus.read(name, ">", 1, 1).unwrap_err()), "{name:?}");
        assert!(is_invalid(bus.get_object(name, "a", 1).unwrap_err()), "{name:?}");
    }
    for name in ["", "a..b", "*", "a.b.c.d.e", "a b"] {
        assert!(is_invalid(bus.put_object("plans", name, b"").unwrap_err()), "{name:?}");
    }
    for id in ["", "a b", "a\r\nb"] {
        let error = bus.append("results", "test.result.a", id, b"").unwrap_err();
        assert!(is_invalid(error), "{id:?}");
    }
}

/// What is too large for a message is told, and the connection stays.
pub fn large_payloads_are_refused(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let large = vec![0; (1 << 20) + 1];
    for error in [
        bus.publish("test.large", &large).unwrap_err(),
        bus.request("test.large", &large, SOON).unwrap_err(),
        bus.create(LASTING, "large", &large).unwrap_err(),
    ] {
        assert!(matches!(error, BusError::Invalid { .. }), "{error}");
    }
    let subscription = bus.subscribe("test.large", 1).unwrap();
    bus.publish("test.large", &large[1..]).unwrap();
    assert_eq!(subscription.recv(SOON).unwrap().payload.len(), 1 << 20);
}

/// A key is created if it is absent, by one of those who try.
pub fn create_succeeds_once(fixture: &dyn Fixture) {
    let (bus, other) = (with_stores(fixture), fixture.bus());
    let revision = bus.create(LASTING, "agent.a", b"first").unwrap();
    let second = other.create(LASTING, "agent.a", b"second");
    assert!(matches!(second, Err(BusError::Conflict { .. })), "{second:?}");
    let entry = other.get(LASTING, "agent.a").unwrap().unwrap();
    assert_eq!((&*entry.key, &*entry.value), ("agent.a", &b"first"[..]));
    assert_eq!(entry.revision, revision);
    assert_eq!(bus.get(LASTING, "agent.b").unwrap(), None);
}

/// Many try at the same time.
pub fn one_of_many_creators_wins(fixture: &dyn Fixture) {
    let _stores = with_stores(fixture);
    let creators: Vec<_> = (0..8_u8)
        .map(|number| {
            let bus = fixture.bus();
            thread::spawn(move || bus.create(LASTING, "lease", &[number]).ok())
        })
        .collect();
    let won: Vec<_> = creators.into_iter().filter_map(|it| it.join().unwrap()).collect();
    assert_eq!(won.len(), 1, "{won:?}");
    let entry = fixture.bus().get(LASTING, "lease").unwrap().unwrap();
    assert_eq!(entry.revision, won[0]);
}

/// An owner that was replaced cannot write.
pub fn update_needs_the_revision(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let first = bus.create(LASTING, "key", b"1").unwrap();
    let second = bus.update(LASTING, "key", b"2", first).unwrap();
    assert!(second > first);
    for stale in [first, Revision(second.0 + 1), Revision(0)] {
        let update = bus.update(LASTING, "key", b"3", stale);
        assert!(matches!(update, Err(BusError::Conflict { .. })), "{update:?}");
        let delete = bus.delete(LASTING, "key", stale);
        assert!(matches!(delete, Err(BusError::Conflict { .. })), "{delete:?}");
    }
    assert_eq!(&*bus.get(LASTING, "key").unwrap().unwrap().value, b"2");
    let absent = bus.update(LASTING, "absent", b"1", second);
    assert!(matches!(absent, Err(BusError::Conflict { .. })), "{absent:?}");
}

/// After a delete, the key is absent for all.
pub fn a_deleted_key_can_be_created_again(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let first = bus.create(LASTING, "key", b"1").unwrap();
    bus.delete(LASTING, "key", first).unwrap();
    assert_eq!(bus.get(LASTING, "key").unwrap(), None);
    assert_eq!(bus.keys(LASTING).unwrap(), [""; 0]);
    let stale = bus.update(LASTING, "key", b"2", first);
    assert!(matches!(stale, Err(BusError::Conflict { .. })), "{stale:?}");
    let second = bus.create(LASTING, "key", b"2").unwrap();
    assert!(second > first);
    let again = bus.create(LASTING, "key", b"3");
    assert!(matches!(again, Err(BusError::Conflict { .. })), "{again:?}");
    assert_eq!(&*bus.get(LASTING, "key").unwrap().unwrap().value, b"2");
}

/// A revision is a fencing token: each later lease has a higher one.
pub fn revisions_grow_over_all_keys(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let mut last = Revision(0);
    for key in ["a", "b", "c"] {
        let revision = bus.create(LASTING, key, b"").unwrap();
        assert!(revision > last);
        last = revision;
    }
}

/// The time to live counts from the last write.
pub fn keys_expire_after_their_last_write(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let started = Instant::now();
    let mut revision = bus.create(BRIEF, "kept", b"").unwrap();
    bus.create(BRIEF, "left", b"").unwrap();
    while bus.get(BRIEF, "left").unwrap().is_some() {
        assert!(started.elapsed() < SOON, "the key does not expire");
        revision = bus.update(BRIEF, "kept", b"", revision).unwrap();
        thread::sleep(TIME_TO_LIVE / 10);
    }
    assert!(started.elapsed() >= TIME_TO_LIVE, "after {:?}", started.elapsed());
    assert!(bus.get(BRIEF, "kept").unwrap().is_some());
    assert_eq!(bus.keys(BRIEF).unwrap(), ["kept"]);
    bus.create(BRIEF, "left", b"again").unwrap();
}

/// A lease that expired is lost, also if nobody took it.
pub fn an_expired_key_cannot_be_updated(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let started = Instant::now();
    let revision = bus.create(BRIEF, "lease", b"").unwrap();
    while bus.get(BRIEF, "lease").unwrap().is_some() {
        assert!(started.elapsed() < SOON, "the key does not expire");
        thread::sleep(TIME_TO_LIVE / 10);
    }
    let late = bus.update(BRIEF, "lease", b"", revision);
    assert!(matches!(late, Err(BusError::Conflict { .. })), "{late:?}");
}

/// The list has keys alone that exist, in order.
pub fn keys_lists_what_exists(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    assert_eq!(bus.keys(LASTING).unwrap(), [""; 0]);
    for key in ["b.2", "a.1", "c"] {
        bus.create(LASTING, key, b"").unwrap();
    }
    let revision = bus.get(LASTING, "c").unwrap().unwrap().revision;
    bus.delete(LASTING, "c", revision).unwrap();
    assert_eq!(bus.keys(LASTING).unwrap(), ["a.1", "b.2"]);
}

/// A store that nobody created is an error of its own.
pub fn a_missing_store_is_told(fixture: &dyn Fixture) {
    let bus = fixture.bus();
    let errors = [
        bus.create("none", "key", b"").map(drop),
        bus.get("none", "key").map(drop),
        bus.keys("none").map(drop),
        bus.watch("none", ">").map(drop),
        bus.append("none", "test.result.a", "1", b"").map(drop),
        bus.read("none", ">", 1, 1).map(drop),
        bus.put_object("none", "a", b"a"),
        bus.get_object("none", "a", 1).map(drop),
    ];
    for error in errors {
        assert!(matches!(error, Err(BusError::Missing { .. })), "{error:?}");
    }
}

/// A store keeps its content when its settings change.
pub fn settings_of_stores_can_change(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    bus.create(LASTING, "key", b"value").unwrap();
    let time_to_live = Some(Duration::from_secs(3600));
    let config = BucketConfig { name: LASTING.into(), time_to_live, bytes_max: 2 << 20 };
    bus.create_bucket(&config).unwrap();
    bus.create_bucket(&config).unwrap();
    assert_eq!(&*bus.get(LASTING, "key").unwrap().unwrap().value, b"value");
}

fn next_put(watch: &Watch) -> (String, Vec<u8>) {
    match watch.recv(SOON).unwrap() {
        Change::Put(entry) => (entry.key, entry.value.to_vec()),
        Change::Removed { key } => panic!("{key} was removed"),
    }
}

/// First what exists, then what happens, and nothing of other keys.
pub fn a_watch_tells_what_exists_and_what_changes(fixture: &dyn Fixture) {
    let (bus, other) = (with_stores(fixture), fixture.bus());
    let first = bus.create(LASTING, "agent.a", b"1").unwrap();
    bus.create(LASTING, "other.a", b"1").unwrap();
    let watch = other.watch(LASTING, "agent.*").unwrap();
    assert_eq!(next_put(&watch), ("agent.a".into(), b"1".to_vec()));
    let second = bus.update(LASTING, "agent.a", b"2", first).unwrap();
    assert_eq!(next_put(&watch), ("agent.a".into(), b"2".to_vec()));
    bus.create(LASTING, "agent.b", b"1").unwrap();
    assert_eq!(next_put(&watch), ("agent.b".into(), b"1".to_vec()));
    bus.delete(LASTING, "agent.a", second).unwrap();
    assert_eq!(watch.recv(SOON), Ok(Change::Removed { key: "agent.a".into() }));
    bus.create(LASTING, "other.b", b"1").unwrap();
    assert_eq!(watch.recv(Duration::from_millis(1500)), Err(RecvError::Timeout));
    bus.create(LASTING, "agent.a", b"3").unwrap();
    assert_eq!(next_put(&watch), ("agent.a".into(), b"3".to_vec()));
}

/// A key that nobody deletes goes too.
pub fn a_watch_tells_expired_keys(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    bus.create(BRIEF, "agent", b"").unwrap();
    let watch = bus.watch(BRIEF, ">").unwrap();
    assert_eq!(next_put(&watch).0, "agent");
    assert_eq!(watch.recv(SOON), Ok(Change::Removed { key: "agent".into() }));
}

/// Values in between may be missing, the last one not.
pub fn a_watch_follows_many_writes_to_the_last(fixture: &dyn Fixture) {
    let (bus, other) = (with_stores(fixture), fixture.bus());
    let watch = other.watch(LASTING, ">").unwrap();
    let mut revision = bus.create(LASTING, "key", &[0]).unwrap();
    for number in 1..=100_u8 {
        revision = bus.update(LASTING, "key", &[number], revision).unwrap();
    }
    let mut last = None;
    while last != Some(100) {
        let (_, value) = next_put(&watch);
        assert!(last < value.first().copied(), "{last:?} before {value:?}");
        last = value.first().copied();
    }
}

/// A log is read by subject, from any position, in parts.
pub fn a_log_keeps_order_and_subjects(fixture: &dyn Fixture) {
    let (bus, other) = (with_stores(fixture), fixture.bus());
    for number in 0..6_u8 {
        let subject = if number % 2 == 0 { "test.result.even" } else { "test.result.odd" };
        let appended = bus.append("results", subject, &format!("id{number}"), &[number]).unwrap();
        assert!(!appended.is_duplicate);
    }
    let numbers = |pattern: &str, from, max| -> Vec<(u64, u8)> {
        let entries = other.read("results", pattern, from, max).unwrap();
        entries.iter().map(|entry| (entry.sequence, entry.payload[0])).collect()
    };
    assert_eq!(numbers("test.result.*", 1, 10), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)]);
    assert_eq!(numbers("test.result.odd", 1, 10), [(2, 1), (4, 3), (6, 5)]);
    assert_eq!(numbers("test.result.odd", 3, 1), [(4, 3)]);
    assert_eq!(numbers("test.result.*", 7, 10), []);
    assert_eq!(numbers("test.result.none", 0, 10), []);
    assert_eq!(other.read("results", ">", 6, 1).unwrap()[0].subject, "test.result.odd");
}

/// So an agent can repeat what was not acknowledged.
pub fn a_repeated_message_is_stored_once(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    let first = bus.append("results", "test.result.a", "run1-agent1-1", b"1").unwrap();
    let again = fixture.bus().append("results", "test.result.a", "run1-agent1-1", b"1").unwrap();
    assert_eq!((again.sequence, again.is_duplicate), (first.sequence, true));
    bus.append("results", "test.result.a", "run1-agent1-2", b"1").unwrap();
    assert_eq!(bus.read("results", ">", 1, 10).unwrap().len(), 2);
}

/// A full log keeps what it has.
pub fn a_log_refuses_other_subjects_and_overflow(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    assert!(bus.append("results", "test.other", "1", b"").is_err());
    let payload = vec![0; 1_000_000];
    let mut number = 0;
    let error = loop {
        match bus.append("results", "test.result.a", &number.to_string(), &payload) {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 10, "the log takes more than its size");
    };
    assert!(matches!(error, BusError::Full { .. }), "{error:?}");
    assert_eq!(bus.read("results", ">", 1, 10).unwrap().len(), number);
    assert!(number >= 3, "{number}");
}

/// Of any size, also empty.
pub fn objects_come_back_as_they_were(fixture: &dyn Fixture) {
    let (bus, other) = (with_stores(fixture), fixture.bus());
    for size in [0, 1, 131_071, 131_072, 131_073, 1_500_000] {
        let bytes: Vec<u8> = (0..size).map(|number: u32| (number % 251) as u8).collect();
        let name = format!("agent-1.capture-{size}");
        bus.put_object("plans", &name, &bytes).unwrap();
        let read = other.get_object("plans", &name, 2_000_000).unwrap().unwrap();
        assert!(*read == *bytes, "{size} bytes");
    }
    assert_eq!(other.get_object("plans", "absent", 10).unwrap(), None);
}

/// Also by a shorter one.
pub fn an_object_can_be_replaced(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    bus.put_object("plans", "a", &vec![1; 300_000]).unwrap();
    bus.put_object("plans", "a", b"short").unwrap();
    assert_eq!(&*bus.get_object("plans", "a", 10).unwrap().unwrap(), b"short");
}

/// The reader and the store each have a limit.
pub fn objects_have_bounds(fixture: &dyn Fixture) {
    let bus = with_stores(fixture);
    bus.put_object("plans", "a", &[1; 100]).unwrap();
    let read = bus.get_object("plans", "a", 99);
    assert!(matches!(read, Err(BusError::Full { .. })), "{read:?}");
    let put = bus.put_object("plans", "b", &vec![1; 5 << 20]);
    assert!(matches!(put, Err(BusError::Full { .. })), "{put:?}");
    assert_eq!(bus.get_object("plans", "b", 10 << 20).unwrap(), None);
    assert_eq!(&*bus.get_object("plans", "a", 100).unwrap().unwrap(), [1; 100]);
}

/// The state names the server.
pub fn the_state_is_connected(fixture: &dyn Fixture) {
    let bus = fixture.bus();
    let ConnectionState::Connected(server) = bus.state() else { panic!("{:?}", bus.state()) };
    assert!(!server.version.is_empty() && !server.address.is_empty());
    let changes = bus.state_changes();
    assert_eq!(changes.recv(SOON), Ok(bus.state()));
    assert_eq!(changes.recv(QUIET), Err(RecvError::Timeout));
}
