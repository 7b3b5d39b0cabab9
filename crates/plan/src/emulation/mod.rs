//! Plans of emulated clients and servers: parses and checks YAML or JSON documents.
//!
//! ```text
//! document -> ports, templates (client, server: addresses, load, program), latency probes
//! ```

mod client;
mod composition;
mod control_flow;
mod control_steps;
mod conversation;
mod datagrams;
mod delay;
mod devices;
mod dialogue;
mod dialogues;
mod expect;
mod first_bytes;
mod flow_cycles;
mod http2;
mod ip;
mod latency;
mod names;
mod on_demand;
mod payload_size;
mod presets;
mod program;
mod schema;
mod server_selection;
mod split;
mod steps;
mod tcp;
mod tls;
mod types;

use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wirestorm_base::rate::Decimal;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::Load;
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::{Imported, Side};

use client::THROUGHPUT_MAX;
pub(crate) use conversation::captured_dialogue;
pub(crate) use devices::read_mac;
pub use devices::{AnsweredAddress, Devices, MplsLabel, MplsLabels, NextHop, Vlans};
pub(crate) use dialogue::Dialogue;
pub(crate) use first_bytes::read_masked;
pub(crate) use flow_cycles::check as check_endless;
pub use ip::Ip;
pub use schema::schema;
pub(crate) use split::subrange;
pub use tcp::Tcp;
pub use types::{
    Client, EmulationPlan, FirstBytes, Http2, LatencyProbe, ProbeProtocol,
    STREAMS_MAX as HTTP2_STREAMS_MAX, Server, Template, Tls, TlsFiles, TlsVersion, Transport,
    WINDOW_MAX as HTTP2_WINDOW_MAX,
};

use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::port::{EMULATION_PORT, Port, find_port, read_ports};
use crate::document::range::read_hosts;
use crate::document::value_at::ValueAt;

/// Maximum number of templates of a plan. A port numbers its templates with 16 bits and needs up to
/// three for each: client, server, and server before the first bytes have arrived.
const TEMPLATES_MAX: usize = 1 << 14;

const PLAN: [&str; 3] = ["ports", "templates", "latency"];
const TEMPLATE: [&str; 18] = [
    "name",
    "group",
    "transport",
    "client",
    "server",
    "tcp",
    "ip",
    "tls",
    "http2",
    "conversation",
    "http",
    "smtp",
    "ftp",
    "rtsp",
    "sip",
    "rtp",
    "dns",
    "transactions",
];
const SERVER: [&str; 8] =
    ["tx", "port", "addresses", "vlans", "first_bytes", "program", "tcp", "ip"];

impl EmulationPlan {
    /// Returns whether a document looks like a plan of clients and servers: it has `templates`.
    pub fn is_recognized(document: &Value) -> bool {
        document.get("templates").is_some()
    }

    /// Returns whether clients or servers use a port.
    pub fn uses(&self, port: usize) -> bool {
        self.templates.iter().any(|template| {
            template.client.as_ref().is_some_and(|client| client.transmit == port)
                || template.server.as_ref().is_some_and(|server| server.transmit == port)
        })
    }

