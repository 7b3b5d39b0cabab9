//! Open Traffic Generator: its HTTP API and its gRPC service.
//!
//! ```text
//! http.rs ─┐  decode: crate otg              ┌─ traffic.rs   runs of flows
//! grpc.rs ─┴─> Sessions ─> Session (a user) ─┼─ captures.rs  frames of ports
//!                                            ├─ devices.rs   hosts of devices, neighbours
//!                                            ├─ links.rs     links of ports
//!                                            ├─ egress.rs    all arrivals by bits
//!                                            └─ metrics.rs   counters of flows and ports
//! ```
//!
//! Each user of the server has one configuration. It leases its ports until the next one.
//! [`Sessions::try_telemetry`] is for gNMI.

mod actions;
mod captures;
mod columns;
mod devices;
mod egress;
mod error;
mod grpc;
mod http;
mod lags;
mod links;
mod metrics;
mod sent_values;
mod session;
mod states;
mod tagged;
mod traffic;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use axum::Router;
use tonic::service::Routes;

pub(crate) use metrics::{PortTelemetry, Telemetry};
use session::Session;
use wirestorm_otg::proto;

use crate::server::{Identity, Server};

/// Configurations by user.
pub(crate) struct Sessions {
    server: Arc<Server>,
    sessions: Mutex<BTreeMap<String, Arc<Mutex<Session>>>>,
}

impl Sessions {
    pub(crate) fn new(server: Arc<Server>) -> Arc<Self> {
        Arc::new(Self { server, sessions: Mutex::default() })
    }

    /// Executes a request on the configuration of a user. Requests of one user follow each other.
    fn with<T>(&self, user: &Identity, request: impl FnOnce(&mut Session) -> T) -> T {
        let session = self.session(user);
        let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
        request(&mut session)
    }

    /// Returns the metrics of all flows and ports of a user, with tagged metrics if wanted; `None`
    /// while a request changes the configuration or its state, which can take seconds.
    pub(crate) fn try_telemetry(&self, user: &Identity, with_tags: bool) -> Option<Telemetry> {
        let session = self.session(user);
        try_lock(&session).map(|mut session| session.telemetry(with_tags))
    }

    /// Reads the links of all ports. Skips configurations that a request changes meanwhile.
    pub(crate) fn update_links(&self) {
        for session in self.all() {
            if let Some(mut session) = try_lock(&session) {
                session.update_links();
            }
        }
    }

    /// Ends all configurations: brings up what they took down.
    pub(crate) fn close(&self) {
        for session in self.all() {
            session.lock().unwrap_or_else(PoisonError::into_inner).unload();
        }
    }

    fn all(&self) -> Vec<Arc<Mutex<Session>>> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.values().cloned().collect()
    }

    fn session(&self, user: &Identity) -> Arc<Mutex<Session>> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Mutex::new(Session::new(Arc::clone(&self.server), user)));
        Arc::clone(sessions.entry(user.user.to_string()).or_insert_with(new))
    }
}

/// Locks a session unless a request holds it.
fn try_lock(session: &Mutex<Session>) -> Option<MutexGuard<'_, Session>> {
    match session.try_lock() {
        Ok(session) => Some(session),
        Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Returns the routes of the HTTP API and of the gRPC services, with those of gNMI.
pub(crate) fn router(sessions: &Arc<Sessions>) -> Router {
    let grpc = Routes::new(grpc::service(Arc::clone(sessions)))
        .add_service(crate::gnmi::service(Arc::clone(sessions)));
    http::router(Arc::clone(sessions)).merge(grpc.into_axum_router())
}

/// Version of the models that this server implements, as clients check it.
///
/// Clients take `api_spec_version` as a range that must contain their own version. The models change
/// about twice a month; unknown fields are warnings, so every client of the first version fits.
fn version() -> proto::Version {
    proto::Version {
        api_spec_version: Some(">=1.0.0,<2.0.0".to_owned()),
        sdk_version: Some(String::new()),
        app_version: Some(concat!("wirestorm ", env!("CARGO_PKG_VERSION")).to_owned()),
    }
}
