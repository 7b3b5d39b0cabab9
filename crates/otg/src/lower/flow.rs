//! Flows: one stream for each port that sends them.

use std::collections::BTreeSet;

use wirestorm_model::assemble::Payload;
use wirestorm_model::stream::{Member, Speed, Stream};
use wirestorm_plan::traffic::{AutoAddresses, Flow as PlannedFlow, RequestedRate};
use wirestorm_wire::kernel_frame::KernelFrame;

use super::endpoints::{Ends, Sender};
use super::metrics::{self, MetricSettings};
use super::packet::{self, MetricTag, Packet, hex};
use super::ports::PortSettings;
use super::problems::{ConfigError, Problems};
use super::{NextHop, Resolve, size, transmission};
use crate::proto::flow_payload::choice::Enum as PayloadChoice;
use crate::proto::{Flow, FlowPayload};

/// A flow of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSettings {
    /// Name in the configuration.
    pub name: String,
    /// Its streams; at least one.
    pub streams: Vec<FlowStream>,
    /// What is measured.
    pub metrics: MetricSettings,
    /// Bits of the sent frame to count by.
    pub tags: Vec<MetricTag>,
    /// Bits of the received frame to count by.
    pub egress_tags: Vec<MetricTag>,
}

impl FlowSettings {
    /// Returns whether received frames are counted by tags.
    pub fn has_tags(&self) -> bool {
        self.metrics.per_rx_port || !self.tags.is_empty() || !self.egress_tags.is_empty()
    }
}

/// A part of a flow that one port sends. The members of a link aggregation group share a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStream {
    /// Index of the flow in the plan.
    pub planned: usize,
    /// Whether this is the opposite direction of a bidirectional flow.
    pub is_reversed: bool,
    /// Number of the part in its flow, from 0: members of a group have the same.
    pub part: usize,
}

/// Everything that flows refer to.
pub(super) struct Context<'a> {
    pub(super) ends: Ends<'a>,
    pub(super) ports: &'a [PortSettings],
    pub(super) resolve: &'a Resolve,
}

/// Flows of a plan, in the making.
#[derive(Debug, Default)]
pub(super) struct Lowering {
    pub(super) planned: Vec<PlannedFlow>,
    pub(super) flows: Vec<FlowSettings>,
    pub(super) unresolved: BTreeSet<NextHop>,
    /// Number of pairs of devices in all flows.
    pairs: usize,
}

