//! What can be told of single flows.

use core::net::IpAddr;

use wirestorm_base::time::Duration;
use wirestorm_wire::flow::FlowKey;

use super::times::age;
use crate::tcp::connection::Now;
use crate::tcp::details::Details;

/// A flow as it is at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDetails {
    /// Who it is, from the peer to us.
    pub key: FlowKey,
    /// Local address and port.
    pub own: (IpAddr, u16),
    /// Remote address and port.
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

/// Of a flow between these that began at a time, in microseconds modulo 2^32, without its connection.
pub(super) fn details(key: &FlowKey, began_at: u32, now: Now) -> FlowDetails {
    FlowDetails {
        key: *key,
        own: (key.destination(), key.destination_port()),
        peer: (key.source(), key.source_port()),
        age: age(began_at, now),
        tcp: None,
    }
}
