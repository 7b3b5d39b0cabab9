//! gNMI: telemetry of flows and ports, by the YANG models of Open Traffic Generator.
//!
//! ```text
//! service.rs ─┬─ get.rs ────────────────────┬─> path.rs: what a path selects (selection.rs)
//!             └─ subscribe.rs ─> change.rs ─┤            of schema.rs
//!                                           ├─> tree.rs: values of all leaves <─ otg::Sessions
//!                                           ├─> value.rs: values as PROTO, JSON, JSON_IETF
//!                                           └─> place.rs: paths of values
//! ```
//!
//! A tree is a copy of the metrics of a user, which a thread for blocking work makes. It has the
//! tagged metrics (tagged.rs) if a path selects them. Each RPC of
//! Subscribe is one task with a short queue: a client that reads slowly gets fewer trees.

mod change;
mod get;
mod path;
mod place;
mod schema;
mod selection;
mod service;
mod subscribe;
mod tagged;
mod tree;
mod value;

use std::sync::Arc;

use wirestorm_gnmi::server::gNMIServer;

use crate::otg::Sessions;

/// Returns the service.
pub(crate) fn service(sessions: Arc<Sessions>) -> gNMIServer<service::Service> {
    gNMIServer::new(service::Service::new(sessions))
}
