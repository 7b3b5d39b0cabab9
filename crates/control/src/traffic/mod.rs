//! Sending the streams of a plan: onto interfaces, or in virtual time into capture files.
//!
//! ```text
//! main thread        progress, signals, result
//! worker thread(s)   Generator -> frames in ports, one generator and one port for each transmitting
//!                    port of the plan; the workers share every stream
//! port threads       the in-kernel sender's, one for each xdp port
//! ```

mod preview;
mod report;
mod run;
mod simulate;

pub use preview::{Preview, preview};
pub use report::{FlowReport, PortReport, SCHEMA, TrafficResult};
pub use run::{Progress, RunOptions, TrafficError, run};
pub use simulate::{SimulateError, SimulateOptions, Simulated, simulate, simulate_trex};
