//! Templates of a stateful profile: a client side and a server side.

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};

use super::StatefulOptions;
use super::buffers::entry;
use super::pools::Pool;
use super::program::SideProgram;
use super::tables::Tables;
use super::tunables::{self, Scope, Tunables};
use crate::document::error::PlanError;
use crate::document::value_at::{Fields, ValueAt};
use crate::emulation::{Client, FirstBytes, Server, Template, read_masked};

const TEMPLATE: [&str; 3] = ["client_template", "server_template", "tg_id"];
const CLIENT: [&str; 9] = [
    "program_index",
    "port",
    "cps",
    "limit",
    "cont",
    "core_base",
    "cluster",
    "ip_gen",
    "glob_info",
];
const SERVER: [&str; 3] = ["program_index", "assoc", "glob_info"];
const IP_GEN: [&str; 2] = ["dist_client", "dist_server"];
const POOL: [&str; 1] = ["index"];
const RULE: [&str; 5] = ["port", "ip_start", "ip_end", "l7_map", "assoc_id"];
const L7_MAP: [&str; 3] = ["offset", "mask", "value"];

/// Context for reading the templates of one pair of ports.
pub(super) struct TemplateReader<'a> {
    pub(super) tables: &'a Tables,
    pub(super) options: &'a StatefulOptions,
    pub(super) pair: u32,
}

