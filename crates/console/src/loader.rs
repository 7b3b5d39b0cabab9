//! Plans and profiles of this machine, as the command line reads them.

use std::collections::BTreeMap;
use std::path::Path;

use wirestorm_api::plan::PlanPort;
use wirestorm_api::run::{TrexProfile, TrexStreams};

/// A file to read.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'a> {
    /// File.
    pub file: &'a Path,
    /// Numbers and names of the ports, for a profile of streams: each gets its own streams.
    pub ports: &'a [(u32, String)],
    /// Arguments of a profile in Python.
    pub tunables: &'a [String],
}

/// A plan or a profile, ready for a server.
#[derive(Clone, Debug)]
pub enum LoadedPlan {
    /// A plan in YAML or JSON.
    Text {
        /// Text.
        text: String,
        /// Ports, in plan order.
        ports: Vec<PlanPort>,
    },
    /// Streams of TRex by port number.
    TrexStreams(BTreeMap<String, TrexStreams>),
    /// A stateful profile of TRex.
    TrexProfile(TrexProfile),
    /// The profile has printed its help instead.
    Help(String),
}

/// Reads plans and profiles.
pub trait PlanLoader: Send {
    /// Reads a file.
    ///
    /// # Errors
    /// A message with the file, the place and what to do.
    fn load(&self, request: LoadRequest<'_>) -> Result<LoadedPlan, String>;
}
