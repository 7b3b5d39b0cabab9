//! Sending the streams of a plan: onto interfaces, or in virtual time into capture files.
//!
//! ```text
//! main thread        progress, signals, result
//! worker thread(s)   Generator -> frames in ports, one generator and one port for each transmitting
//!                    port of the plan; the workers share every stream
//! port threads       the in-kernel sender's, one for each xdp port
//! receiver threads   one for each port where measured flows arrive
//! ```

mod captured;
mod error;
mod lane;
mod live;
mod measured;
mod next_hop;
mod numbers;
mod preview;
mod report;
mod run;
mod shared;
mod simulate;
mod steer;
mod trex;

pub use captured::read_plan;
pub use error::TrafficError;
pub use live::Live;
pub use measured::{
    DistributionReport, MeasuredReport, Received, SeriesReport, TagReport, VariationReport,
};
pub use preview::{Preview, preview};
pub use report::{FlowReport, PortReport, SCHEMA, TrafficResult};
pub use run::{Progress, RunOptions, run};
pub use shared::SharedPorts;
pub(crate) use simulate::with_name;
pub use simulate::{SimulateError, SimulateOptions, Simulated, simulate, simulate_trex};
pub use steer::{Order, Steering};
pub use trex::{TrexPlanError, TrexPort, plan_of_trex};
