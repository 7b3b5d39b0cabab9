//! Ports of a server and their leases.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wirestorm_api::error::{ErrorCode, ErrorDocument};
use wirestorm_api::lease::{Lease, LeaseRequest};
use wirestorm_api::port::{LinkState, Port};
use wirestorm_api::session::Role;
use wirestorm_control::inventory::{self, InterfaceFacts};
use wirestorm_control::namespace::Namespace;
use wirestorm_control::{Host, host};

use super::identity::{Identity, owner};

/// A port that the server lends: an interface with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOption {
    /// Name of the port.
    pub name: String,
    /// Interface, with its namespace.
    pub interface: String,
}

/// Longest time of a lease without renewal.
const TTL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Ports of a server and their leases.
pub(super) struct Ports {
    /// Ports in the order of the options; empty for all interfaces of the machine.
    configured: Vec<PortOption>,
    host: Host,
    /// Leases by interface.
    leases: Mutex<BTreeMap<String, LeaseEntry>>,
}

struct LeaseEntry {
    user: String,
    session: String,
    since_unix_ns: u64,
    /// Time until the lease ends, and the instant of its end.
    expiry: Option<(Duration, Instant)>,
    _reserved: host::Lease,
}

impl LeaseEntry {
    fn document(&self) -> Lease {
        let left = |(_, end): (Duration, Instant)| end.saturating_duration_since(Instant::now());
        Lease {
            user: self.user.clone(),
            session: self.session.clone(),
            since_unix_ns: self.since_unix_ns,
            expires_in_s: self.expiry.map(|it| left(it).as_secs_f64()),
        }
    }

    fn owner(&self) -> String {
        owner(&self.user, &self.session)
    }
}

/// The end of a lease.
#[derive(Clone, Debug)]
pub(super) struct EndedLease {
    pub(super) interface: String,
    pub(super) user: String,
    pub(super) session: String,
}

impl Ports {
    pub(super) fn new(configured: Vec<PortOption>, host: Host) -> Self {
        Self { configured, host, leases: Mutex::default() }
    }

    /// Returns the ports in the order of the options.
    pub(super) fn configured(&self) -> &[PortOption] {
        &self.configured
    }

    /// Returns all ports, without their runs.
    pub(super) fn list(&self) -> Vec<Port> {
        if !self.configured.is_empty() {
            return self.configured.iter().map(|port| self.port(port)).collect();
        }
        let facts = inventory::interfaces(&Namespace::Current);
        let usable = facts.interfaces.into_iter().filter(|it| it.kind != "loopback");
        usable.map(|facts| self.document(facts.interface.clone(), facts)).collect()
    }

    /// Returns one port, without its runs.
    pub(super) fn port(&self, port: &PortOption) -> Port {
        match inventory::interface(&port.interface) {
            Ok(facts) => match facts.interfaces.into_iter().next() {
                Some(facts) => self.document(port.name.clone(), facts),
                None => self.missing(port, "the interface does not exist".to_owned()),
            },
            Err(error) => self.missing(port, error.to_string()),
        }
    }

    /// Returns the state of the link of an interface, and its speed in bits a second if known.
    pub(super) fn link(&self, interface: &str) -> (LinkState, Option<u64>) {
        let facts = inventory::interface(interface).ok();
        facts
            .and_then(|it| it.interfaces.into_iter().next())
            .map_or((LinkState::Missing, None), |facts| (link(&facts), facts.speed_bps))
    }

    fn document(&self, name: String, facts: InterfaceFacts) -> Port {
        let lease = self.lock().get(&facts.interface).map(LeaseEntry::document);
        Port {
            name,
            link: link(&facts),
            kind: facts.kind,
            driver: facts.driver,
            mac: facts.mac,
            mtu: facts.mtu,
            speed_bps: facts.speed_bps,
            default_route: facts.default_route,
            backend: facts.auto.map(str::to_owned),
            backend_reason: facts.why,
            lease,
            runs: Vec::new(),
            capturing: Vec::new(),
            interface: facts.interface,
        }
    }

