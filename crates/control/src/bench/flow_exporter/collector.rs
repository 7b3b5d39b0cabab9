//! Thread of the collector: receives export packets and keeps the table of reported flows.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_flowexport::accuracy::Accuracy;
use wirestorm_flowexport::collector::{Collector, CollectorOptions, Counters};
use wirestorm_flowexport::flow_table::{FlowTable, FlowTableOptions};
use wirestorm_flowexport::{FieldSet, FlowRecord, Version};
use wirestorm_io::clock;
use wirestorm_io::namespace::Namespace;
use wirestorm_io::udp::UdpPort;
use wirestorm_method::trial::FlowAmount;
use wirestorm_wire::flow::FlowKey;

use super::FlowExporterError;

/// Longest wait for a datagram; it bounds the time to end the thread.
const PATIENCE: Duration = Duration::from_millis(20);

/// Interval in which records are counted for the Flow Export Rate.
const INTERVAL: Duration = Duration::from_millis(100);
/// Largest number of intervals: 12 hours.
const INTERVALS_MAX: usize = 432_000;

/// Collector on a thread of its own.
pub(super) struct CollectorThread {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    port: UdpPort,
    is_stopped: AtomicBool,
    state: Mutex<State>,
}

/// Records of the current trial.
struct State {
    collector: Collector,
    table: Arc<Mutex<FlowTable>>,
    fields: Option<Fields>,
    /// Totals at the start of the trial.
    before: Totals,
    started: Instant,
    stopped: Option<Instant>,
    last: Instant,
    sums: Sums,
    /// Records in each interval since the start.
    intervals: Vec<u32>,
    records_at_stop: u64,
    protocol: &'static str,
    error: Option<String>,
}

/// Fields that are checked in the records of a trial.
#[derive(Debug)]
pub(super) struct Fields {
    /// Destination of the flows. Records of flows to other hosts are not checked.
    pub(super) destination: IpAddr,
    /// Flow that is not checked.
    pub(super) filler: FlowKey,
    pub(super) accuracy: Accuracy,
}

impl Fields {
    fn check(&mut self, flow: &FlowRecord) {
        // A record without addresses has a key of zeros.
        let is_ours = !flow.present.contains(FieldSet::ADDRESSES)
            || flow.key.destination() == self.destination && flow.key != self.filler;
        if is_ours {
            self.accuracy.check(flow);
        }
    }
}

/// Sums of the records of a trial.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    records: u64,
    packets: u64,
    octets: u64,
}

/// Totals of all trials, for differences.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    counters: Counters,
    sequence_lost: u64,
    sequence_restarts: u64,
    malformed: u64,
    dropped: u64,
}

/// What the collector received in a trial.
pub(super) struct Trialled {
    pub(super) table: Arc<Mutex<FlowTable>>,
    pub(super) fields: Option<Fields>,
    pub(super) protocol: &'static str,
    pub(super) records: u64,
    pub(super) packets: u64,
    /// Bytes that the records report.
    pub(super) octets: u64,
    pub(super) datagrams: u64,
    /// Bytes of the datagrams.
    pub(super) bytes: u64,
    pub(super) control_records: u64,
    pub(super) sequence_lost: u64,
    pub(super) sequence_restarts: u64,
    pub(super) unknown_template_sets: u64,
    pub(super) malformed: u64,
    pub(super) dropped: u64,
    /// Records until the end of the traffic.
    pub(super) records_at_stop: u64,
    traffic: Duration,
    intervals: Vec<u32>,
}

