//! Address resolution: next hops of the clients, and addresses that the ARP responders answer for.

pub(super) mod destinations;
pub(super) mod neighbours;
mod next_hop;
mod routers;
pub(super) mod tunnels;
