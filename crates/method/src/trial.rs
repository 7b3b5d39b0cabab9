//! Trials: what a method offers to the device under test, and what it reads back.
//!
//! The words are those of RFC 1242 and RFC 2285: the *intended load* is what the method asks for,
//! the *offered load* is what the generator sent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_base::time::Duration;

use crate::connections::{ConnectionsInput, ConnectionsOutput};
use crate::distribution::Distribution;
use crate::seconds;

/// Executes trials: on interfaces, in a simulation, from a record.
pub trait Trial {
    /// Executes one trial. Blocks until the last arrivals are counted.
    ///
    /// # Errors
    /// See [`TrialError`]. No trial follows an error.
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError>;
}

impl<T: Trial + ?Sized> Trial for &mut T {
    fn run(&mut self, input: &TrialInput) -> Result<TrialOutput, TrialError> {
        (**self).run(input)
    }
}

/// Error that ends a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// The user stopped the method. The completed trials are valid.
    #[error("stopped")]
    Stopped,
    /// The trial cannot be executed.
    #[error("{0}")]
    Failed(String),
}

/// Input of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrialInput {
    /// Test that needs the trial, such as `throughput`.
    pub test: String,
    /// Traffic that is offered at the same time.
    pub offers: Vec<Offer>,
    /// Time after the start at which the device is reset; null without a reset.
    #[serde(default)]
    pub reset_after_s: Option<f64>,
    /// What clients and servers do; null for a trial of frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsInput>,
    /// Whether the output counts the received units of each second.
    #[serde(default)]
    pub counts_seconds: bool,
}

/// Traffic of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Offer {
    /// Name of the traffic, such as `ipv4` or the name of a service.
    pub traffic: String,
    /// Frame size in bytes with FCS; null if the traffic defines its own sizes.
    pub frame_size: Option<u32>,
    /// Loads, one after the other without a pause.
    pub steps: Vec<Step>,
}

/// A load over a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Step {
    /// Intended load of each transmitting interface, in units per second. The unit is the frame,
    /// flow, connection or transaction, depending on the method.
    pub load: u64,
    /// Length of the step.
    pub length: Length,
}

/// Length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// Time in seconds.
    #[serde(rename = "seconds")]
    Time(
        #[serde(with = "seconds")]
        #[schemars(with = "f64")]
        Duration,
    ),
    /// Number of units for each transmitting interface.
    Units(u64),
}

/// Output of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrialOutput {
    /// Results of each offer, in the order of the input. They sum over all interfaces.
    pub offers: Vec<OfferOutput>,
    /// What a flow exporter reported; null unless the trial tests one.
    #[serde(default)]
    pub export: Option<ExportOutput>,
    /// What clients and servers counted; null for a trial of frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionsOutput>,
    /// What exporters sent to a collector; null unless the trial tests one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector: Option<CollectorOutput>,
    /// TCP segments of the clients and servers of a plan; null for a trial of frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<SegmentsOutput>,
    /// Frames that the receiver of the tester dropped. They are also lost in the results above.
    #[serde(default)]
    pub receiver_dropped: u64,
    /// Time that the trial took in seconds, with all waits.
    pub elapsed_s: f64,
    /// Notes for the user, such as a generator that did not reach the intended load.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Results of one offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OfferOutput {
    /// Results of each step, in the order of the input.
    pub steps: Vec<StepOutput>,
    /// Duplicates, not counted as received (RFC 5560).
    #[serde(default)]
    pub duplicated: u64,
    /// Frames that arrived after one sent later (RFC 4737).
    #[serde(default)]
    pub reordered: u64,
    /// Longest time between two arrivals, in seconds; null if arrivals were not timed.
    #[serde(default)]
    pub outage_s: Option<f64>,
    /// Units received in each second from the start of the run, with duplicates, for each sending
    /// interface; empty unless the input counts seconds.
    #[serde(default)]
    pub seconds: Vec<Vec<u64>>,
    /// Results of each sending interface, in the order of `seconds`; empty if only one sends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathOutput>,
}

