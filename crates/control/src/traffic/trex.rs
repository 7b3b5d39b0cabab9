//! Conversion of TRex streams to a plan, to run TRex profiles on interfaces.

use std::num::NonZeroU64;

use wirestorm_base::rate::Rate;
use wirestorm_io::link::{Link, LinkError};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};
use wirestorm_plan::Multiplier;
use wirestorm_plan::traffic::{Flow, Port, TrafficPlan};
use wirestorm_plan::trex::{Addresses, LowerOptions, Marking, TrexError, lower};
use wirestorm_wire::packet::MacAddress;

/// A TRex port. Ports 0 and 1 are opposite sides, and so are 2 and 3.
#[derive(Clone, Debug)]
pub struct TrexPort {
    /// Port number.
    pub number: u32,
    /// Interface.
    pub interface: String,
    /// Streams as JSON of the TRex client; `None` for a port that only receives.
    pub streams: Option<String>,
}

/// Error of converting TRex streams.
#[derive(Debug, thiserror::Error)]
pub enum TrexPlanError {
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// An interface does not open.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The streams are invalid.
    #[error("port {port}: {error}")]
    Streams {
        /// Port number.
        port: u32,
        /// Error in the streams.
        error: TrexError,
    },
}

/// Converts the streams of ports to a plan. As in TRex, frames carry the ports' Ethernet addresses
/// unless the streams specify them. They arrive at the opposite port if it is part of the plan.
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
        // The default of TRex if the interface reports no speed.
        let speed = link.speed.unwrap_or(Rate::TEN_GIGA);
        let name = port.number.to_string();
        plan.ports.push(Port::on_interface(port.interface.clone(), name, Some(speed)));
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
            plan.flows.push(Flow::from_stream(stream, index, receive.clone(), place));
        }
    }
    Ok(plan)
}
