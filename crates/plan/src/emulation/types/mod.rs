//! A plan of clients and servers.

mod first_bytes;
mod http2;
mod latency;
mod tls;

use std::ops::RangeInclusive;

use wirestorm_base::time::Duration;
use wirestorm_model::address_range::AddressRange;
use wirestorm_model::load::Load;
use wirestorm_model::pairing::{Order, Pairing};
use wirestorm_model::program::Step;
use wirestorm_wire::packet::MacAddress;

pub use first_bytes::FirstBytes;
pub use http2::{Http2, STREAMS_MAX, WINDOW_MAX};
pub use latency::{LatencyProbe, ProbeProtocol};
pub use tls::{Tls, TlsFiles, TlsVersion};

use super::devices::{Devices, Guest, Vlans};
use super::ip::Ip;
use super::tcp::Tcp;
use crate::document::port::Port;

/// A plan of clients and servers, understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmulationPlan {
    /// Where they live.
    pub ports: Vec<Port>,
    /// What they do; one or more.
    pub templates: Vec<Template>,
    /// Addresses that ports answer for beside their own and those of their next hops' askers.
    pub guests: Vec<Guest>,
    /// What is asked beside them, to see how long answers take.
    pub latency: Vec<LatencyProbe>,
    /// What of it is not done as it was written, or not as it may seem, where that is no error.
    pub notes: Vec<String>,
}

/// Connections of one kind; with a client, a server, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its name, of no other template.
    pub name: String,
    /// Group whose templates are summed in the result.
    pub group: Option<String>,
    /// What they are of.
    pub transport: Transport,
    /// Who makes them.
    pub client: Option<Client>,
    /// Server side.
    pub server: Option<Server>,
    /// What TLS there is around programs, on both sides; `None`: none.
    pub tls: Option<Tls>,
    /// What HTTP/2 carries the messages of HTTP/1 that programs say, on both sides; `None`: none.
    pub http2: Option<Http2>,
    /// Where it stands in the plan.
    pub path: String,
}

/// What carries bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// Connections.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
}

/// Who waits for connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The port that it lives on, by its place in the plan.
    pub transmit: usize,
    /// The port that it listens at; `None`: its flows are those that come to where programs
    /// listen, and that they accept.
    pub listen: Option<u16>,
    /// At which addresses; `None`: at every one.
    pub addresses: Option<AddressRange>,
    /// In which VLANs its port answers for its addresses, beside those of its clients.
    pub vlans: Vec<Vlans>,
    /// What its flows begin with, where several templates listen at a port.
    pub first_bytes: Option<FirstBytes>,
    /// What it says.
    pub program: Vec<Step>,
    /// As [`Client::stamp`].
    pub stamp: Option<u32>,
    /// TCP settings of the server.
    pub tcp: Tcp,
    /// IP settings of the server.
    pub ip: Ip,
}

/// Client side.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// The port that they leave, by its place in the plan.
    pub transmit: usize,
    /// Clients' addresses; `None`: the port's own.
    pub addresses: Option<AddressRange>,
    /// Order in which clients connect.
    pub order: Order,
    /// How many a client makes, to one server, before it is the next one's turn; at least 1.
    pub turn: u32,
    /// After so many the same ones are made again; `None`: once there are no others.
    pub reuse_after: Option<u64>,
    /// Ports they connect from.
    pub ports: RangeInclusive<u16>,
    /// Servers' addresses, of the same family as the clients'.
    pub servers: AddressRange,
    /// Which of them a client connects to.
    pub pairing: Pairing,
    /// Server port.
    pub server_port: u16,
    /// Where frames go; `None`: that is found out.
    pub destination: Option<MacAddress>,
    /// By whom frames of some clients go.
    pub devices: Vec<Devices>,
    /// Load: when connections start.
    pub load: Load,
    /// How long a rate, or a number of users, grows from nothing to what it is.
    pub ramp: Duration,
    /// How many in all; `None`: without end.
    pub limit: Option<u64>,
    /// What they say.
    pub program: Vec<Step>,
    /// Of datagrams that have their time of departure before what they say, as TRex's add-on
    /// `latency` has it: the number that is there of their server.
    pub stamp: Option<u32>,
    /// TCP settings of the client.
    pub tcp: Tcp,
    /// IP settings of the client.
    pub ip: Ip,
}

impl Template {
    /// Whether the flows of a side are over IPv4, as far as the template says.
    pub(super) fn is_ipv4(&self, side: &str) -> Option<bool> {
        let asked = self.client.as_ref().map(|it| it.servers);
        let listens = self.server.as_ref().and_then(|it| it.addresses);
        let range = if side == "client" { asked } else { listens.or(asked) };
        range.map(|it| it.first.is_ipv4())
    }
}

impl Client {
    /// The same where only others' programs make its connections.
    pub(super) fn on_demand(self) -> Self {
        Self { load: Load::OnDemand, ramp: Duration::ZERO, limit: None, ..self }
    }
}
