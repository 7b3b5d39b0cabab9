//! Test suite for the port contract, shared by all backends.
//!
//! [`port_contract!`](crate::port_contract) creates the tests for one backend. Each test begins
//! with two newly connected ports ([`Connected`]): over a pair of rings, a veth pair or a file. No
//! other frames may be on that wire.
//!
//! The checks poll for at most [`PATIENCE`] by the ports' clock. After [`POLLS_MAX`] polls they
//! report a clock that stands still.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;

use crate::port::{FrameId, Receive, Received, StampPoint, Transmit};
use crate::time::{Duration, Instant};

/// Longest wait of a check.
pub const WAIT_MAX: Duration = Duration::from_secs(10);
/// Largest number of polls of a check.
pub const POLLS_MAX: u64 = 1 << 34;

/// A transmitting and a receiving port, connected by a wire.
pub struct PortPair<T, R> {
    /// Sending side.
    pub transmit: T,
    /// Receiving side.
    pub receive: R,
    /// Clock of both ports.
    pub now: fn() -> Instant,
    /// Frames that may be in transit, sent and not yet received, without loss.
    pub window: usize,
    /// Resources that keep the wire alive; dropped last.
    pub wire: Box<dyn Any>,
}

/// Creates a module `$name` with the contract tests for a backend.
///
/// `$connect` is a path to a function that returns `Option<Connected<T, R>>`. It prints the reason
/// and returns `None` if the backend cannot be tested here.
///
/// ```text
/// wirestorm_base::port_contract!(memory, connect);
/// ```
#[macro_export]
macro_rules! port_contract {
    ($name:ident, $connect:path) => {
        mod $name {
            // `$connect` is relative to the module that calls the macro.
            #[allow(unused_imports)]
            use super::*;

            $crate::port_contract!(@test $connect;
                frames_of_every_length_arrive_whole
                take_returns_every_buffer_once
                many_more_frames_than_buffers_arrive_in_order
                released_buffers_come_back
                frames_leave_in_send_order
                every_frame_is_in_exactly_one_counter
                an_abort_drops_queued_frames
                departure_times_are_kept
                receive_respects_the_room
                frames_in_use_are_not_overwritten
                arrival_times_are_between_send_and_receive
                stored_frames_leave_unchanged
            );

            #[test]
            #[should_panic]
            fn sending_nothing_panics() {
                let connected = $connect().expect("cannot be tested here");
                $crate::contract::send_of_length(connected, |_| 0);
            }

            #[test]
            #[should_panic]
            fn sending_more_than_the_longest_frame_panics() {
                let connected = $connect().expect("cannot be tested here");
                $crate::contract::send_of_length(connected, |length_max| length_max + 1);
            }
        }
    };
    (@test $connect:path; $($check:ident)*) => {
        $(
            #[test]
            fn $check() {
                if let Some(connected) = $connect() {
                    $crate::contract::$check(connected);
                }
            }
        )*
    };
}

/// Checks that frames of 14, 15, 60, 61, 511 and 1,514 bytes arrive unchanged. So must the longest
/// frames with and without a VLAN tag.
pub fn frames_of_every_length_arrive_whole<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    let (untagged_longest, longest) = (exchange.untagged_length_max(), exchange.frame_length_max());
    assert!(untagged_longest <= longest);
    for length in [14, 15, 60, 61, 511, 1514, untagged_longest, longest] {
        if length <= longest {
            exchange.send(length);
            exchange.receive_all();
        }
    }
    exchange.finish();
}

/// Checks that `take` returns as many buffers as the capabilities state, then `None`, repeatedly.
pub fn take_returns_every_buffer_once<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    let frames = exchange.transmit.capabilities().frames;
    for _ in 0..3 {
        let mut taken = exchange.take_all();
        assert_eq!(taken.len(), frames, "buffers");
        assert_eq!(exchange.transmit.take(), None);
        // After the release of one buffer, exactly one can be taken.
        let released = taken.pop().expect("a port has buffers");
        exchange.transmit.release(released);
        taken.extend(exchange.transmit.take());
        assert_eq!(taken.len(), frames, "buffers after one was released");
        for frame in taken {
            exchange.send_taken(frame, 60);
        }
        exchange.receive_all();
        exchange.flush_until_idle();
    }
    exchange.finish();
}

