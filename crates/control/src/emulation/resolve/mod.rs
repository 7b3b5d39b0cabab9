//! Address resolution: next hops of the clients, and addresses that the ARP responders answer for.

pub(super) mod neighbours;
mod next_hop;
pub(super) mod reached;
mod routers;
pub(super) mod tunnels;
