//! Arbitrary text as a plan of flows: errors with messages, or valid frames. The file name of a
//! capture is its frame in hexadecimal digits.

use std::num::NonZeroU64;

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_sim::streams::{SimulationOptions, simulate};
use wirestorm_wire::layout::ValueKind;

use crate::arbitrary_input;

/// Number of frames that each port sends.
const FRAMES: u64 = 50;
/// Number of ports to simulate.
const PORTS: usize = 4;
/// Shortest valid frame: an Ethernet header.
const LENGTH_MIN: usize = 14;

/// Checks one input.
pub fn run(input: &[u8]) {
    let Some(text) = arbitrary_input::<&str>(input) else { return };
    let load = |file: &str, _| ValueKind::parse_bytes(file).map_err(|error| error.to_string());
    let plan = match TrafficPlan::parse_with(text, load) {
        Ok(plan) => plan,
        Err(errors) => {
            assert!(errors.iter().count() > 0);
            for error in errors.iter() {
                assert!(!error.path.is_empty() && !error.message.is_empty());
            }
            return;
        }
    };
    let ten_gigabits = Rate::new(10, Duration::from_nanos(1)).expect("not zero");
    for port in 0..plan.ports.len().min(PORTS) {
        for (speed, multiplier) in
            [(None, Multiplier::ONE), (Some(ten_gigabits), Multiplier::Percent(33.0))]
        {
            let Ok(streams) = plan.streams(port, speed, multiplier) else { continue };
            let streams: Vec<_> = streams.into_iter().map(|(_, stream)| stream).collect();
            for workers in 1..=2 {
                let options = SimulationOptions {
                    frames_max: FRAMES,
                    workers: NonZeroU64::new(workers).expect("not zero"),
                    duration_max: Duration::MAX,
                };
                let simulation = simulate(&streams, &options).expect("memory does not fail");
                assert!(simulation.frames.len() as u64 <= FRAMES);
                for frame in &simulation.frames {
                    assert!(frame.bytes.len() >= LENGTH_MIN);
                }
            }
        }
    }
}
