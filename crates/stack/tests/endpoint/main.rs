//! Endpoints over wires in memory.

mod connections;
mod datagrams;
mod details;
mod executions;
mod loads;
mod servers;
mod switched;
mod tampered;
mod tuples;
mod world;
