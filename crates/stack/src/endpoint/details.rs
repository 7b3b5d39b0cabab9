//! Details of single flows.

use core::net::IpAddr;

use wirestorm_base::time::Duration;
use wirestorm_wire::flow::FlowKey;

use super::times::age;
use crate::tcp::details::Details;
use crate::tcp::now::Now;

/// State of a flow at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowDetails {
    /// Key of packets from the peer to us.
    pub key: FlowKey,
    /// Local address and port.
    pub local: (IpAddr, u16),
    /// Remote address and port.
    pub peer: (IpAddr, u16),
    /// Time since the start of the flow; wraps after 71 minutes.
    pub age: Duration,
    /// TCP state; `None` for UDP flows.
    pub tcp: Option<Details>,
}

/// Existing flows by what they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// Connections whose SYN is unanswered.
    pub syn_sent: u64,
    /// Connections in TIME-WAIT whose program or session failed. The failure is counted after
    /// TIME-WAIT.
    pub time_wait_failed: u64,
    /// Others outside TIME-WAIT: open connections, and UDP flows whose program runs.
    pub unfinished: u64,
}

/// Returns the details of a flow without TCP state. `began_at` is its start in microseconds modulo
/// 2^32.
pub(super) fn details(key: &FlowKey, began_at: u32, now: Now) -> FlowDetails {
    FlowDetails {
        key: *key,
        local: (key.destination(), key.destination_port()),
        peer: (key.source(), key.source_port()),
        age: age(began_at, now),
        tcp: None,
    }
}
