//! The stateful mode: profiles of clients and servers on all ports together.
//!
//! ```text
//! profile: idle ─fragments─> loaded ─start─> parse ─> build ─> transmit ─> cleanup ─> loaded
//! ```
//!
//! One client owns the context: all ports, and everything that belongs to none of them.

mod clients;
mod counters;
mod flow_info;
mod latency;
mod profiles;
mod table;
mod topology;
mod traffic;
mod tunnels;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub(super) use clients::*;
pub(super) use counters::*;
pub(super) use flow_info::*;
pub(super) use latency::*;
pub(super) use profiles::*;
pub(super) use topology::*;
pub(super) use traffic::*;
pub(super) use tunnels::*;

use super::events::Event;
use super::parameters::{Parameters, done};
use super::port::{DEFAULT_PROFILE, Owner, PortState};
use super::rpc::{Answer, RpcError};
use super::{State, Trex, token};

/// State of a profile, in the numbers of TRex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ProfileState {
    Idle,
    Loaded,
    Parse,
    Build,
    Transmit,
    Cleanup,
    Delete,
}

impl ProfileState {
    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Loaded => "Loaded profile",
            Self::Parse => "Parsing profile",
            Self::Build => "Setup traffic",
            Self::Transmit => "Transmitting",
            Self::Cleanup => "Cleanup traffic",
            Self::Delete => "Delete profile",
        }
    }
}

/// State of the stateful mode.
pub(super) struct Astf {
    /// Owner of the context.
    owner: Option<Owner>,
    /// Changes when the total counters restart.
    epoch: u64,
    /// Number of the next profile that starts.
    next_run: u32,
    profiles: BTreeMap<String, StatefulProfile>,
    /// Counters of ended profiles since the start of the first one: clients and servers.
    ended: [Counts; 2],
    /// MAC addresses and IPv4 addresses that clients want ignored, as they sent them.
    ignored: [Vec<Value>; 2],
    /// Clients that a request asks about.
    asked_clients: Option<Vec<u32>>,
    pub(super) latency: Latency,
    topology: Topology,
    tunnels: Tunnels,
    /// State that was published last.
    published: u8,
}

impl Default for Astf {
    fn default() -> Self {
        let default = StatefulProfile::default();
        Self {
            owner: None,
            epoch: 0,
            next_run: 0,
            profiles: BTreeMap::from([(DEFAULT_PROFILE.to_owned(), default)]),
            ended: Default::default(),
            ignored: Default::default(),
            asked_clients: None,
            latency: Latency::default(),
            topology: Topology::default(),
            tunnels: Tunnels::default(),
            published: 0,
        }
    }
}

impl Astf {
    fn profile(&self, name: &str) -> Result<&StatefulProfile, RpcError> {
        let found = self.profiles.get(name);
        found.ok_or_else(|| RpcError::execution(format!("Invalid profile : {name}")))
    }

    fn profile_mut(&mut self, name: &str) -> Result<&mut StatefulProfile, RpcError> {
        self.profiles
            .get_mut(name)
            .ok_or_else(|| RpcError::execution(format!("ASTF profile_id {name} does not exist")))
    }

    /// Returns the active runs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &StatefulRun> {
        self.profiles.values().filter_map(|profile| profile.run.as_deref())
    }

    /// Returns the state of all profiles together.
    fn state(&self, sends_streams: bool) -> ProfileState {
        use ProfileState::{Build, Cleanup, Delete, Idle, Loaded, Parse, Transmit};
        if sends_streams {
            return Transmit;
        }
        let has = |state| self.profiles.values().any(|profile| profile.state == state);
        let order = [Transmit, Build, Parse, Cleanup, Loaded];
        let found = order.into_iter().find(|state| has(*state));
        found.unwrap_or(if has(Delete) { Loaded } else { Idle })
    }
}

impl State {
    fn astf_state(&self) -> ProfileState {
        let sends = self.ports.iter().any(|port| port.state() == PortState::Transmitting);
        self.astf.state(sends)
    }
}

impl Trex {
    /// Changes the state of a profile and publishes it.
    fn enter(&self, state: &mut State, name: &str, new: ProfileState, error: Option<String>) {
        if let Some(profile) = state.astf.profiles.get_mut(name) {
            profile.state = new;
        }
        let epoch = state.astf.epoch;
        let (profile, new) = (name.to_owned(), new as u8);
        self.publish(state, [Event::AstfProfileState { profile, state: new, epoch, error }]);
        self.publish_astf_state(state);
    }

