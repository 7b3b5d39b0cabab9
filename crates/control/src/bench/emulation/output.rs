//! What a method reads: counters and times of the sustain phase.

use std::collections::BTreeMap;

use wirestorm_base::histogram::{bucket_of, bucket_start};
use wirestorm_base::time::Duration;
use wirestorm_method::connections::{ConnectionsInput, ConnectionsOutput, ConnectionsSeries};
use wirestorm_method::distribution::Distribution;
use wirestorm_method::trial::{OfferOutput, StepOutput, TrialOutput};

use super::plan::{FIRST, FIRST_BYTE, NEXT};
use crate::result::{
    ConnectionsReport, FlowCountsReport, HistogramReport, PortReport, RunResult, TemplateReport,
};

/// Bytes of Ethernet, IPv4 and TCP headers with timestamps.
pub(super) const HEADERS_IPV4: u64 = 14 + 20 + 32;
/// The same with IPv6.
pub(super) const HEADERS_IPV6: u64 = 14 + 40 + 32;
const FCS: u64 = 4;

/// Reports of all ports at one time.
pub(super) struct Sample {
    pub(super) reports: Vec<PortReport>,
}

/// Reports of the sustain phase.
pub(super) struct Sampled {
    pub(super) begun: Sample,
    pub(super) ended: Sample,
    /// Progress at each report.
    pub(super) progress: Vec<Progress>,
}

/// What was completed until a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Progress {
    /// Time in seconds since the start of the run.
    at_s: f64,
    established: u64,
    transactions: u64,
}

impl Progress {
    /// Reads reports; `None` before the first frame.
    pub(super) fn of(reports: &[PortReport]) -> Option<Self> {
        let sum = |of: &dyn Fn(&ConnectionsReport) -> Option<u64>| -> u64 {
            clients(reports).filter_map(|(_, connections)| of(connections)).sum()
        };
        Some(Self {
            at_s: elapsed_s(reports)?,
            established: sum(&|it| it.tcp.get("connects").copied()),
            transactions: sum(&|it| it.counters.get("A").copied()),
        })
    }
}

/// Reads the output of a trial. `headers` is the number of bytes in front of the payload of a
/// segment.
pub(super) fn read(
    input: &ConnectionsInput,
    sampled: &Sampled,
    result: &RunResult,
    headers: u64,
) -> TrialOutput {
    let [begun, ended] = [&sampled.begun.reports, &sampled.ended.reports];
    let length = elapsed_s(ended).zip(elapsed_s(begun)).map(|(end, start)| end - start);
    let sustain_s = length.unwrap_or_else(|| input.sustain.as_secs_f64());
    let tcp = |reports: &[PortReport], name: &str| -> u64 {
        clients(reports).filter_map(|(_, it)| it.tcp.get(name)).sum()
    };
    let between = |name: &str| tcp(ended, name).saturating_sub(tcp(begun, name));
    let transaction = |reports: &[PortReport], of: fn(&TemplateTransactions) -> u64| -> u64 {
        client_templates(reports).map(|it| of(&TemplateTransactions::new(it))).sum()
    };
    let transactions = |of| transaction(ended, of).saturating_sub(transaction(begun, of));
    let handshakes = |reports: &[PortReport]| -> u64 {
        let tls = clients(reports).filter_map(|(_, it)| it.tls.as_ref());
        tls.map(|tls| tls.full_handshakes + tls.resumed_handshakes).sum()
    };
    let flows = Flows::of(&result.ports);
    let before = Flows::of(begun);
    let payload = |reports: &[PortReport]| -> u64 {
        all(reports).filter_map(|(_, it)| it.tcp.get("rcvbyte")).sum()
    };
    let connections = ConnectionsOutput {
        sustain_s,
        attempted: between("connattempt"),
        established: between("connects"),
        failed: flows.failed.saturating_sub(before.failed),
        resets: flows.resets.saturating_sub(before.resets),
        late: flows.late.saturating_sub(before.late),
        failed_before: before.failed,
        transactions_attempted: transactions(|it| it.started),
        transactions: transactions(|it| it.finished),
        tls_handshakes: handshakes(ended).saturating_sub(handshakes(begun)),
        layer_2_bytes: layer_2_bytes(ended, headers).saturating_sub(layer_2_bytes(begun, headers)),
        payload_bytes: payload(ended).saturating_sub(payload(begun)),
        series: ConnectionsSeries {
            established_per_s: rates(&sampled.progress, |it| it.established),
            transactions_per_s: rates(&sampled.progress, |it| it.transactions),
            ..series(input, &result.ports)
        },
        ..times(begun, ended)
    };
    let step = StepOutput {
        intended: connections.attempted + connections.late,
        offered: connections.attempted,
        received: connections.attempted.saturating_sub(connections.failed),
        seconds: sustain_s,
        ..StepOutput::default()
    };
    let mut notes = result.notes.clone();
    notes.extend(flows.causes(&before));
    TrialOutput {
        offers: vec![OfferOutput { steps: vec![step], ..OfferOutput::default() }],
        connections: Some(connections),
        notes,
        ..TrialOutput::default()
    }
}

