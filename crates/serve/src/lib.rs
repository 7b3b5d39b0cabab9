//! Server of Wirestorm.
//!
//! ```text
//! Service ─┬─ thread `serve`        listen: sockets, TLS ─> api: routes ─> server: users, ports, runs
//!          ├─ threads `serve-work`  requests that block
//!          ├─ thread `trex`         TRex's RPC and its events; threads `trex-work` execute requests
//!          ├─ thread `serve-clock`  leases that expire, limits of users, links of ports
//!          └─ threads `record-N`    one for each run: its states and its result
//! MetricsServer ── thread `metrics` live metrics of the runs of a command
//! ```
//!
//! This is the only crate with an async runtime: single-threaded ones. All threads stay off the CPUs
//! of in-kernel senders.
#![forbid(unsafe_code)]

mod api;
pub mod cluster;
mod gnmi;
mod listen;
pub mod metrics;
mod otg;
mod server;
mod service;
mod trex;
mod web;

pub use api::openapi;
pub use listen::{ListenError, Tls, TlsError, TlsFiles};
pub use metrics::MetricsServer;
pub use server::{
    DirectorMember, FollowError, Owner, PortOption, Server, ServerError, ServerOptions, Users,
    UsersError,
};
pub use service::{ListenOption, Service, ServiceError};
#[doc(hidden)]
pub use trex::check_trex_message;
pub use trex::{ClientNetwork, ClientNetworkError, TrexError, TrexMode, TrexOption};
