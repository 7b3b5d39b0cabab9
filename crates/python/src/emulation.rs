//! Emulations of clients and servers on a background thread.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wirestorm_control::base::rate::Decimal;
use wirestorm_control::base::time::Duration;
use wirestorm_control::emulation::{EmulationOptions, FlowChoice, WatchOptions};
use wirestorm_control::files::HostFiles;
use wirestorm_control::model::address_range::AddressRange;
use wirestorm_control::model::tunnel::ClientTunnels;
use wirestorm_control::plan::Multiplier;
use wirestorm_control::plan::emulation::{Client, Devices, EmulationPlan, MplsLabels, Vlans};
use wirestorm_control::plan::load;
use wirestorm_control::plan::traffic::{PlanErrors, Port};
use wirestorm_control::plan::trex::stateful::{self, StatefulOptions};
use wirestorm_control::run::Plan;
use wirestorm_control::wire::packet::MacAddress;
use wirestorm_control::{Command, Detail, LoadFactor};

use crate::background::{Background, to_json};
use crate::errors::{plan_error, run_failure, value_error};
use crate::read_duration;
use crate::run::{bind, read_backend};

/// A run of clients and servers.
///
/// It ends when its clients and servers are done, when it is stopped, or when no object refers to
/// it.
#[pyclass(frozen, module = "wirestorm._native")]
pub(crate) struct Emulation {
    plan: Arc<EmulationPlan>,
    /// Whether IPv4 addresses also identify clients over IPv6, whose last 32 bits they are.
    ///
    /// True for TRex profiles.
    knows_last_bits: bool,
    run: Background,
}

/// Builds a command for ranges of clients, and for the same last 32 bits in each IPv6 network.
fn client_command(ranges: &[Clients], networks: &[Ipv6Addr], on: bool) -> PyResult<Command> {
    let mut all = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        let (first, last) = (read_address(first)?, read_address(last)?);
        if first.is_ipv4() != last.is_ipv4() || first > last {
            return Err(value_error(format!(
                "clients {first} to {last}: expected an ascending range"
            )));
        }
        all.push((first, last));
        all.extend(networks.iter().map(|it| (in_network(*it, first), in_network(*it, last))));
    }
    Ok(Command::Clients { ranges: all, on })
}

/// First and last address of a range of clients.
type Clients = (String, String);

/// Options of an emulation, as strings in the syntax of the command line.
///
/// Without `drain_timeout`, open connections have unlimited time to finish. `drain_timeout_flag` is
/// the caller's name of that option in notes; `None` omits the note about connections that did not
/// finish.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct EmulationArguments {
    duration: Option<String>,
    drain_timeout: Option<String>,
    drain_timeout_flag: Option<String>,
    link_down_timeout: String,
    rx_coalesce: String,
    interval: String,
    follow: usize,
    backend: String,
    multiplier: String,
    flows_max: u32,
    seed: Option<u64>,
    force_interface: bool,
    shares_ports: bool,
    is_visible: bool,
    verify_checksums: bool,
}

/// Maximum of `flows_max`, as on the command line.
const FLOWS_MAX: u32 = 16_000_000;

/// Minimum interval of time series.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

impl EmulationArguments {
    fn options(&self, ports: usize, folder: PathBuf) -> PyResult<EmulationOptions> {
        let flows_max = self.flows_max;
        if !(1..=FLOWS_MAX).contains(&flows_max) {
            return Err(value_error(format!("flows_max {flows_max}: expected 1 to {FLOWS_MAX}")));
        }
        let interval = read_duration("interval", Some(&self.interval))?;
        if interval < INTERVAL_MIN {
            return Err(value_error(format!("interval {:?}: expected 1ms or more", self.interval)));
        }
        let (follow, most) = (self.follow, FlowChoice::COUNT_MAX);
        if follow > most {
            return Err(value_error(format!("follow {follow}: expected 0 to {most}")));
        }
        let flows = FlowChoice { count: follow, ..FlowChoice::default() };
        Ok(EmulationOptions {
            interfaces: vec![None; ports],
            folder,
            backend: read_backend(&self.backend)?,
            duration: read_duration("duration", self.duration.as_deref())?,
            drain_timeout: self
                .drain_timeout
                .as_deref()
                .map_or(Ok(Duration::MAX), |it| read_duration("drain_timeout", Some(it)))?,
            drain_timeout_flag: self.drain_timeout_flag.clone(),
            link_down_timeout: read_duration("link_down_timeout", Some(&self.link_down_timeout))?,
            rx_coalesce: read_duration("rx_coalesce", Some(&self.rx_coalesce))?,
            watch: WatchOptions { interval, flows },
            flows_max: flows_max as usize,
            seed: self.seed.unwrap_or_else(EmulationOptions::random_seed),
            verify_checksums: self.verify_checksums,
            force_interface: self.force_interface,
            is_visible: self.is_visible,
        })
    }
}

