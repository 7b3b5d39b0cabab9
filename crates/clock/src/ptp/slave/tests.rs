use proptest::prelude::*;

use super::*;
use crate::ptp::message::MessageType;
use crate::ptp::message::tests::any_message;
use crate::ptp::trace::{address, announce, at, line, message, port, stamp, time};

/// The slave's number, and those of masters.
const SLAVE: u8 = 9;
const A: u8 = 1;
const B: u8 = 2;

/// A slave, with the lines that it has put out.
struct Trace(Slave);

impl Trace {
    fn multicast() -> Self {
        Self(Slave::new(at(0), options()))
    }

    fn unicast() -> Self {
        let unicast = UnicastOptions {
            master: address(A),
            announce: LogInterval::clamped(1),
            sync: LogInterval::SECOND,
            delay: LogInterval::SECOND,
            seconds: 60,
        };
        Self(Slave::new(at(0), SlaveOptions { unicast: Some(unicast), ..options() }))
    }

    /// A slave that follows master A since 1 s. From 3 s on, a Sync is answered with a Delay_Req.
    fn following() -> Self {
        let mut trace = Self::multicast();
        trace.receive(0, A, announce(port(A), 0), None);
        trace.receive(1_000, A, announce(port(A), 1), None);
        assert_eq!(trace.lines(), ["parent 1"]);
        trace
    }

    fn receive(&mut self, ms: u64, from: u8, message: Message, arrival: Option<i64>) {
        self.0.handle_message(at(ms), address(from), &message.to_bytes(), arrival.map(stamp));
    }

    /// Runs all timers up to this time.
    fn run_until(&mut self, ms: u64) {
        while let Some(due) = self.0.next_timer().filter(|due| *due <= at(ms)) {
            self.0.handle_timer(due);
        }
    }

    fn lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.poll_output()).map(|output| line(&output)).collect()
    }
}

fn options() -> SlaveOptions {
    let (identity, delay_interval) = (port(SLAVE), LogInterval::SECOND);
    SlaveOptions { identity, domain: 0, unicast: None, delay_interval, seed: 1 }
}

fn sync(from: u8, sequence: u16) -> Message {
    let body = Body::Sync { origin: PtpTime::default() };
    message(port(from), sequence, body).with(Flags::TWO_STEP)
}

fn follow_up(from: u8, sequence: u16, origin: i64) -> Message {
    message(port(from), sequence, Body::FollowUp { origin: time(origin) })
}

fn delay_resp(from: u8, sequence: u16, receive: i64) -> Message {
    let body = Body::DelayResp { receive: time(receive), requesting: port(SLAVE) };
    message(port(from), sequence, body)
}

#[test]
fn two_step_measurement() {
    let mut slave = Trace::following();
    //                ms  from  message                     arrival
    slave.receive(3_000, A, sync(A, 7), Some(2_300));
    assert_eq!(slave.lines(), ["DelayReq 0 > all"]);
    slave.receive(3_001, A, follow_up(A, 7, 2_000), None);
    slave.0.handle_sent(StampId(0), stamp(5_000));
    slave.receive(3_002, A, delay_resp(A, 0, 5_100), None);
    assert_eq!(slave.lines(), ["exchange [5000, 5100, 2000, 2300]"]);
    let counters = *slave.0.counters();
    let expected = SlaveCounters {
        announce: 2,
        sync: 1,
        follow_up: 1,
        delay_req: 1,
        delay_resp: 1,
        exchanges: 1,
        ..SlaveCounters::default()
    };
    assert_eq!(counters, expected);
}

