//! Owners of ports: leases of the server, with the handlers of TRex.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wirestorm_api::lease::LeaseRequest;
use wirestorm_api::session::{Limits, Role};

use super::events::Event;
use super::parameters::{Parameters, done};
use super::port::Owner;
use super::rpc::{Answer, RpcError};
use super::transmission::Transmission;
use super::{Trex, token};
use crate::server::{Identity, checked_name};

/// Time that a request waits for the end of runs.
pub(super) const END_WAIT: Duration = Duration::from_secs(8);

/// Returns the identity of a client. TRex knows no rights: every client may take every port.
pub(super) fn identity(user: &str, session: u32) -> Identity {
    Identity {
        user: user.into(),
        session: session.to_string().into(),
        role: Role::Administer,
        limits: Arc::new(Limits::default()),
    }
}

/// Waits until runs are over, for at most [`END_WAIT`].
pub(super) fn wait_over(runs: &[Arc<Transmission>]) {
    let deadline = Instant::now() + END_WAIT;
    for run in runs {
        run.run.handle.wait_over(Some(deadline.saturating_duration_since(Instant::now())));
    }
}

impl Trex {
    /// Returns the number of a port from the parameters.
    pub(super) fn port_id(&self, parameters: &Parameters<'_>) -> Result<usize, RpcError> {
        parameters.value("port_id")?;
        self.checked_port(parameters.byte_or("port_id", 0)?.into())
    }

    pub(super) fn checked_port(&self, number: usize) -> Result<usize, RpcError> {
        if number < self.interfaces.len() {
            return Ok(number);
        }
        let ports: Vec<String> = (0..self.interfaces.len()).map(|it| it.to_string()).collect();
        let ports = ports.join(" ");
        Err(RpcError::execution(format!("invalid port id - should be: {ports}")))
    }

    /// Returns the number of a port that the client owns.
    pub(super) fn owned(&self, parameters: &Parameters<'_>) -> Result<usize, RpcError> {
        let number = self.port_id(parameters)?;
        let owner = self.owner(number).ok_or_else(|| {
            RpcError::execution("please acquire the port before modifying port state")
        })?;
        match parameters.text_or("handler", "")? == owner.handler {
            true => Ok(number),
            false => Err(RpcError::execution(
                "port is not owned by you or your current executing session",
            )),
        }
    }

    /// Returns the owner of a port, unless another protocol took the lease.
    pub(super) fn owner(&self, number: usize) -> Option<Owner> {
        let owner = self.state().ports[number].owner.clone()?;
        let lease = self.server.lease(&self.interfaces[number].name.to_string())?;
        let is_own = lease.user == owner.user && lease.session == owner.session.to_string();
        is_own.then_some(owner)
    }

    /// Returns the user that leases a port, through any protocol.
    pub(super) fn lessee(&self, number: usize) -> Option<String> {
        self.server.lease(&self.interfaces[number].name.to_string()).map(|lease| lease.user)
    }

    /// Leases a port for a client. Returns the handler.
    pub(super) fn take_port(
        &self,
        number: usize,
        user: &str,
        session: u32,
        force: bool,
    ) -> Result<(String, bool), RpcError> {
        checked_name("user", user).map_err(|error| RpcError::parameters(error.message))?;
        let before = self.owner(number);
        if let Some(owner) = before.as_ref().filter(|_| !force) {
            if (owner.user.as_str(), owner.session) == (user, session) {
                return Ok((owner.handler.clone(), false));
            }
            return Err(RpcError::execution(match owner.user == user {
                true => format!("port is already owned by another session of '{user}'"),
                false => format!("port is already taken by '{}'", owner.user),
            }));
        }
        let is_other = |owner: &Owner| (owner.user.as_str(), owner.session) != (user, session);
        if force && before.as_ref().is_none_or(is_other) {
            // The traffic of an earlier owner ends with its ownership.
            let runs: Vec<_> = {
                let state = self.state();
                let owner = format!("{user}/{session}");
                state.ports[number].runs().filter(|run| run.owner != owner).cloned().collect()
            };
            runs.iter().for_each(|run| run.stop());
            wait_over(&runs);
            self.settle();
        }
        let interface = &self.interfaces[number];
        let request = LeaseRequest { force, ..LeaseRequest::default() };
        let taken = self.lessee(number).is_some();
        self.server.acquire(&identity(user, session), &interface.port, &request).map_err(
            |error| match self.lessee(number) {
                Some(owner) => RpcError::execution(format!("port is already taken by '{owner}'")),
                None => RpcError::execution(error.message),
            },
        )?;
        let handler = token().ok_or_else(|| RpcError::execution("no random numbers"))?;
        let owner = Owner { user: user.to_owned(), session, handler: handler.clone() };
        let mut state = self.state();
        state.tagged.end_of_others(number, Some(user));
        state.ports[number].owner = Some(owner);
        Ok((handler, force && taken))
    }

    /// Ends the lease of a port.
    pub(super) fn give_port(&self, number: usize) -> Option<Owner> {
        let owner = self.owner(number);
        if let Some(owner) = &owner {
            let identity = identity(&owner.user, owner.session);
            // An error means that the lease has ended.
            let _ = self.server.release(&identity, &self.interfaces[number].port);
        }
        self.state().ports[number].owner = None;
        owner
    }

    /// Publishes the end of ownerships whose leases another protocol ended.
    pub(super) fn publish_lost_leases(&self) {
        for number in 0..self.interfaces.len() {
            let Some(owner) = self.state().ports[number].owner.clone() else { continue };
            if self.owner(number).is_some() {
                continue;
            }
            let lessee = self.lessee(number);
            let mut state = self.state();
            if state.ports[number].owner.as_ref() != Some(&owner) {
                continue;
            }
            state.ports[number].owner = None;
            state.tagged.end_of_others(number, None);
            // A session number that no client has: all of them see the change.
            let event = match lessee {
                Some(user) => Event::PortAcquired { port: number, user, session: 0, force: true },
                None => Event::PortReleased { port: number, user: owner.user, session: 0 },
            };
            self.publish(&mut state, [event]);
        }
    }
}

pub(super) fn acquire(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    let user = parameters.text("user")?;
    let force = parameters.flag("force")?;
    let session = parameters.u32("session_id")?;
    let (handler, was_taken) = trex.take_port(port, user, session, force)?;
    let mut state = trex.state();
    let event = Event::PortAcquired { port, user: user.to_owned(), session, force: was_taken };
    trex.publish(&mut state, [event]);
    state.sessions.add_owner(session);
    Ok(Value::String(handler))
}

pub(super) fn release(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.owned(parameters)?;
    if trex.state().tagged.has_port(port) {
        let text = format!("Please disable TPG in port {port} before releasing.");
        return Err(RpcError::execution(text));
    }
    if let Some(Owner { user, session, .. }) = trex.give_port(port) {
        let mut state = trex.state();
        let of_session =
            |port: &super::Port| port.owner.as_ref().is_some_and(|owner| owner.session == session);
        if !state.ports.iter().any(of_session) {
            state.sessions.remove_owner(session);
        }
        trex.publish(&mut state, [Event::PortReleased { port, user, session }]);
    }
    done()
}

pub(super) fn get_owner(trex: &Trex, parameters: &Parameters<'_>) -> Answer {
    let port = trex.port_id(parameters)?;
    Ok(json!({"owner": trex.lessee(port).unwrap_or_else(|| "<FREE>".to_owned())}))
}
