//! Loads: when flows start, and between which ends.

mod address_set;
mod arrivals;
mod back_off;
mod clients;
mod scale;
mod schedule;
mod starts;
mod throughput;
mod users;

pub use self::address_set::AddressSet;
pub(super) use self::address_set::SwitchedOff;
pub(super) use self::arrivals::{Arrivals, Due};
pub(super) use self::clients::Origin;
pub use self::clients::Tuples;
pub(super) use self::starts::Starts;
pub use self::throughput::ThroughputOutcome;
