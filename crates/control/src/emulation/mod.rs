//! Runs of emulated clients and servers on interfaces, and in virtual time.
//!
//! ```text
//! plan -> resolve (next hops, addresses to answer for)
//!      -> compile (programs, TCP settings) -> an endpoint for each port
//!      -> run (a thread each) | simulate (wires in memory, virtual time)
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
