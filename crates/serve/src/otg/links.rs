//! Links of the ports of a configuration: `port.link`, and when they changed.

use std::sync::Arc;

use wirestorm_control::link::{self, LinkState, LinkWatch};
use wirestorm_control::namespace::InterfaceName;
use wirestorm_otg::proto::{self, state_port_link};

use super::error::OtgError;
use super::session::{Answer, Session, Warnings};

/// Links of the ports of a configuration. Dropping this brings up what it took down.
pub(super) struct Links(Vec<PortLink>);

/// Link of a port.
struct PortLink {
    interface: String,
    /// `None` if the kernel gives no notifications.
    watch: Option<LinkWatch>,
    /// Whether the interface was last found up with carrier.
    is_up: bool,
    /// Time of the last change since the configuration, in nanoseconds since the Unix epoch.
    changed_unix_ns: Option<u64>,
    /// Whether this took the interface down.
    is_taken_down: bool,
}

impl Session {
    /// Brings the interfaces of ports administratively up or down; of all ports without names.
    pub(super) fn set_links(&mut self, link: &proto::StatePortLink) -> Answer<Warnings> {
        let up = match link.state() {
            state_port_link::state::Enum::Up => true,
            state_port_link::state::Enum::Down => false,
            state_port_link::state::Enum::Unspecified => {
                return Err(OtgError::invalid(
                    "port.link.state: found nothing, expected up or down",
                ));
            }
        };
        let (server, user) = (Arc::clone(&self.server), self.user.clone());
        let loaded = self.loaded()?;
        let chosen = loaded.ports_named(&link.port_names, "port.link.port_names")?;
        for port in &chosen {
            // Another user may have taken the port.
            server.usable_interface(&user, &loaded.ports[*port].location)?;
        }
        chosen.iter().try_for_each(|port| loaded.links.set(*port, up))?;
        Ok(Vec::new())
    }
}

impl Links {
    /// Watches interfaces.
    pub(super) fn new<'a>(interfaces: impl Iterator<Item = &'a str>) -> Self {
        let mut links = Self(interfaces.map(PortLink::new).collect());
        for link in &mut links.0 {
            link.is_up = link.reads_up();
        }
        links
    }

    /// Reads the states of all interfaces.
    pub(super) fn update(&mut self) {
        self.0.iter_mut().for_each(PortLink::update);
    }

    /// Returns whether the interface of a port was up with carrier at the last update.
    pub(super) fn is_up(&self, port: usize) -> bool {
        self.0.get(port).is_some_and(|link| link.is_up)
    }

    /// Returns whether a request took the interface of a port down.
    pub(super) fn is_taken_down(&self, port: usize) -> bool {
        self.0.get(port).is_some_and(|link| link.is_taken_down)
    }

    /// Returns the time of the last change of a port's link, in nanoseconds since the Unix epoch;
    /// `None` if it has not changed since the configuration.
    pub(super) fn changed_unix_ns(&self, port: usize) -> Option<u64> {
        self.0.get(port)?.changed_unix_ns
    }

    /// Brings the interface of a port administratively up or down.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn set(&mut self, port: usize, up: bool) -> Result<(), OtgError> {
        let Some(link) = self.0.get_mut(port) else { return Ok(()) };
        let outcome = link.set(up);
        outcome.map_err(|reason| OtgError::internal(format!("{}: {reason}", link.interface)))?;
        self.update();
        Ok(())
    }
}

impl PortLink {
    fn new(interface: &str) -> Self {
        let name = interface.parse::<InterfaceName>();
        Self {
            interface: interface.to_owned(),
            watch: name.ok().and_then(|name| LinkWatch::open(&name).ok()),
            is_up: false,
            changed_unix_ns: None,
            is_taken_down: false,
        }
    }

    fn reads_up(&mut self) -> bool {
        let state = self.watch.as_mut().and_then(|watch| watch.state().ok());
        state == Some(LinkState::Running)
    }

    fn update(&mut self) {
        let is_up = self.reads_up();
        if is_up != self.is_up {
            self.is_up = is_up;
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            self.changed_unix_ns = now.ok().and_then(|now| u64::try_from(now.as_nanos()).ok());
        }
    }

    fn set(&mut self, up: bool) -> Result<(), String> {
        let name: InterfaceName = self.interface.parse().map_err(|error| format!("{error}"))?;
        link::set_up(&name, up).map_err(|error| error.to_string())?;
        self.is_taken_down = !up;
        Ok(())
    }
}

impl Drop for PortLink {
    fn drop(&mut self) {
        if self.is_taken_down {
            // The interface may be gone.
            let _ = self.set(true);
        }
    }
}