/// Results of one sending interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PathOutput {
    /// Interfaces that send and receive, such as `eth1 > eth2`.
    pub path: String,
    /// Sum over all steps, without `last_loss_s`.
    pub total: StepOutput,
}

/// Results of one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepOutput {
    /// Units that the intended load amounts to.
    pub intended: u64,
    /// Units sent: the offered load.
    pub offered: u64,
    /// Distinct units received.
    pub received: u64,
    /// Time from the first to the last departure in seconds.
    pub seconds: f64,
    /// Time from the start of the step to the arrival that showed the last loss, in seconds; null
    /// without loss or if it is unknown.
    #[serde(default)]
    pub last_loss_s: Option<f64>,
    /// One-way delay of all received units; null if it was not measured.
    #[serde(default)]
    pub delay: Option<Distribution>,
}

/// What was sent to a flow exporter, and what its records report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExportOutput {
    /// Flows, packets and bytes sent. Bytes are those of IP packets.
    pub sent: FlowAmount,
    /// Those of the sent flows that records report.
    pub captured: FlowAmount,
    /// Reported flows that were not sent.
    pub unexpected: FlowAmount,
    /// Whether `captured` compares each key. Without, it sums all records, because there are too
    /// many flows.
    pub is_by_key: bool,
    /// Sent flows without a record.
    pub missing_flows: u64,
    /// Flows with several records.
    pub split_flows: u64,
    /// Captured flows with a wrong number of packets.
    pub packets_differ: u64,
    /// Captured flows with a wrong number of bytes.
    pub bytes_differ: u64,
    /// Flow records within the measurement interval, divided by its length: the Flow Export Rate
    /// (RFC 6645 section 5.5). Null without an interval.
    pub export_rate: Option<f64>,
    /// Protocol of the records, such as `IPFIX`; empty without records.
    pub protocol: String,
    /// Flow records.
    pub records: u64,
    /// Export packets.
    pub datagrams: u64,
    /// Bytes of the export packets.
    pub datagram_bytes: u64,
    /// Control information: templates and options records.
    pub control_records: u64,
    /// Lost export packets or records, by gaps of sequence numbers.
    pub sequence_lost: u64,
    /// Restarts of the sequence.
    pub sequence_restarts: u64,
    /// Sets without a template.
    pub unknown_template_sets: u64,
    /// Malformed export packets.
    pub malformed: u64,
    /// Largest number of flows in the cache of the device, estimated from the records that came
    /// later; null if it is unknown.
    pub cache_flows_max: Option<u64>,
    /// Export packets that the collector dropped: its socket was full, or they are of streams
    /// beyond its limit of 4,096.
    pub collector_dropped: u64,
    /// Test packets that the device should forward and did not; null without a receiving interface.
    pub forwarding_lost: Option<u64>,
    /// Figures from the log of the device, by name.
    pub device_log: BTreeMap<String, f64>,
    /// Accuracy of each field (RFC 6645 section 7); empty for a capture, whose values have no range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldOutput>,
    /// Records to the destination of the flows, whose fields were checked; 0 for a capture.
    #[serde(default)]
    pub checked_records: u64,
    /// Those that have all fields with values that were sent.
    #[serde(default)]
    pub accurate_records: u64,
    /// Some of the flows that are missing, unexpected or wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<FlowDifference>,
}

/// Accuracy of a field of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FieldOutput {
    /// Name of the field, such as `source port`.
    pub name: String,
    /// Records with the field.
    pub present: u64,
    /// Records without the field.
    pub missing: u64,
    /// Records with a value that was not sent.
    pub out_of_range: u64,
    /// Least value; null without a value, and for times.
    pub least: Option<String>,
    /// Greatest value; null without a value, and for times.
    pub greatest: Option<String>,
    /// Different values that were sent; null if they are not counted: times, or more than 1,048,576.
    pub values_sent: Option<u64>,
    /// Those of them that records have; null if they are not counted.
    pub values_found: Option<u64>,
}

