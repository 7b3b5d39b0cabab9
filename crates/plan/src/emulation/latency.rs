//! Probes beside the load, as they are written.

use std::net::IpAddr;

use wirestorm_base::rate::Rate;

use super::EmulationPlan;
use super::read_port;
use crate::document::error::{PlanError, Problems};
use crate::document::place::Place;
use crate::document::port::Port;

/// Echo requests (ICMP, ICMPv6) from a port, beside what its clients and servers do: how long
/// answers take.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyProbe {
    /// The port whose own address asks, by its place in the plan.
    pub from: usize,
    /// Who is asked.
    pub to: IpAddr,
    /// How often.
    pub rate: Rate,
    /// Where it stands in the plan.
    pub path: String,
}

/// Probes a second, at most.
pub(super) const RATE_MAX: u32 = 10_000;

pub(super) const LATENCY: [&str; 3] = ["from", "to", "rate"];

pub(super) fn read(
    place: &Place<'_>,
    ports: &[Port],
    problems: &mut Problems,
) -> Vec<LatencyProbe> {
    let Some(items) = problems.take(place.items("probes")) else { return Vec::new() };
    items.iter().filter_map(|item| problems.take(read_probe(item, ports))).collect()
}

fn read_probe(place: &Place<'_>, ports: &[Port]) -> Result<LatencyProbe, PlanError> {
    let fields = place.fields(&LATENCY)?;
    let from_place = fields.need("from", "the name of a port")?;
    let from = read_port(&from_place, ports)?;
    let Some(own) = ports[from].addresses.first() else {
        let expected = "a port with addresses, of which the first one asks";
        return Err(
            from_place.error(format!("port {:?}, which has none", ports[from].name), expected)
        );
    };
    let to = read_target(&fields.need("to", TARGET)?, ports, own.address)?;
    let rate = fields.get("rate").map_or(Ok(None), |it| read_rate(&it).map(Some))?;
    // A hundred a second, where nothing is said.
    let usual = Rate::new(100, wirestorm_base::time::Duration::from_secs(1));
    let rate = rate.map_or(usual, Ok).map_err(|error| place.says(error.to_string()))?;
    Ok(LatencyProbe { from, to, rate, path: place.path() })
}

const TARGET: &str = "an address, or the name of a port that has one";

/// An address, or that of a port of the same family as the one that asks.
fn read_target(place: &Place<'_>, ports: &[Port], asks: IpAddr) -> Result<IpAddr, PlanError> {
    let text = place.text(TARGET)?;
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = ports.iter().find(|port| port.name == text).ok_or_else(|| place.wrong(TARGET))?;
    let alike = port.addresses.iter().find(|own| own.address.is_ipv4() == asks.is_ipv4());
    alike.map(|own| own.address).ok_or_else(|| {
        let found = format!("port {text:?}, which has no address of the family of {asks}");
        place.error(found, TARGET)
    })
}

fn read_rate(place: &Place<'_>) -> Result<Rate, PlanError> {
    let expected = || place.wrong(format!("probes a second, up to {RATE_MAX}"));
    let text = place.number_text().ok_or_else(expected)?;
    let rate = Rate::parse_per_second(&text, 1).map_err(|_| expected())?;
    if rate.per_second() > f64::from(RATE_MAX) { Err(expected()) } else { Ok(rate) }
}

/// Whether somebody lives on the ports that ask: others are not opened.
pub(super) fn check(plan: &EmulationPlan, problems: &mut Problems) {
    for probe in plan.latency.iter().filter(|probe| !plan.uses(probe.from)) {
        problems.take::<()>(Err(PlanError {
            path: format!("{}.from", probe.path),
            message: format!(
                "found port {:?}, expected one that clients or servers live on",
                plan.ports[probe.from].name
            ),
        }));
    }
}
