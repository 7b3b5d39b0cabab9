//! JSON Schemas of plans and results.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_control::schema;

use super::answer::{Answer, blocking};

/// JSON Schema of plans or results
#[utoipa::path(get, path = "/schemas/{name}", tag = "plans",
    params(("name" = String, Path, description = "`plan`, `emulation-plan` or `result`")),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorDocument)))]
pub(super) async fn schema(Path(name): Path<String>) -> Answer<Response> {
    let text = blocking(move || match name.as_str() {
        "plan" => Ok(schema::plan()),
        "emulation-plan" => Ok(schema::emulation_plan()),
        "result" => Ok(schema::result()),
        _ => {
            let message = format!("schema {name:?}: expected plan, emulation-plan or result");
            Err(ErrorDocument::new(ErrorCode::NotFound, message))
        }
    })
    .await?;
    Ok(([(header::CONTENT_TYPE, "application/schema+json")], text).into_response())
}
