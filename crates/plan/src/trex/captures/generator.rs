//! Address pools of a generator.

use std::net::Ipv4Addr;

use super::read_flag;
use crate::document::error::{ErrorCollector, PlanError, PlanErrors};
use crate::document::value_at::{Fields, ValueAt};
use crate::trex::stateful::pools::{Pool, read_address};

const GENERATOR: [&str; 13] = [
    "distribution",
    "clients_start",
    "clients_end",
    "servers_start",
    "servers_end",
    "clients_per_gb",
    "min_clients",
    "dual_port_mask",
    "tcp_aging",
    "udp_aging",
    "split_to_ports",
    "generator_clients",
    "generator_servers",
];
const POOL: [&str; 11] = [
    "name",
    "distribution",
    "ip_start",
    "ip_end",
    "clients_per_gb",
    "min_clients",
    "dual_port_mask",
    "tcp_aging",
    "udp_aging",
    "track_ports",
    "split_to_ports",
];

/// Name of the default pool.
const DEFAULT_POOL: &str = "default";

/// Pools of a generator, with their names.
#[derive(Debug)]
pub(super) struct Pools {
    clients: Vec<(String, Pool)>,
    servers: Vec<(String, Pool)>,
}

pub(super) fn read(place: &ValueAt<'_>, notes: &mut Vec<String>) -> Result<Pools, PlanErrors> {
    let fields = place.fields(&GENERATOR)?;
    let mut problems = ErrorCollector::default();
    let mut pools = Pools { clients: Vec::new(), servers: Vec::new() };
    note_ignored_ports(&fields, notes);
    let offset =
        problems.take(read_offset(&fields, Ipv4Addr::UNSPECIFIED)).unwrap_or([0; 4].into());
    if fields.get("distribution").is_some() {
        let mut usual = |first, last| problems.take(read_pool(&fields, first, last, offset, notes));
        let of_clients = usual("clients_start", "clients_end");
        let of_servers = usual("servers_start", "servers_end");
        pools.clients.extend(of_clients.map(|pool| (DEFAULT_POOL.to_owned(), pool)));
        pools.servers.extend(of_servers.map(|pool| (DEFAULT_POOL.to_owned(), pool)));
    }
    for (list, into) in
        [("generator_clients", &mut pools.clients), ("generator_servers", &mut pools.servers)]
    {
        let Some(list) = fields.get(list) else { continue };
        for item in problems.take(list.items("pools")).unwrap_or_default() {
            into.extend(problems.take(read_named(&item, offset, notes)));
        }
    }
    problems.finish(pools)
}

fn read_named(
    place: &ValueAt<'_>,
    offset: Ipv4Addr,
    notes: &mut Vec<String>,
) -> Result<(String, Pool), PlanError> {
    let fields = place.fields(&POOL)?;
    let name =
        fields.required("name", "the name of a pool")?.string("the name of a pool")?.to_owned();
    note_ignored_ports(&fields, notes);
    let offset = read_offset(&fields, offset)?;
    Ok((name, read_pool(&fields, "ip_start", "ip_end", offset, notes)?))
}

/// Reads the address offset between one pair of ports and the next.
fn read_offset(fields: &Fields<'_>, usual: Ipv4Addr) -> Result<Ipv4Addr, PlanError> {
    fields.get("dual_port_mask").map_or(Ok(usual), |it| read_address(&it))
}

fn read_pool(
    fields: &Fields<'_>,
    first: &str,
    last: &str,
    offset: Ipv4Addr,
    notes: &mut Vec<String>,
) -> Result<Pool, PlanError> {
    const DISTRIBUTIONS: &str = "seq or random";
    let is_random = match fields.get("distribution") {
        None => false,
        Some(place) => match place.text(DISTRIBUTIONS)? {
            "seq" => false,
            "random" => true,
            "normal" => {
                notes.push(format!("{}: normal is seq, as in TRex", place.path()));
                false
            }
            _ => return Err(place.unexpected(DISTRIBUTIONS)),
        },
    };
    let first = read_address(&fields.required(first, "an IPv4 address")?)?;
    let last = fields.required(last, "an IPv4 address")?;
    let more = read_address(&last)?.to_bits().checked_sub(first.to_bits());
    let more = more.ok_or_else(|| last.unexpected(format!("{first} or a later address")))?;
    Ok(Pool { first, count: more.saturating_add(1), offset, is_random })
}

fn note_ignored_ports(fields: &Fields<'_>, notes: &mut Vec<String>) {
    for name in ["track_ports", "split_to_ports"] {
        let ignored = fields.get(name).filter(|it| read_flag(it).unwrap_or(true));
        notes.extend(ignored.map(|it| {
            format!(
                "{}: ignored: each pair of client and server uses the whole port range",
                it.path()
            )
        }));
    }
}

impl Pools {
    /// Returns the client and server pools of an entry.
    pub(super) fn of(&self, fields: &Fields<'_>) -> Result<[Pool; 2], PlanError> {
        let find = |field: &str, pools: &[(String, Pool)]| {
            let place = fields.get(field);
            let name =
                place.as_ref().map_or(Ok(DEFAULT_POOL), |it| it.string("the name of a pool"))?;
            let found = pools.iter().find(|(known, _)| known == name).map(|(_, pool)| *pool);
            found.ok_or_else(|| {
                let known: Vec<_> = pools.iter().map(|(name, _)| name.as_str()).collect();
                let expected = match known.as_slice() {
                    [] => "a pool of the generator, which has none".to_owned(),
                    known => format!("one of the generator's: {}", known.join(", ")),
                };
                fields
                    .required(field, &expected)
                    .map_or_else(|error| error, |it| it.unexpected(expected))
            })
        };
        Ok([find("client_pool", &self.clients)?, find("server_pool", &self.servers)?])
    }
}
