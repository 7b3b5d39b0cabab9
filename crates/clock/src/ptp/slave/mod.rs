//! A slave that measures its master, with the delay request-response mechanism (11.3).

mod foreign;
mod measurement;
mod negotiation;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;
use wirestorm_base::time::{Duration, Instant};

use crate::ptp::address::{Address, Destination};
use crate::ptp::identity::{ClockIdentity, PortIdentity};
use crate::ptp::interval::LogInterval;
use crate::ptp::message::{Announce, Body, Flags, Header, Message, Tlv};
use crate::ptp::output::{Output, StampId, Transmission};
use crate::ptp::time::{Correction, PtpTime};
use crate::timestamp::Timestamp;
use foreign::ForeignMasters;
use measurement::Measurement;
use negotiation::Negotiation;

pub use foreign::MASTERS_MAX;
pub use negotiation::UnicastOptions;

/// Steps from a grandmaster at which an Announce counts no more (9.3.2.5).
const STEPS_REMOVED_MAX: u16 = 255;

/// Settings of a slave.
#[derive(Clone, Copy, Debug)]
pub struct SlaveOptions {
    /// Identity of the slave's port.
    pub identity: PortIdentity,
    /// Domain; messages of others are ignored.
    pub domain: u8,
    /// The master to ask for unicast messages; `None` uses multicast.
    pub unicast: Option<UnicastOptions>,
    /// Interval of Delay_Req messages until a multicast master states one.
    pub delay_interval: LogInterval,
    /// Seed of the random times of Delay_Req messages.
    pub seed: u64,
}

/// The master that a slave follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Port of the master.
    pub port: PortIdentity,
    /// Address that it sends from.
    pub address: Address,
    /// Its last Announce.
    pub announce: Announce,
    /// TAI minus UTC in seconds, if the times of the master are TAI; `None` if their timescale is
    /// arbitrary.
    pub utc_offset: Option<i16>,
    /// Whether the master knows that its UTC offset is correct.
    pub is_utc_offset_valid: bool,
}

impl Parent {
    fn new(master: &foreign::ForeignMaster) -> Self {
        let is_tai = master.flags.has(Flags::PTP_TIMESCALE);
        Self {
            port: master.port,
            address: master.address,
            announce: master.announce,
            utc_offset: is_tai.then_some(master.announce.utc_offset),
            is_utc_offset_valid: master.flags.has(Flags::UTC_OFFSET_VALID),
        }
    }

    /// Returns the grandmaster.
    pub const fn grandmaster(&self) -> ClockIdentity {
        self.announce.grandmaster
    }

    /// Converts a time of the master to UTC, if its timescale is TAI.
    fn to_timestamp(self, time: PtpTime) -> Option<Timestamp> {
        let shift = i64::from(self.utc_offset.unwrap_or(0)) * 1_000_000_000;
        Some(time.to_timestamp()? + -shift)
    }
}

/// Counters of a slave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SlaveCounters {
    /// Announce messages of the domain.
    pub announce: u64,
    /// Sync messages of the master.
    pub sync: u64,
    /// Follow_Up messages of the master.
    pub follow_up: u64,
    /// Delay_Req messages sent.
    pub delay_req: u64,
    /// Delay_Resp messages of the master for this slave.
    pub delay_resp: u64,
    /// Grants of the unicast master.
    pub grants: u64,
    /// Requests that the unicast master refused.
    pub refusals: u64,
    /// Complete measurements.
    pub exchanges: u64,
    /// Delay_Req messages without a complete answer.
    pub unanswered: u64,
    /// Follow_Up and Delay_Resp messages without their other part.
    pub unmatched: u64,
    /// Event messages whose arrival has no time stamp.
    pub missing_stamps: u64,
    /// Messages of other domains.
    pub other_domain: u64,
    /// Messages of ports that the slave does not follow, and Announce messages without room.
    pub other_port: u64,
    /// Bytes that are no message.
    pub malformed: u64,
}

/// A slave.
#[derive(Debug)]
pub struct Slave {
    options: SlaveOptions,
    masters: ForeignMasters,
    parent: Option<Parent>,
    measurement: Measurement,
    negotiation: Option<Negotiation>,
    delay_interval: LogInterval,
    /// Time from which the next Sync is answered with a Delay_Req.
    next_delay_req: Instant,
    delay_req_sequence: u16,
    signaling_sequence: u16,
    next_stamp: u64,
    random: u64,
    outputs: VecDeque<Output>,
    counters: SlaveCounters,
}

impl Slave {
    /// Starts a slave at `now`. It sends nothing in multicast mode until it has found a master.
    pub fn new(now: Instant, options: SlaveOptions) -> Self {
        let negotiation = options.unicast.as_ref().map(|unicast| Negotiation::new(now, unicast));
        let mut slave = Self {
            options,
            masters: ForeignMasters::default(),
            parent: None,
            measurement: Measurement::default(),
            negotiation,
            delay_interval: options.delay_interval,
            next_delay_req: now,
            delay_req_sequence: 0,
            signaling_sequence: 0,
            next_stamp: 0,
            random: options.seed,
            outputs: VecDeque::new(),
            counters: SlaveCounters::default(),
        };
        slave.handle_timer(now);
        slave
    }

