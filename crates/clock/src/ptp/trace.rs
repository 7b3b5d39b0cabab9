//! Test support: messages in both directions as lines of a packet trace.

use std::net::{IpAddr, Ipv4Addr};

use wirestorm_base::time::Instant;

use crate::ptp::address::{Address, Destination};
use crate::ptp::identity::{ClockIdentity, PortIdentity};
use crate::ptp::message::{Announce, Body, Flags, Header, Message, Tlv};
use crate::ptp::output::{Output, Transmission};
use crate::ptp::time::{Correction, PtpTime};
use crate::timestamp::Timestamp;

/// Port 1 of the clock with this number.
pub(super) fn port(number: u8) -> PortIdentity {
    PortIdentity { clock: ClockIdentity::from_mac([2, 0x57, 0x53, 0, 0, number]), port: 1 }
}

/// Address of the clock with this number.
pub(super) fn address(number: u8) -> Address {
    Address::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)))
}

/// A time of the caller, in ms.
pub(super) fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

/// A reading of a clock, in ns since 1970.
pub(super) fn stamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanos(nanoseconds)
}

/// A reading in a message.
pub(super) fn time(nanoseconds: i64) -> PtpTime {
    PtpTime::from_timestamp(stamp(nanoseconds))
}

/// A message of domain 0 without flags, with an interval of 1 s.
pub(super) fn message(source: PortIdentity, sequence: u16, body: Body) -> Message {
    let (flags, correction) = (Flags::default(), Correction::default());
    let header = Header { domain: 0, flags, correction, source, sequence, log_interval: 0 };
    Message { header, body }
}

/// An Announce of a master with default properties that is its own grandmaster.
pub(super) fn announce(source: PortIdentity, sequence: u16) -> Message {
    let announce = Announce {
        origin: PtpTime::default(),
        utc_offset: 37,
        priority1: 128,
        clock_class: 248,
        accuracy: 0xfe,
        variance: 0xffff,
        priority2: 128,
        grandmaster: source.clock,
        steps_removed: 0,
        time_source: 0xa0,
    };
    message(source, sequence, Body::Announce(announce))
}

impl Message {
    /// Sets flags.
    pub(super) fn with(mut self, flags: Flags) -> Self {
        self.header.flags = self.header.flags.with(flags);
        self
    }

    /// Sets the correction in ns.
    pub(super) fn corrected(mut self, nanoseconds: i64) -> Self {
        self.header.correction = Correction(nanoseconds << 16);
        self
    }

    /// Sets the interval.
    pub(super) fn every(mut self, log_interval: i8) -> Self {
        self.header.log_interval = log_interval;
        self
    }

    /// Sets the domain.
    pub(super) fn in_domain(mut self, domain: u8) -> Self {
        self.header.domain = domain;
        self
    }
}

/// Describes an output as a line of a trace.
pub(super) fn line(output: &Output) -> String {
    match output {
        Output::Exchange(it) => {
            let stamps = [it.t1, it.t2, it.t3, it.t4].map(Timestamp::as_nanos);
            format!("exchange {stamps:?}")
        }
        Output::Parent(None) => "no parent".to_owned(),
        Output::Parent(Some(parent)) => format!("parent {}", parent.port.clock.0[7]),
        Output::Send(transmission) => sent(transmission),
    }
}

fn sent(Transmission { to, bytes, stamp }: &Transmission) -> String {
    let Message { header, body } = Message::read(bytes).expect("a good message");
    let to = match to {
        Destination::Multicast => "all".to_owned(),
        Destination::Unicast(address) => address.to_string(),
    };
    assert_eq!(stamp.is_some(), body.kind().is_event(), "event messages have stamps");
    assert_eq!(header.flags.has(Flags::UNICAST), to != "all");
    let content = match body {
        Body::Announce(_) | Body::Sync { .. } | Body::DelayReq { .. } => String::new(),
        Body::FollowUp { origin } => format!(" {}", nanos(origin)),
        Body::DelayResp { receive, requesting } => {
            format!(" {} for {}", nanos(receive), requesting.clock.0[7])
        }
        Body::Signaling { tlvs, .. } => tlvs.iter().map(extension).collect(),
        Body::Management(_) | Body::Other(_) => panic!("{body:?}"),
    };
    let kind = Message::read(bytes).map(|message| message.body.kind()).expect("read before");
    format!("{kind:?} {} > {to}{content}", header.sequence)
}

fn nanos(time: PtpTime) -> i64 {
    time.to_timestamp().map_or(i64::MAX, Timestamp::as_nanos)
}

fn extension(tlv: &Tlv) -> String {
    match tlv {
        Tlv::Request { kind, log_interval, seconds } => {
            format!(", request {kind:?} 2^{log_interval} for {seconds}")
        }
        Tlv::Grant { kind, log_interval, seconds } => {
            format!(", grant {kind:?} 2^{log_interval} for {seconds}")
        }
        Tlv::Cancel { kind } => format!(", cancel {kind:?}"),
        Tlv::AcknowledgeCancel { kind } => format!(", acknowledge {kind:?}"),
    }
}
