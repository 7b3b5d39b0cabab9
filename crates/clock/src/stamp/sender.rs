//! Session sender: sends requests and collects exchanges.

use std::collections::VecDeque;

use super::packet::{ErrorEstimate, Reply, Request};
use crate::exchange::Exchange;
use crate::timestamp::Timestamp;

/// Number of requests whose replies may still arrive.
const OUTSTANDING_MAX: usize = 1_024;

/// A session of requests to one reflector.
#[derive(Debug)]
pub struct Sender {
    session: u16,
    next: u32,
    /// Requests in the order of their numbers.
    outstanding: VecDeque<Outstanding>,
    counters: SenderCounters,
    /// Number of the last reply, by the reflector.
    last_reply: Option<u32>,
    /// Whether the reflector reports exact departures.
    follows_up: bool,
    complete: Vec<Exchange>,
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Requests.
    pub sent: u64,
    /// Replies, without duplicates.
    pub received: u64,
    /// Replies to a request that had one already.
    pub duplicated: u64,
    /// Packets that are no replies of this session, or whose request is too old.
    pub unmatched: u64,
    /// Replies that the reflector sent and that did not arrive, if it counts its replies.
    pub lost_backward: u64,
    /// Whether the reflector counts its replies: then losses of both directions are known.
    pub is_stateful: bool,
}

impl SenderCounters {
    /// Returns the requests without a reply.
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// A request that was sent.
#[derive(Debug)]
struct Outstanding {
    sequence: u32,
    /// Departure as known when the request was built, or exactly.
    sent: Timestamp,
    is_sent_exact: bool,
    reply: Option<Replied>,
}

#[derive(Clone, Copy, Debug)]
struct Replied {
    sequence: u32,
    received: Timestamp,
    arrived: Timestamp,
    is_taken: bool,
}

impl Sender {
    /// Creates a session with this identifier, which is not 0.
    pub fn new(session: u16) -> Self {
        Self {
            session,
            next: 0,
            outstanding: VecDeque::with_capacity(OUTSTANDING_MAX),
            counters: SenderCounters::default(),
            last_reply: None,
            follows_up: false,
            complete: Vec::new(),
        }
    }

    /// Returns the next request and its number, to be sent now.
    pub fn request(&mut self, now: Timestamp, error: ErrorEstimate) -> (u32, Vec<u8>) {
        let sequence = self.next;
        self.next = self.next.wrapping_add(1);
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.outstanding.pop_front();
        }
        let request = Outstanding { sequence, sent: now, is_sent_exact: false, reply: None };
        self.outstanding.push_back(request);
        self.counters.sent += 1;
        (sequence, Request { sequence, sent: now, error, session: self.session }.encode())
    }

    /// Records the exact departure of a request. It must come before the reply to the next one.
    pub fn departed(&mut self, sequence: u32, at: Timestamp) {
        if let Some(request) = self.find(sequence) {
            request.sent = at;
            request.is_sent_exact = true;
        }
    }

    /// Records a packet that arrived at `at`.
    pub fn received(&mut self, bytes: &[u8], at: Timestamp) {
        let reply = Reply::decode(bytes, at);
        // A reflector of TWAMP Light has zero in place of the session.
        let reply = reply.filter(|it| it.session == self.session || it.session == 0);
        let Some(reply) = reply else {
            self.counters.unmatched += 1;
            return;
        };
        let Some(request) = self.find(reply.request.sequence) else {
            self.counters.unmatched += 1;
            return;
        };
        if request.reply.is_some() {
            self.counters.duplicated += 1;
            return;
        }
        let Reply { sequence, received, sent, .. } = reply;
        let replied = Replied { sequence, received, arrived: at, is_taken: false };
        request.reply = Some(replied);
        self.counters.received += 1;
        self.count_replies(&reply);
        self.follows_up |= reply.follows_up;
        if let Some(follow_up) = reply.follow_up {
            self.complete_with(follow_up.sequence, follow_up.sent);
        } else if !reply.follows_up {
            // The departure in the reply is the best there is.
            self.complete_with(sequence, sent);
        }
    }

    /// Returns the exchanges that are complete since the last call, in the order of completion.
    pub fn exchanges(&mut self) -> Vec<Exchange> {
        std::mem::take(&mut self.complete)
    }

    /// Returns the counters.
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// Returns whether the reflector reports exact departures. Otherwise its time stamps include the
    /// time until its process has sent the reply.
    pub const fn follows_up(&self) -> bool {
        self.follows_up
    }

    fn find(&mut self, sequence: u32) -> Option<&mut Outstanding> {
        let place = sequence.wrapping_sub(self.outstanding.front()?.sequence);
        self.outstanding.get_mut(usize::try_from(place).ok()?)
    }

    /// Counts the replies that did not arrive. A reflector without a state copies the number of the
    /// request instead of counting.
    fn count_replies(&mut self, reply: &Reply) {
        if reply.sequence != reply.request.sequence {
            self.counters.is_stateful = true;
        }
        let gap = self
            .last_reply
            .map_or(reply.sequence, |last| reply.sequence.wrapping_sub(last.wrapping_add(1)));
        if gap < OUTSTANDING_MAX as u32 {
            self.counters.lost_backward += u64::from(gap);
            self.last_reply = Some(reply.sequence);
        } else {
            // A late reply, which counted as lost.
            self.counters.lost_backward = self.counters.lost_backward.saturating_sub(1);
        }
    }

