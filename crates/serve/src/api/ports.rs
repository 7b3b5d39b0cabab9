//! Ports, their leases, and captures of their frames.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::mpsc;
use utoipa::IntoParams;
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::lease::{Lease, LeaseRequest};
use wirestorm_api::port::Port;
use wirestorm_control::base::time::Duration;
use wirestorm_control::capture::{CaptureError, CaptureOptions, capture as capture_frames};
use wirestorm_control::plan::traffic::parse_time;

use super::answer::{Answer, Document, Query, Refused, blocking, blocking_json};
use crate::server::{Identity, Server};

/// Ports of the server
///
/// Lists the interfaces that the server lends, with their links, leases and active runs.
#[utoipa::path(get, path = "/ports", tag = "ports",
    responses((status = 200, body = Vec<Port>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Json<Vec<Port>>> {
    blocking_json(move || Ok(server.ports())).await
}

/// A port
#[utoipa::path(get, path = "/ports/{port}", tag = "ports",
    params(("port" = String, Path, description = "Name of the port, or its interface")),
    responses((status = 200, body = Port), (status = 404, body = ErrorDocument)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(port): Path<String>,
) -> Answer<Json<Port>> {
    blocking_json(move || server.port(&user, &port)).await
}

/// Lease a port, or renew the lease
///
/// A leased port is reserved for the session of the user. Without a lease, a run takes its ports
/// for its own time.
#[utoipa::path(put, path = "/ports/{port}/lease", tag = "ports",
    params(("port" = String, Path, description = "Name of the port, or its interface")),
    request_body = LeaseRequest,
    responses((status = 200, body = Lease), (status = 409, body = ErrorDocument)))]
pub(super) async fn acquire(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(port): Path<String>,
    Document(request): Document<LeaseRequest>,
) -> Answer<Json<Lease>> {
    blocking_json(move || server.acquire(&user, &port, &request)).await
}

/// Release a port
///
/// Runs on the port that end with the lease stop; others continue.
#[utoipa::path(delete, path = "/ports/{port}/lease", tag = "ports",
    params(("port" = String, Path, description = "Name of the port, or its interface")),
    responses((status = 204), (status = 409, body = ErrorDocument)))]
pub(super) async fn release(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(port): Path<String>,
) -> Answer<StatusCode> {
    blocking(move || server.release(&user, &port)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Parameters of a capture.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct CaptureQuery {
    /// Filter in tcpdump syntax; all frames without it.
    filter: Option<String>,
    /// Stop after this many frames.
    packets: Option<u64>,
    /// Stop after this time, such as `10s`.
    duration: Option<String>,
    /// Maximum bytes stored of each frame.
    snap_length: Option<usize>,
}

/// Capture the frames that arrive at a port
///
/// Streams pcapng, each frame within 100 ms, until a limit is reached or the client closes the
/// connection. If the client reads too slowly, frames are dropped; the statistics block at the end
/// counts them.
#[utoipa::path(get, path = "/ports/{port}/capture", tag = "ports",
    params(("port" = String, Path, description = "Name of the port, or its interface"),
        CaptureQuery),
    responses((status = 200, content_type = "application/x-pcapng", body = String,
        description = "Frames as pcapng"), (status = 409, body = ErrorDocument)))]
pub(super) async fn capture(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(port): Path<String>,
    Query(query): Query<CaptureQuery>,
) -> Answer<Response> {
    /// Number of chunks that wait for a slow client.
    const CHUNKS_MAX: usize = 16;
    let name = format!("{}.pcapng", port.replace(['/', ':'], "-"));
    let mut options = capture_options(query)?;
    let guard = blocking(move || server.begin_capture(&user, &port)).await?;
    options.interface = guard.interface.clone();
    let (sender, mut receiver) = mpsc::channel(CHUNKS_MAX);
    let thread = std::thread::Builder::new().name("capture".to_owned()).spawn(move || {
        let _guard = guard;
        let mut output = ChunkWriter { sender: sender.clone() };
        // The end of the response fails the next write, also one without frames.
        let captured = capture_frames(&options, &mut output, &AtomicBool::new(false), |_, _| ());
        if let Err(error) = captured {
            let _ = sender.blocking_send(Err(error));
        }
    });
    thread.map_err(|error| {
        ErrorDocument::new(ErrorCode::Internal, format!("cannot start a thread: {error}"))
    })?;
    // The first chunk comes when the interface is open.
    let first = match receiver.recv().await {
        Some(Ok(chunk)) => chunk,
        Some(Err(error)) => return Err(refused(&error)),
        None => Bytes::new(),
    };
    let rest = stream::unfold(receiver, |mut receiver| async move {
        let chunk: Result<Bytes, CaptureError> = receiver.recv().await?;
        Some((chunk.map_err(io::Error::other), receiver))
    });
    let first = stream::once(async move { Ok::<_, io::Error>(first) });
    let body = Body::from_stream(stream::StreamExt::chain(first, rest));
    let headers = [
        (header::CONTENT_TYPE, "application/x-pcapng".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, body).into_response())
}

/// Returns the options of a capture, without its interface.
fn capture_options(query: CaptureQuery) -> Result<CaptureOptions, ErrorDocument> {
    const SNAP_LENGTH_MAX: usize = 262_144;
    let invalid = |message: String| ErrorDocument::new(ErrorCode::Invalid, message);
    let duration = match query.duration {
        None => Duration::MAX,
        Some(text) => parse_time(&text).ok_or_else(|| {
            invalid(format!("duration {text:?}: expected a time with its unit, such as 10s"))
        })?,
    };
    let snap_length = query.snap_length.unwrap_or(SNAP_LENGTH_MAX);
    if !(1..=SNAP_LENGTH_MAX).contains(&snap_length) {
        return Err(invalid(format!("snap_length {snap_length}: expected 1 to {SNAP_LENGTH_MAX}")));
    }
    Ok(CaptureOptions {
        interface: String::new(),
        filter: query.filter.unwrap_or_default(),
        packets: query.packets.unwrap_or(u64::MAX),
        duration,
        snap_length,
        survives_outages: false,
    })
}

fn refused(error: &CaptureError) -> Refused {
    let code = match error {
        CaptureError::Filter { .. } | CaptureError::Name(_) => ErrorCode::Invalid,
        _ => ErrorCode::Conflict,
    };
    Refused(ErrorDocument::new(code, error.to_string()))
}

/// Sends what is written to the body of a response.
struct ChunkWriter {
    sender: mpsc::Sender<Result<Bytes, CaptureError>>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        if bytes.is_empty() {
            return if self.sender.is_closed() { Err(gone()) } else { Ok(0) };
        }
        let chunk = Ok(Bytes::copy_from_slice(bytes));
        self.sender.blocking_send(chunk).map_err(|_| gone())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.sender.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}
