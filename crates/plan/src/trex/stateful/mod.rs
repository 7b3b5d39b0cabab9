//! TRex's stateful profiles, from the JSON that its clients write, as emulation plans.
//!
//! ```text
//! JSON -> tables (buffers, address pools, programs, tunables) -> templates -> EmulationPlan
//! ```
//!
//! Notes of the plan list the differences from TRex's server. An error has its path in the
//! document.

mod buffers;
mod client_configuration;
pub(super) mod pools;
mod program;
mod tables;
mod templates;
mod tunables;

use std::collections::BTreeMap;

pub use client_configuration::{apply_client_configuration, looks_like_client_configuration};
pub use pools::in_network;
use serde_json::Value;

use crate::document::error::{ErrorCollector, PlanErrors};
use crate::document::port::Port;
use crate::document::value_at::ValueAt;
use crate::emulation::{EmulationPlan, FirstBytes, Server, Template, check_endless};

const PROFILE: [&str; 7] = [
    "buf_list",
    "ip_gen_dist_list",
    "program_list",
    "c_glob_info",
    "s_glob_info",
    "templates",
    "tg_names",
];

/// Parameters of a profile beside its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatefulOptions {
    /// Whether all flows use IPv6. If false, the profile's `ipv6.enable` decides.
    pub ipv6: bool,
    /// Number of port pairs that share the flows, 1 to [`PAIRS_MAX`]. Each pair has its own
    /// addresses.
    pub pairs: u32,
}

/// Maximum number of port pairs.
pub const PAIRS_MAX: u32 = 16;

impl Default for StatefulOptions {
    fn default() -> Self {
        Self { ipv6: false, pairs: 1 }
    }
}

/// Returns whether a document looks like a stateful profile.
pub fn looks_like_profile(document: &Value) -> bool {
    document.get("program_list").is_some() || document.get("buf_list").is_some()
}

/// Reads a profile. Its ports are `clients` and `servers`, those of the second pair `clients1` and
/// `servers1`. The names of its templates are their indices.
///
/// # Errors
/// Returns all errors of the profile, each with its path.
pub fn read(json: &str, options: &StatefulOptions) -> Result<EmulationPlan, PlanErrors> {
    let document = crate::document::read(json)?;
    let root = ValueAt::root(&document);
    let fields = root.fields(&PROFILE)?;
    let mut problems = ErrorCollector::default();
    let mut notes = Vec::new();
    let tables = tables::read(&fields, &mut problems, &mut notes);
    let list = problems.take(fields.required("templates", "a list of templates"));
    let items = list.and_then(|it| problems.take(it.items("templates"))).unwrap_or_default();
    let mut plan = EmulationPlan::default();
    for pair in 0..options.pairs.clamp(1, PAIRS_MAX) {
        for (side, blackhole) in [
            ("clients", tables.clients.blackhole_of_clients()),
            ("servers", tables.servers.blackhole_of_servers()),
        ] {
            let name = match pair {
                0 => side.to_owned(),
                _ => format!("{side}{pair}"),
            };
            plan.ports.push(Port { blackhole, ..Port::named(name) });
        }
        for (number, item) in items.iter().enumerate() {
            let reading = templates::TemplateReader { tables: &tables, options, pair };
            let template = problems.take(reading.template(item, number, &mut notes));
            plan.templates.extend(template);
        }
    }
    split_port_range(&mut plan.templates);
    separate_stamped_servers(&mut plan.templates);
    if plan.templates.is_empty() {
        problems.take::<()>(Err(root.message_error("no template, expected at least one")));
    }
    problems.take(check_endless(&plan));
    // Programs and pools give the same note at every use.
    for note in notes {
        if !plan.notes.contains(&note) {
            plan.notes.push(note);
        }
    }
    problems.finish(plan)
}

/// Splits the clients' port range among templates with the same addresses and server port, so that
/// their flows do not collide.
pub(super) fn split_port_range(templates: &mut [Template]) {
    let mut sharing: Vec<(_, Vec<usize>)> = Vec::new();
    for (index, template) in templates.iter().enumerate() {
        let Some(client) = &template.client else { continue };
        let between = (client.transmit, client.addresses, client.servers);
        let key = (template.transport, between, client.server_port);
        match sharing.iter_mut().find(|(other, _)| *other == key) {
            Some((_, those)) => those.push(index),
            None => sharing.push((key, vec![index])),
        }
    }
    for (_, those) in sharing {
        let count = those.len() as u32;
        for (part, index) in (0..count).zip(those) {
            let Some(client) = &mut templates[index].client else { continue };
            let (first, last) = (u32::from(*client.ports.start()), u32::from(*client.ports.end()));
            let each = ((last - first + 1) / count).max(1);
            let start = (first + part * each).min(last);
            let end = if part + 1 == count { last } else { (start + each - 1).min(last) };
            // Both lie within the 16-bit port range.
            client.ports = start as u16..=end as u16;
        }
    }
}

/// Lets several servers with the add-on `latency` at one port receive only flows that name them, as
/// in TRex. A single server receives all flows.
fn separate_stamped_servers(templates: &mut [Template]) {
    const OFFSETS: std::ops::Range<u8> = 8..12;
    let place = |it: &Server| (it.transmit, it.listen);
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    let servers = templates.iter().filter_map(|it| it.server.as_ref());
    for server in servers.filter(|it| it.stamp.is_some()) {
        *counts.entry(place(server)).or_default() += 1;
    }
    for server in templates.iter_mut().filter_map(|it| it.server.as_mut()) {
        if let Some(stamp) = server.stamp
            && counts.get(&place(server)).is_some_and(|count| *count > 1)
        {
            let bytes = OFFSETS.zip(stamp.to_be_bytes());
            server.first_bytes = Some(FirstBytes(bytes.map(|(at, it)| (at, 255, it)).collect()));
        }
    }
}

#[cfg(test)]
mod tests;
