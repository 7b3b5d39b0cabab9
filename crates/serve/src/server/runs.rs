//! Runs of a server: each has a thread that records its states and its result.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wirestorm_api::delays::FlowDelays;
use wirestorm_api::progress::Progress;
use wirestorm_api::run::{Figure, RunState, RunSummary, WhenLeaseEnds};
use wirestorm_api::session::Limits;
use wirestorm_control::host::Lease;
use wirestorm_control::result::RunResult;
use wirestorm_control::{Host, RunErrorKind, RunHandle, RunOutcome};
use wirestorm_store::entry::RunEntry;
use wirestorm_store::record::{RecordKind, State};
use wirestorm_store::{RunWriter, StoreError, figures};

use super::load::LoadSource;
use super::ports::now_unix_ns;

/// Number of ended runs that stay in memory.
const ENDED_MAX: usize = Host::ENDED_RUNS_MAX;

/// A run of this server.
pub(crate) struct HostedRun {
    pub(crate) id: String,
    pub(super) name: Option<String>,
    pub(super) kind: RecordKind,
    pub(crate) user: String,
    pub(crate) session: String,
    pub(crate) interfaces: Vec<String>,
    pub(super) created_unix_ns: u64,
    pub(crate) handle: RunHandle,
    /// Names of the flows, in plan order.
    pub(crate) flows: Arc<[String]>,
    /// What its load follows from.
    pub(super) load: LoadSource,
    pub(super) when_lease_ends: WhenLeaseEnds,
    /// Limits of the user when the run started.
    pub(super) limits: Arc<Limits>,
    pub(super) saving: Mutex<Saving>,
    /// Wakes those who wait for the end of [`Saving::Pending`].
    pub(super) is_saved: Condvar,
    /// Why the server stopped the run; `None` if it did not.
    pub(super) stop_reason: Mutex<Option<String>>,
    /// Counters at the last check of the limits, by port.
    pub(super) checked: Mutex<Option<PortCounters>>,
    /// Reservations of its interfaces for its user, until it is over.
    pub(super) reservations: Mutex<Vec<Lease>>,
}

/// What live counters include.
#[derive(Clone, Debug)]
pub(crate) struct ProgressDetail {
    /// Each flow.
    pub(crate) flows: bool,
    /// Delays of the measured flows at these positions among all measured ones.
    pub(crate) delays: Range<usize>,
}

/// Counters of the ports of a run at a time.
pub(super) struct PortCounters {
    pub(super) at: Instant,
    /// Frames and bytes that each port sent.
    pub(super) sent: Vec<(u64, u64)>,
}

/// Progress of saving a run.
pub(super) enum Saving {
    /// The run has not ended.
    Pending(RunWriter),
    /// The result is in the history, or there is none.
    Saved {
        /// End of the run.
        ended_unix_ns: u64,
    },
    /// The result could not be written; the server tries again.
    Failed { writer: RunWriter, ended_unix_ns: u64, error: String },
}

impl HostedRun {
    /// Returns the state. A run counts as over once its result is saved, or saving has failed.
    pub(super) fn state(&self) -> RunState {
        let state = self.handle.state();
        let is_pending = matches!(*self.saving(), Saving::Pending(_));
        if state.is_over() && is_pending { RunState::Draining } else { state.into() }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over()
    }

