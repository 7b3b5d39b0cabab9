//! HTTP server of Wirestorm.
//!
//! ```text
//! caller's thread   MetricsServer::start(address, &host), watch(&run), drop
//! thread `metrics`  http: connections ─> metrics: the last snapshot of each run ─> text
//! runs              publish snapshots; nothing here calls them or makes them wait
//! ```
//!
//! This is the only crate with an async runtime: a single-threaded one, on its own thread. That
//! thread stays off the CPUs of in-kernel senders.
#![forbid(unsafe_code)]

mod http;
pub mod metrics;

pub use http::ListenError;
pub use metrics::MetricsServer;
