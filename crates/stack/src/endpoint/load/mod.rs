//! Loads: when flows start, and between which ends.

mod arrivals;
mod back_off;
mod clients;
mod scale;
mod schedule;
mod starts;
mod switched;
mod throughput;
mod users;

pub(super) use self::arrivals::{Arrivals, Due};
pub(super) use self::clients::Origin;
pub use self::clients::Tuples;
pub(super) use self::starts::Starts;
pub use self::switched::AddressSet;
pub(super) use self::switched::SwitchedOff;
pub use self::throughput::ThroughputOutcome;
