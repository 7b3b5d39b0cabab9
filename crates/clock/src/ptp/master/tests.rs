use proptest::prelude::*;

use super::*;
use crate::ptp::message::TLVS_MAX;
use crate::ptp::message::tests::any_message;
use crate::ptp::slave::{Slave, SlaveOptions, UnicastOptions};
use crate::ptp::trace::{address, announce, at, line, message, port, stamp};

const MASTER: u8 = 1;
const SLAVE: u8 = 9;

/// A master, with the lines that it has put out.
struct Trace(Master);

impl Trace {
    fn new(multicast: bool) -> Self {
        Self(Master::new(at(0), MasterOptions { multicast, ..MasterOptions::new(port(MASTER)) }))
    }

    fn receive(&mut self, ms: u64, from: u8, message: Message, arrival: Option<i64>) {
        self.0.handle_message(at(ms), address(from), &message.to_bytes(), arrival.map(stamp));
    }

    fn run_until(&mut self, ms: u64) {
        while let Some(due) = self.0.next_timer().filter(|due| *due <= at(ms)) {
            self.0.handle_timer(due);
        }
    }

    fn lines(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.0.poll_output()).map(|output| line(&output)).collect()
    }
}

fn delay_req(from: u8, sequence: u16) -> Message {
    message(port(from), sequence, Body::DelayReq { origin: PtpTime::default() })
}

fn request(from: u8, kind: MessageType, log_interval: i8, seconds: u32) -> Message {
    let tlvs = vec![Tlv::Request { kind, log_interval, seconds }];
    message(port(from), 0, Body::Signaling { target: PortIdentity::ALL, tlvs })
}

#[test]
fn multicast_service() {
    let mut master = Trace::new(true);
    assert_eq!(master.lines(), ["Announce 0 > all", "Sync 0 > all"]);
    master.0.handle_sent(StampId(0), stamp(1_000));
    assert_eq!(master.lines(), ["FollowUp 0 > all 1000"]);
    master.receive(500, SLAVE, delay_req(SLAVE, 7).corrected(30), Some(2_000));
    assert_eq!(master.lines(), ["DelayResp 7 > all 2000 for 9"]);
    master.run_until(2_000);
    assert_eq!(master.lines(), ["Sync 1 > all", "Announce 1 > all", "Sync 2 > all"]);
    // A stamp of a Sync that was answered, and one that never was.
    master.0.handle_sent(StampId(0), stamp(9_000));
    master.0.handle_sent(StampId(77), stamp(9_000));
    assert!(master.lines().is_empty());
}

#[test]
fn answers_return_the_correction_of_the_request() {
    let mut master = Trace::new(true);
    master.lines();
    master.receive(500, SLAVE, delay_req(SLAVE, 7).corrected(30), Some(2_000));
    let Some(Output::Send(answer)) = master.0.poll_output() else { panic!("no answer") };
    let header = Message::read(&answer.bytes).unwrap().header;
    assert_eq!((header.correction.to_nanos(), header.log_interval), (30, 0));
}

#[test]
fn unicast_request_of_a_multicast_slave_has_a_unicast_answer() {
    let mut master = Trace::new(true);
    master.lines();
    master.receive(500, SLAVE, delay_req(SLAVE, 7).with(Flags::UNICAST), Some(2_000));
    assert_eq!(master.lines(), ["DelayResp 7 > 10.0.0.9 2000 for 9"]);
}

#[test]
fn unicast_service_needs_grants() {
    let mut master = Trace::new(false);
    assert!(master.lines().is_empty());
    master.receive(0, SLAVE, delay_req(SLAVE, 0).with(Flags::UNICAST), Some(2_000));
    master.receive(0, SLAVE, delay_req(SLAVE, 0), Some(2_000));
    assert_eq!((master.lines().len(), master.0.counters().not_granted), (0, 2));
    master.receive(0, SLAVE, request(SLAVE, MessageType::Announce, 1, 60), None);
    assert_eq!(
        master.lines(),
        ["Signaling 0 > 10.0.0.9, grant Announce 2^1 for 60", "Announce 0 > 10.0.0.9"]
    );
    master.receive(10, SLAVE, request(SLAVE, MessageType::Sync, -1, 60), None);
    master.receive(10, SLAVE, request(SLAVE, MessageType::DelayResp, 0, 60), None);
    let granted = ["Signaling 1 > 10.0.0.9, grant Sync 2^-1 for 60", "Sync 0 > 10.0.0.9"];
    let lines = master.lines();
    assert_eq!(lines[..2], granted);
    assert_eq!(lines[2..], ["Signaling 2 > 10.0.0.9, grant DelayResp 2^0 for 60"]);
    master.0.handle_sent(StampId(0), stamp(1_000));
    assert_eq!(master.lines(), ["FollowUp 0 > 10.0.0.9 1000"]);
    master.receive(20, SLAVE, delay_req(SLAVE, 5).with(Flags::UNICAST), Some(2_000));
    assert_eq!(master.lines(), ["DelayResp 5 > 10.0.0.9 2000 for 9"]);
    master.run_until(2_009);
    let sync = |sequence| format!("Sync {sequence} > 10.0.0.9");
    assert_eq!(master.lines(), [sync(1), sync(2), sync(3), "Announce 1 > 10.0.0.9".to_owned()]);
}

