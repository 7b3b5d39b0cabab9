//! Backends: implementations that send and receive the frames of an interface.
//!
//! Each backend has a file or folder here with its [`Descriptor`], and a line in `list.rs`. Flags,
//! `doctor`, the choice of `auto`, leases and CPU reservation use only the descriptors.

mod af_packet;
mod af_xdp;
mod choice;
mod conditions;
mod file;
mod list;
mod memory;
mod null;
mod opened;
mod trial;
mod xdp;

use std::fmt;
use std::str::FromStr;

use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::privilege::Capability;

use crate::port::{PortOptions, Usage};

pub use af_packet::AF_PACKET;
pub use af_xdp::AF_XDP;
pub(crate) use choice::{Candidate, candidates, open, open_duplex};
pub(crate) use conditions::Conditions;
pub use conditions::{KernelVersion, XDP_KERNEL};
pub(crate) use file::create as create_file;
pub use list::BACKENDS;
pub(crate) use list::{PortVisitor, TransmitPort};
pub(crate) use memory::{MEMORY, discarding_port as memory};
pub(crate) use opened::{Choice, DuplexPort};
pub(crate) use trial::try_open;
pub use trial::{Grade, OpenTest};
pub use xdp::XDP;

/// Backend that sends and receives frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Fastest backend that the interface supports.
    #[default]
    Auto,
    /// A specific backend.
    One(&'static Descriptor),
}

/// Name, properties and constructors of a backend.
pub struct Descriptor {
    /// Name in flags and results.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether the backend needs an interface.
    pub has_interface: bool,
    /// Whether several runs and processes can share an interface with this backend.
    pub is_shared: bool,
    /// Whether each sending port needs a dedicated CPU.
    pub needs_dedicated_cpu: bool,
    /// Whether the kernel reports which received checksums are not filled in yet.
    pub knows_partial_checksums: bool,
    /// Whether received frames also reach the kernel's network stack.
    pub feeds_kernel: bool,
    /// Capabilities that a process needs.
    pub privileges: &'static [Capability],
    /// Supported link-layer types (`ARPHRD_` values), and their names for messages.
    pub(crate) link_layers: (&'static [u16], &'static str),
    /// Preference of `auto`: lower ranks first.
    pub(crate) rank: u8,
    /// Decides whether `auto` tries the backend for sending.
    pub(crate) probe: fn(&Link, &Conditions) -> LatencyProbe,
    /// Decides whether `auto` tries the backend for sending and receiving; `None` if it cannot
    /// receive.
    pub(crate) probe_duplex: Option<fn(&Link, &Usage) -> LatencyProbe>,
    /// Returns why the backend cannot send although it opens.
    pub(crate) refusal: fn(&InterfaceName, &Link) -> Option<String>,
    /// Returns a command that enables sending on the interface.
    pub(crate) repair: fn(&InterfaceName, &Link) -> Option<String>,
    /// Returns the finding of `doctor` if nothing prevents the use of the backend.
    pub(crate) finding: fn(&Link, OpenTest) -> (Grade, &'static str),
    /// Opens a sending port.
    pub(crate) open: fn(&InterfaceName, &Link, &PortOptions) -> Result<TransmitPort, String>,
    /// Opens a port that sends and receives; `why` is the reason for the choice.
    pub(crate) open_both_ways:
        fn(&InterfaceName, &Link, &Usage, why: String) -> Result<DuplexPort, String>,
}

/// Suitability of a backend for an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LatencyProbe {
    /// Suitable, with the reason.
    Good(&'static str),
    /// Works on each interface; used if no better backend works.
    Fallback,
    /// Not suitable, with the reason.
    Bad(String),
    /// `auto` ignores the backend on this interface.
    NotConsidered,
}

impl Descriptor {
    /// Default fields for a backend that only sends, needs no privilege and is used only on
    /// request.
    const TRANSMIT_ONLY: Self = Self {
        name: "",
        summary: "",
        has_interface: true,
        is_shared: false,
        needs_dedicated_cpu: false,
        knows_partial_checksums: true,
        feeds_kernel: false,
        privileges: &[],
        link_layers: ETHERNET_OR_LOOPBACK,
        rank: u8::MAX,
        probe: |_, _| LatencyProbe::NotConsidered,
        probe_duplex: None,
        refusal: |_, _| None,
        repair: |_, _| None,
        finding: |_, _| (Grade::Good, "can send"),
        open: |_, _, _| Err("this backend opens no interface".into()),
        open_both_ways: |_, _, _, _| Err("this backend only sends".into()),
    };
}

/// Ethernet and loopback link-layer types, and their names for messages.
const ETHERNET_OR_LOOPBACK: (&[u16], &str) =
    (&[libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK], "Ethernet (1) or loopback (772)");
/// Ethernet link-layer type, and its name for messages.
const ETHERNET: (&[u16], &str) = (&[libc::ARPHRD_ETHER], "Ethernet (1)");

impl Descriptor {
    /// Returns whether the backend can also receive.
    pub const fn receives(&self) -> bool {
        self.probe_duplex.is_some()
    }

    /// Returns why the backend does not support the link-layer type, if it does not.
    pub(crate) fn link_layer_obstacle(&self, link: &Link) -> Option<String> {
        let (types, names) = self.link_layers;
        let found = link.link_layer;
        (!types.contains(&found)).then(|| format!("link-layer type {found}; expected {names}"))
    }
}

impl PartialEq for Descriptor {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Descriptor {}

impl fmt::Debug for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Backend {
    /// Returns the name in flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::One(descriptor) => descriptor.name,
        }
    }

    /// Returns one line for `--help`.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Auto => "the best backend that works on the interface",
            Self::One(descriptor) => descriptor.summary,
        }
    }

    /// Returns whether the backend needs an interface.
    pub const fn needs_interface(self) -> bool {
        match self {
            Self::Auto => true,
            Self::One(descriptor) => descriptor.has_interface,
        }
    }

    /// Iterates over `auto` and all backends; with `both_ways`, only over those that can receive.
    pub fn all(both_ways: bool) -> impl Iterator<Item = Self> {
        let known = BACKENDS.iter().filter(move |it| !both_ways || it.receives());
        std::iter::once(Self::Auto).chain(known.map(|it| Self::One(it)))
    }

    /// Returns whether a sending port uses a dedicated CPU, or may do so with `auto`.
    pub(crate) fn may_need_dedicated_cpu(self) -> bool {
        match self {
            Self::Auto => BACKENDS.iter().any(|it| it.needs_dedicated_cpu),
            Self::One(descriptor) => descriptor.needs_dedicated_cpu,
        }
    }

    /// Returns whether the user requested a backend that needs dedicated CPUs.
    pub(crate) fn requires_dedicated_cpu(self) -> bool {
        matches!(self, Self::One(descriptor) if descriptor.needs_dedicated_cpu)
    }
}

/// The name of an unknown backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found backend {found:?}, expected {expected}")]
pub struct UnknownBackend {
    found: String,
    expected: String,
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        Self::all(false).find(|it| it.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all(false).map(Self::name).collect();
            UnknownBackend { found: name.to_owned(), expected: names.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_names_parse_to_their_backend() {
        for backend in Backend::all(false) {
            assert_eq!(backend.name().parse(), Ok(backend));
        }
        let error = "netmap".parse::<Backend>().unwrap_err().to_string();
        assert!(error.contains("netmap") && error.contains("auto, af_packet"), "{error}");
    }
}
