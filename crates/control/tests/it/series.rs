//! Time series of flows whose frames cross a forwarder that reorders and duplicates.

use std::sync::atomic::{AtomicBool, Ordering};

use wirestorm_base::port::{Receive, Received, Transmit};
use wirestorm_base::time::{Duration, Instant};
use wirestorm_control::backend::{AF_PACKET, Backend};
use wirestorm_control::host::Access;
use wirestorm_control::result::SeriesReport;
use wirestorm_control::run::Plan;
use wirestorm_control::{Host, StartAt};
use wirestorm_engine::measure::find;
use wirestorm_io::af_packet::{AfPacketOptions, AfPacketReceive, AfPacketTransmit};
use wirestorm_testkit::net::Lab;
use wirestorm_testkit::require::require_root;

use crate::runs::{COUNTED_PORT, FRAMES, prepare, result, streams};

/// Number of the frame that leaves late, and how many frames pass it.
const HELD: u64 = 300;
const AHEAD: u64 = 5;
/// Number of the frame that leaves three times.
const COPIED: u64 = 700;

/// Forwards signed frames from one interface to another, and disturbs the counted flow.
struct Forwarder {
    receive: AfPacketReceive,
    transmit: AfPacketTransmit,
    held: Option<Vec<u8>>,
}

impl Forwarder {
    fn open(from: &str, to: &str) -> Self {
        let options = |interface: &str| AfPacketOptions::new(interface.parse().unwrap());
        Self {
            receive: AfPacketReceive::open(&options(from)).unwrap(),
            transmit: AfPacketTransmit::open(&options(to)).unwrap(),
            held: None,
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        let mut batch: Vec<Received> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            self.receive.wait(Duration::from_millis(1));
            self.receive.receive(64, &mut batch).unwrap();
            for received in batch.drain(..) {
                let frame = self.receive.frame(&received).to_vec();
                self.receive.release(received);
                self.forward(frame);
            }
            self.transmit.flush().unwrap();
        }
    }

    fn forward(&mut self, frame: Vec<u8>) {
        let Some(found) = find(&frame) else { return };
        let is_counted = frame[34..36] == COUNTED_PORT.to_be_bytes();
        match found.signature.sequence {
            HELD if is_counted => self.held = Some(frame),
            COPIED if is_counted => (0..3).for_each(|_| self.send(&frame)),
            number => {
                self.send(&frame);
                if is_counted && number == HELD + AHEAD {
                    let held = self.held.take().expect("it was sent before");
                    self.send(&held);
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let frame = self.transmit.take().expect("a free buffer");
        self.transmit.frame_mut(&frame)[..bytes.len()].copy_from_slice(bytes);
        self.transmit.send(frame, bytes.len(), Instant::ZERO);
    }
}

/// Stops the forwarder, also if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the interval in which a frame arrived, by its place in the order of first arrivals.
fn interval_of(series: &SeriesReport, place: u64) -> usize {
    let mut arrived = 0;
    let is_after = |received: &u64| {
        arrived += received;
        arrived > place
    };
    series.received.iter().position(is_after).expect("all frames arrived")
}

/// Returns a list that is zero except for one interval.
fn only(length: usize, interval: usize, count: u64) -> Vec<u64> {
    (0..length).map(|place| if place == interval { count } else { 0 }).collect()
}

#[test]
fn reordered_and_duplicated_frames_count_in_the_interval_of_their_arrival() {
    if !require_root() {
        return;
    }
    let (near, far) = (Lab::new().unwrap(), Lab::new().unwrap());
    let mut forwarder = Forwarder::open(&near.b.port(), &far.a.port());
    let host = Host::new();
    let mut plan = streams([&near.a.port(), &far.b.port()], Backend::One(&AF_PACKET));
    let Plan::Streams { options, .. } = &mut plan else { unreachable!() };
    options.duration = Duration::from_millis(1_200);
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| forwarder.run(&stop));
        let _stop = StopOnDrop(&stop);
        result(&prepare(plan, &host, Access::ByBackend).start(StartAt::Now))
    });
    let measured = &result.flows[0].measured[0];
    assert_eq!((measured.received, measured.missing), (FRAMES, 0), "{result:?}");
    let series = measured.series.as_ref().expect("a series");
    let length = series.packets.len();
    // The frames from 0 to HELD - 1 and AHEAD others arrive before the held one.
    let late = interval_of(series, HELD + AHEAD);
    assert_eq!(series.reordered, only(length, late, 1), "{series:?}");
    let mut extents = vec![None; length];
    extents[late] = Some(AHEAD);
    assert_eq!(series.reordering_extent_max, extents);
    // The copies follow the frame, perhaps in the next interval.
    let copied = interval_of(series, COPIED);
    let copies = &series.duplicated[copied..(copied + 2).min(length)];
    assert_eq!(copies.iter().sum::<u64>(), 2, "{series:?}");
    assert_eq!(series.duplicated.iter().sum::<u64>(), 2, "{series:?}");
    assert_eq!(series.missing.iter().sum::<u64>(), 0, "{series:?}");
    // The extremes of the intervals are those of the flow.
    assert_eq!(series.ipdv_count.iter().sum::<u64>(), FRAMES - 1);
    assert_eq!(series.delay_min_ns.iter().flatten().min().copied(), measured.delay.min_ns);
    assert_eq!(series.delay_max_ns.iter().flatten().max().copied(), measured.delay.max_ns);
    let extremes = [measured.ipdv.min_ns, measured.ipdv.max_ns];
    let widest = extremes.iter().flatten().map(|value| value.unsigned_abs()).max();
    assert_eq!(series.ipdv_max_ns.iter().flatten().max().copied(), widest);
    assert!(series.jitter_ns.iter().flatten().max() >= Some(&measured.jitter_ns));
    // Later frames passed the held one, so its delay exceeds theirs.
    assert!(series.pdv_max_ns[late] > Some(0) && series.ipdv_max_ns[late] > Some(0));
}
