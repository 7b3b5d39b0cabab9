//! Agents of all nodes of a test in this process, without a server of a bus.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use tempfile::TempDir;
use wirestorm_api::session::Limits;
use wirestorm_bus::local::LocalBus;
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::{Bus, BusError};
use wirestorm_control::Host;
use wirestorm_control::plan::test_plan::TestPlan;

use super::agent::{Agent, AgentError, AgentOptions};
use crate::server::{Identity, Server, ServerError, ServerOptions};

/// Site of the bus in this process.
const SITE: &str = "local";

/// Agents of all nodes of a test, in this process.
pub struct LocalAgents {
    /// Bus of the agents.
    pub bus: Arc<dyn Bus>,
    /// Site.
    pub site: Site,
    /// Key of the director that the agents obey.
    pub key: Key,
    agents: Vec<Agent>,
    /// Folders of the agents; removed at the end.
    _folders: Vec<TempDir>,
}

/// Reason why the agents of a test do not start.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// An agent does not start.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The server of an agent does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The name of an agent is not valid.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// There is no temporary folder.
    #[error("no temporary folder: {0}")]
    Folder(io::Error),
}

impl LocalAgents {
    /// Starts an agent for each node.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub fn start(test: &TestPlan) -> Result<Self, LocalError> {
        let mut folders = Vec::new();
        // The nodes share the CPUs of this machine: two in-kernel senders on one CPU take turns.
        let machine = Host::new();
        let mut agents = Self::start_each(test, |options| {
            let folder = tempfile::tempdir().map_err(LocalError::Folder)?;
            let server = ServerOptions {
                ports: Vec::new(),
                directory: folder.path().join("server"),
                runs_directory: folder.path().join("runs"),
                captures_bytes_max: u64::MAX,
                director: None,
            };
            let server = Server::open_on(machine.of_other_node(), server)?;
            folders.push(folder);
            Ok(Agent::start(options(server))?)
        })?;
        agents._folders = folders;
        Ok(agents)
    }

    /// Starts an agent for each node whose runs are those of a user on a server. So its ports,
    /// leases, limits and captures are those of this server.
    ///
    /// # Errors
    /// See [`LocalError`].
    pub(crate) fn start_on(
        server: &Arc<Server>,
        user: &Identity,
        test: &TestPlan,
    ) -> Result<Self, LocalError> {
        Self::start_each(test, |options| {
            Ok(Agent::start_as(user.clone(), options(Arc::clone(server)))?)
        })
    }

    /// Starts an agent for each node by a function, which gets its options for a server.
    fn start_each(
        test: &TestPlan,
        mut start: impl FnMut(&dyn Fn(Arc<Server>) -> AgentOptions) -> Result<Agent, LocalError>,
    ) -> Result<Self, LocalError> {
        let (key, site) = (Key::generate(), Site::new(SITE)?);
        let bus: Arc<dyn Bus> = Arc::new(LocalBus::new());
        let names: BTreeSet<&String> = test.nodes.iter().map(|node| &node.agent).collect();
        let agents = names.into_iter().map(|name| {
            start(&|server| AgentOptions {
                name: name.clone(),
                site: site.clone(),
                bus: Arc::clone(&bus),
                server,
                trusted: vec![key.public()],
                limits: Limits::default(),
                destinations: Vec::new(),
                reflector: None,
                reflector_addresses: Vec::new(),
                references: None,
                ptp: None,
                orders_file: None,
                contents_directory: None,
                log: Box::new(|_| ()),
            })
        });
        let agents = agents.collect::<Result<_, _>>()?;
        Ok(Self { bus, site, key, agents, _folders: Vec::new() })
    }

    /// Returns the number of agents.
    pub fn count(&self) -> usize {
        self.agents.len()
    }
}
