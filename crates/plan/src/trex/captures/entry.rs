//! Entries of `cap_info`: a capture, its rate, and its address pools.

use std::net::{IpAddr, Ipv4Addr};

use wirestorm_base::count::pluralise;
use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_wire::conversation::{Conversation, Gaps, Imported};

use super::gaps::GapSettings;
use super::generator::Pools;
use super::read_flag;
use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::{
    Client, Devices, Dialogue, Ip, MplsLabels, Server, Tcp, Template, Transport, captured_dialogue,
};
use crate::trex::stateful::pools::{Pool, read_address};

const ENTRY: [&str; 18] = [
    "name",
    "cps",
    "ipg",
    "rtt",
    "w",
    "limit",
    "cap_ipg",
    "client_pool",
    "server_pool",
    "one_app_server",
    "server_addr",
    "keep_src_port",
    "plugin_id",
    "dyn_pyload",
    "multi_flow_enabled",
    "flows_dirs",
    "max_ip_tunnels",
    "ip_header_offset",
];

/// Maximum `plugin_id`.
const PLUGINS_MAX: u64 = 5;

/// Settings of the profile that apply to all entries.
#[derive(Debug)]
pub(super) struct ProfileSettings {
    pub(super) pools: Pools,
    pub(super) gaps: GapSettings,
    /// Upper 96 bits of the clients' and servers' IPv6 addresses.
    pub(super) prefixes: [Option<[u8; 16]>; 2],
    /// VLANs of clients with even and with odd addresses.
    pub(super) vlans: Option<[u16; 2]>,
    /// Number of port pairs.
    pub(super) pairs: u32,
    /// Whether all flows use IPv6.
    pub(super) is_ipv6: bool,
}

/// An entry, with the flows of its capture.
#[derive(Debug)]
pub(super) struct Entry {
    path: String,
    /// Base name of its templates.
    name: String,
    pools: [Pool; 2],
    rate: Rate,
    flows_per_client: u32,
    /// Number of flows after which addresses and ports repeat.
    limit: Option<u64>,
    flows: Vec<Flow>,
}

/// A flow of a capture.
#[derive(Debug)]
struct Flow {
    programs: Dialogue,
    /// The client's port, if `keep_src_port` is set.
    client_port: Option<u16>,
    is_ipv6: bool,
    /// Whether an address of the server pool initiates the flow.
    is_reversed: bool,
}

