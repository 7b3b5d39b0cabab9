//! gRPC service of Open Traffic Generator.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use prost::{Message, Name};
use tonic::{Request, Response, Status, Streaming, async_trait};
use wirestorm_otg::proto::{self, Data};
use wirestorm_otg::service::server::{Openapi, OpenapiServer};
use wirestorm_otg::service::{Empty, Received};
use wirestorm_otg::{from_protobuf, update};

use super::error::OtgError;
use super::session::{Session, Warnings, texts};
use super::{Sessions, version};
use crate::server::Identity;

/// Longest message in bytes, also in parts.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Bytes of a part of a streamed message.
const CHUNK_BYTES: usize = 4 << 20 >> 1;

/// Returns the service.
pub(super) fn service(sessions: Arc<Sessions>) -> OpenapiServer<Service> {
    OpenapiServer::new(Service { sessions })
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX)
}

pub(super) struct Service {
    sessions: Arc<Sessions>,
}

type Answer<T> = Result<Response<T>, Status>;
type Parts = Pin<Box<dyn Stream<Item = Result<Data, Status>> + Send>>;

impl From<OtgError> for Status {
    fn from(error: OtgError) -> Self {
        // snappi reads the error as JSON from the details of the status.
        let message = wirestorm_otg::to_json(&error.message());
        match error.status {
            400..500 => Self::invalid_argument(message),
            _ => Self::internal(message),
        }
    }
}

impl Service {
    /// Executes a request that may block on the configuration of its user.
    async fn with<T: Send + 'static>(
        &self,
        user: Option<Identity>,
        work: impl FnOnce(&mut Session, &Identity) -> Result<T, OtgError> + Send + 'static,
    ) -> Result<T, Status> {
        // The layer that identifies the user comes first.
        let user = user.ok_or_else(|| Status::unauthenticated("the request has no user"))?;
        let sessions = Arc::clone(&self.sessions);
        let work = move || sessions.with(&user, |session| work(session, &user));
        let answer = tokio::task::spawn_blocking(work).await;
        let answer =
            answer.map_err(|_| Status::internal("a defect in wirestorm ended the request"));
        Ok(answer??)
    }
}

/// Splits a request into its user and its message with the fields without effect.
fn parts<T>(request: Request<Received<T>>) -> (Option<Identity>, T, Warnings) {
    let user = request.extensions().get::<Identity>().cloned();
    let Received { message, warnings } = request.into_inner();
    (user, message, texts(&warnings))
}

/// Collects a streamed message.
async fn collected<T: Message + Name + Default>(
    request: Request<Streaming<Received<Data>>>,
) -> Result<(Option<Identity>, T, Warnings), Status> {
    let user = request.extensions().get::<Identity>().cloned();
    let mut stream = request.into_inner();
    let mut bytes = Vec::new();
    while let Some(part) = stream.next().await {
        let part = part?.message;
        if bytes.len() + part.datum.len() > MESSAGE_BYTES_MAX {
            let message = format!("the message has more than {MESSAGE_BYTES_MAX} bytes");
            return Err(Status::resource_exhausted(message));
        }
        bytes.extend(part.datum);
    }
    let decoded = from_protobuf::<T>(&bytes);
    let (message, warnings) = decoded.map_err(|error| Status::from(OtgError::from(error)))?;
    Ok((user, message, texts(&warnings)))
}

/// Streams the encoding of a message in parts.
fn streamed(message: &impl Message) -> Answer<Parts> {
    let bytes = message.encode_to_vec();
    let parts: Vec<Result<Data, Status>> = bytes
        .chunks(CHUNK_BYTES)
        .map(|part| Ok(Data { datum: part.to_vec(), chunk_size: part.len() as u64 }))
        .collect();
    Ok(Response::new(Box::pin(stream::iter(parts))))
}

fn warning(mut first: Warnings, second: Warnings) -> Option<proto::Warning> {
    first.extend(second);
    Some(proto::Warning { warnings: first })
}

fn missing(field: &str) -> OtgError {
    OtgError::invalid(format!("{field}: found nothing, expected a message"))
}

impl Service {
    async fn config(
        &self,
        user: Option<Identity>,
        config: proto::Config,
        unknown: Warnings,
    ) -> Answer<proto::SetConfigResponse> {
        let warnings = self.with(user, |session, user| session.set_config(user, config)).await?;
        Ok(Response::new(proto::SetConfigResponse { warning: warning(unknown, warnings) }))
    }