    fn missing(&self, port: &PortOption, reason: String) -> Port {
        Port {
            name: port.name.clone(),
            interface: port.interface.clone(),
            link: LinkState::Missing,
            kind: String::new(),
            driver: String::new(),
            mac: None,
            mtu: 0,
            speed_bps: None,
            default_route: false,
            backend: None,
            backend_reason: reason,
            lease: self.lock().get(&port.interface).map(LeaseEntry::document),
            runs: Vec::new(),
            capturing: Vec::new(),
        }
    }

    /// Returns the port with a name, or with an interface.
    ///
    /// # Errors
    /// The server has no such port, or the limits of the user exclude it.
    pub(super) fn find(&self, name: &str, user: &Identity) -> Result<PortOption, ErrorDocument> {
        let found = match self.configured.as_slice() {
            [] => {
                // Any interface that exists; the loopback interface has no hardware addresses.
                let facts = inventory::interface(name).map_err(|error| {
                    ErrorDocument::new(ErrorCode::NotFound, format!("port {name:?}: {error}"))
                })?;
                facts.interfaces.into_iter().next().map(|facts| PortOption {
                    name: facts.interface.clone(),
                    interface: facts.interface,
                })
            }
            ports => {
                let by_name = ports.iter().find(|port| port.name == name);
                by_name.or_else(|| ports.iter().find(|port| port.interface == name)).cloned()
            }
        };
        let port = found.ok_or_else(|| {
            let names: Vec<&str> = self.configured.iter().map(|port| port.name.as_str()).collect();
            let message =
                format!("port {name:?}: the ports of this server are {}", names.join(", "));
            ErrorDocument::new(ErrorCode::NotFound, message)
        })?;
        if let Some(allowed) = &user.limits.ports
            && !allowed.iter().any(|it| *it == port.name || *it == port.interface)
        {
            let message = format!(
                "port {:?}: the limits of {} allow only {}",
                port.name,
                user.user,
                allowed.join(", ")
            );
            return Err(ErrorDocument::new(ErrorCode::Forbidden, message));
        }
        Ok(port)
    }

    /// Returns the interfaces that a user leases.
    pub(super) fn leased_by(&self, user: &str) -> Vec<String> {
        let leases = self.lock();
        let of_user = leases.iter().filter(|(_, lease)| lease.user == user);
        of_user.map(|(interface, _)| interface.clone()).collect()
    }

    /// Checks that nobody else leases an interface.
    ///
    /// # Errors
    /// Another session leases it.
    pub(super) fn check_free(&self, interface: &str, user: &Identity) -> Result<(), ErrorDocument> {
        match self.lock().get(interface) {
            Some(lease) if !user.is(&lease.user, &lease.session) => Err(taken(interface, lease)),
            _ => Ok(()),
        }
    }

    /// Renews the lease of a port if the session holds it. Returns `None` if it does not.
    ///
    /// # Errors
    /// The time is not valid.
    pub(super) fn renew(
        &self,
        port: &PortOption,
        user: &Identity,
        request: &LeaseRequest,
    ) -> Result<Option<Lease>, ErrorDocument> {
        let expiry = expiry(request)?;
        let mut leases = self.lock();
        let own = leases.get_mut(&port.interface).filter(|it| user.is(&it.user, &it.session));
        Ok(own.map(|lease| {
            lease.expiry = expiry;
            lease.document()
        }))
    }