#[pymethods]
impl Emulation {
    /// Starts the clients and servers of a plan in YAML or JSON.
    ///
    /// Relative paths in the plan start at `folder`. `interfaces` overrides the interfaces of ports
    /// by name.
    #[new]
    fn new(
        py: Python<'_>,
        plan: &str,
        folder: PathBuf,
        interfaces: BTreeMap<String, String>,
        how: EmulationArguments,
    ) -> PyResult<Self> {
        let plan = py.detach(|| load::emulation(plan, &folder, &HostFiles));
        let mut plan = plan.map_err(|errors| plan_error(py, &errors))?;
        bind(&mut plan.ports, interfaces)?;
        Self::start(py, plan, folder, &how, false, None)
    }

    /// Waits until the clients and servers run, or the run is over.
    fn wait_started(&self, py: Python<'_>) {
        self.run.wait_started(py);
    }

    /// Waits for the end, at most `timeout_s` seconds. Returns whether the run is over.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> bool {
        self.run.wait_done(py, timeout_s)
    }

    /// Stops opening connections, as at the end of the duration. Returns at once.
    fn end_load(&self) -> PyResult<()> {
        self.run.command(Command::EndLoad)
    }

    /// Stops the run, whatever is open. Returns at once.
    fn stop(&self) {
        self.run.handle().stop();
    }

    /// Multiplies the initial loads: rates, numbers of concurrent flows, throughputs.
    fn set_load(&self, py: Python<'_>, factor: &str) -> PyResult<()> {
        let decimal = read_factor(factor)?;
        let mut plan = (*self.plan).clone();
        plan.multiply(decimal).map_err(|error| plan_error(py, &error.into()))?;
        let known = LoadFactor::new(decimal).ok_or_else(|| factor_error(factor))?;
        self.run.command(Command::ScaleLoad(known))
    }

    /// Switches ranges of clients off or on.
    ///
    /// A client that is off opens no connections. Its open connections continue.
    fn switch_clients(&self, ranges: Vec<Clients>, on: bool) -> PyResult<()> {
        self.run.command(client_command(&ranges, &self.networks(), on)?)
    }

    /// Replaces the tunnels of clients on all ports that have tunnels.
    ///
    /// A tunnel has the first and last client, the first TEID and its step for each next client,
    /// both endpoints, and the UDP source port. Port 0 copies the source port of the inner packet.
    fn change_tunnels(&self, tunnels: Vec<Tunnels>) -> PyResult<()> {
        let tunnels = read_tunnels(&tunnels, &self.networks())?;
        if let Some(port) = port_over_mtu(&self.plan.ports, &tunnels) {
            return Err(value_error(format!(
                "port {:?}: tunnels over IPv6 need 20 bytes more than the run's initial tunnels; \
                 start the run with a tunnel over IPv6 or without tunnels",
                port.name
            )));
        }
        self.run.command(Command::Tunnels(tunnels))
    }

    /// Returns for each address whether its client is on. None for an address that belongs to no
    /// client.
    fn clients(&self, addresses: Vec<String>) -> PyResult<Vec<Option<bool>>> {
        let off = self.run.handle().clients_off();
        let (ranges, networks) = (self.ranges(), self.networks());
        let is_on = |text: &String| {
            let address = read_address(text)?;
            let others = networks.iter().map(|network| in_network(*network, address));
            let mut known = std::iter::once(address).chain(others);
            let client = known.find(|it| ranges.iter().any(|range| range_contains(range, *it)));
            Ok(client.map(|it| !off.contains(it)))
        };
        addresses.iter().map(is_on).collect()
    }

    /// Returns elapsed_s and the counters of ports by name. None before the run has begun.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(progress) = self.run.latest() else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("elapsed_s", progress.elapsed.as_secs_f64())?;
        let ports = PyDict::new(py);
        for port in &progress.ports {
            let name = &port.name;
            let port = &port.connections;
            let counted = PyDict::new(py);
            counted.set_item("connects", port.established)?;
            counted.set_item("active", port.active)?;
            counted.set_item("failed", port.failed)?;
            counted.set_item("received_bytes", port.received_bytes)?;
            counted.set_item("retransmitted", port.retransmitted)?;
            ports.set_item(name, counted)?;
        }
        dict.set_item("ports", ports)?;
        Ok(Some(dict))
    }

    /// Returns the current reports of the ports, a JSON list as in the result.
    ///
    /// None if the run has not begun or has ended. `detail` is `port`, `templates` (also each
    /// template), or `all` (also times and series).
    fn reports(&self, py: Python<'_>, detail: &str) -> PyResult<Option<String>> {
        let detail = match detail {
            "port" => Detail::Port,
            "templates" => Detail::Templates,
            "all" => Detail::All,
            other => {
                let message = format!("detail {other:?}: expected port, templates or all");
                return Err(value_error(message));
            }
        };
        let reports = py.detach(|| self.run.handle().port_reports(detail));
        reports.map(|reports| to_json(py, serde_json::to_string(&reports))).transpose()
    }

    /// Returns the result as a wirestorm.result/2 document.
    ///
    /// Raises RunError if the run did not begin or has not ended.
    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.run.result(py, run_failure)
    }
}

