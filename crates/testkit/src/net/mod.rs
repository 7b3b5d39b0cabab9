//! Network namespaces of a test's own, joined by veth pairs.
//!
//! ```text
//! Lab         a: veth0 ---------------------------- veth1 :b
//! RouterLab   a: veth0 ---- veth1 :router: veth2 ---- veth3 :b
//! ```
//!
//! Nothing in a lab sends a frame by itself: IPv6 and its neighbour discovery are off unless
//! asked for, neighbours are static, and without addresses the kernel answers nothing. So what a
//! capture shows is what the test sent. Everything is removed on drop, on a panic, and on a
//! signal; names that a killed process left are swept by the next one.

mod capture;
mod namespace;
mod sink;
mod vlans;

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

pub use capture::{Capture, CaptureOptions, Captured};
pub use namespace::{InterfaceCounters, Namespace, run_foreground};
pub use sink::{DropSink, PollingSink};

use crate::leftovers;
use crate::pcap::ReadError;

/// Why something in a lab did not work.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// A program could not be started.
    #[error("{program} cannot be run: {source}; cargo xtask setup installs what is missing")]
    Start {
        /// File name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{command}: {message}")]
    Failed {
        /// The whole command.
        command: String,
        /// What it printed.
        message: String,
    },
    /// Something did not come to pass in time.
    #[error("{what} did not happen within {seconds} s; last heard: {heard}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u64,
        /// The last that was heard.
        heard: String,
    },
    /// A program printed what could not be understood.
    #[error("{program} printed {found:?}; expected {expected}")]
    Unexpected {
        /// File name.
        program: String,
        /// What it printed.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A file could not be written or read.
    #[error("scratch file: {0}")]
    Scratch(#[from] io::Error),
    /// A captured file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// How the ends of a link are made.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The longest packet in bytes, Ethernet header not counted; the same at both ends.
    pub mtu: u32,
    /// Transmit and receive queues of each interface.
    pub queues: u32,
    /// Whether `a`'s and `b`'s interfaces coalesce what they receive. An interface that does
    /// also polls, which lets its peer redirect XDP frames to it.
    pub gro: [bool; 2],
    /// Whether segmentation and checksums are left to the interface. Off, frames of the kernel's
    /// own protocols look in a capture as they would on a wire.
    pub offloads: bool,
    /// Whether the interfaces have IPv4 addresses, with static neighbours. On, the kernel
    /// answers what is addressed to it.
    pub addresses: bool,
    /// Whether the interfaces have IPv6 addresses too. On, the kernel may send frames of
    /// neighbour discovery.
    pub ipv6: bool,
}

impl Default for LabOptions {
    /// The quietest: 1500 bytes, one queue, no GRO, no offloads, no addresses, no IPv6.
    fn default() -> Self {
        let gro = [false; 2];
        Self { mtu: 1500, queues: 1, gro, offloads: false, addresses: false, ipv6: false }
    }
}

/// A MAC address that stands for the interface with this number in its lab.
const fn mac(interface: u8) -> [u8; 6] {
    // Locally administered, then "WS".
    [0x02, 0x57, 0x53, 0, 0, interface]
}

/// A MAC address in its usual notation.
struct Mac([u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// One interface in its namespace.
#[derive(Debug)]
pub struct End {
    namespace: Namespace,
    interface: String,
    number: u8,
    network: u8,
}

impl End {
    fn new(namespace: Namespace, number: u8, network: u8) -> Self {
        Self { namespace, interface: format!("veth{number}"), number, network }
    }

    /// The namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The interface's name there.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The name Wirestorm takes from any namespace: `netns/NAME:veth0`.
    pub fn port(&self) -> String {
        format!("netns/{}:{}", self.namespace.name(), self.interface)
    }

    /// The interface's MAC address.
    pub fn mac(&self) -> [u8; 6] {
        mac(self.number)
    }

    /// The interface's IPv4 address, a /24, where the lab has addresses.
    pub fn ipv4(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.network, self.number + 1)
    }

    /// The interface's IPv6 address, a /64, where the lab has IPv6.
    pub fn ipv6(&self) -> Ipv6Addr {
        let [network, number] = [self.network, self.number + 1].map(u16::from);
        Ipv6Addr::new(0xfd77, 0, 0, network, 0, 0, 0, number)
    }

    /// A command that will run in the namespace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.namespace.command(program)
    }

    /// The interface's counters.
    ///
    /// # Errors
    /// When it is gone.
    pub fn counters(&self) -> Result<InterfaceCounters, NetError> {
        self.namespace.counters(&self.interface)
    }

    /// Starts to capture what arrives at the interface; returns when the kernel is capturing.
    ///
    /// # Errors
    /// When tcpdump cannot be run or is not ready within 10 s.
    pub fn capture(&self) -> Result<Capture, NetError> {
        self.capture_with(&CaptureOptions::default())
    }

    /// [`capture`](Self::capture) with options.
    ///
    /// # Errors
    /// As there.
    pub fn capture_with(&self, options: &CaptureOptions) -> Result<Capture, NetError> {
        Capture::start(&self.namespace, &self.interface, options)
    }

    /// Drops everything that arrives at the interface in an XDP program, the cheapest that a
    /// receiver can do, until the value is dropped.
    ///
    /// # Errors
    /// When clang or ip fail.
    pub fn drop_sink(&self) -> Result<DropSink, NetError> {
        DropSink::attach(&self.namespace, &self.interface)
    }

    /// Lets the peer redirect XDP frames to the interface, without GRO, which would join frames
    /// and change their order, until the value is dropped.
    ///
    /// # Errors
    /// When clang, ip or ethtool fail.
    pub fn polling_sink(&self) -> Result<PollingSink, NetError> {
        PollingSink::attach(&self.namespace, &self.interface)
    }

    /// Puts the kernel into a VLAN, of a service VLAN where there is one, until the interface is gone:
    /// what it sends has these tags, and it hears what has them, and what has none.
    ///
    /// # Errors
    /// When clang or tc fail.
    pub fn join_vlan(&self, outer: Option<u16>, inner: u16) -> Result<(), NetError> {
        vlans::join(&self.namespace, &self.interface, (outer, inner))
    }

    /// Whether the kernel hands the first tag to the peer beside a frame, or in its bytes.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn hand_tags_over_beside(&self, is_beside: bool) -> Result<(), NetError> {
        let features = ["tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"].map(|it| (it, is_beside));
        self.namespace.set_features(&self.interface, &features)
    }

    /// Brings the interface up or down.
    ///
    /// # Errors
    /// When it is gone.
    pub fn set_up(&self, up: bool) -> Result<(), NetError> {
        let state = if up { "up" } else { "down" };
        self.namespace.ip(&[&format!("link set {} {state}", self.interface)])
    }

    /// Switches the interface's GRO, and with it whether it polls.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn set_gro(&self, on: bool) -> Result<(), NetError> {
        self.namespace.set_features(&self.interface, &[("gro", on)])
    }

    /// Changes the longest packet it takes.
    ///
    /// # Errors
    /// When the interface is gone or refuses.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), NetError> {
        self.namespace.ip(&[&format!("link set {} mtu {mtu}", self.interface)])
    }

    /// Removes the interface, and so its peer: what unplugging a card looks like.
    ///
    /// # Errors
    /// When it is gone already.
    pub fn delete_interface(&self) -> Result<(), NetError> {
        self.namespace.ip(&[&format!("link del {}", self.interface)])
    }
}