#[test]
fn messages_that_overtake_each_other_are_matched() {
    let mut slave = Trace::following();
    // Follow_Up has another UDP port than Sync, so it may be read first.
    slave.receive(3_000, A, follow_up(A, 8, 2_000), None);
    slave.receive(3_001, A, sync(A, 8), Some(2_300));
    // The answer arrives before the departure of the request is read from the socket.
    slave.receive(3_002, A, delay_resp(A, 0, 5_100), None);
    slave.0.handle_sent(StampId(0), stamp(5_000));
    assert_eq!(slave.lines(), ["DelayReq 0 > all", "exchange [5000, 5100, 2000, 2300]"]);
    assert_eq!(slave.0.counters().unmatched, 0);
}

#[test]
fn late_follow_up_completes_its_own_sync() {
    let mut slave = Trace::following();
    slave.receive(3_000, A, sync(A, 7), Some(2_300));
    slave.0.handle_sent(StampId(0), stamp(5_000));
    slave.receive(3_001, A, delay_resp(A, 0, 5_100), None);
    assert_eq!(slave.lines(), ["DelayReq 0 > all"]);
    slave.receive(3_002, A, follow_up(A, 6, 1_000), None);
    assert!(slave.lines().is_empty(), "that of an earlier Sync");
    slave.receive(3_003, A, follow_up(A, 7, 2_000), None);
    assert_eq!(slave.lines(), ["exchange [5000, 5100, 2000, 2300]"]);
    assert_eq!(slave.0.counters().unmatched, 1);
}

#[test]
fn answer_to_an_earlier_sync_is_no_exchange() {
    let mut slave = Trace::following();
    slave.receive(3_000, A, sync(A, 7), Some(2_300));
    slave.0.handle_sent(StampId(0), stamp(5_000));
    slave.receive(3_001, A, follow_up(A, 7, 2_000), None);
    slave.receive(3_999, A, sync(A, 8), Some(1_002_300));
    slave.receive(3_999, A, follow_up(A, 8, 1_002_000), None);
    slave.receive(4_000, A, delay_resp(A, 0, 5_100), None);
    let is_exchange = |line: &String| line.starts_with("exchange");
    assert!(!slave.lines().iter().any(is_exchange));
}

#[test]
fn one_step_measurement_needs_no_follow_up() {
    let mut slave = Trace::following();
    let body = Body::Sync { origin: time(2_000) };
    slave.receive(3_000, A, message(port(A), 0, body).corrected(40), Some(2_300));
    slave.0.handle_sent(StampId(0), stamp(5_000));
    slave.receive(3_001, A, delay_resp(A, 0, 5_100), None);
    assert_eq!(slave.lines(), ["DelayReq 0 > all", "exchange [5000, 5100, 2040, 2300]"]);
}

#[test]
fn corrections_remove_the_time_in_transparent_clocks() {
    let mut slave = Trace::following();
    slave.receive(3_000, A, sync(A, 7).corrected(100), Some(2_300));
    slave.receive(3_001, A, follow_up(A, 7, 2_000).corrected(20), None);
    slave.0.handle_sent(StampId(0), stamp(5_000));
    slave.receive(3_002, A, delay_resp(A, 0, 5_100).corrected(30), None);
    assert_eq!(slave.lines(), ["DelayReq 0 > all", "exchange [5000, 5070, 2120, 2300]"]);
}

#[test]
fn times_of_a_tai_master_become_utc() {
    let second = 1_000_000_000;
    let mut slave = Trace::multicast();
    for sequence in 0..2 {
        let announce = announce(port(A), sequence).with(Flags::PTP_TIMESCALE);
        slave.receive(u64::from(sequence) * 1_000, A, announce, None);
    }
    slave.receive(3_000, A, sync(A, 7), Some(10 * second));
    slave.receive(3_001, A, follow_up(A, 7, 47 * second), None);
    slave.0.handle_sent(StampId(0), stamp(11 * second));
    slave.receive(3_002, A, delay_resp(A, 0, 48 * second), None);
    let expected = format!("exchange {:?}", [11, 11, 10, 10].map(|seconds| seconds * second));
    assert_eq!(slave.lines(), ["parent 1", "DelayReq 0 > all", expected.as_str()]);
    let parent = slave.0.parent().unwrap();
    assert_eq!((parent.utc_offset, parent.is_utc_offset_valid), (Some(37), false));
}

