//! Runs of emulated clients and servers on interfaces, and in virtual time.
//!
//! ```text
//! plan -> lower (programs, settings of TCP) -> an endpoint for each port -> run (a thread each)
//!      -> neighbours (whom frames go to, who answers ARP)    steer (while it goes on) -> report
//!                                                             simulate (wires in memory) ^
//! ```

mod details;
mod error;
mod found;
mod groups;
mod kernel;
mod latency;
mod load_notes;
mod lower;
mod moderation;
mod moved;
mod neighbours;
mod next_hops;
mod outage;
mod own;
mod probes;
mod program;
mod remainders;
mod report;
mod run;
mod simulate;
mod timeline;
mod tls;
mod tunnels;
mod watch;
mod way;

pub use details::FlowChoice;
pub use error::EmulationError;
pub use run::EmulationOptions;
pub(crate) use run::run;
pub use simulate::{Part, SimulationOptions, simulate};
pub use watch::WatchOptions;
