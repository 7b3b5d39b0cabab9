//! What can be told of single flows.

use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};

use super::Endpoint;
use super::datagrams::DatagramFlow;
use super::flow::Flow;
use super::times::age;
use crate::tcp::connection::Now;
use crate::tcp::details::Details;

/// A flow as it is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDetails {
    /// Our address and port.
    pub own: (IpAddr, u16),
    /// The peer's.
    pub peer: (IpAddr, u16),
    /// How long ago it began; counted anew every 71 minutes.
    pub age: Duration,
    /// Its connection; flows of UDP have none.
    pub tcp: Option<Details>,
}

impl Endpoint {
    /// The flows of a template at a moment, in no order that means anything.
    pub fn flows(&self, template: usize, now: Instant) -> impl Iterator<Item = FlowDetails> {
        let now = Now::from_micros(now.as_nanos() / 1_000);
        let is_of = move |it: u16| usize::from(it) == template;
        let connections = self.flows.iter().filter(move |it| is_of(it.template));
        let datagrams = self.datagrams.iter().filter(move |it| is_of(it.template));
        connections.map(move |it| it.details(now)).chain(datagrams.map(move |it| it.details(now)))
    }
}

impl Flow {
    fn details(&self, now: Now) -> FlowDetails {
        FlowDetails {
            own: (self.key.destination(), self.key.destination_port()),
            peer: (self.key.source(), self.key.source_port()),
            age: age(self.began_at, now),
            tcp: Some(self.connection.details()),
        }
    }
}

impl DatagramFlow {
    fn details(&self, now: Now) -> FlowDetails {
        FlowDetails {
            own: (self.key.destination(), self.key.destination_port()),
            peer: (self.key.source(), self.key.source_port()),
            age: age(self.began_at, now),
            tcp: None,
        }
    }
}