/// Sends more than four times as many frames as there are buffers, without a pause.
pub fn many_more_frames_than_buffers_arrive_in_order<T: Transmit, R: Receive>(
    connected: PortPair<T, R>,
) {
    let mut exchange = Exchange::new(connected);
    let frames = exchange.transmit.capabilities().frames as u64;
    for number in 0..4 * frames + 7 {
        exchange.send(60 + (number % 200) as usize);
    }
    exchange.receive_all();
    exchange.finish();
}

/// Checks that `release` neither loses nor sends buffers.
pub fn released_buffers_come_back<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    let frames = exchange.transmit.capabilities().frames;
    let before = exchange.transmit.transmitted();
    for _ in 0..3 {
        let taken = exchange.take_all();
        assert_eq!(taken.len(), frames, "buffers");
        taken.into_iter().for_each(|frame| exchange.transmit.release(frame));
        exchange.flush();
        assert_eq!(exchange.transmit.in_flight(), 0);
    }
    assert_eq!(exchange.transmit.transmitted(), before);
    exchange.send(60);
    exchange.receive_all();
    exchange.finish();
}

/// Checks that frames leave in the order of `send`, not of `take`. The release of a buffer in
/// between has no effect.
pub fn frames_leave_in_send_order<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    for _ in 0..10 {
        let mut taken: Vec<_> = (0..8).filter_map(|_| exchange.transmit.take()).collect();
        assert_eq!(taken.len(), 8, "buffers");
        let unsent = taken.remove(3);
        exchange.transmit.release(unsent);
        while let Some(frame) = taken.pop() {
            exchange.send_taken(frame, 100);
        }
        exchange.receive_all();
    }
    exchange.finish();
}

/// Checks at any time that each frame is counted as sent, failed, unsent or in flight.
pub fn every_frame_is_in_exactly_one_counter<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    for number in 0..500 {
        exchange.send(60 + number % 64);
        exchange.assert_all_are_counted();
    }
    exchange.receive_all();
    exchange.flush_until_idle();
    let transmitted = exchange.transmit.transmitted();
    assert_eq!((transmitted.sent, transmitted.failed, transmitted.unsent), (500, 0, 0));
    assert_eq!(transmitted.sent_bytes, exchange.sent_bytes);
    let received = exchange.receive.received();
    assert_eq!((received.received, received.rx_dropped), (500, 0));
    assert_eq!(received.received_bytes, exchange.sent_bytes);
    exchange.finish();
}

/// Checks that an abort leaves nothing in flight and counts queued frames as unsent.
pub fn an_abort_drops_queued_frames<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    // If the port holds departures, these frames would leave long after the test.
    let departure = (exchange.now)() + Duration::from_secs(3_600);
    let count = exchange.window.min(32);
    for _ in 0..count {
        let frame = exchange.transmit.take().expect("a port has buffers");
        exchange.queue_frame(frame, 60, departure);
    }
    // In simulated time the flush would send them.
    let is_virtual = exchange.transmit.capabilities().departure_stamp == StampPoint::Virtual;
    if exchange.transmit.capabilities().holds_departure && !is_virtual {
        exchange.flush();
        assert_eq!(exchange.transmit.in_flight(), count);
    }
    exchange.transmit.abort();
    exchange.flush_until_idle();
    let transmitted = exchange.transmit.transmitted();
    assert_eq!(transmitted.sent + transmitted.failed + transmitted.unsent, count as u64);
    if exchange.transmit.capabilities().holds_departure {
        assert_eq!(transmitted.unsent, count as u64);
        let record = exchange.transmit.departures();
        assert_eq!(record.map(|record| record.frames), Some(0), "departures of unsent frames");
    }
    // Frames that left arrive in order; the others never arrive.
    exchange.expected_until = exchange.next_expected + transmitted.sent;
    exchange.receive_all();
    let arrived = exchange.receive.receive(64, &mut exchange.batch).expect("the port works");
    assert_eq!(arrived, 0, "aborted frames arrived");
}