impl TemplateReader<'_> {
    pub(super) fn template(
        &self,
        place: &ValueAt<'_>,
        number: usize,
        notes: &mut Vec<String>,
    ) -> Result<Template, PlanError> {
        let fields = place.fields(&TEMPLATE)?;
        let client = fields.required("client_template", "fields")?;
        let server = fields.required("server_template", "fields")?;
        let (client_fields, server_fields) = (client.fields(&CLIENT)?, server.fields(&SERVER)?);
        let pools = self.pools(&client_fields)?;
        let request = self.program(&client_fields)?;
        let answers = self.program(&server_fields)?;
        if request.transport != answers.transport {
            return Err(place.message_error("one program uses TCP, the other one UDP"));
        }
        let group = match fields.get("tg_id") {
            None => None,
            Some(id) => {
                let names = &self.tables.groups;
                let number = id.integer(1, names.len().max(1) as u64)? as usize;
                Some(
                    names
                        .get(number - 1)
                        .ok_or_else(|| id.unexpected("a group of tg_names"))?
                        .clone(),
                )
            }
        };
        let tunables = self.tunables(&client_fields, self.tables.clients, notes)?;
        let mut client_side = self.client(&client_fields, pools, request, tunables)?;
        let mut server_side =
            self.server(&server_fields, pools, request, answers, tunables, notes)?;
        if request.is_stamped || answers.is_stamped {
            let source = source(&server_fields, number)?;
            client_side.stamp = request.is_stamped.then_some(source);
            server_side.stamp = answers.is_stamped.then_some(source);
        }
        Ok(Template {
            http2: None,
            name: match self.pair {
                0 => number.to_string(),
                pair => format!("{number}/{pair}"),
            },
            group,
            transport: request.transport,
            client: Some(client_side),
            server: Some(server_side),
            tls: None,
            path: place.path(),
        })
    }

    /// Returns the pools of the clients and the servers.
    fn pools(&self, client: &Fields<'_>) -> Result<[Pool; 2], PlanError> {
        let fields = client.required("ip_gen", "fields")?.fields(&IP_GEN)?;
        let pool = |name: &str| {
            let index = fields.required(name, "fields")?.fields(&POOL)?;
            let index = index.required("index", "the number of an address pool")?;
            entry(&index, &self.tables.pools, "address pools").copied()
        };
        Ok([pool("dist_client")?, pool("dist_server")?])
    }

    fn program(&self, side: &Fields<'_>) -> Result<&SideProgram, PlanError> {
        let index = side.required("program_index", "the number of a program")?;
        entry(&index, &self.tables.programs, "programs")
    }

    /// Returns the tunables of one side of a template. Its own take precedence over `all`, those of
    /// the whole side.
    fn tunables(
        &self,
        side: &Fields<'_>,
        all: Tunables,
        notes: &mut Vec<String>,
    ) -> Result<Tunables, PlanError> {
        let template_tunables = match side.get("glob_info") {
            None => Tunables::default(),
            Some(place) => tunables::read(&place, Scope::Template, notes)?,
        };
        Ok(template_tunables.or(all))
    }

    /// Returns whether the flows use IPv6, which the clients' tunables set.
    fn is_ipv6(&self, clients: &Tunables) -> bool {
        self.options.ipv6 || clients.ipv6.is_enabled == Some(true)
    }

    fn client(
        &self,
        fields: &Fields<'_>,
        [clients, servers]: [Pool; 2],
        request: &SideProgram,
        tunables: Tunables,
    ) -> Result<Client, PlanError> {
        let is_ipv6 = self.is_ipv6(&tunables);
        let prefix = |it: Option<[u8; 16]>| is_ipv6.then(|| it.unwrap_or_default());
        let port = fields.required("port", "the number of a port")?.integer(0, u16::MAX.into())?;
        let usual = tunables.or(Tunables::defaults(is_ipv6));
        // With `cont`, `limit` bounds the concurrent flows, otherwise the total.
        let is_at_once = fields.get("cont").is_some_and(|it| it.value().as_bool() == Some(true));
        let limit = self.limit(fields)?;
        let (at_most, limit) = if is_at_once { (limit, None) } else { (None, limit) };
        let load = self.load(fields, at_most)?;
        Ok(Client {
            transmit: self.pair as usize * 2,
            addresses: Some(clients.range(self.pair, prefix(tunables.ipv6.source))),
            order: if clients.is_random { ClientOrder::Random } else { ClientOrder::RoundRobin },
            pairing: if servers.is_random { Pairing::Random } else { Pairing::RoundRobin },
            consecutive_flows: 1,
            reuse_after: None,
            // The port range of TRex.
            ports: 1_024..=64_000,
            servers: servers.range(self.pair, prefix(tunables.ipv6.destination)),
            server_port: port as u16,
            destination: None,
            devices: Vec::new(),
            load,
            ramp_up: Duration::from_secs(self.tables.clients.ramp_s.unwrap_or(0).into()),
            limit,
            program: request.steps.clone(),
            stamp: None,
            tcp: usual.tcp,
            ip: usual.ip,
        })
    }

    fn load(&self, fields: &Fields<'_>, at_most: Option<u64>) -> Result<Load, PlanError> {
        const EXPECTED: &str = "flows a second";
        let Some(place) = fields.get("cps") else { return Ok(Load::OnDemand) };
        let cps = place.value().as_f64().filter(|cps| *cps >= 0.0);
        let cps = cps.ok_or_else(|| place.unexpected(EXPECTED))?;
        if cps == 0.0 {
            return Ok(Load::OnDemand);
        }
        let pairs = u64::from(self.options.pairs.max(1));
        Rate::parse_per_second(&format!("{cps:.9}"), 1)
            .and_then(|rate| rate.scaled(1, pairs))
            .map(|rate| Load::Rate { rate, concurrent_max: at_most })
            .map_err(|error| place.message_error(format!("found {cps}: {error}")))
    }

    /// Returns this pair's share of the flow limit. The first pair also gets the remainder.
    fn limit(&self, fields: &Fields<'_>) -> Result<Option<u64>, PlanError> {
        let Some(place) = fields.get("limit") else { return Ok(None) };
        let limit = place.integer(0, u64::MAX)?;
        if limit == 0 {
            return Ok(None);
        }
        let pairs = u64::from(self.options.pairs.max(1));
        let left_over = if self.pair == 0 { limit % pairs } else { 0 };
        Ok(Some(limit / pairs + left_over))
    }

    fn server(
        &self,
        fields: &Fields<'_>,
        [_, pool]: [Pool; 2],
        request: &SideProgram,
        answers: &SideProgram,
        of_clients: Tunables,
        notes: &mut Vec<String>,
    ) -> Result<Server, PlanError> {
        let rules = fields.required("assoc", "a list of rules")?;
        let rules = rules.items("rules").and_then(|items| {
            items
                .first()
                .cloned()
                .map(|first| (first, items.len()))
                .ok_or_else(|| rules.message_error("no rule, expected one"))
        })?;
        let (rule, count) = rules;
        if count > 1 {
            notes.push(format!("{}: the first rule of several, as in TRex", rule.path()));
        }
        let rule_fields = rule.fields(&RULE)?;
        let listen = rule_fields.required("port", "the number of a port")?;
        let is_ipv6 = self.is_ipv6(&of_clients);
        let addresses = match (rule_fields.get("ip_start"), rule_fields.get("ip_end")) {
            (None, None) => None,
            (Some(first), Some(last)) => {
                let prefix = is_ipv6.then(|| of_clients.ipv6.destination.unwrap_or_default());
                Some(pool.between(&first, &last, self.pair, prefix)?)
            }
            _ => return Err(rule.message_error("ip_start and ip_end belong together")),
        };
        let first_bytes = match rule_fields.get("l7_map") {
            None => None,
            Some(map) if answers.is_stamped => {
                notes.push(format!("{}: ignored with an add-on, as in TRex", map.path()));
                None
            }
            Some(map) => Some(read_first_bytes(&map, request)?),
        };
        let tunables = self.tunables(fields, self.tables.servers, notes)?;
        let tunables = tunables.or(Tunables::defaults(is_ipv6));
        Ok(Server {
            transmit: self.pair as usize * 2 + 1,
            listen: Some(listen.integer(0, u16::MAX.into())? as u16),
            addresses,
            vlans: Vec::new(),
            first_bytes,
            program: answers.steps.clone(),
            stamp: None,
            tcp: tunables.tcp,
            ip: tunables.ip,
        })
    }
}

