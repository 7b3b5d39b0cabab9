//! Trials of emulated clients and servers on both sides of a device.
//!
//! ```text
//! prepare (ARP, ND) ── init ── start ── ramp up ── sustain ── ramp down ── settle
//!                                             report│  │  │report
//!                                                   each interval
//! ```
//!
//! The counters of the sustain phase are the differences of reports that the workers give at its
//! start and its end. The time series come from the result of the run.

mod output;
mod plan;

use std::sync::Arc;

use wirestorm_base::time::Duration;
use wirestorm_method::connections::ConnectionsInput;
use wirestorm_method::trial::{Trial, TrialError, TrialInput, TrialOutput};

use self::output::Sampled;
use self::plan::PlanOfConnections;
use super::local::{Observer, Phase, completed};
use super::session::FullTrial;
use super::stop::StopSignal;
use super::test_bed::TestBed;
use crate::emulation::{EmulationOptions, WatchOptions};
use crate::host::Host;
use crate::lifecycle::{Delivery, Detail, RunHandle, Snapshot, StartAt};
use crate::result::RunResult;
use crate::run::{Options, Plan, Run};

/// Time that the load continues after the sustain phase, so that its end can be sampled.
const MARGIN: Duration = Duration::from_millis(500);
/// Time after the load in which connections may end: SYNs and segments without an answer need 15 s.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest interval of samples. RFC 9411 section 4.3.4 requires less than 2 s.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Most concurrent connections on each port.
const FLOWS_MAX: usize = 16_000_000;

/// Addresses of the clients and servers of each pair of interfaces: an address, or a range.
#[derive(Clone, Debug, Default)]
pub struct ConnectionAddresses {
    /// Clients behind the first interface of each pair.
    pub clients: Vec<String>,
    /// Servers behind the second interface of each pair.
    pub servers: Vec<String>,
}

/// Executes trials of connections on the interfaces of a test bed.
pub struct EmulationTrial<O> {
    bed: TestBed,
    addresses: ConnectionAddresses,
    host: Host,
    stop: StopSignal,
    observer: O,
    /// Result of the last trial.
    result: Option<Arc<RunResult>>,
}

impl<O: Observer> EmulationTrial<O> {
    /// Creates the source of trials.
    ///
    /// # Errors
    /// Fails unless each pair of interfaces has addresses of clients and servers.
    pub fn new(
        bed: TestBed,
        addresses: ConnectionAddresses,
        host: Host,
        stop: StopSignal,
        observer: O,
    ) -> Result<Self, String> {
        let pairs = bed.paths.pairs.len();
        for (name, found) in [("clients", &addresses.clients), ("servers", &addresses.servers)] {
            if found.len() != pairs {
                return Err(format!(
                    "found {} ranges of addresses of {name}, expected one for each of the {pairs} \
                     pairs of interfaces",
                    found.len()
                ));
            }
        }
        Ok(Self { bed, addresses, host, stop, observer, result: None })
    }

    /// Runs the clients and servers, and samples their counters.
    fn emulate(
        &mut self,
        input: &ConnectionsInput,
        load: u64,
    ) -> Result<(Sampled, Arc<RunResult>), TrialError> {
        let plan = PlanOfConnections { bed: &self.bed, addresses: &self.addresses, input, load };
        let plan = plan.build().map_err(TrialError::Failed)?;
        let interval = interval(input);
        let loaded = input.ramp_up.saturating_add(input.sustain);
        // Connections that are held end in the order in which they began.
        let holding = input.think_time.saturating_add(input.ramp_up);
        let ramp_down = if input.think_time > Duration::ZERO { holding } else { Duration::ZERO };
        let options = EmulationOptions {
            interfaces: vec![None; plan.ports.len()],
            folder: std::path::PathBuf::new(),
            backend: self.bed.backend,
            duration: loaded.saturating_add(MARGIN),
            drain_timeout: ramp_down.saturating_add(DRAIN_TIMEOUT),
            drain_timeout_flag: None,
            link_down_timeout: EmulationOptions::LINK_DOWN_TIMEOUT,
            watch: WatchOptions { interval, ..WatchOptions::default() },
            rx_coalesce: Duration::from_micros(50),
            flows_max: FLOWS_MAX,
            seed: EmulationOptions::random_seed(),
            force_interface: self.bed.force_interface,
            verify_checksums: false,
            is_visible: false,
        };
        let plan = Plan::Emulation { plan: Arc::new(plan), options };
        let (preparing, snapshots) =
            Run::begin_watched(plan, Options::default(), &self.host, Delivery::Latest);
        let handle = preparing.handle();
        self.observer.phase(Phase::Learning, Some(&handle));
        // A stop before this point had no handle to stop.
        if self.stop.is_stopped() {
            handle.stop();
        }
        if handle.wait_prepared(None) && self.stop.wait(input.init) {
            handle.stop();
        }
        self.observer.phase(Phase::Traffic, Some(&handle));
        handle.start(StartAt::Now);
        let mut sampler = Sampler::new(input, interval);
        while let Some(snapshot) = snapshots.next() {
            sampler.sample(&snapshot, &handle);
            self.observer.progress(Phase::Traffic, &snapshot);
        }
        let result = completed(handle.wait())?;
        let sampled = sampler.sampled.ok_or_else(|| {
            TrialError::Failed("the run ended before the end of the sustain phase".into())
        })?;
        Ok((sampled, result))
    }
}