/// Checks that a port that holds departures sends no frame early, keeps the order and records
/// departures. In simulated time no frame is late either.
pub fn departure_times_are_kept<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    /// Tolerance for the conversion between clocks and for their resolution.
    const EARLY: Duration = Duration::from_micros(20);
    const GAP: Duration = Duration::from_micros(200);
    let mut exchange = Exchange::new(connected);
    if !exchange.transmit.capabilities().holds_departure {
        assert_eq!(exchange.transmit.departures().map(|record| record.frames), None);
        return;
    }
    let is_virtual = exchange.transmit.capabilities().departure_stamp == StampPoint::Virtual;
    let early = if is_virtual { Duration::ZERO } else { EARLY };
    let count = exchange.window.min(50);
    let first = (exchange.now)() + Duration::from_millis(20);
    let mut due = first;
    for _ in 0..count {
        let frame = exchange.transmit.take().expect("a port has buffers");
        exchange.queue_frame(frame, 60, due);
        exchange.due.push(due.saturating_sub(early));
        due += GAP;
    }
    exchange.flush();
    exchange.receive_all();
    exchange.flush_until_idle();
    let record = exchange.transmit.departures().expect("a record of departures");
    assert_eq!(record.frames, count as u64);
    assert_eq!(record.unsent, 0);
    assert_eq!(record.gaps.count(), count as u64 - 1);
    assert!(record.first.is_some_and(|departure| departure >= first), "the first left early");
    assert!(record.last >= record.first);
    if is_virtual {
        let last = due.saturating_sub(GAP);
        assert_eq!((record.first, record.last), (Some(first), Some(last)), "departures");
        assert_eq!(exchange.last_arrival, last, "the last arrival");
    }
    // A frame that is due as soon as possible must not overtake earlier ones.
    exchange.send(60);
    exchange.receive_all();
    exchange.finish();
}

/// Checks that `receive` appends at most `room` frames.
pub fn receive_respects_the_room<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    for _ in 0..10 {
        let frame = exchange.transmit.take().expect("a port has buffers");
        exchange.queue_frame(frame, 60, Instant::ZERO);
    }
    exchange.flush();
    let mut batch = Vec::new();
    let deadline = exchange.deadline();
    for _ in 0..POLLS_MAX {
        assert_eq!(exchange.receive.receive(0, &mut batch).expect("the port works"), 0);
        let before = batch.len();
        let count = exchange.receive.receive(3, &mut batch).expect("the port works");
        assert!(count <= 3, "{count} frames with room for 3");
        assert_eq!(batch.len(), before + count, "the result is the number of appended frames");
        exchange.flush();
        if batch.len() == 10 {
            break;
        }
        assert!((exchange.now)() < deadline, "{} of 10 frames arrived", batch.len());
    }
    exchange.batch = batch;
    exchange.check_batch();
    exchange.finish();
}

