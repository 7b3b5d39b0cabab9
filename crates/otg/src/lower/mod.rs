//! Translation of a configuration to a plan.
//!
//! ```text
//! Config ─ ports, layer1, lags ─ ports.rs
//!        ─ captures ──────────── capture.rs
//!        ─ devices ───────────── interface.rs
//!        ─ flows ─────────────── flow.rs ─ endpoints.rs: who sends to whom
//!                                        ─ packet, size.rs, transmission.rs, metrics.rs
//! ```
//!
//! # Limits
//!
//! Errors, since they would change the traffic:
//!
//! - protocols and loopbacks of devices, LACP, LLDP, `stateful_flows`
//! - the header `macsec`; `dst_usids`, micro-segments and padding of segment routing; patterns in
//!   extension headers of GTPv1 and in flags of segment routing
//! - addresses by DHCP, the filter `auto_macsec`
//!
//! Warnings:
//!
//! - Frames whose size is too short for headers and signature are longer.
//! - A `gap` other than 12 bytes has no effect: the rate gives the distance of the frames.
//! - Receivers count no ARP, neighbour discovery and fragments of ICMP, even with metrics.
//! - `ethernet.pfc_queue`, `events`, `data_integrity`,
//!   `frame_ordering_mode` and `packet_loss_duration` have no effect.
//!
//! Choices where the models leave one:
//!
//! - The members of a link aggregation group share the frames of a flow by a hash of the addresses
//!   and ports of all headers, so frames with equal addresses keep their order. A rate in percent
//!   is that of the first member.
//! - If several ports send a flow between devices, each sends at the flow's rate and as many
//!   packets.
//! - `vlan.tpid` is the type of the tag itself, not of what follows, unless the header before it
//!   gives its `ether_type` and no header follows.
//! - Frames of a fixed size have room for the FCS of a frame in a tunnel, four zeros, as the
//!   conformance tests expect. Frames of several sizes have none (RFC 7348 section 5).
//! - A mask of a capture filter selects the bits to compare; a mask of zeros compares all.

mod capture;
mod egress;
mod endpoints;
mod flow;
mod interface;
mod metrics;
mod packet;
mod ports;
mod problems;
mod size;
mod transmission;

pub use capture::{CaptureFormat, CaptureSettings, FieldFilter, FilterBase};
pub use egress::EgressTracking;
pub use flow::{FlowSettings, FlowStream};
pub use interface::{Interface, InterfaceAddress, VlanTag};
pub use metrics::{LatencyMode, MetricSettings, RxTxRatio};
pub use packet::MetricTag;
pub use ports::{LagSettings, PortSettings};
pub use problems::ConfigError;

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirestorm_base::rate::Rate;
use wirestorm_plan::traffic::TrafficPlan;
use wirestorm_wire::packet::MacAddress;

use self::endpoints::{Ends, Neighbours};
use self::flow::{Context, Lowering};
use self::ports::Names;
use self::problems::{Problems, unsupported};
use crate::decode::Warning;
use crate::proto::Config;
use crate::proto::port_options_frame_ordering_mode::choice::Enum as FrameOrdering;

/// Facts that a configuration does not hold.
#[derive(Clone, Debug, Default)]
pub struct Resolve {
    speeds: BTreeMap<String, Rate>,
    neighbours: Neighbours,
}

impl Resolve {
    /// Sets the line rate of a port, by its name, in bits per second. `layer1` takes precedence.
    pub fn set_speed(&mut self, port: impl Into<String>, bits_per_second: Rate) {
        self.speeds.insert(port.into(), bits_per_second);
    }

    /// Sets the Ethernet address of a next hop of an interface, by the interface's name.
    pub fn set_neighbour(
        &mut self,
        interface: impl Into<String>,
        next_hop: IpAddr,
        mac: MacAddress,
    ) {
        self.neighbours.insert((interface.into(), next_hop), mac);
    }

    fn speed(&self, port: &str) -> Option<Rate> {
        self.speeds.get(port).copied()
    }

    fn neighbour(&self, interface: &str, next_hop: IpAddr) -> Option<MacAddress> {
        self.neighbours.get(&(interface.to_owned(), next_hop)).copied()
    }
}

