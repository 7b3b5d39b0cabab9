//! Splits a pool among servers of several captures at one port. What a server sends depends on its
//! address, so each gets its own addresses.

use wirestorm_model::address_range::AddressRange;

use crate::document::error::PlanError;
use crate::emulation::{Template, subrange};

/// Where a server listens: index of its port in the plan, transport and port, and its addresses.
type ServerLocation = ((usize, crate::emulation::Transport, u16), AddressRange);

pub(super) fn split_servers(
    templates: &mut [Template],
    notes: &mut Vec<String>,
) -> Result<(), PlanError> {
    let mut sharing: Vec<(ServerLocation, Vec<usize>)> = Vec::new();
    for (index, template) in templates.iter().enumerate() {
        let Some(place) = server_location(template) else { continue };
        match sharing.iter_mut().find(|(known, _)| *known == place) {
            Some((_, those)) => those.push(index),
            None => sharing.push((place, vec![index])),
        }
    }
    for ((at, all), those) in &sharing {
        // Overlapping pools cannot be separated by address.
        for (_, others) in sharing.iter().filter(|((a, b), _)| a == at && overlap(b, all)) {
            check_same_program(templates, those[0], others[0], all)?;
        }
        let count = those.len() as u32;
        let names: Vec<_> = those.iter().map(|it| templates[*it].name.as_str()).collect();
        let (names, port) = (names.join(", "), at.2);
        if count == 1 {
            continue;
        }
        if all.count < count {
            for other in &those[1..] {
                check_same_program(templates, those[0], *other, all)?;
            }
            let first = &templates[those[0]].name;
            notes.push(format!(
                "{names}: all send the same at one server; its counters are those of {first}"
            ));
            continue;
        }
        let each = all.count / count;
        notes.push(format!(
            "{names}: all go to port {port}, so each has its own part of the {} servers, {each} or \
             more",
            all.count
        ));
        for (part, index) in (0..count).zip(those) {
            let range = subrange(*all, part, count);
            let template = &mut templates[*index];
            if let (Some(client), Some(server)) = (&mut template.client, &mut template.server) {
                client.servers = range;
                server.addresses = Some(range);
            }
        }
    }
    Ok(())
}

fn server_location(template: &Template) -> Option<ServerLocation> {
    let server = template.server.as_ref()?;
    Some(((server.transmit, template.transport, server.listen?), server.addresses?))
}

/// Returns whether two different ranges overlap.
fn overlap(one: &AddressRange, other: &AddressRange) -> bool {
    one != other && (one.offset_of(other.first).is_some() || other.offset_of(one.first).is_some())
}

/// Returns an error unless two servers at the same addresses have the same program.
fn check_same_program(
    templates: &[Template],
    one: usize,
    other: usize,
    servers: &AddressRange,
) -> Result<(), PlanError> {
    let (one, other) = (&templates[one], &templates[other]);
    let program = |template: &Template| template.server.as_ref().map(|it| it.program.clone());
    if program(one) == program(other) {
        return Ok(());
    }
    let port = one.server.as_ref().and_then(|it| it.listen).unwrap_or(0);
    Err(PlanError {
        path: one.path.clone(),
        message: format!(
            "found other servers at port {port} in {}, some at the same addresses (from {}), with \
             another program: expected a separate pool",
            other.path, servers.first
        ),
    })
}