#[test]
fn messages_of_others_are_counted_and_ignored() {
    let mut slave = Trace::following();
    slave.receive(3_000, B, sync(B, 7), Some(2_300));
    slave.receive(3_000, B, follow_up(B, 7, 2_000), None);
    slave.receive(3_000, A, sync(A, 7).in_domain(1), Some(2_300));
    slave.receive(3_000, A, announce(port(SLAVE), 0), None);
    slave.0.handle_message(at(3_000), address(A), b"XXXXXXXX", None);
    assert!(slave.lines().is_empty());
    slave.receive(3_001, A, sync(A, 8), Some(2_300));
    slave.receive(3_001, A, follow_up(A, 8, 2_000), None);
    slave.0.handle_sent(StampId(0), stamp(5_000));
    // For another slave, for another request, and from another master.
    let other = Body::DelayResp { receive: time(5_100), requesting: port(8) };
    slave.receive(3_002, A, message(port(A), 0, other), None);
    slave.receive(3_002, A, delay_resp(A, 1, 5_100), None);
    slave.receive(3_002, B, delay_resp(B, 0, 5_100), None);
    assert_eq!(slave.lines(), ["DelayReq 0 > all"]);
    let counters = slave.0.counters();
    assert_eq!((counters.other_domain, counters.malformed, counters.exchanges), (1, 1, 0));
    assert_eq!((counters.other_port, counters.unmatched, counters.delay_resp), (4, 1, 1));
}

#[test]
fn sync_without_a_stamp_measures_nothing() {
    let mut slave = Trace::following();
    slave.receive(3_000, A, sync(A, 7), None);
    slave.receive(3_001, A, follow_up(A, 7, 2_000), None);
    assert!(slave.lines().is_empty());
    assert_eq!(slave.0.counters().missing_stamps, 1);
}

#[test]
fn duplicates_do_not_change_a_measurement() {
    let mut slave = Trace::following();
    slave.receive(3_000, A, sync(A, 7), Some(2_300));
    slave.receive(3_000, A, sync(A, 7), Some(9_999));
    slave.receive(3_001, A, follow_up(A, 7, 2_000), None);
    slave.receive(3_002, A, delay_resp(A, 0, 5_100), None);
    slave.receive(3_003, A, delay_resp(A, 0, 9_999), None);
    slave.0.handle_sent(StampId(0), stamp(5_000));
    slave.0.handle_sent(StampId(0), stamp(9_999));
    assert_eq!(slave.lines(), ["DelayReq 0 > all", "exchange [5000, 5100, 2000, 2300]"]);
}

#[test]
fn one_announce_does_not_make_a_master() {
    let mut slave = Trace::multicast();
    slave.receive(0, A, announce(port(A), 0), None);
    // The second one is later than four intervals, so the first does not count.
    slave.run_until(5_000);
    slave.receive(5_000, A, announce(port(A), 1), None);
    assert!(slave.lines().is_empty());
    slave.receive(6_000, A, announce(port(A), 2), None);
    assert_eq!(slave.lines(), ["parent 1"]);
}

#[test]
fn better_master_takes_over_and_its_end_returns_the_other() {
    let mut slave = Trace::following();
    let better = |sequence| {
        let mut message = announce(port(B), sequence).every(-2);
        let Body::Announce(announce) = &mut message.body else { unreachable!() };
        announce.priority1 = 1;
        message
    };
    slave.receive(1_100, B, better(0), None);
    slave.receive(1_350, B, better(1), None);
    assert_eq!(slave.lines(), ["parent 2"]);
    // Three intervals of 250 ms without an Announce.
    slave.run_until(2_099);
    slave.receive(2_099, A, announce(port(A), 2), None);
    let is_parent = |line: &String| line.starts_with("parent");
    assert!(!slave.lines().iter().any(is_parent));
    slave.run_until(2_100);
    assert!(slave.lines().contains(&"parent 1".to_owned()));
    slave.run_until(5_099);
    assert_eq!(slave.lines().pop(), Some("no parent".to_owned()));
    assert_eq!(slave.0.next_timer(), None, "a slave without a master is silent");
}