/// Two namespaces and a veth pair, `veth0` in [`a`](Self::a) and `veth1` in [`b`](Self::b).
#[derive(Debug)]
pub struct Lab {
    /// The end that tests send from.
    pub a: End,
    /// The end that tests receive at.
    pub b: End,
}

impl Lab {
    /// A lab as [`LabOptions::default`] makes it.
    ///
    /// # Errors
    /// When `ip` or `ethtool` cannot be run or fail, which without root they do.
    pub fn new() -> Result<Self, NetError> {
        Self::with(&LabOptions::default())
    }

    /// A lab made to order.
    ///
    /// # Errors
    /// As [`Lab::new`].
    pub fn with(options: &LabOptions) -> Result<Self, NetError> {
        let name = leftovers::unique_name();
        let a = End::new(Namespace::create(format!("{name}-a"), options.ipv6)?, 0, 0);
        let b = End::new(Namespace::create(format!("{name}-b"), options.ipv6)?, 1, 0);
        link([&a, &b], options)?;
        Ok(Self { a, b })
    }
}

/// Two namespaces with a Linux router between them. Addresses, static neighbours and default
/// routes are always set; `a` and `b` reach each other through the router and no frame of ARP is
/// ever sent.
#[derive(Debug)]
pub struct RouterLab {
    /// The end that tests send from, `veth0`.
    pub a: End,
    /// The router's interface towards `a`, `veth1`.
    pub router_a: End,
    /// The router's interface towards `b`, `veth2`, in the same namespace.
    pub router_b: End,
    /// The end that tests receive at, `veth3`.
    pub b: End,
}

