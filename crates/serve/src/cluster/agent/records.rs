//! What an agent writes to the log: checkpoints and results of runs, and exchanges of clocks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use wirestorm_control::base::time::{Duration, Instant};
use wirestorm_control::clock;
use wirestorm_control::result::RunResult;
use wirestorm_control::sync::ptp::PtpSource;
use wirestorm_control::sync::timestamp::Timestamp;
use wirestorm_control::sync::{PtpMonitor, PtpTrack, ReferenceReading};

use super::super::protocol::{Record, RunRecord};
use super::Shared;
use super::test::{CurrentTest, PartRun};
use crate::server::HostedRun;

/// Least interval of checkpoints. An agent that is killed loses at most what it measured since the
/// last one.
const INTERVAL: Duration = Duration::from_secs(1);
/// Part of the time of a run that an interval may take, so that the checkpoints of a long run do not
/// fill the log.
const INTERVALS: u64 = 100;
/// Flows that a checkpoint measures: each takes the receiver thread up to 100 microseconds. With more
/// flows, the next checkpoint measures the next ones.
const FLOWS_AT_ONCE: usize = 256;
/// Time after its arrival in which a receiver counts a frame.
const LATENESS: Duration = Duration::from_secs(1);

/// Checkpoints of a run.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    count: u64,
    next_flow: usize,
    /// Time of the last checkpoint that has the flows from this one on.
    taken: BTreeMap<usize, Instant>,
    last: Option<Instant>,
    /// Set once the last one is in the log.
    logged: Option<Arc<AtomicBool>>,
}

/// What the log has of the exchanges of a test.
#[derive(Debug, Default)]
pub(super) struct ExchangesLog {
    records: u64,
    last: Option<Instant>,
    /// Time of the last reading of the reference that is in the log or on its way.
    references_until: Option<Timestamp>,
    /// Last exchange of the PTP session that is in the log or on its way.
    ptp_until: Option<Timestamp>,
    /// The clock of the PTP session that the log has, if the agent is a master.
    ptp_master: Option<PtpSource>,
    truth: Truth,
    /// Set once the last record is in the log.
    logged: Option<Arc<AtomicBool>>,
    /// Whether all exchanges of the iteration are on their way.
    pub(super) is_complete: bool,
}

/// Readings of a virtual clock beside the real one, up to a time of the real one.
#[derive(Debug, Default)]
struct Truth {
    until: Option<u64>,
}

impl Truth {
    /// Time between two readings in ns, and the largest number of readings at once.
    const INTERVAL_NS: u64 = 100_000_000;
    const READINGS_MAX: u64 = 10_000;

    /// Returns the readings since the last ones; `None` without a virtual clock.
    fn next(&mut self) -> Option<Vec<ReferenceReading>> {
        if !clock::is_virtual() {
            return None;
        }
        let now = clock::kernel_now();
        let from = self
            .until
            .unwrap_or(now)
            .max(now.saturating_sub(Self::READINGS_MAX * Self::INTERVAL_NS));
        let reading = |kernel: u64| {
            let at = clock::node_time(clock::of_kernel(kernel));
            ReferenceReading { at, offset_ns: at.as_nanos() - kernel as i64, error_ns: 0 }
        };
        self.until = Some(now);
        let earlier = (from..now).step_by(Self::INTERVAL_NS as usize);
        Some(earlier.chain([now]).map(reading).collect())
    }
}

/// A checkpoint to take.
struct Due {
    run: String,
    iteration: u32,
    number: u64,
    hosted: Arc<HostedRun>,
    flows: Range<usize>,
    since: Instant,
}

