//! Endpoints over wires in memory.

mod connections;
mod datagrams;
mod servers;
mod world;
