//! Endpoints over wires in memory.

mod connections;
mod datagram_sessions;
mod datagrams;
mod details;
mod endings;
mod executions;
mod fast_open;
mod headers;
mod loads;
mod overload;
mod servers;
mod stamped;
mod switched;
mod tampered;
mod tuples;
mod unknown_protocols;
pub(crate) mod world;