/// Returns the names of the entries' templates: the file stem, with a number from the second use
/// on.
pub(super) fn names(entries: &[ValueAt<'_>]) -> Vec<String> {
    let mut names = Vec::<String>::new();
    for entry in entries {
        let file = entry.value()["name"].as_str().unwrap_or_default();
        let file = file.rsplit('/').next().unwrap_or_default();
        let stem = file.split('.').next().unwrap_or_default();
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut candidates = std::iter::once(stem.to_owned()).chain(numbered);
        names.extend(candidates.find(|name| !names.contains(name)));
    }
    names
}

impl ProfileSettings {
    pub(super) fn read(
        &self,
        place: &ValueAt<'_>,
        name: String,
        load: &mut impl FnMut(&str, Gaps) -> Result<Imported, String>,
        notes: &mut Vec<String>,
    ) -> Result<Entry, PlanError> {
        let fields = place.fields(&ENTRY)?;
        for field in ["max_ip_tunnels", "ip_header_offset"] {
            if let Some(place) = fields.get(field) {
                let message = "found a tunnel, expected TCP or UDP directly over IP: remove the tunnel \
                               from the capture";
                return Err(place.message_error(message));
            }
        }
        let [clients, servers] = self.pools.of(&fields)?;
        let servers = one_server(&fields, notes)?.map_or(servers, |only| Pool {
            first: only,
            count: 1,
            ..servers
        });
        let gaps = self.gaps.of(&fields)?;
        let rate = read_rate(&fields, self.pairs)?;
        let turn = fields.get("w").map_or(Ok(1), |it| it.integer(1, u16::MAX.into()))? as u32;
        let limit = fields.get("limit").map(|it| it.integer(1, u64::MAX)).transpose()?;
        let file = fields.required("name", "the name of a capture file")?;
        let imported = load(file.string("the name of a capture file")?, gaps);
        let imported = imported.map_err(|message| file.message_error(message))?;
        let flows = self.flows(&file, &fields, imported, notes)?;
        let entry = Entry {
            path: place.path(),
            name,
            pools: [clients, servers],
            rate,
            flows_per_client: turn,
            limit,
            flows,
        };
        entry.note(&fields, notes)?;
        Ok(entry)
    }

    /// Returns the flows of a capture. `file` is the place of its name.
    fn flows(
        &self,
        file: &ValueAt<'_>,
        fields: &Fields<'_>,
        imported: Imported,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Flow>, PlanError> {
        let keeps_port = fields.get("keep_src_port").map_or(Ok(false), |it| read_flag(&it))?;
        let directions = fields.get("flows_dirs").map(|it| read_directions(&it)).transpose()?;
        let mut flows = Vec::new();
        let mut first: Option<[IpAddr; 2]> = None;
        for (index, found) in imported.flows.into_iter().enumerate() {
            let number = index + 1;
            let wrong = |message: String| file.message_error(format!("flow {number}: {message}"));
            let conversation: Conversation = found.map_err(|error| wrong(error.to_string()))?;
            let ends = [conversation.client.ip(), conversation.server.ip()];
            let [_, first_server] = *first.get_or_insert(ends);
            let is_reversed = match &directions {
                None => ends[0] == first_server && ends[0] != ends[1],
                Some(directions) => *directions.get(index).ok_or_else(|| {
                    let found = directions.len();
                    wrong(format!(
                        "has no direction: flows_dirs has {found}, expected one per flow"
                    ))
                })?,
            };
            if !conversation.has_data() {
                notes.push(format!(
                    "{}: skipped flow {number}: neither side sends data",
                    file.path()
                ));
                continue;
            }
            if is_reversed && self.vlans.is_some() {
                let message = "is initiated by a server, which has no VLAN: remove `vlan`";
                return Err(wrong(message.to_owned()));
            }
            let client_port = keeps_port.then(|| conversation.client.port());
            let is_ipv6 = self.is_ipv6 || ends[0].is_ipv6();
            let dialogue = captured_dialogue(number, conversation).map_err(wrong)?;
            notes.extend(dialogue.notes.iter().map(|note| format!("{}: {note}", file.path())));
            flows.push(Flow { programs: dialogue, client_port, is_ipv6, is_reversed });
        }
        if flows.is_empty() {
            return Err(file.message_error("no TCP or UDP flow with data"));
        }
        if imported.others > 0 {
            notes.push(format!(
                "{}: skipped {}: neither TCP nor UDP",
                file.path(),
                pluralise(imported.others, "packet", "packets")
            ));
        }
        Ok(flows)
    }

    /// Returns the templates of an entry for one pair of ports, one per flow.
    pub(super) fn templates(&self, entry: &Entry, pair: u32) -> Result<Vec<Template>, PlanError> {
        let limit = entry.limit.map(|limit| self.share(limit, pair));
        let mut templates = Vec::new();
        for flow in &entry.flows {
            let mut name = entry.name.clone();
            if let (Some(part), true) = (&flow.programs.part, entry.flows.len() > 1) {
                name = format!("{name}.{part}");
            }
            if pair > 0 {
                name = format!("{name}/{pair}");
            }
            let range = |place: usize| {
                let prefix = flow.is_ipv6.then(|| self.prefixes[place].unwrap_or_default());
                entry.pools[place].range(pair, prefix)
            };
            let [clients, servers] = [range(0), range(1)];
            // If a server initiates the flow, the two sides swap places.
            let (from, to, transmit, listening) = match flow.is_reversed {
                false => (clients, servers, 0, 1),
                true => (servers, clients, 1, 0),
            };
            let [is_from_random, is_to_random] =
                [transmit, listening].map(|place| entry.pools[place].is_random);
            let client = Client {
                transmit: pair as usize * 2 + transmit,
                addresses: Some(from),
                order: if is_from_random { ClientOrder::Random } else { ClientOrder::RoundRobin },
                consecutive_flows: entry.flows_per_client,
                reuse_after: limit,
                // The port range of TRex.
                ports: flow.client_port.map_or(1_024..=64_000, |port| port..=port),
                servers: to,
                pairing: if is_to_random { Pairing::Random } else { Pairing::RoundRobin },
                server_port: flow.programs.port,
                destination: None,
                devices: self.vlans.map_or_else(Vec::new, |vlans| vlans_by_parity(from, vlans)),
                load: Load::Rate { rate: entry.rate, concurrent_max: None },
                ramp_up: Duration::ZERO,
                limit: None,
                program: flow.programs.client.clone(),
                stamp: None,
                tcp: Tcp::default(),
                ip: Ip::default(),
            };
            let server = Server {
                transmit: pair as usize * 2 + listening,
                listen: Some(flow.programs.port),
                addresses: Some(to),
                vlans: Vec::new(),
                first_bytes: None,
                program: flow.programs.server.clone(),
                stamp: None,
                tcp: Tcp::default(),
                ip: Ip::default(),
            };
            templates.push(Template {
                name,
                group: None,
                transport: flow.programs.transport,
                client: Some(client),
                server: Some(server),
                tls: None,
                http2: None,
                path: entry.path.clone(),
            });
        }
        Ok(templates)
    }

    /// Returns a pair's share of a total. The first pair also gets the remainder.
    fn share(&self, all: u64, pair: u32) -> u64 {
        let pairs = u64::from(self.pairs);
        let left_over = if pair == 0 { all % pairs } else { 0 };
        (all / pairs + left_over).max(1)
    }

    /// Adds notes on differences from TRex that concern all entries.
    pub(super) fn add_notes(&self, entries: &[Entry], notes: &mut Vec<String>) {
        let mut flows = entries.iter().flat_map(|entry| &entry.flows);
        if self.prefixes != [None; 2] && !flows.any(|flow| flow.is_ipv6) {
            notes.push("src_ipv6, dst_ipv6: used with --ipv6 only, as in TRex".into());
        }
        if let Some([_, odd]) = self.vlans {
            notes.push(format!(
                "vlan: clients with odd addresses are in VLAN {odd} on the clients' port, in TRex \
                 on the servers'"
            ));
        }
    }
}

impl Entry {
    /// Adds notes on differences from TRex that concern this entry.
    fn note(&self, fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<(), PlanError> {
        let Self { path, flows, .. } = self;
        let plugin = fields.get("plugin_id").map_or(Ok(0), |it| it.integer(0, PLUGINS_MAX))?;
        let are_many = fields.get("multi_flow_enabled").map_or(Ok(false), |it| read_flag(&it))?;
        if plugin > 0 {
            notes.push(format!(
                "{path}.plugin_id: addresses and ports in payloads stay as captured"
            ));
        }
        if fields.get("dyn_pyload").is_some() {
            notes.push(format!("{path}.dyn_pyload: payloads stay as captured"));
        }
        if flows.len() > 1 {
            let unless = if plugin > 0 || are_many { "" } else { "; TRex refuses such captures" };
            notes.push(format!(
                "{path}: each of the {} flows of its capture has this rate, independently{unless}",
                flows.len()
            ));
        }
        if self.limit.is_some() && flows.iter().any(|it| it.programs.transport == Transport::Tcp) {
            notes.push(format!(
                "{path}.limit: a connection that is still open, or in TIME-WAIT, repeats from \
                 another port"
            ));
        }
        let is_random = self.pools.iter().any(|pool| pool.is_random);
        if is_random && (self.flows_per_client > 1 || self.limit.is_some()) {
            notes
                .push(format!("{path}: each flow has random addresses, regardless of w and limit"));
        }
        Ok(())
    }
}

/// Returns the only server of an entry, if `one_app_server` is set.
fn one_server(fields: &Fields<'_>, notes: &mut Vec<String>) -> Result<Option<Ipv4Addr>, PlanError> {
    let is_one = fields.get("one_app_server").map_or(Ok(false), |it| read_flag(&it))?;
    match (is_one, fields.get("server_addr")) {
        (true, Some(address)) => read_address(&address).map(Some),
        (false, None) => Ok(None),
        (true, None) => {
            let place = fields.required("one_app_server", "true or false")?;
            notes.push(format!("{}: ignored without server_addr, as in TRex", place.path()));
            Ok(None)
        }
        (false, Some(address)) => {
            let path = address.path();
            notes.push(format!("{path}: ignored without one_app_server: true, as in TRex"));
            Ok(None)
        }
    }
}

/// Reads the flows per second of one pair of ports.
fn read_rate(fields: &Fields<'_>, pairs: u32) -> Result<Rate, PlanError> {
    const EXPECTED: &str = "flows a second, such as 2.5";
    let place = fields.required("cps", EXPECTED)?;
    let text = place.number_text().ok_or_else(|| place.unexpected(EXPECTED))?;
    Rate::parse_per_second(&text, 1)
        .and_then(|rate| rate.scaled(1, pairs.into()))
        .map_err(|error| place.message_error(format!("found {text}: {error}")))
}

/// Reads for each flow whether it goes from servers to clients.
fn read_directions(place: &ValueAt<'_>) -> Result<Vec<bool>, PlanError> {
    let items = place.items("directions, 0 and 1")?;
    items.iter().map(|it| it.integer(0, 1).map(|direction| direction == 1)).collect()
}

/// Assigns clients with even addresses to one VLAN, and those with odd addresses to another.
fn vlans_by_parity(clients: AddressRange, [even, odd]: [u16; 2]) -> Vec<Devices> {
    let last_bit = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_bits() & 1 == 1,
        IpAddr::V6(address) => address.to_bits() & 1 == 1,
    };
    let [of_first, of_others] = if last_bit(clients.first) { [odd, even] } else { [even, odd] };
    let device = |clients, every, vlan: u16| Devices {
        clients,
        stride: every,
        count: 1,
        vlan: Some(vlan.into()),
        labels: MplsLabels::default(),
        destination: None,
        source: None,
        next_hop: None,
    };
    // The first entry matches every second client from the first on; the second entry matches the
    // rest.
    vec![device(clients, 2, of_first), device(clients, 1, of_others)]
}
