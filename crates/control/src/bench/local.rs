//! Executes trials on interfaces.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

use wirestorm_base::count::pluralise;
use wirestorm_base::time::Duration;
use wirestorm_method::trial::{Trial, TrialError, TrialInput, TrialOutput};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::TrafficPlan;

use super::clients;
use super::output;
use super::plan::{Frames, PlanOfTrial};
use super::replayed;
use super::session::FullTrial;
use super::stop::StopSignal;
use super::test_bed::{TestBed, TestBedError};
use super::traffic::{NamedTraffic, PlanTraffic, TrafficDefinition};
use crate::files::HostFiles;
use crate::host::Host;
use crate::lifecycle::{Delivery, RunErrorKind, RunHandle, RunOutcome, Snapshot, StartAt};
use crate::result::{RefusedReport, RunResult};
use crate::run::{Options, Plan, Run};
use crate::traffic::{SeriesOptions, StreamOptions};

/// Phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Learning frames, and the wait after them.
    Learning,
    /// Test frames.
    Traffic,
    /// Wait for the records of a flow exporter.
    Collecting,
    /// Wait until the device has settled.
    Settling,
}

/// Observes trials.
pub trait Observer {
    /// A phase starts. `handle` controls its run; `None` during a wait.
    fn phase(&mut self, phase: Phase, handle: Option<&RunHandle>);

    /// The run of a phase made progress.
    fn progress(&mut self, phase: Phase, snapshot: &Snapshot);
}

/// Resets the device under test.
pub type Reset = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Executes trials on the interfaces of a test bed.
pub struct LocalTrial<O> {
    bed: TestBed,
    macs: Vec<(String, [u8; 6])>,
    host: Host,
    stop: StopSignal,
    reset: Option<Arc<Reset>>,
    traffic: NamedTraffic,
    observer: O,
    /// Result of the last trial.
    result: Option<Arc<RunResult>>,
}

impl<O: Observer> LocalTrial<O> {
    /// Creates the source of trials.
    ///
    /// # Errors
    /// Fails if an interface does not exist or has no MAC address.
    pub fn new(
        bed: TestBed,
        host: Host,
        stop: StopSignal,
        observer: O,
    ) -> Result<Self, TestBedError> {
        let macs = bed.macs()?;
        let traffic = NamedTraffic::new();
        Ok(Self { bed, macs, host, stop, reset: None, traffic, observer, result: None })
    }

    /// Sets traffic that trials may name.
    #[must_use]
    pub fn with_traffic(self, traffic: NamedTraffic) -> Self {
        Self { traffic, ..self }
    }

    /// Sets the function that resets the device.
    #[must_use]
    pub fn with_reset(self, reset: Reset) -> Self {
        Self { reset: Some(Arc::new(reset)), ..self }
    }

    /// Returns the observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Returns a run of a plan of streams.
    fn streams(&self, plan: TrafficPlan, multiplier: Multiplier, series: SeriesOptions) -> Plan {
        let options = StreamOptions {
            elsewhere: None,
            interfaces: vec![None; plan.ports.len()],
            backend: self.bed.backend,
            workers: self.bed.workers,
            policy: self.bed.policy,
            duration: Duration::MAX,
            multiplier,
            force_interface: self.bed.force_interface,
            is_visible: false,
            per_vlan: false,
            survives_outages: false,
            // The method judges the load.
            tolerance_ppm: f64::MAX,
            series,
        };
        Plan::Streams { plan: Arc::new(plan), options }
    }

    /// Runs a plan to its end.
    fn send(
        &mut self,
        plan: Plan,
        phase: Phase,
        reset_after_s: Option<f64>,
    ) -> Result<Arc<RunResult>, TrialError> {
        let mut resetting = None;
        let reset = self.reset.clone();
        let on_start = |handle: &RunHandle| {
            if let Some(after_s) = reset_after_s {
                resetting = Some(reset_later(reset, handle, after_s)?);
            }
            Ok(())
        };
        let (host, stop) = (&self.host, &self.stop);
        let result = run_plan(plan, host, stop, &mut self.observer, phase, on_start);
        if let Some(resetting) = resetting {
            let outcome = resetting.join();
            outcome.map_err(|_| TrialError::Failed("the reset panicked".into()))??;
        }
        result
    }

