//! Destination Ethernet addresses of the clients' frames, and ARP responders of the ports.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wirestorm_base::port::PortError;
use wirestorm_plan::emulation::{EmulationPlan, ProbeProtocol};
use wirestorm_plan::traffic::Port;
use wirestorm_stack::endpoint::LinkHeader;
use wirestorm_wire::packet::MacAddress;
use wirestorm_wire::prefix::Prefix;

use super::destinations::{ClientDestinations, NextHopTable};
use super::next_hop::Destinations;
use super::routers::{RouterResolver, all_have_devices, client_addresses};
use super::tunnels;
use crate::emulation::error::EmulationError;
use crate::emulation::observe::latency::LatencyProbe;
use crate::emulation::observe::probes::UdpProbes;
use crate::responder::{
    HostError, PacketSocketHost, ProbeSchedule, ProbeTarget, Prober, REQUESTS_MAX,
    ResponderThreads, UnansweredRequest,
};

/// Maximum number of addresses of one range that a port answers for. Neighbours reach further
/// addresses only through a route.
const ANSWERED_MAX: u32 = 1 << 16;

/// Maximum number of requests to a neighbour, one second apart. Links and switches take several
/// seconds to come up.
const START_REQUESTS_MAX: u32 = 10;

/// Resolved neighbours of a run, and the hosts that its ports emulate.
pub(in crate::emulation) struct Neighbours {
    /// Clients of each template and the destination of their frames; `None` without clients.
    pub(in crate::emulation) clients: Vec<Option<ClientDestinations>>,
    /// Latency probes of the plan.
    pub(in crate::emulation) probes: Vec<LatencyProbe>,
    pub(in crate::emulation) probe_times: Arc<ProbeSchedule>,
    /// UDP probe handler of each port of the plan.
    pub(in crate::emulation) echoes: Vec<UdpProbes>,
    /// Next hops of each port of the plan, and changes of its neighbours' Ethernet addresses.
    pub(in crate::emulation) reached_by: Vec<NextHopTable>,
    /// ARP responders, not started yet.
    pub(in crate::emulation) hosts: Responders,
    /// Notes for the result.
    pub(in crate::emulation) notes: Vec<String>,
}

/// ARP responders, each with its latency probers. They answer for the addresses of the ports, and
/// for addresses of clients and servers in the ports' networks.
pub(in crate::emulation) struct Responders(Vec<(PacketSocketHost, Vec<Prober>)>);

impl Responders {
    /// Starts the responders, which stop when the returned value is dropped. Call it once all ports
    /// receive: a neighbour sends its queued packets as soon as it has an answer.
    pub(in crate::emulation) fn begin(mut self) -> Result<ResponderThreads, EmulationError> {
        for (host, _) in self.0.iter_mut().filter(|(host, _)| !host.is_announced()) {
            match host.announce() {
                // Neighbours resolve the addresses when the interface is up again.
                Ok(()) | Err(PortError::Down { .. }) => {}
                Err(error) => return Err(HostError::from(error).into()),
            }
        }
        ResponderThreads::start_with_probers(self.0).map_err(EmulationError::Thread)
    }
}

