//! Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each transmission stores the number of bytes delivered so far, and the time. When it arrives,
//! the bytes delivered since, divided by the time, are a sample of the delivery rate.

use alloc::collections::VecDeque;

use crate::tcp::ranges::SequenceRange;
use crate::tcp::sequence::SequenceNumber;

/// Maximum number of tracked parts of the flight; beyond it, new data merges with the previous
/// part.
const FLIGHTS_MAX: usize = 4_096;

/// Data sent at one time, from the end of the previous part up to `end`. Times are in microseconds;
/// the draft has the same values for a packet P.
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
    /// Whether it is a retransmission.
    is_again: bool,
}

/// Rate sample ("rs" of the draft).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct RateSample {
    /// Bytes delivered in the interval.
    pub(super) bytes: u64,
    /// Interval in microseconds.
    pub(super) interval: u64,
    /// Total bytes delivered at the start of the interval.
    pub(super) prior_delivered: u64,
    pub(super) is_app_limited: bool,
}

/// Result of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Delivered {
    /// Newly delivered bytes, each counted once.
    pub(super) bytes: u32,
    pub(super) sample: Option<RateSample>,
    /// Age of the newest delivered part in microseconds; `None` for a retransmission.
    pub(super) round_trip: Option<u32>,
}

/// Delivery state of a connection.
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Delivery {
    /// Parts of the data in flight, in order.
    flights: VecDeque<Flight>,
    /// C.delivered, in bytes.
    pub(super) total: u64,
    /// C.delivered_time.
    pub(super) at: u64,
    /// C.first_sent_time.
    first_sent_at: u64,
    /// C.app_limited: samples are application-limited until this many bytes are delivered; 0: not
    /// limited.
    app_limited: u64,
    /// Number up to which deliveries are counted, as if all of them were in order.
    counted: Option<SequenceNumber>,
    /// Time since when there was window but no data to send.
    dry_at: Option<u64>,
}

impl Delivery {
    /// Records that there is no data to send although the window has room.
    pub(in crate::tcp) fn note_no_data(&mut self, now: u64) {
        self.dry_at.get_or_insert(now);
    }

    /// Records that there is data to send, whether it may leave now or not.
    pub(in crate::tcp) fn note_ready(&mut self, in_flight: u32, now: u64) {
        // The program was late: the data could have been sent earlier.
        if self.dry_at.take().is_some_and(|at| at < now) {
            self.mark_application_limited(in_flight);
        }
    }

    #[cfg(test)]
    pub(in crate::tcp) const fn is_limited_by_program(&self) -> bool {
        self.app_limited > 0
    }

    /// Records a transmission with `in_flight` bytes outstanding before it. Returns whether it
    /// restarts after an idle period of the program.
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

    /// Marks the samples of the data in flight as application-limited.
    pub(super) fn mark_application_limited(&mut self, in_flight: u32) {
        self.app_limited = (self.total + u64::from(in_flight)).max(1);
    }

    /// Returns the last sent part among those that a delivered range covers.
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

    /// Updates the totals after an acknowledgement; `newest` is the last sent part of the delivered
    /// data. An interval shorter than the minimum round-trip time gives no sample.
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
        // After a timeout the SACK scoreboard is cleared; its bytes must not count twice.
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
        // "interval < min_rtt": the acknowledgement may be for an earlier transmission.
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
            // New data, after all other.
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

    /// Splits a part so that one ends at `at`.
    fn split(&mut self, at: SequenceNumber) {
        let place = self.flights.partition_point(|it| it.end.is_before(at));
        let Some(flight) = self.flights.get(place).copied() else { return };
        if flight.end != at {
            self.flights.insert(place, Flight { end: at, ..flight });
        }
    }
}

impl Flight {
    /// Order of transmissions: the greatest was sent last.
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

    /// A flow that is sent in bursts and acknowledged cumulatively or with SACK.
    struct Flow {
        delivery: Delivery,
        acknowledged: u32,
        sent: u32,
        sacked: u32,
    }

    impl Flow {
        fn new() -> Self {
            Self { delivery: Delivery::default(), acknowledged: 0, sent: 0, sacked: 0 }
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
            self.delivery.note_delivered(START + to, self.sacked, newest, 1_000, now)
        }
    }

    fn rate(delivered: Delivered) -> u64 {
        let sample = delivered.sample.expect("a sample");
        sample.bytes * 1_000_000 / sample.interval
    }

    #[test]
    fn rate_is_the_delivered_bytes_per_round_trip() {
        // A segment of 1000 bytes each millisecond, delivered after 10 ms.
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
    fn batched_acknowledgements_do_not_inflate_the_rate() {
        let mut flow = Flow::new();
        for now in 0..10 {
            flow.send(1_000, now * 1_000);
        }
        // One acknowledgement for all: sending took 9 ms, the first acknowledgement came after 19
        // ms.
        let delivered = flow.acknowledge(10_000, 19_000);
        assert_eq!(delivered.bytes, 10_000);
        assert_eq!(rate(delivered), 10_000 * 1_000_000 / 19_000);
        // An acknowledgement earlier than the minimum round-trip time gives no sample.
        flow.send(1_000, 20_000);
        let delivered = flow.acknowledge(11_000, 20_500);
        assert_eq!((delivered.bytes, delivered.sample), (1_000, None));
    }

    #[test]
    fn application_limited_samples_are_marked() {
        let mut flow = Flow::new();
        assert!(!flow.send(2_000, 0));
        flow.delivery.note_no_data(0);
        let is_limited = |delivered: Delivered| delivered.sample.unwrap().is_app_limited;
        assert!(!is_limited(flow.acknowledge(2_000, 10_000)));
        // The program sends late, after a pause.
        assert!(flow.send(2_000, 50_000));
        assert!(is_limited(flow.acknowledge(4_000, 60_000)));
        assert!(!flow.send(2_000, 60_000));
        assert!(!is_limited(flow.acknowledge(6_000, 70_000)));
        // Data at the same time is not late.
        flow.send(2_000, 70_000);
        flow.delivery.note_no_data(70_000);
        flow.send(2_000, 70_000);
        assert!(!is_limited(flow.acknowledge(10_000, 80_000)));
    }

    #[test]
    fn sacked_bytes_count_once_even_after_a_timeout() {
        let mut flow = Flow::new();
        flow.send(10_000, 0);
        flow.sacked = 6_000;
        assert_eq!(flow.acknowledge(1_000, 10_000).bytes, 7_000);
        // After a timeout the peer may have discarded SACKed data.
        flow.sacked = 0;
        assert_eq!(flow.acknowledge(3_000, 20_000).bytes, 0);
        assert_eq!(flow.acknowledge(10_000, 30_000).bytes, 3_000);
        assert_eq!(flow.delivery.total, 10_000);
    }

    #[test]
    fn retransmission_gives_a_rate_but_no_round_trip_sample() {
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
    fn number_of_tracked_parts_is_bounded() {
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
