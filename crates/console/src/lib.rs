//! Terminal console of a server: live tables, and a command line that understands TRex's lines.
//!
//! ```text
//! keys ────────┐
//! signals ─────┤            ┌─> Model ──> view: draws, pure
//! watch ───────┼─ Update ─> │
//!  /events     │            └─> Effect ─┬─> work: Session executes a line
//!  /runs/ID    │                        └─> watch: follows a run
//! work ────────┘
//! ```
//!
//! [`interactive`] has one thread for each source; the main loop owns the `model` and draws.
//! [`execute`] runs lines without a terminal. Both use the table of `command`s, from which help and
//! completion come too.
#![forbid(unsafe_code)]

mod command;
mod completion;
mod editor;
mod histogram;
mod history;
mod lines;
mod loader;
mod model;
pub mod number;
mod session;
mod terminal;
mod text;
mod traffic;
mod ui;
mod view;
mod watch;

use std::path::PathBuf;

use wirestorm_api::client::Client;

pub use command::CommandError;
pub use lines::execute;
pub use loader::{LoadRequest, LoadedPlan, PlanLoader};
pub use ui::{ConsoleError, interactive};

/// Creates a client of the server at an address, with the credentials of the command line.
pub type Connector = Box<dyn Fn(&str) -> Result<Client, String> + Send>;

/// What the console works with.
pub struct ConsoleOptions {
    /// Client of the server.
    pub client: Client,
    /// For the command `connect`.
    pub connector: Connector,
    /// Reads plans and profiles of this machine.
    pub loader: Box<dyn PlanLoader>,
    /// Whether the server is in this process and ends with it.
    pub is_own_server: bool,
    /// File with the history of the command line; `None` for no history.
    pub history: Option<PathBuf>,
    /// Whether to use colours.
    pub with_color: bool,
}

impl std::fmt::Debug for ConsoleOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsoleOptions").field("client", &self.client).finish_non_exhaustive()
    }
}
