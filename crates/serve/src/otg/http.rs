//! HTTP API of Open Traffic Generator.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Extension, Router};
use prost::{Message, Name};
use wirestorm_otg::{from_json, proto, to_json, update};

use super::error::OtgError;
use super::session::Warnings;
use super::{Sessions, version};
use crate::server::Identity;

/// Longest request in bytes: a configuration of 4,096 flows has about 5 MB.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A response: its status and JSON, or its bytes.
type Answer = Result<Response, OtgError>;

/// Returns the routes.
pub(super) fn router(sessions: Arc<Sessions>) -> Router {
    Router::new()
        .route("/config", get(get_config).post(set_config).patch(update_config))
        .route("/config/append", patch(append_config))
        .route("/config/delete", patch(delete_config))
        .route("/control/state", post(set_control_state))
        .route("/control/action", post(set_control_action))
        .route("/monitor/metrics", post(get_metrics))
        .route("/monitor/states", post(get_states))
        .route("/monitor/capture", post(get_capture))
        .route("/capabilities/version", get(get_version))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(sessions)
}

/// Executes a request that may block on another thread.
async fn blocking(work: impl FnOnce() -> Answer + Send + 'static) -> Response {
    let answer = tokio::task::spawn_blocking(work).await;
    let defect = || Err(OtgError::internal("a defect in wirestorm ended the request"));
    answer.unwrap_or_else(|_| defect()).unwrap_or_else(IntoResponse::into_response)
}

impl IntoResponse for OtgError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        (status, json(&self.message())).into_response()
    }
}

fn json<T: Message + Name>(message: &T) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], to_json(message)).into_response()
}

/// Decodes the body of a request. Adds the fields without effect to the warnings of the answer.
fn decoded<T: Message + Name + Default>(body: &Bytes) -> Result<(T, Warnings), OtgError> {
    let text = std::str::from_utf8(body)
        .map_err(|error| OtgError::invalid(format!("the request is not UTF-8: {error}")))?;
    let (message, warnings) = from_json(text)?;
    Ok((message, super::session::texts(&warnings)))
}

fn warning(mut first: Warnings, second: Warnings) -> Response {
    first.extend(second);
    json(&proto::Warning { warnings: first })
}

async fn set_config(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (config, unknown) = decoded::<proto::Config>(&body)?;
        let warnings = sessions.with(&user, |session| session.set_config(&user, config))?;
        Ok(warning(unknown, warnings))
    })
    .await
}

async fn get_config(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
) -> Response {
    blocking(move || Ok(sessions.with(&user, |session| json(&session.config)))).await
}

async fn update_config(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (change, unknown) = decoded::<proto::ConfigUpdate>(&body)?;
        let warnings = sessions.with(&user, |session| session.update_config(&change))?;
        Ok(warning(unknown, warnings))
    })
    .await
}

async fn append_config(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (change, unknown) = decoded::<proto::ConfigAppend>(&body)?;
        let warnings = sessions.with(&user, |session| {
            let new = update::append(&session.config, &change)?;
            session.change_config(new)
        })?;
        Ok(warning(unknown, warnings))
    })
    .await
}

async fn delete_config(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (change, unknown) = decoded::<proto::ConfigDelete>(&body)?;
        let warnings = sessions.with(&user, |session| {
            let new = update::delete(&session.config, &change)?;
            session.change_config(new)
        })?;
        Ok(warning(unknown, warnings))
    })
    .await
}

async fn set_control_state(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (state, unknown) = decoded::<proto::ControlState>(&body)?;
        let warnings = sessions.with(&user, |session| session.set_control_state(&state))?;
        Ok(warning(unknown, warnings))
    })
    .await
}

async fn set_control_action(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (action, unknown) = decoded::<proto::ControlAction>(&body)?;
        let mut response = sessions.with(&user, |session| session.set_control_action(&action))?;
        response.warnings.extend(unknown);
        Ok(json(&response))
    })
    .await
}

async fn get_metrics(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (request, _) = decoded::<proto::MetricsRequest>(&body)?;
        Ok(json(&sessions.with(&user, |session| session.get_metrics(&request))?))
    })
    .await
}

async fn get_states(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (request, _) = decoded::<proto::StatesRequest>(&body)?;
        Ok(json(&sessions.with(&user, |session| session.get_states(&request))?))
    })
    .await
}

async fn get_capture(
    State(sessions): State<Arc<Sessions>>,
    Extension(user): Extension<Identity>,
    body: Bytes,
) -> Response {
    blocking(move || {
        let (request, _) = decoded::<proto::CaptureRequest>(&body)?;
        let file = sessions.with(&user, |session| session.get_capture(&request))?;
        Ok(([(header::CONTENT_TYPE, "application/octet-stream")], file).into_response())
    })
    .await
}

async fn get_version() -> Response {
    json(&version())
}
