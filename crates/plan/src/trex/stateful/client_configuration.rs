//! Client configurations: the devices and VLANs that clients are behind.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;

use wirestorm_model::address_range::AddressRange;

use super::pools::{in_network, read_address};
use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::{
    AnsweredAddress, Devices, EmulationPlan, MplsLabels, NextHop, Vlans, read_mac,
};

const CONFIGURATION: [&str; 2] = ["vlan", "groups"];
const GROUP: [&str; 5] = ["ip_start", "ip_end", "initiator", "responder", "count"];
const SIDE: [&str; 7] =
    ["vlan", "src_mac", "dst_mac", "next_hop", "ipv6_next_hop", "src_ip", "src_ipv6"];

/// Returns whether a document looks like a client configuration.
pub fn looks_like_client_configuration(document: &Value) -> bool {
    let group = document.get("groups").and_then(|groups| groups.get(0));
    group.is_some_and(|group| group.get("initiator").is_some())
}

/// Puts a plan's clients behind the devices of a YAML file for TRex's `--client-cfg`. Of responders
/// it uses only `src_ip` and `src_ipv6`, for which the servers' ports answer. As in TRex, servers
/// reply to the source of each frame. The last 32 bits of an IPv6 client's address select its
/// group.
///
/// # Errors
/// Returns all errors of the file, each with its path, and an error for each template with a client
/// outside all groups.
pub fn apply_client_configuration(plan: &mut EmulationPlan, text: &str) -> Result<(), PlanErrors> {
    let document = crate::document::read(text)?;
    let root = ValueAt::root(&document);
    let fields = root.fields(&CONFIGURATION)?;
    let has_vlans = fields.get("vlan").map_or(Ok(false), |it| it.boolean())?;
    let mut problems = ErrorCollector::default();
    let mut groups = Vec::new();
    for group in fields.required("groups", "a list of groups")?.items("groups")? {
        groups.extend(problems.take(read_group(&group, has_vlans)));
    }
    for template in &mut plan.templates {
        let Some(client) = &mut template.client else { continue };
        let Some(addresses) = client.addresses else { continue };
        // Flows that a server initiates leave the servers' port, which is behind no device.
        if client.transmit % 2 == 1 {
            continue;
        }
        if !client.devices.is_empty() {
            let message = format!("template {} already has VLANs, expected none", template.name);
            problems.take::<()>(Err(root.message_error(message)));
        }
        let devices = groups.iter().map(|group| devices_for_family(group.devices, addresses.first));
        client.devices = devices.collect();
        let ports = [Some(client.transmit), template.server.as_ref().map(|it| it.transmit)];
        let overlap = |(_, devices): &(&Group, &Devices)| {
            let theirs = devices.clients;
            theirs.offset_of(addresses.first).or(addresses.offset_of(theirs.first)).is_some()
        };
        let with_clients = groups.iter().zip(&client.devices).filter(overlap);
        for (side, vlan, address) in with_clients.flat_map(|(group, _)| &group.answers) {
            let Some(port) = ports[*side] else { continue };
            let guest = AnsweredAddress { port, vlan: *vlan, address: *address };
            if !plan.answered_addresses.contains(&guest) {
                plan.answered_addresses.push(guest);
            }
        }
        if let Some(alone) = first_unassigned(addresses, &client.devices) {
            let message = format!(
                "no group of the clients' configuration has {alone}, which template {} uses",
                template.name
            );
            problems.take::<()>(Err(root.message_error(message)));
        }
    }
    problems.finish(())
}

/// A group of clients, and the addresses that ports answer for.
struct Group {
    devices: Devices,
    /// Addresses with their side and VLAN. Side 0 is the clients' port, 1 the servers'.
    answers: Vec<(usize, Option<Vlans>, IpAddr)>,
}

/// Converts devices to the client's address family, as TRex does: the last 32 bits of an IPv6
/// address are the IPv4 address.
fn devices_for_family(devices: Devices, client: IpAddr) -> Devices {
    let (IpAddr::V6(client), IpAddr::V4(first)) = (client, devices.clients.first) else {
        return devices;
    };
    let first = in_network(client, first).into();
    Devices { clients: AddressRange { first, ..devices.clients }, ..devices }
}

