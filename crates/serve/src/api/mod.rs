//! HTTP API: one module for each kind of object, and the list of routes.
//!
//! ```text
//! request ─> identify: token or certificate ─> require: role ─> handler ─> Server (may block)
//! ```
//!
//! [`router`] returns the routes and their OpenAPI document, which both come from the handlers.

mod access;
mod answer;
mod captures;
mod events;
mod plans;
mod ports;
mod runs;
mod schemas;
mod sessions;
mod tests;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, SecurityRequirement};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;
use wirestorm_api::BASE;
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::session::Role;

pub(crate) use access::Access;
use access::{identify, require};

use crate::metrics;
use crate::server::{PLAN_BYTES_MAX, Server};

/// Longest body of a request in bytes, uploads of captures apart.
const BODY_BYTES_MAX: usize = 2 * PLAN_BYTES_MAX;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Wirestorm",
        description = "API of `wirestorm serve`: ports, plans, captures, runs and tests of a \
                       traffic generator.\n\nA role includes those before it: observe, operate, \
                       administer. Each route names the role that it needs. Times are in \
                       nanoseconds since the Unix epoch."
    ),
    tags(
        (name = "session", description = "The user of a request, and the users of the server"),
        (name = "ports", description = "Interfaces that the server lends, and their leases"),
        (name = "plans", description = "Stored plans, and checks of plans"),
        (name = "captures", description = "Uploaded captures, and other files that plans name"),
        (name = "runs", description = "Runs: create, command, follow, results and reports"),
        (name = "tests", description = "Tests across machines, and the agents of the bus"),
        (name = "events", description = "Changes on the server")
    ),
    components(schemas(runs::ReportFormat)),
    modifiers(&Security)
)]
struct Api;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut Document) {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", bearer);
        document.security = Some(vec![SecurityRequirement::new("token", [""; 0])]);
        document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    }
}

/// Returns the routes by the role that they need, with their documentation.
fn routes() -> OpenApiRouter<Arc<Server>> {
    let observe = OpenApiRouter::new()
        .routes(routes!(sessions::session))
        .routes(routes!(ports::list))
        .routes(routes!(ports::show))
        .routes(routes!(plans::list))
        .routes(routes!(plans::show))
        .routes(routes!(plans::check))
        .routes(routes!(plans::frames))
        .routes(routes!(schemas::schema))
        .routes(routes!(captures::list))
        .routes(routes!(captures::download))
        .routes(routes!(runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::plan))
        .routes(routes!(runs::progress))
        .routes(routes!(runs::follow))
        .routes(routes!(runs::result))
        .routes(routes!(runs::report))
        .routes(routes!(tests::agents))
        .routes(routes!(tests::list))
        .routes(routes!(tests::show))
        .routes(routes!(tests::result))
        .routes(routes!(events::events));
    let operate = OpenApiRouter::new()
        .routes(routes!(ports::acquire, ports::release))
        .routes(routes!(ports::capture))
        .routes(routes!(plans::store, plans::delete))
        .routes(routes!(captures::upload).layer(DefaultBodyLimit::disable()))
        .routes(routes!(captures::delete))
        .routes(routes!(runs::create))
        .routes(routes!(runs::command))
        .routes(routes!(runs::delete))
        .routes(routes!(tests::create))
        .routes(routes!(tests::stop));
    let administer = OpenApiRouter::new()
        .routes(routes!(sessions::users))
        .routes(routes!(sessions::put_user, sessions::delete_user));
    let routes = needing(Role::Observe, observe)
        .merge(needing(Role::Operate, operate))
        .merge(needing(Role::Administer, administer));
    OpenApiRouter::with_openapi(Api::openapi()).nest(BASE, routes)
}

/// Makes routes need a role, and documents it.
fn needing(role: Role, mut routes: OpenApiRouter<Arc<Server>>) -> OpenApiRouter<Arc<Server>> {
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            let before = operation.description.take().unwrap_or_default();
            let gap = if before.is_empty() { "" } else { "\n\n" };
            operation.description = Some(format!("{before}{gap}Role: {}.", role.name()));
            let extension = Extensions::builder().add("x-role", role.name()).build();
            operation.extensions.get_or_insert_default().merge(extension);
        }
    }
    routes.route_layer(from_fn_with_state(role, require))
}

/// Returns the router of the API, with routes of another one that need the role `operate`.
pub(crate) fn router(access: Access, operate: Router) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = Arc::new(document);
    let openapi = get(move || async move { Json(document.as_ref().clone()) });
    let needed = from_fn_with_state(Role::Observe, require);
    let operate = operate.route_layer(from_fn_with_state(Role::Operate, require));
    router
        .with_state(Arc::clone(&access.server))
        .merge(metrics::route(access.server.watched()).route_layer(needed))
        .merge(operate)
        .route(&format!("{BASE}/openapi.json"), openapi)
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(access, identify))
        .layer(from_fn(no_store))
}

/// Returns the OpenAPI document of the API, as stored in `schemas/`.
///
/// # Errors
/// The document is not valid JSON.
pub fn openapi() -> serde_json::Result<String> {
    routes().into_openapi().to_pretty_json().map(|text| text + "\n")
}

async fn not_found() -> Response {
    let message = format!("no such route; the list is at {BASE}/openapi.json");
    answer::Refused(ErrorDocument::new(ErrorCode::NotFound, message)).into_response()
}

async fn not_allowed() -> Response {
    let message = format!("the route has no such method; the list is at {BASE}/openapi.json");
    let document = ErrorDocument::new(ErrorCode::Invalid, message);
    (StatusCode::METHOD_NOT_ALLOWED, Json(document)).into_response()
}

/// Keeps answers out of caches: they belong to one user and one moment.
async fn no_store(request: axum::extract::Request, next: axum::middleware::Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
