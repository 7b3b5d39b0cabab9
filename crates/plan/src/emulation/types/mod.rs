//! Types of a plan of clients and servers.

mod first_bytes;
mod http2;
mod latency;
mod tls;

use std::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{ClientOrder, Pairing};
use wirestorm_model::program::Step;
use wirestorm_wire::packet::MacAddress;

pub use first_bytes::FirstBytes;
pub use http2::{Http2, STREAMS_MAX, WINDOW_MAX};
pub use latency::{LatencyProbe, ProbeProtocol};
pub use tls::{Tls, TlsFiles, TlsVersion};

use super::devices::{AnsweredAddress, Devices, Vlans};
use super::ip::Ip;
use super::tcp::Tcp;
use crate::document::port::Port;

/// A plan of clients and servers, after parsing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulationPlan {
    /// Ports of the plan.
    pub ports: Vec<Port>,
    /// Templates, at least one.
    pub templates: Vec<Template>,
    /// Addresses that ports answer for, besides their own and those that resolve next hops.
    pub answered_addresses: Vec<AnsweredAddress>,
    /// Latency probes.
    pub latency: Vec<LatencyProbe>,
    /// Notes about parts that differ from the document or may surprise, without being errors.
    pub notes: Vec<String>,
}

/// A template of flows, with a client side, a server side, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Unique name.
    pub name: String,
    /// Group, which programs select and whose results are summed; `None`: no group.
    pub group: Option<String>,
    /// Transport protocol of the flows.
    pub transport: Transport,
    /// Client side.
    pub client: Option<Client>,
    /// Server side.
    pub server: Option<Server>,
    /// TLS settings of both sides; `None`: no TLS.
    pub tls: Option<Tls>,
    /// HTTP/2 settings of both sides. HTTP/2 then carries the HTTP/1 messages of the programs.
    /// `None`: no HTTP/2.
    pub http2: Option<Http2>,
    /// Path of the template in the plan, for messages.
    pub path: String,
}

/// Transport protocol of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// TCP connections.
    #[default]
    Tcp,
    /// UDP datagrams.
    Udp,
}

/// The server side of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Index of its port in [`EmulationPlan::ports`].
    pub transmit: usize,
    /// Listening port; `None`: other programs listen and accept the flows.
    pub listen: Option<u16>,
    /// Listening addresses; `None`: all addresses.
    pub addresses: Option<AddressRange>,
    /// VLANs in which its port answers for its addresses, besides the VLANs of its clients.
    pub vlans: Vec<Vlans>,
    /// First bytes of its flows, if several templates listen at the same port.
    pub first_bytes: Option<FirstBytes>,
    /// Program of the server, one run per flow.
    pub program: Vec<Step>,
    /// Source identifier of time-stamped datagrams, as [`Client::stamp`].
    pub stamp: Option<u32>,
    /// TCP settings of the server.
    pub tcp: Tcp,
    /// IP settings of the server.
    pub ip: Ip,
}

/// The client side of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// Index of their port in [`EmulationPlan::ports`].
    pub transmit: usize,
    /// Addresses, one client each; `None`: one client with the port's first address.
    pub addresses: Option<AddressRange>,
    /// Order in which clients connect.
    pub order: ClientOrder,
    /// Flows that a client opens to one server before the next client continues; at least 1.
    pub consecutive_flows: u32,
    /// Number of flows after which the sequence of addresses and ports restarts; `None`: after all
    /// combinations.
    pub reuse_after: Option<u64>,
    /// Source ports.
    pub ports: RangeInclusive<u16>,
    /// Destination addresses, of the same family as the clients' addresses.
    pub servers: AddressRange,
    /// Choice of the server of each flow.
    pub pairing: Pairing,
    /// Destination port.
    pub server_port: u16,
    /// Destination MAC address; `None`: resolved before the run.
    pub destination: Option<MacAddress>,
    /// Devices that clients are behind. The first one that has a client applies.
    pub devices: Vec<Devices>,
    /// When flows start.
    pub load: Load,
    /// Time during which the load grows linearly from 0 to its full value; 0: no ramp.
    pub ramp_up: Duration,
    /// Total number of flows; `None`: no limit.
    pub limit: Option<u64>,
    /// Program of the client, one run per flow.
    pub program: Vec<Step>,
    /// Source identifier in datagrams that carry a time stamp before their payload, as in TRex's
    /// add-on `latency`; `None`: no time stamps.
    pub stamp: Option<u32>,
    /// TCP settings of the client.
    pub tcp: Tcp,
    /// IP settings of the client.
    pub ip: Ip,
}

impl Template {
    /// Returns whether the flows of a side use IPv4; `None` if the template does not define it.
    pub(super) fn is_ipv4(&self, side: &str) -> Option<bool> {
        let targets = self.client.as_ref().map(|it| it.servers);
        let listens = self.server.as_ref().and_then(|it| it.addresses);
        let range = if side == "client" { targets } else { listens.or(targets) };
        range.map(|it| it.first.is_ipv4())
    }
}

impl Client {
    /// Returns the client with the load on demand: only other programs start its flows.
    pub(super) fn on_demand(self) -> Self {
        Self { load: Load::OnDemand, ramp_up: Duration::ZERO, limit: None, ..self }
    }
}
