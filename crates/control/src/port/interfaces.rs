//! The interfaces of a run: opens, leases and watches them.

use wirestorm_base::port::PortError;
use wirestorm_base::time::Duration;
use wirestorm_io::clock;
use wirestorm_io::link::{Link, LinkError, LinkKind, LinkState, LinkWatch, find_peer};
use wirestorm_io::namespace::InterfaceName;

use super::error::OpenError;
use crate::backend::{Backend, Conditions, LatencyProbe, candidates};
use crate::host::{Lease, LeaseRequest};

/// The leased interfaces of a run.
pub(crate) struct Interfaces {
    pub(crate) links: Vec<(InterfaceName, Link)>,
    _leases: Vec<Lease>,
}

impl Interfaces {
    /// Returns whether `interface` is the veth peer of another interface of the run.
    pub(crate) fn are_joined(&self, interface: &str) -> bool {
        let link = self.links.iter().find(|(name, _)| name.to_string() == interface);
        link.is_some_and(|link| self.links.iter().any(|other| are_one_pair(link, other)))
    }

    /// Opens and leases interfaces by name. `force`: accept an interface that carries the default
    /// route. `sender`: the requested backend of a run that only sends; some backends share an
    /// interface.
    ///
    /// # Errors
    /// Fails if an interface does not exist, is down, or is in use.
    pub(crate) fn open(
        names: &[&str],
        force: bool,
        lease: &LeaseRequest<'_>,
        sender: Option<Backend>,
    ) -> Result<Self, OpenError> {
        let mut links = Vec::new();
        let mut leases = Vec::new();
        for name in names {
            let interface: InterfaceName = name.parse()?;
            if links.iter().any(|(other, _)| *other == interface) {
                return Err(OpenError::Twice(interface));
            }
            let link = Link::open(&interface)?;
            if !link.up {
                return Err(OpenError::Down { interface });
            }
            if link.default_route && !force {
                return Err(OpenError::DefaultRoute(interface));
            }
            let is_shared = sender.is_some_and(|it| is_shared(it, &link));
            leases.push(lease.take(&interface, link.index, is_shared)?);
            links.push((interface, link));
        }
        Ok(Self { links, _leases: leases })
    }

    /// Starts to watch the interfaces.
    pub(crate) fn watch(&self) -> Vec<Watch> {
        let watch = |(interface, _): &(InterfaceName, Link)| Watch {
            interface: interface.clone(),
            watch: LinkWatch::open(interface).ok(),
        };
        self.links.iter().map(watch).collect()
    }

    /// Returns notes for the result about interfaces without carrier.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let silent = self.links.iter().filter(|(_, link)| !link.running);
        silent.map(|(interface, _)| {
            format!(
                "{interface} had no carrier (cable or veth peer down); frames sent then were lost"
            )
        })
    }

    /// Returns the cause of a port error. An interface that is removed first loses its carrier and
    /// goes down, and disappears some milliseconds later. This waits up to [`REMOVAL_TIME_MAX`] for
    /// that.
    pub(crate) fn settle(&self, error: PortError) -> PortError {
        let deadline = clock::now().saturating_add(REMOVAL_TIME_MAX);
        let mut watches = Vec::new();
        // Removing one end of a veth pair removes both. Report the interface of the failed port
        // first.
        let is_other = |link: &&(InterfaceName, Link)| link.0.to_string() != error.interface();
        let mut links: Vec<_> = self.links.iter().collect();
        links.sort_by_key(is_other);
        for (interface, link) in links {
            match LinkWatch::open(interface) {
                Ok(watch) if watch.index() == link.index => watches.push((interface, watch)),
                // The interface is gone, or another one has its name.
                Ok(_) | Err(LinkError::Missing(_)) => return interface.removed_error(),
                Err(_) => {}
            }
        }
        loop {
            for (interface, watch) in &mut watches {
                if matches!(watch.state(), Ok(LinkState::Gone)) {
                    return interface.removed_error();
                }
            }
            let left = deadline.saturating_since(clock::now());
            if watches.is_empty() || left == Duration::ZERO {
                return error;
            }
            LinkWatch::wait(watches.iter().map(|(_, watch)| watch), left);
        }
    }

    /// Returns whether a sender with this backend may need a CPU of its own. `auto` knows when it
    /// opens the ports, but the CPUs are chosen before.
    pub(crate) fn may_need_dedicated_cpu(&self, backend: Backend) -> bool {
        let may_need = |link: &Link| match backend {
            Backend::One(backend) => backend.needs_dedicated_cpu,
            Backend::Auto => candidates(link, &Conditions::of_one_port()).iter().any(|it| {
                it.backend.needs_dedicated_cpu && !matches!(it.probe, LatencyProbe::Bad(_))
            }),
        };
        self.links.iter().any(|(_, link)| may_need(link))
    }

    /// Reads the facts of the interfaces again.
    pub(crate) fn read_again(mut self) -> Result<Self, OpenError> {
        for (interface, link) in &mut self.links {
            *link = Link::open(interface)?;
        }
        Ok(self)
    }
}

