//! Test bed: the interfaces around the device under test, and how frames pass it.

use std::net::IpAddr;

use wirestorm_base::departure::DeparturePolicy;
use wirestorm_base::time::Duration;
use wirestorm_io::link::{Link, LinkError};
use wirestorm_io::namespace::{InterfaceName, InterfaceNameError};

use crate::backend::Backend;

/// Test bed of a method.
#[derive(Clone, Debug)]
pub struct TestBed {
    /// Paths of the frames.
    pub paths: Paths,
    /// Backend that sends and receives frames.
    pub backend: Backend,
    /// Number of worker threads; at least 1.
    pub workers: u16,
    /// Treatment of late frames.
    pub policy: DeparturePolicy,
    /// Waits around a trial.
    pub waits: Waits,
    /// Whether to send on an interface that carries the default route.
    pub force_interface: bool,
}

/// Paths of the frames of trials: interfaces, or ports of a plan by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Pairs of interfaces with the device between them.
    pub pairs: Vec<PortPair>,
    /// Whether frames also leave the second interface of each pair.
    pub is_bidirectional: bool,
    /// Addresses of interfaces, for a device that routes. Without addresses of a protocol, frames
    /// go to the MAC address of the other interface, for a device that bridges.
    pub addresses: Vec<InterfaceAddress>,
    /// Number of UDP flows in each direction; 1 to 16,384.
    pub flows: u32,
}

/// Two interfaces with the device between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortPair {
    /// Interface that sends.
    pub tx: String,
    /// Interface that receives.
    pub rx: String,
}

/// Address of an interface as a host, and its router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Interface.
    pub interface: String,
    /// Address.
    pub address: IpAddr,
    /// Length of the network prefix.
    pub prefix: u8,
    /// Router to other networks; `None` for destinations in the same network.
    pub gateway: Option<IpAddr>,
}

/// Waits around a trial (RFC 2544 section 23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Whether learning frames precede each trial.
    pub sends_learning_frames: bool,
    /// Wait after the learning frames.
    pub learning: Duration,
    /// Wait after the trial, until the device has settled.
    pub settle: Duration,
}

impl Default for Waits {
    /// Returns the waits of RFC 2544.
    fn default() -> Self {
        Self {
            sends_learning_frames: true,
            learning: Duration::from_secs(2),
            settle: Duration::from_secs(5),
        }
    }
}

/// Error of a test bed.
#[derive(Debug, thiserror::Error)]
pub enum TestBedError {
    /// The name is not a valid interface name.
    #[error(transparent)]
    Name(#[from] InterfaceNameError),
    /// The interface or its namespace does not open.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The interface has no Ethernet address.
    #[error("{0}: expected an Ethernet interface, found one without a MAC address")]
    NoMac(String),
}

impl Waits {
    /// Returns the sum of the waits.
    pub fn total(&self) -> Duration {
        let learning = if self.sends_learning_frames { self.learning } else { Duration::ZERO };
        learning.saturating_add(self.settle)
    }
}

impl Paths {
    /// Returns all interfaces, each once, in the order of the pairs.
    pub fn interfaces(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.pairs.iter().flat_map(|pair| [&*pair.tx, &*pair.rx]) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the address of an interface for a protocol version.
    pub(super) fn address(&self, interface: &str, is_ipv6: bool) -> Option<&InterfaceAddress> {
        let is_of =
            |it: &&InterfaceAddress| it.interface == interface && it.address.is_ipv6() == is_ipv6;
        self.addresses.iter().find(is_of)
    }
}

impl TestBed {
    /// Returns all interfaces, each once, in the order of the pairs.
    pub fn interfaces(&self) -> Vec<&str> {
        self.paths.interfaces()
    }

    /// Reads the MAC address of each interface, in the order of [`Self::interfaces`].
    ///
    /// # Errors
    /// See [`TestBedError`].
    pub(super) fn macs(&self) -> Result<Vec<(String, [u8; 6])>, TestBedError> {
        let mac = |name: &str| {
            let interface: InterfaceName = name.parse()?;
            let mac = Link::open(&interface)?.mac;
            Ok((name.to_owned(), mac.ok_or_else(|| TestBedError::NoMac(name.to_owned()))?))
        };
        self.interfaces().into_iter().map(mac).collect()
    }

    /// Returns the lowest link speed of all interfaces in bit/s, as the drivers report it; `None`
    /// if no driver does.
    pub fn link_bps(&self) -> Option<u64> {
        let speed = |name: &str| {
            let interface: InterfaceName = name.parse().ok()?;
            Some(Link::open(&interface).ok()?.speed?.per_second() as u64)
        };
        self.interfaces().into_iter().filter_map(speed).min()
    }
}
