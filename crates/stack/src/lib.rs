//! The stateful data plane: a port as a host that others can find, ask and answer.
//!
//! Pure: frames go in and come out as bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod echo;
mod heard;
mod host;
mod neighbour;
pub mod tcp;

pub use echo::EchoRequest;
pub use heard::{EchoReply, Heard};
pub use host::{Host, Route};
