//! Agents of the bus, and tests across machines.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use wirestorm_api::agent::AgentList;
use wirestorm_api::error::ErrorDocument;
use wirestorm_api::test::{TestRequest, TestStatus, TestSummary};

use super::answer::{Answer, Document, blocking, blocking_json};
use crate::server::{Identity, Server};

/// Agents of the bus
///
/// Without a bus (`wirestorm serve --bus-credentials`), the list is empty, and `reason` says so.
#[utoipa::path(get, path = "/agents", tag = "tests",
    responses((status = 200, body = AgentList)))]
pub(super) async fn agents(State(server): State<Arc<Server>>) -> Answer<Json<AgentList>> {
    blocking_json(move || Ok(server.agents())).await
}

/// Start a test
///
/// The nodes of the test are agents of the bus. Without a bus, all nodes are on this machine, and the
/// user needs the right to use their ports. Errors in the test and its plans, and ports that are in
/// use, are in the answer. The test continues when the client goes away.
#[utoipa::path(post, path = "/tests", tag = "tests",
    request_body = TestRequest,
    responses((status = 201, body = TestSummary), (status = 403, body = ErrorDocument),
        (status = 409, body = ErrorDocument), (status = 422, body = ErrorDocument)))]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Document(request): Document<TestRequest>,
) -> Answer<(StatusCode, Json<TestSummary>)> {
    let test = blocking_json(move || server.create_test(&user, request)).await?;
    Ok((StatusCode::CREATED, test))
}

/// Tests, the newest first
///
/// All tests that run, and the last 64 that ended.
#[utoipa::path(get, path = "/tests", tag = "tests",
    responses((status = 200, body = Vec<TestSummary>)))]
pub(super) async fn list(State(server): State<Arc<Server>>) -> Answer<Json<Vec<TestSummary>>> {
    blocking_json(move || Ok(server.tests())).await
}

/// A test with its progress and its results so far
#[utoipa::path(get, path = "/tests/{test}", tag = "tests",
    params(("test" = String, Path, description = "ID of the test")),
    responses((status = 200, body = TestStatus), (status = 404, body = ErrorDocument)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(test): Path<String>,
) -> Answer<Json<TestStatus>> {
    blocking_json(move || server.test(&test)).await
}

/// Stop a test
///
/// The test ends a little later, with the results so far.
#[utoipa::path(post, path = "/tests/{test}/stop", tag = "tests",
    params(("test" = String, Path, description = "ID of the test")),
    responses((status = 200, body = TestSummary), (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn stop(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(test): Path<String>,
) -> Answer<Json<TestSummary>> {
    blocking_json(move || server.stop_test(&user, &test)).await
}

/// Result of a test that is over
///
/// A document of the format `wirestorm.test/1`, as `wirestorm test --json` writes it.
#[utoipa::path(get, path = "/tests/{test}/result", tag = "tests",
    params(("test" = String, Path, description = "ID of the test")),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn result(
    State(server): State<Arc<Server>>,
    Path(test): Path<String>,
) -> Answer<Response> {
    let json = blocking(move || server.test_result(&test)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}
