//! Measurements of streams that arrive on ports.

use wirestorm_base::port::{Capabilities, PortError, Receive, ReceiveCounters, Received, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::measure::{
    MeasureOptions, MeasuredStream, Receiver, Signature, StreamRecord, TAG_RECORDS_MAX, Tally,
    VlanTags,
};
use wirestorm_model::stream::FrameBits;
use wirestorm_sim::memory::{MemoryReceive, MemoryTransmit, WireOptions, wire};
use wirestorm_wire::mark;

const LENGTH: usize = 60;

fn streams(ids: impl IntoIterator<Item = u32>) -> Vec<MeasuredStream> {
    ids.into_iter().map(|id| MeasuredStream { id, payload: None, segments: None }).collect()
}

fn receiver(ids: impl IntoIterator<Item = u32>) -> Receiver {
    Receiver::new(streams(ids), &MeasureOptions::default())
}

fn a_wire() -> (MemoryTransmit, MemoryReceive) {
    wire(WireOptions { frames: 200, frame_length_max: LENGTH })
}

fn at(nanoseconds: u64) -> Instant {
    Instant::from_nanos(nanoseconds)
}

/// Sends a frame with the departure `departure` that arrives at `arrival`.
fn send(port: &mut MemoryTransmit, stream: u32, sequence: u64, departure: u64, arrival: u64) {
    let buffer = port.take().expect("a buffer");
    let frame = &mut port.frame_mut(&buffer)[..LENGTH];
    frame.fill(0);
    let signature = Signature { stream, sequence, departure };
    frame[LENGTH - Signature::LENGTH..].copy_from_slice(&signature.encode());
    port.send(buffer, LENGTH, at(arrival));
    port.flush().unwrap();
}

fn drain(receiver: &mut Receiver, port: &mut impl Receive) {
    while receiver.receive(Instant::ZERO, port).unwrap() > 0 {}
}

fn received(record: &StreamRecord) -> u64 {
    record.ordered().unwrap().sequence().counters().received
}

#[test]
fn frames_are_received_in_batches_and_buffers_are_released() {
    let (mut transmit, mut receive) = a_wire();
    let mut receiver = receiver([1]);
    for round in 0..20 {
        for frame in 0..150 {
            let number = round * 150 + frame;
            send(&mut transmit, 1, number, number, number + 7);
        }
        let batches = core::iter::repeat_with(|| receiver.receive(at(0), &mut receive).unwrap());
        assert_eq!(batches.take(4).collect::<Vec<_>>(), [64, 64, 22, 0]);
    }
    let record = &receiver.records()[0];
    assert_eq!(received(record), 3_000);
    assert_eq!(record.tallies().bytes, 3_000 * LENGTH as u64);
    assert_eq!((record.tallies().first, record.tallies().last), (Some(at(7)), Some(at(3_006))));
    assert_eq!(record.delay().delays().quantile(0.9999), Some(7));
}

#[test]
fn streams_without_signatures_are_counted_by_marks() {
    let mut receiver = receiver([3, 4, 5]);
    assert!(receiver.count_by_mark(4));
    assert!(!receiver.count_by_mark(9), "it is not measured here");
    let marked = |number| {
        let mut frame = vec![0; LENGTH];
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        assert!(mark::write(&mut frame, number));
        frame
    };
    for arrival in 1..=7 {
        receiver.note(&marked(4), LENGTH + 20, at(arrival));
    }
    // Streams with signatures are not counted by marks; frames without a mark are unknown.
    receiver.note(&marked(3), LENGTH, at(8));
    receiver.note(&[0; LENGTH], LENGTH, at(9));
    let record = &receiver.records()[1];
    assert_eq!((record.tallies().frames, record.tallies().bytes), (7, 7 * 80));
    assert_eq!((record.tallies().first, record.tallies().last), (Some(at(1)), Some(at(7))));
    assert!(record.ordered().is_none() && record.delay().delays().count() == 0);
    assert_eq!(receiver.records()[0].tallies().frames, 0);
    assert_eq!(receiver.unknown().frames, 2);
    assert!(receiver.counts(4) && !receiver.counts(3));
}

#[test]
fn stream_numbers_beyond_the_marks_are_rejected() {
    let mut receiver = receiver([u32::from(mark::COUNT) - 1, u32::from(mark::COUNT)]);
    assert!(receiver.count_by_mark(u32::from(mark::COUNT) - 1));
    assert!(!receiver.count_by_mark(mark::COUNT.into()));
}

#[test]
fn thousands_of_streams_with_arbitrary_numbers_are_measured() {
    let (mut transmit, mut receive) = a_wire();
    let ids = (0..3_000).map(|index| (index * 5_591 + 1) % (1 << Signature::STREAM_BITS));
    let mut receiver = receiver(ids.clone());
    for (index, id) in ids.clone().enumerate() {
        for number in 0..=index as u64 % 3 {
            send(&mut transmit, id, number, 10, 20);
        }
        drain(&mut receiver, &mut receive);
    }
    for (index, (id, record)) in ids.zip(receiver.records()).enumerate() {
        assert_eq!((record.id(), received(record)), (id, index as u64 % 3 + 1));
    }
    assert_eq!((receiver.unknown(), receiver.foreign()), (Tally::default(), Tally::default()));
}

#[test]
fn frames_of_unmeasured_streams_are_counted_separately() {
    let (mut transmit, mut receive) = a_wire();
    let mut receiver = receiver([3]);
    // One number beyond the table, one within it.
    for stream in [2, 900] {
        send(&mut transmit, stream, 0, 0, 1);
    }
    let buffer = transmit.take().unwrap();
    transmit.frame_mut(&buffer)[..40].fill(0x57);
    transmit.send(buffer, 40, at(1));
    transmit.flush().unwrap();
    drain(&mut receiver, &mut receive);
    assert_eq!(receiver.foreign(), Tally { frames: 2, bytes: 2 * LENGTH as u64 });
    assert_eq!(receiver.unknown(), Tally { frames: 1, bytes: 40 });
    assert_eq!(receiver.records()[0].tallies().frames, 0);
}

#[test]
fn one_receiver_may_drain_several_queues_of_a_stream() {
    let (mut even, mut even_end) = a_wire();
    let (mut odd, mut odd_end) = a_wire();
    let mut receiver = receiver([1]);
    for number in 0..100 {
        let port = if number % 2 == 0 { &mut even } else { &mut odd };
        send(port, 1, number, number, number + 5);
    }
    drain(&mut receiver, &mut even_end);
    drain(&mut receiver, &mut odd_end);
    let counters = receiver.records()[0].ordered().unwrap().sequence().counters();
    assert_eq!((counters.received, counters.missing, counters.duplicated), (100, 0, 0));
}

#[test]
fn receivers_of_queues_are_merged() {
    let queue = |stream: u32| {
        let (mut transmit, mut receive) = a_wire();
        let mut receiver = receiver([0, 1, 9]);
        for number in [0, 1, 3] {
            send(&mut transmit, stream, number, 0, 10);
        }
        // Stream 9 arrives on both queues.
        send(&mut transmit, 9, u64::from(stream), 0, 10 + u64::from(stream));
        send(&mut transmit, 5, 0, 0, 10);
        drain(&mut receiver, &mut receive);
        receiver
    };
    let mut both = queue(0);
    both.merge(queue(1));
    for record in &both.records()[..2] {
        let counters = record.ordered().unwrap().sequence().counters();
        assert_eq!((counters.received, counters.missing, counters.lost(5)), (3, 1, 2));
    }
    let spread = &both.records()[2];
    assert!(spread.ordered().is_none(), "no order between queues");
    assert_eq!((spread.tallies().frames, spread.delay().delays().count()), (2, 2));
    assert_eq!(both.foreign().frames, 2);
}

#[test]
fn longest_pause_between_receives_is_reported() {
    let (_transmit, mut receive) = a_wire();
    let mut receiver = receiver([1]);
    for now in [5_000, 5_010, 5_100, 5_105] {
        receiver.receive(at(now), &mut receive).unwrap();
    }
    assert_eq!(receiver.pause_max(), Duration::from_nanos(90));
}

/// Port that delivers its frames and then fails.
struct Failing(MemoryReceive);

impl Receive for Failing {
    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn receive(&mut self, room: usize, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        self.0.receive(room, batch)?;
        Err(PortError::System {
            interface: "eth0".into(),
            operation: "recvmsg",
            reason: "Input/output error".into(),
        })
    }

    fn frame(&self, received: &Received) -> &[u8] {
        self.0.frame(received)
    }

    fn release(&mut self, received: Received) {
        self.0.release(received);
    }

    fn received(&self) -> ReceiveCounters {
        self.0.received()
    }
}

#[test]
fn frames_before_a_port_failure_are_measured() {
    let (mut transmit, receive) = a_wire();
    let mut receiver = receiver([1]);
    send(&mut transmit, 1, 0, 0, 9);
    let mut port = Failing(receive);
    assert!(receiver.receive(at(0), &mut port).is_err());
    assert_eq!(received(&receiver.records()[0]), 1);
}

#[test]
#[should_panic = "two streams with number 4"]
fn duplicate_stream_numbers_panic() {
    receiver([4, 5, 4]);
}

/// Records a frame of stream 1 with these VLAN tags.
fn note_tagged(receiver: &mut Receiver, tags: &[[u8; 4]], sequence: u64) {
    let signature = Signature { stream: 1, sequence, departure: 0 };
    let tags = tags.concat();
    let frame = [&[2; 12], tags.as_slice(), &[8, 0, 0, 0, 0, 0], &signature.encode()].concat();
    receiver.note(&frame, frame.len(), at(9));
}

#[test]
fn frames_are_counted_by_vlan_tags() {
    const SEVEN: [u8; 4] = [0x81, 0, 0xe0, 7];
    const SERVICE: [u8; 4] = [0x88, 0xa8, 0, 1];
    let options = MeasureOptions { per_vlan: true, ..MeasureOptions::default() };
    let mut receiver = Receiver::new(streams([0, 1]), &options);
    for (number, tags) in [
        (0, &[SEVEN][..]),
        (1, &[SEVEN]),
        (2, &[SERVICE, SEVEN]),
        (3, &[]),
        (5, &[SEVEN]),
        (4, &[SEVEN]),
        (4, &[SEVEN]),
    ] {
        note_tagged(&mut receiver, tags, number);
    }
    let counted: Vec<_> = receiver
        .tags(1)
        .map(|(tags, record)| {
            let counters = record.counters();
            let Tally { frames, bytes } = record.arrived();
            let order = [counters.missing, counters.gaps, counters.reordered, counters.duplicated];
            (tags, frames, bytes, order)
        })
        .collect();
    let expected = [
        (VlanTags::None, 1, 36, [3, 1, 0, 0]),
        // Of frames 2 to 4, one was late; 2 and 3 arrived under other tags.
        (VlanTags::One(7), 5, 5 * 40, [2, 1, 1, 1]),
        (VlanTags::Two(1, 7), 1, 44, [2, 1, 0, 0]),
    ];
    assert_eq!(counted, expected);
    assert_eq!(receiver.tags(0).count(), 0);
    assert_eq!(receiver.beyond_tags(), Tally::default());
    let mut plain = self::receiver([1]);
    note_tagged(&mut plain, &[SEVEN], 0);
    assert_eq!(plain.tags(0).count(), 0, "only with per_vlan");
}

#[test]
fn tag_records_are_bounded() {
    let options = MeasureOptions { per_vlan: true, ..MeasureOptions::default() };
    let mut receiver = Receiver::new(streams([1]), &options);
    let pairs = (0..17_u8).flat_map(|outer| (0..4_096_u16).map(move |inner| (outer, inner)));
    for (number, (outer, inner)) in pairs.enumerate() {
        let [high, low] = inner.to_be_bytes();
        note_tagged(&mut receiver, &[[0x88, 0xa8, 0, outer], [0x81, 0, high, low]], number as u64);
    }
    assert_eq!(receiver.tags(0).count(), TAG_RECORDS_MAX);
    assert_eq!(receiver.beyond_tags(), Tally { frames: 4_096, bytes: 4_096 * 44 });
    assert_eq!(received(&receiver.records()[0]), 17 * 4_096, "the stream has all of them");
}

/// Returns a frame with a signature.
fn signed(stream: u32, sequence: u64, departure: u64) -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    let signature = Signature { stream, sequence, departure };
    frame[LENGTH - Signature::LENGTH..].copy_from_slice(&signature.encode());
    frame
}