#[test]
fn masters_are_compared_in_the_order_of_the_standard() {
    let Body::Announce(base) = announce(port(A), 0).body else { unreachable!() };
    let better = [
        Announce { priority1: 127, clock_class: 255, ..base },
        Announce { clock_class: 6, accuracy: 0xff, ..base },
        Announce { accuracy: 0x21, priority2: 255, ..base },
        Announce { variance: 0x4e5d, priority2: 255, ..base },
        Announce { priority2: 127, grandmaster: port(0xff).clock, ..base },
        Announce { grandmaster: port(0).clock, steps_removed: 9, ..base },
    ];
    for better in better {
        assert!(better.compare(&base).is_lt(), "{better:?}");
    }
    let farther = Announce { steps_removed: 1, ..base };
    assert!(base.compare(&farther).is_lt());
}

#[test]
fn announce_that_no_clock_may_follow_is_ignored() {
    let mut slave = Trace::multicast();
    for sequence in 0..3 {
        let mut loops = announce(port(A), sequence);
        let Body::Announce(announce) = &mut loops.body else { unreachable!() };
        announce.steps_removed = 255;
        slave.receive(0, A, loops, None);
        slave.receive(0, B, self::announce(port(B), sequence).with(Flags::ALTERNATE_MASTER), None);
    }
    assert!(slave.lines().is_empty());
}

#[test]
fn masters_are_bounded() {
    let mut slave = Trace::multicast();
    for number in 0..=u8::try_from(MASTERS_MAX).unwrap() {
        slave.receive(0, number, announce(port(100 + number), 0), None);
    }
    assert_eq!(slave.0.counters().other_port, 1);
}

#[test]
fn delay_requests_have_random_times_with_the_interval_of_the_master() {
    let mut slave = Trace::following();
    slave.receive(1_001, A, delay_resp(A, 99, 0).every(-2), None);
    let mut sent = 0;
    for (sequence, ms) in (1_000..61_000).step_by(10).enumerate() {
        slave.receive(ms, A, announce(port(A), 2), None);
        slave.receive(ms, A, sync(A, sequence as u16), Some(0));
        sent += slave.lines().iter().filter(|line| line.starts_with("DelayReq")).count();
    }
    // 60 s, on average 4 a second; some less, as they wait for a Sync.
    assert!((200..260).contains(&sent), "{sent} requests");
    assert!(slave.0.counters().unanswered > 190);
}

#[test]
fn unicast_negotiation() {
    let mut slave = Trace::unicast();
    let grant = |kind, log_interval, seconds| {
        let tlvs = vec![Tlv::Grant { kind, log_interval, seconds }];
        message(port(A), 0, Body::Signaling { target: port(SLAVE), tlvs })
    };
    slave.run_until(1_000);
    let request =
        |sequence| format!("Signaling {sequence} > 10.0.0.1, request Announce 2^1 for 60");
    assert_eq!(slave.lines(), [request(0), request(1)], "the first one got lost");
    slave.receive(1_001, A, grant(MessageType::Announce, 1, 60), None);
    slave.receive(1_002, A, announce(port(A), 0).every(0x7f), None);
    // ptp4l sends the interval of its multicast messages instead.
    slave.receive(3_002, A, announce(port(A), 1).every(-2), None);
    let others = "Signaling 2 > 10.0.0.1, request Sync 2^0 for 60, request DelayResp 2^0 for 60";
    assert_eq!(slave.lines(), ["parent 1", others]);
    slave.receive(3_003, A, grant(MessageType::Sync, 0, 60), None);
    slave.receive(3_003, A, grant(MessageType::DelayResp, 0, 60), None);
    slave.receive(5_500, A, sync(A, 0), Some(0));
    assert_eq!(slave.lines(), ["DelayReq 0 > 10.0.0.1"]);
    assert_eq!(slave.0.counters().grants, 3);
    // A message of the master's identity from another address.
    slave.receive(5_501, B, sync(A, 1), Some(0));
    assert_eq!((slave.0.counters().sync, slave.0.counters().other_port), (1, 1));
    slave.0.stop();
    let cancel = "Signaling 3 > 10.0.0.1, cancel Announce, cancel Sync, cancel DelayResp";
    assert_eq!(slave.lines().pop().as_deref(), Some(cancel));
}

