//! JSON Schemas of plans and results.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_control::schema;

use super::answer::{Answer, blocking};
use crate::cluster;

/// JSON Schema of plans, tests or results
#[utoipa::path(get, path = "/schemas/{name}", tag = "plans",
    params(("name" = String, Path, description = "`plan`, `emulation-plan`, `test-plan`, `result` or `test`")),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorDocument)))]
pub(super) async fn schema(Path(name): Path<String>) -> Answer<Response> {
    let text = blocking(move || match name.as_str() {
        "plan" => Ok(schema::plan()),
        "emulation-plan" => Ok(schema::emulation_plan()),
        "test-plan" => cluster::test_plan_schema()
            .map_err(|error| ErrorDocument::new(ErrorCode::Internal, error.to_string())),
        "result" => Ok(schema::result()),
        "test" => Ok(cluster::test_schema()),
        _ => {
            let message = format!(
                "schema {name:?}: expected plan, emulation-plan, test-plan, result or test"
            );
            Err(ErrorDocument::new(ErrorCode::NotFound, message))
        }
    })
    .await?;
    Ok(([(header::CONTENT_TYPE, "application/schema+json")], text).into_response())
}
