//! For tests: the contract of all buses, and a bus with faults.

pub mod contract;
mod faults;

pub use faults::{Faults, FaultyBus};
