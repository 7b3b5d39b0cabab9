//! The stateful data plane: clients and servers with a TCP of their own, and a port as a host that
//! others can find, ask and answer.
//!
//! Pure: frames go in and come out as bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod content;
mod echo;
pub mod endpoint;
mod frame;
mod heard;
mod host;
pub mod http1;
mod icmp_error;
mod neighbour;
pub mod program;
mod random;
pub mod tcp;
mod udp_echo;

pub use echo::EchoRequest;
pub use heard::{EchoReply, Heard};
pub use host::{Guests, Host, Route, Told};
pub use udp_echo::Datagram;
