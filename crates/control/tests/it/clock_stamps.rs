//! Time stamps of the kernel beside those of an XDP program, for frames in both directions of a veth
//! pair. Both ends have one clock, so the true offset is 0. The test prints the figures that
//! `docs/design/distributed.md` has.

use std::os::fd::AsFd;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use wirestorm_base::time::Duration;
use wirestorm_clock::ptp::ETHER_TYPE;
use wirestorm_clock::ptp::address::ETHERNET_GROUP;
use wirestorm_io::clock::RealtimeOffsetTracker;
use wirestorm_io::timestamps::{Stamp, StampSource, StampedPacketSocket, wait};
use wirestorm_testkit::net::{End, Lab};
use wirestorm_testkit::require::{require_root, require_tool};

/// Exchanges of a measurement, and the time between them.
const EXCHANGES: usize = 500;
const GAP: StdDuration = StdDuration::from_millis(2);

/// Delays of a frame from its departure, in ns.
#[derive(Clone, Copy)]
struct Delay {
    /// To the stamp of the kernel.
    kernel: i64,
    /// To the stamp of the XDP program; 0 without one.
    xdp: i64,
}

fn open(end: &End) -> StampedPacketSocket {
    let interface = end.port().parse().unwrap();
    StampedPacketSocket::open(&interface, ETHER_TYPE, ETHERNET_GROUP).unwrap()
}

/// Returns what a socket has within a time.
#[track_caller]
fn soon<T>(socket: &StampedPacketSocket, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = StdInstant::now() + StdDuration::from_secs(10);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(StdInstant::now() < deadline, "nothing arrived");
        wait([socket.as_fd()].into_iter(), Duration::from_millis(10));
    }
}

/// Sends a frame; `None` if the kernel does not stamp arrivals yet.
fn delay(
    from: &mut StampedPacketSocket,
    to: &StampedPacketSocket,
    clocks: &mut RealtimeOffsetTracker,
) -> Option<Delay> {
    from.send_to(&[0; 44], to.mac()).unwrap();
    let mut buffer = [0; 64];
    let arrival = soon(to, || to.try_receive(&mut buffer).unwrap());
    let departure = soon(from, || from.departure().unwrap());
    if arrival.stamp.point != StampSource::Kernel {
        return None;
    }
    let offset = clocks.update();
    let time = |stamp: Stamp| {
        offset.to_monotonic(stamp.realtime_ns.cast_unsigned()).as_nanos().cast_signed()
    };
    let xdp = i64::from_ne_bytes(buffer[..8].try_into().unwrap());
    let departed = time(departure.stamp);
    let xdp = if xdp == 0 { 0 } else { xdp - departed };
    Some(Delay { kernel: time(arrival.stamp) - departed, xdp })
}

/// Exchanges frames between both ends.
fn exchange(lab: &Lab) -> Vec<[Delay; 2]> {
    let (mut a, mut b) = (open(&lab.a), open(&lab.b));
    let mut clocks = RealtimeOffsetTracker::default();
    // The offset of the clocks gets more exact with each reading.
    for _ in 0..1_000 {
        clocks.update();
    }
    let mut delays = Vec::new();
    while delays.len() < EXCHANGES {
        let forward = delay(&mut a, &b, &mut clocks);
        let backward = delay(&mut b, &a, &mut clocks);
        delays.extend(forward.zip(backward).map(|(forward, backward)| [forward, backward]));
        std::thread::sleep(GAP);
    }
    delays
}

/// Prints how far offsets are from the truth: those of single exchanges, and that of the shortest delay
/// of each direction, which an estimate is based on.
fn print(name: &str, delays: &[[Delay; 2]], of: fn(&Delay) -> i64) {
    let single = |[forward, backward]: &[Delay; 2]| (of(forward) - of(backward)) as f64 / 2.0;
    let squares: f64 = delays.iter().map(|it| single(it).powi(2)).sum();
    let mut sizes: Vec<f64> = delays.iter().map(|it| single(it).abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let least = |direction: usize| delays.iter().map(|it| of(&it[direction])).min().unwrap_or(0);
    println!(
        "{name}: offset of one exchange: rms {:.0} ns, median {:.0} ns, 95 % {:.0} ns; of the shortest \
         delays ({} and {} ns): {} ns",
        (squares / delays.len() as f64).sqrt(),
        sizes[sizes.len() / 2],
        sizes[sizes.len() * 95 / 100],
        least(0),
        least(1),
        (least(0) - least(1)) / 2
    );
}

#[test]
fn kernel_stamps_arrivals_after_xdp_by_microseconds() {
    if !require_root() || !require_tool("clang") {
        return;
    }
    let lab = Lab::new().unwrap();
    let plain = exchange(&lab);
    print("kernel, no XDP program", &plain, |it| it.kernel);
    let _programs = [lab.a.stamp_arrivals().unwrap(), lab.b.stamp_arrivals().unwrap()];
    let stamped = exchange(&lab);
    print("kernel, behind XDP", &stamped, |it| it.kernel);
    print("XDP", &stamped, |it| it.xdp);
    let mut between: Vec<i64> = stamped.iter().flatten().map(|it| it.kernel - it.xdp).collect();
    between.sort_unstable();
    let [least, median, high] = [0, between.len() / 2, between.len() * 95 / 100];
    println!(
        "from XDP to the stamp of the kernel: least {} ns, median {} ns, 95 % {} ns",
        between[least], between[median], between[high]
    );
    // Conversions between both clocks of the machine are exact to some tens of ns.
    assert!(between[least] > -500, "{} ns", between[least]);
    assert!((0..200_000).contains(&between[median]), "{} ns", between[median]);
    assert!(plain.iter().flatten().all(|it| it.xdp == 0), "nobody stamps without the program");
}