impl CollectorThread {
    /// Opens the socket and starts to receive.
    pub(super) fn start(
        namespace: &Namespace,
        address: SocketAddr,
    ) -> Result<Self, FlowExporterError> {
        let port = UdpPort::bind(namespace, address, PATIENCE)?;
        let address = port.address().unwrap_or(address);
        let now = clock::now();
        let state = State {
            collector: Collector::new(CollectorOptions::default()),
            table: Arc::new(Mutex::new(FlowTable::new(FlowTableOptions::default()))),
            fields: None,
            before: Totals::default(),
            started: now,
            stopped: None,
            last: now,
            sums: Sums::default(),
            intervals: Vec::new(),
            records_at_stop: 0,
            protocol: "",
            error: None,
        };
        let is_stopped = AtomicBool::new(false);
        let shared = Arc::new(Shared { port, is_stopped, state: state.into() });
        let receiving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("collector".into());
        let thread = thread.spawn(move || receiving.receive());
        let thread = Some(thread.map_err(FlowExporterError::Thread)?);
        Ok(Self { shared, address, thread })
    }

    /// Returns the address of the socket.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts a trial with an empty table of at most `flows_max` flows, and with fields
    /// to check.
    pub(super) fn begin(&self, flows_max: usize, fields: Option<Fields>) {
        let mut state = self.shared.lock();
        state.fields = fields;
        let options = FlowTableOptions { flows_max, ..FlowTableOptions::default() };
        state.table = Arc::new(Mutex::new(FlowTable::new(options)));
        state.before = state.totals(self.shared.port.dropped());
        state.started = clock::now();
        state.last = state.started;
        state.stopped = None;
        state.sums = Sums::default();
        state.intervals.clear();
        state.records_at_stop = 0;
    }

    /// Notes the end of the traffic.
    pub(super) fn end_of_traffic(&self) {
        let mut state = self.shared.lock();
        let now = clock::now();
        state.stopped = Some(now);
        state.records_at_stop = state.sums.records;
        // The wait for records starts now.
        state.last = now;
    }

    /// Returns whether the records of the trial report at least these flows and packets.
    pub(super) fn has_all(&self, sent: FlowAmount) -> bool {
        let state = self.shared.lock();
        let table = state.table.lock().unwrap_or_else(PoisonError::into_inner);
        let has_flows = table.len() as u64 >= sent.flows || table.refused() > 0;
        has_flows && state.sums.records >= sent.flows && state.sums.packets >= sent.packets
    }

    /// Returns the time since the last export packet with records, or since the end of the traffic.
    pub(super) fn quiet_time(&self) -> Duration {
        clock::now().saturating_since(self.shared.lock().last)
    }

    /// Returns the error that stopped the collector; `None` while it receives.
    pub(super) fn error(&self) -> Option<String> {
        self.shared.lock().error.clone()
    }

    /// Ends a trial and returns what was received.
    pub(super) fn end(&self) -> Trialled {
        let mut state = self.shared.lock();
        let now = state.totals(self.shared.port.dropped());
        let before = state.before;
        let difference = |of: fn(&Totals) -> u64| of(&now).saturating_sub(of(&before));
        let stopped = state.stopped.unwrap_or(state.last);
        Trialled {
            table: Arc::clone(&state.table),
            fields: state.fields.take(),
            protocol: state.protocol,
            records: state.sums.records,
            packets: state.sums.packets,
            octets: state.sums.octets,
            datagrams: difference(|it| it.counters.datagrams),
            bytes: difference(|it| it.counters.bytes),
            control_records: difference(|it| it.counters.templates + it.counters.options_records),
            sequence_lost: difference(|it| it.sequence_lost),
            sequence_restarts: difference(|it| it.sequence_restarts),
            unknown_template_sets: difference(|it| {
                it.counters.unknown_template_sets - it.counters.recovered_sets
            }),
            malformed: difference(|it| it.malformed),
            dropped: difference(|it| it.dropped),
            records_at_stop: state.records_at_stop,
            traffic: stopped.saturating_since(state.started),
            intervals: std::mem::take(&mut state.intervals),
        }
    }
}

impl Drop for CollectorThread {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by its hook.
            let _ = thread.join();
        }
    }
}

impl Trialled {
    /// Returns the Flow Export Rate: the records that arrived after the Idle Timeout and until the
    /// end of the traffic, per second (RFC 6645 section 5.4). `None` if the traffic was too short.
    pub(super) fn export_rate(&self, idle_timeout: Duration) -> Option<f64> {
        export_rate(&self.intervals, idle_timeout, self.traffic)
    }
}

