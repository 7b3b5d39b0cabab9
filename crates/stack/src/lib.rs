//! The stateful data plane: client and server endpoints with their own TCP stack, and a host that
//! answers ARP, neighbour discovery and echo requests for a port.
//!
//! The crate does no I/O and reads no clock: frames go in and come out as bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod content;
mod echo;
pub mod endpoint;
mod frame;
mod host;
mod host_event;
pub mod http1;
mod icmp_error;
mod neighbour;
pub mod program;
pub mod tcp;
mod udp_echo;

pub use echo::EchoRequest;
pub use host::{Host, ProxiedAddresses, Route};
pub use host_event::{EchoReply, HostEvent};
pub use neighbour::NeighbourAddress;
pub use udp_echo::Datagram;
