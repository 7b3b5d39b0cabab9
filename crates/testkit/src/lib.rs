//! Basis of Wirestorm's tests, benchmarks and demo, independent of Wirestorm's own code.
//!
//! - [`nats`]: a NATS server on a random port.
//! - [`net`]: network namespaces joined by veth pairs, tcpdump, interface counters.
//! - [`sample`]: captures of realistic traffic, reproducible from a seed.
//! - [`pcap`]: a minimal writer and reader of capture files.
//! - [`tshark`]: packet fields of a capture as decoded by tshark.
//! - [`zmtp`]: a socket of ZeroMQ's protocol.
//! - [`require`]: requirements of a test on the machine; prints `skipped` if they are not met.
//!
//! The crate depends on no other crate of the workspace, so it checks frames independently. Only
//! tests and developer commands may depend on it.

#![forbid(unsafe_code)]

mod cleanup;
pub mod nats;
pub mod net;
pub mod pcap;
pub mod require;
pub mod sample;
mod scratch;
pub mod tshark;
pub mod zmtp;

pub use scratch::Scratch;