impl RouterLab {
    /// A router between two ends made to order; `gro` is that of `a` and `b`.
    ///
    /// # Errors
    /// As [`Lab::new`].
    pub fn with(options: &LabOptions) -> Result<Self, NetError> {
        let name = leftovers::unique_name();
        let options = LabOptions { addresses: true, ..options.clone() };
        let a = End::new(Namespace::create(format!("{name}-a"), options.ipv6)?, 0, 0);
        let router = Namespace::create(format!("{name}-r"), options.ipv6)?;
        let router_a = End::new(router.clone(), 1, 0);
        let router_b = End::new(router, 2, 1);
        let b = End::new(Namespace::create(format!("{name}-b"), options.ipv6)?, 3, 1);
        let [gro_a, gro_b] = options.gro;
        link([&a, &router_a], &LabOptions { gro: [gro_a, false], ..options.clone() })?;
        link([&router_b, &b], &LabOptions { gro: [false, gro_b], ..options.clone() })?;
        router_a.namespace.sysctl("net/ipv4/ip_forward", "1")?;
        a.namespace.ip(&[&format!("route add default via {}", router_a.ipv4())])?;
        b.namespace.ip(&[&format!("route add default via {}", router_b.ipv4())])?;
        if options.ipv6 {
            router_a.namespace.sysctl("net/ipv6/conf/all/forwarding", "1")?;
            a.namespace.ip(&[&format!("route add default via {}", router_a.ipv6())])?;
            b.namespace.ip(&[&format!("route add default via {}", router_b.ipv6())])?;
        }
        Ok(Self { a, router_a, router_b, b })
    }
}

/// Joins two ends, sets them as the options say and brings them up.
fn link([a, b]: [&End; 2], options: &LabOptions) -> Result<(), NetError> {
    let LabOptions { mtu, queues, .. } = options;
    let side = |end: &End| {
        let End { interface, .. } = end;
        let mac = Mac(end.mac());
        format!("{interface} mtu {mtu} address {mac} numtxqueues {queues} numrxqueues {queues}")
    };
    let peer_namespace = b.namespace.name();
    a.namespace.ip(&[&format!(
        "link add {} type veth peer name {} netns {peer_namespace}",
        side(a),
        side(b)
    )])?;
    for (end, peer, gro) in [(a, b, options.gro[0]), (b, a, options.gro[1])] {
        let offloads = ["tx", "tso", "gso"].map(|feature| (feature, options.offloads));
        end.namespace.set_features(&end.interface, &offloads)?;
        end.bring_up(peer, options)?;
        // After it is up: only then does the kernel tell the peer that frames can be redirected.
        end.set_gro(gro)?;
    }
    Ok(())
}

impl End {
    fn bring_up(&self, peer: &Self, options: &LabOptions) -> Result<(), NetError> {
        let interface = &self.interface;
        let neighbour = format!("lladdr {} dev {interface} nud permanent", Mac(peer.mac()));
        let mut commands = Vec::new();
        if options.addresses {
            commands.push(format!("addr add {}/24 dev {interface}", self.ipv4()));
        }
        if options.ipv6 {
            commands.push(format!("addr add {}/64 dev {interface} nodad", self.ipv6()));
        }
        commands.push(format!("link set {interface} up"));
        if options.addresses {
            commands.push(format!("neigh replace {} {neighbour}", peer.ipv4()));
        }
        if options.ipv6 {
            commands.push(format!("neigh replace {} {neighbour}", peer.ipv6()));
        }
        self.namespace.ip(&commands.iter().map(String::as_str).collect::<Vec<_>>())
    }
}
