//! Preview of the first frames of each flow, without sending.

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::port::Receive;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::{Duration, Instant};
use wirestorm_engine::replay::WorkerState;
use wirestorm_engine::stream::{Generator, GeneratorOptions, Share};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::{PlanErrors, TrafficPlan};
use wirestorm_sim::memory::{WireOptions, wire};

/// A frame that a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// Index of the flow in the plan.
    pub flow: usize,
    /// Departure time relative to the start of the flow.
    pub departure: Duration,
    /// Frame bytes without FCS.
    pub frame: Vec<u8>,
}

/// Returns the first `count` frames of each flow, each sent alone. Ports without a speed in the
/// plan have `bits_per_second`.
///
/// # Errors
/// Fails if the plan is invalid for its ports.
pub fn preview(
    plan: &TrafficPlan,
    count: u64,
    bits_per_second: Rate,
) -> Result<Vec<Preview>, PlanErrors> {
    let mut previews = Vec::new();
    for port in 0..plan.ports.len() {
        for (flow, mut stream) in plan.streams(port, Some(bits_per_second), Multiplier::ONE)? {
            stream.transmission.next = None;
            stream.transmission.self_start = true;
            stream.transmission.start_paused = false;
            let options = GeneratorOptions {
                share: Share::ALL,
                policy: DeparturePolicy::default(),
                duration_max: Duration::MAX,
                frames_max: count,
                virtual_time: true,
                horizon: Duration::ZERO,
                first_number: 0,
            };
            let frame_length_max = stream.template.len();
            let (mut transmit, mut receive) =
                wire(WireOptions { frame_length_max, ..WireOptions::default() });
            let mut generator = Generator::new(&[stream], options, Instant::ZERO);
            // A port in memory does not fail.
            while let Ok(iteration) = generator.breathe(Instant::ZERO, &mut transmit) {
                let mut batch = Vec::new();
                while receive.receive(64, &mut batch).is_ok_and(|count| count > 0) {}
                for received in batch {
                    previews.push(Preview {
                        flow,
                        departure: received.arrival.saturating_since(Instant::ZERO),
                        frame: receive.frame(&received).to_vec(),
                    });
                    receive.release(received);
                }
                if iteration.state == WorkerState::Done {
                    break;
                }
            }
        }
    }
    previews.sort_by_key(|preview| preview.flow);
    Ok(previews)
}
