//! What the log has of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use wirestorm_control::result::{FlowReport, MeasuredReport, RunResult};
use wirestorm_control::sync::exchange::Exchange;
use wirestorm_control::sync::ptp::PtpSource;
use wirestorm_control::sync::{ReferenceReading, TransportKind};

use super::super::protocol::{Record, RunRecord};

/// Records of all agents in a test.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// By iteration, agent and run.
    results: BTreeMap<(u32, String, String), CollectedRun>,
    /// Errors of runs without a result, by iteration, agent and run.
    failed: BTreeMap<(u32, String, String), String>,
    /// Node time minus monotonic clock of each agent in ns.
    node_offsets: BTreeMap<String, i64>,
    /// Exchanges of an agent with another one, by the address of its reflector.
    exchanges: BTreeMap<(String, String), BTreeMap<SocketAddr, Vec<Exchange>>>,
    /// Readings of the references of agents.
    references: BTreeMap<String, References>,
    /// Exchanges of the PTP sessions of agents, by the clock of the far end.
    ptp: BTreeMap<String, Vec<PtpExchanges>>,
    /// Readings of virtual clocks of agents beside the real one, whose source is the machine.
    truth: BTreeMap<String, References>,
    /// Iterations and agents whose exchanges are complete.
    compared: BTreeSet<(u32, String)>,
    /// Errors of records that cannot be read.
    unreadable: BTreeSet<String>,
}

/// Errors of records to keep.
const UNREADABLE_MAX: usize = 100;

/// Readings of a clock beside its reference.
#[derive(Debug, Default)]
pub(super) struct References {
    /// The last reference, in words.
    pub(super) source: String,
    /// Readings in the order of time.
    pub(super) readings: Vec<ReferenceReading>,
}

impl References {
    /// Adds readings, without those that are known.
    fn add(&mut self, source: String, readings: Vec<ReferenceReading>) {
        let last = self.readings.last().map(|reading| reading.at);
        let is_new = |it: &ReferenceReading| last.is_none_or(|last| it.at > last);
        self.readings.extend(readings.into_iter().filter(is_new));
        self.source = source;
    }
}

/// Exchanges of a PTP session with one clock.
#[derive(Debug)]
pub(super) struct PtpExchanges {
    /// Network of the session.
    pub(super) transport: TransportKind,
    /// The clock.
    pub(super) source: PtpSource,
    /// Whether it is the agent's own clock.
    pub(super) is_master: bool,
    /// The exchanges, in the order of time; the agent is the near end.
    pub(super) exchanges: Vec<Exchange>,
}

/// Adds exchanges, without those that are known.
fn add_exchanges(known: &mut Vec<Exchange>, exchanges: Vec<Exchange>) {
    let last = known.last().map(|exchange| exchange.t1);
    let is_new = |exchange: &Exchange| last.is_none_or(|last| exchange.t1 > last);
    known.extend(exchanges.into_iter().filter(is_new));
}

/// Result of a run on an agent.
#[derive(Debug)]
pub(super) struct CollectedRun {
    /// Whether the run is over. Otherwise these are checkpoints.
    pub(super) is_final: bool,
    /// Start by the agent's clock.
    pub(super) started_ns: Option<i64>,
    pub(super) result: RunResult,
}