#[test]
fn frames_are_counted_by_the_values_of_bits() {
    let mut receiver = Receiver::new(streams([0, 1]), &MeasureOptions::default());
    let bits =
        [FrameBits { bit_offset: 0, bit_length: 8 }, FrameBits { bit_offset: 12, bit_length: 4 }];
    receiver.count_by_values(1, bits.to_vec().into());
    receiver.count_by_values(7, bits.to_vec().into());
    for number in 0..12_u64 {
        let departure = 1_000 * number;
        let mut frame = signed(1, number, departure);
        (frame[0], frame[1]) = (number as u8 % 2, 0xa0 | (number as u8 % 3));
        receiver.note(&frame, LENGTH, at(departure + 100 + number));
        receiver.note(&signed(0, number, departure), LENGTH, at(departure));
    }
    assert_eq!(receiver.values(0).count(), 0, "the stream has no bits to count by");
    let found: Vec<_> = receiver.values(1).collect();
    assert_eq!(found.len(), 6);
    let (values, record) = found[1];
    assert_eq!(values, [0, 1], "numbers 4 and 10");
    assert_eq!((record.arrived.frames, record.arrived.bytes), (2, 2 * LENGTH as u64));
    assert_eq!((record.delay_min_ns, record.delay_max_ns, record.delay_sum_ns), (104, 110, 214));
    assert_eq!((record.first, record.last), (at(4_104), at(10_110)));
    assert_eq!(receiver.beyond_tags(), Tally::default());
}

#[test]
fn frames_too_short_for_the_bits_are_counted_as_beyond() {
    let mut receiver = Receiver::new(streams([1]), &MeasureOptions::default());
    let bits = FrameBits { bit_offset: 8 * LENGTH - 4, bit_length: 8 };
    receiver.count_by_values(1, vec![bits].into());
    receiver.note(&signed(1, 0, 0), LENGTH, at(5));
    assert_eq!(receiver.values(0).count(), 0);
    assert_eq!(receiver.beyond_tags(), Tally { frames: 1, bytes: LENGTH as u64 });
    assert_eq!(receiver.records()[0].tallies().frames, 1);
}
