//! The programs of both sides of a template.

use wirestorm_model::program::Step;
use wirestorm_wire::conversation::Imported;

use super::types::Transport;

/// Gives what was found in the capture of this name, as the plan has it; or why there is nothing.
pub(super) type Load<'a> = dyn FnMut(&str) -> Result<Imported, String> + 'a;

/// What both sides of a connection say.
#[derive(Debug)]
pub(crate) struct Speech {
    /// Which of several it is; they have connections of their own.
    pub(crate) part: Option<String>,
    /// Where its flows are only those that programs of others ask for. Such ones are the last ones
    /// of several.
    pub(crate) on_demand: Option<OnDemand>,
    /// The client's steps.
    pub(crate) client: Vec<Step>,
    /// The server's.
    pub(crate) server: Vec<Step>,
    /// What carries it.
    pub(crate) transport: Transport,
    /// Where servers usually listen.
    pub(crate) port: u16,
    /// Whether it is HTTP/2.
    pub(crate) is_http2: bool,
    /// What of it is not as it may seem.
    pub(crate) notes: Vec<String>,
}

/// How others' programs ask for flows.
#[derive(Clone, Debug)]
pub(crate) struct OnDemand {
    /// By the name of this group.
    pub(crate) group: String,
    /// Where its servers listen; `None`: where programs of others do.
    pub(crate) listen: Option<u16>,
}

impl Speech {
    /// One without anything said.
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
