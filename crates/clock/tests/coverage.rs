//! Simulated pairs of clocks: the true offset is in the reported interval in 99 % of all cases, and
//! the interval is not wider than it has to be.

use wirestorm_base::random::Random;
use wirestorm_clock::estimate::{EpochReason, Timeline};
use wirestorm_clock::exchange::Exchange;
use wirestorm_clock::timestamp::Timestamp;
use wirestorm_clock::virtual_clock::{VirtualClock, VirtualClockOptions};

const SECOND: i64 = 1_000_000_000;

/// Path between two clocks.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Delay of the empty path in each direction, in ns.
    forward: f64,
    backward: f64,
    /// Mean of the additional delay of each packet (exponential), in ns.
    jitter: f64,
    /// Share of packets in bursts, and mean additional delay in a burst, in ns.
    bursts: (f64, f64),
    /// Standard deviation of each time stamp, in ns.
    stamp: f64,
    /// Share of lost exchanges.
    loss: f64,
}

const LAN: Path = Path {
    forward: 50e3,
    backward: 50e3,
    jitter: 10e3,
    bursts: (0.01, 200e3),
    stamp: 1e3,
    loss: 0.0,
};

const WAN: Path =
    Path { forward: 50e6, backward: 50e6, jitter: 50e3, bursts: (0.3, 3e6), stamp: 1e3, loss: 0.1 };

struct Simulation {
    near: VirtualClock,
    far: VirtualClock,
    exchanges: Vec<Exchange>,
    seconds: i64,
}

impl Simulation {
    /// Simulates `rate` exchanges a second.
    fn new(
        seed: u64,
        path: Path,
        [near, far]: [VirtualClockOptions; 2],
        rate: i64,
        seconds: i64,
    ) -> Self {
        let mut random = Random::new(seed);
        let (near, far) = (VirtualClock::new(0, near), VirtualClock::new(0, far));
        let mut exchanges = Vec::new();
        for number in 0..rate * seconds {
            let sent = number * SECOND / rate;
            let mut delay = |empty: f64| {
                let burst = random.exponential() * path.bursts.1;
                let is_burst = random.uniform() < path.bursts.0;
                let queue = random.exponential() * path.jitter;
                (empty + queue + if is_burst { burst } else { 0.0 }) as i64
            };
            let arrived = sent + delay(path.forward);
            let replied = arrived + 20_000;
            let back = replied + delay(path.backward);
            let mut stamp = |clock: &VirtualClock, time: i64| {
                let noise = (random.normal() * path.stamp) as i64;
                Timestamp::from_nanos(clock.reading(time) + noise)
            };
            let exchange = Exchange {
                t1: stamp(&near, sent),
                t2: stamp(&far, arrived),
                t3: stamp(&far, replied),
                t4: stamp(&near, back),
            };
            if random.uniform() >= path.loss {
                exchanges.push(exchange);
            }
        }
        Self { near, far, exchanges, seconds }
    }

    /// Returns the error and the half-width of estimates at many times, 20 in a second.
    fn errors(&self, timeline: &Timeline) -> Vec<(f64, f64)> {
        let times = (20..20 * (self.seconds - 1)).map(|twentieth| twentieth * SECOND / 20 + 7);
        let errors = times.map(|time| {
            let estimate = timeline.at(Timestamp::from_nanos(self.near.reading(time))).unwrap();
            let truth = self.far.error_ns(time) - self.near.error_ns(time);
            (estimate.offset_ns - truth, estimate.half_width_ns)
        });
        errors.collect()
    }
}

