//! Traffic of a flow exporter test: generated flows, or a capture.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use wirestorm_base::pace::Pace;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_engine::replay::{Unique, UniqueFields};
use wirestorm_flowexport::accuracy::{ExpectedField, Field};
use wirestorm_flowexport::flow_table::SentFlow;
use wirestorm_io::link::Link;
use wirestorm_method::trial::{Offer, Step};
use wirestorm_plan::Multiplier;
use wirestorm_plan::replay::{
    FlowPlan, Limits, ReceivePlan, ReplayPlan, SideAssignment, Target, UniquePlan,
};
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_wire::capture::{LinkType, Records};
use wirestorm_wire::dissect::{Class, dissect};
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet;

use super::FlowExporterBed;
use super::sent::SentFlows;
use crate::files::{Files, HostFiles};
use crate::replay::Callbacks;
use crate::result::RunResult;
use crate::run::Plan;
use crate::traffic::{SeriesOptions, StreamOptions};

/// UDP ports of generated flows (RFC 2544 appendix C.2.6.4).
const PORTS: (u16, u16) = (0xc020, 7);
/// Largest number of flows that a replay tracks for its own counters.
const REPLAY_FLOWS_MAX: usize = 4_000_000;

/// Traffic of all trials.
pub(super) enum Traffic {
    /// One packet for each flow.
    Flows,
    /// A capture.
    Capture {
        /// Flows of one pass.
        flows: Vec<SentFlow>,
        /// All packets of one pass, also those without a flow.
        packets: u64,
    },
}

impl Traffic {
    /// Reads the flows of the capture, if there is one.
    pub(super) fn open(bed: &FlowExporterBed) -> Result<Self, String> {
        let Some(path) = &bed.capture else { return Ok(Self::Flows) };
        let (flows, packets) = read_flows(path)?;
        if flows.is_empty() {
            return Err(format!("{}: the capture has no IP packets", path.display()));
        }
        Ok(Self::Capture { flows, packets })
    }

    /// Returns the plan of a trial.
    pub(super) fn plan(
        &self,
        bed: &FlowExporterBed,
        offer: &Offer,
        step: &Step,
    ) -> Result<Plan, String> {
        match self {
            Self::Flows => flows_plan(bed, offer, step),
            Self::Capture { flows, packets } => {
                capture_plan(bed, step, flows.len() as u64, *packets)
            }
        }
    }

    /// Returns the flows that a trial sent.
    pub(super) fn sent(
        &self,
        bed: &FlowExporterBed,
        offer: &Offer,
        result: &RunResult,
    ) -> SentFlows {
        match self {
            Self::Flows => {
                let packets: u64 = result.flows.iter().map(|flow| flow.packets).sum();
                SentFlows::Generated {
                    first_source: bed.first_source,
                    destination: bed.destination,
                    ports: PORTS,
                    sources: bed.sources,
                    packets: packets.saturating_sub(failed(result)),
                    bytes: ip_bytes(offer),
                }
            }
            Self::Capture { flows, .. } => SentFlows::Passes {
                flows: flows.clone(),
                unique: UNIQUE,
                passes: result.achieved.passes.unwrap_or(0),
            },
        }
    }

    /// Returns what the fields of records should have (RFC 6645 section 7); `None` for a capture,
    /// whose values have no ranges.
    pub(super) fn expected_fields(
        &self,
        bed: &FlowExporterBed,
        offer: &Offer,
        step: &Step,
    ) -> Option<[ExpectedField; 9]> {
        if let Self::Capture { .. } = self {
            return None;
        }
        let flows = step.units().clamp(1, u64::from(bed.sources.max(1)));
        // Packets of a flow whose key repeats may be in one record.
        let packets = step.units().div_ceil(flows).max(1);
        let first = u64::from(u32::from(bed.first_source));
        let destination = u64::from(u32::from(bed.destination));
        let bytes = ip_bytes(offer);
        let ranges = [
            (Field::SourceAddress, first..=first + flows - 1),
            (Field::DestinationAddress, destination..=destination),
            (Field::SourcePort, PORTS.0.into()..=PORTS.0.into()),
            (Field::DestinationPort, PORTS.1.into()..=PORTS.1.into()),
            (Field::Protocol, packet::protocol::UDP.into()..=packet::protocol::UDP.into()),
            (Field::Packets, 1..=packets),
            (Field::Bytes, bytes..=bytes * packets),
            // The clock of the device is its own.
            (Field::First, 0..=u64::MAX),
            (Field::Last, 0..=u64::MAX),
        ];
        Some(ranges.map(|(field, range)| ExpectedField { field, range }))
    }

