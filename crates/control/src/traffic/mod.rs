//! Sends the streams of a plan on interfaces, or in virtual time to capture files.
//!
//! ```text
//! supervisor thread  opens ports, waits for the start, publishes snapshots, builds the result
//! worker thread(s)   Generator -> frames in ports; one generator and port for each transmitting
//!                    port of the plan; all workers share each stream
//! port threads       in-kernel senders, one for each xdp port
//! receiver threads   one for each port where measured flows arrive
//! ```

mod error;
mod flow_follower;
mod live;
mod measured;
mod next_hop;
mod options;
mod outages;
mod preview;
mod report;
mod run;
mod simulate;
mod trex;
mod workload;

pub use error::TrafficError;
pub use options::{Elsewhere, SeriesOptions, StreamOptions};
pub use preview::{Preview, preview};
pub(crate) use run::run;
pub(crate) use simulate::with_port_name;
pub use simulate::{SimulateError, SimulateOptions, Simulated, simulate, simulate_trex};
pub use trex::{TrexPlanError, TrexPort, plan_of_trex};
pub use wirestorm_engine::measure::SegmentOptions;
