//! How fast the network delivers what is sent (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! With everything that is sent it is remembered how much had been delivered by then, and when. When
//! it arrives, what was delivered since over the time that took is a sample of the rate.

use alloc::collections::VecDeque;

use crate::tcp::ranges::SequenceRange;
use crate::tcp::sequence::SequenceNumber;

/// The most parts of what is in flight that are told apart: where there are more, what is sent
/// counts with what was sent before it.
const FLIGHTS_MAX: usize = 4_096;

/// What was sent at one time, up to `end` from the end of the one before it; times are in
/// microseconds, and the names of the draft are those of a packet P.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Flight {
    end: SequenceNumber,
    /// P.sent_time.
    at: u64,
    /// P.delivered.
    delivered: u64,
    /// P.delivered_time.
    delivered_at: u64,
    /// P.first_sent_time.
    first_sent_at: u64,
    /// P.is_app_limited.
    is_app_limited: bool,
    /// Whether it was sent before.
    is_again: bool,
}

/// "rs" of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct RateSample {
    /// Bytes delivered over the interval.
    pub(super) bytes: u64,
    /// The interval, in microseconds.
    pub(super) interval: u64,
    /// How much had been delivered when it began.
    pub(super) prior_delivered: u64,
    pub(super) is_app_limited: bool,
}

/// What an acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Delivered {
    /// Bytes, each counted once.
    pub(super) bytes: u32,
    pub(super) sample: Option<RateSample>,
    /// How long ago the newest of it was sent, in microseconds; nothing of what was sent again.
    pub(super) round_trip: Option<u32>,
}

/// What is known of deliveries.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Delivery {
    /// All that is in flight, in order.
    flights: VecDeque<Flight>,
    /// C.delivered, in bytes.
    pub(super) total: u64,
    /// C.delivered_time.
    pub(super) at: u64,
    /// C.first_sent_time.
    first_sent_at: u64,
    /// C.app_limited: until so much is delivered the program was the limit; 0: it was not.
    app_limited: u64,
    /// Behind what was delivered, if all of it were in order.
    counted: Option<SequenceNumber>,
    /// When there was nothing more to send, and room for it.
    dry_at: Option<u64>,
}

impl Delivery {
    /// There is nothing to send, though there were room for it.
    pub(in crate::tcp) fn note_dry(&mut self, now: u64) {
        self.dry_at.get_or_insert(now);
    }

    /// There is something to send, whether it may leave or not, with so many bytes in flight.
    pub(in crate::tcp) fn note_ready(&mut self, in_flight: u32, now: u64) {
        // The program came late: what it has now could have been sent before.
        if self.dry_at.take().is_some_and(|at| at < now) {
            self.limit_by_program(in_flight);
        }
    }

    #[cfg(test)]
    pub(in crate::tcp) const fn is_limited_by_program(&self) -> bool {
        self.app_limited > 0
    }

    /// Notes that a range leaves, with so many bytes in flight before. Returns whether that is a
    /// new beginning after the program had nothing to send.
    pub(in crate::tcp) fn note_sent(
        &mut self,
        range: SequenceRange,
        is_again: bool,
        unacknowledged: SequenceNumber,
        in_flight: u32,
        now: u64,
    ) -> bool {
        let is_beginning = in_flight == 0;
        if is_beginning {
            (self.first_sent_at, self.at) = (now, now);
        }
        self.counted.get_or_insert(unacknowledged);
        self.advance(unacknowledged);
        self.record(
            range,
            Flight {
                end: range.end,
                at: now,
                delivered: self.total,
                delivered_at: self.at,
                first_sent_at: self.first_sent_at,
                is_app_limited: self.app_limited > 0,
                is_again,
            },
        );
        is_beginning && self.app_limited > 0
    }

    /// Samples of what is in flight say what was sent, not what could have been.
    pub(super) fn limit_by_program(&mut self, in_flight: u32) {
        self.app_limited = (self.total + u64::from(in_flight)).max(1);
    }

    /// Of what of a range arrived, the part that was sent last.
    pub(in crate::tcp) fn newest(
        &self,
        range: SequenceRange,
        unacknowledged: SequenceNumber,
    ) -> Option<Flight> {
        let first = self.flights.partition_point(|it| !range.start.is_before(it.end));
        let before = first.checked_sub(1).and_then(|before| self.flights.get(before));
        let mut start = before.map_or(unacknowledged, |it| it.end);
        let overlapping = self.flights.range(first..).take_while(|it| {
            let overlaps = start.is_before(range.end);
            start = it.end;
            overlaps
        });
        overlapping.copied().max_by_key(Flight::order)
    }

