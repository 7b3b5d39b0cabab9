//! What happened to frames on impaired links and in tunnels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HistogramReport;

/// Frames that a port was to send on an impaired link.
///
/// Every frame that entered, and every copy, is in exactly one of `lost`, `queue_dropped`,
/// `no_room`, `delivered` and `held`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ImpairmentReport {
    /// The port that frames came from, where they arrived at another one.
    pub from: Option<String>,
    /// Frames that entered the link.
    pub entered: u64,
    /// Their bytes without FCS.
    pub entered_bytes: u64,
    /// Frames lost by chance.
    pub lost: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames and copies in which a bit was changed.
    pub corrupted: u64,
    /// Frames and copies dropped because the queue was full.
    pub queue_dropped: u64,
    /// Frames and copies dropped because too many were held.
    pub no_room: u64,
    /// Frames and copies that left the link.
    pub delivered: u64,
    /// Their bytes without FCS.
    pub delivered_bytes: u64,
    /// Those of them that left behind a frame that had entered later.
    pub reordered: u64,
    /// Frames and copies still on the link at the end, which were dropped.
    pub held: u64,
    /// Frames that did not enter: longer than this port takes, or shorter than a header.
    pub unfit: u64,
    /// How late frames left, compared with the impairments asked for; null where the link is part
    /// of the sending port.
    pub lateness: Option<HistogramReport>,
}

/// What became of frames in tunnels of GTP-U, where a port has any.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TunnelsReport {
    /// Frames that were put into a tunnel.
    pub encapsulated: u64,
    /// Frames that were taken out of one.
    pub decapsulated: u64,
    /// Frames that were not sent or taken; the sum of the eleven that follow.
    pub dropped: u64,
    /// Frames that were not sent, for neither sender nor receiver has a tunnel.
    pub no_tunnel: u64,
    /// Frames that were not sent, for they are too long with a tunnel's headers.
    pub too_long: u64,
    /// Frames that arrived with a damaged IP header.
    pub bad_ip: u64,
    /// Datagrams around a packet whose checksum is wrong.
    pub bad_checksum: u64,
    /// Fragments of what is around a packet.
    pub fragments: u64,
    /// Frames of TCP that arrived in no tunnel.
    pub not_udp: u64,
    /// Datagrams that arrived in no tunnel: at another port than 2152.
    pub other_port: u64,
    /// Messages of GTP of other versions or types than users' packets.
    pub other_message: u64,
    /// Frames that end before what is in them, as they say.
    pub cut_short: u64,
    /// Tunnels with anything but a packet of IP in them.
    pub bad_inner: u64,
    /// Packets that met congestion in a tunnel, and cannot be told so.
    pub not_ecn_capable: u64,
}
