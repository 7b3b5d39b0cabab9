//! Endpoints over wires in memory.

mod connections;
mod datagrams;
mod executions;
mod loads;
mod servers;
mod tuples;
mod world;