    /// Notes that all before a number has arrived, and so many bytes beyond it; the newest of what
    /// has arrived now was sent as `newest`. Samples over less than the least round trip are none.
    pub(in crate::tcp) fn note_delivered(
        &mut self,
        unacknowledged: SequenceNumber,
        beyond: u32,
        newest: Option<Flight>,
        least_round_trip: u32,
        now: u64,
    ) -> Delivered {
        self.advance(unacknowledged);
        let Some(counted) = &mut self.counted else { return Delivered::default() };
        // After a timeout what the peer told of is forgotten, and does not count a second time.
        let reached = unacknowledged + beyond;
        let bytes = reached.distance_from(*counted).max(0).cast_unsigned();
        *counted += bytes;
        if bytes > 0 {
            self.total += u64::from(bytes);
            self.at = now;
        }
        if self.total > self.app_limited {
            self.app_limited = 0;
        }
        let Some(flight) = newest else { return Delivered { bytes, ..Delivered::default() } };
        self.first_sent_at = flight.at;
        let sending = flight.at.saturating_sub(flight.first_sent_at);
        let interval = sending.max(now.saturating_sub(flight.delivered_at));
        // "interval < min_rtt": what was acknowledged may be of an earlier transmission.
        let is_possible = interval > 0 && interval >= u64::from(least_round_trip);
        let sample = RateSample {
            bytes: self.total.saturating_sub(flight.delivered),
            interval,
            prior_delivered: flight.delivered,
            is_app_limited: flight.is_app_limited,
        };
        let took = u32::try_from(now.saturating_sub(flight.at)).unwrap_or(u32::MAX);
        Delivered {
            bytes,
            sample: is_possible.then_some(sample),
            round_trip: (!flight.is_again).then_some(took),
        }
    }

    fn advance(&mut self, to: SequenceNumber) {
        while self.flights.front().is_some_and(|it| !to.is_before(it.end)) {
            self.flights.pop_front();
        }
    }

    fn record(&mut self, range: SequenceRange, flight: Flight) {
        let has_room = self.flights.len() + 2 < FLIGHTS_MAX;
        match self.flights.back_mut() {
            // Behind all others.
            Some(last) if !range.start.is_before(last.end) => {
                let is_same = Flight { end: last.end, ..flight } == *last;
                if is_same || !has_room {
                    last.end = range.end;
                    return;
                }
            }
            Some(_) if has_room => {
                self.split(range.start);
                self.split(range.end);
                let first = self.flights.partition_point(|it| !range.start.is_before(it.end));
                let behind = self.flights.partition_point(|it| !range.end.is_before(it.end));
                self.flights.drain(first..behind);
                return self.flights.insert(first, flight);
            }
            Some(_) => return,
            None => {}
        }
        self.flights.push_back(flight);
    }

    /// Makes a number the end of a part.
    fn split(&mut self, at: SequenceNumber) {
        let place = self.flights.partition_point(|it| it.end.is_before(at));
        let Some(flight) = self.flights.get(place).copied() else { return };
        if flight.end != at {
            self.flights.insert(place, Flight { end: at, ..flight });
        }
    }
}

