//! The user of a request, and the users of the server.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::session::{NewUser, Session, User, UserRequest};
use wirestorm_control::result::HostFacts;

use super::answer::{Answer, Document, blocking, blocking_json};
use crate::server::{Identity, Server, UsersError, checked_name};

/// The user of the request
///
/// Returns the user, its session, role and limits, and the version of the server.
#[utoipa::path(get, path = "/session", tag = "session",
    responses((status = 200, body = Session)))]
pub(super) async fn session(Extension(user): Extension<Identity>) -> Json<Session> {
    Json(Session {
        user: user.user.to_string(),
        session: user.session.to_string(),
        role: user.role,
        limits: user.limits.as_ref().clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: HostFacts::read().name,
    })
}

/// Users of the server
#[utoipa::path(get, path = "/users", tag = "session",
    responses((status = 200, body = Vec<User>)))]
pub(super) async fn users(State(server): State<Arc<Server>>) -> Answer<Json<Vec<User>>> {
    blocking_json(move || server.users().list().map_err(of_users)).await
}

/// Add a user, or replace one
///
/// Creates a new token; an old one of the user ends at once. The answer is the only place that
/// shows the token.
#[utoipa::path(put, path = "/users/{name}", tag = "session",
    params(("name" = String, Path, description = "Name of the user")),
    request_body = UserRequest,
    responses((status = 200, body = NewUser), (status = 400, body = ErrorDocument)))]
pub(super) async fn put_user(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Document(request): Document<UserRequest>,
) -> Answer<Json<NewUser>> {
    blocking_json(move || {
        checked_name("user", &name)?;
        server.users().put(&name, request).map_err(of_users)
    })
    .await
}

/// Remove a user
///
/// Its token ends at once. Its leases and runs continue.
#[utoipa::path(delete, path = "/users/{name}", tag = "session",
    params(("name" = String, Path, description = "Name of the user")),
    responses((status = 204), (status = 404, body = ErrorDocument)))]
pub(super) async fn delete_user(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    blocking(move || server.users().remove(&name).map_err(of_users)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn of_users(error: UsersError) -> ErrorDocument {
    let code = match error {
        UsersError::Unknown(_) => ErrorCode::NotFound,
        _ => ErrorCode::Storage,
    };
    ErrorDocument::new(code, error.to_string())
}