fn all(reports: &[PortReport]) -> impl Iterator<Item = (&PortReport, &ConnectionsReport)> {
    reports.iter().filter_map(|port| Some((port, port.connections.as_ref()?)))
}

fn clients(reports: &[PortReport]) -> impl Iterator<Item = (&PortReport, &ConnectionsReport)> {
    all(reports).filter(|(port, _)| port.name.starts_with("clients"))
}

fn client_templates(reports: &[PortReport]) -> impl Iterator<Item = &TemplateReport> {
    clients(reports).flat_map(|(port, _)| &port.templates).filter(|it| it.side == "client")
}

/// Returns the time of a report in seconds since the start of the run, by the clock of the worker:
/// the packets that were sent, divided by their rate.
fn elapsed_s(reports: &[PortReport]) -> Option<f64> {
    let tx = clients(reports).next()?.0.tx.as_ref()?;
    (tx.rates.pps > 0.0).then(|| tx.packets as f64 / tx.rates.pps)
}

/// Returns the bytes with FCS of the frames that all ports received. A receiver joins segments; on
/// the link each had its own headers.
fn layer_2_bytes(reports: &[PortReport], headers: u64) -> u64 {
    let of_port = |(port, connections): (&PortReport, &ConnectionsReport)| {
        let rx = port.rx.as_ref()?;
        let segments = connections.tcp.get("rcvtotal").copied().unwrap_or(0);
        let frames = segments.max(rx.packets);
        Some(rx.bytes + (frames - rx.packets) * headers + frames * FCS)
    };
    all(reports).filter_map(of_port).sum()
}

/// Counts of connections by outcome.
struct Flows {
    failed: u64,
    resets: u64,
    late: u64,
    causes: BTreeMap<&'static str, u64>,
}

impl Flows {
    fn of(reports: &[PortReport]) -> Self {
        let is_client = |port: &PortReport| port.name.starts_with("clients");
        let sum = |of_clients: bool, of: &dyn Fn(&ConnectionsReport) -> u64| -> u64 {
            let of_side = all(reports).filter(|(port, _)| is_client(port) == of_clients);
            of_side.map(|(_, connections)| of(connections)).sum()
        };
        let flows = |of: fn(&FlowCountsReport) -> u64| sum(true, &|it| of(&it.flows));
        let sent = |of_clients| sum(of_clients, &|it| it.tcp.get("rst_sent").copied().unwrap_or(0));
        // A RST that the other side did not send is one of the device.
        let by_client = flows(|it| it.reset + it.reset_after_close + it.refused);
        let by_server = sum(false, &|it| it.flows.reset + it.flows.reset_after_close);
        let [by_client, by_server] =
            [by_client.saturating_sub(sent(false)), by_server.saturating_sub(sent(true))];
        let causes = BTreeMap::from([
            ("refused", flows(|it| it.refused)),
            ("reset", flows(|it| it.reset + it.reset_after_close)),
            ("unreachable", flows(|it| it.unreachable)),
            ("no answer to SYN", flows(|it| it.syn_timeout)),
            ("no answer to data", flows(|it| it.retransmission_timeout)),
            ("TLS failed", flows(|it| it.session_failed)),
            ("unexpected or incomplete response", flows(|it| it.program_failed)),
            ("open at the end", flows(|it| it.reset_at_end + it.left_open)),
        ]);
        Self {
            failed: flows(|it| it.failed + it.reset_at_end + it.left_open),
            // A device that resets both sides of a connection terminates one connection.
            resets: by_client.max(by_server),
            late: flows(|it| it.late + it.no_free_tuple + it.flow_table_full),
            causes,
        }
    }

