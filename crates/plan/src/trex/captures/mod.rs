//! TRex's older stateful profiles as plans of clients and servers: lists, in YAML, of captures
//! that are played between the addresses of pools.
//!
//! ```text
//! YAML -> generator (pools), gaps (times between packets) -> entries (a capture, how often)
//!      -> a template for each flow of each capture -> parts (servers that share a port)
//! ```
//!
//! TRex sends such captures packet by packet. Here what was said in them is said again, over
//! connections. What cannot be kept is in the plan's notes, or an error where that would be
//! something else.

mod entry;
mod gaps;
mod generator;
mod parts;

use serde_json::Value;
use wirestorm_base::time::Duration;
use wirestorm_wire::conversation::{Gaps, Imported};

use super::stateful::{PAIRS_MAX, StatefulOptions, share_ports};
use crate::document::error::{PlanError, PlanErrors, Problems};
use crate::document::place::{Fields, Place};
use crate::document::port::Port;
use crate::document::time::parse_time;
use crate::emulation::{EmulationPlan, Transport};
use entry::Common;

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

/// What of a profile is done otherwise than in TRex, or not at all, and needs no more words.
const NOTED: [(&str, &str); 6] = [
    ("one_app_server", "passed over, as in TRex: it belongs to an entry of cap_info"),
    ("tw", "passed over: there is no such timer to be set"),
    ("mac", "passed over: frames come from their port's own Ethernet address"),
    ("mac_override_by_ip", "passed over: frames come from their port's own Ethernet address"),
    ("min_src_ip", "passed over, as in TRex: generator says who talks to whom"),
    ("min_dst_ip", "passed over, as in TRex: generator says who talks to whom"),
];

const VLAN: [&str; 3] = ["enable", "vlan0", "vlan1"];

/// A profile, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Captures {
    /// Who talks to whom.
    pub plan: EmulationPlan,
    /// How long, where nobody says otherwise.
    pub duration: Option<Duration>,
}

/// Whether a document is such a profile, or means to be one.
pub fn is_meant(document: &Value) -> bool {
    let first = document.as_array().and_then(|items| items.first());
    let has = |name: &str| first.is_some_and(|first| first.get(name).is_some());
    ["cap_info", "generator", "clients_start"].into_iter().any(has)
}

/// Reads a profile. Its ports are `clients` and `servers`, those of the second pair `clients1` and
/// `servers1`; its templates are named like their captures. `load` gives what was found in the
/// capture of this name, with such times between its packets, or why there is nothing.
///
/// # Errors
/// All that is wrong with it, each with its path.
pub fn read(
    text: &str,
    options: &StatefulOptions,
    mut load: impl FnMut(&str, Gaps) -> Result<Imported, String>,
) -> Result<Captures, PlanErrors> {
    let document = crate::document::read(text)?;
    let items = Place::root(&document).items("profiles, of which the first one is read")?;
    let Some((profile, others)) = items.split_first() else {
        return Err(Place::root(&document).says("no profile, expected one").into());
    };
    let mut notes = Vec::new();
    if let Some(second) = others.first() {
        notes.push(format!("{}: passed over, as in TRex: the first profile alone", second.path()));
    }
    if profile.value().get("clients_start").is_some() {
        let message = "the fields of a generator alone, expected generator and cap_info";
        return Err(profile.says(message).into());
    }
    let fields = profile.fields(&PROFILE)?;
    let mut problems = Problems::default();
    for (name, note) in NOTED {
        notes.extend(fields.get(name).map(|it| format!("{}: {note}", it.path())));
    }
    let expected = "distribution, clients_start, clients_end, servers_start, servers_end";
    let pools = problems.take(fields.need("generator", expected));
    let pools = pools.and_then(|it| problems.take_all(generator::read(&it, &mut notes)));
    let gaps = problems.take(gaps::read(&fields));
    let prefixes = problems.take(read_prefixes(&fields));
    let vlans = problems.take(fields.get("vlan").map_or(Ok(None), |it| read_vlans(&it)));
    let duration = problems.take(fields.get("duration").map(|it| read_seconds(&it)).transpose());
    let list = problems.take(fields.need("cap_info", "a list of captures"));
    let entries = list.and_then(|it| problems.take(it.items("captures")));
    let mut plan = EmulationPlan::default();
    let (Some(pools), Some(gaps), Some(prefixes), Some(vlans), Some(duration), Some(entries)) =
        (pools, gaps, prefixes, vlans, duration, entries)
    else {
        // What is not there was noted.
        return problems.finish(Captures { plan, duration: None });
    };
    if entries.is_empty() {
        problems.take::<()>(Err(profile.says("no capture, expected at least one")));
    }
    let pairs = options.pairs.clamp(1, PAIRS_MAX);
    let common = Common { pools, gaps, prefixes, vlans, pairs, is_ipv6: options.ipv6 };
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
    problems.take(parts::part(&mut plan.templates, &mut notes));
    share_ports(&mut plan.templates);
    common.note(&read, &mut notes);
    if plan.templates.iter().any(|it| it.transport == Transport::Tcp) {
        notes.push(
            "captures of TCP are not sent packet by packet: what they say goes over connections \
             of Wirestorm's own TCP"
                .into(),
        );
    }
    // Entries that are alike say the same.
    for note in notes {
        if !plan.notes.contains(&note) {
            plan.notes.push(note);
        }
    }
    problems.finish(Captures { plan, duration })
}

