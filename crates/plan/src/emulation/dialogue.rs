//! Dialogue of a template: the programs of both sides.

use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Imported;

use super::types::Transport;

/// Loads the flows of a capture by its name in the plan. The error is the reason of a failure.
pub(super) type LoadCapture<'a> = dyn FnMut(&str) -> Result<Imported, String> + 'a;

/// Programs of both sides of a flow.
#[derive(Debug)]
pub(crate) struct Dialogue {
    /// Suffix of the template's name, if a document's template becomes several.
    pub(crate) part: Option<String>,
    /// Set if only programs of other templates start the flows. Such dialogues come last in a list.
    pub(crate) on_demand: Option<OnDemand>,
    /// Program of the client.
    pub(crate) client: Vec<Step>,
    /// Program of the server.
    pub(crate) server: Vec<Step>,
    /// Transport protocol.
    pub(crate) transport: Transport,
    /// Default port of the server.
    pub(crate) port: u16,
    /// Whether HTTP/2 carries the messages.
    pub(crate) is_http2: bool,
    /// Notes about what may surprise.
    pub(crate) notes: Vec<String>,
}

/// How programs of other templates start the flows of a dialogue.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand {
    /// Group that the programs select.
    pub(crate) group: String,
    /// Listening port of the servers; `None`: programs of other templates listen.
    pub(crate) listen: Option<u16>,
}

impl Dialogue {
    /// Creates a dialogue with empty programs.
    pub(crate) const fn of(transport: Transport, port: u16) -> Self {
        Self {
            part: None,
            on_demand: None,
            client: Vec::new(),
            server: Vec::new(),
            transport,
            port,
            is_http2: false,
            notes: Vec::new(),
        }
    }
}