    /// Returns the groups of the templates in order of their first use, each once.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups = Vec::new();
        for group in self.templates.iter().filter_map(|it| it.group.as_deref()) {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// Multiplies all loads: flows per second, open flows, users and bits per second. Results are
    /// rounded, and at least 1 except for rates. The maximum of open flows of a rate stays the
    /// same.
    ///
    /// # Errors
    /// A load becomes too large or too small.
    pub fn multiply(&mut self, factor: Decimal) -> Result<(), PlanError> {
        for template in &mut self.templates {
            let Some(client) = &mut template.client else { continue };
            let error = |message: String| PlanError {
                path: format!("{}.client.load", template.path),
                message: format!("times the multiplier: {message}"),
            };
            let product = |number: u64, most: u64| {
                let product = u128::from(number) * u128::from(factor.digits);
                let denominator = u128::from(factor.denominator);
                let scaled = ((product + denominator / 2) / denominator).max(1);
                u64::try_from(scaled)
                    .ok()
                    .filter(|it| *it <= most)
                    .ok_or_else(|| error(format!("{scaled}, expected at most {most}")))
            };
            match &mut client.load {
                Load::Rate { rate, .. } | Load::Poisson { rate, .. } => {
                    let scaled = rate.scaled(factor.digits, factor.denominator);
                    *rate = scaled.map_err(|it| error(it.to_string()))?;
                }
                Load::Concurrent(number) | Load::Users { users: number, .. } => {
                    *number = product(*number, u32::MAX.into())?;
                }
                Load::Throughput(bits) => *bits = product(*bits, THROUGHPUT_MAX)?,
                Load::OnDemand => {}
            }
        }
        Ok(())
    }

    /// Adds a note for each server that no client of the plan connects to, although its template
    /// has clients.
    fn note_unreached_servers(&mut self) {
        let clients: Vec<_> = self.templates.iter().filter_map(|it| it.client.as_ref()).collect();
        let is_unreached = |template: &&Template| {
            let range = template.server.as_ref().and_then(|it| it.addresses);
            let is_reached =
                |range: AddressRange| clients.iter().any(|it| it.servers.overlaps(&range));
            template.client.is_some() && range.is_some_and(|it| !is_reached(it))
        };
        let notes = self.templates.iter().filter(is_unreached).map(|template| {
            format!(
                "{}.server.addresses: no client of the plan connects to any of them; they are only \
                 reachable through a device that rewrites addresses, such as a load balancer",
                template.path
            )
        });
        self.notes.extend(notes.collect::<Vec<_>>());
    }

    /// Checks that the groups that programs select exist, and that programs can start their flows.
    fn check_groups(&self) -> Result<(), PlanError> {
        let groups = self.groups();
        for template in &self.templates {
            let client = template.client.iter().map(|it| ("client", it.transmit, &it.program));
            let server = template.server.iter().map(|it| ("server", it.transmit, &it.program));
            for (side, port, steps) in client.chain(server) {
                let error = |place: String, message: String| {
                    let path = format!("{}.{side}.program{place}", template.path);
                    Err(PlanError { path, message })
                };
                if let Some((place, name)) = steps::unknown_group(steps, &groups) {
                    let expected = match groups.as_slice() {
                        [] => "the group of a template, of which none has one".to_owned(),
                        groups => format!("one of {}", groups.join(", ")),
                    };
                    return error(place, format!("found {name:?}, expected {expected}"));
                }
                let is_ipv4 = template.is_ipv4(side);
                if let Some((place, message)) = self.unusable_group(&groups, port, is_ipv4, steps) {
                    return error(place, message);
                }
            }
        }
        Ok(())
    }

    /// Returns the relative path of a step that selects a group with an unusable template, and the
    /// error. The flows of `run_flow` come from the address of the flow that starts them. So the
    /// group's clients on this port must use the same IP version. `start_flow` connects to its own
    /// server and needs no check.
    fn unusable_group(
        &self,
        groups: &[&str],
        port: usize,
        is_ipv4: Option<bool>,
        steps: &[Step],
    ) -> Option<(String, String)> {
        let is_ipv4 = is_ipv4.filter(|_| steps::any(steps, |it| *it == Step::RunFlow))?;
        let other_servers = |it: &Template| {
            let client = it.client.as_ref().filter(|client| client.transmit == port)?;
            Some(client.servers.first).filter(|first| first.is_ipv4() != is_ipv4)
        };
        let others: Vec<_> =
            self.templates.iter().filter(|it| other_servers(it).is_some()).collect();
        let has_other = |group: &str| others.iter().find(|it| it.group.as_deref() == Some(group));
        let fitting: Vec<_> =
            groups.iter().copied().filter(|group| has_other(group).is_none()).collect();
        let (place, name) = steps::unknown_group(steps, &fitting)?;
        let other = has_other(name)?;
        let message = format!(
            "found {name:?}, in which {:?} connects to {}, expected a group that connects over {}, \
             like the flow that starts it",
            other.name,
            other_servers(other)?,
            if is_ipv4 { "IPv4" } else { "IPv6" }
        );
        Some((place, message))
    }

    /// Parses a plan in YAML or JSON that uses no captures.
    ///
    /// # Errors
    /// All errors, each with its path in the plan.
    pub fn parse(text: &str) -> Result<Self, PlanErrors> {
        Self::parse_with(text, |_| Err("captures are not available here".to_owned()))
    }

    /// Parses a plan in YAML or JSON. `load` returns the flows of a capture by its name in the
    /// plan, or the reason of a failure.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        text: &str,
        mut load: impl FnMut(&str) -> Result<Imported, String>,
    ) -> Result<Self, PlanErrors> {
        let document = crate::document::read(text)?;
        let root = ValueAt::root(&document);
        let fields = root.fields(&PLAN)?;
        let mut problems = ErrorCollector::default();
        let mut notes = Vec::new();
        let ports = problems.take(fields.required("ports", "a list of ports"));
        let ports =
            ports.map_or_else(Vec::new, |it| read_ports(&it, &EMULATION_PORT, &mut problems));
        let templates = problems.take(fields.required("templates", "a list of templates"));
        let templates = templates.map_or_else(Vec::new, |it| {
            read_templates(&it, &ports, &mut load, &mut notes, &mut problems)
        });
        let latency = fields.get("latency");
        let latency = latency.map_or_else(Vec::new, |it| latency::read(&it, &ports, &mut problems));
        let mut plan = Self { ports, templates, answered_addresses: Vec::new(), latency, notes };
        plan.note_unreached_servers();
        problems.take(plan.check_groups().and_then(|()| flow_cycles::check(&plan)));
        latency::check(&plan, &mut problems);
        problems.finish(plan)
    }
}