    fn publish_astf_state(&self, state: &mut State) {
        let now = state.astf_state() as u8;
        if std::mem::replace(&mut state.astf.published, now) != now {
            let epoch = state.astf.epoch;
            self.publish(state, [Event::AstfState { state: now, epoch }]);
        }
    }

    /// Checks that the client owns the context.
    pub(super) fn context(&self, parameters: &Parameters<'_>) -> Result<Owner, RpcError> {
        let owner = self.state().astf.owner.clone();
        let handler = parameters.text_or("handler", "")?;
        owner
            .filter(|owner| owner.handler == handler)
            .ok_or_else(|| RpcError::execution("must acquire the context for this operation"))
    }
}

pub(super) fn acquire(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let user = parameters.text("user")?;
    let force = parameters.flag("force")?;
    let session = parameters.u32("session_id")?;
    let before = trex.state().astf.owner.clone();
    if before.is_some() && !force {
        let text = "context is already taken (use 'force' argument to override)";
        return Err(RpcError::execution(text));
    }
    let is_other = before.is_none_or(|it| (it.user.as_str(), it.session) != (user, session));
    if is_other && force {
        // The traffic of an earlier owner ends with its ownership.
        trex.stop_all();
        trex.stop_latency();
    }
    let mut handlers = Map::new();
    for port in 0..trex.interfaces.len() {
        match trex.take_port(port, user, session, force) {
            Ok((handler, _)) => handlers.insert(port.to_string(), handler.into()),
            Err(error) => {
                // Ports that another client of this server leases stay with it.
                for port in 0..port {
                    trex.give_port(port);
                }
                return Err(error);
            }
        };
    }
    let handler = token().ok_or_else(|| RpcError::execution("no random numbers"))?;
    let mut state = trex.state();
    state.astf.owner = Some(Owner { user: user.to_owned(), session, handler: handler.clone() });
    state.sessions.add_owner(session);
    Ok(json!({"ports": handlers, "handler": handler}))
}

pub(super) fn release(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let owner = trex.context(parameters)?;
    for port in 0..trex.interfaces.len() {
        trex.give_port(port);
    }
    let mut state = trex.state();
    state.astf.owner = None;
    state.sessions.remove_owner(owner.session);
    Ok(Value::Null)
}

pub(super) fn sync(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let with_profiles = !parameters.text_or("profile_id", "")?.is_empty();
    let state = trex.state();
    let mut document = json!({"epoch": state.astf.epoch, "state": state.astf_state() as u8});
    if with_profiles {
        let states = state.astf.profiles.iter();
        let states: Map<String, Value> =
            states.map(|(name, it)| (name.clone(), (it.state as u8).into())).collect();
        document["state_profile"] = states.into();
    }
    Ok(document)
}

pub(super) fn inc_epoch(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let mut state = trex.state();
    let now = state.astf_state();
    if matches!(now, ProfileState::Parse | ProfileState::Build | ProfileState::Cleanup) {
        let text = format!("Can't increase epoch in current state: {}", now.name());
        return Err(RpcError::execution(text));
    }
    state.astf.epoch += 1;
    Ok(json!({"epoch": state.astf.epoch}))
}

pub(super) fn get_profile_list(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let state = trex.state();
    let mut list: Vec<Value> = state.astf.profiles.keys().map(|it| it.as_str().into()).collect();
    if parameters.flag_or("profiles_in_ports", false)? {
        let ports: Map<String, Value> = state
            .ports
            .iter()
            .enumerate()
            .map(|(port, it)| (port.to_string(), it.profiles.keys().cloned().collect()))
            .collect();
        list.push(ports.into());
    }
    Ok(list.into())
}

pub(super) fn service(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    trex.context(parameters)?;
    let is_enabled = parameters.flag("enabled")?;
    let is_filtered = parameters.flag_or("filtered", false)?;
    if is_filtered && parameters.byte_or("mask", 0)? & 1 == 0 {
        return Err(RpcError::execution("Cannot disable no_tcp_udp in ASTF!"));
    }
    for port in 0..trex.interfaces.len() {
        trex.set_service(port, is_enabled, is_filtered)?;
    }
    done()
}
