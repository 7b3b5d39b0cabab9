//! What commands work on: a server, its ports by number or name, and the own runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirestorm_api::client::{Client, ClientError};
use wirestorm_api::port::{LinkState, Port};
use wirestorm_api::run::{CommandRequest, RunState, RunSummary};
use wirestorm_api::session::Session as Identity;

use crate::command::CommandError;
use crate::{Connector, PlanLoader};

/// Time that a command waits for the end of a run that it stopped.
const STOP_WAIT: Duration = Duration::from_secs(15);
/// Interval of live counters while a command waits.
const INTERVAL: Duration = Duration::from_millis(100);

/// Gets lines while a command executes.
pub(crate) type Notice = Box<dyn FnMut(&str) + Send>;

/// A session of a user with a server.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) connector: Connector,
    pub(crate) loader: Box<dyn PlanLoader>,
    pub(crate) notice: Notice,
    /// Whether live tables show the counters, which `clear` needs.
    pub(crate) has_tables: bool,
    /// Set to end a command that waits.
    pub(crate) cancel: Arc<AtomicBool>,
    identity: Option<Identity>,
    /// Runs that this session started and did not wait for.
    unwaited: Vec<String>,
    pub(crate) recordings: Vec<Recording>,
}

/// A capture of frames of a port to a file.
pub(crate) struct Recording {
    pub(crate) number: usize,
    pub(crate) port: String,
    pub(crate) file: PathBuf,
    pub(crate) bytes: Arc<AtomicU64>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) thread: std::thread::JoinHandle<std::result::Result<(), String>>,
}

type Result<T> = std::result::Result<T, CommandError>;

impl Session {
    pub(crate) fn new(
        client: Client,
        connector: Connector,
        loader: Box<dyn PlanLoader>,
        notice: Notice,
        has_tables: bool,
    ) -> Self {
        Self {
            client,
            connector,
            loader,
            notice,
            has_tables,
            cancel: Arc::default(),
            identity: None,
            unwaited: Vec::new(),
            recordings: Vec::new(),
        }
    }

    /// Returns the user, and the session on the server.
    pub(crate) fn identity(&mut self) -> Result<Identity> {
        if let Some(identity) = &self.identity {
            return Ok(identity.clone());
        }
        let identity = self.client.session()?;
        Ok(self.identity.insert(identity).clone())
    }

    /// Changes to another server.
    pub(crate) fn connect(&mut self, client: Client) -> Result<Identity> {
        let identity = client.session()?;
        self.client = client;
        self.unwaited.clear();
        Ok(self.identity.insert(identity).clone())
    }

    /// Returns whether the lease or the run of a user is one of this session.
    fn is_own(identity: &Identity, user: Option<&str>, session: &str) -> bool {
        user == Some(&identity.user) && session == identity.session
    }

    /// Returns the ports that this session leases, with their numbers.
    pub(crate) fn acquired(&mut self) -> Result<Vec<(u32, Port)>> {
        let identity = self.identity()?;
        let ports = numbered(self.client.ports()?);
        let own = ports.into_iter().filter(|(_, port)| {
            port.lease
                .as_ref()
                .is_some_and(|it| Self::is_own(&identity, Some(&it.user), &it.session))
        });
        Ok(own.collect())
    }