    /// Returns a note on the causes of the failures since `before`; `None` without failures.
    fn causes(&self, before: &Self) -> Option<String> {
        let since = |(cause, count): (&&'static str, &u64)| {
            let count = count - before.causes.get(cause).copied().unwrap_or(0).min(*count);
            (count > 0).then(|| format!("{count} {cause}"))
        };
        let causes: Vec<String> = self.causes.iter().filter_map(since).collect();
        (!causes.is_empty()).then(|| format!("failed connections: {}", causes.join(", ")))
    }
}

/// Transactions of a template.
struct TemplateTransactions {
    started: u64,
    finished: u64,
}

impl TemplateTransactions {
    fn new(template: &TemplateReport) -> Self {
        let counted = template.transactions.iter().filter(|it| it.name != FIRST_BYTE);
        let sum = |(started, finished), it: &crate::result::TransactionReport| {
            (started + it.started, finished + it.time.count)
        };
        let (started, finished) = counted.fold((0, 0), sum);
        Self { started, finished }
    }
}

/// Returns the rates of a count between reports.
fn rates(progress: &[Progress], of: fn(&Progress) -> u64) -> Vec<f64> {
    let rate = |pair: &[Progress]| match pair {
        [before, after] => {
            of(after).saturating_sub(of(before)) as f64 / (after.at_s - before.at_s).max(1e-9)
        }
        _ => 0.0,
    };
    progress.windows(2).map(rate).collect()
}

/// Returns the series of the whole intervals in the sustain phase.
fn series(input: &ConnectionsInput, ports: &[PortReport]) -> ConnectionsSeries {
    let Some((_, first)) = all(ports).next() else { return ConnectionsSeries::default() };
    let interval_s = first.series.interval_s;
    // A tolerance for the rounding of the division.
    let at = |time: Duration, shift: f64| time.as_secs_f64() / interval_s.max(1e-9) + shift;
    let first = at(input.ramp_up, -1e-6).ceil() as usize;
    let end = at(input.ramp_up.saturating_add(input.sustain), 1e-6).floor() as usize;
    let mut series = ConnectionsSeries { interval_s, ..ConnectionsSeries::default() };
    let sums = [&mut series.concurrent, &mut series.payload_bytes];
    for sum in sums {
        sum.resize(end.saturating_sub(first), 0);
    }
    let add = |sums: &mut [u64], of_port: &[u64]| {
        let of_phase = of_port.get(first..).unwrap_or_default();
        sums.iter_mut().zip(of_phase).for_each(|(sum, count)| *sum += count);
    };
    for (_, connections) in all(ports) {
        add(&mut series.payload_bytes, &connections.series.received_bytes);
    }
    for (_, connections) in clients(ports) {
        add(&mut series.concurrent, &connections.series.concurrent);
    }
    series
}

/// Returns the times of transactions that ended in the sustain phase.
fn times(begun: &[PortReport], ended: &[PortReport]) -> ConnectionsOutput {
    let mut output = ConnectionsOutput::default();
    for (template, before) in client_templates(ended).zip(client_templates(begun)) {
        let transaction = |name: &str| {
            let of = |it: &TemplateReport| Timed::transaction(it, name);
            of(template).since(&of(before))
        };
        let (mut first_byte, mut first) = (transaction(FIRST_BYTE), transaction(FIRST));
        if template.tls.is_some() {
            // A program starts after the handshake. The histogram of the first byte counts from the
            // SYN; the time between the two is about the same for the last byte.
            let of = |it: &TemplateReport| Timed::histogram(&it.times.time_to_first_byte);
            let from_syn = of(template).since(&of(before));
            let shift_ns = from_syn.mean_ns - first_byte.mean_ns;
            first = shifted(&first, shift_ns.max(0.0));
            first_byte = from_syn;
        }
        output.time_to_first_byte.merge(&first_byte);
        output.time_to_last_byte.merge(&first);
        output.response_time.merge(&transaction(NEXT));
    }
    output
}

/// A histogram with its sum and minimum, if they are known.
#[derive(Default)]
struct Timed {
    buckets: Vec<(u64, u64)>,
    count: u64,
    sum_ns: Option<f64>,
    min_ns: Option<u64>,
    max_ns: u64,
}

impl Timed {
    fn transaction(template: &TemplateReport, name: &str) -> Self {
        let found = template.transactions.iter().find(|it| it.name == name);
        let Some(transaction) = found else { return Self::default() };
        let mean_ns = transaction.mean_ns.unwrap_or(0) as f64;
        Self {
            sum_ns: Some(mean_ns * transaction.time.count as f64),
            min_ns: transaction.min_ns,
            ..Self::histogram(&transaction.time)
        }
    }

