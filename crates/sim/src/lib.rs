//! Virtual time and in-memory wires: whole runs without an interface, a clock or privileges.
#![forbid(unsafe_code)]

pub mod memory;
pub mod network;
pub mod streams;