/// The upper 96 bits of clients' and servers' addresses over IPv6, where they are written.
fn read_prefixes(fields: &Fields<'_>) -> Result<[Option<[u8; 16]>; 2], PlanError> {
    const WORDS: &str = "the six upper 16-bit words of an IPv6 address";
    let prefix = |name: &str| {
        let Some(place) = fields.get(name) else { return Ok(None) };
        let words = place.items(WORDS)?;
        if words.len() != 6 {
            return Err(place.wrong(WORDS));
        }
        let mut prefix = [0; 16];
        for (bytes, word) in prefix.chunks_mut(2).zip(&words) {
            bytes.copy_from_slice(&(word.integer(0, u16::MAX.into())? as u16).to_be_bytes());
        }
        Ok(Some(prefix))
    };
    Ok([prefix("src_ipv6")?, prefix("dst_ipv6")?])
}

/// The VLANs of clients with even and with odd addresses.
fn read_vlans(place: &Place<'_>) -> Result<Option<[u16; 2]>, PlanError> {
    let fields = place.fields(&VLAN)?;
    let enable = fields.get("enable");
    if !enable.map_or(Ok(false), |it| read_flag(&it))? {
        return Ok(None);
    }
    let id = |name: &str| -> Result<u16, PlanError> {
        let id = fields.need(name, "the number of a VLAN")?.integer(0, 4_095)?;
        Ok(id as u16)
    };
    Ok(Some([id("vlan0")?, id("vlan1")?]))
}

/// Yes or no, as words or as 1 and 0.
fn read_flag(place: &Place<'_>) -> Result<bool, PlanError> {
    match (place.value().as_bool(), place.value().as_u64()) {
        (Some(is), _) => Ok(is),
        (_, Some(0)) => Ok(false),
        (_, Some(1)) => Ok(true),
        _ => Err(place.wrong("true or false")),
    }
}

fn read_seconds(place: &Place<'_>) -> Result<Duration, PlanError> {
    read_time(place, "s", "seconds")
}

/// A time in microseconds.
fn read_micros(place: &Place<'_>) -> Result<Duration, PlanError> {
    read_time(place, "us", "microseconds")
}

fn read_time(place: &Place<'_>, unit: &str, expected: &str) -> Result<Duration, PlanError> {
    let text = place.number_text();
    text.and_then(|text| parse_time(&format!("{text}{unit}"))).ok_or_else(|| place.wrong(expected))
}

#[cfg(test)]
mod tests;