impl Collected {
    /// Adds the error of a record that cannot be read.
    pub(super) fn add_unreadable(&mut self, error: String) {
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.insert(error);
        }
    }

    /// Returns the errors of records that cannot be read.
    pub(super) fn unreadable(&self) -> Vec<String> {
        self.unreadable.iter().cloned().collect()
    }

    /// Adds a record of an agent.
    pub(super) fn add(&mut self, agent: &str, record: Record) {
        match record {
            Record::Result(record) => self.add_run(agent, record, true),
            Record::Checkpoint(record) => self.add_run(agent, record, false),
            Record::Failed { run, iteration, error } => {
                self.failed.insert((iteration, agent.to_owned(), run), error);
            }
            Record::Exchanges { peer, address, exchanges } => {
                let paths = self.exchanges.entry((agent.to_owned(), peer)).or_default();
                add_exchanges(paths.entry(address).or_default(), exchanges);
            }
            Record::Ptp { transport, source, is_master, exchanges } => {
                let known = self.ptp.entry(agent.to_owned()).or_default();
                let same = |it: &&mut PtpExchanges| {
                    it.source == source && it.transport == transport && it.is_master == is_master
                };
                match known.iter_mut().find(same) {
                    Some(known) => add_exchanges(&mut known.exchanges, exchanges),
                    None => known.push(PtpExchanges { transport, source, is_master, exchanges }),
                }
            }
            Record::References { source, readings } => {
                self.references.entry(agent.to_owned()).or_default().add(source, readings);
            }
            Record::Truth { boot, readings } => {
                self.truth.entry(agent.to_owned()).or_default().add(boot, readings);
            }
            Record::Compared { iteration } => {
                self.compared.insert((iteration, agent.to_owned()));
            }
        }
    }

    fn add_run(&mut self, agent: &str, record: RunRecord, is_final: bool) {
        let RunRecord { run, iteration, started_ns, node_offset_ns, result } = record;
        self.node_offsets.insert(agent.to_owned(), node_offset_ns);
        let mut added = CollectedRun { is_final, started_ns, result: *result };
        let key = (iteration, agent.to_owned(), run);
        match self.results.get_mut(&key) {
            Some(known) if known.is_final => {}
            Some(known) if is_final => *known = added,
            Some(known) => {
                let before = std::mem::take(&mut known.result.flows);
                keep_measured(&mut added.result.flows, before);
                *known = added;
            }
            None => drop(self.results.insert(key, added)),
        }
    }

    pub(super) fn result(&self, iteration: u32, agent: &str, run: &str) -> Option<&CollectedRun> {
        self.results.get(&(iteration, agent.to_owned(), run.to_owned()))
    }

    /// Returns the error of a run without a result.
    pub(super) fn failure(&self, iteration: u32, agent: &str, run: &str) -> Option<&str> {
        let key = (iteration, agent.to_owned(), run.to_owned());
        self.failed.get(&key).map(String::as_str)
    }

    /// Returns the errors of a run on all agents.
    pub(super) fn failures(&self, iteration: u32, run: &str) -> Vec<String> {
        let of_run =
            self.failed.iter().filter(|((of, _, name), _)| *of == iteration && name == run);
        of_run.map(|((_, agent, _), error)| format!("{agent}: {error}")).collect()
    }

    /// Returns the start of each run on each agent, by the agent's clock in ns, with its agent;
    /// `None` if one did not start.
    pub(super) fn starts(&self, iteration: u32) -> Option<Vec<(&str, i64)>> {
        let of_iteration = self.results.iter().filter(|((of, _, _), _)| *of == iteration);
        of_iteration.map(|((_, agent, _), run)| Some((agent.as_str(), run.started_ns?))).collect()
    }

    /// Returns whether all exchanges of an agent up to the end of an iteration are there.
    pub(super) fn has_compared(&self, iteration: u32, agent: &str) -> bool {
        self.compared.contains(&(iteration, agent.to_owned()))
    }

    /// Returns whether the log has the outcome of a run on an agent.
    pub(super) fn has(&self, iteration: u32, agent: &str, run: &str) -> bool {
        self.result(iteration, agent, run).is_some_and(|it| it.is_final)
            || self.failure(iteration, agent, run).is_some()
    }

    /// Returns whether there is no result and no failure of any run of an iteration.
    pub(super) fn is_empty(&self, iteration: u32) -> bool {
        let mut known = self.results.keys().chain(self.failed.keys());
        !known.any(|(of, _, _)| *of == iteration)
    }

    /// Forgets the results of an iteration.
    pub(super) fn forget(&mut self, iteration: u32) {
        self.results.retain(|(of, _, _), _| *of != iteration);
        self.failed.retain(|(of, _, _), _| *of != iteration);
        self.compared.retain(|(of, _)| *of != iteration);
    }

    /// Returns node time minus monotonic clock of an agent in ns.
    pub(super) fn node_offset(&self, agent: &str) -> Option<i64> {
        self.node_offsets.get(agent).copied()
    }

    /// Returns the readings of an agent's reference; `None` without one.
    pub(super) fn references(&self, agent: &str) -> Option<&References> {
        self.references.get(agent)
    }

    /// Returns the exchanges of an agent's PTP session with each clock that it followed or was.
    pub(super) fn ptp(&self, agent: &str) -> &[PtpExchanges] {
        self.ptp.get(agent).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the readings of an agent's virtual clock beside the real one of its machine; `None`
    /// without one.
    pub(super) fn truth(&self, agent: &str) -> Option<&References> {
        self.truth.get(agent)
    }

    /// Returns the exchanges of an agent with the reflector of another one, on the path with the
    /// shortest round trip.
    pub(super) fn best_path(&self, near: &str, far: &str) -> Option<(&SocketAddr, &[Exchange])> {
        let paths = self.exchanges.get(&(near.to_owned(), far.to_owned()))?;
        let round_trip = |exchanges: &[Exchange]| exchanges.iter().map(Exchange::round_trip).min();
        let known = paths.iter().map(|(address, exchanges)| (address, &exchanges[..]));
        known.min_by_key(|(_, exchanges)| round_trip(exchanges).unwrap_or(i64::MAX))
    }
}

