//! Answers of the API.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wirestorm_api::error::{ErrorCode, ErrorDocument};

/// An error as a response.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) ErrorDocument);

impl From<ErrorDocument> for Refused {
    fn from(document: ErrorDocument) -> Self {
        Self(document)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self.0)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = axum::http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The answer to a request.
pub(crate) type Answer<T> = Result<T, Refused>;

/// Executes what may block on another thread.
///
/// # Errors
/// The error of `work`, or a defect in it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorDocument> + Send + 'static,
) -> Answer<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer.map_err(Refused),
        Err(_) => {
            let message = "a defect in wirestorm ended the request";
            Err(Refused(ErrorDocument::new(ErrorCode::Internal, message)))
        }
    }
}

/// As [`blocking`], with a JSON answer.
///
/// # Errors
/// As [`blocking`].
pub(crate) async fn blocking_json<T: Serialize + Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorDocument> + Send + 'static,
) -> Answer<Json<T>> {
    blocking(work).await.map(Json)
}

/// A JSON document in the body of a request.
pub(crate) struct Document<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Document<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(document)) => Ok(Self(document)),
            Err(rejection) => {
                let code = match &rejection {
                    JsonRejection::BytesRejection(_)
                        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE =>
                    {
                        ErrorCode::TooLarge
                    }
                    _ => ErrorCode::Invalid,
                };
                Err(Refused(ErrorDocument::new(code, rejection.body_text())))
            }
        }
    }
}

/// The query of a request.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(QueryRejection::FailedToDeserializeQueryString(error)) => {
                let message = format!("the query is not valid: {}", error.body_text());
                Err(Refused(ErrorDocument::new(ErrorCode::Invalid, message)))
            }
            Err(error) => Err(Refused(ErrorDocument::new(ErrorCode::Invalid, error.body_text()))),
        }
    }
}