fn read_templates(
    place: &ValueAt<'_>,
    ports: &[Port],
    load: &mut dialogue::LoadCapture<'_>,
    notes: &mut Vec<String>,
    problems: &mut ErrorCollector,
) -> Vec<Template> {
    let Some(items) = problems.take(place.items("templates")) else { return Vec::new() };
    if items.is_empty() {
        problems.take::<()>(Err(place.error("no template", "at least one")));
    }
    if items.len() > TEMPLATES_MAX {
        let expected = format!("at most {TEMPLATES_MAX} templates");
        problems.take::<()>(Err(place.unexpected(expected)));
        return Vec::new();
    }
    let mut templates: Vec<Template> = Vec::new();
    let mut taken = ReassemblyResult::default();
    let with_first_bytes = ports_with_first_bytes(&items);
    for item in &items {
        let uses_first_bytes = with_first_bytes.contains(&server_port(item));
        let read = read_item(item, ports, load, notes, uses_first_bytes);
        for template in problems.take(read).unwrap_or_default() {
            problems.take_all(taken.add(item, &template, &templates, ports));
            templates.push(template);
        }
        if templates.len() > TEMPLATES_MAX {
            let found = format!("{} templates with the conversations up to here", templates.len());
            problems.take::<()>(Err(item.error(found, format!("at most {TEMPLATES_MAX}"))));
            break;
        }
    }
    for template in &templates {
        problems.take(tls::check(template, &templates));
        problems.take(http2::check(template, &templates));
        problems.take(expect::check(template, &templates));
        problems.take(on_demand::check(template, &templates));
        problems.take(control_flow::check(template));
        problems.take(datagrams::check(template, ports));
    }
    templates
}

/// Returns where first bytes select the server: names of ports, and listening port numbers.
fn ports_with_first_bytes<'a>(items: &[ValueAt<'a>]) -> BTreeSet<(Option<&'a str>, u64)> {
    let looks = |item: &&ValueAt<'_>| !item.value()["server"]["first_bytes"].is_null();
    items.iter().filter(looks).map(server_port).collect()
}

/// Returns where the server of an item listens: the name of its port, and the port number.
fn server_port<'a>(item: &ValueAt<'a>) -> (Option<&'a str>, u64) {
    let server = &item.value()["server"];
    // Without a number, the preset `http` listens at 80; others do not matter here.
    (server["tx"].as_str(), server["port"].as_u64().unwrap_or(80))
}

