//! Clients' packets in tunnels of GTP-U (3GPP TS 29.281).
//!
//! ```text
//! endpoint -> [Ethernet | IP | TCP]                       -> Tunnelled   -> port
//!                                 table: client -> tunnel       |
//!             [Ethernet | IP | UDP 2152 | GTP-U | IP | TCP] <---'
//! endpoint <- [Ethernet | IP | TCP]                       <- Untunnelled <- port
//! ```
//!
//! Tunnels belong to a port, not to flows: what is above it knows nothing of them. A flow's header
//! below IP is one of a short list that flows share; a tunnel is each client's own, may be another
//! one while the flow goes on, and is found by an address that is in the packet anyway. What leaves
//! is in the tunnel of its sender, or where that is none of the table's clients, of its receiver: so
//! the same table serves the port of the clients and, the other way round, that of their servers.
//! What is not IP, such as ARP, leaves as it is, and so arrives what is neither TCP nor UDP.
//!
//! The packet within moves up by the headers around it, which costs a copy; what arrives is copied
//! out. A port takes shorter frames by as much, so that segments fit; and none that it would cut.

mod arriving;
mod leaving;
mod outer;
mod table;

pub use arriving::Untunnelled;
pub use leaving::Tunnelled;
pub use table::{Tunnel, TunnelTable};

/// What became of frames at one end of tunnels.
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
    /// Datagrams that arrived in no tunnel: at another port.
    pub other_port: u64,
    /// GTP messages that are not G-PDU version 1.
    pub other_message: u64,
    /// Truncated frames.
    pub cut_short: u64,
    /// Tunnels whose payload is not IP.
    pub bad_inner: u64,
    /// Packets dropped: CE in the outer header, inner packet not ECN-capable (RFC 6040).
    pub not_ecn_capable: u64,
}

impl TunnelCounters {
    /// Adds those of another end.
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
        self.cut_short += other.cut_short;
        self.bad_inner += other.bad_inner;
        self.not_ecn_capable += other.not_ecn_capable;
    }

    /// Frames that were dropped, whatever the reason.
    pub const fn dropped(&self) -> u64 {
        self.no_tunnel
            + self.too_long
            + self.bad_ip
            + self.bad_checksum
            + self.fragments
            + self.not_udp
            + self.other_port
            + self.other_message
            + self.cut_short
            + self.bad_inner
            + self.not_ecn_capable
    }
}