#[test]
fn grants_end_and_can_be_renewed_and_cancelled() {
    let mut master = Trace::new(false);
    master.receive(0, SLAVE, request(SLAVE, MessageType::Sync, 0, 3), None);
    master.run_until(1_500);
    master.receive(1_500, SLAVE, request(SLAVE, MessageType::Sync, 0, 3), None);
    master.run_until(60_000);
    // At 0, 1, 2, 3 and 4 s: the renewal ends at 4.5 s and keeps the schedule.
    assert_eq!(master.0.counters().sync, 5);
    assert_eq!((master.0.unicast_slaves(), master.0.next_timer()), (0, None));
    master.receive(60_000, SLAVE, request(SLAVE, MessageType::Sync, 0, 30), None);
    assert_eq!(master.0.unicast_slaves(), 1);
    master.lines();
    let tlvs = vec![Tlv::Cancel { kind: MessageType::Sync }];
    let body = Body::Signaling { target: port(MASTER), tlvs };
    master.receive(60_100, SLAVE, message(port(SLAVE), 0, body), None);
    assert_eq!(master.lines(), ["Signaling 3 > 10.0.0.9, acknowledge Sync"]);
    assert_eq!(master.0.next_timer(), None);
}

#[test]
fn requests_beyond_the_bounds_are_refused() {
    let mut master = Trace::new(false);
    let refused = [
        request(SLAVE, MessageType::Sync, -8, 60),
        request(SLAVE, MessageType::Sync, 7, 60),
        request(SLAVE, MessageType::Announce, -4, 60),
        request(SLAVE, MessageType::PdelayResp, 0, 60),
        request(SLAVE, MessageType::Sync, 0, 0),
    ];
    for request in refused {
        master.receive(0, SLAVE, request, None);
        let lines = master.lines();
        assert!(lines.len() == 1 && lines[0].ends_with("for 0"), "{lines:?}");
    }
    master.receive(0, SLAVE, request(SLAVE, MessageType::Sync, 0, u32::MAX), None);
    assert!(master.lines()[0].ends_with("for 300"));
}

#[test]
fn several_slaves_have_their_own_messages_until_there_is_no_room() {
    let mut master = Trace::new(false);
    let slaves = u8::try_from(GRANTS_MAX / 3).unwrap();
    for slave in 2..=slaves + 2 {
        for kind in [MessageType::Announce, MessageType::Sync, MessageType::DelayResp] {
            master.receive(0, slave, request(slave, kind, 0, 60), None);
        }
    }
    assert_eq!(master.0.unicast_slaves(), usize::from(slaves));
    assert_eq!(master.0.counters().refusals, 3);
    master.lines();
    master.run_until(1_000);
    let lines = master.lines();
    assert_eq!(lines.len(), 2 * usize::from(slaves));
    assert!(lines.contains(&"Sync 1 > 10.0.0.2".to_owned()));
    master.0.stop();
    assert!(master.lines().contains(&"Signaling 387 > 10.0.0.2, cancel Announce".to_owned()));
}

#[test]
fn other_clocks_and_bad_bytes_are_counted() {
    let mut master = Trace::new(true);
    master.receive(0, 2, announce(port(2), 0), None);
    master.receive(0, 2, announce(port(2), 0).in_domain(5), None);
    master.receive(0, 2, announce(port(MASTER), 0), None);
    master.receive(0, SLAVE, delay_req(SLAVE, 0), None);
    master.0.handle_message(at(0), address(2), &[0; 44], None);
    let expected = MasterCounters {
        announce: 1,
        sync: 1,
        delay_req: 1,
        missing_stamps: 1,
        other_masters: 1,
        other_domain: 1,
        malformed: 1,
        ..MasterCounters::default()
    };
    assert_eq!(*master.0.counters(), expected);
}

