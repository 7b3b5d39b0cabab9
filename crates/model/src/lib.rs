//! Model of the traffic that Wirestorm sends and emulates: streams, edits, impairments, tunnels,
//! programs, loads.
//!
//! `plan` parses the user's files into these types; `engine` and `stack` run them. The crate holds
//! data and its invariants, no engine.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address_range;
pub mod assemble;
pub mod blackhole;
pub mod edit;
pub mod impairment;
pub mod ip;
pub mod load;
pub mod pairing;
pub mod program;
pub mod sides;
pub mod stream;
pub mod tcp;
pub mod tunnel;
