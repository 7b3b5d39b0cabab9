//! A two-step master for multicast and unicast slaves.

mod grants;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::time::Instant;

use crate::ptp::address::{Address, Destination};
use crate::ptp::identity::PortIdentity;
use crate::ptp::interval::LogInterval;
use crate::ptp::message::{Announce, Body, Flags, Header, Message, MessageType, Tlv};
use crate::ptp::output::{Output, StampId, Transmission};
use crate::ptp::time::{Correction, PtpTime};
use crate::timestamp::Timestamp;
use grants::{Grant, Grants, next_after};

pub use grants::{GRANT_SECONDS_MAX, GRANTS_MAX};

/// Most Sync messages that wait for their departure.
const PENDING_MAX: usize = GRANTS_MAX + 8;

/// Settings of a master.
#[derive(Clone, Copy, Debug)]
pub struct MasterOptions {
    /// Identity of the master's port.
    pub identity: PortIdentity,
    /// Domain.
    pub domain: u8,
    /// First priority; the lowest wins.
    pub priority1: u8,
    /// Second priority.
    pub priority2: u8,
    /// Whether the master sends multicast messages. Unicast slaves are always served.
    pub multicast: bool,
    /// Interval of Announce messages; slaves cannot ask for a shorter one.
    pub announce: LogInterval,
    /// Interval of Sync messages; unicast slaves may ask for any.
    pub sync: LogInterval,
    /// Shortest interval of Delay_Req messages of multicast slaves.
    pub delay: LogInterval,
}

impl MasterOptions {
    /// Returns the settings of most profiles: priorities 128, one Announce every 2 s, and one Sync
    /// and one Delay_Req a second.
    pub const fn new(identity: PortIdentity) -> Self {
        Self {
            identity,
            domain: 0,
            priority1: 128,
            priority2: 128,
            multicast: true,
            announce: LogInterval::clamped(1),
            sync: LogInterval::SECOND,
            delay: LogInterval::SECOND,
        }
    }
}

/// Counters of a master.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MasterCounters {
    /// Announce messages sent.
    pub announce: u64,
    /// Sync messages sent.
    pub sync: u64,
    /// Follow_Up messages sent.
    pub follow_up: u64,
    /// Delay_Req messages received.
    pub delay_req: u64,
    /// Delay_Resp messages sent.
    pub delay_resp: u64,
    /// Requests of unicast slaves granted.
    pub grants: u64,
    /// Requests of unicast slaves refused.
    pub refusals: u64,
    /// Delay_Req messages whose arrival has no time stamp.
    pub missing_stamps: u64,
    /// Sync messages whose departure had no time stamp.
    pub missing_departures: u64,
    /// Unicast Delay_Req messages without a grant.
    pub not_granted: u64,
    /// Announce messages of other masters in this domain.
    pub other_masters: u64,
    /// Messages of other domains.
    pub other_domain: u64,
    /// Bytes that are no message.
    pub malformed: u64,
}

/// A Sync whose departure is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    stamp: StampId,
    to: Destination,
    sequence: u16,
    log_interval: i8,
}

/// A master.
#[derive(Debug)]
pub struct Master {
    options: MasterOptions,
    next_announce: Option<Instant>,
    next_sync: Option<Instant>,
    announce_sequence: u16,
    sync_sequence: u16,
    signaling_sequence: u16,
    next_stamp: u64,
    pending: VecDeque<Pending>,
    grants: Grants,
    outputs: VecDeque<Output>,
    counters: MasterCounters,
}

impl Master {
    /// Starts a master at `now`.
    pub fn new(now: Instant, options: MasterOptions) -> Self {
        let first = options.multicast.then_some(now);
        let mut master = Self {
            options,
            next_announce: first,
            next_sync: first,
            announce_sequence: 0,
            sync_sequence: 0,
            signaling_sequence: 0,
            next_stamp: 0,
            pending: VecDeque::new(),
            grants: Grants::default(),
            outputs: VecDeque::new(),
            counters: MasterCounters::default(),
        };
        master.handle_timer(now);
        master
    }