/// Adds to the flows of a checkpoint what earlier ones have: measurements of other flows, and earlier
/// segments of delay.
fn keep_measured(flows: &mut [FlowReport], before: Vec<FlowReport>) {
    for (flow, before) in flows.iter_mut().zip(before) {
        if flow.measured.is_empty() {
            flow.measured = before.measured;
            continue;
        }
        for measured in &mut flow.measured {
            let same_port = |other: &&MeasuredReport| other.port == measured.port;
            let Some(before) = before.measured.iter().find(same_port) else { continue };
            let mut segments: BTreeMap<_, _> = BTreeMap::new();
            for segment in before.segments.iter().chain(&measured.segments) {
                segments.insert((segment.start_ns, segment.reference_ns), segment.clone());
            }
            measured.segments = segments.into_values().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_control::result::SegmentReport;
    use wirestorm_control::sync::timestamp::Timestamp;

    use super::*;

    fn record(packets: u64, measured: &[(u64, &[(i64, u64)])]) -> RunRecord {
        let flow = |(received, segments): &(u64, &[(i64, u64)])| {
            let segment = |&(start_ns, count): &(i64, u64)| SegmentReport {
                start_ns,
                count,
                ..SegmentReport::default()
            };
            let measured = MeasuredReport {
                port: "b".into(),
                received: *received,
                segments: segments.iter().map(segment).collect(),
                ..MeasuredReport::default()
            };
            let measured = if *received == 0 { Vec::new() } else { vec![measured] };
            FlowReport { packets, measured, ..FlowReport::default() }
        };
        let flows = measured.iter().map(flow).collect();
        RunRecord {
            run: "r".into(),
            iteration: 1,
            started_ns: Some(7),
            node_offset_ns: 3,
            result: Box::new(RunResult { flows, ..RunResult::default() }),
        }
    }

    /// Start and number of delays of each segment.
    type SegmentCounts = Vec<(i64, u64)>;

    /// Returns the frames of each flow that were sent and received, and its segments.
    fn measured(collected: &Collected) -> Vec<(u64, u64, SegmentCounts)> {
        let flow = |flow: &FlowReport| {
            let measured = &flow.measured[0];
            let segments = measured.segments.iter().map(|it| (it.start_ns, it.count)).collect();
            (flow.packets, measured.received, segments)
        };
        collected.result(1, "a", "r").unwrap().result.flows.iter().map(flow).collect()
    }

    #[test]
    fn checkpoints_add_up() {
        let mut collected = Collected::default();
        let first = record(10, &[(5, &[(0, 4), (1, 1)]), (0, &[])]);
        collected.add("a", Record::Checkpoint(first));
        let second = record(20, &[(0, &[]), (6, &[(0, 6)])]);
        collected.add("a", Record::Checkpoint(second));
        // Segments that are not over come again.
        let third = record(30, &[(9, &[(1, 3), (2, 2)]), (0, &[])]);
        collected.add("a", Record::Checkpoint(third));
        let expected = [(30, 9, vec![(0, 4), (1, 3), (2, 2)]), (30, 6, vec![(0, 6)])];
        assert_eq!(measured(&collected), expected);
        assert!(!collected.has(1, "a", "r") && !collected.is_empty(1) && collected.is_empty(2));
        collected.forget(2);
        assert!(!collected.is_empty(1));
        collected.forget(1);
        assert!(collected.is_empty(1));
    }

    #[test]
    fn result_replaces_checkpoints_and_none_replaces_it() {
        let mut collected = Collected::default();
        collected.add("a", Record::Checkpoint(record(10, &[(5, &[(0, 5)])])));
        collected.add("a", Record::Result(record(40, &[(40, &[(0, 40)])])));
        collected.add("a", Record::Checkpoint(record(20, &[(15, &[(0, 15)])])));
        assert_eq!(measured(&collected), [(40, 40, vec![(0, 40)])]);
        assert!(collected.has(1, "a", "r"));
    }

    fn exchange(at: i64) -> Exchange {
        let [t1, t2, t3, t4] = [0, 10, 20, 30].map(|after| Timestamp::from_nanos(at + after));
        Exchange { t1, t2, t3, t4 }
    }

    #[test]
    fn exchanges_of_each_ptp_clock_are_apart_and_count_once() {
        let record = |clock: &str, times: &[i64]| Record::Ptp {
            transport: TransportKind::L2,
            source: PtpSource {
                grandmaster: "gm".into(),
                clock: clock.into(),
                domain: 0,
                utc_offset: None,
            },
            is_master: false,
            exchanges: times.iter().map(|at| exchange(*at)).collect(),
        };
        let mut collected = Collected::default();
        for (clock, times) in [("gm", [100, 200]), ("boundary", [300, 400]), ("gm", [200, 500])] {
            collected.add("a", record(clock, &times));
        }
        let [first, second] = collected.ptp("a") else { panic!("{:?}", collected.ptp("a")) };
        assert_eq!((&*first.source.clock, &*second.source.clock), ("gm", "boundary"));
        assert_eq!(first.exchanges, [100, 200, 500].map(exchange));
        assert_eq!(second.exchanges, [300, 400].map(exchange));
        assert!(collected.ptp("b").is_empty());
    }

    #[test]
    fn repeated_exchanges_count_once() {
        let record = |times: &[i64]| Record::Exchanges {
            peer: "b".into(),
            address: "192.0.2.1:862".parse().unwrap(),
            exchanges: times.iter().map(|at| exchange(*at)).collect(),
        };
        let mut collected = Collected::default();
        for times in [[100, 200], [200, 300]] {
            collected.add("a", record(&times));
        }
        let (_, exchanges) = collected.best_path("a", "b").unwrap();
        assert_eq!(exchanges, [100, 200, 300].map(exchange));
    }
}