impl Flight {
    /// Which of several was sent last.
    pub(in crate::tcp) const fn order(&self) -> (u64, u64) {
        (self.delivered, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: SequenceNumber = SequenceNumber(u32::MAX - 2_000);

    fn range(from: u32, to: u32) -> SequenceRange {
        SequenceRange { start: START + from, end: START + to }
    }

    /// What is sent in bursts, and acknowledged up to a number or told of.
    struct Flow {
        delivery: Delivery,
        acknowledged: u32,
        sent: u32,
        told: u32,
    }

    impl Flow {
        fn new() -> Self {
            Self { delivery: Delivery::default(), acknowledged: 0, sent: 0, told: 0 }
        }

        fn send(&mut self, bytes: u32, now: u64) -> bool {
            let in_flight = self.sent - self.acknowledged;
            let new = range(self.sent, self.sent + bytes);
            self.sent += bytes;
            self.delivery.note_ready(in_flight, now);
            self.delivery.note_sent(new, false, START + self.acknowledged, in_flight, now)
        }

        fn acknowledge(&mut self, to: u32, now: u64) -> Delivered {
            let newest =
                self.delivery.newest(range(self.acknowledged, to), START + self.acknowledged);
            self.acknowledged = to;
            self.delivery.note_delivered(START + to, self.told, newest, 1_000, now)
        }
    }

    fn rate(delivered: Delivered) -> u64 {
        let sample = delivered.sample.expect("a sample");
        sample.bytes * 1_000_000 / sample.interval
    }

    #[test]
    fn the_rate_is_what_was_delivered_in_a_round_trip() {
        // A segment of 1000 bytes each millisecond, for which 10 ms are taken.
        let mut flow = Flow::new();
        for now in 0..10 {
            flow.send(1_000, now * 1_000);
        }
        for now in 10..100 {
            flow.send(1_000, now * 1_000);
            let delivered = flow.acknowledge((now as u32 - 9) * 1_000, now * 1_000);
            assert_eq!((delivered.bytes, delivered.round_trip), (1_000, Some(10_000)));
            if now > 20 {
                assert_eq!(rate(delivered), 1_000_000, "at {now} ms");
            }
        }
    }

    #[test]
    fn acknowledgements_that_come_together_do_not_make_it_faster_than_it_was_sent() {
        let mut flow = Flow::new();
        for now in 0..10 {
            flow.send(1_000, now * 1_000);
        }
        // All of them at once; what was sent took 9 ms, the first 19 ms to be heard of.
        let delivered = flow.acknowledge(10_000, 19_000);
        assert_eq!(delivered.bytes, 10_000);
        assert_eq!(rate(delivered), 10_000 * 1_000_000 / 19_000);
        // What is acknowledged sooner than any round trip was is no sample.
        flow.send(1_000, 20_000);
        let delivered = flow.acknowledge(11_000, 20_500);
        assert_eq!((delivered.bytes, delivered.sample), (1_000, None));
    }

    #[test]
    fn samples_of_what_the_program_left_out_are_marked_until_that_is_delivered() {
        let mut flow = Flow::new();
        assert!(!flow.send(2_000, 0));
        flow.delivery.note_dry(0);
        let is_limited = |delivered: Delivered| delivered.sample.unwrap().is_app_limited;
        assert!(!is_limited(flow.acknowledge(2_000, 10_000)));
        // It comes late, after a pause.
        assert!(flow.send(2_000, 50_000));
        assert!(is_limited(flow.acknowledge(4_000, 60_000)));
        assert!(!flow.send(2_000, 60_000));
        assert!(!is_limited(flow.acknowledge(6_000, 70_000)));
        // What comes at once is not late.
        flow.send(2_000, 70_000);
        flow.delivery.note_dry(70_000);
        flow.send(2_000, 70_000);
        assert!(!is_limited(flow.acknowledge(10_000, 80_000)));
    }

    #[test]
    fn what_the_peer_told_of_counts_once_even_if_that_is_forgotten() {
        let mut flow = Flow::new();
        flow.send(10_000, 0);
        flow.told = 6_000;
        assert_eq!(flow.acknowledge(1_000, 10_000).bytes, 7_000);
        // A timeout: the peer may have thrown it away.
        flow.told = 0;
        assert_eq!(flow.acknowledge(3_000, 20_000).bytes, 0);
        assert_eq!(flow.acknowledge(10_000, 30_000).bytes, 3_000);
        assert_eq!(flow.delivery.total, 10_000);
    }

    #[test]
    fn what_is_sent_again_was_sent_then_and_tells_no_round_trip() {
        let mut flow = Flow::new();
        for now in 0..5 {
            flow.send(1_000, now * 1_000);
        }
        flow.delivery.note_sent(range(1_500, 2_500), true, START, 5_000, 20_000);
        assert_eq!(flow.delivery.flights.len(), 6);
        let newest = |from, to| flow.delivery.newest(range(from, to), START).unwrap();
        assert_eq!((newest(0, 1_500).at, newest(0, 1_500).is_again), (1_000, false));
        assert_eq!((newest(0, 1_501).at, newest(2_400, 5_000).is_again), (20_000, true));
        assert_eq!((newest(2_500, 3_000).at, newest(4_999, 5_000).at), (2_000, 4_000));
        let delivered = flow.acknowledge(2_500, 30_000);
        assert_eq!((delivered.bytes, delivered.round_trip), (2_500, None));
    }

    #[test]
    fn parts_in_flight_are_no_more_than_so_many() {
        let mut flow = Flow::new();
        for now in 0..2 * FLIGHTS_MAX as u64 {
            flow.send(10, now);
        }
        flow.delivery.note_sent(range(5, 12), true, START, flow.sent, 1_000_000);
        assert!(flow.delivery.flights.len() <= FLIGHTS_MAX);
        assert_eq!(flow.delivery.flights.back().map(|it| it.end), Some(START + flow.sent));
        assert_eq!(flow.acknowledge(flow.sent, 2_000_000).bytes, flow.sent);
    }
}