impl<O: Observer> Trial for EmulationTrial<O> {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        let started = std::time::Instant::now();
        self.result = None;
        let step = input.offers.first().and_then(|offer| offer.steps.first());
        let (Some(step), Some(connections)) = (step, &input.connections) else {
            return Err(TrialError::Failed("expected a trial of connections".into()));
        };
        let (sampled, result) = self.emulate(connections, step.load)?;
        let is_ipv6 = self.addresses.clients.iter().any(|clients| clients.contains(':'));
        let headers = if is_ipv6 { output::HEADERS_IPV6 } else { output::HEADERS_IPV4 };
        let mut output = output::read(connections, &sampled, &result, headers);
        self.result = Some(result);
        if self.bed.waits.settle > Duration::ZERO {
            self.observer.phase(Phase::Settling, None);
            if self.stop.wait(self.bed.waits.settle) {
                return Err(TrialError::Stopped);
            }
        }
        output.elapsed_s = started.elapsed().as_secs_f64();
        Ok(output)
    }
}

impl<O: Observer> FullTrial for EmulationTrial<O> {
    fn take_result(&mut self) -> Option<Arc<RunResult>> {
        self.result.take()
    }
}

/// Returns the interval of samples: a tenth of the sustain phase, from 100 ms to 1 s. The requests
/// of connections that are held repeat with the think time, so intervals divide it.
fn interval(input: &ConnectionsInput) -> Duration {
    let tenth = Duration::from_millis(input.sustain.as_nanos() / 10_000_000);
    let interval = tenth.clamp(Duration::from_millis(100), INTERVAL_MAX);
    match input.think_time.as_nanos() {
        0 => interval,
        think => Duration::from_nanos(think / think.div_ceil(interval.as_nanos())),
    }
}

/// Takes reports in the sustain phase.
struct Sampler {
    ramp_up: Duration,
    end: Duration,
    interval: Duration,
    /// Time of the next report.
    due: Duration,
    begun: Option<output::Sample>,
    /// Progress at each report.
    progress: Vec<output::Progress>,
    sampled: Option<Sampled>,
}

impl Sampler {
    fn new(input: &ConnectionsInput, interval: Duration) -> Self {
        let end = input.ramp_up.saturating_add(input.sustain);
        Self {
            ramp_up: input.ramp_up,
            end,
            interval,
            due: input.ramp_up,
            begun: None,
            progress: Vec::new(),
            sampled: None,
        }
    }

    /// Takes a report if it is due.
    fn sample(&mut self, snapshot: &Snapshot, handle: &RunHandle) {
        let now = snapshot.elapsed;
        if now < self.due || now < self.ramp_up || self.sampled.is_some() {
            return;
        }
        let is_end = now >= self.end;
        // A full report visits each connection, so it is for the two ends only.
        let detail = if is_end || self.begun.is_none() { Detail::All } else { Detail::Port };
        let Some(reports) = handle.port_reports(detail) else { return };
        self.progress.extend(output::Progress::of(&reports));
        let Some(begun) = self.begun.take() else {
            self.begun = Some(output::Sample { reports });
            self.due = self.due.saturating_add(self.interval);
            return;
        };
        if is_end {
            let ended = output::Sample { reports };
            let progress = std::mem::take(&mut self.progress);
            self.sampled = Some(Sampled { begun, ended, progress });
            return;
        }
        self.begun = Some(begun);
        while self.due <= now {
            self.due = self.due.saturating_add(self.interval);
        }
        self.due = self.due.min(self.end);
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_method::connections::LoadUnit;

    use super::*;

    #[test]
    fn samples_are_at_most_a_second_apart_and_divide_the_think_time() {
        let of = |sustain, think| {
            let [init, ramp_up] = [Duration::ZERO; 2];
            let [sustain, think_time] = [sustain, think].map(Duration::from_millis);
            let (unit, classes) = (LoadUnit::ConnectionsPerSecond, Vec::new());
            interval(&ConnectionsInput { unit, classes, init, ramp_up, sustain, think_time })
        };
        assert_eq!(of(300_000, 0), Duration::from_secs(1));
        assert_eq!(of(3_000, 0), Duration::from_millis(300));
        assert_eq!(of(200, 0), Duration::from_millis(100));
        assert_eq!(of(300_000, 40_500), Duration::from_nanos(40_500_000_000 / 41));
        assert_eq!(of(2_000, 300), Duration::from_millis(150));
    }
}
