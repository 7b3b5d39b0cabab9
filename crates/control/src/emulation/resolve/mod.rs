//! Where frames go, and which addresses a port answers for: found by ARP and neighbour discovery.

pub(super) mod neighbours;
mod next_hop;
pub(super) mod reached;
mod routers;
pub(super) mod tunnels;
