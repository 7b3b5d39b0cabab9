//! Uploaded captures, and other files that plans name.

use std::io::Read;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use wirestorm_api::capture::Capture;
use wirestorm_api::error::{ErrorCode, ErrorDocument};

use super::answer::{Answer, blocking, blocking_json};
use crate::server::Server;

/// Uploaded captures
#[utoipa::path(get, path = "/captures", tag = "captures",
    responses((status = 200, body = Vec<Capture>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Json<Vec<Capture>>> {
    blocking_json(move || server.captures()).await
}

/// Download a capture
#[utoipa::path(get, path = "/captures/{name}", tag = "captures",
    params(("name" = String, Path, description = "Name of the capture")),
    responses((status = 200, content_type = "application/octet-stream", body = String),
        (status = 404, body = ErrorDocument)))]
pub(super) async fn download(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<Response> {
    const CHUNK_BYTES: usize = 64 << 10;
    let attachment = format!("attachment; filename=\"{name}\"");
    let (file, length) = blocking(move || {
        let path = server.capture_path(&name)?;
        let file = std::fs::File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = file
            .map_err(|error| ErrorDocument::new(ErrorCode::Storage, format!("{name}: {error}")))?;
        Ok((file, length))
    })
    .await?;
    let chunks = stream::unfold(Some(file), |file| async {
        let read = tokio::task::spawn_blocking(move || {
            let mut file = file?;
            let mut chunk = vec![0; CHUNK_BYTES];
            match file.read(&mut chunk) {
                Ok(0) => None,
                Ok(length) => {
                    chunk.truncate(length);
                    Some((Ok(Bytes::from(chunk)), Some(file)))
                }
                Err(error) => Some((Err(error), None)),
            }
        });
        read.await.ok().flatten()
    });
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, attachment),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

/// Upload a capture, or another file that plans name
///
/// The file appears when it is complete, and replaces one of that name. Plans name it by its name.
#[utoipa::path(put, path = "/captures/{name}", tag = "captures",
    params(("name" = String, Path, description = "Name of the capture")),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, body = Capture), (status = 507, body = ErrorDocument)))]
pub(super) async fn upload(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    body: Body,
) -> Answer<Json<Capture>> {
    /// Number of chunks that wait for the disk.
    const CHUNKS_MAX: usize = 16;
    /// Maximum length that is read of a refused file, in bytes.
    const REFUSED_BYTES_MAX: usize = 64 << 20;
    let (sender, mut receiver) = mpsc::channel::<Option<Bytes>>(CHUNKS_MAX);
    let written = tokio::spawn(blocking_json(move || {
        let mut upload = server.upload(&name)?;
        while let Some(chunk) = receiver.blocking_recv() {
            match chunk {
                Some(chunk) => upload.write(&chunk)?,
                None => return server.finish_upload(upload),
            }
        }
        // The sender is gone without the mark of the end.
        let message = "the upload ended before the file was complete";
        Err(ErrorDocument::new(ErrorCode::Invalid, message))
    }));
    let mut chunks = body.into_data_stream();
    let mut is_complete = true;
    let mut refused_bytes = 0;
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else {
            is_complete = false;
            break;
        };
        // The writer is gone after an error, which `written` returns. Read on: a client that still
        // sends when the connection closes may not see the answer.
        let length = chunk.len();
        if sender.send(Some(chunk)).await.is_err() {
            refused_bytes += length;
            if refused_bytes > REFUSED_BYTES_MAX {
                break;
            }
        }
    }
    if is_complete {
        let _ = sender.send(None).await;
    }
    drop(sender);
    written.await.unwrap_or_else(|_| {
        let message = "a defect in wirestorm ended the request";
        Err(ErrorDocument::new(ErrorCode::Internal, message).into())
    })
}

/// Delete a capture
#[utoipa::path(delete, path = "/captures/{name}", tag = "captures",
    params(("name" = String, Path, description = "Name of the capture")),
    responses((status = 204), (status = 404, body = ErrorDocument)))]
pub(super) async fn delete(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    blocking(move || server.delete_capture(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
