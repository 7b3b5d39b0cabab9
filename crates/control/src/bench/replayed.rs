//! Trials that replay a capture at a packet rate.

use std::path::Path;

use wirestorm_base::pace::Pace;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_method::trial::{Length, OfferOutput, Step, StepOutput, TrialInput, TrialOutput};
use wirestorm_plan::edit::EditOptions;
use wirestorm_plan::replay::{Limits, ReceivePlan, ReplayPlan, SideAssignment, Target};

use super::test_bed::{PortPair, TestBed};
use crate::replay::Callbacks;
use crate::result::RunResult;
use crate::run::Plan;

/// Returns the only step of a trial of a user's traffic.
///
/// # Errors
/// Fails if there are several.
pub(super) fn only_step(input: &TrialInput) -> Result<Step, String> {
    match input.offers.as_slice() {
        [offer] if offer.steps.len() == 1 => Ok(offer.steps[0]),
        _ => Err("plans and captures are offered alone, with one load for each trial".into()),
    }
}

/// Returns the replay of a trial: the capture in a loop, from the sending interface of the only pair.
///
/// # Errors
/// Fails if the trial or the test bed has more than one of these.
pub(super) fn plan(bed: &TestBed, input: &TrialInput, capture: &Path) -> Result<Plan, String> {
    let step = only_step(input)?;
    let [PortPair { tx, rx }] = &*bed.paths.pairs else {
        return Err(
            "a capture is replayed on one pair of interfaces: give one --tx and --rx".into()
        );
    };
    if bed.paths.is_bidirectional {
        return Err("a capture is replayed in one direction: remove --bidirectional".into());
    }
    let rate = Rate::parse_per_second(&step.load.to_string(), 1).map_err(|it| it.to_string())?;
    let (packets, duration) = match step.length {
        Length::Units(units) => (units, Duration::MAX),
        Length::Time(time) => (step.units(), time),
    };
    let plan = ReplayPlan {
        captures: vec![capture.to_owned()],
        target: Target::Interfaces { primary: tx.clone(), secondary: None },
        sides: SideAssignment::Single,
        edits: EditOptions::default(),
        show: None,
        one_at_a_time: false,
        pace: Pace::Packets { rate, group: 1 },
        policy: bed.policy,
        limits: Limits { passes: u64::MAX, packets, duration },
        pass_delay: Duration::ZERO,
        preload: true,
        flows: None,
        unique: None,
        include: None,
        exclude: Vec::new(),
        original_length: false,
        receive: Some(ReceivePlan { interface: rx.clone(), verify: false }),
        workers: bed.workers,
        // The method judges the load.
        tolerance_ppm: u32::MAX,
        force_interface: bed.force_interface,
    };
    plan.check().map_err(|conflict| conflict.to_string())?;
    Ok(Plan::Replay { plan: Box::new(plan), backend: bed.backend, hooks: Callbacks::default() })
}

/// Reads what a method needs from the result of a replay. Delays are unknown: the frames have no time
/// stamps.
pub(super) fn read(input: &TrialInput, result: &RunResult) -> TrialOutput {
    let step = input.offers[0].steps[0];
    let offered = result.achieved.tx.packets;
    let receivers = || result.ports.iter().filter_map(|port| port.rx.as_ref());
    let dropped: u64 = receivers().map(|rx| rx.dropped).sum();
    // Frames of other hosts count as received, too, so that no more than all are.
    let arrived: u64 = receivers().map(|rx| rx.packets).sum();
    let output = StepOutput {
        intended: step.units(),
        offered,
        received: arrived.min(offered),
        seconds: step.duration().as_secs_f64(),
        ..StepOutput::default()
    };
    let offer = OfferOutput { steps: vec![output], ..OfferOutput::default() };
    TrialOutput {
        offers: vec![offer],
        receiver_dropped: dropped,
        notes: result.notes.clone(),
        ..TrialOutput::default()
    }
}