    /// Completes the exchange whose reply has this number of the reflector and left at `sent`.
    fn complete_with(&mut self, sequence: u32, sent: Timestamp) {
        let with = |it: &Outstanding| it.reply.is_some_and(|reply| reply.sequence == sequence);
        let Some(request) = self.outstanding.iter_mut().rev().find(|it| with(it)) else { return };
        let (t1, is_exact) = (request.sent, request.is_sent_exact);
        if let Some(reply) = request.reply.as_mut().filter(|reply| !reply.is_taken && is_exact) {
            reply.is_taken = true;
            self.complete.push(Exchange { t1, t2: reply.received, t3: sent, t4: reply.arrived });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::Reflector;
    use super::*;

    /// A session over a path that takes 1,000 ns. The far clock is ahead by `AHEAD` ns.
    struct Session {
        sender: Sender,
        reflector: Reflector,
        now: i64,
    }

    const AHEAD: i64 = 5_000_000;

    enum Fate {
        Arrives,
        RequestIsLost,
        ReplyIsLost,
        ReplyComesTwice,
    }

    fn near(time: i64) -> Timestamp {
        Timestamp::from_nanos(1_795_000_000_000_000_000 + time)
    }

    fn far(time: i64) -> Timestamp {
        near(time) + AHEAD
    }

    impl Session {
        fn new() -> Self {
            Self { sender: Sender::new(7), reflector: Reflector::default(), now: 0 }
        }

        fn exchange(&mut self, fate: Fate) -> Vec<Exchange> {
            let error = ErrorEstimate::new(1_000.0, false);
            self.now += 1_000_000;
            let time = self.now;
            // Built 300 ns before it leaves.
            let (sequence, bytes) = self.sender.request(near(time - 300), error);
            self.sender.departed(sequence, near(time));
            if matches!(fate, Fate::RequestIsLost) {
                return self.sender.exchanges();
            }
            let from: SocketAddr = "192.0.2.1:5000".parse().unwrap();
            let (t2, built) = (far(time + 1_000), far(time + 1_400));
            let reply = self.reflector.reply(&bytes, from, t2, Some(64), (built, error)).unwrap();
            self.reflector.departed(reply.to, reply.session, reply.sequence, far(time + 2_000));
            let copies = match fate {
                Fate::ReplyIsLost => 0,
                Fate::ReplyComesTwice => 2,
                _ => 1,
            };
            (0..copies).for_each(|_| self.sender.received(&reply.bytes, near(time + 3_000)));
            self.sender.exchanges()
        }
    }

    #[test]
    fn exchange_has_exact_departures_and_is_complete_one_request_later() {
        let mut session = Session::new();
        assert_eq!(session.exchange(Fate::Arrives), []);
        for number in 1..10 {
            let sent = number * 1_000_000;
            let exchange = Exchange {
                t1: near(sent),
                t2: far(sent + 1_000),
                t3: far(sent + 2_000),
                t4: near(sent + 3_000),
            };
            assert_eq!(session.exchange(Fate::Arrives), [exchange], "{number}");
            assert_eq!(exchange.round_trip(), 2_000);
        }
        assert!(session.sender.follows_up());
    }

    #[test]
    fn losses_of_each_direction_and_duplicates_are_counted() {
        let mut session = Session::new();
        session.exchange(Fate::Arrives);
        session.exchange(Fate::RequestIsLost);
        session.exchange(Fate::ReplyIsLost);
        session.exchange(Fate::ReplyIsLost);
        // The follow-up belongs to a reply that is lost.
        assert_eq!(session.exchange(Fate::Arrives), []);
        assert_eq!(session.exchange(Fate::ReplyComesTwice).len(), 1);
        let counters = *session.sender.counters();
        let expected = SenderCounters {
            sent: 6,
            received: 3,
            duplicated: 1,
            unmatched: 0,
            lost_backward: 2,
            is_stateful: true,
        };
        assert_eq!((counters, counters.lost()), (expected, 3));
    }

    #[test]
    fn foreign_and_damaged_packets_are_unmatched() {
        let mut session = Session::new();
        session.exchange(Fate::Arrives);
        let mut other = Session::new();
        other.sender = Sender::new(8);
        let (_, bytes) = other.sender.request(near(0), ErrorEstimate::new(1.0, false));
        session.sender.received(&bytes, near(9));
        session.sender.received(&[0; 60], near(9));
        session.sender.received(&[1, 2, 3], near(9));
        session.sender.received(&[0xff; 60], near(9));
        let counters = *session.sender.counters();
        assert_eq!((counters.received, counters.duplicated, counters.unmatched), (1, 1, 3));
    }

    #[test]
    fn reflector_without_follow_ups_completes_exchanges_at_once() {
        let mut sender = Sender::new(7);
        let error = ErrorEstimate::new(1_000.0, false);
        for number in 0..3 {
            let time = i64::from(number) * 1_000_000;
            let (sequence, request) = sender.request(near(time), error);
            sender.departed(sequence, near(time));
            let decoded = Request::decode(&request, near(time)).unwrap();
            let reply = Reply {
                sequence,
                sent: far(time + 2_000),
                error,
                session: 0,
                received: far(time + 1_000),
                request: decoded,
                ttl: 64,
                follows_up: false,
                follow_up: None,
            };
            sender.received(&reply.encode(&request)[..41], near(time + 3_000));
            assert_eq!(sender.exchanges().len(), 1);
        }
        let counters = sender.counters();
        assert!(!sender.follows_up() && !counters.is_stateful);
        assert_eq!(counters.lost(), 0);
    }
}