/// A configuration as a plan, and what the plan does not hold.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// Ports in the order of the configuration, and a flow for each stream.
    pub plan: TrafficPlan,
    /// Settings of the plan's ports.
    pub ports: Vec<PortSettings>,
    /// Flows in the order of the configuration, each with its flows in the plan.
    pub flows: Vec<FlowSettings>,
    /// Captures.
    pub captures: Vec<CaptureSettings>,
    /// Counters of all frames that arrive at a port, by bits of the frames.
    pub egress: Vec<EgressTracking>,
    /// Link aggregation groups.
    pub lags: Vec<LagSettings>,
    /// Interfaces of all devices.
    pub interfaces: Vec<Interface>,
    /// Next hops whose Ethernet address is missing; it is 0 in the frames. Resolve them, then lower
    /// the configuration again.
    pub unresolved: Vec<NextHop>,
    /// Whether to take ports that others use.
    pub location_preemption: bool,
    /// Settings without effect.
    pub warnings: Vec<Warning>,
}

/// The next hop of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    /// Index of the interface that sends.
    pub interface: usize,
    /// IP address of the next hop.
    pub address: IpAddr,
}

/// Translates a configuration.
///
/// # Errors
/// All errors with their paths, at most 100.
pub fn lower(config: &Config, resolve: &Resolve) -> Result<Lowered, Vec<ConfigError>> {
    let mut problems = Problems::default();
    let (ports, port_names) = ports::read(config, &mut problems);
    let (lags, lag_names) = ports::lags(config, &port_names, &mut problems);
    let captures = capture::read(config, &port_names, &mut problems);
    let interfaces = interface::read(config, &port_names, (&lags, &lag_names), &mut problems);
    let egress = egress::read(config, &port_names, &mut problems);
    let location_preemption = options(config, &mut problems);
    let mut lowering = Lowering::default();
    let mut flow_names = Names::default();
    let ends =
        Ends { ports: &port_names, lags: &lags, lag_names: &lag_names, interfaces: &interfaces };
    let context = Context { ends, ports: &ports, resolve };
    for (index, flow) in config.flows.iter().enumerate() {
        let path = format!("flows[{index}]");
        flow_names.add(flow.name(), index, || format!("{path}.name"), &mut problems);
        context.lower(flow, &path, &mut lowering, &mut problems);
    }
    if !problems.errors.is_empty() {
        return Err(problems.errors);
    }
    let mut planned = ports::planned(&ports);
    for interface in interfaces.list.iter().filter(|interface| interface.vlans.is_empty()) {
        let port = &mut planned[interface.port];
        for address in &interface.addresses {
            port.addresses.push(address.prefix);
            if !port.gateways.contains(&address.gateway) {
                port.gateways.push(address.gateway);
            }
        }
    }
    Ok(Lowered {
        plan: TrafficPlan { ports: planned, flows: lowering.planned },
        ports,
        flows: lowering.flows,
        captures,
        egress,
        lags,
        interfaces: interfaces.list,
        unresolved: lowering.unresolved.into_iter().collect(),
        location_preemption,
        warnings: problems.into_warnings(),
    })
}

/// Reads the options; returns whether locations may be preempted.
fn options(config: &Config, problems: &mut Problems) -> bool {
    if !config.lldp.is_empty() {
        problems.error(unsupported("lldp"));
    }
    if config.stateful_flows.is_some() {
        problems.error(unsupported("stateful_flows"));
    }
    if config.events.is_some() {
        problems.ignore("events");
    }
    let Some(options) = &config.options else { return false };
    if options.protocol_options.is_some() {
        problems.ignore("options.protocol_options");
    }
    if !options.per_port_options.is_empty() {
        problems.ignore("options.per_port_options");
    }
    if options.flow_options.as_ref().is_some_and(|options| options.packet_loss_duration()) {
        problems.ignore("options.flow_options.packet_loss_duration");
    }
    let Some(ports) = &options.port_options else { return false };
    if ports.data_integrity() {
        problems.ignore("options.port_options.data_integrity");
    }
    let ordering = ports.frame_ordering_mode.as_ref().map(|mode| mode.choice());
    if ordering == Some(FrameOrdering::Rfc2889) {
        problems.ignore("options.port_options.frame_ordering_mode");
    }
    ports.location_preemption()
}
