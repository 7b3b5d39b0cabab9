//! Simulator tests, with streams alone and with plans.

mod impairments;
mod memory;
mod streams;
mod trex_goldens;
mod trex_properties;
