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
use wirestorm_api::delays::FlowDelays;
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::progress::Progress;
use wirestorm_api::run::{CommandRequest, RunList, RunOrigin, RunRequest, RunSummary};
use wirestorm_report::{Options, Report, run::Run};

use super::answer::{Answer, Document, Query, blocking, blocking_json};
use crate::server::{Identity, ProgressDetail, Server};

/// Runs of a page by default.
const PAGE: usize = 100;

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
    /// Maximum number of runs, 1 to 1,000; 100 by default, and 1,000 with `active=true`.
    limit: Option<usize>,
    /// `next` of the list before, to continue with older runs; from the newest run without it. Not
    /// with `active=true`.
    after: Option<String>,
    /// `true`: only active runs, which are those that have not ended, whatever their age; `total`
    /// counts them, and there is one page. `false` by default.
    active: Option<bool>,
}

/// Runs of the server and of its history, the newest first
///
/// A list has one page. `next` of the page is `after` of the request for the next one. Runs that
/// start meanwhile appear on no later page.
#[utoipa::path(get, path = "/runs", tag = "runs", params(ListQuery),
    responses((status = 200, body = RunList), (status = 400, body = ErrorDocument)))]
pub(super) async fn list(
    State(server): State<Arc<Server>>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<RunList>> {
    if query.active == Some(true) {
        if query.after.is_some() {
            let message = "after: the list of active runs has one page: leave out after";
            return Err(ErrorDocument::new(ErrorCode::Invalid, message).into());
        }
        return blocking_json(move || server.active_list(query.limit)).await;
    }
    let limit = query.limit.unwrap_or(PAGE);
    blocking_json(move || server.runs(limit, query.after.as_deref())).await
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

/// How a run was started: its plan and its options
///
/// The plan is the text as it was sent, also that of a stored plan that was changed later. The
/// history keeps it.
#[utoipa::path(get, path = "/runs/{run}/plan", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run")),
    responses((status = 200, body = RunOrigin), (status = 404, body = ErrorDocument)))]
pub(super) async fn plan(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
) -> Answer<Json<RunOrigin>> {
    blocking_json(move || server.origin(&run)).await
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
    /// Number of measured flows with percentiles and histograms of their delays, 0 to 64; 0 by
    /// default.
    delays: Option<usize>,
    /// Number of measured flows before the first one with delays; 0 by default.
    delays_from: Option<usize>,
}

/// Returns what live counters include.
fn detail(
    flows: Option<bool>,
    delays: Option<usize>,
    delays_from: Option<usize>,
) -> Result<ProgressDetail, ErrorDocument> {
    let count = delays.unwrap_or(0);
    if count > FlowDelays::FLOWS_MAX {
        let message = format!("delays {count}: expected 0 to {}", FlowDelays::FLOWS_MAX);
        return Err(ErrorDocument::new(ErrorCode::Invalid, message));
    }
    let flows = flows.unwrap_or(true);
    if count > 0 && !flows {
        let message = "delays belong to flows: leave out flows=false";
        return Err(ErrorDocument::new(ErrorCode::Invalid, message));
    }
    let first = delays_from.unwrap_or(0);
    Ok(ProgressDetail { flows, delays: first..first.saturating_add(count) })
}

/// Live counters of a run
#[utoipa::path(get, path = "/runs/{run}/progress", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run"), ProgressQuery),
    responses((status = 200, body = Progress), (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn progress(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
    Query(query): Query<ProgressQuery>,
) -> Answer<Json<Progress>> {
    let detail = detail(query.flows, query.delays, query.delays_from)?;
    blocking_json(move || server.progress(&run, &detail)).await
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
    /// Number of measured flows with percentiles and histograms of their delays, 0 to 64; 0 by
    /// default. Histograms take about 500 bytes for each flow and event.
    delays: Option<usize>,
    /// Number of measured flows before the first one with delays; 0 by default.
    delays_from: Option<usize>,
}

/// Live counters of a run as server-sent events
///
/// The data of each event is a `Progress` document. The last one has a final state; then the stream
/// ends. A slow reader gets fewer events.
#[utoipa::path(get, path = "/runs/{run}/events", tag = "runs",
    params(("run" = String, Path, description = "ID or name of the run"), FollowQuery),
    responses((status = 200, content_type = "text/event-stream", body = Progress),
        (status = 400, body = ErrorDocument), (status = 409, body = ErrorDocument)))]
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
    let detail = detail(query.flows, query.delays, query.delays_from)?;
    // An error belongs to the head of the response.
    let named = Arc::clone(&server);
    let id = blocking(move || {
        let id = named.run(&run)?.id;
        named.progress(&id, &ProgressDetail { flows: false, delays: 0..0 }).map(|_| id)
    })
    .await?;
    let mut timer = tokio::time::interval(Duration::from_millis(interval));
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let events = stream::unfold(Some((server, id, detail, timer)), move |state| async move {
        let (server, id, detail, mut timer) = state?;
        timer.tick().await;
        let progress = match detail.delays.is_empty() {
            true => server.progress(&id, &detail).ok()?,
            // The receivers answer.
            false => {
                let (server, id, detail) = (Arc::clone(&server), id.clone(), detail.clone());
                blocking(move || server.progress(&id, &detail)).await.ok()?
            }
        };
        let is_over = progress.state.is_over();
        let event = Event::default().json_data(&progress).ok()?;
        Some((Ok(event), (!is_over).then_some((server, id, detail, timer))))
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