    /// Checks that a session may take a port from its owner. Returns the lease to end, if there is
    /// one.
    ///
    /// # Errors
    /// Another session leases the port, and the request does not force it or may not.
    pub(super) fn may_take(
        &self,
        port: &PortOption,
        user: &Identity,
        force: bool,
    ) -> Result<Option<EndedLease>, ErrorDocument> {
        let leases = self.lock();
        let Some(lease) = leases.get(&port.interface) else { return Ok(None) };
        if !force {
            return Err(taken(&port.name, lease));
        }
        if lease.user != *user.user && user.role < Role::Administer {
            let message = format!(
                "port {} is leased by {}: only the role administer takes ports from other users",
                port.name,
                lease.owner()
            );
            return Err(ErrorDocument::new(ErrorCode::Forbidden, message));
        }
        Ok(Some(EndedLease {
            interface: port.interface.clone(),
            user: lease.user.clone(),
            session: lease.session.clone(),
        }))
    }

    /// Leases a free port.
    ///
    /// # Errors
    /// Another session was faster, a run of another owner uses the port, or it does not exist.
    pub(super) fn take(
        &self,
        port: &PortOption,
        user: &Identity,
        request: &LeaseRequest,
    ) -> Result<Lease, ErrorDocument> {
        let expiry = expiry(request)?;
        let mut leases = self.lock();
        if let Some(lease) = leases.get(&port.interface) {
            return Err(taken(&port.name, lease));
        }
        let reserved = self
            .host
            .reserve(&port.interface, &user.owner())
            .map_err(|error| ErrorDocument::new(ErrorCode::Conflict, error.to_string()))?;
        let lease = LeaseEntry {
            user: user.user.to_string(),
            session: user.session.to_string(),
            since_unix_ns: now_unix_ns(),
            expiry,
            _reserved: reserved,
        };
        let document = lease.document();
        leases.insert(port.interface.clone(), lease);
        Ok(document)
    }

    /// Ends the lease of an interface. Returns `None` if nobody leases it.
    pub(super) fn end(&self, interface: &str) -> Option<EndedLease> {
        end(&mut self.lock(), interface)
    }

    /// Returns the lease of an interface.
    pub(super) fn lease(&self, interface: &str) -> Option<Lease> {
        self.lock().get(interface).map(LeaseEntry::document)
    }

    /// Ends the leases whose time is over.
    pub(super) fn expire(&self) -> Vec<EndedLease> {
        let now = Instant::now();
        let mut leases = self.lock();
        let is_over = |lease: &LeaseEntry| lease.expiry.is_some_and(|(_, end)| end <= now);
        let over = leases.iter().filter(|(_, lease)| is_over(lease));
        let over: Vec<String> = over.map(|(interface, _)| interface.clone()).collect();
        over.iter().filter_map(|interface| end(&mut leases, interface)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, LeaseEntry>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn link(facts: &InterfaceFacts) -> LinkState {
    match facts.state {
        "up" => LinkState::Up,
        "no carrier" => LinkState::NoCarrier,
        _ => LinkState::Down,
    }
}

fn end(leases: &mut BTreeMap<String, LeaseEntry>, interface: &str) -> Option<EndedLease> {
    let LeaseEntry { user, session, .. } = leases.remove(interface)?;
    Some(EndedLease { interface: interface.to_owned(), user, session })
}

fn taken(port: &str, lease: &LeaseEntry) -> ErrorDocument {
    let message = format!(
        "port {port} is leased by {}: wait for its release, or take it with `force`",
        lease.owner()
    );
    ErrorDocument::new(ErrorCode::Conflict, message)
}

/// Returns the time of a lease and the instant of its end.
fn expiry(request: &LeaseRequest) -> Result<Option<(Duration, Instant)>, ErrorDocument> {
    let Some(seconds) = request.ttl_s else { return Ok(None) };
    let ttl = Duration::try_from_secs_f64(seconds).ok();
    let ttl = ttl.filter(|ttl| !ttl.is_zero() && *ttl <= TTL_MAX).ok_or_else(|| {
        let message =
            format!("ttl_s {seconds}: expected more than 0 and at most {}", TTL_MAX.as_secs());
        ErrorDocument::new(ErrorCode::Invalid, message)
    })?;
    Ok(Some((ttl, Instant::now() + ttl)))
}

/// Returns the current time in nanoseconds since the Unix epoch.
pub(super) fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
