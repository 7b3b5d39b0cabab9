//! Compiles the part of a plan that one endpoint runs.

use wirestorm_model::address_range::AddressRange;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::program::Step;
use wirestorm_plan::emulation::{self, EmulationPlan};
use wirestorm_stack::endpoint::{
    ClientLinks, Devices, LinkHeader, Listen, MatchByte, Role, Template, Transport, Tuples,
};
use wirestorm_stack::program::{Buffers, Program};
use wirestorm_wire::packet::{MacAddress, ethertype};

use super::program::{self, CompiledProgram};
use super::sessions::TemplateSessions;
use crate::emulation::error::EmulationError;
use crate::emulation::observe::findings::ProgramNames;
use crate::emulation::observe::owner::TemplateOwner;
use crate::emulation::resolve::destinations::ClientDestinations;

/// Workload of the endpoint of one port.
pub(in crate::emulation) struct CompiledEndpoint {
    pub(in crate::emulation) templates: Vec<Template>,
    /// Owner of each template, by index.
    pub(in crate::emulation) owners: Vec<TemplateOwner>,
    /// Indices of the templates that programs can start, for each group of the plan.
    pub(in crate::emulation) groups: Vec<Vec<usize>>,
    pub(in crate::emulation) buffers: Buffers,
    /// Whether the port has clients.
    pub(in crate::emulation) connects: bool,
    /// Packets that the endpoint does not answer.
    pub(in crate::emulation) blackhole: Blackhole,
    /// Destination Ethernet addresses of the clients that connect to the port's servers, as ranges
    /// of first address and count. Without a device in between, such frames are for this port.
    pub(in crate::emulation) client_destinations: Vec<(MacAddress, u32)>,
    /// Multicast addresses of clients or servers of the plan, as in some TRex profiles.
    pub(in crate::emulation) multicast: Vec<AddressRange>,
}

/// Returns the ranges of clients and servers that start at a multicast address.
fn grouped(plan: &EmulationPlan, clients: &[Option<ClientDestinations>]) -> Vec<AddressRange> {
    let clients = clients.iter().flatten().map(|it| it.addresses);
    let targets = plan.templates.iter().filter_map(|it| it.client.as_ref());
    let served = plan.templates.iter().filter_map(|it| it.server.as_ref()?.addresses);
    let ranges = clients.chain(targets.map(|it| it.servers)).chain(served);
    ranges.filter(|range| range.first.is_multicast()).collect()
}

/// Compiles the part of a plan that one port runs. `port_mac` is the Ethernet address of the port.
/// `clients` has the resolved clients of each template, and `sessions` its sessions.
///
/// # Errors
/// Fails if a program has too many instructions.
pub(in crate::emulation) fn compiled_endpoint(
    plan: &EmulationPlan,
    port: usize,
    port_mac: MacAddress,
    clients: &[Option<ClientDestinations>],
    sessions: &[TemplateSessions],
) -> Result<CompiledEndpoint, EmulationError> {
    let mut endpoint = CompiledEndpoint {
        templates: Vec::new(),
        owners: Vec::new(),
        groups: Vec::new(),
        buffers: Buffers::default(),
        connects: false,
        blackhole: plan.ports[port].blackhole,
        client_destinations: Vec::new(),
        multicast: grouped(plan, clients),
    };
    let groups = plan.groups();
    for ((template, client), sessions) in plan.templates.iter().zip(clients).zip(sessions) {
        let programs = [
            template.client.as_ref().map(|it| &it.program),
            template.server.as_ref().map(|it| &it.program),
        ];
        let [client_resets, server_resets] = programs.map(|it| it.is_some_and(|it| resets(it)));
        let mut add = |(steps, stamp): (&[Step], Option<u32>),
                       side,
                       tcp: &emulation::Tcp,
                       ip: emulation::Ip,
                       role| {
            let path = || format!("{}.{side}.program", template.path);
            // A client fails without an answer. A server's peer may close between messages.
            let is_client = side == "client";
            let (program, names) = program(steps, &groups, is_client, &mut endpoint.buffers, path)?;
            let program = match stamp {
                Some(source) => program.stamped(source),
                None => program,
            };
            let transport = match template.transport {
                emulation::Transport::Tcp => Transport::Tcp(tcp.settings(template.http2.is_some())),
                emulation::Transport::Udp => Transport::Udp,
            };
            let ip = ip.settings();
            let (sessions, meets_resets) = match side {
                "client" => (sessions.client.clone(), server_resets),
                _ => (sessions.server.clone(), client_resets),
            };
            let (has_tls, has_http2) = (template.tls.is_some(), template.http2.is_some());
            endpoint.templates.push(Template {
                program,
                transport,
                ip,
                sessions,
                expects_resets: meets_resets,
                role,
            });
            let (name, group) = (template.name.clone(), template.group.clone());
            let has_http1 = names.takes_http && !has_http2;
            endpoint.owners.push(TemplateOwner {
                name,
                group,
                side,
                has_tls,
                has_http1,
                has_http2,
                names,
            });
            Ok::<_, EmulationError>(())
        };
        if let Some(config) = template.client.as_ref().filter(|client| client.transmit == port)
            && let Some(reached) = client
        {
            // Never `None`: the header is an untagged Ethernet header.
            let Some(role) = client_role(config, reached, port_mac) else { continue };
            add((&config.program, config.stamp), "client", &config.tcp, config.ip, role)?;
            endpoint.connects = true;
        }
        if let Some(config) = template.server.as_ref().filter(|server| server.transmit == port) {
            let role = match config.listen {
                Some(port) => Role::Server { listen: listen(config, port) },
                None => Role::Accepted,
            };
            add((&config.program, config.stamp), "server", &config.tcp, config.ip, role)?;
            if let Some(reached) = client {
                let others = reached.devices.iter();
                let others = others.filter_map(|(it, _)| Some((it.destination?, it.count)));
                endpoint.client_destinations.push((reached.destination, 1));
                endpoint.client_destinations.extend(others);
            }
        }
    }
    let of = |group: &&str| {
        let owners = endpoint.owners.iter().zip(&endpoint.templates).enumerate();
        let can_start = |template: &Template| !matches!(template.role, Role::Server { .. });
        let members = owners.filter(|(_, (it, template))| {
            can_start(template) && it.group.as_deref() == Some(*group)
        });
        members.map(|(place, _)| place).collect()
    };
    endpoint.groups = groups.iter().map(of).collect();
    Ok(endpoint)
}