    fn histogram(report: &HistogramReport) -> Self {
        Self {
            buckets: report.buckets.clone(),
            count: report.count,
            sum_ns: None,
            min_ns: None,
            max_ns: report.max_ns.unwrap_or(0),
        }
    }

    /// Returns the values that were added since `before`. Minimum and maximum are those of buckets
    /// where earlier values hide the exact ones: they are low by up to 3.2 %.
    fn since(&self, before: &Self) -> Distribution {
        let earlier: BTreeMap<u64, u64> = before.buckets.iter().copied().collect();
        let added = self.buckets.iter().filter_map(|&(start, count)| {
            let count = count.saturating_sub(earlier.get(&start).copied().unwrap_or(0));
            (count > 0).then_some((start, count))
        });
        let added: Vec<(u64, u64)> = added.collect();
        let (Some(&(lowest, _)), Some(&(highest, _))) = (added.first(), added.last()) else {
            return Distribution::default();
        };
        let count: u64 = added.iter().map(|(_, count)| count).sum();
        let is_in = |value: u64, bucket: u64| bucket_start(bucket_of(value)) == bucket;
        let min = self.min_ns.filter(|&min| before.count == 0 || is_in(min, lowest));
        let max = if is_in(self.max_ns, highest) { self.max_ns } else { highest };
        let sum = match (self.sum_ns, before.sum_ns) {
            (Some(sum), earlier) => sum - earlier.unwrap_or(0.0),
            // The middle of each bucket.
            (None, _) => added
                .iter()
                .map(|&(start, count)| {
                    let next = bucket_start(bucket_of(start) + 1);
                    u64::midpoint(start, next) as f64 * count as f64
                })
                .sum(),
        };
        let min = min.unwrap_or(lowest);
        Distribution {
            count,
            min_ns: min as i64,
            mean_ns: (sum / count as f64).clamp(min as f64, max.max(min) as f64),
            max_ns: max.max(min) as i64,
            buckets: added.into_iter().map(|(start, count)| (start as i64, count)).collect(),
        }
    }
}

/// Adds a time to all values.
fn shifted(times: &Distribution, by_ns: f64) -> Distribution {
    let by = by_ns.round() as i64;
    Distribution {
        count: times.count,
        min_ns: times.min_ns + by,
        mean_ns: times.mean_ns + by_ns,
        max_ns: times.max_ns + by,
        buckets: times.buckets.iter().map(|&(start, count)| (start + by, count)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_base::histogram::Histogram;

    use super::*;

    fn timed(values_us: &[u64]) -> Timed {
        let mut histogram = Histogram::new();
        values_us.iter().for_each(|&value| histogram.record(Duration::from_micros(value)));
        let sum: u64 = values_us.iter().sum();
        Timed {
            sum_ns: Some(sum as f64 * 1e3),
            min_ns: values_us.iter().min().map(|min| min * 1_000),
            ..Timed::histogram(&HistogramReport::new(&histogram))
        }
    }

    #[test]
    fn times_of_a_phase_are_the_difference_of_two_histograms() {
        let before = timed(&[10, 500]);
        let phase = timed(&[10, 500, 20, 30, 400]).since(&before);
        assert_eq!((phase.count, phase.mean_ns), (3, 150_000.0));
        // The bounds are those of buckets: earlier values are outside.
        assert!(phase.min_ns <= 20_000 && phase.min_ns > 19_000, "{phase:?}");
        assert!(phase.max_ns <= 400_000 && phase.max_ns > 387_000, "{phase:?}");
        let all = timed(&[10, 500]).since(&Timed::default());
        assert_eq!((all.min_ns, all.max_ns, all.mean_ns), (10_000, 500_000, 255_000.0));
        assert_eq!(timed(&[10]).since(&timed(&[10])), Distribution::default());
    }

    #[test]
    fn rates_are_those_between_samples() {
        let at = |at_s, established| Progress { at_s, established, transactions: 0 };
        let rates = |progress: &[Progress]| rates(progress, |it| it.established);
        assert_eq!(rates(&[at(1.0, 100), at(1.5, 150), at(2.5, 350)]), [100.0, 200.0]);
        assert_eq!(rates(&[at(1.0, 100)]), [0.0; 0]);
    }
}