    async fn state(
        &self,
        user: Option<Identity>,
        state: proto::ControlState,
        unknown: Warnings,
    ) -> Answer<proto::SetControlStateResponse> {
        let warnings = self.with(user, move |session, _| session.set_control_state(&state)).await?;
        Ok(Response::new(proto::SetControlStateResponse { warning: warning(unknown, warnings) }))
    }

    async fn action(
        &self,
        user: Option<Identity>,
        action: proto::ControlAction,
        unknown: Warnings,
    ) -> Answer<proto::SetControlActionResponse> {
        let mut response =
            self.with(user, move |session, _| session.set_control_action(&action)).await?;
        response.warnings.extend(unknown);
        let control_action_response = Some(response);
        Ok(Response::new(proto::SetControlActionResponse { control_action_response }))
    }

    async fn metrics(
        &self,
        request: Request<Received<proto::GetMetricsRequest>>,
    ) -> Result<proto::GetMetricsResponse, Status> {
        let (user, message, _) = parts(request);
        let work = move |session: &mut Session, _: &Identity| {
            let wanted = message.metrics_request.ok_or_else(|| missing("metrics_request"))?;
            session.get_metrics(&wanted)
        };
        let metrics_response = Some(self.with(user, work).await?);
        Ok(proto::GetMetricsResponse { metrics_response })
    }

    async fn states(
        &self,
        request: Request<Received<proto::GetStatesRequest>>,
    ) -> Result<proto::GetStatesResponse, Status> {
        let (user, message, _) = parts(request);
        let work = move |session: &mut Session, _: &Identity| {
            let wanted = message.states_request.ok_or_else(|| missing("states_request"))?;
            session.get_states(&wanted)
        };
        let states_response = Some(self.with(user, work).await?);
        Ok(proto::GetStatesResponse { states_response })
    }

    async fn capture(
        &self,
        request: Request<Received<proto::GetCaptureRequest>>,
    ) -> Result<proto::GetCaptureResponse, Status> {
        let (user, message, _) = parts(request);
        let work = move |session: &mut Session, _: &Identity| {
            let wanted = message.capture_request.ok_or_else(|| missing("capture_request"))?;
            session.get_capture(&wanted)
        };
        let response_bytes = self.with(user, work).await?;
        Ok(proto::GetCaptureResponse { response_bytes })
    }

    async fn current(
        &self,
        request: Request<Received<Empty>>,
    ) -> Result<proto::GetConfigResponse, Status> {
        let (user, _, _) = parts(request);
        let config = self.with(user, |session, _| Ok(session.config.clone())).await?;
        Ok(proto::GetConfigResponse { config: Some(config) })
    }
}

#[async_trait]
impl Openapi for Service {
    type streamGetConfigStream = Parts;
    type streamGetMetricsStream = Parts;
    type streamGetStatesStream = Parts;
    type streamGetCaptureStream = Parts;

    async fn set_config(
        &self,
        request: Request<Received<proto::SetConfigRequest>>,
    ) -> Answer<proto::SetConfigResponse> {
        let (user, message, unknown) = parts(request);
        let config = message.config.ok_or_else(|| missing("config"))?;
        self.config(user, config, unknown).await
    }

    async fn stream_set_config(
        &self,
        request: Request<Streaming<Received<Data>>>,
    ) -> Answer<proto::SetConfigResponse> {
        let (user, config, unknown) = collected(request).await?;
        self.config(user, config, unknown).await
    }

    async fn get_config(
        &self,
        request: Request<Received<Empty>>,
    ) -> Answer<proto::GetConfigResponse> {
        self.current(request).await.map(Response::new)
    }

    async fn stream_get_config(&self, request: Request<Received<Empty>>) -> Answer<Parts> {
        streamed(&self.current(request).await?.config.unwrap_or_default())
    }

    async fn update_config(
        &self,
        request: Request<Received<proto::UpdateConfigRequest>>,
    ) -> Answer<proto::UpdateConfigResponse> {
        let (user, message, unknown) = parts(request);
        let change = message.config_update.ok_or_else(|| missing("config_update"))?;
        let warnings = self.with(user, move |session, _| session.update_config(&change)).await?;
        Ok(Response::new(proto::UpdateConfigResponse { warning: warning(unknown, warnings) }))
    }