/// Names and servers of the templates so far, to detect conflicts.
#[derive(Default)]
struct ReassemblyResult {
    names: BTreeSet<String>,
    /// Name of the template that receives each set of flows, by port and listening port.
    flows: BTreeMap<(usize, u16, FlowCriteria), String>,
    /// Indices of the templates with TCP servers, by port and listening port.
    listening: BTreeMap<(usize, u16), Vec<usize>>,
}

/// Criteria of the flows of a server at a port: transport protocol, addresses and first bytes.
type FlowCriteria = (Transport, Option<AddressRange>, Option<Vec<(u8, u8, u8)>>);

impl ReassemblyResult {
    /// Adds a template from `place`, after the templates `before`.
    ///
    /// # Errors
    /// Its name is not unique, another server has the same flows, or a server that only first bytes
    /// distinguish has other TCP settings.
    fn add(
        &mut self,
        place: &ValueAt<'_>,
        template: &Template,
        before: &[Template],
        ports: &[Port],
    ) -> Result<(), PlanErrors> {
        let mut problems = ErrorCollector::default();
        problems.take(self.add_name(place, &template.name));
        let server = template.server.as_ref();
        if let Some((server, listen)) = server.and_then(|it| Some((it, it.listen?))) {
            let at = (server.transmit, listen);
            problems.take(self.add_flows(place, template, server, at, ports));
            if template.transport == Transport::Tcp {
                let listening = self.listening.entry(at).or_default();
                let others = listening.iter().map(|it| &before[*it]);
                problems.take(check_handshake(place, server, others));
                listening.push(before.len());
            }
        }
        problems.finish(())
    }

    fn add_name(&mut self, place: &ValueAt<'_>, name: &str) -> Result<(), PlanError> {
        if self.names.insert(name.to_owned()) {
            return Ok(());
        }
        Err(place.error(format!("a second template {name:?}"), "a unique name"))
    }

    fn add_flows(
        &mut self,
        place: &ValueAt<'_>,
        template: &Template,
        server: &Server,
        (port, listen): (usize, u16),
        ports: &[Port],
    ) -> Result<(), PlanError> {
        let bytes = server.first_bytes.as_ref().map(|it| it.0.clone());
        let flows = (template.transport, server.addresses, bytes);
        match self.flows.entry((port, listen, flows)) {
            Entry::Vacant(entry) => {
                entry.insert(template.name.clone());
                Ok(())
            }
            Entry::Occupied(other) => Err(place.message_error(format!(
                "{:?} has a server at port {listen} of {:?}, where {:?} has one already",
                template.name,
                ports[port].name,
                other.get()
            ))),
        }
    }
}

/// Compares a server's TCP settings in the handshake with those of other servers at its port. They
/// must be equal if only first bytes distinguish the servers. `place`: its template.
fn check_handshake<'a>(
    place: &ValueAt<'_>,
    server: &Server,
    mut others: impl Iterator<Item = &'a Template>,
) -> Result<(), PlanError> {
    let server_place = place.child("server", &place.value()["server"]);
    others.try_for_each(|it| match &it.server {
        Some(other) if overlap_until_first_bytes(other, server) => {
            tcp::check_beginning(&server.tcp, (&other.tcp, &it.name), [&server_place, place])
        }
        _ => Ok(()),
    })
}

/// Returns whether some connections may be for either server until their first bytes arrive. Of two
/// servers at a port, the one with fewer addresses has priority: without first bytes it gets all
/// connections to these.
fn overlap_until_first_bytes(first: &Server, second: &Server) -> bool {
    let looks = |it: &Server| it.first_bytes.is_some();
    match (first.addresses, second.addresses) {
        (Some(one), Some(other)) if !one.overlaps(&other) => false,
        (one, other) => {
            let [one, other] = [one, other].map(|it| it.map_or(u64::MAX, |it| it.count.into()));
            match one.cmp(&other) {
                Ordering::Less => looks(first),
                Ordering::Equal => looks(first) || looks(second),
                Ordering::Greater => looks(second),
            }
        }
    }
}

