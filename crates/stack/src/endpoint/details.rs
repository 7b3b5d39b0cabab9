//! What can be told of single flows.

use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use super::Endpoint;
use super::flow::Flow;
use super::table::Keyed;
use super::times::age;
use crate::tcp::connection::Now;
use crate::tcp::details::Details;

/// A flow as it is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDetails {
    /// Who it is, from the peer to us.
    pub key: FlowKey,
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
        connections
            .map(move |it| self.connection_details(it, now))
            .chain(datagrams.map(move |it| details(it.key(), it.began_at, now)))
    }

    /// The flow of a key at a moment, where it is there.
    pub fn flow(&self, key: &FlowKey, now: Instant) -> Option<FlowDetails> {
        let now = Now::from_micros(now.as_nanos() / 1_000);
        if key.protocol() == protocol::TCP {
            return Some(self.connection_details(self.flows.peek(key)?, now));
        }
        Some(details(key, self.datagrams.peek(key)?.began_at, now))
    }

    fn connection_details(&self, flow: &Flow, now: Now) -> FlowDetails {
        let details = details(&flow.key, flow.began_at, now);
        // The first number follows from when the flow began: nothing else remembers it.
        let began = Now::from_micros(now.micros - details.age.as_nanos() / 1_000);
        let initial = self.initial(&flow.key, began);
        let settings = self.templates[usize::from(flow.template)].settings(&flow.key);
        FlowDetails { tcp: Some(flow.connection.details(settings, initial, now)), ..details }
    }
}

fn details(key: &FlowKey, began_at: u32, now: Now) -> FlowDetails {
    FlowDetails {
        key: *key,
        own: (key.destination(), key.destination_port()),
        peer: (key.source(), key.source_port()),
        age: age(began_at, now),
        tcp: None,
    }
}
