//! Runs: create, command, follow, results and reports.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{Stream, stream};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::progress::Progress;
use wirestorm_api::run::{CommandRequest, RunList, RunRequest, RunSummary};
use wirestorm_report::{Options, Report, run::Run};

use super::answer::{Answer, Document, Query, blocking, blocking_json};
use crate::server::{Identity, Server};

/// Create a run
///
/// Prepares the run and starts it as requested. Errors in the plan, and ports that are in use, are
/// in the answer. The run continues when the client goes away.
#[utoipa::path(post, path = "/runs", tag = "runs",
    request_body = RunRequest,
    responses((status = 201, body = RunSummary), (status = 409, body = ErrorDocument),
        (status = 422, body = ErrorDocument)))]
pub(super) async fn create(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Document(request): Document<RunRequest>,
) -> Answer<(StatusCode, Json<RunSummary>)> {
    let run = blocking_json(move || server.create_run(&user, request)).await?;
    Ok((StatusCode::CREATED, run))
}

/// Parameters of the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Maximum number of runs, at most 1,000; 100 by default.
    limit: Option<usize>,
}

/// Runs of the server and of its history, the newest first
#[utoipa::path(get, path = "/runs", tag = "runs", params(ListQuery),
    responses((status = 200, body = RunList)))]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<RunList>> {
    blocking_json(move || server.runs(query.limit.unwrap_or(100))).await
}

/// A run
#[utoipa::path(get, path = "/runs/{run}", tag = "runs",
    params(("run" = String, Path,
        description = "ID of the run, its name, the beginning of its ID, or `latest`")),
    responses((status = 200, body = RunSummary), (status = 404, body = ErrorDocument)))]
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
) -> Answer<Json<RunSummary>> {
    blocking_json(move || server.run(&run)).await
}

/// Command a run
///
/// Workers follow within 25 ms.
#[utoipa::path(post, path = "/runs/{run}/commands", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run")),
    request_body = CommandRequest,
    responses((status = 200, body = RunSummary), (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn command(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(run): Path<String>,
    Document(request): Document<CommandRequest>,
) -> Answer<Json<RunSummary>> {
    blocking_json(move || server.command(&user, &run, &request)).await
}

/// Parameters of live counters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ProgressQuery {
    /// Whether to include each flow; `true` by default.
    flows: Option<bool>,
}

/// Live counters of a run
#[utoipa::path(get, path = "/runs/{run}/progress", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run"), ProgressQuery),
    responses((status = 200, body = Progress), (status = 409, body = ErrorDocument)))]
pub(super) async fn progress(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
    Query(query): Query<ProgressQuery>,
) -> Answer<Json<Progress>> {
    blocking_json(move || server.progress(&run, query.flows.unwrap_or(true))).await
}

/// Parameters of the stream of live counters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FollowQuery {
    /// Interval in milliseconds, 100 to 60,000; 1,000 by default.
    interval_ms: Option<u64>,
    /// Whether to include each flow; `true` by default.
    flows: Option<bool>,
}

/// Live counters of a run as server-sent events
///
/// The data of each event is a `Progress` document. The last one has a final state; then the stream
/// ends. A slow reader gets fewer events.
#[utoipa::path(get, path = "/runs/{run}/events", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run"), FollowQuery),
    responses((status = 200, content_type = "text/event-stream", body = Progress),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn follow(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
    Query(query): Query<FollowQuery>,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let interval = query.interval_ms.unwrap_or(1_000);
    if !(100..=60_000).contains(&interval) {
        let message = format!("interval_ms {interval}: expected 100 to 60000");
        return Err(ErrorDocument::new(ErrorCode::Invalid, message).into());
    }
    let with_flows = query.flows.unwrap_or(true);
    // An error belongs to the head of the response.
    let named = Arc::clone(&server);
    let id = blocking(move || {
        let id = named.run(&run)?.id;
        named.progress(&id, false).map(|_| id)
    })
    .await?;
    let mut timer = tokio::time::interval(Duration::from_millis(interval));
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let events = stream::unfold(Some((server, id, timer)), move |state| async move {
        let (server, id, mut timer) = state?;
        timer.tick().await;
        let progress = server.progress(&id, with_flows).ok()?;
        let is_over = progress.state.is_over();
        let event = Event::default().json_data(&progress).ok()?;
        Some((Ok(event), (!is_over).then_some((server, id, timer))))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Result of a run
///
/// A document of the format `wirestorm.result/2`, or `wirestorm.bench/1` for a method.
#[utoipa::path(get, path = "/runs/{run}/result", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run")),
    responses((status = 200, body = serde_json::Value), (status = 409, body = ErrorDocument)))]
pub(super) async fn result(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
) -> Answer<Response> {
    let json = blocking(move || server.result(&run)).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

/// Parameters of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReportQuery {
    /// Format; `html` by default.
    format: Option<ReportFormat>,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReportFormat {
    /// One HTML file with plots.
    #[default]
    Html,
    /// Markdown.
    Markdown,
    /// JUnit.
    Junit,
    /// Figures as JSON.
    Json,
}

/// Report on a run
#[utoipa::path(get, path = "/runs/{run}/report", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run"), ReportQuery),
    responses((status = 200, content_type = "text/html", body = String),
        (status = 404, body = ErrorDocument)))]
pub(super) async fn report(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
    Query(query): Query<ReportQuery>,
) -> Answer<Response> {
    let format = query.format.unwrap_or_default();
    let text = blocking(move || {
        let directory = server.run_directory(&run)?;
        let stored = Run::read(&directory)
            .map_err(|error| ErrorDocument::new(ErrorCode::Storage, error.to_string()))?;
        let stored = [stored];
        let report = Report::new(&stored, &Options::default());
        Ok(match format {
            ReportFormat::Html => report.html(),
            ReportFormat::Markdown => report.markdown(),
            ReportFormat::Junit => report.junit(),
            ReportFormat::Json => report.json(),
        })
    })
    .await?;
    let content_type = match format {
        ReportFormat::Html => "text/html; charset=utf-8",
        ReportFormat::Markdown => "text/markdown; charset=utf-8",
        ReportFormat::Junit => "application/xml; charset=utf-8",
        ReportFormat::Json => "application/json",
    };
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}

/// Delete a run from the history
#[utoipa::path(delete, path = "/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run")),
    responses((status = 204), (status = 409, body = ErrorDocument)))]
pub(super) async fn delete(
    State(server): State<Arc<Server>>,
    Extension(user): Extension<Identity>,
    Path(run): Path<String>,
) -> Answer<StatusCode> {
    blocking(move || server.delete_run(&user, &run)).await?;
    Ok(StatusCode::NO_CONTENT)
}
