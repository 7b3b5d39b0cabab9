//! Backends: what carries the frames of an interface.
//!
//! Each backend has a file or folder here with its [`Descriptor`], and a line in `list.rs`. Nothing
//! else names backends: flags, `doctor`, the choice of `auto`, leases and CPUs read the descriptors.

mod af_packet;
mod af_xdp;
mod choice;
mod conditions;
mod file;
mod list;
mod memory;
mod null;
mod xdp;

use std::fmt;
use std::str::FromStr;

use wirestorm_io::link::Link;
use wirestorm_io::namespace::InterfaceName;
use wirestorm_io::privilege::Capability;

use crate::inventory::{Grade, Trial};
use crate::port::{BothWays, PortOptions, Usage};

pub use af_packet::AF_PACKET;
pub use af_xdp::AF_XDP;
pub(crate) use choice::{Candidate, candidates, open, open_both_ways};
pub(crate) use conditions::Conditions;
pub use conditions::{KernelVersion, XDP_KERNEL};
pub(crate) use file::create as create_file;
pub use list::BACKENDS;
pub(crate) use list::{PortVisitor, TransmitPort};
pub(crate) use memory::{MEMORY, asked_for as memory};
pub use xdp::XDP;

/// Backend that sends and receives frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Fastest backend that the interface supports.
    #[default]
    Auto,
    /// This one.
    One(&'static Descriptor),
}

/// What a backend is called, what it can do and how it is opened.
pub struct Descriptor {
    /// The name that flags and results use.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether it carries the frames of an interface; otherwise it needs none.
    pub has_interface: bool,
    /// Whether several runs and processes use an interface by it at the same time.
    pub is_shared: bool,
    /// Whether each sending port needs a CPU of its own.
    pub owns_cpu: bool,
    /// Whether the kernel tells it which checksums are not filled in yet.
    pub knows_partial_checksums: bool,
    /// Whether frames that it receives go to the kernel's network stack too.
    pub feeds_kernel: bool,
    /// What a process needs.
    pub privileges: &'static [Capability],
    /// Link-layer types of interfaces that it works on (`ARPHRD_`), and their names.
    pub(crate) link_layers: (&'static [u16], &'static str),
    /// Place among those that `auto` considers, the best first.
    pub(crate) rank: u8,
    /// Whether `auto` sends by it.
    pub(crate) probe: fn(&Link, &Conditions) -> Probe,
    /// Whether `auto` sends and receives by it; `None`: it does not receive.
    pub(crate) probe_both_ways: Option<fn(&Link, &Usage) -> Probe>,
    /// Why it cannot send although it opens.
    pub(crate) refusal: fn(&InterfaceName, &Link) -> Option<String>,
    /// The command that lets it send on an interface that it cannot send on yet.
    pub(crate) repair: fn(&InterfaceName, &Link) -> Option<String>,
    /// The finding of `doctor` if nothing prevents its use.
    pub(crate) finding: fn(&Link, Trial) -> (Grade, &'static str),
    /// Opens a port that sends.
    pub(crate) open: fn(&InterfaceName, &Link, &PortOptions) -> Result<TransmitPort, String>,
    /// Opens a port that sends and receives, for this reason.
    pub(crate) open_both_ways:
        fn(&InterfaceName, &Link, &Usage, why: String) -> Result<BothWays, String>,
}

/// What a backend thinks of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// It is worth trying, for this reason.
    Good(&'static str),
    /// It works everywhere, and is taken where nothing better does.
    Fallback,
    /// It is not worth trying, for this reason.
    Bad(String),
    /// `auto` does not consider it here.
    NotConsidered,
}

impl Descriptor {
    /// The rest of a descriptor that only sends, needs no privilege, and is taken where a user asks
    /// for it.
    const SENDS_ON_REQUEST: Self = Self {
        name: "",
        summary: "",
        has_interface: true,
        is_shared: false,
        owns_cpu: false,
        knows_partial_checksums: true,
        feeds_kernel: false,
        privileges: &[],
        link_layers: ETHERNET_OR_LOOPBACK,
        rank: u8::MAX,
        probe: |_, _| Probe::NotConsidered,
        probe_both_ways: None,
        refusal: |_, _| None,
        repair: |_, _| None,
        finding: |_, _| (Grade::Good, "can send"),
        open: |_, _, _| Err("this backend opens no interface".into()),
        open_both_ways: |_, _, _, _| Err("this backend only sends".into()),
    };
}

/// Link-layer types, and how messages name them.
const ETHERNET_OR_LOOPBACK: (&[u16], &str) =
    (&[libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK], "Ethernet (1) or loopback (772)");
/// The same of Ethernet alone.
const ETHERNET: (&[u16], &str) = (&[libc::ARPHRD_ETHER], "Ethernet (1)");

impl Descriptor {
    /// Whether it receives as well.
    pub const fn receives(&self) -> bool {
        self.probe_both_ways.is_some()
    }

    /// Why it does not work on this kind of interface.
    pub(crate) fn link_layer_obstacle(&self, link: &Link) -> Option<String> {
        let (types, names) = self.link_layers;
        let found = link.link_layer;
        (!types.contains(&found))
            .then(|| format!("its link-layer type is {found}; expected {names}"))
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
    /// The name that flags use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::One(descriptor) => descriptor.name,
        }
    }

    /// One line for `--help`.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Auto => "the best that works on the interface",
            Self::One(descriptor) => descriptor.summary,
        }
    }

    /// Whether it needs an interface to send on.
    pub const fn needs_interface(self) -> bool {
        match self {
            Self::Auto => true,
            Self::One(descriptor) => descriptor.has_interface,
        }
    }

    /// `auto`, and every backend that carries frames; `both_ways`: only those that receive too.
    pub fn all(both_ways: bool) -> impl Iterator<Item = Self> {
        let known = BACKENDS.iter().filter(move |it| !both_ways || it.receives());
        std::iter::once(Self::Auto).chain(known.map(|it| Self::One(it)))
    }

    /// Whether a sending port has, or with `auto` may get, a CPU of its own.
    pub(crate) fn may_own_cpu(self) -> bool {
        match self {
            Self::Auto => BACKENDS.iter().any(|it| it.owns_cpu),
            Self::One(descriptor) => descriptor.owns_cpu,
        }
    }

    /// Whether this one, if it needs CPUs of its own, was asked for.
    pub(crate) fn must_own_cpu(self) -> bool {
        matches!(self, Self::One(descriptor) if descriptor.owns_cpu)
    }
}

/// A name that is not a backend's.
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
    fn every_backend_is_found_by_its_own_name() {
        for backend in Backend::all(false) {
            assert_eq!(backend.name().parse(), Ok(backend));
        }
        let error = "netmap".parse::<Backend>().unwrap_err().to_string();
        assert!(error.contains("netmap") && error.contains("auto, af_packet"), "{error}");
    }
}