impl Neighbours {
    /// Resolves the destinations of the clients' frames. `interfaces` has the interface name and
    /// the Ethernet address of each used port. `on_retry` receives a message for each neighbour
    /// that has not answered [`REQUESTS_MAX`] requests. Setting `stop` ends the retries.
    pub(in crate::emulation) fn find(
        plan: &EmulationPlan,
        interfaces: &[Option<(String, MacAddress)>],
        stop: &AtomicBool,
        mut on_retry: impl FnMut(String),
    ) -> Result<Self, EmulationError> {
        let mut keep_trying = |request: &UnansweredRequest<'_>| {
            if request.tries == REQUESTS_MAX {
                on_retry(retry_message(request));
            }
            request.tries < START_REQUESTS_MAX && !stop.load(Ordering::Relaxed)
        };
        let mut hosts: Vec<Option<PacketSocketHost>> = Vec::new();
        for (index, (port, interface)) in plan.ports.iter().zip(interfaces).enumerate() {
            hosts.push(match interface {
                Some((interface, _)) if !port.addresses.is_empty() => {
                    let addresses = answered_addresses(plan, index, port);
                    Some(PacketSocketHost::open(interface, addresses, port.gateways.clone())?)
                }
                _ => None,
            });
        }
        // Ports do not answer requests yet, so they learn each other from announcements. A single
        // port does not announce itself before it receives.
        if hosts.iter().flatten().count() > 1 {
            for host in hosts.iter_mut().flatten() {
                host.announce().map_err(HostError::from)?;
            }
        }
        let mut next_hops = RouterResolver::open(plan, interfaces)?;
        let mut reached_by: Vec<NextHopTable> =
            plan.ports.iter().map(|_| NextHopTable::default()).collect();
        let mut clients = Vec::new();
        let mut notes = Vec::new();
        for template in &plan.templates {
            let Some(client) = &template.client else {
                clients.push(None);
                continue;
            };
            let port = &plan.ports[client.transmit];
            let Some(addresses) = client_addresses(plan, client) else {
                clients.push(None);
                continue;
            };
            let devices = next_hops.resolve(plan, client, addresses, &mut keep_trying)?;
            let needs_no_other = all_have_devices(&client.devices, addresses);
            let known = devices.first().and_then(|it| it.destination).filter(|_| needs_no_other);
            let server = template.server.as_ref().map(|server| server.transmit);
            let facing = server.filter(|server| *server != client.transmit);
            let by = &mut reached_by[client.transmit];
            let mut next_hop = LinkHeader::FIXED;
            let mut servers = Vec::new();
            let destination = match (&mut hosts[client.transmit], client.destination.or(known)) {
                (_, Some(destination)) => destination,
                (Some(host), None) => {
                    let end = tunnels::far_end(port);
                    let destinations = match end.or(server.map(|_| client.servers.first)) {
                        // All frames go to the far end of the tunnel, or to the run's server port.
                        Some(one) => Destinations::through_one(host, one, by, &mut keep_trying)?,
                        None => {
                            Destinations::per_server(host, client.servers, by, &mut keep_trying)?
                        }
                    };
                    notes
                        .extend(destinations.note.map(|note| format!("{}: {note}", template.path)));
                    (next_hop, servers) = (destinations.next_hop, destinations.servers);
                    destinations.destination
                }
                // Ports without addresses are directly connected to the other side's port.
                (None, None) => match facing.and_then(|port| interfaces[port].as_ref()) {
                    Some((_, mac)) => *mac,
                    None => {
                        return Err(EmulationError::NoDestination {
                            path: format!("{}.client", template.path),
                            port: port.name.clone(),
                            server: client.servers.first,
                        });
                    }
                },
            };
            let numbered = devices.into_iter().map(|it| {
                let number =
                    it.next_hop.and_then(|hop| Some(by.number(it.vlan, hop.first, hop.from?)));
                (it, number.unwrap_or(LinkHeader::FIXED))
            });
            let devices = numbered.collect();
            clients.push(Some(ClientDestinations {
                addresses,
                destination,
                next_hop,
                devices,
                servers,
            }));
        }
        let probe_times = Arc::new(ProbeSchedule::default());
        let mut probes = Vec::new();
        let mut echoes: Vec<UdpProbes> = hosts.iter().map(|_| UdpProbes::default()).collect();
        let mut probers: Vec<Vec<Prober>> = hosts.iter().map(|_| Vec::new()).collect();
        for probe in &plan.latency {
            // The plan accepts probes only from used ports with addresses.
            let Some(host) = &mut hosts[probe.from] else { continue };
            let route = host.resolve_while(probe.to, &mut keep_trying)?;
            let port = match probe.protocol {
                ProbeProtocol::Icmp => None,
                ProbeProtocol::Udp { port } => Some(port),
            };
            let target = ProbeTarget { target: probe.to, port, rate: probe.rate };
            let prober = Prober::new(host, route, &target, &probe_times);
            let name = plan.ports[probe.from].name.clone();
            probes.push(LatencyProbe { port: name, target, record: prober.record() });
            if let (Some(receiver), Some(port)) = (prober.udp_reply_receiver(), port) {
                echoes[probe.from].add_reply_receiver(receiver);
                for place in plan.echo_ports(probe) {
                    echoes[place].echo_at(SocketAddr::new(probe.to, port));
                }
            }
            probers[probe.from].push(prober);
        }
        let hosts = hosts.into_iter().zip(probers).zip(&reached_by);
        let hosts = hosts.filter_map(|((host, probers), by)| {
            let mut host = host?;
            by.watch(&mut host);
            // Servers' answers go through gateways too, so probe these as well.
            let gateways = host.host().gateways.clone();
            for gateway in gateways {
                if let Some(route) = host.host().route(gateway) {
                    host.watch(0, route.source, gateway);
                }
            }
            Some((host, probers))
        });
        let others = next_hops.into_responders(plan).into_iter().map(|(port, mut host)| {
            reached_by[port].watch(&mut host);
            (host, Vec::new())
        });
        let hosts = Responders(hosts.chain(others).collect());
        Ok(Self { clients, probes, probe_times, echoes, reached_by, hosts, notes })
    }
}

/// Returns the message about a neighbour that does not answer.
fn retry_message(request: &UnansweredRequest<'_>) -> String {
    let UnansweredRequest { interface, neighbour, protocol, .. } = request;
    let left = START_REQUESTS_MAX - REQUESTS_MAX;
    format!("{interface}: {neighbour} does not answer {protocol}; retrying for {left} s more")
}

/// Returns the addresses that a port answers for. These are its own addresses, and addresses of its
/// clients, servers and tunnel endpoints in its networks.
fn answered_addresses(plan: &EmulationPlan, index: usize, port: &Port) -> Vec<Prefix> {
    let mut addresses = port.addresses.clone();
    let mut seen = BTreeSet::new();
    let mut add = |address: IpAddr| {
        let network = port.addresses.iter().find(|prefix| prefix.contains(address));
        if let Some(network) = network
            && network.address != address
            && seen.insert(address)
        {
            addresses.push(Prefix { address, length: network.length });
        }
    };
    tunnels::local_endpoints(plan, index, port).into_iter().for_each(&mut add);
    for template in &plan.templates {
        let (client, server) = (template.client.as_ref(), template.server.as_ref());
        let lives_here = client.filter(|it| it.transmit == index);
        let serves_here = server.filter(|it| it.transmit == index);
        // A device between both sides may translate the addresses that clients connect to (NAT).
        let known = client.filter(|_| serves_here.is_some()).map(|it| it.servers);
        let ranges = [
            lives_here.and_then(|it| it.addresses),
            known,
            serves_here.and_then(|it| it.addresses),
        ];
        for range in ranges.into_iter().flatten() {
            (0..range.count.min(ANSWERED_MAX)).for_each(|place| add(range.at(place.into())));
        }
    }
    addresses
}
