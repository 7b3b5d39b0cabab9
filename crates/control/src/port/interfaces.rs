//! The interfaces of a run: found, locked, watched.

use wirestorm_base::port::PortError;
use wirestorm_base::time::Duration;
use wirestorm_io::clock;
use wirestorm_io::link::{Link, LinkError, LinkKind, LinkState, LinkWatch, find_peer};
use wirestorm_io::namespace::InterfaceName;

use super::error::OpenError;
use crate::backend::{Backend, Conditions, Probe, candidates};
use crate::host::{Lease, LeaseRequest};

/// The interfaces of a run, leased.
pub(crate) struct Interfaces {
    pub(crate) links: Vec<(InterfaceName, Link)>,
    _leases: Vec<Lease>,
}

impl Interfaces {
    /// Whether the virtual cable of one of them leads to another one.
    pub(crate) fn are_joined(&self, interface: &str) -> bool {
        let own = self.links.iter().find(|(name, _)| name.to_string() == interface);
        own.is_some_and(|own| self.links.iter().any(|other| are_one_pair(own, other)))
    }

    /// Opens them by name; `force`: also one that carries the default route. `sender`: what is asked
    /// to send, where nothing answers: some backends share an interface.
    ///
    /// # Errors
    /// Where one does not exist, is down, or another run has it.
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

    /// Watches them from now on.
    pub(crate) fn watch(&self) -> Vec<Watch> {
        let watch = |(interface, _): &(InterfaceName, Link)| Watch {
            interface: interface.clone(),
            watch: LinkWatch::open(interface).ok(),
        };
        self.links.iter().map(watch).collect()
    }

    /// What one should know of them.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let silent = self.links.iter().filter(|(_, link)| !link.running);
        silent.map(|(interface, _)| {
            format!(
                "{interface} had no carrier: the cable, or the peer of a veth, was down, and what \
                 is sent then is lost"
            )
        })
    }

    /// What an error of a port turns out to be: an interface that is removed loses its carrier
    /// and goes down first, some milliseconds before it is gone.
    pub(crate) fn settle(&self, error: PortError) -> PortError {
        let deadline = clock::now().saturating_add(REMOVAL_TIME_MAX);
        let mut watches = Vec::new();
        // With one end of a pair both are gone: each is told of by its own port.
        let is_other = |link: &&(InterfaceName, Link)| link.0.to_string() != error.interface();
        let mut links: Vec<_> = self.links.iter().collect();
        links.sort_by_key(is_other);
        for (interface, link) in links {
            match LinkWatch::open(interface) {
                Ok(watch) if watch.index() == link.index => watches.push((interface, watch)),
                // There is none of that name, or it is another.
                Ok(_) | Err(LinkError::Missing(_)) => return interface.is_gone(),
                Err(_) => {}
            }
        }
        loop {
            for (interface, watch) in &mut watches {
                if matches!(watch.state(), Ok(LinkState::Gone)) {
                    return interface.is_gone();
                }
            }
            let left = deadline.saturating_since(clock::now());
            if watches.is_empty() || left == Duration::ZERO {
                return error;
            }
            LinkWatch::wait(watches.iter().map(|(_, watch)| watch), left);
        }
    }

    /// The same interfaces with the facts of this moment.
    pub(crate) fn read_again(mut self) -> Result<Self, OpenError> {
        for (interface, link) in &mut self.links {
            *link = Link::open(interface)?;
        }
        Ok(self)
    }
}

/// Whether others may send beside a backend: it is one that is shared, or `auto` will choose one.
fn is_shared(backend: Backend, link: &Link) -> bool {
    match backend {
        Backend::One(backend) => backend.is_shared,
        Backend::Auto => {
            let candidates = candidates(link, &Conditions::of_one_port());
            let mut works = candidates.iter().filter(|it| !matches!(it.probe, Probe::Bad(_)));
            works.next().is_some_and(|candidate| candidate.backend.is_shared)
        }
    }
}

/// Whether two interfaces are the ends of one veth pair, as far as the kernel tells.
pub(crate) fn are_one_pair(a: &(InterfaceName, Link), b: &(InterfaceName, Link)) -> bool {
    let (name, facts) = a;
    if facts.kind != LinkKind::Veth {
        return false;
    }
    let found = find_peer(&name.namespace, facts, std::slice::from_ref(&b.0.namespace));
    // Numbers of interfaces are those of their namespaces.
    found.is_some_and(|(place, peer)| place == b.0.namespace && peer.index == b.1.index)
}

/// How long an interface that went down may take to be gone.
const REMOVAL_TIME_MAX: Duration = Duration::from_millis(250);

/// Whether an interface is still there and up.
pub(crate) struct Watch {
    interface: InterfaceName,
    /// `None` where the kernel does not tell.
    watch: Option<LinkWatch>,
}

impl Watch {
    /// Whether the kernel tells what becomes of the interface.
    pub(crate) fn knows(&self) -> bool {
        self.watch.is_some()
    }

    /// It went down.
    pub(crate) fn went_down(&self) -> PortError {
        self.interface.went_down()
    }

    /// # Errors
    /// Where the interface went down or vanished.
    pub(crate) fn check(&mut self) -> Result<(), PortError> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        match watch.state() {
            // Without a carrier the kernel still takes frames; what becomes of them is counted.
            Ok(LinkState::Running | LinkState::NoCarrier) => Ok(()),
            Ok(LinkState::Down) => Err(self.interface.went_down()),
            Ok(LinkState::Gone) => Err(self.interface.is_gone()),
            // Not knowing is no reason to end a run.
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
    fn the_ends_of_a_cable_are_joined_and_one_end_is_not() {
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
        // Each is the first of its namespace: the number of one is that of the other.
        assert_eq!(alone.links[0].1.peer.map(|peer| peer.index), Some(alone.links[0].1.index));
        assert!(!alone.are_joined(&a));
        drop(alone);
        let both = open(&[&a, &b]).unwrap();
        assert!(both.are_joined(&a) && both.are_joined(&b));
    }
}
