//! Parses the client side of a template.

use wirestorm_base::rate::Rate;
use wirestorm_base::time::Duration;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::{Load, ThinkTime};
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Side;
use wirestorm_wire::packet::MacAddress;

use super::delay;
use super::devices::{self};
use super::dialogue::Dialogue;
use super::dialogues;
use super::ip::{self, Ip};
use super::tcp::{self, Tcp};
use super::types::Client;
use crate::document::error::PlanError;
use crate::document::port::{Port, find_port};
use crate::document::range::{RANGE, read_hosts, read_ports};
use crate::document::time::read_time;
use crate::document::value_at::{Fields, ValueAt};

pub(super) const CLIENT: [&str; 17] = [
    "tx",
    "addresses",
    "order",
    "consecutive_flows",
    "reuse_after",
    "ports",
    "servers",
    "pairing",
    "server_port",
    "ethernet",
    "devices",
    "load",
    "ramp_up",
    "limit",
    "program",
    "tcp",
    "ip",
];
pub(super) const ETHERNET: [&str; 1] = ["dst"];
pub(super) const USERS: [&str; 2] = ["users", "think_time"];
pub(super) const RATE: [&str; 2] = ["rate", "concurrent_max"];
pub(super) const POISSON: [&str; 2] = ["poisson", "concurrent_max"];
pub(super) const LOADS: [&str; 5] = ["rate", "poisson", "concurrent", "throughput", "users"];

pub(super) fn read(
    place: &ValueAt<'_>,
    ports: &[Port],
    dialogue: Option<&Dialogue>,
) -> Result<Client, PlanError> {
    let fields = place.fields(&CLIENT)?;
    let transmit = find_port(&fields.required("tx", "the name of a port")?, ports)?;
    let servers_place = fields.required("servers", RANGE)?;
    let servers = read_hosts(&servers_place)?;
    let addresses = fields.get("addresses").map(|it| read_hosts(&it)).transpose()?;
    let first = match addresses {
        Some(range) => Some(range.first),
        None => ports[transmit].addresses.first().map(|prefix| prefix.address),
    };
    let Some(first) = first else {
        let message = format!(
            "the clients have no addresses: give `addresses` here, or to port {:?}",
            ports[transmit].name
        );
        return Err(place.message_error(message));
    };
    if first.is_ipv4() != servers.first.is_ipv4() {
        let expected = format!("addresses of the clients' family, such as {first}");
        return Err(servers_place.unexpected(expected));
    }
    let clients = addresses.unwrap_or(AddressRange { first, count: 1 });
    let destination = match fields.get("ethernet") {
        None => None,
        Some(ethernet) => read_destination(&ethernet)?,
    };
    let load = read_load(
        &fields
            .required("load", "one of the fields rate, poisson, concurrent, throughput, users")?,
    )?;
    let ramp = match fields.get("ramp_up") {
        None => Duration::ZERO,
        Some(ramp) if !supports_ramp(&load) => {
            return Err(
                ramp.error("a ramp", "none: only rate, poisson, concurrent and users have one")
            );
        }
        Some(ramp) => read_time(&ramp)?,
    };
    let by = fields.get("devices").map_or(Ok(Vec::new()), |it| devices::read(&it))?;
    // Programs start the flows of other loads from their own clients' addresses.
    if load != Load::OnDemand {
        if clients.overlaps(&servers) {
            let expected = format!("addresses other than the clients', which are {clients}");
            return Err(servers_place.unexpected(expected));
        }
        if let Some(place) = fields.get("devices") {
            devices::check(&place, &by, clients)?;
        }
    }
    let limit = fields.get("limit").map(|it| it.integer(1, u64::MAX)).transpose()?;
    let order = fields.get("order").map_or(Ok(ClientOrder::RoundRobin), |it| read_order(&it))?;
    let pairing = fields.get("pairing").map_or(Ok(Pairing::RoundRobin), |it| read_pairing(&it))?;
    check_random_selection(&fields, order, pairing)?;
    Ok(Client {
        transmit,
        addresses,
        order,
        consecutive_flows: fields
            .get("consecutive_flows")
            .map_or(Ok(1), |it| it.integer(1, u32::MAX.into()))? as u32,
        reuse_after: fields.get("reuse_after").map(|it| it.integer(1, u64::MAX)).transpose()?,
        pairing,
        ports: fields.get("ports").map_or(Ok(1_024..=65_535), |it| read_ports(&it))?,
        servers,
        server_port: dialogues::port(
            &fields,
            "server_port",
            Some(dialogue.map_or(80, |it| it.port)),
        )?,
        destination,
        devices: by,
        load,
        ramp_up: ramp,
        limit,
        program: dialogues::steps(&fields, dialogue, Side::Client)?,
        stamp: None,
        tcp: fields.get("tcp").map_or(Ok(Tcp::default()), |it| tcp::read(&it))?,
        ip: fields.get("ip").map_or(Ok(Ip::default()), |it| ip::read(&it))?,
    })
}

/// Refuses `consecutive_flows` with random clients, and `reuse_after` with random clients or servers: a random
/// choice has no sequence that could continue or repeat.
fn check_random_selection(
    fields: &Fields<'_>,
    order: ClientOrder,
    pairing: Pairing,
) -> Result<(), PlanError> {
    let (random_choice, instead) = match (order, pairing) {
        (ClientOrder::Random, _) => ("order: random", "order: round_robin"),
        (_, Pairing::Random) => ("pairing: random", "pairing: round_robin or fixed"),
        _ => return Ok(()),
    };
    let expected =
        format!("none with {random_choice}, which is random for each connection, or {instead}");
    if let Some(turn) = fields.get("consecutive_flows").filter(|_| order == ClientOrder::Random)
        && turn.integer(1, u32::MAX.into())? > 1
    {
        return Err(turn.unexpected(expected));
    }
    match fields.get("reuse_after") {
        Some(again) => Err(again.unexpected(expected)),
        None => Ok(()),
    }
}

