//! Parses the `ports` of a plan.

use std::net::IpAddr;

use wirestorm_base::rate::Rate;
use wirestorm_model::blackhole::Blackhole;
use wirestorm_model::impairment::Impairment;
use wirestorm_model::tunnel::ClientTunnels;
use wirestorm_wire::prefix::Prefix;

use super::address::{read_addresses, read_gateways};
use super::error::{ErrorCollector, PlanError};
use super::value_at::ValueAt;
use crate::{impairment, tunnels};

/// A port that sends or receives frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name in the plan.
    pub name: String,
    /// Interface, such as `eth1` or `netns/a:veth0`, if the plan sets it.
    pub location: Option<String>,
    /// Line rate in bits per second, if the plan sets it.
    pub speed: Option<Rate>,
    /// Addresses that the port owns as a host and answers ARP, neighbour discovery and pings for.
    pub addresses: Vec<Prefix>,
    /// Default gateways of the port's host.
    pub gateways: Vec<IpAddr>,
    /// Impairment of the frames that the port sends; only for ports of clients and servers.
    pub impairment: Option<Impairment>,
    /// Packets for no client or server that the port leaves unanswered.
    pub blackhole: Blackhole,
    /// GTP-U tunnels of the clients; only for ports of clients and servers. `None`: no tunnels.
    pub tunnels: Option<Vec<ClientTunnels>>,
}

impl Port {
    /// Creates a port on an interface, without addresses of its own.
    pub fn on_interface(interface: String, name: String, speed: Option<Rate>) -> Self {
        let location = Some(interface);
        Self { location, speed, ..Self::named(name) }
    }

    /// Creates a port with only a name.
    pub(crate) fn named(name: String) -> Self {
        Self {
            name,
            location: None,
            speed: None,
            addresses: Vec::new(),
            gateways: Vec::new(),
            impairment: None,
            blackhole: Blackhole::None,
            tunnels: None,
        }
    }
}

pub(crate) const PORT: [&str; 5] = ["name", "location", "speed", "addresses", "gateway"];

/// Fields of a port in a plan of clients and servers.
pub(crate) const EMULATION_PORT: [&str; 8] =
    ["name", "location", "speed", "addresses", "gateway", "impair", "blackhole", "tunnels"];

/// Reads the list of ports; `known` are the fields of a port.
pub(crate) fn read_ports(
    place: &ValueAt<'_>,
    known: &[&str],
    problems: &mut ErrorCollector,
) -> Vec<Port> {
    let Some(items) = problems.take(place.items("ports")) else { return Vec::new() };
    let mut ports: Vec<Port> = Vec::new();
    for item in items {
        // Keep a faulty port, so that flows can still refer to it without further errors.
        let wrong = || {
            let name = item.value()["name"].as_str()?.to_owned();
            let addresses = item.child("addresses", &item.value()["addresses"]);
            let addresses = read_addresses(&addresses).unwrap_or_default();
            Some(Port { addresses, ..Port::named(name) })
        };
        let Some(port) = problems.take(read_port(&item, known)).or_else(wrong) else { continue };
        if ports.iter().any(|other| other.name == port.name) {
            let error = item.error(format!("a second port {:?}", port.name), "a unique name");
            problems.take::<()>(Err(error));
        }
        ports.push(port);
    }
    ports
}

pub(crate) fn read_port(place: &ValueAt<'_>, known: &[&str]) -> Result<Port, PlanError> {
    let fields = place.fields(known)?;
    let name = fields.required("name", "a name")?.non_empty_string("a name")?.to_owned();
    let location = match fields.get("location") {
        None => None,
        Some(location) => {
            let expected = "an interface such as eth1 or netns/NAME:veth0";
            Some(location.text(expected)?.to_owned())
        }
    };
    let speed = match fields.get("speed") {
        None => None,
        Some(speed) => Some(read_speed(&speed)?),
    };
    let addresses = fields.get("addresses").map_or(Ok(Vec::new()), |it| read_addresses(&it))?;
    let gateways = match fields.get("gateway") {
        None => Vec::new(),
        Some(place) => {
            let gateways = read_gateways(&place)?;
            check_gateways(&place, &gateways, &addresses)?;
            gateways
        }
    };
    let impairment = fields.get("impair").map(|it| impairment::read(&it)).transpose()?;
    let blackhole =
        fields.get("blackhole").map_or(Ok(Blackhole::None), |it| read_blackhole(&it))?;
    let tunnels = fields.get("tunnels").map(|it| tunnels::read(&it, &addresses)).transpose()?;
    Ok(Port { name, location, speed, addresses, gateways, impairment, blackhole, tunnels })
}

/// Checks that each gateway is on-link for the port's own addresses. Any IPv6 address makes a
/// link-local gateway reachable (RFC 4861 section 5.1).
fn check_gateways(
    place: &ValueAt<'_>,
    gateways: &[IpAddr],
    prefixes: &[Prefix],
) -> Result<(), PlanError> {
    let is_near = |gateway: &IpAddr| match gateway {
        IpAddr::V6(gateway) if gateway.is_unicast_link_local() => {
            prefixes.iter().any(|prefix| prefix.address.is_ipv6())
        }
        gateway => prefixes.iter().any(|prefix| prefix.contains(*gateway)),
    };
    // A port without addresses resolves no next hop.
    match gateways.iter().find(|gateway| !prefixes.is_empty() && !is_near(gateway)) {
        None => Ok(()),
        Some(far) => {
            let networks: Vec<_> = prefixes
                .iter()
                .map(|prefix| format!("{}/{}", prefix.address, prefix.length))
                .collect();
            let expected = format!("a router in the port's networks: {}", networks.join(", "));
            Err(place.error(far, expected))
        }
    }
}

fn read_blackhole(place: &ValueAt<'_>) -> Result<Blackhole, PlanError> {
    const EXPECTED: &str = "none, syn or all";
    match place.text(EXPECTED)? {
        "none" => Ok(Blackhole::None),
        "syn" => Ok(Blackhole::Syn),
        "all" => Ok(Blackhole::All),
        _ => Err(place.unexpected(EXPECTED)),
    }
}

fn read_speed(place: &ValueAt<'_>) -> Result<Rate, PlanError> {
    let expected = "bits a second, such as 10G";
    let text = place.number_text().ok_or_else(|| place.unexpected(expected))?;
    Rate::parse_per_second(&text, 1).map_err(|_| place.unexpected(expected))
}

/// Returns the index of the port that the plan names here.
pub(crate) fn find_port(place: &ValueAt<'_>, ports: &[Port]) -> Result<usize, PlanError> {
    let name = place.string("the name of a port")?;
    ports.iter().position(|port| port.name == name).ok_or_else(|| {
        let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
        let expected = match names.as_slice() {
            [] => "a port of the plan, which has none".to_owned(),
            names => format!("one of the plan's ports: {}", names.join(", ")),
        };
        place.unexpected(expected)
    })
}