    /// Returns the master that the slave follows.
    pub const fn parent(&self) -> Option<&Parent> {
        self.parent.as_ref()
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &SlaveCounters {
        &self.counters
    }

    /// Returns when to call [`Self::handle_timer`].
    pub fn next_timer(&self) -> Option<Instant> {
        let negotiation = self.negotiation.as_ref();
        let request = negotiation.and_then(|it| it.next_request(self.parent.is_some()));
        [self.masters.next_expiry(), request].into_iter().flatten().min()
    }

    /// Does what is due at `now`.
    pub fn handle_timer(&mut self, now: Instant) {
        self.masters.expire(now);
        self.choose_parent(now);
        let has_parent = self.parent.is_some();
        let requests =
            self.negotiation.as_mut().map(|negotiation| negotiation.requests(now, has_parent));
        if let Some(requests) = requests.filter(|requests| !requests.is_empty()) {
            self.send_signaling(requests);
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
        if header.domain != self.options.domain {
            self.counters.other_domain += 1;
            return;
        }
        let is_own = header.source.clock == self.options.identity.clock;
        let is_other = self.negotiation.as_ref().is_some_and(|it| it.master != from);
        if is_own || is_other || header.flags.has(Flags::ALTERNATE_MASTER) {
            self.counters.other_port += 1;
            return;
        }
        match body {
            Body::Announce(announce) => self.announce(now, from, &header, announce),
            Body::Signaling { target, tlvs } => self.signaling(now, target, &tlvs),
            Body::Sync { .. } | Body::FollowUp { .. } | Body::DelayResp { .. } => {
                self.measure(now, &header, &body, arrival);
            }
            // Requests of other slaves, and messages that a slave does not use.
            Body::DelayReq { .. } | Body::Management(_) | Body::Other(_) => {}
        }
    }

    /// Takes the time stamp of the departure of an event message.
    pub fn handle_sent(&mut self, stamp: StampId, departure: Timestamp) {
        if self.measurement.departed(stamp, departure) {
            self.complete();
        }
    }

    /// Ends the slave: cancels the grants of a unicast master.
    pub fn stop(&mut self) {
        let cancels = self.negotiation.as_mut().map(Negotiation::cancel_all);
        if let Some(cancels) = cancels.filter(|cancels| !cancels.is_empty()) {
            self.send_signaling(cancels);
        }
    }

    /// Returns the next output, until there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn announce(&mut self, now: Instant, from: Address, header: &Header, announce: Announce) {
        self.counters.announce += 1;
        let is_own = announce.grandmaster == self.options.identity.clock;
        if is_own || announce.steps_removed >= STEPS_REMOVED_MAX {
            return;
        }
        let interval = match &self.negotiation {
            // Whatever the header has: ptp4l sends its multicast interval.
            Some(negotiation) => negotiation.announce_interval(),
            None => LogInterval::from_header(header.log_interval).unwrap_or(LogInterval::SECOND),
        };
        if !self.masters.announce(now, from, header, announce, interval) {
            self.counters.other_port += 1;
        }
        self.choose_parent(now);
    }

    /// Follows the best master of those that announce themselves.
    fn choose_parent(&mut self, now: Instant) {
        let best = self.masters.best().map(Parent::new);
        let before = std::mem::replace(&mut self.parent, best);
        let key = |parent: &Parent| (parent.port, parent.grandmaster(), parent.utc_offset);
        if best.as_ref().map(key) == before.as_ref().map(key) {
            return;
        }
        self.outputs.push_back(Output::Parent(best));
        // Times of another timescale must not meet in one exchange.
        self.measurement = Measurement::default();
        if best.map(|parent| parent.port) != before.map(|parent| parent.port) {
            self.delay_interval = self.options.delay_interval;
            if let Some(negotiation) = &mut self.negotiation {
                negotiation.parent_changed(now, best.is_some());
            }
        }
        self.next_delay_req = self.random_delay_req_time(now);
        if best.is_some() {
            // Asks a unicast master for the other messages at once.
            self.handle_timer(now);
        }
    }

    /// Returns a time from now to two intervals later (9.5.11.2), so that not all slaves of a master
    /// answer the same Sync.
    fn random_delay_req_time(&mut self, now: Instant) -> Instant {
        // The generator SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = self.random;
        random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        let span = self.delay_interval.times(2).as_nanos();
        let wait = (u128::from(random) * u128::from(span)) >> 64;
        now.saturating_add(Duration::from_nanos(wait as u64))
    }

    fn signaling(&mut self, now: Instant, target: PortIdentity, tlvs: &[Tlv]) {
        if target != self.options.identity && target != PortIdentity::ALL {
            self.counters.other_port += 1;
            return;
        }
        let Some(negotiation) = &mut self.negotiation else { return };
        let mut answers = Vec::new();
        for tlv in tlvs {
            match *tlv {
                Tlv::Grant { kind, log_interval, seconds } => {
                    let grant = (kind, log_interval, seconds);
                    if negotiation.grant(now, self.parent.is_some(), grant) {
                        self.counters.grants += 1;
                    } else {
                        self.counters.refusals += 1;
                    }
                }
                Tlv::Cancel { kind } => {
                    negotiation.cancelled(now, kind);
                    answers.push(Tlv::AcknowledgeCancel { kind });
                }
                Tlv::Request { .. } | Tlv::AcknowledgeCancel { .. } => {}
            }
        }
        if !answers.is_empty() {
            self.send_signaling(answers);
        }
    }

    fn measure(&mut self, now: Instant, header: &Header, body: &Body, arrival: Option<Timestamp>) {
        let Some(parent) = self.parent.filter(|parent| parent.port == header.source) else {
            self.counters.other_port += 1;
            return;
        };
        let departure = |origin: &PtpTime, correction: Correction| {
            Some(parent.to_timestamp(*origin)? + correction.to_nanos())
        };
        let is_matched = match body {
            Body::Sync { origin } => {
                self.counters.sync += 1;
                let Some(arrival) = arrival else {
                    self.counters.missing_stamps += 1;
                    return;
                };
                if header.flags.has(Flags::TWO_STEP) {
                    self.measurement.sync(header.sequence, arrival, header.correction);
                } else if let Some(departure) = departure(origin, header.correction) {
                    self.measurement.one_step(header.sequence, departure, arrival);
                }
                if self.next_delay_req <= now {
                    self.send_delay_req(now, header.sequence);
                }
                true
            }
            Body::FollowUp { origin } => {
                self.counters.follow_up += 1;
                let Some(origin) = parent.to_timestamp(*origin) else { return };
                self.measurement.follow_up(header.sequence, origin, header.correction)
            }
            Body::DelayResp { receive, requesting } => {
                if *requesting != self.options.identity {
                    // Multicast answers to other slaves are usual.
                    return;
                }
                self.counters.delay_resp += 1;
                if self.negotiation.is_none()
                    && let Some(interval) = LogInterval::from_header(header.log_interval)
                {
                    self.delay_interval = interval;
                }
                // The correction is the time that transparent clocks held the request, so it
                // arrived earlier without them.
                let Some(receive) = parent.to_timestamp(*receive) else { return };
                let correction = header.correction.to_nanos();
                self.measurement.response(header.sequence, receive + correction.saturating_neg())
            }
            _ => return,
        };
        self.counters.unmatched += u64::from(!is_matched);
        self.complete();
    }

    fn complete(&mut self) {
        if let Some(exchange) = self.measurement.exchange() {
            self.counters.exchanges += 1;
            self.outputs.push_back(Output::Exchange(exchange));
        }
    }

    /// Answers a Sync with a Delay_Req at once, so that the clocks do not drift in between.
    fn send_delay_req(&mut self, now: Instant, sync: u16) {
        if let Some(negotiation) = &self.negotiation {
            // Without a grant, the master does not answer.
            let Some(interval) = negotiation.delay_interval(now) else { return };
            self.delay_interval = interval;
        }
        self.next_delay_req = self.random_delay_req_time(now);
        let stamp = StampId(self.next_stamp);
        self.next_stamp += 1;
        let sequence = self.delay_req_sequence;
        self.delay_req_sequence = sequence.wrapping_add(1);
        self.counters.delay_req += 1;
        if !self.measurement.request(stamp, sequence, sync) {
            self.counters.unanswered += 1;
        }
        let body = Body::DelayReq { origin: PtpTime::default() };
        self.send(sequence, body, Some(stamp));
    }

    fn send_signaling(&mut self, tlvs: Vec<Tlv>) {
        let target = self.parent.map_or(PortIdentity::ALL, |parent| parent.port);
        let sequence = self.signaling_sequence;
        self.signaling_sequence = sequence.wrapping_add(1);
        self.send(sequence, Body::Signaling { target, tlvs }, None);
    }

    fn send(&mut self, sequence: u16, body: Body, stamp: Option<StampId>) {
        let (to, flags) = match &self.negotiation {
            Some(negotiation) => (Destination::Unicast(negotiation.master), Flags::UNICAST),
            None => (Destination::Multicast, Flags::default()),
        };
        let header = Header {
            domain: self.options.domain,
            flags,
            correction: Correction::default(),
            source: self.options.identity,
            sequence,
            log_interval: LogInterval::UNSPECIFIED,
        };
        let bytes = Message { header, body }.to_bytes();
        self.outputs.push_back(Output::Send(Transmission { to, bytes, stamp }));
    }
}
