//! TRex's streams as a plan: what runs a profile on interfaces.

use std::num::NonZeroU64;

use wirestorm_base::rate::Rate;
use wirestorm_io::link::{Link, LinkError};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::{Flow, Port, TrafficPlan};
use wirestorm_plan::trex::{Addresses, LowerOptions, Marking, TrexError, lower};
use wirestorm_wire::packet::MacAddress;

/// A port as TRex numbers them: 0 and 1 are each other's other side, so are 2 and 3.
#[derive(Clone, Debug)]
pub struct TrexPort {
    /// Its number.
    pub number: u32,
    /// Its interface.
    pub interface: String,
    /// The JSON of its streams, as TRex's clients write it; none of a port that only receives.
    pub streams: Option<String>,
}

/// Why TRex's streams make no plan.
#[derive(Debug, thiserror::Error)]
pub enum TrexPlanError {
    /// No interface is named so.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// An interface does not open.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The streams make no sense.
    #[error("port {port}: {error}")]
    Streams {
        /// The port's number.
        port: u32,
        /// What is wrong.
        error: TrexError,
    },
}

/// The plan of streams on ports. As in TRex, frames carry the ports' Ethernet addresses where
/// the streams leave them open, and arrive at the other side, if that is one of the ports.
///
/// # Errors
/// See [`TrexPlanError`].
pub fn plan_of_trex(
    ports: &[TrexPort],
    multiplier: Multiplier,
) -> Result<TrafficPlan, TrexPlanError> {
    let mut links = Vec::new();
    for port in ports {
        let interface: InterfaceName = port.interface.parse()?;
        links.push(Link::open(&interface)?);
    }
    let other_side = |number: u32| ports.iter().position(|port| port.number == number ^ 1);
    let mac = |link: &Link| MacAddress(link.mac.unwrap_or_default());
    let mut plan = TrafficPlan { ports: Vec::new(), flows: Vec::new() };
    for (index, (port, link)) in ports.iter().zip(&links).enumerate() {
        // TRex's where the interface does not tell.
        let speed = link.speed.unwrap_or(Rate::TEN_GIGA);
        let name = port.number.to_string();
        plan.ports.push(Port::on(port.interface.clone(), name, Some(speed)));
        let Some(streams) = &port.streams else { continue };
        let receive: Vec<usize> = other_side(port.number).into_iter().collect();
        let options = LowerOptions {
            line_rate: speed,
            multiplier,
            addresses: Addresses {
                source: mac(link),
                destination: receive.first().map_or(MacAddress::BROADCAST, |at| mac(&links[*at])),
            },
            marking: Marking::Signature,
            cores: NonZeroU64::MIN,
        };
        let streams = lower(streams, &options)
            .map_err(|error| TrexPlanError::Streams { port: port.number, error })?;
        let first = plan.flows.len();
        for (position, mut stream) in streams.into_iter().enumerate() {
            let place = format!("port {} [{position}]", port.number);
            if stream.name.is_empty() {
                stream.name = place.clone();
            }
            stream.transmission.next = stream.transmission.next.map(|next| first + next);
            plan.flows.push(Flow::of(stream, index, receive.clone(), place));
        }
    }
    Ok(plan)
}