    fn check_stop(&self) -> Result<(), TrialError> {
        if self.stop.is_stopped() { Err(TrialError::Stopped) } else { Ok(()) }
    }

    /// Waits for this time, or until a stop.
    fn wait(&mut self, phase: Phase, time: Duration) {
        if time > Duration::ZERO {
            self.observer.phase(phase, None);
            self.stop.wait(time);
        }
    }
}

impl<O: Observer> Trial for LocalTrial<O> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        self.check_stop()?;
        let started = std::time::Instant::now();
        self.result = None;
        let only = input.offers.first().filter(|_| input.offers.len() == 1);
        let definition = only.and_then(|offer| self.traffic.get(&offer.traffic)).cloned();
        let (result, mut output) = match definition {
            Some(TrafficDefinition::Plan(traffic)) => self.plan(input, &traffic)?,
            Some(TrafficDefinition::Clients(traffic)) => {
                let plan = traffic.run(&self.bed, input).map_err(TrialError::Failed)?;
                let result = self.send(plan, Phase::Traffic, input.reset_after_s)?;
                let output = clients::read(input, &result);
                (result, output)
            }
            Some(TrafficDefinition::Capture(path)) => {
                let plan = replayed::plan(&self.bed, input, &path).map_err(TrialError::Failed)?;
                let result = self.send(plan, Phase::Traffic, input.reset_after_s)?;
                let output = replayed::read(input, &result);
                (result, output)
            }
            Some(TrafficDefinition::Headers(_)) | None => self.frames(input)?,
        };
        self.result = Some(result);
        // A stop in this wait keeps the trial; the next one does not begin.
        self.wait(Phase::Settling, self.bed.waits.settle);
        output.elapsed_s = started.elapsed().as_secs_f64();
        Ok(output)
    }
}

impl<O: Observer> LocalTrial<O> {
    /// Executes a trial of frames with headers, after learning frames.
    fn frames(&mut self, input: &TrialInput) -> Result<(Arc<RunResult>, TrialOutput), TrialError> {
        let waits = self.bed.waits;
        let frames = Frames { paths: &self.bed.paths, macs: &self.macs, traffic: &self.traffic };
        let learning = waits.sends_learning_frames.then(|| frames.learning(input)).transpose();
        let learning = learning.map_err(TrialError::Failed)?;
        let PlanOfTrial { plan, steps, .. } = frames.trial(input).map_err(TrialError::Failed)?;
        if let Some(PlanOfTrial { plan, .. }) = learning {
            let learning = self.streams(plan, Multiplier::ONE, SeriesOptions::default());
            self.send(learning, Phase::Learning, None)?;
            self.wait(Phase::Learning, waits.learning);
            self.check_stop()?;
        }
        let series = output::series(input).unwrap_or_default();
        let plan = self.streams(plan, Multiplier::ONE, series);
        let result = self.send(plan, Phase::Traffic, input.reset_after_s)?;
        let output = steps.output(input, &result);
        Ok((result, output))
    }

    /// Executes a trial of the flows of a user's plan, scaled to the load.
    fn plan(
        &mut self,
        input: &TrialInput,
        traffic: &PlanTraffic,
    ) -> Result<(Arc<RunResult>, TrialOutput), TrialError> {
        let (interfaces, ports) = (self.bed.interfaces(), traffic.ports());
        if ports > interfaces.len() {
            return Err(TrialError::Failed(format!(
                "the plan has {ports} ports, but --tx and --rx name {} interfaces",
                interfaces.len()
            )));
        }
        let step = replayed::only_step(input).map_err(TrialError::Failed)?;
        let seconds = step.duration().as_secs_f64();
        let plan = traffic.plan(seconds, &interfaces, &HostFiles).map_err(TrialError::Failed)?;
        let load = Multiplier::Frames(step.load as f64);
        let plan = self.streams(plan, load, SeriesOptions::default());
        let result = self.send(plan, Phase::Traffic, input.reset_after_s)?;
        let mut output = output::read(input, &vec![(0, 0); result.flows.len()], &result);
        // The load is the sum over the flows of a port.
        output.offers[0].steps[0].intended = step.units() * traffic.senders() as u64;
        Ok((result, output))
    }
}

