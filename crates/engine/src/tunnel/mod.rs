//! GTP-U tunnels for client packets (3GPP TS 29.281).
//!
//! ```text
//! endpoint -> [Ethernet | IP | TCP]                       -> Tunnelled   -> port
//!                                 table: client -> tunnel       |
//!             [Ethernet | IP | UDP 2152 | GTP-U | IP | TCP] <---'
//! endpoint <- [Ethernet | IP | TCP]                       <- Untunnelled <- port
//! ```
//!
//! Tunnels belong to a port, not to flows: layers above the port do not know them. Flows share a
//! short list of link headers, but each client has its own tunnel. It may change while a flow is
//! open, and the packet's address selects it. An outgoing packet uses its sender's tunnel, or its
//! receiver's if the table does not list the sender. So the same table serves the clients' port
//! and, reversed, the servers' port. Traffic other than IP, such as ARP, leaves unchanged; so does
//! received traffic that is neither TCP nor UDP.
//!
//! Encapsulation moves the packet by the length of the headers, which costs a copy; decapsulation
//! copies it out. The port's maximum frame length shrinks by the headers, so that segments fit.
//! Segmentation offload is disabled.

mod decapsulate;
mod encapsulate;
mod outer;
mod table;

pub use decapsulate::DecapsulatingPort;
pub use encapsulate::EncapsulatingPort;
pub use table::{Tunnel, TunnelTable};

/// Counters of one end of the tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// Frames encapsulated.
    pub encapsulated: u64,
    /// Frames decapsulated.
    pub decapsulated: u64,
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
    /// UDP datagrams outside a tunnel: their destination port is not 2152.
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

impl TunnelCounters {
    /// Adds the counters of another end.
    pub fn merge(&mut self, other: &Self) {
        self.encapsulated += other.encapsulated;
        self.decapsulated += other.decapsulated;
        self.no_tunnel += other.no_tunnel;
        self.too_long += other.too_long;
        self.bad_ip += other.bad_ip;
        self.bad_checksum += other.bad_checksum;
        self.fragments += other.fragments;
        self.not_udp += other.not_udp;
        self.other_port += other.other_port;
        self.other_message += other.other_message;
        self.truncated += other.truncated;
        self.inner_not_ip += other.inner_not_ip;
        self.not_ecn_capable += other.not_ecn_capable;
    }

    /// Returns the number of dropped frames.
    pub const fn dropped(&self) -> u64 {
        self.no_tunnel
            + self.too_long
            + self.bad_ip
            + self.bad_checksum
            + self.fragments
            + self.not_udp
            + self.other_port
            + self.other_message
            + self.truncated
            + self.inner_not_ip
            + self.not_ecn_capable
    }
}
