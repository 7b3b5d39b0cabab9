//! Counters of impaired links and of tunnels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirestorm_engine::impairment::ImpairmentCounters;

use super::HistogramReport;

/// Counters of the impaired link in front of a sending port.
///
/// Each frame that entered, and each duplicate, counts in exactly one of `lost`, `queue_dropped`,
/// `delay_buffer_full`, `delivered` and `in_flight`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ImpairmentReport {
    /// Port that received the frames; null if the sending port generated them.
    pub from_port: Option<String>,
    /// Frames that entered the link.
    pub entered: u64,
    /// Bytes without FCS.
    pub entered_bytes: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Duplicates created.
    pub duplicated: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Frames dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames dropped because the delay buffer was full.
    pub delay_buffer_full: u64,
    /// Frames and duplicates that left the link.
    pub delivered: u64,
    /// Bytes without FCS.
    pub delivered_bytes: u64,
    /// Frames that left the link after a frame that entered later.
    pub reordered: u64,
    /// Frames and duplicates still on the link at the end of the run; dropped.
    pub in_flight: u64,
    /// Frames that did not enter the link: truncated, too long for this port, or shorter than an
    /// Ethernet header.
    pub invalid_length: u64,
    /// Lateness of departures relative to the configured delay; null if the link is part of the
    /// sending port.
    pub lateness: Option<HistogramReport>,
}

impl From<&ImpairmentCounters> for ImpairmentReport {
    fn from(counters: &ImpairmentCounters) -> Self {
        Self {
            from_port: None,
            entered: counters.entered,
            entered_bytes: counters.entered_bytes,
            lost: counters.lost,
            duplicated: counters.duplicated,
            corrupted: counters.corrupted,
            queue_dropped: counters.queue_dropped,
            delay_buffer_full: counters.delay_buffer_full,
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_bytes,
            reordered: counters.reordered,
            in_flight: counters.held(),
            invalid_length: 0,
            lateness: None,
        }
    }
}

/// Counters of the GTP-U tunnels of a port.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TunnelsReport {
    /// Frames encapsulated.
    pub encapsulated: u64,
    /// Frames decapsulated.
    pub decapsulated: u64,
    /// Frames dropped: the sum of the eleven reasons below.
    pub dropped: u64,
    /// Frames dropped because no tunnel matches.
    pub no_tunnel: u64,
    /// Frames dropped because they exceed the MTU with the tunnel headers.
    pub too_long: u64,
    /// Frames with a bad outer IP header.
    pub bad_ip: u64,
    /// Frames with a bad outer UDP checksum.
    pub bad_checksum: u64,
    /// Fragments of outer packets.
    pub fragments: u64,
    /// Outer packets that are not UDP.
    pub not_udp: u64,
    /// Datagrams to another port than 2152.
    pub other_port: u64,
    /// GTP messages that are not G-PDU version 1.
    pub other_message: u64,
    /// Truncated frames.
    pub truncated: u64,
    /// Tunnels whose payload is not IP.
    pub inner_not_ip: u64,
    /// Packets dropped: CE in the outer header, inner packet not ECN-capable (RFC 6040).
    pub not_ecn_capable: u64,
}