    async fn append_config(
        &self,
        request: Request<Received<proto::AppendConfigRequest>>,
    ) -> Answer<proto::AppendConfigResponse> {
        let (user, message, unknown) = parts(request);
        let change = message.config_append.ok_or_else(|| missing("config_append"))?;
        let work = move |session: &mut Session, _: &Identity| {
            let new = update::append(&session.config, &change)?;
            session.change_config(new)
        };
        let warnings = self.with(user, work).await?;
        Ok(Response::new(proto::AppendConfigResponse { warning: warning(unknown, warnings) }))
    }

    async fn delete_config(
        &self,
        request: Request<Received<proto::DeleteConfigRequest>>,
    ) -> Answer<proto::DeleteConfigResponse> {
        let (user, message, unknown) = parts(request);
        let change = message.config_delete.ok_or_else(|| missing("config_delete"))?;
        let work = move |session: &mut Session, _: &Identity| {
            let new = update::delete(&session.config, &change)?;
            session.change_config(new)
        };
        let warnings = self.with(user, work).await?;
        Ok(Response::new(proto::DeleteConfigResponse { warning: warning(unknown, warnings) }))
    }

    async fn set_control_state(
        &self,
        request: Request<Received<proto::SetControlStateRequest>>,
    ) -> Answer<proto::SetControlStateResponse> {
        let (user, message, unknown) = parts(request);
        let state = message.control_state.ok_or_else(|| missing("control_state"))?;
        self.state(user, state, unknown).await
    }

    async fn stream_set_control_state(
        &self,
        request: Request<Streaming<Received<Data>>>,
    ) -> Answer<proto::SetControlStateResponse> {
        let (user, state, unknown) = collected(request).await?;
        self.state(user, state, unknown).await
    }

    async fn set_control_action(
        &self,
        request: Request<Received<proto::SetControlActionRequest>>,
    ) -> Answer<proto::SetControlActionResponse> {
        let (user, message, unknown) = parts(request);
        let action = message.control_action.ok_or_else(|| missing("control_action"))?;
        self.action(user, action, unknown).await
    }

    async fn stream_set_control_action(
        &self,
        request: Request<Streaming<Received<Data>>>,
    ) -> Answer<proto::SetControlActionResponse> {
        let (user, action, unknown) = collected(request).await?;
        self.action(user, action, unknown).await
    }

    async fn get_metrics(
        &self,
        request: Request<Received<proto::GetMetricsRequest>>,
    ) -> Answer<proto::GetMetricsResponse> {
        self.metrics(request).await.map(Response::new)
    }

    async fn stream_get_metrics(
        &self,
        request: Request<Received<proto::GetMetricsRequest>>,
    ) -> Answer<Parts> {
        streamed(&self.metrics(request).await?.metrics_response.unwrap_or_default())
    }

    async fn get_states(
        &self,
        request: Request<Received<proto::GetStatesRequest>>,
    ) -> Answer<proto::GetStatesResponse> {
        self.states(request).await.map(Response::new)
    }

    async fn stream_get_states(
        &self,
        request: Request<Received<proto::GetStatesRequest>>,
    ) -> Answer<Parts> {
        streamed(&self.states(request).await?.states_response.unwrap_or_default())
    }

    async fn get_capture(
        &self,
        request: Request<Received<proto::GetCaptureRequest>>,
    ) -> Answer<proto::GetCaptureResponse> {
        self.capture(request).await.map(Response::new)
    }

    async fn stream_get_capture(
        &self,
        request: Request<Received<proto::GetCaptureRequest>>,
    ) -> Answer<Parts> {
        let file = self.capture(request).await?.response_bytes;
        let parts: Vec<Result<Data, Status>> = file
            .chunks(CHUNK_BYTES)
            .map(|part| Ok(Data { datum: part.to_vec(), chunk_size: part.len() as u64 }))
            .collect();
        Ok(Response::new(Box::pin(stream::iter(parts))))
    }

    async fn get_version(&self, _: Request<Received<Empty>>) -> Answer<proto::GetVersionResponse> {
        Ok(Response::new(proto::GetVersionResponse { version: Some(version()) }))
    }
}
