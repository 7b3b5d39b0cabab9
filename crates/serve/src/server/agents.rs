//! Agents of the bus whose director the server is.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wirestorm_api::agent::{Agent, AgentInterface, AgentList, AgentState};
use wirestorm_bus::cluster::{LEASES, MEMBERS_MAX};
use wirestorm_bus::nats::Key;
use wirestorm_bus::subject::Site;
use wirestorm_bus::{Bus, BusError, ConnectionState, RecvError, Subscription};

use super::Server;
use crate::cluster::{PortPresence, Presence};

/// Number of messages that wait.
const MESSAGES_MAX: usize = 4_096;
/// Interval at which the thread looks whether it is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time without a message after which an agent counts as lost, and after which it is forgotten.
const LOST_AFTER: Duration = Duration::from_secs(5);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);

/// A director on a bus.
#[derive(Clone, Debug)]
pub struct DirectorMember {
    /// Bus.
    pub bus: Arc<dyn Bus>,
    /// Site, as in subjects.
    pub site: Site,
    /// Name of the director, for messages.
    pub name: String,
    /// Key that signs the orders.
    pub key: Key,
}

/// What agents reported last, by name.
type Known = Mutex<BTreeMap<String, (Presence, Instant)>>;

/// Agents of a bus. A thread notes what they report.
pub(super) struct Agents {
    pub(super) member: DirectorMember,
    known: Arc<Known>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Reason why the agents of a bus cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The bus refused.
    #[error("bus: {0}")]
    Bus(#[from] BusError),
    /// A thread does not start.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Agents {
    /// Follows the agents of a bus.
    ///
    /// # Errors
    /// See [`FollowError`].
    pub(super) fn follow(member: DirectorMember) -> Result<Self, FollowError> {
        let statuses = member.bus.subscribe(&member.site.all_agent_status(), MESSAGES_MAX)?;
        let (known, stop) = (Arc::<Known>::default(), Arc::new(AtomicBool::new(false)));
        let (noted, stopping, site) = (Arc::clone(&known), Arc::clone(&stop), member.site.clone());
        let thread = std::thread::Builder::new().name("serve-agents".into());
        let thread = thread.spawn(move || note_all(&statuses, &site, &noted, &stopping));
        let thread = Some(thread.map_err(FollowError::Thread)?);
        Ok(Self { member, known, stop, thread })
    }

    /// Returns the agents by name.
    fn list(&self) -> AgentList {
        let reason = match self.member.bus.state() {
            ConnectionState::Connected(_) => None,
            ConnectionState::Disconnected { since, reason } => Some(format!(
                "no connection to the bus for {} s: {reason}",
                since.elapsed().as_secs()
            )),
        };
        // Copied, so that a slow bus does not hold up the thread that notes messages.
        let known: Vec<_> = lock(&self.known).values().cloned().collect();
        // Without a connection, what the agents reported last is the best guess.
        let leased = match reason {
            None => self.member.bus.keys(LEASES).ok().unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        let agents = known.into_iter().map(|(presence, at)| {
            let test = leased.contains(&presence.agent).then(|| self.holder(&presence.agent));
            agent(presence, at.elapsed(), test.flatten())
        });
        let agents: Vec<Agent> = agents.collect();
        let none = "no agent has reported yet: start `wirestorm agent` on each machine";
        let reason = reason.or_else(|| agents.is_empty().then(|| none.to_owned()));
        AgentList { site: Some(self.member.site.name().to_owned()), reason, agents }
    }

    /// Returns the test that has the lease of an agent.
    fn holder(&self, agent: &str) -> Option<String> {
        let entry = self.member.bus.get(LEASES, agent).ok()??;
        Some(String::from_utf8_lossy(&entry.value).into_owned())
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A panic of the thread has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn note_all(statuses: &Subscription, site: &Site, known: &Known, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        let message = match statuses.recv(POLL_INTERVAL) {
            Ok(message) => Some(message),
            Err(RecvError::Timeout) => None,
            Err(RecvError::Closed) => return,
        };
        let presence = message.and_then(|message| Presence::read(&message, site));
        let mut known = lock(known);
        known.retain(|_, (_, at)| at.elapsed() < FORGOTTEN_AFTER);
        if let Some(presence) = presence
            && (known.len() < MEMBERS_MAX || known.contains_key(&presence.agent))
        {
            known.insert(presence.agent.clone(), (presence, Instant::now()));
        }
    }
}

fn lock(known: &Known) -> MutexGuard<'_, BTreeMap<String, (Presence, Instant)>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn agent(presence: Presence, since: Duration, test: Option<String>) -> Agent {
    let state = match &test {
        _ if since > LOST_AFTER => AgentState::Lost,
        Some(_) => AgentState::Busy,
        None => AgentState::Idle,
    };
    let interface = |port: PortPresence| AgentInterface {
        interface: port.interface,
        link: port.link,
        speed_bps: port.speed_bps,
    };
    Agent {
        name: presence.agent,
        host: presence.host,
        version: presence.version,
        state,
        test,
        seen_s: since.as_secs_f64(),
        reflector: presence.reflector.iter().map(ToString::to_string).collect(),
        interfaces: presence.ports.into_iter().map(interface).collect(),
    }
}

impl Server {
    /// Returns the agents of the bus; none without a bus.
    pub(crate) fn agents(&self) -> AgentList {
        match &self.agents {
            Some(agents) => agents.list(),
            None => AgentList {
                site: None,
                reason: Some(
                    "this server has no bus, so tests run on its own interfaces: start it with \
                     `wirestorm serve --bus-credentials FILE` to use agents"
                        .to_owned(),
                ),
                agents: Vec::new(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_without_messages_is_lost_and_a_leased_one_is_busy() {
        let presence = || Presence {
            agent: "tx".into(),
            version: "1".into(),
            host: "h".into(),
            reflector: vec!["192.0.2.1:862".parse().unwrap()],
            interfaces: Vec::new(),
            ports: Vec::new(),
            test: None,
        };
        let state = |seconds, test: Option<&str>| {
            agent(presence(), Duration::from_secs(seconds), test.map(str::to_owned)).state
        };
        assert_eq!(state(1, None), AgentState::Idle);
        assert_eq!(state(1, Some("t1")), AgentState::Busy);
        assert_eq!(state(6, Some("t1")), AgentState::Lost);
    }
}