impl Checkpoints {
    /// Returns the flows of the next checkpoint, and since when it has their segments; `None` while
    /// it is not yet due.
    fn next(
        &mut self,
        now: Instant,
        started: Instant,
        flows: usize,
    ) -> Option<(Range<usize>, Instant)> {
        let interval =
            (now.saturating_since(started).as_nanos() / INTERVALS).max(INTERVAL.as_nanos());
        let last = self.last.unwrap_or(started);
        let is_due = now.saturating_since(last).as_nanos() >= interval;
        let is_logged = |logged: &Arc<AtomicBool>| logged.load(Ordering::Acquire);
        if !is_due || !self.logged.as_ref().is_none_or(is_logged) {
            return None;
        }
        let first = if self.next_flow < flows { self.next_flow } else { 0 };
        let range = first..flows.min(first + FLOWS_AT_ONCE);
        self.next_flow = range.end;
        self.last = Some(now);
        self.count += 1;
        let before = self.taken.insert(first, now);
        Some((range, before.map_or(Instant::ZERO, |it| it.saturating_sub(LATENESS))))
    }
}

impl CurrentTest {
    fn due_checkpoints(&mut self) -> Vec<Due> {
        let (now, iteration) = (clock::now(), self.iteration);
        let due = |(name, run): (&String, &mut PartRun)| {
            let handle = &run.hosted.handle;
            let started = handle.started().filter(|_| run.logged.is_none())?;
            let flows = handle.latest()?.flows.len();
            let (flows, since) = run.checkpoints.next(now, started, flows)?;
            let (hosted, number) = (Arc::clone(&run.hosted), run.checkpoints.count);
            Some(Due { run: name.clone(), iteration, number, hosted, flows, since })
        };
        self.runs.iter_mut().filter_map(due).collect()
    }

    /// Writes the results of ended runs to the log; waits for the end of all runs for `patience`.
    pub(super) fn log_ended_runs(&mut self, shared: &Shared, patience: Option<StdDuration>) {
        let Ok(subject) = shared.site.result(&self.name, &shared.name) else { return };
        let iteration = self.iteration;
        for (name, run) in self.runs.iter_mut().filter(|(_, run)| run.logged.is_none()) {
            if let Some(patience) = patience {
                run.hosted.handle.wait_over(Some(patience));
            }
            let Some(outcome) = run.hosted.handle.outcome() else { continue };
            let run_name = name.clone();
            let record = match outcome {
                Ok(result) => {
                    Record::Result(record(run_name, iteration, &run.hosted, (*result).clone()))
                }
                Err(error) => Record::Failed { run: run_name, iteration, error: error.to_string() },
            };
            let id = format!("{iteration}.run.{name}");
            run.logged = Some(shared.log.append(subject.clone(), id, &record));
        }
        if self.runs.is_empty() || self.runs.values().any(|run| run.logged.is_none()) {
            return;
        }
        if !self.exchanges_log.is_complete {
            self.log_exchanges(shared, &subject);
            self.exchanges_log.is_complete = true;
            let id = format!("{iteration}.compared");
            shared.log.append(subject, id, &Record::Compared { iteration });
        }
    }

    /// Writes new exchanges to the log while runs are active, at the interval of checkpoints.
    fn log_new_exchanges(&mut self, shared: &Shared) {
        let log = &self.exchanges_log;
        let is_logged = |logged: &Arc<AtomicBool>| logged.load(Ordering::Acquire);
        let is_due = log.last.is_none_or(|last| clock::now().saturating_since(last) >= INTERVAL);
        if is_due && log.logged.as_ref().is_none_or(is_logged) && self.has_active_runs() {
            let Ok(subject) = shared.site.result(&self.name, &shared.name) else { return };
            self.log_exchanges(shared, &subject);
        }
    }

