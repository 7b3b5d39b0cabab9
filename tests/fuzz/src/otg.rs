//! Arbitrary configurations of Open Traffic Generator, in JSON and protobuf: errors with messages,
//! or valid frames.

use std::num::NonZeroU64;

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_otg::proto::Config;
use wirestorm_otg::{Resolve, from_json, from_protobuf, lower, to_json};
use wirestorm_plan::Multiplier;
use wirestorm_sim::streams::{SimulationOptions, simulate};

/// Number of frames that each port sends.
const FRAMES: u64 = 50;
/// Number of ports to simulate.
const PORTS: usize = 4;
/// Shortest valid frame: an Ethernet header.
const LENGTH_MIN: usize = 14;

/// Checks one input.
pub fn run(input: &[u8]) {
    if let Ok((config, _)) = from_protobuf::<Config>(input) {
        check(&config);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    match from_json::<Config>(text) {
        Ok((config, _)) => check(&config),
        Err(error) => assert!(!error.message.is_empty()),
    }
}

fn check(config: &Config) {
    let text = to_json(config);
    let (again, _) = from_json::<Config>(&text).expect("what was decoded");
    assert_eq!(to_json(&again), text);
    let lowered = match lower(config, &Resolve::default()) {
        Ok(lowered) => lowered,
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(errors.iter().all(|error| !error.message.is_empty()));
            return;
        }
    };
    let ten_gigabits = Rate::new(10, Duration::from_nanos(1)).expect("not zero");
    for port in 0..lowered.plan.ports.len().min(PORTS) {
        let Ok(streams) = lowered.plan.streams(port, Some(ten_gigabits), Multiplier::ONE) else {
            continue;
        };
        let streams: Vec<_> = streams.into_iter().map(|(_, stream)| stream).collect();
        let options = SimulationOptions {
            frames_max: FRAMES,
            workers: NonZeroU64::MIN,
            duration_max: Duration::MAX,
        };
        let simulation = simulate(&streams, &options).expect("memory does not fail");
        assert!(simulation.frames.len() as u64 <= FRAMES);
        for frame in &simulation.frames {
            assert!(frame.bytes.len() >= LENGTH_MIN);
        }
    }
}
