//! Parses latency probes.

use std::net::IpAddr;

use wirestorm_base::rate::Rate;
use wirestorm_model::address_range::AddressRange;

use super::types::{EmulationPlan, Template, Transport};
use super::types::{LatencyProbe, ProbeProtocol};
use crate::document::error::{ErrorCollector, PlanError};
use crate::document::port::{Port, find_port};
use crate::document::value_at::{Fields, ValueAt};

/// Maximum probes per second.
pub(super) const RATE_MAX: u32 = 10_000;

pub(super) const LATENCY: [&str; 5] = ["from", "to", "protocol", "port", "rate"];

/// RFC 862: "A server listens for UDP datagrams on UDP port 7."
const ECHO_PORT: u16 = 7;

pub(super) fn read(
    place: &ValueAt<'_>,
    ports: &[Port],
    problems: &mut ErrorCollector,
) -> Vec<LatencyProbe> {
    let Some(items) = problems.take(place.items("probes")) else { return Vec::new() };
    items.iter().filter_map(|item| problems.take(read_probe(item, ports))).collect()
}

fn read_probe(place: &ValueAt<'_>, ports: &[Port]) -> Result<LatencyProbe, PlanError> {
    let fields = place.fields(&LATENCY)?;
    let from_place = fields.required("from", "the name of a port")?;
    let from = find_port(&from_place, ports)?;
    let Some(prefix) = ports[from].addresses.first() else {
        let expected = "a port with addresses; the first one sends the probes";
        return Err(
            from_place.error(format!("port {:?}, which has none", ports[from].name), expected)
        );
    };
    let to = read_target(&fields.required("to", TARGET)?, ports, prefix.address)?;
    let protocol = read_protocol(&fields)?;
    let rate = fields.get("rate").map_or(Ok(None), |it| read_rate(&it).map(Some))?;
    // Default: 100 probes per second.
    let usual = Rate::new(100, wirestorm_base::time::Duration::from_secs(1));
    let rate = rate.map_or(usual, Ok).map_err(|error| place.message_error(error.to_string()))?;
    Ok(LatencyProbe { from, to, protocol, rate, path: place.path() })
}

fn read_protocol(fields: &Fields<'_>) -> Result<ProbeProtocol, PlanError> {
    const PROTOCOLS: &str = "icmp or udp";
    let is_udp = match fields.get("protocol") {
        None => false,
        Some(place) => match place.text(PROTOCOLS)? {
            "icmp" => false,
            "udp" => true,
            _ => return Err(place.unexpected(PROTOCOLS)),
        },
    };
    match fields.get("port") {
        Some(place) if !is_udp => Err(place.error("a port", "one only with protocol: udp")),
        None if !is_udp => Ok(ProbeProtocol::Icmp),
        port => {
            let port = port.map_or(Ok(ECHO_PORT.into()), |it| it.integer(1, u16::MAX.into()))?;
            Ok(ProbeProtocol::Udp { port: port as u16 })
        }
    }
}

const TARGET: &str = "an address, or the name of a port that has one";

/// Reads an address, or the name of a port with an address of the same family as `asks`.
fn read_target(place: &ValueAt<'_>, ports: &[Port], asks: IpAddr) -> Result<IpAddr, PlanError> {
    let text = place.text(TARGET)?;
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port =
        ports.iter().find(|port| port.name == text).ok_or_else(|| place.unexpected(TARGET))?;
    let alike = port.addresses.iter().find(|prefix| prefix.address.is_ipv4() == asks.is_ipv4());
    alike.map(|prefix| prefix.address).ok_or_else(|| {
        let found = format!("port {text:?}, which has no address of the family of {asks}");
        place.error(found, TARGET)
    })
}

fn read_rate(place: &ValueAt<'_>) -> Result<Rate, PlanError> {
    let expected = || place.unexpected(format!("probes a second, up to {RATE_MAX}"));
    let text = place.number_text().ok_or_else(expected)?;
    let rate = Rate::parse_per_second(&text, 1).map_err(|_| expected())?;
    if rate.per_second() > f64::from(RATE_MAX) { Err(expected()) } else { Ok(rate) }
}

impl EmulationPlan {
    /// Returns the indices of the ports that send UDP probes back: those with the destination
    /// address. For ICMP probes there are none.
    pub fn echo_ports(&self, probe: &LatencyProbe) -> impl Iterator<Item = usize> {
        let is_udp = matches!(probe.protocol, ProbeProtocol::Udp { .. });
        let to = probe.to;
        let owns =
            move |port: &Port| is_udp && port.addresses.iter().any(|prefix| prefix.address == to);
        self.ports.iter().enumerate().filter(move |it| owns(it.1)).map(|it| it.0)
    }
}

/// Checks that clients or servers use the ports that send probes or send them back, since a run
/// opens no other ports. Also checks that no UDP server listens at the destination of a probe.
pub(super) fn check(plan: &EmulationPlan, problems: &mut ErrorCollector) {
    for probe in &plan.latency {
        let idle = |field: &str, port: usize| PlanError {
            path: format!("{}.{field}", probe.path),
            message: format!(
                "found port {:?}, expected one that clients or servers use",
                plan.ports[port].name
            ),
        };
        if !plan.uses(probe.from) {
            problems.take::<()>(Err(idle("from", probe.from)));
        }
        for port in plan.echo_ports(probe) {
            if !plan.uses(port) {
                problems.take::<()>(Err(idle("to", port)));
            }
            if let Some(template) = receives(plan, port, probe) {
                let message = format!(
                    "template {:?} has a server there, expected a UDP port without a server",
                    template.name
                );
                let path = format!("{}.port", probe.path);
                problems.take::<()>(Err(PlanError { path, message }));
            }
        }
    }
}

/// Returns a template whose server on `port` would receive the datagrams of a probe.
fn receives<'a>(
    plan: &'a EmulationPlan,
    port: usize,
    probe: &LatencyProbe,
) -> Option<&'a Template> {
    let ProbeProtocol::Udp { port: number } = probe.protocol else { return None };
    plan.templates.iter().find(|template| {
        template.transport == Transport::Udp
            && template.server.as_ref().is_some_and(|server| {
                let is_at = |it: AddressRange| it.offset_of(probe.to).is_some();
                server.transmit == port
                    && server.listen == Some(number)
                    && server.addresses.is_none_or(is_at)
            })
    })
}