#[test]
fn refused_and_cancelled_grants_are_asked_for_again_later() {
    let mut slave = Trace::unicast();
    assert_eq!(slave.lines().len(), 1);
    let kind = MessageType::Announce;
    let signaling =
        |tlv| message(port(A), 0, Body::Signaling { target: port(SLAVE), tlvs: vec![tlv] });
    slave.receive(10, A, signaling(Tlv::Grant { kind, log_interval: 1, seconds: 0 }), None);
    slave.run_until(5_009);
    assert!(slave.lines().is_empty());
    slave.run_until(5_010);
    assert_eq!(slave.lines().len(), 1);
    slave.receive(5_020, A, signaling(Tlv::Grant { kind, log_interval: 1, seconds: 60 }), None);
    slave.receive(5_030, A, signaling(Tlv::Cancel { kind }), None);
    assert_eq!(slave.lines(), ["Signaling 2 > 10.0.0.1, acknowledge Announce"]);
    slave.run_until(10_030);
    assert_eq!(slave.lines().len(), 1);
    assert_eq!(slave.0.counters().refusals, 1);
}

#[test]
fn grants_are_renewed_before_their_end() {
    let mut slave = Trace::unicast();
    let kind = MessageType::Announce;
    let tlvs = vec![Tlv::Grant { kind, log_interval: 1, seconds: 60 }];
    let grant = message(port(A), 0, Body::Signaling { target: port(SLAVE), tlvs });
    for sequence in 0..30 {
        slave.receive(u64::from(sequence) * 2_000, A, announce(port(A), sequence).every(1), None);
        if sequence == 3 {
            slave.receive(6_000, A, grant.clone(), None);
            slave.lines();
        }
        slave.run_until(u64::from(sequence) * 2_000);
        let renews = slave.lines().iter().any(|line| line.contains("request Announce"));
        // The grant of 60 s comes at 6 s, and its renewal after 45 s.
        assert_eq!(renews, !(3..=25).contains(&sequence), "{sequence}");
    }
}

proptest! {
    /// Whatever a network sends, a slave stays within its bounds, and its timers are in the future.
    #[test]
    fn any_messages_leave_a_slave_within_its_bounds(
        unicast in any::<bool>(),
        messages in prop::collection::vec((any_message(), 0_u64..3_000, any::<bool>()), 0..64),
    ) {
        let mut slave = if unicast { Trace::unicast() } else { Trace::multicast() };
        let mut now = 0;
        for (mut message, wait, is_close) in messages {
            now += wait;
            // Most other domains and ports would be dropped at once.
            message.header.domain = 0;
            if is_close {
                message.header.source = port(A);
            }
            let before = slave.0.outputs.len();
            slave.receive(now, A, message, Some(0));
            prop_assert!(slave.0.outputs.len() - before <= 5);
            slave.0.handle_sent(StampId(slave.0.next_stamp.wrapping_sub(1)), stamp(0));
            slave.0.handle_timer(at(now));
            prop_assert!(slave.0.next_timer().is_none_or(|timer| timer > at(now)));
            while slave.0.poll_output().is_some() {}
        }
    }
}
