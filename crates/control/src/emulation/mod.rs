//! Runs of emulated clients and servers, on interfaces or in virtual time.
//!
//! ```text
//! plan -> resolve (next hops, addresses of the ARP responders)
//!      -> compile (programs, TCP settings) -> one endpoint per port
//!      -> run (one thread per port) | simulate (wires in memory, virtual time)
//!      -> observe (intervals, sampled flows, latency) -> report
//! ```

mod compile;
mod error;
mod observe;
mod resolve;
mod run;
mod simulate;

pub use error::EmulationError;
pub use observe::sampled_flows::FlowChoice;
pub use observe::watch::WatchOptions;
pub use run::EmulationOptions;
pub(crate) use run::run;
pub use simulate::{Part, SimulationOptions, simulate};