/// A flow that the device did not report as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowDifference {
    /// Addresses, ports and protocol, such as `192.0.2.1:4000 > 198.51.100.1:53 UDP`.
    pub flow: String,
    /// Packets sent; null for a flow that was not sent.
    pub packets_sent: Option<u64>,
    /// Packets reported; null for a flow without a record.
    pub packets_reported: Option<u64>,
    /// Bytes of the IP packets sent; null for a flow that was not sent.
    pub bytes_sent: Option<u64>,
    /// Bytes reported; null for a flow without a record.
    pub bytes_reported: Option<u64>,
}

/// Numbers of flows, packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowAmount {
    /// Flows.
    pub flows: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What exporters sent to a collector, and how many records it stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CollectorOutput {
    /// Flow records sent; flow samples in sFlow.
    pub records: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Bytes of the datagrams, without UDP and IP.
    pub bytes: u64,
    /// ICMP messages that the port of the collector is closed.
    pub refused: u64,
    /// Largest delay of a datagram behind its schedule, in seconds.
    pub late_max_s: f64,
    /// Records that the collector stored in the trial; null if they are unknown.
    pub stored: Option<u64>,
    /// What each stream sent, in the order of exporters and domains.
    pub streams: Vec<StreamSent>,
}

/// What one stream of an exporter sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StreamSent {
    /// Number of the exporter, from 1.
    pub exporter: u32,
    /// Source address and port.
    pub source: String,
    /// Observation domain, source identifier, engine type and number, or sub-agent.
    pub domain: u32,
    /// Flow records; flow samples in sFlow.
    pub records: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of the datagrams, without UDP and IP.
    pub bytes: u64,
    /// Datagrams with templates.
    pub template_datagrams: u64,
    /// Sequence number of the first datagram; null without datagrams.
    pub first_sequence: Option<u32>,
    /// Sequence number of the last datagram; null without datagrams.
    pub last_sequence: Option<u32>,
}

impl StreamSent {
    /// Adds what the stream sent later.
    pub(crate) fn add(&mut self, later: &Self) {
        self.source.clone_from(&later.source);
        self.records += later.records;
        self.datagrams += later.datagrams;
        self.bytes += later.bytes;
        self.template_datagrams += later.template_datagrams;
        self.first_sequence = self.first_sequence.or(later.first_sequence);
        self.last_sequence = later.last_sequence.or(self.last_sequence);
    }
}

/// TCP segments that clients and servers sent, without pure ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SegmentsOutput {
    /// Segments with data, SYN, FIN or RST, retransmissions included.
    pub sent: u64,
    /// Segments with data or SYN that were retransmitted.
    pub retransmitted: u64,
}

/// Longest part of the intended load that a generator may leave unsent without a report: start and
/// stop of its workers. The figure is that of FD.io CSIT.
const UNSENT_MAX: Duration = Duration::from_micros(10);

impl TrialInput {
    /// Creates the input of a trial with one load.
    pub fn constant(test: &str, traffic: &Traffic, load: u64, length: Length) -> Self {
        Self::steps(test, traffic, vec![Step { load, length }])
    }

    /// Creates the input of a trial with several loads.
    pub fn steps(test: &str, traffic: &Traffic, steps: Vec<Step>) -> Self {
        let Traffic { name, frame_size } = traffic.clone();
        let offer = Offer { traffic: name, frame_size, steps };
        Self::of_offers(test, vec![offer])
    }

    /// Creates the input of a trial that offers several traffics at the same time.
    pub fn of_offers(test: &str, offers: Vec<Offer>) -> Self {
        let (test, reset_after_s) = (test.to_owned(), None);
        Self { test, offers, reset_after_s, connections: None, counts_seconds: false }
    }

    /// Returns the time that the steps of the longest offer take.
    pub fn duration(&self) -> Duration {
        self.offers.iter().map(Offer::duration).max().unwrap_or_default()
    }
}

impl Offer {
    /// Returns the time that all steps take.
    pub fn duration(&self) -> Duration {
        self.steps.iter().fold(Duration::ZERO, |sum, step| sum.saturating_add(step.duration()))
    }
}