fn read_group(place: &ValueAt<'_>, has_vlans: bool) -> Result<Group, PlanError> {
    let fields = place.fields(&GROUP)?;
    let first = read_address(&fields.required("ip_start", "an IPv4 address")?)?;
    let last = fields.required("ip_end", "an IPv4 address")?;
    let more = read_address(&last)?.to_bits().checked_sub(first.to_bits());
    let more = more.ok_or_else(|| last.unexpected(format!("{first} or a later address")))?;
    let count = fields.get("count").map_or(Ok(1), |it| it.integer(1, u32::MAX.into()))?;
    let initiator = fields.required("initiator", "fields")?.fields(&SIDE)?;
    let vlan = initiator.get("vlan").map(|it| it.integer(0, 4_095)).transpose()?;
    if vlan.is_some() != has_vlans {
        let expected = if has_vlans { "one, because of vlan: true" } else { "none" };
        return Err(place.error("another vlan", expected));
    }
    let mac = |name: &str| initiator.get(name).map(|it| read_mac(&it)).transpose();
    let next_hop = read_next_hop(&initiator)?;
    let devices = Devices {
        clients: AddressRange { first: first.into(), count: more.saturating_add(1) },
        stride: 1,
        count: count as u32,
        vlan: vlan.map(|it| Vlans::from(it as u16)),
        labels: MplsLabels::default(),
        destination: mac("dst_mac")?,
        source: mac("src_mac")?,
        next_hop,
    };
    let mut answers: Vec<_> =
        client_addresses(&initiator)?.into_iter().map(|it| (0, devices.vlan, it)).collect();
    if let Some(responder) = fields.get("responder") {
        let responder = responder.fields(&SIDE)?;
        let vlan = responder.get("vlan").map(|it| it.integer(0, 4_095)).transpose()?;
        let vlan = vlan.map(|it| Vlans::from(it as u16));
        answers.extend(client_addresses(&responder)?.into_iter().map(|it| (1, vlan, it)));
    }
    Ok(Group { devices, answers })
}

/// Returns the addresses that a side answers for and resolves from.
fn client_addresses(side: &Fields<'_>) -> Result<Vec<IpAddr>, PlanError> {
    let ipv4 = side.get("src_ip").map(|it| read_address(&it)).transpose()?;
    let ipv6 = side.get("src_ipv6").map(|it| read_ipv6(&it)).transpose()?;
    Ok(ipv4.map(IpAddr::from).into_iter().chain(ipv6.map(IpAddr::from)).collect())
}

/// Reads the clients' router. Frames of both families go to its resolved Ethernet address.
fn read_next_hop(initiator: &Fields<'_>) -> Result<Option<NextHop>, PlanError> {
    let (place, first) = match (initiator.get("next_hop"), initiator.get("ipv6_next_hop")) {
        (None, None) => return Ok(None),
        (Some(_), Some(place)) => {
            return Err(place.error("ipv6_next_hop beside next_hop", "one of them, as in TRex"));
        }
        (Some(place), None) => {
            let first = read_address(&place)?.into();
            (place, first)
        }
        (None, Some(place)) => {
            let first = read_ipv6(&place)?.into();
            (place, first)
        }
    };
    if initiator.get("dst_mac").or(initiator.get("src_mac")).is_some() {
        return Err(place.error("dst_mac or src_mac as well", "one of them, as in TRex"));
    }
    let is_ipv4 = IpAddr::is_ipv4(&first);
    let from = client_addresses(initiator)?.into_iter().find(|it| it.is_ipv4() == is_ipv4);
    Ok(Some(NextHop { first, from }))
}

fn read_ipv6(place: &ValueAt<'_>) -> Result<Ipv6Addr, PlanError> {
    let text = place.text("an IPv6 address")?;
    text.parse().map_err(|_| place.unexpected("an IPv6 address"))
}

/// Returns the first client that is behind no device.
fn first_unassigned(clients: AddressRange, devices: &[Devices]) -> Option<IpAddr> {
    let mut next = clients;
    while next.count > 0 {
        let place = |it: &Devices| Some(it.clients.count - it.clients.offset_of(next.first)?);
        let Some(together) = devices.iter().find_map(place) else { return Some(next.first) };
        next = next.skip(together);
    }
    None
}
