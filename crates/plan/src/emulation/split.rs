//! Splits a template with several conversations into one template each. They share its load, its
//! limit and its servers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirestorm_base::rate::Rate;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::Load;

use super::dialogue::Dialogue;
use super::server_selection;
use super::types::{Template, Transport};
use crate::document::error::PlanError;
use crate::document::value_at::ValueAt;

/// Gives servers at the same port a part each of the addresses that the clients connect to. If
/// there are too few addresses or no clients, first bytes select the server. `dialogues`: the
/// dialogue of each template.
pub(super) fn split_servers(
    place: &ValueAt<'_>,
    templates: &mut [Template],
    dialogues: &[Dialogue],
) -> Result<(), PlanError> {
    let key = |template: &Template| {
        let server = template.server.as_ref()?;
        let is_open = server.addresses.is_none() && server.first_bytes.is_none();
        server.listen.filter(|_| is_open).map(|listen| (template.transport, listen))
    };
    let keys: Vec<_> = templates.iter().map(key).collect();
    let mut ports: Vec<_> = keys.iter().flatten().copied().collect();
    ports.sort_by_key(|(transport, listen)| (*transport == Transport::Udp, *listen));
    ports.dedup();
    for port in ports {
        let parts: Vec<_> = (0..keys.len()).filter(|index| keys[*index] == Some(port)).collect();
        let count = parts.len() as u32;
        if count == 1 {
            continue;
        }
        let servers = templates[parts[0]].client.as_ref().map(|client| client.servers);
        if let Some(all) = servers.filter(|all| all.count >= count) {
            for (part, index) in (0..).zip(parts) {
                assign_servers(&mut templates[index], subrange(all, part, count));
            }
            continue;
        }
        let begins = parts
            .iter()
            .map(|&it| server_selection::first_data(&dialogues[it].client, &templates[it]));
        let first_bytes_of_each = begins
            .collect::<Option<Vec<_>>>()
            .and_then(|it| server_selection::select_first_bytes(&it));
        let Some(selected) = first_bytes_of_each else {
            return Err(too_few_servers(place, port.1, count, servers));
        };
        for (index, first_bytes) in parts.into_iter().zip(selected) {
            if let Some(server) = &mut templates[index].server {
                server.first_bytes = Some(first_bytes);
            }
        }
    }
    Ok(())
}

/// Restricts both sides of a template to some of the servers.
fn assign_servers(template: &mut Template, range: AddressRange) {
    if let (Some(client), Some(server)) = (&mut template.client, &mut template.server) {
        client.servers = range;
        server.addresses = Some(range);
    }
}

fn too_few_servers(
    place: &ValueAt<'_>,
    port: u16,
    count: u32,
    servers: Option<AddressRange>,
) -> PlanError {
    const WHY: &str = "the first bytes of their clients do not distinguish them";
    place.message_error(match servers {
        None => format!(
            "{count} conversations use port {port}, and {WHY}: a template without clients has no \
             other criterion, so select one of them with `flow`"
        ),
        Some(servers) => format!(
            "client.servers: found {} addresses, expected at least {count}: {count} conversations \
             use port {port}, and {WHY}, so each needs an address of its own",
            servers.count
        ),
    })
}

/// Returns part `part` of `count`, from 0. The sizes of the parts differ by one address at most.
pub(crate) fn subrange(all: AddressRange, part: u32, count: u32) -> AddressRange {
    let place = |part: u32| (u64::from(all.count) * u64::from(part) / u64::from(count)) as u32;
    let (first, end) = (place(part), place(part + 1));
    AddressRange { first: offset_address(all.first, first), count: end - first }
}

/// Returns the address that is `places` after another one. A valid range never wraps here.
fn offset_address(address: IpAddr, places: u32) -> IpAddr {
    match address {
        IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits().wrapping_add(places)).into(),
        IpAddr::V6(first) => {
            Ipv6Addr::from_bits(first.to_bits().wrapping_add(places.into())).into()
        }
    }
}

/// Divides the load and the limit equally between the templates of one item of the plan. Remainders
/// go to the first ones, so that the sums match the plan.
pub(super) fn split_load(place: &ValueAt<'_>, templates: &mut [Template]) -> Result<(), PlanError> {
    let count = templates.len() as u64;
    let part = |total: u64, index: u64| total / count + u64::from(index < total % count);
    for (index, template) in (0..).zip(templates) {
        let Some(client) = &mut template.client else { continue };
        let wrong = |what: &str| {
            place.message_error(format!(
                "{what} is too small for the {count} conversations that share it"
            ))
        };
        let rate_part = |rate: Rate| rate.scaled(1, count).map_err(|_| wrong("client.load"));
        let most_part = |most: Option<u64>| match most {
            Some(most) if most < count => Err(wrong("client.load.concurrent_max")),
            most => Ok(most.map(|most| part(most, index))),
        };
        client.load = match client.load {
            Load::Rate { rate, concurrent_max: at_most } => {
                Load::Rate { rate: rate_part(rate)?, concurrent_max: most_part(at_most)? }
            }
            Load::Poisson { rate, concurrent_max: at_most } => {
                Load::Poisson { rate: rate_part(rate)?, concurrent_max: most_part(at_most)? }
            }
            Load::Concurrent(flows) if flows >= count => Load::Concurrent(part(flows, index)),
            Load::Concurrent(_) => return Err(wrong("client.load.concurrent")),
            Load::Throughput(bits) if bits >= count => Load::Throughput(part(bits, index)),
            Load::Throughput(_) => return Err(wrong("client.load.throughput")),
            Load::Users { users, think_time: think } if users >= count => {
                Load::Users { users: part(users, index), think_time: think }
            }
            Load::Users { .. } => return Err(wrong("client.load.users")),
            Load::OnDemand => Load::OnDemand,
        };
        client.limit = client.limit.map(|limit| part(limit, index));
        if client.limit == Some(0) {
            return Err(wrong("client.limit"));
        }
    }
    Ok(())
}
