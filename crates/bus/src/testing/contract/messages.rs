//! Messages, requests, and the state of the connection.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Fixture, LASTING, QUIET, SOON, with_stores};
use crate::{Bus, BusError, ConnectionState, Message, RecvError};

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

/// A missing receiver is an error at once, not after the timeout.
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
    for id in ["", "a b", "a\r\nb", &"a".repeat(513)] {
        let error = bus.append("results", "test.result.a", id, b"").unwrap_err();
        assert!(is_invalid(error), "{id:?}");
    }
}

/// A message that is too large is an error, and the connection stays.
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

/// The state names the server.
pub fn the_state_is_connected(fixture: &dyn Fixture) {
    let bus = fixture.bus();
    let ConnectionState::Connected(server) = bus.state() else { panic!("{:?}", bus.state()) };
    assert!(!server.version.is_empty() && !server.address.is_empty());
    let changes = bus.state_changes();
    assert_eq!(changes.recv(SOON), Ok(bus.state()));
    assert_eq!(changes.recv(QUIET), Err(RecvError::Timeout));
}