#[test]
fn schedule_does_not_catch_up_after_a_pause() {
    let mut master = Trace::new(true);
    master.lines();
    master.0.handle_timer(at(60_000));
    assert_eq!(master.lines(), ["Announce 1 > all", "Sync 1 > all"]);
    assert_eq!(master.0.next_timer(), Some(at(61_000)));
}

/// Both state machines on a path with these delays in ns, and a slave whose clock is `ahead`.
/// Returns the offset of the master's clock, and the round trip, of each exchange.
fn simulate(unicast: bool, [down, up]: [i64; 2], ahead: i64) -> Vec<(i64, i64)> {
    let mut master = Trace::new(!unicast);
    let unicast = unicast.then_some(UnicastOptions {
        master: address(MASTER),
        announce: LogInterval::SECOND,
        sync: LogInterval::clamped(-2),
        delay: LogInterval::clamped(-2),
        seconds: 10,
    });
    let (identity, delay_interval) = (port(SLAVE), LogInterval::SECOND);
    let options = SlaveOptions { identity, domain: 0, unicast, delay_interval, seed: 3 };
    let mut slave = Slave::new(at(0), options);
    let mut exchanges = Vec::new();
    for ms in 0..60_000 {
        let (now, local) = (at(ms), ms as i64 * 1_000_000);
        master.0.handle_timer(now);
        slave.handle_timer(now);
        loop {
            if let Some(Output::Send(sent)) = master.0.poll_output() {
                slave.handle_message(
                    now,
                    address(MASTER),
                    &sent.bytes,
                    Some(stamp(local + down + ahead)),
                );
                if let Some(id) = sent.stamp {
                    master.0.handle_sent(id, stamp(local));
                }
                continue;
            }
            match slave.poll_output() {
                Some(Output::Send(sent)) => {
                    let arrival = Some(stamp(local + up));
                    master.0.handle_message(now, address(SLAVE), &sent.bytes, arrival);
                    if let Some(id) = sent.stamp {
                        slave.handle_sent(id, stamp(local + ahead));
                    }
                }
                Some(Output::Exchange(it)) => {
                    exchanges.push(((it.forward() - it.backward()) / 2, it.round_trip()));
                }
                Some(Output::Parent(parent)) => {
                    assert_eq!(parent.map(|parent| parent.port), Some(port(MASTER)));
                }
                None => break,
            }
        }
    }
    assert_eq!(slave.counters().unmatched, 0);
    exchanges
}

#[test]
fn slave_and_master_measure_the_offset_over_both_services() {
    for unicast in [false, true] {
        let exchanges = simulate(unicast, [3_000, 3_000], 1_000_000);
        assert!(exchanges.len() > 30, "{} exchanges", exchanges.len());
        assert!(exchanges.iter().all(|it| *it == (-1_000_000, 6_000)), "{exchanges:?}");
        // The offset is wrong by half of the asymmetry, as no two-way measurement can avoid.
        let exchanges = simulate(unicast, [3_000, 5_000], 0);
        assert!(exchanges.iter().all(|it| *it == (1_000, 8_000)), "{exchanges:?}");
    }
}

proptest! {
    /// Whatever a network sends, a master stays within its bounds, and its timers are in the future.
    #[test]
    fn any_messages_leave_a_master_within_its_bounds(
        multicast in any::<bool>(),
        messages in prop::collection::vec((any_message(), 0_u64..3_000), 0..64),
    ) {
        let mut master = Trace::new(multicast);
        let mut now = 0;
        for (mut message, wait) in messages {
            now += wait;
            message.header.domain = 0;
            master.run_until(now);
            while master.0.poll_output().is_some() {}
            master.receive(now, SLAVE, message, Some(0));
            // The answer, and the first message of each new grant.
            prop_assert!(master.0.outputs.len() <= 1 + TLVS_MAX);
            prop_assert!(master.0.pending.len() <= PENDING_MAX);
            prop_assert!(master.0.unicast_slaves() <= GRANTS_MAX);
            prop_assert!(master.0.next_timer().is_none_or(|timer| timer > at(now)));
        }
    }
}
