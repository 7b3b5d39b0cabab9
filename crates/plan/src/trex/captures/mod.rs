//! TRex's older stateful profiles as emulation plans. A profile is a YAML list of captures that are
//! played between address pools.
//!
//! ```text
//! YAML -> generator (pools), gaps (times between packets) -> entries (a capture, how often)
//!      -> a template for each flow of each capture -> parts (servers that share a port)
//! ```
//!
//! TRex sends such captures packet by packet. Wirestorm sends their data over its own connections.
//! Notes of the plan list what it cannot keep, unless the difference is an error.

mod entry;
mod gaps;
mod generator;
mod shared_servers;

use serde_json::Value;
use wirestorm_base::time::Duration;
use wirestorm_wire::conversation::{Gaps, Imported};

use super::stateful::{PAIRS_MAX, StatefulOptions, split_port_range};
use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::port::Port;
use crate::document::time::parse_time;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::{EmulationPlan, Transport};
use entry::ProfileSettings;

const PROFILE: [&str; 17] = [
    "duration",
    "generator",
    "cap_info",
    "cap_ipg",
    "cap_ipg_min",
    "cap_override_ipg",
    "one_app_server",
    "vlan",
    "src_ipv6",
    "dst_ipv6",
    "tw",
    "mac",
    "mac_override_by_ip",
    "min_src_ip",
    "max_src_ip",
    "min_dst_ip",
    "max_dst_ip",
];

/// Notes on fields that act differently from TRex, or have no effect.
const IGNORED_FIELDS: [(&str, &str); 6] = [
    ("one_app_server", "ignored, as in TRex: it belongs to an entry of cap_info"),
    ("tw", "ignored: Wirestorm has no such timer"),
    ("mac", "ignored: frames have their port's Ethernet address"),
    ("mac_override_by_ip", "ignored: frames have their port's Ethernet address"),
    ("min_src_ip", "ignored, as in TRex: generator sets the addresses"),
    ("min_dst_ip", "ignored, as in TRex: generator sets the addresses"),
];

const VLAN: [&str; 3] = ["enable", "vlan0", "vlan1"];

/// A parsed profile.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureProfile {
    /// The emulation plan.
    pub plan: EmulationPlan,
    /// Default duration of a run.
    pub duration: Option<Duration>,
}

/// Returns whether a document looks like such a profile.
pub fn looks_like_profile(document: &Value) -> bool {
    let first = document.as_array().and_then(|items| items.first());
    let has = |name: &str| first.is_some_and(|first| first.get(name).is_some());
    ["cap_info", "generator", "clients_start"].into_iter().any(has)
}

