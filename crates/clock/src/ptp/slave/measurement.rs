//! Matching of the messages of one measurement.

use crate::exchange::Exchange;
use crate::ptp::output::StampId;
use crate::ptp::time::Correction;
use crate::timestamp::Timestamp;

/// One direction of a measurement: departure and arrival of a message.
#[derive(Clone, Copy, Debug)]
struct Trip {
    /// Number of the Sync, which the slave answers with a Delay_Req.
    sync: u16,
    departure: Timestamp,
    arrival: Timestamp,
}

/// The newest Sync, and the Delay_Req that answers it.
///
/// Both must be close in time: in between, the clocks drift, by 50 us in a second at 50 ppm.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    /// A two-step Sync without its Follow_Up: number, arrival, correction.
    sync: Option<(u16, Timestamp, Correction)>,
    /// A Follow_Up without its Sync, as both may overtake each other: number, departure of the
    /// Sync, correction.
    follow_up: Option<(u16, Timestamp, Correction)>,
    /// A Delay_Req without its departure or its Delay_Resp.
    request: Option<Request>,
    /// From the master to the slave.
    forward: Option<Trip>,
    /// From the slave to the master.
    backward: Option<Trip>,
}

/// A Delay_Req on its way.
#[derive(Clone, Copy, Debug)]
struct Request {
    stamp: StampId,
    sequence: u16,
    sync: u16,
    departure: Option<Timestamp>,
    arrival: Option<Timestamp>,
}

impl Measurement {
    /// Takes a Sync of a one-step master, with its corrected departure.
    pub(super) fn one_step(&mut self, sync: u16, departure: Timestamp, arrival: Timestamp) {
        self.forward = Some(Trip { sync, departure, arrival });
    }

    /// Takes a Sync of a two-step master.
    pub(super) fn sync(&mut self, sequence: u16, arrival: Timestamp, correction: Correction) {
        // The network may duplicate messages; the first copy is the one with the least delay.
        if self.sync.is_none_or(|(known, ..)| known != sequence) {
            self.sync = Some((sequence, arrival, correction));
        }
        self.join();
    }

    /// Takes a Follow_Up with the departure of its Sync. Returns whether it matches the last Sync, or
    /// comes before its Sync.
    pub(super) fn follow_up(
        &mut self,
        sequence: u16,
        departure: Timestamp,
        correction: Correction,
    ) -> bool {
        self.follow_up = Some((sequence, departure, correction));
        let is_expected = self.sync.is_none_or(|(sync, ..)| {
            // Later numbers come before their Sync; earlier ones are late.
            sequence.wrapping_sub(sync) < u16::MAX / 2
        });
        self.join();
        is_expected
    }

    fn join(&mut self) {
        let (Some((sync, arrival, of_sync)), Some((follow_up, departure, of_follow_up))) =
            (self.sync, self.follow_up)
        else {
            return;
        };
        if sync == follow_up {
            (self.sync, self.follow_up) = (None, None);
            // Fractions of a nanosecond add up before they are rounded.
            let correction = of_sync.plus(of_follow_up).to_nanos();
            self.forward = Some(Trip { sync, departure: departure + correction, arrival });
        }
    }

    /// Starts a Delay_Req that answers a Sync. Returns whether the last one was complete.
    pub(super) fn request(&mut self, stamp: StampId, sequence: u16, sync: u16) -> bool {
        let request = Request { stamp, sequence, sync, departure: None, arrival: None };
        self.request.replace(request).is_none()
    }

    /// Takes the departure of a Delay_Req. Returns whether it is the last one.
    pub(super) fn departed(&mut self, stamp: StampId, departure: Timestamp) -> bool {
        let Some(request) = self.request.as_mut().filter(|request| request.stamp == stamp) else {
            return false;
        };
        request.departure = Some(departure);
        self.answered();
        true
    }

    /// Takes a Delay_Resp with the corrected arrival. Returns whether it answers the last Delay_Req.
    pub(super) fn response(&mut self, sequence: u16, arrival: Timestamp) -> bool {
        let matches = |request: &&mut Request| request.sequence == sequence;
        let Some(request) = self.request.as_mut().filter(matches) else { return false };
        // The first copy is the answer.
        request.arrival.get_or_insert(arrival);
        self.answered();
        true
    }

    fn answered(&mut self) {
        let Some(Request { sync, departure: Some(departure), arrival: Some(arrival), .. }) =
            self.request
        else {
            return;
        };
        self.request = None;
        self.backward = Some(Trip { sync, departure, arrival });
    }

    /// Returns an exchange if both directions are complete.
    pub(super) fn exchange(&mut self) -> Option<Exchange> {
        let (forward, backward) = (self.forward?, self.backward?);
        if forward.sync != backward.sync {
            return None;
        }
        (self.forward, self.backward) = (None, None);
        Some(Exchange {
            t1: backward.departure,
            t2: backward.arrival,
            t3: forward.departure,
            t4: forward.arrival,
        })
    }
}