    fn log_exchanges(&mut self, shared: &Shared, subject: &str) {
        let log = &mut self.exchanges_log;
        log.last = Some(clock::now());
        for (name, peer) in &mut self.peers {
            for it in &mut peer.0 {
                let exchanges = it.session.exchanges_after(it.logged_until);
                let Some(last) = exchanges.last() else { continue };
                it.logged_until = last.t1;
                let (peer, address) = (name.clone(), it.address);
                log.append(shared, subject, &Record::Exchanges { peer, address, exchanges });
            }
        }
        if let Some(readings) = log.truth.next() {
            log.append(shared, subject, &Record::Truth { boot: boot(), readings });
        }
        if let Some(monitor) = shared.ptp.as_ref().filter(|_| self.compares) {
            for record in log.ptp(monitor) {
                log.append(shared, subject, &record);
            }
        }
        let Some(monitor) = &self.reference else { return };
        let until = log.references_until.unwrap_or(Timestamp::from_nanos(i64::MIN));
        let readings = monitor.after(until);
        if let (Some(last), Some((_, source))) = (readings.last(), monitor.latest()) {
            log.references_until = Some(last.at);
            log.append(shared, subject, &Record::References { source, readings });
        }
    }
}

impl ExchangesLog {
    fn append(&mut self, shared: &Shared, subject: &str, record: &Record) {
        self.records += 1;
        let id = format!("clock.{}", self.records);
        self.logged = Some(shared.log.append(subject.to_owned(), id, record));
    }

    /// Returns what is new of a PTP session.
    fn ptp(&mut self, monitor: &PtpMonitor) -> Vec<Record> {
        let transport = monitor.options().transport;
        if monitor.is_master() {
            let source =
                monitor.state(false).source.filter(|it| Some(it) != self.ptp_master.as_ref());
            let Some(source) = source else { return Vec::new() };
            self.ptp_master = Some(source.clone());
            return vec![Record::Ptp { transport, source, is_master: true, exchanges: Vec::new() }];
        }
        let tracks = monitor.after(self.ptp_until);
        let last = tracks.last().and_then(|track| track.exchanges.last());
        self.ptp_until = last.map(|exchange| exchange.t1).or(self.ptp_until);
        let record = |PtpTrack { source, exchanges }| Record::Ptp {
            transport,
            source,
            is_master: false,
            exchanges,
        };
        tracks.into_iter().map(record).collect()
    }
}

impl Shared {
    /// Writes the results of ended runs to the log; waits for the end of all runs for `patience`.
    pub(super) fn log_ended_runs(&self, patience: Option<StdDuration>) {
        if let Some(test) = &mut *self.test() {
            test.log_ended_runs(self, patience);
        }
    }

    /// Writes what active runs have measured so far to the log, when it is due.
    pub(super) fn log_checkpoints(&self) {
        let (test, due) = match &mut *self.test() {
            Some(test) => {
                test.log_new_exchanges(self);
                (test.name.clone(), test.due_checkpoints())
            }
            None => return,
        };
        let Ok(subject) = self.site.result(&test, &self.name) else { return };
        for Due { run, iteration, number, hosted, flows, since } in due {
            // The receivers are asked, which takes some time: orders are carried out meanwhile.
            let Some(result) = hosted.handle.checkpoint(flows, since) else { continue };
            let id = format!("{iteration}.run.{run}.{number}");
            let record = record(run.clone(), iteration, &hosted, result);
            let logged = self.log.append(subject.clone(), id, &Record::Checkpoint(record));
            if let Some(run) = self.test().as_mut().and_then(|test| test.runs.get_mut(&run)) {
                run.checkpoints.logged = Some(logged);
            }
        }
    }
}

/// Returns an identifier of this machine since it was started.
fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

fn record(run: String, iteration: u32, hosted: &HostedRun, result: RunResult) -> RunRecord {
    RunRecord {
        run,
        iteration,
        started_ns: hosted.handle.started().map(|started| {
            let late = result.ports.iter().filter_map(|port| port.tx.as_ref());
            let late = late.filter_map(|tx| tx.departures.as_ref());
            let late = late.map(|departures| departures.start_delay_ns).min();
            clock::node_time(started).as_nanos() + late.unwrap_or(0) as i64
        }),
        node_offset_ns: clock::node_time(Instant::ZERO).as_nanos(),
        result: Box::new(result),
    }
}