/// Returns the records per second of the whole intervals between two times.
fn export_rate(intervals: &[u32], from: Duration, to: Duration) -> Option<f64> {
    let place = |time: Duration| (time.as_nanos() / INTERVAL.as_nanos()) as usize;
    // The interval at the start is incomplete.
    let (first, end) = (place(from) + 1, place(to));
    let count = end.checked_sub(first).filter(|&count| count > 0)?;
    // There are no intervals after the last record.
    let records = intervals.get(first..end.min(intervals.len())).unwrap_or_default();
    let records: u64 = records.iter().map(|&records| u64::from(records)).sum();
    Some(records as f64 * 1e9 / (count as f64 * INTERVAL.as_nanos() as f64))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self) {
        // The largest UDP datagram.
        let mut buffer = vec![0; 65_536];
        while !self.is_stopped.load(Ordering::Relaxed) {
            match self.port.receive(&mut buffer) {
                Ok(Some((length, sender))) => {
                    self.lock().note(sender, &buffer[..length], clock::now());
                }
                Ok(None) => {}
                Err(error) => {
                    self.lock().error = Some(error.to_string());
                    return;
                }
            }
        }
    }
}

impl State {
    fn note(&mut self, sender: SocketAddr, datagram: &[u8], now: Instant) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fields = self.fields.as_mut();
        let mut sums = self.sums;
        let before = sums.records;
        let received = self.collector.receive(sender, datagram, now, |record| {
            table.add(record.flow);
            if let Some(fields) = &mut fields {
                fields.check(record.flow);
            }
            let factor = u64::from(record.flow.sampling_interval.max(1));
            sums.records += 1;
            sums.packets += record.flow.packets.saturating_mul(factor);
            sums.octets += record.flow.bytes.saturating_mul(factor);
        });
        drop(table);
        self.sums = sums;
        let records = sums.records - before;
        if records > 0 {
            self.last = now;
        }
        if let Some(version) = received.version {
            self.protocol = protocol(version);
        }
        let since = now.saturating_since(self.started).as_nanos();
        let place = (since / INTERVAL.as_nanos()) as usize;
        if place < INTERVALS_MAX {
            if self.intervals.len() <= place {
                self.intervals.resize(place + 1, 0);
            }
            self.intervals[place] = self.intervals[place].saturating_add(records as u32);
        }
    }

    /// Returns the totals; `dropped` is that of the socket.
    fn totals(&self, dropped: u64) -> Totals {
        let sequences = || self.collector.domains().iter().map(|domain| domain.sequence());
        Totals {
            counters: self.collector.totals(),
            sequence_lost: sequences().map(|sequence| sequence.lost).sum(),
            sequence_restarts: sequences().map(|sequence| sequence.restarts).sum(),
            malformed: self.collector.malformed().map(|(_, count)| count).sum(),
            // Datagrams of streams beyond the limit are lost like those of a full socket.
            dropped: dropped + self.collector.refused_datagrams(),
        }
    }
}

const fn protocol(version: Version) -> &'static str {
    match version {
        Version::NetflowV5 => "NetFlow v5",
        Version::NetflowV9 => "NetFlow v9",
        Version::Ipfix => "IPFIX",
        Version::SflowV5 => "sFlow v5",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_rate_is_that_of_whole_intervals_until_the_end_of_the_traffic() {
        let rate = |intervals: &[u32], from, to| {
            export_rate(intervals, Duration::from_millis(from), Duration::from_millis(to))
        };
        assert_eq!(rate(&[9, 9, 10, 20, 30, 99], 150, 500), Some(200.0));
        assert_eq!(rate(&[9, 9, 10, 20], 150, 650), Some(75.0), "no record in the last 200 ms");
        assert_eq!(rate(&[9], 150, 500), Some(0.0), "no record after the idle timeout");
        assert_eq!(rate(&[9, 9, 9], 150, 299), None, "no whole interval");
    }
}
