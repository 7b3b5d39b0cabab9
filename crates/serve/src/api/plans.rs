//! Stored plans, checks of plans, and the frames of their flows.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use wirestorm_api::error::ErrorDocument;
use wirestorm_api::plan::{FlowFrames, PlanSummary, StoredPlan};

use super::answer::{Answer, Query, blocking, blocking_json};
use crate::server::Server;

/// Stored plans
#[utoipa::path(get, path = "/plans", tag = "plans",
    responses((status = 200, body = Vec<StoredPlan>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Json<Vec<StoredPlan>>> {
    blocking_json(move || server.plans()).await
}

/// Text of a stored plan
#[utoipa::path(get, path = "/plans/{name}", tag = "plans",
    params(("name" = String, Path, description = "Name of the plan")),
    responses((status = 200, content_type = "text/plain", body = String),
        (status = 404, body = ErrorDocument)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<String> {
    blocking(move || server.plan(&name)).await
}

/// Store a plan, or replace it
///
/// The plan in YAML or JSON must have no errors.
#[utoipa::path(put, path = "/plans/{name}", tag = "plans",
    params(("name" = String, Path, description = "Name of the plan")),
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = StoredPlan), (status = 422, body = ErrorDocument)))]
pub(super) async fn store(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    text: String,
) -> Answer<Json<StoredPlan>> {
    blocking_json(move || server.store_plan(&name, &text)).await
}

/// Delete a stored plan
#[utoipa::path(delete, path = "/plans/{name}", tag = "plans",
    params(("name" = String, Path, description = "Name of the plan")),
    responses((status = 204), (status = 404, body = ErrorDocument)))]
pub(super) async fn delete(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    blocking(move || server.delete_plan(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Check a plan
///
/// Returns what the plan in YAML or JSON contains, and its errors.
#[utoipa::path(post, path = "/plans/check", tag = "plans",
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = PlanSummary)))]
pub(super) async fn check(
    State(server): State<Arc<Server>>,
    text: String,
) -> Answer<Json<PlanSummary>> {
    blocking_json(move || Ok(server.check_plan(&text))).await
}

/// Parameters of the frames of a plan.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FramesQuery {
    /// Number of frames of each flow, 1 to 100; 1 by default.
    count: Option<u64>,
}

/// First frames of each flow of a plan
///
/// Returns the bytes of the frames, with their headers and fields.
#[utoipa::path(post, path = "/plans/frames", tag = "plans",
    params(FramesQuery),
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, body = Vec<FlowFrames>), (status = 422, body = ErrorDocument)))]
pub(super) async fn frames(
    State(server): State<Arc<Server>>,
    Query(query): Query<FramesQuery>,
    text: String,
) -> Answer<Json<Vec<FlowFrames>>> {
    blocking_json(move || server.frames(&text, query.count.unwrap_or(1))).await
}
