//! Measures the frame rate of a receiver on a wire in memory. `measure STREAMS FRAMES` prints one
//! JSON document; `./bench` runs it.
//!
//! Frames are sent in rounds of 512. Only the receiving part is timed.

use std::time::Instant as Clock;

use wirestorm_base::port::{Receive, Transmit};
use wirestorm_base::time::Instant;
use wirestorm_engine::measure::*;
use wirestorm_model::stream::draw;
use wirestorm_sim::memory::{MemoryReceive, WireOptions, wire};

/// Length of a frame in bytes without FCS.
const FRAME_LENGTH: usize = 60;
/// Frames in a round, and buffers of the wire.
const ROUND: u64 = 512;
/// Gap between two departures in ns.
const GAP_NS: u64 = 100;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(streams @ 1..=1_000_000)), Some(Ok(frames))) =
        (arguments.next(), arguments.next())
    else {
        eprintln!("usage: measure STREAMS FRAMES");
        std::process::exit(2);
    };
    let template: Vec<u8> = (0..FRAME_LENGTH as u8).collect();
    let mut mask = vec![0; FRAME_LENGTH];
    // Compare IP and UDP except time to live and checksums.
    mask[14..40].fill(0xff);
    mask[22] = 0;
    mask[24..26].fill(0);
    let stream =
        |id| MeasuredStream { id, payload: PayloadCheck::new(&template, &mask), segments: None };
    let options = MeasureOptions::default();
    let mut receiver = Receiver::new((0..streams as u32).map(stream).collect(), &options);

    let options = WireOptions { frames: ROUND as usize, frame_length_max: FRAME_LENGTH };
    let (mut transmit, mut receive) = wire(options);
    let mut busy = 0.0;
    let rounds = frames.div_ceil(ROUND);
    for index in 0..rounds * ROUND {
        let arrival = 1_000_000 + index * GAP_NS;
        let signature = Signature {
            stream: (index % streams) as u32,
            sequence: index / streams,
            // 5 to 6 us before the arrival.
            departure: arrival - 5_000 - (draw(2, index) >> 54),
        };
        let buffer = transmit.take().expect("as many buffers as frames");
        let bytes = transmit.frame_mut(&buffer);
        bytes.copy_from_slice(&template);
        bytes[FRAME_LENGTH - Signature::LENGTH..].copy_from_slice(&signature.encode());
        transmit.send(buffer, FRAME_LENGTH, Instant::from_nanos(arrival));
        if (index + 1) % ROUND == 0 {
            transmit.flush().expect("memory does not fail");
            let begin = Clock::now();
            measured(&mut receiver, &mut receive);
            busy += begin.elapsed().as_secs_f64();
        }
    }
    let measured: u64 = receiver.records().iter().map(|record| record.tallies().frames).sum();
    assert_eq!((measured, receive.received().received), (rounds * ROUND, rounds * ROUND));
    println!("{{\"packets\": {measured}, \"elapsed_s\": {busy}}}");
}

#[inline(never)]
fn measured(receiver: &mut Receiver, port: &mut MemoryReceive) {
    while receiver.receive(Instant::ZERO, port).expect("memory does not fail") > 0 {}
}