impl Emulation {
    /// Starts a plan whose ports have interfaces. `off` switches clients off from the start.
    fn start(
        py: Python<'_>,
        mut plan: EmulationPlan,
        folder: PathBuf,
        how: &EmulationArguments,
        knows_last_bits: bool,
        off: Option<Command>,
    ) -> PyResult<Self> {
        let options = how.options(plan.ports.len(), folder)?;
        let factor = read_factor(&how.multiplier)?;
        plan.multiply(factor).map_err(|error| plan_error(py, &error.into()))?;
        let plan = Arc::new(plan);
        let run = Plan::Emulation { plan: Arc::clone(&plan), options };
        let (run, _) = Background::begin(run, how.shares_ports);
        off.map_or(Ok(()), |off| run.command(off))?;
        run.start();
        Ok(Self { plan, knows_last_bits, run })
    }

    /// Returns the address ranges of the clients.
    fn ranges(&self) -> Vec<AddressRange> {
        client_ranges(&self.plan)
    }

    /// Returns the IPv6 networks whose clients are identified by their last 32 bits.
    fn networks(&self) -> Vec<Ipv6Addr> {
        if self.knows_last_bits { client_networks(&self.plan) } else { Vec::new() }
    }
}

fn client_ranges(plan: &EmulationPlan) -> Vec<AddressRange> {
    let mut found = Vec::new();
    for client in plan.templates.iter().filter_map(|it| it.client.as_ref()) {
        let of_port = plan.ports[client.transmit].addresses.first();
        let of_port = of_port.map(|it| AddressRange { first: it.address, count: 1 });
        found.extend(client.addresses.or(of_port).filter(|it| !found.contains(it)));
    }
    found
}

fn client_networks(plan: &EmulationPlan) -> Vec<Ipv6Addr> {
    let mut found = Vec::new();
    for range in client_ranges(plan) {
        let IpAddr::V6(first) = range.first else { continue };
        let network = Ipv6Addr::from_bits(first.to_bits() & !u128::from(u32::MAX));
        if !found.contains(&network) {
            found.push(network);
        }
    }
    found
}

/// A TRex port: its interface, and the next hop, VLANs and tunnels of its clients.
///
/// `gateways` override the next hop and VLANs for their clients.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TrexPort {
    interface: String,
    destination: Option<String>,
    vlan: Vec<u16>,
    gateways: Vec<TrexGateway>,
    tunnels: Option<Vec<Tunnels>>,
}

/// Tunnels of clients: first and last client, first TEID and its step for each next client, both
/// endpoints, UDP source port.
type Tunnels = (String, String, u32, u32, String, String, u16);

