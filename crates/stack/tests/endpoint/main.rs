//! Endpoints over wires in memory.

mod connections;
mod datagrams;
mod world;