impl<O: Observer> FullTrial for LocalTrial<O> {
    fn take_result(&mut self) -> Option<Arc<RunResult>> {
        self.result.take()
    }
}

/// Runs a plan to its end. `on_start` gets the handle of the run.
pub(super) fn run_plan(
    plan: Plan,
    host: &Host,
    stop: &StopSignal,
    observer: &mut impl Observer,
    phase: Phase,
    on_start: impl FnOnce(&RunHandle) -> Result<(), TrialError>,
) -> Result<Arc<RunResult>, TrialError> {
    let (preparing, snapshots) =
        Run::begin_watched(plan, Options::default(), host, Delivery::Latest);
    let handle = preparing.handle();
    observer.phase(phase, Some(&handle));
    // A stop before this point had no handle to stop.
    if stop.is_stopped() {
        handle.stop();
    }
    handle.start(StartAt::Now);
    let started = on_start(&handle);
    while let Some(snapshot) = snapshots.next() {
        observer.progress(phase, &snapshot);
    }
    let outcome = handle.wait();
    started?;
    completed(outcome)
}

/// Returns the result of a run that was completed.
pub(super) fn completed(outcome: RunOutcome) -> Result<Arc<RunResult>, TrialError> {
    let result = outcome.map_err(|error| match error.kind() {
        RunErrorKind::Abandoned => TrialError::Stopped,
        RunErrorKind::Input | RunErrorKind::Defect => TrialError::Failed(error.to_string()),
    })?;
    check_completed(&result)?;
    Ok(result)
}

/// Checks that the run of a trial came to its end and sent all that it was to send.
///
/// # Errors
/// It was interrupted, or has an error.
pub fn check_completed(result: &RunResult) -> Result<(), TrialError> {
    if result.interrupted {
        return Err(TrialError::Stopped);
    }
    match result.errors.first().cloned().or_else(|| refusal(result)) {
        Some(error) => Err(TrialError::Failed(error)),
        None => Ok(()),
    }
}

/// Returns the reason why a port cannot send some frames of a capture. They would count as lost by
/// the device.
fn refusal(result: &RunResult) -> Option<String> {
    result.ports.iter().find_map(|port| {
        let refused = port.tx.as_ref()?.refused;
        let count = |count: u64| pluralise(count, "frame is", "frames are");
        let reason = match refused {
            RefusedReport { too_long: 1.., .. } => format!(
                "{} longer than its MTU allows, up to {} bytes: increase the MTU, or use another \
                 capture",
                count(refused.too_long),
                refused.too_long_max
            ),
            RefusedReport { too_short: 1.., .. } => format!(
                "{} shorter than an Ethernet header: use another capture",
                count(refused.too_short)
            ),
            RefusedReport { unconvertible: 1.., .. } => format!(
                "{} of a link type that has no conversion to Ethernet: use another capture",
                count(refused.unconvertible)
            ),
            _ => return None,
        };
        Some(format!("{} cannot send the whole capture: {reason}", port.interface))
    })
}

/// Resets the device after a time of the run, on a thread.
fn reset_later(
    reset: Option<Arc<Reset>>,
    handle: &RunHandle,
    after_s: f64,
) -> Result<JoinHandle<Result<(), TrialError>>, TrialError> {
    let reset = reset.ok_or_else(|| {
        TrialError::Failed("a reset test needs a command that resets the device".into())
    })?;
    let handle = handle.clone();
    let wait = move || {
        handle.wait_running(None);
        if handle.wait_over(Some(StdDuration::from_secs_f64(after_s))) {
            return Ok(());
        }
        reset().map_err(TrialError::Failed)
    };
    let thread = std::thread::Builder::new().name("reset".into()).spawn(wait);
    thread.map_err(|error| TrialError::Failed(format!("cannot start a thread: {error}")))
}