    /// Returns an upper limit of the flows that were sent in part: a packet that the interface
    /// failed to send is missing in one flow.
    pub(super) fn incomplete_flows(&self, result: &RunResult) -> u64 {
        match self {
            // A flow is one packet, and `sent` leaves out those that failed.
            Self::Flows => 0,
            Self::Capture { .. } => failed(result),
        }
    }

    /// Returns the time in which a trial sent, in seconds.
    pub(super) fn seconds(&self, step: &Step, result: &RunResult) -> f64 {
        match self {
            Self::Flows => step.duration().as_secs_f64(),
            Self::Capture { .. } => result.times.elapsed_s.max(1e-9),
        }
    }

    /// Returns the flows that the load amounts to in this time.
    pub(super) fn intended(&self, step: &Step, seconds: f64) -> u64 {
        match self {
            Self::Flows => step.units(),
            // A pass is sent as a whole: a generator that is too slow takes longer.
            Self::Capture { .. } => (step.load as f64 * seconds * (1.0 - RATE_TOLERANCE)) as u64,
        }
    }
}

/// Returns the bytes of the IP packet in a generated frame: without Ethernet header and FCS.
fn ip_bytes(offer: &Offer) -> u64 {
    u64::from(offer.frame_size.unwrap_or(64)).saturating_sub(18)
}

/// Returns the packets that the interface failed to send.
fn failed(result: &RunResult) -> u64 {
    let ports = result.ports.iter().filter_map(|port| port.tx.as_ref());
    ports.map(|tx| tx.failed + tx.unsent).sum()
}

/// Part of the rate that a replay may miss. The passes of a trial end with the last packet, whose
/// departure varies by a few milliseconds.
const RATE_TOLERANCE: f64 = 0.001;

/// Addresses change in each pass.
const UNIQUE: Unique = Unique { what: UniqueFields::Addresses, passes_milli: 1_000 };

/// Source address of the filler, which no generated flow should have.
const FILLER_SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 255, 254);
/// Rate of the filler in frames per second.
const FILLER_RATE: u64 = 20_000;

/// Returns the key of the filler.
pub(super) const fn filler_key(bed: &FlowExporterBed) -> FlowKey {
    let key =
        FlowKey::ipv4(FILLER_SOURCE.octets(), bed.destination.octets(), packet::protocol::UDP);
    key.with_ports(PORTS.0, PORTS.1)
}

/// Returns the plan of the filler: frames of one flow after the traffic.
///
/// Exporters that read from libpcap get packets in blocks of about 256 KiB, softflowd without a
/// timeout. Without the filler, the last packets of a trial stay in the kernel.
pub(super) fn filler_plan(bed: &FlowExporterBed) -> Result<Plan, String> {
    streams_plan(bed, |packet| {
        json!({
            "name": "filler",
            "tx": "tx",
            "packet": packet(json!(FILLER_SOURCE.to_string())),
            "size": 128,
            "rate": {"pps": FILLER_RATE},
            "duration": {"fixed_packets": bed.filler_frames},
        })
    })
}

/// Returns the plan of generated flows.
fn flows_plan(bed: &FlowExporterBed, offer: &Offer, step: &Step) -> Result<Plan, String> {
    streams_plan(bed, |packet| {
        let source = json!({"increment": {
            "start": bed.first_source.to_string(), "count": bed.sources,
        }});
        let mut flow = json!({
            "name": "flows",
            "tx": "tx",
            "packet": packet(source),
            "size": offer.frame_size.unwrap_or(64),
            "rate": {"pps": step.load},
            "duration": {"fixed_seconds": step.duration().as_secs_f64()},
        });
        if bed.rx.is_some() {
            flow["rx"] = json!("rx");
            flow["metrics"] = json!({"enable": true});
        }
        flow
    })
}

/// Returns a plan of one flow. `flow` gets a function from the source address to the headers.
fn streams_plan(
    bed: &FlowExporterBed,
    flow: impl FnOnce(&dyn Fn(Value) -> Value) -> Value,
) -> Result<Plan, String> {
    let mut ports = vec![json!({"name": "tx", "location": bed.tx})];
    let mut ethernet = json!({"src": mac_text(mac_of(&bed.tx)?)});
    if let Some(address) = &bed.address {
        ports[0]["addresses"] = json!(format!("{}/{}", address.address, address.prefix));
        if let Some(gateway) = address.gateway {
            ports[0]["gateway"] = json!(gateway.to_string());
        }
        ethernet = json!({"src": "auto", "dst": "auto"});
    } else {
        let rx = bed.rx.as_deref().map(mac_of).transpose()?;
        ethernet["dst"] = json!(mac_text(bed.destination_mac.or(rx).unwrap_or([0xff; 6])));
    }
    if let Some(rx) = &bed.rx {
        ports.push(json!({"name": "rx", "location": rx}));
    }
    let packet = |source: Value| {
        json!([
            {"ethernet": ethernet},
            {"ipv4": {"src": source, "dst": bed.destination.to_string()}},
            {"udp": {"src_port": PORTS.0, "dst_port": PORTS.1}},
        ])
    };
    let flow = flow(&packet);
    let document = json!({"ports": ports, "flows": [flow]});
    // JSON is valid YAML.
    let plan = TrafficPlan::parse(&document.to_string()).map_err(|error| error.to_string())?;
    let options = StreamOptions {
        elsewhere: None,
        interfaces: vec![None; plan.ports.len()],
        backend: bed.backend,
        workers: 1,
        policy: bed.policy,
        duration: Duration::MAX,
        multiplier: Multiplier::ONE,
        force_interface: bed.force_interface,
        is_visible: false,
        per_vlan: false,
        survives_outages: false,
        // The method judges the load.
        tolerance_ppm: f64::MAX,
        series: SeriesOptions::default(),
    };
    Ok(Plan::Streams { plan: Arc::new(plan), options })
}