/// Reads an item of the list `templates`: one template, or one for each dialogue.
fn read_item(
    place: &ValueAt<'_>,
    ports: &[Port],
    load: &mut dialogue::LoadCapture<'_>,
    notes: &mut Vec<String>,
    has_server_selection: bool,
) -> Result<Vec<Template>, PlanError> {
    let dialogues = dialogues::read(&place.fields(&TEMPLATE)?, load, has_server_selection)?;
    if dialogues.is_empty() {
        return Ok(vec![read_template(place, ports, None)?]);
    }
    let read = |dialogue| read_template(place, ports, Some(dialogue));
    let mut templates = dialogues.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let shared = dialogues.iter().take_while(|it| it.on_demand.is_none()).count();
    split::split_load(place, &mut templates[..shared])?;
    split::split_servers(place, &mut templates[..shared], &dialogues)?;
    let path = place.path();
    notes.extend(dialogues.into_iter().flat_map(|it| it.notes).map(|it| format!("{path}: {it}")));
    Ok(templates)
}

fn read_template(
    place: &ValueAt<'_>,
    ports: &[Port],
    dialogue: Option<&Dialogue>,
) -> Result<Template, PlanError> {
    let fields = place.fields(&TEMPLATE)?;
    let mut name = fields.required("name", "a name")?.non_empty_string("a name")?.to_owned();
    if let Some(part) = dialogue.and_then(|it| it.part.as_ref()) {
        name = format!("{name}.{part}");
    }
    let on_demand = dialogue.and_then(|it| it.on_demand.as_ref());
    let group = match (on_demand, fields.get("group")) {
        (Some(it), _) => Some(it.group.clone()),
        (None, None) => None,
        (None, Some(group)) => Some(group.non_empty_string("the name of a group")?.to_owned()),
    };
    // The settings of a side override those of the template, which apply to both sides.
    let mut tcp = fields.get("tcp").map_or(Ok(Tcp::default()), |it| tcp::read(&it))?;
    if fields.get("conversation").is_some() {
        tcp = tcp.or(conversation::default_tcp());
    }
    let ip = fields.get("ip").map_or(Ok(Ip::default()), |it| ip::read(&it))?;
    let client = fields.get("client").map(|it| client::read(&it, ports, dialogue)).transpose()?;
    let mut client = client.map(|it| Client { tcp: it.tcp.or(tcp), ip: it.ip.or(ip), ..it });
    let server = fields.get("server").map(|it| read_server(&it, ports, dialogue)).transpose()?;
    let mut server = server.map(|it| Server { tcp: it.tcp.or(tcp), ip: it.ip.or(ip), ..it });
    let sides = [
        ("client", client.as_ref().map(|it| it.tcp)),
        ("server", server.as_ref().map(|it| it.tcp)),
    ];
    for (side, tcp) in sides {
        if let (Some(tcp), Some(side)) = (tcp, fields.get(side)) {
            tcp::check(&tcp, [&side, place])?;
        }
    }
    if let Some(dialogue::OnDemand { listen, .. }) = on_demand {
        client = client.map(Client::on_demand);
        server = server.map(|it| Server { listen: *listen, first_bytes: None, ..it });
        if listen.is_none() {
            server = server.map(|it| Server { addresses: None, vlans: Vec::new(), ..it });
        }
    }
    if dialogue.is_some() && fields.get("conversation").is_none() {
        let usual = presets::default_tcp();
        client = client.map(|it| Client { tcp: it.tcp.or(usual), ..it });
        server = server.map(|it| Server { tcp: it.tcp.or(usual), ..it });
    }
    // Clients of a dialogue connect to the port of the template's server by default.
    if let (Some(_), Some(client), Some(server)) = (dialogue, &mut client, &server)
        && place.value()["client"].get("server_port").is_none()
        && let Some(listen) = server.listen
    {
        client.server_port = listen;
    }
    if client.is_none() && server.is_none() {
        return Err(place.error("neither", "client, server, or both"));
    }
    let transport = match (fields.get("transport"), dialogue) {
        (None, dialogue) => dialogue.map_or(Transport::Tcp, |dialogue| dialogue.transport),
        (Some(place), Some(_)) => {
            return Err(
                place.message_error("the dialogue defines the transport: remove this field")
            );
        }
        (Some(place), None) => match place.text("tcp or udp")? {
            "tcp" => Transport::Tcp,
            "udp" => Transport::Udp,
            _ => return Err(place.unexpected("tcp or udp")),
        },
    };
    let programs = [client.as_ref().map(|it| &it.program), server.as_ref().map(|it| &it.program)];
    for (program, side) in programs.into_iter().zip(["client", "server"]) {
        if let Some(step) =
            program.and_then(|steps| steps::step_of_other_transport(steps, transport))
        {
            let (of, other) = match transport {
                Transport::Tcp => ("tcp", "datagrams"),
                Transport::Udp => ("udp", "connections"),
            };
            let message = format!("found a step for {other}, but the template's transport is {of}");
            let path = format!("{}.{side}.program{step}", place.path());
            return Err(PlanError { path, message });
        }
    }
    // A capture may contain conversations of both transport protocols.
    if transport == Transport::Udp && fields.get("conversation").is_none() {
        let sides = [Some(place.clone()), fields.get("client"), fields.get("server")];
        let with_tcp = sides.into_iter().flatten().find(|it| it.value().get("tcp").is_some());
        if let Some(with_tcp) = with_tcp {
            let tcp = with_tcp.child("tcp", &with_tcp.value()["tcp"]);
            return Err(tcp.error("tcp", "the template's transport to be tcp"));
        }
    }
    let mut tls = fields.get("tls").map_or(Ok(None), |it| tls::read(&it, transport))?;
    let http2 = http2::read(&fields, dialogue.map(|it| it.is_http2), transport)?;
    let path = place.path();
    match (&mut tls, http2) {
        (Some(tls), Some(_)) => http2::require_h2(tls, &path)?,
        // A program may use any protocol, so only the preset `http` is checked.
        (Some(tls), None) if fields.get("http").is_some() => http2::refuse_h2(tls, &path)?,
        _ => {}
    }
    Ok(Template { name, group, transport, client, server, tls, http2, path })
}