/// Compiles the client side of a template. `port_mac` is the Ethernet address of the port. Returns
/// `None` only if the link header has an invalid length.
fn client_role(
    config: &emulation::Client,
    reached: &ClientDestinations,
    port_mac: MacAddress,
) -> Option<Role> {
    let ClientDestinations { addresses, destination, next_hop, devices: behind, servers } = reached;
    let tuples = Tuples {
        clients: *addresses,
        order: config.order,
        servers: config.servers,
        pairing: config.pairing,
        server_port: config.server_port,
        client_ports: config.ports.clone(),
        consecutive_flows: config.consecutive_flows,
        reuse_after: config.reuse_after,
    };
    let kind = if addresses.first.is_ipv4() { ethertype::IPV4 } else { ethertype::IPV6 };
    let header = [&destination.0[..], &port_mac.0, &kind.to_be_bytes()].concat();
    let usual = LinkHeader::new(&header)?.to_next_hop(*next_hop);
    let by = |(it, number): &(emulation::Devices, u16)| {
        let mut devices = devices(it, destination, port_mac, kind)?;
        // A device without its own destination uses the default next hop.
        let number = if it.destination.is_some() { *number } else { *next_hop };
        devices.link = devices.link.to_next_hop(number);
        Some(devices)
    };
    let devices = behind.iter().filter_map(by).collect();
    let link = ClientLinks { default_link: usual, devices, servers: servers.clone() };
    let (load, ramp, limit) = (config.load, config.ramp_up, config.limit);
    Some(Role::Client { tuples, link, load, ramp, limit })
}

/// Compiles the link header of devices. `destination` is the default destination, and `kind` the
/// EtherType of the payload.
fn devices(
    config: &emulation::Devices,
    destination: &MacAddress,
    port_mac: MacAddress,
    kind: u16,
) -> Option<Devices> {
    let mut header = config.destination.unwrap_or(*destination).0.to_vec();
    header.extend(config.source.unwrap_or(port_mac).0);
    header.extend(config.vlan.map_or_else(Vec::new, |vlans| vlans.tags()));
    // MPLS replaces the EtherType: labels have no field for the payload's protocol.
    let labels = config.labels.stack();
    let kind = if labels.is_empty() { kind } else { ethertype::MPLS };
    header.extend(kind.to_be_bytes());
    header.extend(labels);
    Some(Devices {
        clients: config.clients,
        stride: config.stride,
        count: config.count,
        link: LinkHeader::new(&header)?,
        destinations_count: config.destination.is_some(),
        sources_count: config.source.is_some(),
    })
}

/// Compiles the listening address, port and first bytes of a server.
fn listen(server: &emulation::Server, port: u16) -> Listen {
    let bytes = server.first_bytes.iter().flat_map(|it| &it.0);
    let byte =
        |&(offset, mask, value): &(u8, u8, u8)| MatchByte { offset: offset.into(), mask, value };
    Listen { port, addresses: server.addresses, first_bytes: bytes.map(byte).collect() }
}

/// Whether steps may reset a connection.
fn resets(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Reset => true,
        Step::Repeat { steps, .. } => resets(steps),
        _ => false,
    })
}

/// Compiles a program and the data for its reports. `path` returns its path in the plan.
fn program(
    steps: &[Step],
    groups: &[&str],
    awaits: bool,
    buffers: &mut Buffers,
    path: impl Fn() -> String,
) -> Result<(Program, ProgramNames), EmulationError> {
    let CompiledProgram { instructions, contents, names } =
        program::compile(steps, groups, awaits, buffers);
    let found = instructions.len();
    let most = Program::LENGTH_MAX;
    let program = Program::with_contents(instructions, contents);
    let program = program.ok_or_else(|| EmulationError::TooLong { path: path(), found, most })?;
    Ok((program, names))
}
