//! Runs of emulated clients and servers on interfaces.
//!
//! ```text
//! plan -> lower (programs, settings of TCP) -> an endpoint for each port -> run (a thread each)
//!      -> neighbours (whom frames go to, who answers ARP)                        -> report
//! ```

mod error;
mod lower;
mod neighbours;
mod program;
mod report;
mod run;

pub use error::EmulationError;
pub use report::{EmulationResult, FlowsReport, PortReport, SCHEMA, TimesReport};
pub use run::{EmulationOptions, PortProgress, Progress, run};
