//! Ports of a server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lease::Lease;

/// A port of the server: an interface that it lends to users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Port {
    /// Name of the port.
    pub name: String,
    /// Interface, with its namespace.
    pub interface: String,
    /// State of the link.
    pub link: LinkState,
    /// Kind of the interface: `physical`, `veth` and so on; empty if it does not exist.
    pub kind: String,
    /// Driver; empty if there is none.
    pub driver: String,
    /// Ethernet address; null if the interface has none.
    pub mac: Option<String>,
    /// Longest network-layer packet in bytes.
    pub mtu: u32,
    /// Link speed in bit/s, as the driver reports it.
    pub speed_bps: Option<u64>,
    /// Whether the interface carries a default route. Sending on it needs `force_interface`.
    pub default_route: bool,
    /// Backend that `auto` chooses; null if no backend can send.
    pub backend: Option<String>,
    /// Reason for the choice, or why the interface cannot be used.
    pub backend_reason: String,
    /// Lease of the port; null if nobody leases it.
    pub lease: Option<Lease>,
    /// Active runs on the port.
    pub runs: Vec<String>,
    /// Users who capture frames of the port, one entry for each capture.
    pub capturing: Vec<String>,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Frames can be sent.
    Up,
    /// The interface is up, but its link is not.
    NoCarrier,
    /// The interface is down.
    Down,
    /// The interface does not exist.
    Missing,
}
