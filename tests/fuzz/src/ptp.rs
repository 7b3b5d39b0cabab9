//! Arbitrary messages to a PTP slave and a PTP master, and as answers of clock sources.

use std::net::{IpAddr, Ipv4Addr};

use wirestorm_base::time::{Duration, Instant};
use wirestorm_clock::ptp::address::Address;
use wirestorm_clock::ptp::identity::{ClockIdentity, PortIdentity};
use wirestorm_clock::ptp::interval::LogInterval;
use wirestorm_clock::ptp::master::{GRANTS_MAX, Master, MasterOptions};
use wirestorm_clock::ptp::message::{Body, Message, TLVS_MAX};
use wirestorm_clock::ptp::output::Output;
use wirestorm_clock::ptp::slave::{Slave, SlaveOptions, UnicastOptions};
use wirestorm_clock::source::chrony::Tracking;
use wirestorm_clock::source::ptp4l::Ptp4lStatus;
use wirestorm_clock::timestamp::Timestamp;

const PEER: Address = Address::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// Checks one input.
///
/// The first byte selects multicast or unicast. Each message has the time since the previous one in
/// tenths of a second in one byte before it, then its length in one byte.
pub fn run(input: &[u8]) {
    let Some(([choice], mut rest)) = input.split_first_chunk() else { return };
    let is_unicast = choice & 1 != 0;
    let identity =
        |last| PortIdentity { clock: ClockIdentity([0, 0, 0, 0, 0, 0, 0, last]), port: 1 };
    let mut now = Instant::ZERO;
    let unicast = UnicastOptions {
        master: PEER,
        announce: LogInterval::SECOND,
        sync: LogInterval::MIN,
        delay: LogInterval::MIN,
        seconds: 60,
    };
    let mut slave = Slave::new(
        now,
        SlaveOptions {
            identity: identity(1),
            domain: 0,
            unicast: is_unicast.then_some(unicast),
            delay_interval: LogInterval::MIN,
            seed: 1,
        },
    );
    let options = MasterOptions { multicast: !is_unicast, ..MasterOptions::new(identity(2)) };
    let mut master = Master::new(now, options);
    while let Some(([wait, length], behind)) = rest.split_first_chunk() {
        let (message, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        now = now.saturating_add(Duration::from_millis(u64::from(*wait) * 100));
        check_codecs(message);
        let arrival = Some(Timestamp::from_nanos(now.as_nanos() as i64));

        slave.handle_timer(now);
        drain(|| slave.poll_output(), 8);
        slave.handle_message(now, PEER, message, arrival);
        let sent = drain(|| slave.poll_output(), 5);
        sent.for_each_stamp(|stamp| slave.handle_sent(stamp, Timestamp::from_nanos(1)));
        assert!(slave.next_timer().is_none_or(|timer| timer > now));

        master.handle_timer(now);
        drain(|| master.poll_output(), GRANTS_MAX + 2);
        master.handle_message(now, PEER, message, arrival);
        let sent = drain(|| master.poll_output(), TLVS_MAX + 1);
        sent.for_each_stamp(|stamp| master.handle_sent(stamp, Timestamp::from_nanos(1)));
        assert!(master.next_timer().is_none_or(|timer| timer > now));
        assert!(master.unicast_slaves() <= GRANTS_MAX);
    }
}

/// Outputs of one step.
struct Outputs(Vec<Output>);

impl Outputs {
    fn for_each_stamp(&self, handle: impl FnMut(wirestorm_clock::ptp::output::StampId)) {
        let stamps = self.0.iter().filter_map(|output| match output {
            Output::Send(transmission) => transmission.stamp,
            Output::Exchange(_) | Output::Parent(_) => None,
        });
        stamps.for_each(handle);
    }
}

/// Takes all outputs: at most `limit`, and all messages can be read.
fn drain(poll: impl FnMut() -> Option<Output>, limit: usize) -> Outputs {
    let outputs: Vec<Output> = std::iter::from_fn(poll).collect();
    assert!(outputs.len() <= limit, "{} outputs", outputs.len());
    for output in &outputs {
        if let Output::Send(transmission) = output {
            let message = Message::read(&transmission.bytes).expect("an own message");
            assert_eq!(message.body.kind().is_event(), transmission.stamp.is_some());
        }
    }
    Outputs(outputs)
}

/// What can be read can be written and read again.
fn check_codecs(bytes: &[u8]) {
    if let Ok(message) = Message::read(bytes) {
        // Bodies of unknown types are not kept.
        if !matches!(message.body, Body::Other(_)) {
            assert_eq!(Message::read(&message.to_bytes()), Ok(message));
        }
    }
    let mut status = Ptp4lStatus::default();
    status.take(bytes);
    assert!(!status.report("ptp4l", 0).name.is_empty());
    if let Ok(tracking) = Tracking::read(bytes, 1) {
        assert!(tracking.report("chronyd").reference.is_some());
    }
}
