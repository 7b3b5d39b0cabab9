//! Configurations of clients: by which device, in which VLAN their frames go.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::Value;

use super::pools::read_address;
use crate::document::error::{PlanError, PlanErrors, Problems};
use crate::document::place::{Fields, Place};
use crate::emulation::{
    AddressRange, Devices, EmulationPlan, Guest, MplsLabels, NextHop, Vlans, read_mac,
};

const CONFIGURATION: [&str; 2] = ["vlan", "groups"];
const GROUP: [&str; 5] = ["ip_start", "ip_end", "initiator", "responder", "count"];
const SIDE: [&str; 5] = ["vlan", "src_mac", "dst_mac", "next_hop", "src_ip"];

/// Whether a document is such a configuration, or means to be one.
pub fn is_configuration(document: &Value) -> bool {
    let group = document.get("groups").and_then(|groups| groups.get(0));
    group.is_some_and(|group| group.get("initiator").is_some())
}

/// Lets a plan's clients be behind the devices that a file of TRex's `--client-cfg` tells of, in
/// YAML. Of what it says of responders only `src_ip` is heard, which servers' ports answer for: they
/// answer to where a frame came from, as in TRex.
///
/// # Errors
/// All that is wrong with it, each with its path; clients that it does not tell of.
pub fn configure(plan: &mut EmulationPlan, text: &str) -> Result<(), PlanErrors> {
    let document = crate::document::read(text)?;
    let root = Place::root(&document);
    let fields = root.fields(&CONFIGURATION)?;
    let has_vlans = fields.get("vlan").map_or(Ok(false), |it| it.boolean())?;
    let mut problems = Problems::default();
    let mut groups = Vec::new();
    for group in fields.need("groups", "a list of groups")?.items("groups")? {
        groups.extend(problems.take(read_group(&group, has_vlans)));
    }
    let devices: Vec<_> = groups.iter().map(|group| group.devices).collect();
    for template in &mut plan.templates {
        let Some(client) = &mut template.client else { continue };
        let Some(addresses) = client.addresses else { continue };
        // Flows that a server begins leave the servers' port, which is behind no device.
        if client.transmit % 2 == 1 {
            continue;
        }
        if !client.devices.is_empty() {
            let message = format!("template {} has VLANs of its own, expected none", template.name);
            problems.take::<()>(Err(root.says(message)));
        }
        client.devices.clone_from(&devices);
        let ports = [Some(client.transmit), template.server.as_ref().map(|it| it.transmit)];
        let overlap = |group: &&Group| {
            let theirs = group.devices.clients;
            theirs.place_of(addresses.first).or(addresses.place_of(theirs.first)).is_some()
        };
        for (port, answer) in
            groups.iter().filter(overlap).flat_map(|group| ports.into_iter().zip(group.answers))
        {
            let (Some(port), Some((vlan, address))) = (port, answer) else { continue };
            let guest = Guest { port, vlan, address };
            if !plan.guests.contains(&guest) {
                plan.guests.push(guest);
            }
        }
        if let Some(alone) = first_without(addresses, &devices) {
            let message = format!(
                "no group of the clients' configuration has {alone}, which template {} uses",
                template.name
            );
            problems.take::<()>(Err(root.says(message)));
        }
    }
    problems.finish(())
}

/// Clients, and what their ports answer for.
struct Group {
    devices: Devices,
    /// Of the clients' port and of the servers': an address, and its VLAN.
    answers: [Option<(Option<Vlans>, IpAddr)>; 2],
}

fn read_group(place: &Place<'_>, has_vlans: bool) -> Result<Group, PlanError> {
    let fields = place.fields(&GROUP)?;
    let first = read_address(&fields.need("ip_start", "an IPv4 address")?)?;
    let last = fields.need("ip_end", "an IPv4 address")?;
    let more = read_address(&last)?.to_bits().checked_sub(first.to_bits());
    let more = more.ok_or_else(|| last.wrong(format!("{first} or an address behind it")))?;
    let count = fields.get("count").map_or(Ok(1), |it| it.integer(1, u32::MAX.into()))?;
    let address = |side: &Fields<'_>| -> Result<Option<IpAddr>, PlanError> {
        Ok(side.get("src_ip").map(|it| read_address(&it)).transpose()?.map(IpAddr::from))
    };
    let initiator = fields.need("initiator", "fields")?.fields(&SIDE)?;
    let vlan = initiator.get("vlan").map(|it| it.integer(0, 4_095)).transpose()?;
    if vlan.is_some() != has_vlans {
        let expected = if has_vlans { "one, as vlan: true says" } else { "none" };
        return Err(place.error("another vlan", expected));
    }
    let mac = |name: &str| initiator.get(name).map(|it| read_mac(&it)).transpose();
    let next_hop = match initiator.get("next_hop") {
        None => None,
        Some(place) if initiator.get("dst_mac").or(initiator.get("src_mac")).is_some() => {
            return Err(place.error("dst_mac or src_mac as well", "one of them, as in TRex"));
        }
        Some(place) => {
            Some(NextHop { first: read_address(&place)?.into(), from: address(&initiator)? })
        }
    };
    let devices = Devices {
        clients: AddressRange { first: first.into(), count: more.saturating_add(1) },
        every: 1,
        count: count as u32,
        vlan: vlan.map(|it| Vlans::from(it as u16)),
        labels: MplsLabels::default(),
        destination: mac("dst_mac")?,
        source: mac("src_mac")?,
        next_hop,
    };
    let mut answers = [address(&initiator)?.map(|it| (devices.vlan, it)), None];
    if let Some(responder) = fields.get("responder") {
        let responder = responder.fields(&SIDE)?;
        let vlan = responder.get("vlan").map(|it| it.integer(0, 4_095)).transpose()?;
        answers[1] = address(&responder)?.map(|it| (vlan.map(|it| Vlans::from(it as u16)), it));
    }
    Ok(Group { devices, answers })
}

/// The first of these clients that is behind no device.
fn first_without(clients: AddressRange, devices: &[Devices]) -> Option<IpAddr> {
    let IpAddr::V4(first) = clients.first else { return Some(clients.first) };
    let mut next = u64::from(first.to_bits());
    let end = next + u64::from(clients.count);
    while next < end {
        let address = Ipv4Addr::from_bits(next as u32).into();
        let group = devices.iter().find_map(|it| Some((it, it.clients.place_of(address)?)));
        let Some((group, place)) = group else { return Some(address) };
        next += u64::from(group.clients.count - place);
    }
    None
}
