//! Buckets, logs and objects.

use std::thread;
use std::time::{Duration, Instant};

use super::{BRIEF, Fixture, LASTING, SOON, TIME_TO_LIVE, with_stores};
use crate::{BucketConfig, BusError, Change, RecvError, Revision, Watch};

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
        bus.remove_object("none", "a"),
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
    bus.append("results", "test.result.a", &"2".repeat(512), b"1").unwrap();
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

/// Also in a full store, and with what did not fit.
pub fn a_removed_object_leaves_room(fixture: &dyn Fixture) {
    let (bus, other) = (with_stores(fixture), fixture.bus());
    let bytes = vec![7; 3 << 20];
    for name in ["t1.a", "t2.a", "t3.a"] {
        bus.put_object("plans", name, &bytes).unwrap();
        let more = bus.put_object("plans", "t1.b", &bytes);
        assert!(matches!(more, Err(BusError::Full { .. })), "{more:?}");
        bus.remove_object("plans", name).unwrap();
        assert_eq!(other.get_object("plans", name, 3 << 20).unwrap(), None);
    }
    bus.remove_object("plans", "t1.a").unwrap();
    bus.remove_object("plans", "absent").unwrap();
    bus.put_object("plans", "t1.a", b"again").unwrap();
    assert_eq!(&*other.get_object("plans", "t1.a", 10).unwrap().unwrap(), b"again");
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