fn random_clock(random: &mut Random, wander_ppb: f64) -> VirtualClockOptions {
    VirtualClockOptions {
        offset_ns: (random.uniform() - 0.5) * 2e9,
        drift_ppb: (random.uniform() - 0.5) * 100e3,
        wander_ppb,
        steps: Vec::new(),
        seed: random.next_u64(),
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Coverage and accuracy in one scenario.
struct Outcome {
    /// Share of estimates whose interval contains the true offset.
    inside: f64,
    /// Medians over the simulations, in ns: half-width, and largest error.
    half_width: f64,
    error_max: f64,
    /// Root mean square of all errors, in ns.
    rms: f64,
}

fn simulate(path: Path, rate: i64, seeds: std::ops::Range<u64>) -> Outcome {
    let (mut widths, mut largest, mut errors_of_all) = (Vec::new(), Vec::new(), Vec::new());
    for seed in seeds {
        let mut random = Random::new(seed);
        let wander = if seed % 2 == 0 { 0.0 } else { 10.0 };
        let clocks = [random_clock(&mut random, wander), random_clock(&mut random, wander)];
        let simulation = Simulation::new(seed, path, clocks, rate, 60);
        let errors = simulation.errors(&Timeline::new(&simulation.exchanges));
        largest.push(errors.iter().map(|(error, _)| error.abs()).fold(0.0, f64::max));
        widths.push(median(&mut errors.iter().map(|(_, width)| *width).collect::<Vec<_>>()));
        errors_of_all.extend(errors);
    }
    let count = errors_of_all.len() as f64;
    let inside = errors_of_all.iter().filter(|(error, width)| error.abs() <= *width).count();
    let squares: f64 = errors_of_all.iter().map(|(error, _)| error * error).sum();
    Outcome {
        inside: inside as f64 / count,
        half_width: median(&mut widths),
        error_max: median(&mut largest),
        rms: (squares / count).sqrt(),
    }
}

/// 1,000 simulations of a minute, with drifts up to 50 ppm for each clock, offsets up to 1 s, and in
/// every second one a wander of 10 ppb a second.
#[test]
fn true_offset_is_in_the_interval_of_1000_simulations() {
    for (name, path, rate, rms_max) in [
        ("LAN", LAN, 20, 700.0),
        ("LAN, 50 a second", LAN, 50, 700.0),
        ("WAN", WAN, 20, 1_500.0),
        ("WAN, 50 a second", WAN, 50, 1_500.0),
    ] {
        let Outcome { inside, half_width, error_max, rms } = simulate(path, rate, 0..250);
        let line = format!(
            "{name}: {:.2} % inside, half-width {half_width:.0} ns, largest error \
             {error_max:.0} ns, rms {rms:.0} ns",
            100.0 * inside
        );
        println!("{line}");
        assert!(inside >= 0.99, "{line}");
        assert!(half_width <= 2.0 * error_max, "{line}");
        assert!(rms <= rms_max, "{line}");
    }
}

#[test]
fn asymmetric_path_is_within_the_bound() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let clocks = [random_clock(&mut random, 0.0), random_clock(&mut random, 0.0)];
        let path = Path { forward: 52e6, backward: 48e6, ..WAN };
        let simulation = Simulation::new(seed, path, clocks, 20, 30);
        let timeline = Timeline::new(&simulation.exchanges);
        for (error, _) in simulation.errors(&timeline) {
            // Half of the asymmetry, which no two-way exchange can show.
            assert!((error - 2e6).abs() < 50e3, "{seed}: {error}");
        }
        for bound in timeline.knots.iter().map(|knot| knot.bound_ns()) {
            assert!((49.9e6..50.1e6).contains(&bound), "{seed}: {bound}");
        }
    }
}

/// Returns the reasons of the epochs after the first one, and the share of estimates outside of their
/// intervals, on a LAN.
fn epochs(
    seed: u64,
    far: VirtualClockOptions,
    change: impl FnOnce(&mut Vec<Exchange>),
) -> (Vec<EpochReason>, f64) {
    let mut random = Random::new(seed);
    let near = random_clock(&mut random, 0.0);
    let mut simulation = Simulation::new(seed, LAN, [near, far], 20, 60);
    change(&mut simulation.exchanges);
    let timeline = Timeline::new(&simulation.exchanges);
    let reasons: Vec<_> = timeline.epochs.iter().map(|epoch| epoch.reason).collect();
    assert_eq!(reasons.first(), Some(&EpochReason::Start));
    let errors = simulation.errors(&timeline);
    let outside = errors.iter().filter(|(error, width)| error.abs() > *width).count();
    (reasons[1..].to_vec(), outside as f64 / errors.len() as f64)
}