/// Reads a profile. Its ports are `clients` and `servers`, those of the second pair `clients1` and
/// `servers1`. Its templates have the names of their captures. `load` imports a capture by name,
/// with the times between its packets, or returns the reason why it cannot.
///
/// # Errors
/// Returns all errors of the profile, each with its path.
pub fn read(
    text: &str,
    options: &StatefulOptions,
    mut load: impl FnMut(&str, Gaps) -> Result<Imported, String>,
) -> Result<CaptureProfile, PlanErrors> {
    let document = crate::document::read(text)?;
    let items = ValueAt::root(&document).items("profiles, of which only the first is read")?;
    let Some((profile, others)) = items.split_first() else {
        return Err(ValueAt::root(&document).message_error("no profile, expected one").into());
    };
    let mut notes = Vec::new();
    if let Some(second) = others.first() {
        notes.push(format!("{}: ignored, as in TRex: only the first is read", second.path()));
    }
    if profile.value().get("clients_start").is_some() {
        let message = "the fields of a generator alone, expected generator and cap_info";
        return Err(profile.message_error(message).into());
    }
    let fields = profile.fields(&PROFILE)?;
    let mut problems = ErrorCollector::default();
    for (name, note) in IGNORED_FIELDS {
        notes.extend(fields.get(name).map(|it| format!("{}: {note}", it.path())));
    }
    let expected = "distribution, clients_start, clients_end, servers_start, servers_end";
    let pools = problems.take(fields.required("generator", expected));
    let pools = pools.and_then(|it| problems.take_all(generator::read(&it, &mut notes)));
    let gaps = problems.take(gaps::read(&fields));
    let prefixes = problems.take(read_prefixes(&fields));
    let vlans = problems.take(fields.get("vlan").map_or(Ok(None), |it| read_vlans(&it)));
    let duration = problems.take(fields.get("duration").map(|it| read_seconds(&it)).transpose());
    let list = problems.take(fields.required("cap_info", "a list of captures"));
    let entries = list.and_then(|it| problems.take(it.items("captures")));
    let mut plan = EmulationPlan::default();
    let (Some(pools), Some(gaps), Some(prefixes), Some(vlans), Some(duration), Some(entries)) =
        (pools, gaps, prefixes, vlans, duration, entries)
    else {
        // `problems` has the errors of the missing parts.
        return problems.finish(CaptureProfile { plan, duration: None });
    };
    if entries.is_empty() {
        problems.take::<()>(Err(profile.message_error("no capture, expected at least one")));
    }
    let pairs = options.pairs.clamp(1, PAIRS_MAX);
    let common = ProfileSettings { pools, gaps, prefixes, vlans, pairs, is_ipv6: options.ipv6 };
    let names = entry::names(&entries);
    let mut read = Vec::new();
    for (place, name) in entries.iter().zip(names) {
        read.extend(problems.take(common.read(place, name, &mut load, &mut notes)));
    }
    for pair in 0..pairs {
        for side in ["clients", "servers"] {
            plan.ports.push(Port::named(match pair {
                0 => side.to_owned(),
                _ => format!("{side}{pair}"),
            }));
        }
        for entry in &read {
            plan.templates.extend(problems.take(common.templates(entry, pair)).unwrap_or_default());
        }
    }
    problems.take(shared_servers::split_servers(&mut plan.templates, &mut notes));
    split_port_range(&mut plan.templates);
    common.add_notes(&read, &mut notes);
    if plan.templates.iter().any(|it| it.transport == Transport::Tcp) {
        notes.push(
            "TCP captures are not sent packet by packet: their data goes over connections of \
             Wirestorm's TCP"
                .into(),
        );
    }
    // Similar entries give the same notes.
    for note in notes {
        if !plan.notes.contains(&note) {
            plan.notes.push(note);
        }
    }
    problems.finish(CaptureProfile { plan, duration })
}

/// Reads the upper 96 bits of the clients' and servers' IPv6 addresses.
fn read_prefixes(fields: &Fields<'_>) -> Result<[Option<[u8; 16]>; 2], PlanError> {
    const WORDS: &str = "the six upper 16-bit words of an IPv6 address";
    let prefix = |name: &str| {
        let Some(place) = fields.get(name) else { return Ok(None) };
        let words = place.items(WORDS)?;
        if words.len() != 6 {
            return Err(place.unexpected(WORDS));
        }
        let mut prefix = [0; 16];
        for (bytes, word) in prefix.chunks_mut(2).zip(&words) {
            bytes.copy_from_slice(&(word.integer(0, u16::MAX.into())? as u16).to_be_bytes());
        }
        Ok(Some(prefix))
    };
    Ok([prefix("src_ipv6")?, prefix("dst_ipv6")?])
}

/// Reads the VLANs of clients with even and with odd addresses.
fn read_vlans(place: &ValueAt<'_>) -> Result<Option<[u16; 2]>, PlanError> {
    let fields = place.fields(&VLAN)?;
    let enable = fields.get("enable");
    if !enable.map_or(Ok(false), |it| read_flag(&it))? {
        return Ok(None);
    }
    let id = |name: &str| -> Result<u16, PlanError> {
        let id = fields.required(name, "the number of a VLAN")?.integer(0, 4_095)?;
        Ok(id as u16)
    };
    Ok(Some([id("vlan0")?, id("vlan1")?]))
}

/// Reads a boolean, or 1 and 0.
fn read_flag(place: &ValueAt<'_>) -> Result<bool, PlanError> {
    match (place.value().as_bool(), place.value().as_u64()) {
        (Some(is), _) => Ok(is),
        (_, Some(0)) => Ok(false),
        (_, Some(1)) => Ok(true),
        _ => Err(place.unexpected("true or false")),
    }
}

fn read_seconds(place: &ValueAt<'_>) -> Result<Duration, PlanError> {
    read_time(place, "s", "seconds")
}

/// Reads a time in microseconds.
fn read_micros(place: &ValueAt<'_>) -> Result<Duration, PlanError> {
    read_time(place, "us", "microseconds")
}

fn read_time(place: &ValueAt<'_>, unit: &str, expected: &str) -> Result<Duration, PlanError> {
    let text = place.number_text();
    text.and_then(|text| parse_time(&format!("{text}{unit}")))
        .ok_or_else(|| place.unexpected(expected))
}

#[cfg(test)]
mod tests;
