//! HTTP API of a Wirestorm server: its documents, and a blocking client.
//!
//! The server is in crate `serve`; the command line and the console use [`client::Client`]. The
//! OpenAPI document of the server describes the types of this crate.
#![forbid(unsafe_code)]

pub mod agent;
pub mod capture;
pub mod client;
pub mod delays;
pub mod error;
pub mod event;
pub mod lease;
pub mod plan;
pub mod port;
pub mod progress;
pub mod run;
pub mod session;
pub mod test;
pub mod upload;

/// Path below which all routes of the API are.
pub const BASE: &str = "/api/v1";

/// Port on which a server listens by default.
pub const PORT: u16 = 9410;
