//! How many frames a second a receiver measures, from a wire in memory: `measure [CHANNEL [STREAMS
//! [ROUNDS]]]`, where the channel is `clean` or `rough`.
//!
//! Of a round, which is 512 frames, only the receiving part is timed. Its instructions:
//! `valgrind --tool=callgrind --toggle-collect='*measured*' measure clean 1 1000`.
use std::time::Instant as Clock;

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_engine::measure::*;
use wirestorm_sim::memory::{MemoryReceive, WireOptions, wire};
use wirestorm_wire::stream::draw;

/// Bytes without FCS.
const FRAME_LENGTH: usize = 60;
/// Frames of one round; the wire's buffers.
const FRAMES: u64 = 512;
/// From one departure to the next.
const GAP_NS: u64 = 100;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let is_rough = arguments.next().is_some_and(|channel| channel == "rough");
    let streams: u32 = arguments.next().map_or(1, |count| count.parse().unwrap());
    let rounds: u64 = arguments.next().map_or(60_000, |count| count.parse().unwrap());

    let template: Vec<u8> = (0..FRAME_LENGTH as u8).collect();
    let mut mask = vec![0; FRAME_LENGTH];
    // All of IP and UDP but for time to live and checksums.
    mask[14..40].fill(0xff);
    mask[22] = 0;
    mask[24..26].fill(0);
    let stream = |id| MeasuredStream { id, payload: PayloadCheck::new(&template, &mask) };
    let options = MeasureOptions::default();
    let mut receiver = Receiver::new((0..streams).map(stream).collect(), &options);

    let options = WireOptions { frames: FRAMES as usize, frame_length_max: FRAME_LENGTH };
    let (mut transmit, mut receive) = wire(options);
    let mut numbers = vec![0; streams as usize];
    let mut sent = 0_u64;
    let mut busy = 0.0;
    for round in 0..rounds {
        for frame in 0..FRAMES {
            let index = round * FRAMES + frame;
            let stream = (index % u64::from(streams)) as usize;
            let random = if is_rough { draw(1, index) } else { 0 };
            // One in 100 lost, one in 100 repeated, one in 50 late by up to 64 frames.
            let repeats = u64::from(random % 100 == 1);
            let late = if random % 50 == 2 { random >> 58 } else { 0 };
            numbers[stream] += 1 + u64::from(random % 100 == 3);
            let sequence = numbers[stream] - 1 - repeats.min(numbers[stream] - 1);
            let sequence = sequence.saturating_sub(late);
            let arrival = 1_000_000 + index * GAP_NS;
            let departure = arrival - 5_000 - (draw(2, index) >> 54);
            let signature = Signature { stream: stream as u32, sequence, departure };
            let buffer = transmit.take().expect("as many buffers as frames");
            let bytes = transmit.frame_mut(&buffer);
            bytes.copy_from_slice(&template);
            bytes[FRAME_LENGTH - Signature::LENGTH..].copy_from_slice(&signature.encode());
            transmit.send(buffer, FRAME_LENGTH, Instant::from_nanos(arrival));
            sent += 1;
        }
        transmit.flush().expect("memory does not fail");
        let begin = Clock::now();
        measured(&mut receiver, &mut receive);
        busy += begin.elapsed().as_secs_f64();
    }
    assert_eq!(receive.received().received, sent);
    let frames: u64 = receiver.records().iter().map(|record| record.tallies().frames).sum();
    let record = &receiver.records()[0];
    println!(
        "{streams} streams, {frames} of {sent} frames: {:.1} Mpps, {:.1} ns a frame; {:?}, p99 {:?} ns",
        frames as f64 / busy / 1e6,
        busy / frames as f64 * 1e9,
        record.ordered().unwrap().sequence().counters(),
        record.delay().delays().quantile(0.99),
    );
}

#[inline(never)]
fn measured(receiver: &mut Receiver, port: &mut MemoryReceive) {
    while receiver.receive(Instant::ZERO, port).expect("memory does not fail") > 0 {}
}