/// Checks that other frames do not overwrite received frames that are not released.
pub fn frames_in_use_are_not_overwritten<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    let mut exchange = Exchange::new(connected);
    let held_count = exchange.window.min(exchange.receive.capabilities().frames / 4).min(32);
    let mut held: Vec<(Received, Vec<u8>)> = Vec::new();
    let deadline = exchange.deadline();
    for _ in 0..held_count {
        let frame = exchange.transmit.take().expect("a port has buffers");
        exchange.queue_frame(frame, 90, Instant::ZERO);
    }
    for _ in 0..POLLS_MAX {
        exchange.flush();
        let mut batch = Vec::new();
        exchange.receive.receive(held_count - held.len(), &mut batch).expect("the port works");
        for received in batch {
            let bytes = exchange.receive.frame(&received).to_vec();
            held.push((received, bytes));
        }
        if held.len() == held_count {
            break;
        }
        assert!((exchange.now)() < deadline, "{} of {held_count} arrived", held.len());
    }
    exchange.next_expected += held_count as u64;
    let others = 4 * exchange.receive.capabilities().frames.min(4096);
    (0..others).for_each(|_| exchange.send(90));
    exchange.receive_all();
    for (number, (received, bytes)) in held.into_iter().enumerate() {
        assert_eq!(exchange.receive.frame(&received), bytes, "kept frame {number} changed");
        assert_eq!(bytes, test_frame(number as u64, 90, exchange.untagged_length_max()));
        exchange.receive.release(received);
    }
    exchange.finish();
}

/// Checks that a frame arrives after its `send` and before its `receive`. Arrival times of one
/// queue never decrease.
pub fn arrival_times_are_between_send_and_receive<T: Transmit, R: Receive>(
    connected: PortPair<T, R>,
) {
    /// Tolerance for the conversion between clocks.
    const TOLERANCE: Duration = Duration::from_micros(20);
    let mut exchange = Exchange::new(connected);
    let stamp = exchange.receive.capabilities().arrival_stamp;
    if matches!(stamp, StampPoint::Hardware | StampPoint::Virtual) {
        // A hardware clock is not comparable with this one, and simulated time follows the
        // departure times.
        return;
    }
    for _ in 0..20 {
        let before = (exchange.now)().saturating_sub(TOLERANCE);
        exchange.due.resize(exchange.submitted as usize, Instant::ZERO);
        (0..8).for_each(|_| exchange.due.push(before));
        (0..8).for_each(|_| exchange.send(60));
        exchange.receive_all();
        let after = (exchange.now)() + TOLERANCE;
        assert!(exchange.last_arrival <= after, "arrived after it was received");
    }
    exchange.finish();
}

/// Checks that stored frames leave unchanged and in order among other frames, until the port's
/// memory is full. If the port stores nothing, the check sends nothing.
pub fn stored_frames_leave_unchanged<T: Transmit, R: Receive>(connected: PortPair<T, R>) {
    const PIECE_FRAMES: u64 = 10;
    const PIECES_MAX: u64 = 200;
    let mut exchange = Exchange::new(connected);
    let length_max = exchange.untagged_length_max();
    // Without tags: Linux passes tagged frames to packet sockets before untagged ones that arrived
    // together with them.
    let length = |number: u64| 14 + (number * 131) as usize % (length_max - 13);
    let mut places = Vec::new();
    for piece in 0..PIECES_MAX {
        let numbers = piece * PIECE_FRAMES..(piece + 1) * PIECE_FRAMES;
        let frames: Vec<_> =
            numbers.map(|number| test_frame(number, length(number), length_max)).collect();
        let Some(stored) = exchange.transmit.store(&frames.concat()) else { break };
        let mut start = 0;
        for frame in frames {
            places.push((stored, start..start + frame.len()));
            start += frame.len();
        }
    }
    // Numbers must rise on the wire: each frame is either the next stored one or an ordinary one.
    for (number, (stored, range)) in places.iter().enumerate() {
        if number % 7 == 3 {
            exchange.send(length(number as u64));
            continue;
        }
        let frame = loop {
            match exchange.transmit.take() {
                Some(frame) => break frame,
                None => exchange.receive_all(),
            }
        };
        // The port must ignore the contents of the buffer.
        exchange.transmit.frame_mut(&frame)[..14].fill(0xee);
        exchange.transmit.send_stored(frame, *stored, range.clone(), Instant::ZERO);
        exchange.record_sent(range.len());
        exchange.keep_within_window();
    }
    exchange.receive_all();
    exchange.finish();
}