    /// Returns the identity of the master's port.
    pub const fn identity(&self) -> PortIdentity {
        self.options.identity
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &MasterCounters {
        &self.counters
    }

    /// Returns the number of unicast slaves.
    pub fn unicast_slaves(&self) -> usize {
        self.grants.slaves()
    }

    /// Returns when to call [`Self::handle_timer`].
    pub fn next_timer(&self) -> Option<Instant> {
        [self.next_announce, self.next_sync, self.grants.next_timer()].into_iter().flatten().min()
    }

    /// Sends what is due at `now`.
    pub fn handle_timer(&mut self, now: Instant) {
        if let Some(due) = self.next_announce.filter(|due| *due <= now) {
            let interval = self.options.announce;
            self.next_announce = Some(next_after(due, interval.duration(), now));
            let sequence = increment(&mut self.announce_sequence);
            self.send_announce(Destination::Multicast, sequence, interval.power());
        }
        if let Some(due) = self.next_sync.filter(|due| *due <= now) {
            let interval = self.options.sync;
            self.next_sync = Some(next_after(due, interval.duration(), now));
            let sequence = increment(&mut self.sync_sequence);
            self.send_sync(Destination::Multicast, sequence, interval.power());
        }
        self.grants.expire(now);
        let mut due = Vec::new();
        self.grants.due(now, |grant| {
            let to = Destination::Unicast(grant.address);
            due.push((grant.kind, to, increment(&mut grant.sequence)));
        });
        for (kind, to, sequence) in due {
            match kind {
                MessageType::Announce => {
                    self.send_announce(to, sequence, LogInterval::UNSPECIFIED);
                }
                _ => self.send_sync(to, sequence, LogInterval::UNSPECIFIED),
            }
        }
    }

    /// Takes a message from `from` that arrived at `arrival` by the local clock.
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: Address,
        bytes: &[u8],
        arrival: Option<Timestamp>,
    ) {
        let Ok(Message { header, body }) = Message::read(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if header.source.clock == self.options.identity.clock {
            return;
        }
        if header.domain != self.options.domain {
            self.counters.other_domain += 1;
            return;
        }
        match body {
            Body::DelayReq { .. } => self.delay_req(now, from, &header, arrival),
            Body::Signaling { target, tlvs }
                if target == self.options.identity || target == PortIdentity::ALL =>
            {
                self.signaling(now, (header.source, from), &tlvs);
            }
            Body::Announce(_) => self.counters.other_masters += 1,
            _ => {}
        }
    }

    /// Takes the time stamp of the departure of a Sync, and sends its Follow_Up.
    pub fn handle_sent(&mut self, stamp: StampId, departure: Timestamp) {
        let Some(position) = self.pending.iter().position(|pending| pending.stamp == stamp) else {
            return;
        };
        let Some(pending) = self.pending.remove(position) else { return };
        let Pending { to, sequence, log_interval, .. } = pending;
        self.counters.follow_up += 1;
        let origin = PtpTime::from_timestamp(departure);
        let header = self.header(to, sequence, log_interval, Correction::default());
        self.send(to, header, Body::FollowUp { origin }, None);
    }

    /// Ends the master: cancels the grants of unicast slaves.
    pub fn stop(&mut self) {
        (self.next_announce, self.next_sync) = (None, None);
        for Grant { slave, address, kind, .. } in self.grants.cancel_all() {
            self.send_signaling((slave, address), vec![Tlv::Cancel { kind }]);
        }
    }

    /// Returns the next output, until there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn delay_req(
        &mut self,
        now: Instant,
        from: Address,
        request: &Header,
        arrival: Option<Timestamp>,
    ) {
        self.counters.delay_req += 1;
        let is_unicast = request.flags.has(Flags::UNICAST);
        let is_granted = self.grants.has(now, request.source, MessageType::DelayResp);
        // A multicast slave may send its requests to the unicast address ("hybrid mode").
        if !is_granted && !self.options.multicast {
            self.counters.not_granted += 1;
            return;
        }
        let Some(arrival) = arrival else {
            self.counters.missing_stamps += 1;
            return;
        };
        self.counters.delay_resp += 1;
        let (to, log_interval) = if is_unicast {
            (Destination::Unicast(from), LogInterval::UNSPECIFIED)
        } else {
            (Destination::Multicast, self.options.delay.power())
        };
        // The answer returns the time that transparent clocks held the request (11.3.2).
        let header = self.header(to, request.sequence, log_interval, request.correction);
        let receive = PtpTime::from_timestamp(arrival);
        self.send(to, header, Body::DelayResp { receive, requesting: request.source }, None);
    }