/// Returns whether other senders may use the interface beside the backend, or beside the one that
/// `auto` will choose.
fn is_shared(backend: Backend, link: &Link) -> bool {
    match backend {
        Backend::One(backend) => backend.is_shared,
        Backend::Auto => {
            let candidates = candidates(link, &Conditions::of_one_port());
            let mut works =
                candidates.iter().filter(|it| !matches!(it.probe, LatencyProbe::Bad(_)));
            works.next().is_some_and(|candidate| candidate.backend.is_shared)
        }
    }
}

/// Returns whether two interfaces are the ends of one veth pair, as far as the kernel reports it.
pub(crate) fn are_one_pair(a: &(InterfaceName, Link), b: &(InterfaceName, Link)) -> bool {
    let (name, facts) = a;
    if facts.kind != LinkKind::Veth {
        return false;
    }
    let found = find_peer(&name.namespace, facts, std::slice::from_ref(&b.0.namespace));
    // An interface index is unique only within its namespace.
    found.is_some_and(|(place, peer)| place == b.0.namespace && peer.index == b.1.index)
}

/// Maximum time between an interface going down and its removal.
const REMOVAL_TIME_MAX: Duration = Duration::from_millis(250);

/// Watches whether an interface exists and is up.
pub(crate) struct Watch {
    interface: InterfaceName,
    /// `None` if the kernel provides no notifications.
    watch: Option<LinkWatch>,
}

impl Watch {
    /// Returns whether the kernel notifies about the interface.
    pub(crate) fn knows(&self) -> bool {
        self.watch.is_some()
    }

    /// Returns the error for an interface that is down.
    pub(crate) fn went_down(&self) -> PortError {
        self.interface.down_error()
    }

    /// Returns whether the interface is up with carrier, as far as the kernel reports it.
    ///
    /// # Errors
    /// Fails if the interface was removed.
    pub(crate) fn is_running(&mut self) -> Result<bool, PortError> {
        let Some(watch) = &mut self.watch else { return Ok(true) };
        match watch.state() {
            Ok(LinkState::NoCarrier | LinkState::Down) => Ok(false),
            Ok(LinkState::Gone) => Err(self.interface.removed_error()),
            Ok(LinkState::Running) | Err(_) => Ok(true),
        }
    }

    /// # Errors
    /// Fails if the interface is down or was removed.
    pub(crate) fn check(&mut self) -> Result<(), PortError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        match watch.state() {
            // Without carrier the kernel still accepts frames, and the counters show their loss.
            Ok(LinkState::Running | LinkState::NoCarrier) => Ok(()),
            Ok(LinkState::Down) => Err(self.interface.down_error()),
            Ok(LinkState::Gone) => Err(self.interface.removed_error()),
            // An unknown state is no reason to end a run.
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestorm_testkit::net::Lab;
    use wirestorm_testkit::require::require_root;

    use super::*;
    use crate::host::{Access, Host, LeaseHolder};

    #[test]
    fn veth_ends_are_joined_only_if_both_are_open() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let (a, b) = (lab.a.port(), lab.b.port());
        let host = Host::new();
        let holder = LeaseHolder { run: None, owner: String::new() };
        let lease = LeaseRequest { leases: host.leases(), access: Access::ByBackend, holder };
        let open = |names: &[&str]| Interfaces::open(names, false, &lease, None);
        let alone = open(&[&a]).unwrap();
        // Each is the first interface of its namespace, so both have the same index.
        assert_eq!(alone.links[0].1.peer.map(|peer| peer.index), Some(alone.links[0].1.index));
        assert!(!alone.are_joined(&a));
        drop(alone);
        let both = open(&[&a, &b]).unwrap();
        assert!(both.are_joined(&a) && both.are_joined(&b));
    }
    #[test]
    fn cpu_is_reserved_only_where_the_in_kernel_sender_can_send() {
        if !require_root() {
            return;
        }
        let lab = Lab::new().unwrap();
        let host = Host::new();
        let holder = LeaseHolder { run: None, owner: String::new() };
        let lease = LeaseRequest { leases: host.leases(), access: Access::ByBackend, holder };
        let may_need = || {
            let interfaces = Interfaces::open(&[&lab.a.port()], false, &lease, None).unwrap();
            interfaces.may_need_dedicated_cpu(Backend::Auto)
        };
        // A veth takes redirected frames only if its peer polls.
        lab.b.set_gro(false).unwrap();
        assert!(!may_need());
        lab.b.set_gro(true).unwrap();
        assert!(may_need());
    }
}