/// Returns whether a load supports a ramp.
const fn supports_ramp(load: &Load) -> bool {
    !matches!(load, Load::Throughput(_) | Load::OnDemand)
}

fn read_order(place: &ValueAt<'_>) -> Result<ClientOrder, PlanError> {
    const EXPECTED: &str = "round_robin or random";
    match place.text(EXPECTED)? {
        "round_robin" => Ok(ClientOrder::RoundRobin),
        "random" => Ok(ClientOrder::Random),
        _ => Err(place.unexpected(EXPECTED)),
    }
}

fn read_pairing(place: &ValueAt<'_>) -> Result<Pairing, PlanError> {
    const EXPECTED: &str = "round_robin, random or fixed";
    match place.text(EXPECTED)? {
        "round_robin" => Ok(Pairing::RoundRobin),
        "random" => Ok(Pairing::Random),
        "fixed" => Ok(Pairing::Fixed),
        _ => Err(place.unexpected(EXPECTED)),
    }
}

fn read_destination(place: &ValueAt<'_>) -> Result<Option<MacAddress>, PlanError> {
    const EXPECTED: &str = "an Ethernet address such as 02:00:00:00:00:01, or auto";
    let fields = place.fields(&ETHERNET)?;
    let Some(destination) = fields.get("dst") else { return Ok(None) };
    match destination.text(EXPECTED)? {
        "auto" => Ok(None),
        text if text.parse::<MacAddress>().is_ok() => {
            devices::read_unicast_mac(&destination).map(Some)
        }
        _ => Err(destination.unexpected(EXPECTED)),
    }
}

/// Maximum throughput in bits per second, the bound of all rates.
pub(super) const THROUGHPUT_MAX: u64 = 1_000_000_000_000_000_000;

fn read_load(place: &ValueAt<'_>) -> Result<Load, PlanError> {
    const BITS: &str = "bits of data a second, such as 100M, more than 0 and at most 10^18";
    if place.value() == "on_demand" {
        return Ok(Load::OnDemand);
    }
    let conflicting =
        ["ramp_up", "limit"].into_iter().find(|name| place.value().get(name).is_some());
    if let Some(name) = conflicting {
        let field = place.child(name, &place.value()[name]);
        return Err(field
            .message_error(format!("belongs in the client, next to `load`: move {name} there")));
    }
    if let Some(load) = read_users(place)? {
        return Ok(load);
    }
    if let Some(load) = read_rate(place)? {
        return Ok(load);
    }
    if !place.value().is_object() {
        return Err(place.unexpected(format!("on_demand, or fields: {}", LOADS.join(", "))));
    }
    let or_on_demand = |error: PlanError| PlanError {
        message: format!("{}, or the string on_demand", error.message),
        ..error
    };
    let (form, value) = place.choice(&LOADS).map_err(or_on_demand)?;
    match form {
        "throughput" => {
            let text = value.number_text().ok_or_else(|| value.unexpected(BITS))?;
            let rate = Rate::parse_per_second(&text, 1).map_err(|_| value.unexpected(BITS))?;
            Ok(Load::Throughput(rate.per_second().max(1.0) as u64))
        }
        _ => value.integer(1, u32::MAX.into()).map(Load::Concurrent),
    }
}

/// Reads `rate` or `poisson`, with an optional `concurrent_max`; `None` for another load, and for several
/// loads, which the caller refuses.
fn read_rate(place: &ValueAt<'_>) -> Result<Option<Load>, PlanError> {
    const EXPECTED: &str =
        "connections a second, such as 1000 or 10k, more than 0 and at most 10^18";
    let has = |name: &str| place.value().get(name).is_some();
    if LOADS.iter().filter(|it| has(it)).count() != 1 {
        return Ok(None);
    }
    let names = match (has(RATE[0]), has(POISSON[0])) {
        (true, _) => RATE,
        (_, true) => POISSON,
        _ => return Ok(None),
    };
    let fields = place.fields(&names)?;
    let rate = fields.required(names[0], EXPECTED)?;
    let text = rate.number_text().ok_or_else(|| rate.unexpected(EXPECTED))?;
    let rate = Rate::parse_per_second(&text, 1).map_err(|_| rate.unexpected(EXPECTED))?;
    let at_most = fields.get(names[1]).map(|it| it.integer(1, u32::MAX.into())).transpose()?;
    Ok(Some(match names {
        RATE => Load::Rate { rate, concurrent_max: at_most },
        _ => Load::Poisson { rate, concurrent_max: at_most },
    }))
}

/// Reads `users`, with an optional `think_time`; `None` for another load.
fn read_users(place: &ValueAt<'_>) -> Result<Option<Load>, PlanError> {
    if place.value().get("users").is_none() {
        return Ok(None);
    }
    let fields = place.fields(&USERS)?;
    let users = fields.required("users", "how many")?.integer(1, u32::MAX.into())?;
    let think = match fields.get("think_time") {
        None => ThinkTime::Uniform { min: Duration::ZERO, max: Duration::ZERO },
        Some(think) => match delay::read_delay(&think)? {
            Step::RandomDelay { mean, stddev: None } => ThinkTime::Exponential { mean },
            Step::RandomDelay { mean, stddev: Some(deviation) } => {
                ThinkTime::Normal { mean, stddev: deviation }
            }
            Step::Delay { min, max } => ThinkTime::Uniform { min, max },
            _ => return Err(think.unexpected("a time, as for delay")),
        },
    };
    Ok(Some(Load::Users { users, think_time: think }))
}