/// A range of clients by IPv4 address, and the Ethernet header and VLANs of their frames.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TrexGateway {
    first: String,
    last: String,
    vlan: Vec<u16>,
    source: Option<String>,
    destination: String,
}

/// Starts a stateful TRex profile on its ports, which have the numbers 0, 1 and so on; None for
/// unused numbers.
///
/// Clients run on the even ports whose bit in `client_mask` is set, servers on the odd ports.
/// Clients in `off` open no flows until they are switched on.
#[pyfunction]
pub(crate) fn trex_emulate(
    py: Python<'_>,
    profile: &str,
    ports: Vec<Option<TrexPort>>,
    ipv6: bool,
    client_mask: u32,
    off: Vec<Clients>,
    how: EmulationArguments,
) -> PyResult<Emulation> {
    let wrong = |errors: PlanErrors| plan_error(py, &errors);
    let options = StatefulOptions { ipv6, pairs: ports.len().div_ceil(2) as u32 };
    let mut plan = stateful::read(profile, &options).map_err(wrong)?;
    for (place, port) in plan.ports.iter_mut().zip(&ports) {
        place.location = port.as_ref().map(|it| it.interface.clone());
    }
    let port = |place: usize| ports.get(place).and_then(Option::as_ref);
    for template in &mut plan.templates {
        // Flows that servers open belong to the same pair.
        let mask = |it: &Client| client_mask.checked_shr(it.transmit as u32 & !1).unwrap_or(0);
        template.client.take_if(|it| port(it.transmit).is_none() || mask(it) & 1 == 0);
        template.server.take_if(|it| port(it.transmit).is_none());
        if let Some(client) = &mut template.client
            && let Some(port) = port(client.transmit)
        {
            set_next_hop(client, port)?;
        }
    }
    plan.templates.retain(|it| it.client.is_some() || it.server.is_some());
    let networks = client_networks(&plan);
    for (place, port) in plan.ports.iter_mut().zip(&ports) {
        let tunnels = port.as_ref().and_then(|port| port.tunnels.as_ref());
        place.tunnels = tunnels.map(|it| read_tunnels(it, &networks)).transpose()?;
    }
    let off = if off.is_empty() { None } else { Some(client_command(&off, &networks, false)?) };
    Emulation::start(py, plan, PathBuf::new(), &how, true, off)
}

/// Sets the next hop and VLANs of clients from their port and its gateways.
fn set_next_hop(client: &mut Client, port: &TrexPort) -> PyResult<()> {
    client.destination = port.destination.as_deref().map(read_mac).transpose()?;
    let Some(clients) = client.addresses else { return Ok(()) };
    for gateway in &port.gateways {
        client.devices.push(gateway_devices(gateway, clients.first)?);
    }
    if !port.vlan.is_empty() {
        client.devices.push(Devices {
            clients,
            stride: 1,
            count: 1,
            vlan: vlans(&port.vlan)?,
            labels: MplsLabels::default(),
            destination: None,
            source: None,
            next_hop: None,
        });
    }
    Ok(())
}

/// Converts a list of VLAN IDs: none, one, or the outer and the inner one.
fn vlans(vlans: &[u16]) -> PyResult<Option<Vlans>> {
    match *vlans {
        [] => Ok(None),
        [one] => Ok(Some(one.into())),
        [outer, inner] => Ok(Some(Vlans { outer: Some(outer), inner })),
        _ => Err(value_error(format!("{} VLANs: expected at most two", vlans.len()))),
    }
}

/// Returns the devices of a gateway, in the address family of `client`.
///
/// The last 32 bits of the IPv6 addresses are the IPv4 addresses of the gateway's clients.
fn gateway_devices(gateway: &TrexGateway, client: IpAddr) -> PyResult<Devices> {
    let TrexGateway { vlan, source, destination, .. } = gateway;
    let address = |text: &str| {
        text.parse::<Ipv4Addr>()
            .map_err(|_| value_error(format!("{text:?}: expected an IPv4 address")))
    };
    let (first, last) = (address(&gateway.first)?, address(&gateway.last)?);
    let more = last.to_bits().checked_sub(first.to_bits());
    let more = more.ok_or_else(|| {
        value_error(format!("gateway: {first} to {last}: expected an ascending range"))
    })?;
    let first = match client {
        IpAddr::V4(_) => first.into(),
        IpAddr::V6(client) => in_network(client, first.into()),
    };
    Ok(Devices {
        clients: AddressRange { first, count: more.saturating_add(1) },
        stride: 1,
        count: 1,
        vlan: vlans(vlan)?,
        labels: MplsLabels::default(),
        destination: Some(read_mac(destination)?),
        source: source.as_deref().map(read_mac).transpose()?,
        next_hop: None,
    })
}

