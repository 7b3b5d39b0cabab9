//! What Wirestorm's tests, benchmarks and demo stand on, none of it Wirestorm's own code.
//!
//! - [`net`]: network namespaces joined by veth pairs, tcpdump, interface counters.
//! - [`sample`]: captures of realistic traffic, the same bytes for the same seed.
//! - [`pcap`]: the smallest writer and reader of capture files that the two need.
//! - [`tshark`]: fields of a capture as an independent dissector sees them.
//! - [`require`]: what a test needs of the machine, or the word that it was skipped.
//!
//! It depends on no other crate of the workspace, so what it says about a frame is a second
//! opinion. Nothing but tests and chores may depend on it.

#![forbid(unsafe_code)]

mod leftovers;
pub mod net;
pub mod pcap;
pub mod require;
pub mod sample;
mod scratch;
pub mod tshark;

pub use scratch::Scratch;