/// Returns the number that names the server in the clients' datagrams with the add-on: `assoc_id`
/// of its rule, or a default. TRex increments the default with each loaded profile.
fn source(server: &Fields<'_>, number: usize) -> Result<u32, PlanError> {
    const FIRST: u32 = 0x1234_5678;
    let rules = server.required("assoc", "a list of rules")?.items("rules")?;
    let rule = rules.first().map(|it| it.fields(&RULE)).transpose()?;
    match rule.and_then(|it| it.get("assoc_id")) {
        Some(id) => id.integer(0, u32::MAX.into()).map(|it| it as u32),
        None => Ok(FIRST.wrapping_add(number as u32)),
    }
}

/// Reads the first bytes of a flow. Without `value` they are the first bytes that the client sends.
fn read_first_bytes(place: &ValueAt<'_>, request: &SideProgram) -> Result<FirstBytes, PlanError> {
    let fields = place.fields(&L7_MAP)?;
    let bytes = |place: ValueAt<'_>| -> Result<Vec<u8>, PlanError> {
        let items = place.items("bytes")?;
        items.iter().map(|it| it.integer(0, 255).map(|byte| byte as u8)).collect()
    };
    let offsets = fields.required("offset", "a list of offsets")?;
    let offset_bytes = bytes(offsets.clone())?;
    if !(1..=FirstBytes::COUNT_MAX).contains(&offset_bytes.len()) {
        return Err(offsets.unexpected(format!("1 to {} offsets", FirstBytes::COUNT_MAX)));
    }
    let masks = fields.get("mask").map_or(Ok(Vec::new()), bytes)?;
    let masks = masks.into_iter().chain(std::iter::repeat(u8::MAX));
    let values: Vec<u8> = match fields.get("value") {
        Some(values) => {
            let values = values.items("bytes")?;
            let masked = values.iter().zip(masks.clone());
            masked.map(|(value, mask)| read_masked(value, mask)).collect::<Result<_, _>>()?
        }
        None => {
            let sent = request.first_bytes();
            let places = offset_bytes.iter().map(|offset| usize::from(*offset));
            let sent = places.zip(masks.clone()).map(|(at, mask)| Some(sent.get(at)? & mask));
            let sent = sent.collect::<Option<_>>();
            sent.ok_or_else(|| offsets.message_error("the client sends fewer first bytes"))?
        }
    };
    if values.len() != offset_bytes.len() {
        return Err(place.message_error("each offset needs a value"));
    }
    let all = offset_bytes.into_iter().zip(masks).zip(values);
    Ok(FirstBytes(all.map(|((offset, mask), value)| (offset, mask, value)).collect()))
}