    /// Returns ports by name, interface or number.
    pub(crate) fn ports(&self, names: &[String]) -> Result<Vec<(u32, Port)>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let ports = numbered(self.client.ports()?);
        let mut found: Vec<(u32, Port)> = Vec::new();
        for name in names {
            let port = match find(&ports, name) {
                Some(port) => port.clone(),
                // An interface of another namespace, on a server that lends all.
                None if name.contains(['/', ':']) => {
                    let next = u32::try_from(ports.len() + found.len()).unwrap_or(u32::MAX);
                    (next, self.client.port(name)?)
                }
                None => return Err(CommandError::usage(unknown_port(&ports, name))),
            };
            if !found.iter().any(|(_, other)| other.interface == port.1.interface) {
                found.push(port);
            }
        }
        Ok(found)
    }

    /// Returns the given ports, else those that this session leases.
    pub(crate) fn ports_or_acquired(&mut self, names: &[String], all: bool) -> Result<Vec<Port>> {
        let ports = match (all, names.is_empty()) {
            (true, _) => numbered(self.client.ports()?),
            (false, false) => self.ports(names)?,
            (false, true) => {
                let acquired = self.acquired()?;
                if acquired.is_empty() {
                    return Err(CommandError::usage(
                        "no port is acquired: name ports with -p, or acquire them with `acquire -p \
                         PORT`",
                    ));
                }
                acquired
            }
        };
        Ok(ports.into_iter().map(|(_, port)| port).collect())
    }

    /// Returns the port beside a port: 0 and 1, 2 and 3. `None` if there is none that frames can
    /// arrive at.
    pub(crate) fn neighbour(&self, number: u32) -> Result<Option<(u32, Port)>> {
        let other = number ^ 1;
        let ports = numbered(self.client.ports()?);
        let found = ports.into_iter().find(|(number, _)| *number == other);
        Ok(found.filter(|(_, port)| port.link == LinkState::Up && port.runs.is_empty()))
    }

    /// Returns the active runs of this session, the newest first.
    pub(crate) fn active(&mut self) -> Result<Vec<RunSummary>> {
        let identity = self.identity()?;
        let runs = self.client.active_runs()?.into_iter();
        Ok(runs.filter(|run| Self::is_own(&identity, run.user.as_deref(), &run.session)).collect())
    }

    /// Returns the active runs that names or ports select; without both, all of this session.
    pub(crate) fn runs(&mut self, names: &[String], ports: &[String]) -> Result<Vec<RunSummary>> {
        if !names.is_empty() {
            return names.iter().map(|name| Ok(self.client.run(name)?)).collect();
        }
        // `0.profile` of TRex names a profile of a port; here a port has one.
        let bare: Vec<String> = ports
            .iter()
            .map(|port| port.split_once('.').map_or(port.as_str(), |(bare, _)| bare).to_owned())
            .collect();
        let interfaces: Vec<String> =
            self.ports(&bare)?.into_iter().map(|(_, port)| port.interface).collect();
        let mut runs = self.active()?;
        if !interfaces.is_empty() {
            runs.retain(|run| run.interfaces.iter().any(|it| interfaces.contains(it)));
        }
        if runs.is_empty() {
            let place = match ports {
                [] => String::new(),
                ports => format!(" on {}", ports.join(", ")),
            };
            return Err(CommandError::failed(format!(
                "no run of yours is active{place}: `runs` lists all runs"
            )));
        }
        Ok(runs)
    }

    /// Sends a command to a run.
    pub(crate) fn send(&self, run: &str, command: &CommandRequest) -> Result<RunSummary> {
        Ok(self.client.command(run, command)?)
    }

    /// Stops a run and waits for its end.
    pub(crate) fn stop(&self, run: &RunSummary) -> Result<RunSummary> {
        match self.client.command(&run.id, &CommandRequest::Stop) {
            // It ended by itself.
            Err(error) if error.code() == Some(wirestorm_api::error::ErrorCode::Conflict) => {}
            other => drop(other?),
        }
        self.wait(&run.id, Some(STOP_WAIT))
    }

    /// Waits for the end of a run, for at most `timeout`.
    pub(crate) fn wait(&self, run: &str, timeout: Option<Duration>) -> Result<RunSummary> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        'connections: loop {
            for progress in self.client.follow(run, INTERVAL)? {
                if progress?.state.is_over() {
                    break 'connections;
                }
                if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                    break 'connections;
                }
                if self.cancel.load(Ordering::Relaxed) {
                    return Err(CommandError::failed(format!("cancelled; {run} continues")));
                }
            }
        }
        Ok(self.client.run(run)?)
    }

    /// Waits until a run sends, or is over, so that the answer to its start is not outdated.
    pub(crate) fn wait_started(&self, run: RunSummary) -> Result<RunSummary> {
        let is_ready = |state| !matches!(state, RunState::Preparing | RunState::Prepared);
        if is_ready(run.state) {
            return Ok(run);
        }
        let deadline = Instant::now() + STOP_WAIT;
        for progress in self.client.follow(&run.id, INTERVAL)? {
            if is_ready(progress?.state) || Instant::now() > deadline {
                break;
            }
        }
        Ok(self.client.run(&run.id)?)
    }

    /// Remembers a run that this session started.
    pub(crate) fn started(&mut self, run: &RunSummary) {
        self.unwaited.push(run.id.clone());
    }

    /// Returns the runs that this session started since the last call, and its active ones.
    pub(crate) fn unwaited(&mut self) -> Result<Vec<RunSummary>> {
        let mut runs = self.active()?;
        for run in std::mem::take(&mut self.unwaited) {
            if !runs.iter().any(|active| active.id == run) {
                runs.push(self.client.run(&run)?);
            }
        }
        Ok(runs)
    }

    /// Uploads a file of this machine. Returns its name on the server.
    pub(crate) fn upload(&mut self, path: &Path) -> Result<String> {
        Ok(self.client.upload_file(path, &mut *self.notice)?)
    }
}

/// Numbers ports in the order of the server, from 0.
pub(crate) fn numbered(ports: Vec<Port>) -> Vec<(u32, Port)> {
    (0..).zip(ports).collect()
}

/// Returns the port with a name, else with an interface, else with a number.
pub(crate) fn find<'a>(ports: &'a [(u32, Port)], name: &str) -> Option<&'a (u32, Port)> {
    let by_name = ports.iter().find(|(_, port)| port.name == name);
    let by_interface = || ports.iter().find(|(_, port)| port.interface == name);
    let number = name.parse::<u32>().ok();
    by_name.or_else(by_interface).or_else(|| ports.iter().find(|it| Some(it.0) == number))
}

fn unknown_port(ports: &[(u32, Port)], name: &str) -> String {
    if ports.is_empty() {
        return format!("port {name:?}: the server has no ports");
    }
    let names = ports.iter().map(|(number, port)| match port.name == number.to_string() {
        true => port.name.clone(),
        false => format!("{number} ({})", port.name),
    });
    format!("port {name:?}: the ports are {}", names.collect::<Vec<_>>().join(", "))
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<wirestorm_api::upload::UploadError> for CommandError {
    fn from(error: wirestorm_api::upload::UploadError) -> Self {
        Self::failed(error.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn port(name: &str, interface: &str) -> Port {
        Port {
            name: name.to_owned(),
            interface: interface.to_owned(),
            link: LinkState::Up,
            kind: "veth".to_owned(),
            driver: "veth".to_owned(),
            mac: None,
            mtu: 1500,
            speed_bps: Some(10_000_000_000),
            default_route: false,
            backend: Some("xdp".to_owned()),
            backend_reason: String::new(),
            lease: None,
            runs: Vec::new(),
            capturing: Vec::new(),
        }
    }

    #[test]
    fn name_of_a_port_goes_before_its_number() {
        let ports = numbered(vec![port("1", "eth0"), port("left", "eth1")]);
        let number = |name| find(&ports, name).map(|(number, _)| *number);
        assert_eq!(["1", "0", "left", "eth1"].map(number), [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(number("2"), None);
        assert_eq!(unknown_port(&ports, "x"), "port \"x\": the ports are 0 (1), 1 (left)");
    }
}