/// Takes a buffer and sends a frame of `length(frame_length_max)` bytes, for lengths that must
/// panic.
pub fn send_of_length<T: Transmit, R: Receive>(
    mut connected: PortPair<T, R>,
    length: impl FnOnce(usize) -> usize,
) {
    let length = length(connected.transmit.capabilities().frame_length_max);
    let frame = connected.transmit.take().expect("a port has buffers");
    connected.transmit.send(frame, length, Instant::ZERO);
}

/// Sends numbered frames and checks that they arrive.
struct Exchange<T, R> {
    transmit: T,
    receive: R,
    now: fn() -> Instant,
    window: usize,
    /// Frames passed to `send`.
    submitted: u64,
    sent_bytes: u64,
    /// Lengths of all frames, by number.
    lengths: Vec<usize>,
    /// Number of the next frame that must arrive.
    next_expected: u64,
    /// First number that must not arrive.
    expected_until: u64,
    /// Earliest arrival of a frame, by number; only for frames that have one.
    due: Vec<Instant>,
    last_arrival: Instant,
    batch: Vec<Received>,
    _wire: Box<dyn Any>,
}

impl<T: Transmit, R: Receive> Exchange<T, R> {
    fn new(connected: PortPair<T, R>) -> Self {
        let PortPair { transmit, receive, now, window, wire } = connected;
        assert!(window > 0, "the window of the wire is zero");
        Self {
            transmit,
            receive,
            now,
            window,
            submitted: 0,
            sent_bytes: 0,
            lengths: Vec::new(),
            next_expected: 0,
            expected_until: 0,
            due: Vec::new(),
            last_arrival: Instant::ZERO,
            batch: Vec::new(),
            _wire: wire,
        }
    }

    fn frame_length_max(&self) -> usize {
        let transmit = self.transmit.capabilities().frame_length_max;
        transmit.min(self.receive.capabilities().frame_length_max)
    }

    fn untagged_length_max(&self) -> usize {
        let transmit = self.transmit.capabilities().untagged_length_max;
        transmit.min(self.receive.capabilities().untagged_length_max)
    }

    fn deadline(&self) -> Instant {
        (self.now)() + WAIT_MAX
    }

    /// Sends the next frame once a buffer is free and the window allows it.
    fn send(&mut self, length: usize) {
        let deadline = self.deadline();
        for _ in 0..POLLS_MAX {
            if let Some(frame) = self.transmit.take() {
                return self.send_taken(frame, length);
            }
            self.flush();
            self.receive_some();
            assert!((self.now)() < deadline, "no buffer becomes free");
        }
        panic!("the clock stands still");
    }

    fn send_taken(&mut self, frame: FrameId, length: usize) {
        self.queue_frame(frame, length, Instant::ZERO);
        self.keep_within_window();
    }

    fn keep_within_window(&mut self) {
        let in_transit = self.submitted - self.next_expected;
        if in_transit.is_multiple_of(self.transmit.capabilities().burst as u64) {
            self.flush();
            self.receive_some();
        }
        if in_transit >= self.window as u64 {
            self.receive_all();
        }
    }

    fn queue_frame(&mut self, frame: FrameId, length: usize, departure: Instant) {
        let bytes = test_frame(self.submitted, length, self.untagged_length_max());
        let buffer = self.transmit.frame_mut(&frame);
        assert!(buffer.len() >= length, "a buffer of {} bytes", buffer.len());
        buffer[..length].copy_from_slice(&bytes);
        self.transmit.send(frame, length, departure);
        self.record_sent(length);
    }

    fn record_sent(&mut self, length: usize) {
        self.submitted += 1;
        self.expected_until = self.submitted;
        self.sent_bytes += length as u64;
        self.lengths.push(length);
    }