impl Context<'_> {
    /// Lowers a flow; adds nothing if there are errors.
    pub(super) fn lower(
        &self,
        flow: &Flow,
        path: &str,
        lowering: &mut Lowering,
        problems: &mut Problems,
    ) {
        let senders = problems.take(self.ends.senders(flow, path, &mut lowering.pairs));
        let errors = problems.errors.len();
        let packet = packet::read(&flow.packet, &format!("{path}.packet"), problems);
        let egress_path = format!("{path}.egress_packet");
        let egress_tags = match flow.egress_packet.is_empty() {
            true => Vec::new(),
            false => {
                let egress = packet::read(&flow.egress_packet, &egress_path, problems);
                problems.take(egress.tags()).unwrap_or_default()
            }
        };
        let rate = problems.take(transmission::rate(flow.rate.as_ref(), &format!("{path}.rate")));
        let metrics =
            problems.take(metrics::read(flow.metrics.as_ref(), &format!("{path}.metrics")));
        let (Some(senders), Some(rate), Some(metrics)) = (senders, rate, metrics) else { return };
        if problems.errors.len() > errors {
            return;
        }
        let settings = FlowSettings {
            name: flow.name().to_owned(),
            streams: Vec::with_capacity(senders.len()),
            metrics,
            tags: Vec::new(),
            egress_tags,
        };
        lowering.flows.push(settings);
        for (part, sender) in senders.iter().enumerate() {
            let draft = Draft { flow, path, sender, rate, part, is_measured: metrics.enabled };
            let outcome = self.streams(draft, &senders, packet.clone(), lowering, problems);
            problems.take(outcome);
        }
    }

    /// Adds the stream of a part of a flow; one for each member of a link aggregation group.
    fn streams(
        &self,
        draft: Draft<'_>,
        senders: &[Sender],
        mut packet: Packet,
        lowering: &mut Lowering,
        problems: &mut Problems,
    ) -> Result<(), ConfigError> {
        let Draft { flow, path, sender, rate, part, is_measured } = draft;
        let is_shared = sender.tx_ports.len() > 1;
        packet.is_distributed = is_shared;
        let hops = self.ends.fill(&mut packet, sender, self.resolve, path, problems);
        let seed = hash(flow.name());
        let size = size::read(flow.size.as_ref(), seed, &format!("{path}.size"))?;
        let longest = size.max().unwrap_or(0);
        let payload = payload(flow.payload.as_ref(), longest, &format!("{path}.payload"))?;
        let has_ip_next = packet.has_ip_behind_ethernet();
        let built = packet.build(size, &payload, is_measured, path, problems)?;
        if is_measured && let Some(what) = left_to_kernel(&built.template) {
            problems.warn(
                format!("{path}.metrics"),
                format!("receivers leave {what} to the kernel: no frame is counted as received"),
            );
        }
        let link = sender.tx_ports.first().and_then(|port| self.ports.get(*port));
        let link = link.and_then(|port| port.speed.or_else(|| self.resolve.speed(&port.name)));
        let rate = match (rate, link) {
            // All members follow the same schedule.
            (RequestedRate::Percentage(_), Some(link)) if is_shared => {
                rate.on_port(Some(link)).map_or(rate, RequestedRate::Speed)
            }
            _ => rate,
        };
        let speed = match rate {
            RequestedRate::Speed(speed) => speed,
            // A placeholder until the port's speed is known.
            RequestedRate::Percentage(_) => Speed::Max,
        };
        let duration_path = format!("{path}.duration");
        let timing =
            transmission::timing(flow.duration.as_ref(), speed, link, &duration_path, problems)?;
        let is_one_hop = hops.len() == 1 && has_ip_next;
        let stream = Stream {
            name: String::new(),
            template: built.template,
            program: built.program,
            transmission: timing.transmission,
            is_measured,
            trailer: built.trailer,
            is_marked: false,
            member: None,
        };
        let is_reversed = sender.is_reversed;
        let mut counted_bits = Vec::new();
        if let Some(settings) = lowering.flows.last_mut() {
            let planned = lowering.planned.len()..lowering.planned.len() + sender.tx_ports.len();
            settings.streams.extend(planned.map(|planned| FlowStream {
                planned,
                is_reversed,
                part,
            }));
            if settings.tags.is_empty() {
                settings.tags = built.tags;
            }
            let tags = settings.tags.iter().chain(&settings.egress_tags);
            counted_bits.extend(tags.map(|tag| tag.bits()));
        }
        let streams = std::iter::repeat_n(stream, sender.tx_ports.len());
        for ((index, &tx_port), stream) in sender.tx_ports.iter().enumerate().zip(streams) {
            let name = self.stream_name(flow.name(), sender, tx_port, senders);
            let member = sender.lag.filter(|_| is_shared).map(|lag| Member {
                group: lag,
                index: index as u32,
                active: u64::MAX >> (Member::MEMBERS_MAX - sender.tx_ports.len()),
                active_min: self.ends.lags.get(lag).map_or(1, |lag| lag.min_links),
                keys: built.addresses.clone(),
            });
            lowering.planned.push(PlannedFlow {
                tx_port,
                rx_ports: sender.rx_ports.clone(),
                rate,
                duration: timing.duration,
                payload: built.payload,
                counted_bits: counted_bits.clone(),
                auto_addresses: AutoAddresses { source: false, destination: is_one_hop },
                stream: Stream { name, member, ..stream },
                path: path.to_owned(),
            });
        }
        lowering.unresolved.extend(hops);
        Ok(())
    }

    /// Returns the name of a stream: that of its flow, with the port if several ports send it.
    fn stream_name(&self, name: &str, sender: &Sender, port: usize, senders: &[Sender]) -> String {
        let is_only = senders.len() == 1 && sender.tx_ports.len() == 1;
        match (is_only, sender.is_reversed) {
            (true, _) => name.to_owned(),
            (false, false) => format!("{name} ({})", self.ports[port].name),
            (false, true) => format!("{name} ({}, reverse)", self.ports[port].name),
        }
    }
}

/// Returns what a frame is if receivers do not count it.
fn left_to_kernel(frame: &[u8]) -> Option<&'static str> {
    match KernelFrame::of(frame)? {
        KernelFrame::Arp => Some("ARP"),
        KernelFrame::Discovery => Some("neighbour discovery"),
        KernelFrame::Fragment => Some("fragments of ICMP"),
        // Counted by their signature.
        KernelFrame::Ping => None,
    }
}

/// A part of a flow to be made.
struct Draft<'a> {
    flow: &'a Flow,
    path: &'a str,
    sender: &'a Sender,
    rate: RequestedRate,
    /// Number of the part in the flow.
    part: usize,
    is_measured: bool,
}

fn payload(
    payload: Option<&FlowPayload>,
    length_max: usize,
    path: &str,
) -> Result<Payload, ConfigError> {
    let Some(payload) = payload else { return Ok(Payload::Zeros) };
    Ok(match payload.choice() {
        PayloadChoice::IncrementByte => Payload::IncrementingBytes(0),
        PayloadChoice::IncrementWord => Payload::IncrementingWords(0),
        PayloadChoice::DecrementByte => Payload::Pattern((0..=255).rev().collect()),
        PayloadChoice::DecrementWord => {
            let words = (0..=u16::MAX).rev().take(length_max.div_ceil(2));
            Payload::Pattern(words.flat_map(u16::to_be_bytes).collect())
        }
        PayloadChoice::Fixed | PayloadChoice::Unspecified => {
            let fixed = payload.fixed.as_ref();
            let pattern = fixed.map_or("", |fixed| fixed.pattern());
            let bytes = hex(pattern, &format!("{path}.fixed.pattern"))?;
            if bytes.iter().all(|byte| *byte == 0) {
                Payload::Zeros
            } else {
                Payload::Pattern(bytes)
            }
        }
    })
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, add)
}
