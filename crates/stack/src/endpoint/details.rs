//! What can be told of single flows.

use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use wirestorm_base::time::{Duration, Instant};
use wirestorm_wire::flow::FlowKey;
use wirestorm_wire::packet::protocol;

use super::Endpoint;
use super::executions::Place;
use super::flow::{Flow, FlowMarks};
use super::table::Keyed;
use super::times::age;
use crate::tcp::connection::{Now, State};
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

/// What flows that are there wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Connections whose SYN nobody has answered.
    pub syn_sent: u64,
    /// Connections in TIME-WAIT whose program or session has failed, which is counted once that is
    /// over.
    pub time_wait_failed: u64,
    /// All others that are not in TIME-WAIT: open connections, and flows of UDP whose program goes on.
    pub unfinished: u64,
}

impl Endpoint {
    /// The flows of each template that are there, by what they wait for. It looks at every flow.
    pub fn remaining(&self) -> Vec<Remaining> {
        let mut remaining = vec![Remaining::default(); self.templates.len()];
        for flow in self.flows.iter() {
            let of = &mut remaining[usize::from(flow.template)];
            let has_failed = flow.run.has_program_failed() || flow.run.has_failed();
            match flow.connection.state() {
                State::SynSent => of.syn_sent += 1,
                _ if flow.marks.has(FlowMarks::WAITING) => {
                    of.time_wait_failed += u64::from(has_failed);
                }
                _ => of.unfinished += 1,
            }
        }
        for flow in self.datagrams.iter() {
            remaining[usize::from(flow.template)].unfinished += 1;
        }
        remaining
    }

    /// How many flows have begun here: those that were made, and those that peers began.
    pub fn flows_begun(&self) -> u64 {
        self.tallies().map(|it| it.flows.made + it.tcp.accepts + it.udp.accepts).sum()
    }

    /// Whether any load is to make flows yet, by itself.
    pub fn makes_flows(&self) -> bool {
        self.templates.iter().any(|it| !it.arrivals.is_done())
    }

    /// When the load of rates ends whose limits are reached: an interval behind their last flows, or
    /// where that was ended. `None` where there is no such rate.
    pub fn load_end(&self) -> Option<Instant> {
        self.templates.iter().filter_map(|it| it.arrivals.end()).max()
    }

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

    /// The flow at a place, and the place of its template.
    pub(super) fn details_at(&self, place: Place, now: Now) -> Option<(usize, FlowDetails)> {
        Some(match place {
            Place::Tcp(place) => {
                let flow = self.flows.get(place)?;
                (flow.template.into(), self.connection_details(flow, now))
            }
            Place::Udp(place) => {
                let flow = self.datagrams.get(place)?;
                (flow.template.into(), details(flow.key(), flow.began_at, now))
            }
        })
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
