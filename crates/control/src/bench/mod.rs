//! Trials of benchmark methods on the interfaces of this machine.
//!
//! ```text
//! method ──TrialInput──> LocalTrial ── learning frames, wait
//!        <─TrialOutput──            ── plan of streams ──> Run ──> RunResult
//!                                   ── wait until the device has settled
//! ```
//!
//! The phases are those of RFC 2544 section 23.

mod clients;
mod collector;
mod emulation;
mod flow_exporter;
mod local;
mod output;
mod parameters;
mod plan;
mod replayed;
mod session;
mod stop;
mod test_bed;
mod traffic;

pub use clients::ClientsTraffic;
pub use collector::{CollectorBed, CollectorError, CollectorTrial};
pub use emulation::{ConnectionAddresses, EmulationTrial};
pub use flow_exporter::{FlowExporterBed, FlowExporterError, FlowExporterTrial};
pub use local::{LocalTrial, Observer, Phase, Reset, check_completed};
pub use output::{Steps, series};
pub use parameters::{
    BenchParameters, Links, MethodParameters, MlrsearchParameters, NdrParameters, ParameterError,
    PathParameters, Rfc2544Parameters, Y1564Parameters, bench_schema, parse_load, parse_percent,
    parse_wait,
};
pub use plan::{Frames, PlanOfTrial};
pub use session::{CompletedTrial, FullTrial, SessionOutcome, TrialLog, run_method};
pub use stop::StopSignal;
pub use test_bed::{InterfaceAddress, Paths, PortPair, TestBed, TestBedError, Waits};
pub use traffic::{Headers, NamedTraffic, PlanTraffic, TrafficDefinition};