#[test]
fn step_of_a_clock_splits_epochs() {
    for seed in 0..40 {
        let size = [1e9, -1e9, 1e6, -1e6][seed as usize % 4];
        let mut far = random_clock(&mut Random::new(!seed), 0.0);
        far.steps.push((30.2e9, size));
        let (reasons, outside) = epochs(seed, far, |_| ());
        let [EpochReason::ClockStep { by_ns }] = reasons[..] else { panic!("{seed}: {reasons:?}") };
        assert!((by_ns as f64 - size).abs() < 50e3, "{seed}: {by_ns}");
        assert!(outside <= 0.02, "{seed}: {outside}");
    }
}

#[test]
fn change_of_the_route_splits_epochs() {
    for seed in 0..20 {
        let longer = 1_000_000 * if seed % 2 == 0 { 1 } else { -1 } + 2_000_000;
        let far = random_clock(&mut Random::new(!seed), 0.0);
        let (reasons, _) = epochs(seed, far, |exchanges| {
            let half = exchanges.len() / 2;
            for exchange in &mut exchanges[half..] {
                exchange.t2 = exchange.t2 + longer;
                exchange.t3 = exchange.t3 + longer;
                exchange.t4 = exchange.t4 + longer;
            }
        });
        let [EpochReason::RouteChange { forward_ns, backward_ns }] = reasons[..] else {
            panic!("{seed}: {reasons:?}")
        };
        assert!((forward_ns - longer).abs() < 50_000, "{seed}: {forward_ns}");
        assert!(backward_ns.abs() < 50_000, "{seed}: {backward_ns}");
    }
}

#[test]
fn steady_clocks_have_one_epoch() {
    for seed in 0..50 {
        let far = random_clock(&mut Random::new(!seed), 10.0);
        let (reasons, _) = epochs(seed, far, |_| ());
        assert_eq!(reasons, [], "{seed}");
    }
}

/// A system clock that is slewed by 500 ppm for 10 s, as steps of 500 ns each millisecond.
#[test]
fn slew_is_followed_within_the_interval() {
    for seed in 0..10 {
        let mut far = random_clock(&mut Random::new(!seed), 0.0);
        far.steps.extend((0..10_000).map(|step| (20e9 + f64::from(step) * 1e6, 500.0)));
        let (_, outside) = epochs(seed, far, |_| ());
        assert!(outside <= 0.05, "{seed}: {outside}");
    }
}

#[test]
fn wrong_time_stamps_do_not_count() {
    let exchange = |t1: i64, t2: i64, t3: i64, t4: i64| {
        let [t1, t2, t3, t4] = [t1, t2, t3, t4].map(Timestamp::from_nanos);
        Exchange { t1, t2, t3, t4 }
    };
    assert_eq!(Timeline::new(&[]).knots, []);
    assert_eq!(Timeline::new(&[exchange(0, 5, 7, 1); 10]).knots, [], "negative round trips");
    let extreme = [i64::MIN, -1, 0, 1, i64::MAX];
    for t1 in extreme {
        for t2 in extreme {
            for t3 in extreme {
                for t4 in extreme {
                    let timeline = Timeline::new(&[exchange(t1, t2, t3, t4); 6]);
                    let offsets = timeline.knots.iter().map(|knot| knot.offset_ns);
                    assert!(offsets.into_iter().all(f64::is_finite));
                    timeline.at(Timestamp::from_nanos(t2));
                }
            }
        }
    }
}
