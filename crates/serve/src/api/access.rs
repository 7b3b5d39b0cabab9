//! Who may send a request: users by token or client certificate, or anybody on loopback.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use tokio::time::MissedTickBehavior;
use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::session::{Limits, Role, SESSION_HEADER, USER_HEADER, User};

use super::answer::Refused;
use crate::listen::Peer;
use crate::server::{Identity, Owner, Server, checked_name};

/// Interval at which endless answers check the rights of their user.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Access to an endpoint.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) server: Arc<Server>,
    /// Whether each request needs a token or a client certificate. Without, clients choose a name,
    /// and all are administrators; the endpoint must be on loopback.
    pub(crate) needs_user: bool,
    /// A user of this endpoint alone.
    pub(crate) owner: Option<Owner>,
}

/// Adds the [`Identity`] of the user to a request, or refuses it.
pub(crate) async fn identify(
    State(access): State<Access>,
    mut request: Request,
    next: Next,
) -> Response {
    let identity = match access.identity(&request) {
        Ok(identity) => identity,
        Err(error) => return Refused(error).into_response(),
    };
    // What names the user, for answers that outlast the user.
    let mut named = Request::new(Body::empty());
    if access.needs_user {
        named.headers_mut().clone_from(request.headers());
        if let Some(peer) = request.extensions().get::<Peer>() {
            named.extensions_mut().insert(peer.clone());
        }
    }
    let role = identity.role;
    request.extensions_mut().insert(identity);
    let response = next.run(request).await;
    if access.needs_user && is_stream(&response) {
        let has_role = move || access.identity(&named).is_ok_and(|identity| identity.role >= role);
        return response.map(|body| while_allowed(body, has_role));
    }
    response
}

/// Returns whether an answer goes on until the client leaves: events, or captured frames.
fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind == "text/event-stream" || kind == "application/x-pcapng")
}

/// Ends a body once the user has lost its rights: it was removed, has a new token or a lesser role.
fn while_allowed(body: Body, is_allowed: impl Fn() -> bool + Send + 'static) -> Body {
    let mut timer = tokio::time::interval(RECHECK_INTERVAL);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let state = (body.into_data_stream(), timer, is_allowed);
    Body::from_stream(stream::unfold(state, |(mut data, mut timer, is_allowed)| async move {
        loop {
            tokio::select! {
                // A stream that always has data must not keep the check out.
                biased;
                _ = timer.tick() => if !is_allowed() { return None },
                chunk = data.next() => return chunk.map(|chunk| (chunk, (data, timer, is_allowed))),
            }
        }
    }))
}

/// Refuses requests of users with less than a role.
pub(crate) async fn require(State(role): State<Role>, request: Request, next: Next) -> Response {
    let found = request.extensions().get::<Identity>();
    if found.is_some_and(|identity| identity.role >= role) {
        return next.run(request).await;
    }
    let message = match found {
        Some(identity) => format!(
            "{} has the role {}, and this request needs {}",
            identity.user,
            identity.role.name(),
            role.name()
        ),
        // The layers are in the wrong order: a defect, which must not open the route.
        None => "the request has no user".to_owned(),
    };
    Refused(ErrorDocument::new(ErrorCode::Forbidden, message)).into_response()
}

impl Access {
    fn identity(&self, request: &Request) -> Result<Identity, ErrorDocument> {
        let headers = request.headers();
        let session = text(headers, SESSION_HEADER)?.unwrap_or_default();
        if !session.is_empty() {
            checked_name("session", session)?;
        }
        if !self.needs_user {
            check_origin(request)?;
            let user = text(headers, USER_HEADER)?.unwrap_or(Identity::ANONYMOUS);
            checked_name("user", user)?;
            return Ok(Identity {
                user: user.into(),
                session: session.into(),
                role: Role::Administer,
                limits: Arc::default(),
            });
        }
        let user = self.user(request)?;
        let User { name, role, limits, .. } = user;
        Ok(Identity {
            user: name.into(),
            session: session.into(),
            role,
            limits: Arc::<Limits>::new(limits),
        })
    }

    /// Returns the user by the token, or by the client certificate.
    fn user(&self, request: &Request) -> Result<User, ErrorDocument> {
        let broken = |error: crate::server::UsersError| {
            ErrorDocument::new(ErrorCode::Internal, error.to_string())
        };
        let refused = |message: &str| ErrorDocument::new(ErrorCode::Unauthorized, message);
        let users = self.server.users();
        if let Some(value) = text(request.headers(), header::AUTHORIZATION.as_str())? {
            let token =
                value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            let (_, token) =
                token.ok_or_else(|| refused("expected `Authorization: Bearer TOKEN`"))?;
            let owner = self.owner.as_ref().and_then(|owner| owner.with_token(token.trim()));
            let user = match owner {
                Some(owner) => Some(owner),
                None => users.with_token(token.trim()).map_err(broken)?,
            };
            return user.ok_or_else(|| refused("no user has this token"));
        }
        let peer = request.extensions().get::<Peer>();
        if let Some(name) = peer.and_then(|peer| peer.certificate.as_deref()) {
            let user = users.with_certificate(name).map_err(broken)?;
            return user.ok_or_else(|| {
                refused(&format!("no user has a client certificate with the common name {name:?}"))
            });
        }
        Err(refused(
            "this server needs a token: send `Authorization: Bearer TOKEN`, or use --token-file",
        ))
    }
}

/// Returns the text of a header.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ErrorDocument> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value.to_str().map(Some).map_err(|_| {
        let message = format!("header {name}: expected printable ASCII characters");
        ErrorDocument::new(ErrorCode::Invalid, message)
    })
}

/// Refuses requests that a page of another site makes in a browser on this machine. Such a page can
/// reach loopback: its requests have a foreign `Origin`, or a foreign `Host` if its name resolves to
/// loopback (DNS rebinding).
fn check_origin(request: &Request) -> Result<(), ErrorDocument> {
    let headers = request.headers();
    let refused = |message: String| Err(ErrorDocument::new(ErrorCode::Forbidden, message));
    // HTTP/2 has the authority in the URI instead.
    let host = match text(headers, header::HOST.as_str())? {
        Some(host) => host,
        None => request.uri().authority().map_or("", |authority| authority.as_str()),
    };
    let bare = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|it| it.is_ascii_digit()));
    let bare = bare.map_or(host, |(bare, _)| bare);
    let address = bare.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    if !(bare == "localhost" || address.is_ok_and(|address| address.is_loopback())) {
        return refused(format!(
            "found host {host:?}, expected localhost or a loopback address: this server has no users"
        ));
    }
    match text(headers, header::ORIGIN.as_str())? {
        Some(origin) if origin.split_once("://").is_none_or(|(_, origin)| origin != host) => {
            refused(format!("found a request of a page of {origin}, expected one of {host}"))
        }
        _ => Ok(()),
    }
}