impl Step {
    /// Returns the time that the step takes.
    pub fn duration(&self) -> Duration {
        match self.length {
            Length::Time(duration) => duration,
            Length::Units(units) => {
                let nanoseconds = u128::from(units) * 1_000_000_000 / u128::from(self.load.max(1));
                Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns the number of units that the step amounts to on one interface.
    pub fn units(&self) -> u64 {
        match self.length {
            Length::Units(units) => units,
            Length::Time(duration) => {
                let units = u128::from(self.load) * u128::from(duration.as_nanos()) / 1_000_000_000;
                u64::try_from(units).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Traffic that a method varies the load of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Traffic {
    /// Name of the traffic.
    pub name: String,
    /// Frame size in bytes with FCS; null if the traffic defines its own sizes.
    pub frame_size: Option<u32>,
}

/// Smallest frame in bytes with FCS that holds UDP over IPv6 and the signature of a measured frame.
/// RFC 5180 section 5.1 notes that signatures may raise the minimum above 64 bytes.
const IPV6_FRAME_SIZE_MIN: u32 = 84;

impl Traffic {
    /// Returns the traffic of a name with each frame size, once. Sizes that IPv6 frames cannot have
    /// become the smallest that they can.
    pub(crate) fn of_sizes(name: &str, frame_sizes: &[u32]) -> Vec<Self> {
        let least = if name == "ipv6" { IPV6_FRAME_SIZE_MIN } else { 0 };
        let mut sizes: Vec<u32> = Vec::new();
        for size in frame_sizes.iter().map(|&size| size.max(least)) {
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        let traffic = |size| Self { name: name.to_owned(), frame_size: Some(size) };
        sizes.into_iter().map(traffic).collect()
    }
}

impl StepOutput {
    /// Adds the units, the time and the delays of a later step. `last_loss_s` becomes unknown.
    pub fn add(&mut self, step: &Self) {
        if let Some(delay) = &step.delay {
            self.delay.get_or_insert_default().merge(delay);
        }
        self.intended += step.intended;
        self.offered += step.offered;
        self.received += step.received;
        self.seconds += step.seconds;
        self.last_loss_s = None;
    }

    /// Returns the units sent that did not arrive.
    pub const fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.received)
    }

    /// Returns the units that the generator did not send, beyond those of
    /// 10 µs of the intended load.
    pub fn unsent(&self) -> u64 {
        let seconds = self.seconds.max(UNSENT_MAX.as_secs_f64());
        let allowed = self.intended as f64 * UNSENT_MAX.as_secs_f64() / seconds;
        let unsent = self.intended.saturating_sub(self.offered);
        if unsent as f64 > allowed.max(1.0) { unsent } else { 0 }
    }

    /// Returns the Trial Loss Ratio (RFC 9971): lost and unsent units as a fraction of the intended
    /// units. Units that the generator could not send count as lost, as RFC 9971 section 4.9.1
    /// recommends. A step without units has a ratio of 0.
    pub fn loss_ratio(&self) -> f64 {
        let unsent = self.unsent();
        let units = if unsent > 0 { self.intended } else { self.offered };
        (self.lost() + unsent) as f64 / units.max(1) as f64
    }
}

impl FieldOutput {
    /// Returns whether the field is missing in a record, or has a value that was not sent.
    pub const fn is_wrong(&self) -> bool {
        self.missing > 0 || self.out_of_range > 0
    }
}

impl SegmentsOutput {
    /// Returns the retransmitted segments as a fraction of all; 0 without segments.
    pub fn retransmitted_ratio(&self) -> f64 {
        self.retransmitted as f64 / self.sent.max(1) as f64
    }
}

impl OfferOutput {
    /// Returns the sums of all steps, without `last_loss_s`.
    pub fn total(&self) -> StepOutput {
        let mut sum = StepOutput::default();
        for step in &self.steps {
            sum.add(step);
        }
        sum
    }
}

impl TrialOutput {
    /// Returns the results of the only or first offer; zeros without one.
    pub fn first(&self) -> OfferOutput {
        self.offers.first().cloned().unwrap_or_default()
    }
}
