//! Sending the streams of a plan: onto interfaces, or in virtual time into capture files.
//!
//! ```text
//! supervisor thread  opens, waits for the start, snapshots, result
//! worker thread(s)   Generator -> frames in ports, one generator and one port for each transmitting
//!                    port of the plan; the workers share every stream
//! port threads       the in-kernel sender's, one for each xdp port
//! receiver threads   one for each port where measured flows arrive
//! ```

mod error;
mod flow_follower;
mod lane;
mod live;
mod measured;
mod next_hop;
mod preview;
mod report;
mod run;
mod simulate;
mod trex;

pub use error::TrafficError;
pub use preview::{Preview, preview};
pub use run::StreamOptions;
pub(crate) use run::run;
pub(crate) use simulate::with_name;
pub use simulate::{SimulateError, SimulateOptions, Simulated, simulate, simulate_trex};
pub use trex::{TrexPlanError, TrexPort, plan_of_trex};
