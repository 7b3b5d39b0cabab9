//! The gRPC service.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming, async_trait};
use wirestorm_gnmi::gnmi::{
    CapabilityRequest, CapabilityResponse, GetRequest, GetResponse, ModelData, Path, SetRequest,
    SetResponse, SubscribeRequest, SubscribeResponse,
};
use wirestorm_gnmi::gnmi_ext::{Extension, extension::Ext};
use wirestorm_gnmi::server::gNMI;

use super::path::{self, PathError};
use super::schema::{self, LISTS};
use super::selection::{ListSelection, Selection};
use super::tree::Tree;
use super::value::Form;
use super::{get, subscribe};
use crate::otg::Sessions;
use crate::server::Identity;

/// Version of the service.
const VERSION: &str = "0.10.0";
/// Publisher of the models.
const ORGANIZATION: &str = "OpenTrafficGenerator working group";
/// Maximum number of paths of a request.
pub(super) const PATHS_MAX: usize = 1_000;
/// Responses of an RPC that wait for its client.
const QUEUE: usize = 16;
/// Time until the next attempt to read metrics while a request changes the session.
const BUSY_WAIT: Duration = Duration::from_millis(10);

/// The service.
pub(crate) struct Service {
    sessions: Arc<Sessions>,
}

impl Service {
    pub(super) fn new(sessions: Arc<Sessions>) -> Self {
        Self { sessions }
    }

    /// Returns the metrics of the user of a request.
    fn source<T>(&self, request: &Request<T>) -> Result<Source, Status> {
        // The layer that identifies the user comes first.
        let user = request.extensions().get::<Identity>().cloned();
        let user = user.ok_or_else(|| Status::unauthenticated("the request has no user"))?;
        Ok(Source { sessions: Arc::clone(&self.sessions), user })
    }
}

/// The metrics of a user.
#[derive(Clone)]
pub(super) struct Source {
    sessions: Arc<Sessions>,
    user: Identity,
}

impl Source {
    /// Reads the metrics, with tagged metrics if wanted, and calls `then` with them on a thread for
    /// blocking work. Waits while a request changes the configuration of the user; no thread waits.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        with_tags: bool,
        then: impl FnOnce(Tree) -> T + Clone + Send + 'static,
    ) -> Result<T, Status> {
        loop {
            let (source, then) = (self.clone(), then.clone());
            let read = move || {
                let telemetry = source.sessions.try_telemetry(&source.user, with_tags)?;
                Some(then(Tree::now(&telemetry)))
            };
            let read = tokio::task::spawn_blocking(read).await;
            let read =
                read.map_err(|_| Status::internal("a defect in wirestorm ended the request"))?;
            match read {
                Some(value) => return Ok(value),
                None => tokio::time::sleep(BUSY_WAIT).await,
            }
        }
    }
}

type Answer<T> = Result<Response<T>, Status>;
type Responses = Pin<Box<dyn Stream<Item = Result<SubscribeResponse, Status>> + Send>>;

#[async_trait]
impl gNMI for Service {
    type SubscribeStream = Responses;

    async fn capabilities(
        &self,
        request: Request<CapabilityRequest>,
    ) -> Answer<CapabilityResponse> {
        check_extensions(&request.get_ref().extension)?;
        Ok(Response::new(CapabilityResponse {
            supported_models: LISTS.iter().map(|list| model(list.module)).collect(),
            supported_encodings: Form::ENCODINGS.iter().map(|it| (*it).into()).collect(),
            g_nmi_version: VERSION.to_owned(),
            extension: Vec::new(),
        }))
    }

    async fn get(&self, request: Request<GetRequest>) -> Answer<GetResponse> {
        let source = self.source(&request)?;
        let query = get::Query::new(request.into_inner())?;
        let response = source.read(query.has_tagged(), move |tree| query.response(&tree)).await?;
        response.map(Response::new)
    }

    async fn set(&self, _: Request<SetRequest>) -> Answer<SetResponse> {
        Err(Status::unimplemented(
            "Set: not supported; configure ports and flows with Open Traffic Generator (SetConfig)",
        ))
    }

    async fn subscribe(
        &self,
        request: Request<Streaming<SubscribeRequest>>,
    ) -> Answer<Self::SubscribeStream> {
        let source = self.source(&request)?;
        let requests = request.into_inner();
        let (sender, mut receiver) = mpsc::channel(QUEUE);
        // The task ends when the client cancels, which drops the receiver.
        tokio::spawn(async move {
            if let Err(Some(status)) = subscribe::run(requests, &source, &sender).await {
                // An error means that the client is gone.
                let _ = sender.send(Err(status)).await;
            }
        });
        Ok(Response::new(Box::pin(stream::poll_fn(move |context| receiver.poll_recv(context)))))
    }
}

fn model(name: &str) -> ModelData {
    ModelData {
        name: name.to_owned(),
        organization: ORGANIZATION.to_owned(),
        version: schema::REVISION.to_owned(),
    }
}

impl From<PathError> for Status {
    fn from(error: PathError) -> Self {
        Self::invalid_argument(error.to_string())
    }
}

/// Returns the form of an encoding.
///
/// # Errors
/// The encoding is not supported.
pub(super) fn form(encoding: i32) -> Result<Form, Status> {
    Form::of(encoding).ok_or_else(|| {
        Status::unimplemented(format!(
            "encoding: found {encoding}, expected JSON (0), PROTO (2) or JSON_IETF (4)"
        ))
    })
}

/// Resolves a path, within the models of a request; all without.
///
/// # Errors
/// The path or a model is not known.
pub(super) fn select(
    prefix: Option<&Path>,
    path: Option<&Path>,
    models: &[ModelData],
) -> Result<Selection, Status> {
    let mut selection = path::select(prefix, path)?;
    if models.is_empty() {
        return Ok(selection);
    }
    let known: Vec<&str> = LISTS.iter().map(|list| list.module).collect();
    if let Some(unknown) = models.iter().find(|model| !known.contains(&model.name.as_str())) {
        let message =
            format!("use_models: found {:?}, expected {}", unknown.name, known.join(" or "));
        return Err(Status::invalid_argument(message));
    }
    for (index, module) in known.iter().enumerate() {
        if models.iter().all(|model| model.name != *module) {
            selection.lists[index] = ListSelection::default();
        }
    }
    Ok(selection)
}

/// Refuses extensions that would change the meaning of a request.
///
/// # Errors
/// There is one.
pub(super) fn check_extensions(extensions: &[Extension]) -> Result<(), Status> {
    let unsupported = extensions.iter().find_map(|extension| match extension.ext.as_ref()? {
        Ext::RegisteredExt(_) | Ext::MasterArbitration(_) => None,
        Ext::History(_) => Some("history"),
        Ext::Commit(_) => Some("commit"),
        Ext::Depth(_) => Some("depth"),
        Ext::ConfigSubscription(_) => Some("config_subscription"),
    });
    unsupported.map_or(Ok(()), |name| {
        Err(Status::unimplemented(format!("extension {name}: not supported")))
    })
}

/// Returns the prefix of responses: the target and the origin of the request.
pub(super) fn echo(prefix: Option<&Path>) -> Option<Path> {
    let prefix = prefix?;
    let is_empty = prefix.target.is_empty() && prefix.origin.is_empty();
    (!is_empty).then(|| Path {
        target: prefix.target.clone(),
        origin: prefix.origin.clone(),
        ..Path::default()
    })
}
