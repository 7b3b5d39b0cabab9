//! Prepares, runs and controls tests: opens ports, starts and pins worker threads, merges their
//! counters and builds the result.

pub mod affinity;
pub mod arrivals;
pub mod backend;
pub mod bench;
pub mod capture;
pub mod emulation;
pub mod files;
pub mod host;
pub mod impair;
pub mod inventory;
mod lifecycle;
pub mod machine;
pub mod pktgen;
pub mod port;
mod receive;
pub mod replay;
pub mod responder;
pub mod result;
pub mod run;
pub mod schema;
pub mod sync;
pub mod traffic;
mod work;
mod workers;

/// Converts a time of the monotonic clock to nanoseconds since the Unix epoch.
pub fn to_unix_ns(time: base::time::Instant) -> u64 {
    wirestorm_io::clock::RealtimeOffset::read().to_realtime_nanos(time)
}

pub use host::Host;
pub use lifecycle::{
    Abandoned, Command, CommandError, ConnectionSnapshot, Delivery, Detail, FlowCommand,
    FlowSnapshot, LoadFactor, MeasuredSnapshot, PortSnapshot, RunError, RunErrorKind, RunHandle,
    RunId, RunOutcome, RunState, Snapshot, StartAt, Subscription, TunnelChangeError,
};
pub use wirestorm_base as base;
pub use wirestorm_engine::tunnel;
pub use wirestorm_io::{af_packet, clock, link, namespace, tap};
pub use wirestorm_method as method;
pub use wirestorm_model as model;
pub use wirestorm_plan as plan;
pub use wirestorm_stack as stack;
pub use wirestorm_wire as wire;
