//! Live metrics of runs, as Prometheus reads them.
//!
//! ```text
//! GET /metrics ─> collector: for each watched run its state and last snapshot
//!                     └─> families: which metric reads which counter ─> text
//! ```
//!
//! A run publishes about ten snapshots a second in any case. A scrape formats the last one, so it
//! costs the run nothing.

mod collector;
mod families;
mod watched;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use wirestorm_control::{Host, RunHandle};

use crate::listen::{Bounds, Endpoint, HttpThread, ListenError};
use collector::RunCollector;
pub(crate) use watched::WatchedRuns;

/// Maximum number of flows with metrics, over all runs. More would cost Prometheus much memory;
/// `wirestorm_run_flows_omitted` counts the others.
pub const FLOWS_MAX: usize = 1_000;

/// Maximum number of runs with metrics. The oldest that ended make room for new ones;
/// `wirestorm_runs_omitted_total` counts those for which there was none.
pub const RUNS_MAX: usize = 64;

/// A scrape takes milliseconds; Prometheus gives up after 10 s by default. The limit keeps clients
/// that vanish from keeping the others out.
const BOUNDS: Bounds = Bounds { connections_max: 64, lifetime_max: Some(Duration::from_secs(10)) };

/// Beginning of the names of all metrics.
const PREFIX: &str = "wirestorm";

/// Content type of the Prometheus text format, version 0.0.4.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Content type of OpenMetrics, for clients that accept it.
const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const INDEX: &str = "Wirestorm: live metrics for Prometheus are at /metrics\n";
const NOT_FOUND: &str = "not found: live metrics for Prometheus are at /metrics\n";

/// Server of live metrics at `http://ADDRESS:PORT/metrics`. Dropping it closes the port.
///
/// ```no_run
/// # fn example(run: &wirestorm_control::RunHandle) -> Result<(), Box<dyn std::error::Error>> {
/// # let host = wirestorm_control::Host::new();
/// let server = wirestorm_serve::MetricsServer::start("127.0.0.1:9400".parse()?, &host)?;
/// server.watch(run);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MetricsServer {
    thread: HttpThread,
    runs: Arc<WatchedRuns>,
}

impl MetricsServer {
    /// Starts the server; port 0 selects a free port. `host` is that of the runs: its in-kernel
    /// senders keep their CPUs for themselves.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn start(address: SocketAddr, host: &Host) -> Result<Self, ListenError> {
        let runs = Arc::new(WatchedRuns::default());
        let router = router(Arc::clone(&runs));
        let endpoint = Endpoint { address, tls: None, router, bounds: BOUNDS };
        let thread = HttpThread::start("metrics", vec![endpoint], host)?;
        Ok(Self { thread, runs })
    }

    /// Returns the address and the port of the server.
    pub fn address(&self) -> SocketAddr {
        self.thread.addresses()[0]
    }

    /// Adds the metrics of a run, also from before its start and after its end. The run's number is
    /// the label `run`.
    pub fn watch(&self, run: &RunHandle) {
        self.runs.add(run.clone());
    }
}

/// Returns the pages of the server.
fn router(runs: Arc<WatchedRuns>) -> Router {
    route(runs)
        .route("/", get(|| async { page(StatusCode::OK, INDEX) }))
        .fallback(|| async { page(StatusCode::NOT_FOUND, NOT_FOUND) })
}

/// Returns the route of the metrics alone.
pub(crate) fn route(runs: Arc<WatchedRuns>) -> Router {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(RunCollector(runs)));
    Router::new().route("/metrics", get(metrics)).with_state(Arc::new(registry))
}

async fn metrics(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Response {
    let mut body = String::new();
    let (encoded, content_type) = if accepts_open_metrics(&headers) {
        (text::encode(&mut body, &registry), OPEN_METRICS_TEXT)
    } else {
        (prometheus_text::encode(&mut body, &registry), PROMETHEUS_TEXT)
    };
    match encoded {
        Ok(()) => respond(StatusCode::OK, content_type, body),
        Err(error) => page(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|it| it.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|range| range.trim().starts_with(OPEN_METRICS))
}

fn page(status: StatusCode, text: &str) -> Response {
    respond(status, "text/plain; charset=utf-8", text.to_owned())
}

/// Builds a response that ends the connection: idle ones would occupy the bounded number.
fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, content_type), (header::CONNECTION, "close")];
    (status, headers, body).into_response()
}