/// Combines an IPv6 network with an IPv4 address as the last 32 bits. Returns IPv6 addresses
/// unchanged.
fn in_network(network: Ipv6Addr, address: IpAddr) -> IpAddr {
    let IpAddr::V4(address) = address else { return address };
    stateful::in_network(network, address).into()
}

/// Parses tunnels of clients, and adds the same last 32 bits in each IPv6 network.
fn read_tunnels(tunnels: &[Tunnels], networks: &[Ipv6Addr]) -> PyResult<Vec<ClientTunnels>> {
    let mut all = Vec::with_capacity(tunnels.len());
    for (first, last, teid, teid_step, from, to, port) in tunnels {
        let (first, last) = (read_address(first)?, read_address(last)?);
        if first.is_ipv4() != last.is_ipv4() || first > last {
            return Err(value_error(format!(
                "clients {first} to {last}: expected an ascending range"
            )));
        }
        let (from, to) = (read_address(from)?, read_address(to)?);
        if from.is_ipv4() != to.is_ipv4() {
            return Err(value_error(format!("tunnel from {from} to {to}: expected one family")));
        }
        let (teid, teid_step, source_port) = (*teid, *teid_step, NonZeroU16::new(*port));
        let one = ClientTunnels { first, last, teid, teid_step, from, to, source_port };
        if one.teid_last() > u32::MAX.into() {
            return Err(value_error(format!(
                "teid {teid}: with a step of {teid_step}, the TEID of {last} is {}, more than {}",
                one.teid_last(),
                u32::MAX
            )));
        }
        all.push(one);
        all.extend(networks.iter().filter(|_| first.is_ipv4()).map(|network| ClientTunnels {
            first: in_network(*network, first),
            last: in_network(*network, last),
            ..one
        }));
    }
    Ok(all)
}

/// Returns a port whose frames would exceed the MTU with these tunnels.
///
/// A run reserves room for the headers of its initial tunnels, or for IPv6 if it starts without
/// tunnels.
fn port_over_mtu<'a>(ports: &'a [Port], tunnels: &[ClientTunnels]) -> Option<&'a Port> {
    let is_over_ipv6 = |it: &ClientTunnels| it.to.is_ipv6();
    let is_over_ipv4 = |port: &&Port| {
        let begun = port.tunnels.as_deref().unwrap_or_default();
        !begun.is_empty() && !begun.iter().any(is_over_ipv6)
    };
    ports.iter().find(is_over_ipv4).filter(|_| tunnels.iter().any(is_over_ipv6))
}

/// Returns whether a range contains an address.
fn range_contains(range: &AddressRange, address: IpAddr) -> bool {
    let offset = match (range.first, address) {
        (IpAddr::V4(first), IpAddr::V4(it)) => {
            it.to_bits().checked_sub(first.to_bits()).map(u128::from)
        }
        (IpAddr::V6(first), IpAddr::V6(it)) => it.to_bits().checked_sub(first.to_bits()),
        _ => None,
    };
    offset.is_some_and(|offset| offset < range.count.into())
}

fn read_address(text: &str) -> PyResult<IpAddr> {
    text.parse().map_err(|_| value_error(format!("{text:?}: expected an IP address")))
}

fn read_mac(text: &str) -> PyResult<MacAddress> {
    text.parse().map_err(|_| value_error(format!("{text:?}: expected a MAC address")))
}

fn read_factor(text: &str) -> PyResult<Decimal> {
    match Multiplier::parse(text) {
        Some(Multiplier::Factor(factor)) => Ok(factor),
        _ => Err(factor_error(text)),
    }
}

fn factor_error(text: &str) -> PyErr {
    value_error(format!("factor {text:?}: expected a number greater than 0, such as 2 or 0.5"))
}