fn read_server(
    place: &ValueAt<'_>,
    ports: &[Port],
    dialogue: Option<&Dialogue>,
) -> Result<Server, PlanError> {
    let fields = place.fields(&SERVER)?;
    let transmit = find_port(&fields.required("tx", "the name of a port")?, ports)?;
    let listen = match fields.get("port").filter(|it| it.value() == "on_demand") {
        Some(_) => None,
        None => Some(dialogues::port(&fields, "port", dialogue.map(|it| it.port))?),
    };
    let program = dialogues::steps(&fields, dialogue, Side::Server)?;
    let tcp = fields.get("tcp").map_or(Ok(Tcp::default()), |it| tcp::read(&it))?;
    let ip = fields.get("ip").map_or(Ok(Ip::default()), |it| ip::read(&it))?;
    let addresses = fields.get("addresses").map(|it| read_hosts(&it)).transpose()?;
    let vlans = fields.get("vlans").map_or(Ok(Vec::new()), |it| read_server_vlans(&it))?;
    let first_bytes = fields.get("first_bytes").map(|it| first_bytes::read(&it)).transpose()?;
    let conflicting =
        ["addresses", "vlans", "first_bytes"].into_iter().find_map(|name| fields.get(name));
    if let (None, Some(conflicting)) = (listen, conflicting) {
        return Err(conflicting.message_error("not allowed with `port: on_demand`: remove it"));
    }
    let stamp = None;
    Ok(Server { transmit, listen, addresses, vlans, first_bytes, program, stamp, tcp, ip })
}

/// Reads VLANs, each as a number or as a list of the outer and the inner one.
fn read_server_vlans(place: &ValueAt<'_>) -> Result<Vec<Vlans>, PlanError> {
    let items = place.items("VLANs, each one's number or the outer and the inner one's")?;
    items.iter().map(devices::read_vlans).collect()
}

#[cfg(test)]
mod tests;