    fn signaling(&mut self, now: Instant, slave: (PortIdentity, Address), tlvs: &[Tlv]) {
        let mut answers = Vec::new();
        for tlv in tlvs {
            match *tlv {
                Tlv::Request { kind, log_interval, seconds } => {
                    let seconds = self.request(now, slave, kind, log_interval, seconds);
                    answers.push(Tlv::Grant { kind, log_interval, seconds });
                }
                Tlv::Cancel { kind } => {
                    self.grants.cancel(slave.0, kind);
                    answers.push(Tlv::AcknowledgeCancel { kind });
                }
                Tlv::Grant { .. } | Tlv::AcknowledgeCancel { .. } => {}
            }
        }
        if !answers.is_empty() {
            self.send_signaling(slave, answers);
        }
        // The first messages of new grants.
        self.handle_timer(now);
    }

    /// Grants a request within the bounds. Returns the seconds; 0 refuses it.
    fn request(
        &mut self,
        now: Instant,
        slave: (PortIdentity, Address),
        kind: MessageType,
        log_interval: i8,
        seconds: u32,
    ) -> u32 {
        let interval = LogInterval::clamped(log_interval);
        let is_served =
            matches!(kind, MessageType::Announce | MessageType::Sync | MessageType::DelayResp);
        let is_too_often = kind == MessageType::Announce && interval < LogInterval::clamped(-3);
        // An interval that is not served is refused, not changed: the slave asked for another one.
        let granted = if !is_served || is_too_often || interval.power() != log_interval {
            0
        } else {
            self.grants.grant(now, slave, kind, interval, seconds)
        };
        if granted == 0 {
            self.counters.refusals += 1;
        } else {
            self.counters.grants += 1;
        }
        granted
    }

    fn send_announce(&mut self, to: Destination, sequence: u16, log_interval: i8) {
        self.counters.announce += 1;
        let MasterOptions { identity, priority1, priority2, .. } = self.options;
        let body = Body::Announce(Announce {
            origin: PtpTime::default(),
            // The timescale is that of the local clock, so the offset has no meaning.
            utc_offset: 0,
            priority1,
            // Default: no reference (table 4).
            clock_class: 248,
            accuracy: 0xfe,
            variance: 0xffff,
            priority2,
            grandmaster: identity.clock,
            steps_removed: 0,
            // Internal oscillator (table 6).
            time_source: 0xa0,
        });
        let header = self.header(to, sequence, log_interval, Correction::default());
        self.send(to, header, body, None);
    }

    fn send_sync(&mut self, to: Destination, sequence: u16, log_interval: i8) {
        self.counters.sync += 1;
        let stamp = StampId(self.next_stamp);
        self.next_stamp += 1;
        if self.pending.len() >= PENDING_MAX {
            self.pending.pop_front();
            self.counters.missing_departures += 1;
        }
        self.pending.push_back(Pending { stamp, to, sequence, log_interval });
        let mut header = self.header(to, sequence, log_interval, Correction::default());
        header.flags = header.flags.with(Flags::TWO_STEP);
        self.send(to, header, Body::Sync { origin: PtpTime::default() }, Some(stamp));
    }

    fn send_signaling(&mut self, (slave, address): (PortIdentity, Address), tlvs: Vec<Tlv>) {
        let sequence = increment(&mut self.signaling_sequence);
        let to = Destination::Unicast(address);
        let header = self.header(to, sequence, LogInterval::UNSPECIFIED, Correction::default());
        self.send(to, header, Body::Signaling { target: slave, tlvs }, None);
    }

    fn header(
        &self,
        to: Destination,
        sequence: u16,
        log_interval: i8,
        correction: Correction,
    ) -> Header {
        let is_unicast = matches!(to, Destination::Unicast(_));
        Header {
            domain: self.options.domain,
            flags: if is_unicast { Flags::UNICAST } else { Flags::default() },
            correction,
            source: self.options.identity,
            sequence,
            log_interval,
        }
    }

    fn send(&mut self, to: Destination, header: Header, body: Body, stamp: Option<StampId>) {
        let bytes = Message { header, body }.to_bytes();
        self.outputs.push_back(Output::Send(Transmission { to, bytes, stamp }));
    }
}

/// Returns the number of a message, and counts up to the next.
const fn increment(sequence: &mut u16) -> u16 {
    let number = *sequence;
    *sequence = number.wrapping_add(1);
    number
}