/// Returns the plan of whole passes of a capture.
fn capture_plan(
    bed: &FlowExporterBed,
    step: &Step,
    flows: u64,
    packets: u64,
) -> Result<Plan, String> {
    let path = bed.capture.clone().ok_or("expected a capture")?;
    let passes = (step.units() as f64 / flows as f64).round().max(1.0) as u64;
    let rate = Rate::new(step.load.saturating_mul(packets), Duration::from_secs(flows));
    let rate = rate.map_err(|error| format!("{} flows a second: {error}", step.load))?;
    let plan = ReplayPlan {
        captures: vec![path],
        target: Target::Interfaces { primary: bed.tx.clone(), secondary: None },
        sides: SideAssignment::Single,
        edits: Default::default(),
        show: None,
        one_at_a_time: false,
        pace: Pace::Packets { rate, group: 1 },
        policy: bed.policy,
        limits: Limits { passes, packets: u64::MAX, duration: Duration::MAX },
        pass_delay: Duration::ZERO,
        preload: true,
        flows: Some(FlowPlan { expiry: None, flows_max: REPLAY_FLOWS_MAX }),
        unique: Some(UniquePlan { ports: false, passes_milli: UNIQUE.passes_milli }),
        include: None,
        exclude: Vec::new(),
        original_length: false,
        receive: bed
            .rx
            .as_ref()
            .map(|interface| ReceivePlan { interface: interface.clone(), verify: false }),
        workers: 1,
        // The method judges the load.
        tolerance_ppm: u32::MAX,
        force_interface: bed.force_interface,
    };
    let (backend, hooks) = (bed.backend, Callbacks::default());
    Ok(Plan::Replay { plan: Box::new(plan), backend, hooks })
}

/// Reads the flows of a capture, without their VLANs, and the number of its packets.
fn read_flows(path: &Path) -> Result<(Vec<SentFlow>, u64), String> {
    let at_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut file = HostFiles.open_capture(path).map_err(|error| at_file(&error))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| at_file(&error))?;
    let mut flows: BTreeMap<FlowKey, (u64, u64)> = BTreeMap::new();
    let mut packets = 0;
    let mut records = Records::new(&bytes);
    while let Some(record) = records.next() {
        let (header, data) = record.map_err(|error| at_file(&error))?;
        let link = records.decoder().interfaces().get(header.interface as usize);
        let link = link.map_or(LinkType::EN10MB, |interface| interface.link_type);
        packets += 1;
        let dissection = dissect(link, data);
        let Class::Flow(key) = dissection.class else { continue };
        let ip = data.get(usize::from(dissection.network_offset)..).unwrap_or_default();
        let Some(length) = ip_length(ip) else { continue };
        let (count, sum) = flows.entry(key.without_vlan()).or_default();
        *count += 1;
        *sum += length;
    }
    let flow = |(key, (packets, bytes))| SentFlow { key, packets, bytes };
    Ok((flows.into_iter().map(flow).collect(), packets))
}

/// Returns the length of an IP packet by its header (RFC 791 section 3.1, RFC 8200 section 3).
fn ip_length(packet: &[u8]) -> Option<u64> {
    let word = |at: usize| {
        let bytes = packet.get(at..at + 2)?;
        Some(u64::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    };
    match packet.first()? >> 4 {
        4 => word(2),
        6 => Some(word(4)? + 40),
        _ => None,
    }
}

fn mac_of(interface: &str) -> Result<[u8; 6], String> {
    let name = interface.parse().map_err(|error| format!("{error}"))?;
    let link = Link::open(&name).map_err(|error| error.to_string())?;
    link.mac.ok_or_else(|| format!("{interface}: expected an Ethernet interface"))
}

fn mac_text([a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}