    pub(crate) fn summary(&self) -> RunSummary {
        let outcome = self.handle.outcome();
        let latest = self.handle.latest();
        let waiting_for = latest.and_then(|snapshot| snapshot.waiting_for.clone());
        let reason = self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut message, figure, verdict) = match &outcome {
            None => (waiting_for, None, None),
            Some(Err(error)) => (Some(error.to_string()), None, None),
            Some(Ok(result)) => (
                result.errors.first().cloned(),
                figures::of_run(result).into_iter().next().map(figure),
                Some(result.verdict.outcome.name().to_owned()),
            ),
        };
        message = reason.or(message);
        let (mut is_saved, mut ended_unix_ns) = (true, None);
        match &*self.saving() {
            Saving::Pending(_) => {}
            Saving::Saved { ended_unix_ns: ended } => ended_unix_ns = Some(*ended),
            Saving::Failed { error, ended_unix_ns: ended, .. } => {
                message = Some(format!("the result is not saved: {error}"));
                (is_saved, ended_unix_ns) = (false, Some(*ended));
            }
        }
        RunSummary {
            id: self.id.clone(),
            name: self.name.clone(),
            kind: self.kind.name().to_owned(),
            state: self.state(),
            is_paused: self.handle.is_paused(),
            has_paused_flows: !self.handle.paused_flows().is_empty(),
            user: Some(self.user.clone()),
            session: self.session.clone(),
            interfaces: self.interfaces.clone(),
            created_unix_ns: self.created_unix_ns,
            ended_unix_ns,
            outcome: verdict,
            message,
            figure,
            is_saved,
        }
    }

    /// Returns the live counters. With delays, it waits for the receivers, about a millisecond.
    pub(super) fn progress(&self, detail: &ProgressDetail) -> Progress {
        let state = self.state();
        let mut progress = match self.handle.latest() {
            Some(snapshot) => Progress::new(&snapshot, state, detail.flows),
            None => Progress::in_state(state),
        };
        progress.is_paused = self.handle.is_paused();
        self.add_delays(&mut progress, detail.delays.clone());
        progress
    }

    /// Adds the delays of the measured flows at these positions among all measured ones.
    fn add_delays(&self, progress: &mut Progress, measured: Range<usize>) {
        let flows = progress.flows.iter().enumerate();
        let flows = flows.filter(|(_, flow)| flow.received.is_some()).map(|(index, _)| index);
        let chosen: Vec<usize> = flows.skip(measured.start).take(measured.len()).collect();
        if chosen.is_empty() {
            return;
        }
        let result = self.result();
        let delays: BTreeMap<usize, FlowDelays> = match &result {
            None => {
                let delays = self.handle.delays(&chosen).into_iter();
                delays.map(|(flow, values)| (flow, FlowDelays::new(values.buckets()))).collect()
            }
            Some(result) => {
                let delays = chosen.into_iter().filter_map(|flow| {
                    let measured = result.flows.get(flow)?.measured.iter();
                    let buckets = measured.flat_map(|it| it.delay.buckets.iter().copied());
                    Some((flow, FlowDelays::new(buckets)))
                });
                delays.collect()
            }
        };
        for (flow, delays) in delays {
            if let Some(flow) = progress.flows.get_mut(flow) {
                flow.delays = Some(delays);
            }
        }
    }

    /// Returns the result; `None` if the run has none, or not yet.
    pub(crate) fn result(&self) -> Option<Arc<RunResult>> {
        self.handle.outcome()?.ok()
    }

    /// Stops the run for a reason, which its summary shows.
    pub(crate) fn stop(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            let mut stored = self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner);
            stored.get_or_insert(reason);
        }
        self.handle.stop();
    }

    /// Writes the result of the ended run to the history, or tries again.
    pub(super) fn save(&self) {
        let Some(outcome) = self.handle.outcome() else { return };
        let reason = self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut saving = self.saving();
        let now = now_unix_ns();
        let before = std::mem::replace(&mut *saving, Saving::Saved { ended_unix_ns: now });
        let (mut writer, ended_unix_ns) = match before {
            Saving::Pending(writer) => (writer, now),
            Saving::Failed { writer, ended_unix_ns, .. } => (writer, ended_unix_ns),
            saved @ Saving::Saved { .. } => return *saving = saved,
        };
        *saving = match write(&mut writer, &outcome, reason) {
            Ok(()) => Saving::Saved { ended_unix_ns },
            Err(error) => Saving::Failed { writer, ended_unix_ns, error: error.to_string() },
        };
        drop(saving);
        self.is_saved.notify_all();
    }

    /// Waits until the run has ended and its result is saved, or could not be, for at most
    /// `timeout`.
    pub(super) fn wait_saved(&self, timeout: Duration) {
        let is_pending = |saving: &mut Saving| matches!(saving, Saving::Pending(_));
        let waited = self.is_saved.wait_timeout_while(self.saving(), timeout, is_pending);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Releases the interfaces of the ended run.
    pub(super) fn release(&self) {
        self.reservations.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn is_unsaved(&self) -> bool {
        matches!(*self.saving(), Saving::Failed { .. })
    }

    fn saving(&self) -> MutexGuard<'_, Saving> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(
    writer: &mut RunWriter,
    outcome: &RunOutcome,
    reason: Option<String>,
) -> Result<(), StoreError> {
    match outcome {
        Ok(result) => writer.end_with(result, reason),
        Err(error) => {
            let state = match error.kind() {
                RunErrorKind::Abandoned => State::Interrupted,
                RunErrorKind::Input | RunErrorKind::Defect => State::Failed,
            };
            writer.end(state, Some(reason.unwrap_or_else(|| error.to_string())))
        }
    }
}

/// Runs of a server by ID: all active ones, and the last that ended.
#[derive(Default)]
pub(super) struct Runs(Mutex<BTreeMap<String, Arc<HostedRun>>>);

impl Runs {
    /// Adds a run. Removes the oldest saved ones beyond the limit.
    pub(super) fn add(&self, run: Arc<HostedRun>) {
        let mut runs = self.lock();
        let ended = runs.values().filter(|run| run.is_over() && !run.is_unsaved());
        let mut ended: Vec<(u64, String)> =
            ended.map(|run| (run.created_unix_ns, run.id.clone())).collect();
        ended.sort();
        let excess = (ended.len() + 1).saturating_sub(ENDED_MAX);
        for (_, id) in &ended[..excess] {
            runs.remove(id);
        }
        runs.insert(run.id.clone(), run);
    }

    pub(super) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<HostedRun>> {
        self.lock().get(id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<HostedRun>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn active(&self) -> Vec<Arc<HostedRun>> {
        self.all().into_iter().filter(|run| !run.is_over()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<HostedRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the summary of a run that only the history knows.
pub(super) fn summary_of(entry: RunEntry) -> RunSummary {
    let owner = entry.owner.unwrap_or_default();
    RunSummary {
        id: entry.id,
        name: entry.name,
        kind: entry.kind.name().to_owned(),
        state: match entry.state {
            State::Running => RunState::Running,
            State::Finished => RunState::Finished,
            State::Interrupted => RunState::Interrupted,
            State::Failed => RunState::Failed,
            State::Died => RunState::Died,
        },
        is_paused: false,
        has_paused_flows: false,
        user: Some(owner.user).filter(|user| !user.is_empty()),
        session: owner.session,
        interfaces: entry.interfaces,
        created_unix_ns: entry.started_unix_ns,
        ended_unix_ns: entry.ended_unix_ns,
        outcome: entry.outcome.map(|outcome| outcome.name().to_owned()),
        message: entry.error,
        figure: entry.figure.map(figure),
        is_saved: true,
    }
}

fn figure(figure: figures::Figure) -> Figure {
    let unit = figure.unit.symbol().to_owned();
    Figure { name: figure.name, value: figure.value, unit }
}