    fn take_all(&mut self) -> Vec<FrameId> {
        let frames_max = self.transmit.capabilities().frames + 1;
        (0..frames_max).map_while(|_| self.transmit.take()).collect()
    }

    fn flush(&mut self) {
        self.transmit.flush().expect("the port works");
    }

    /// Flushes until no frame is in flight.
    fn flush_until_idle(&mut self) {
        let deadline = self.deadline();
        for _ in 0..POLLS_MAX {
            self.flush();
            if self.transmit.in_flight() == 0 {
                return;
            }
            assert!((self.now)() < deadline, "{} stay in flight", self.transmit.in_flight());
        }
        panic!("the clock stands still");
    }

    /// Polls until all sent frames have arrived.
    fn receive_all(&mut self) {
        let deadline = self.deadline();
        for _ in 0..POLLS_MAX {
            if self.next_expected == self.expected_until {
                return;
            }
            self.flush();
            self.receive_some();
            assert!(
                (self.now)() < deadline,
                "{} of {} frames arrived; {:?}; {:?}",
                self.next_expected,
                self.expected_until,
                self.transmit.transmitted(),
                self.receive.received(),
            );
        }
        panic!("the clock stands still");
    }

    fn receive_some(&mut self) {
        self.receive.receive(64, &mut self.batch).expect("the port works");
        self.check_batch();
    }

    /// Compares the received frames with the sent ones and releases them.
    fn check_batch(&mut self) {
        for received in core::mem::take(&mut self.batch) {
            let number = self.next_expected;
            assert!(number < self.expected_until, "a frame too many arrived: {received:?}");
            let length = self.lengths[number as usize];
            let expected = test_frame(number, length, self.untagged_length_max());
            assert_eq!(received.length, length, "length of frame {number}");
            assert_eq!(received.original_length, length, "original length of frame {number}");
            assert_eq!(self.receive.frame(&received), expected, "bytes of frame {number}");
            if let Some(due) = self.due.get(number as usize) {
                assert!(received.arrival >= *due, "frame {number} arrived before it left");
            }
            assert!(received.arrival >= self.last_arrival, "arrivals go back");
            self.last_arrival = received.arrival;
            self.receive.release(received);
            self.next_expected += 1;
        }
    }

    fn assert_all_are_counted(&self) {
        let counters = self.transmit.transmitted();
        let done = counters.sent + counters.failed + counters.unsent;
        let in_flight = self.transmit.in_flight() as u64;
        assert_eq!(done + in_flight, self.submitted, "{counters:?}, {in_flight} in flight");
    }

    /// Checks at the end of a test that no frame and no buffer is lost.
    fn finish(mut self) {
        assert_eq!(self.next_expected, self.expected_until, "frames that arrived");
        self.flush_until_idle();
        self.assert_all_are_counted();
        assert_eq!(self.transmit.transmitted().sent, self.submitted);
        assert_eq!(self.receive.received().rx_dropped, 0);
        let taken = self.take_all();
        assert_eq!(taken.len(), self.transmit.capabilities().frames, "buffers at the end");
        taken.into_iter().for_each(|frame| self.transmit.release(frame));
    }
}

/// Returns test frame `number`. Its bytes follow from its number and length, so that no two frames
/// are equal.
///
/// The destination address holds the number, since every frame has one. The Ethernet type is for
/// local experiments (IEEE 802, 0x88B5). A frame that exceeds the untagged maximum has a VLAN tag.
fn test_frame(number: u64, length: usize, untagged_length_max: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ length as u64;
    for byte in &mut frame {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
    let [.., a, b, c, d] = number.to_be_bytes();
    let header = [0x02, 0x57, a, b, c, d, 0x02, 0x57, 0x53, 0, 0, 1, 0x88, 0xb5];
    frame[..14].copy_from_slice(&header);
    if length > untagged_length_max {
        frame[12..18].copy_from_slice(&[0x81, 0x00, 0xa0, 0x07, 0x88, 0xb5]);
    }
    frame
}
