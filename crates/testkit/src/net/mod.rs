//! Network namespaces for one test, joined by veth pairs.
//!
//! ```text
//! Lab         a: veth0 ---------------------------- veth1 :b
//! RouterLab   a: veth0 ---- veth1 :router: veth2 ---- veth3 :b
//! ```
//!
//! A lab sends no frame by itself: IPv6 is off unless enabled, neighbours are static, and without
//! addresses the kernel answers nothing. So a capture contains only the test's frames. A lab
//! removes everything on drop, panic or signal; the next process removes what a killed one left.

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
pub use sink::{ArrivalStamps, DropSink, PollingSink};

use crate::cleanup;
use crate::pcap::ReadError;

/// Reason why an operation in a lab failed.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// A program did not start.
    #[error("{program} cannot be run: {source}; cargo xtask setup installs what is missing")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// A program exited with an error.
    #[error("{command}: {message}")]
    Failed {
        /// The complete command line.
        command: String,
        /// Output of the program.
        message: String,
    },
    /// An event did not occur in time.
    #[error("{what} did not happen within {seconds} s; last output: {last_output}")]
    Timeout {
        /// Expected event.
        what: String,
        /// Timeout in seconds.
        seconds: u64,
        /// Last line of output.
        last_output: String,
    },
    /// The output of a program could not be parsed.
    #[error("{program} printed {found:?}; expected {expected}")]
    Unexpected {
        /// Name of the program.
        program: String,
        /// Output of the program.
        found: String,
        /// Description of the expected output.
        expected: &'static str,
    },
    /// A scratch file could not be written or read.
    #[error("scratch file: {0}")]
    Scratch(#[from] io::Error),
    /// A capture file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Options for the interfaces of a link.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// MTU in bytes, the same at both ends.
    pub mtu: u32,
    /// Number of transmit and of receive queues of each interface.
    pub queues: u32,
    /// Whether the interfaces of `a` and `b` use generic receive offload (GRO). It enables NAPI
    /// polling, so the peer can redirect XDP frames to the interface.
    pub gro: [bool; 2],
    /// Whether segmentation and checksum offloads are on. If off, frames of the kernel's own
    /// protocols look in a capture as on a wire.
    pub offloads: bool,
    /// Whether the interfaces have IPv4 addresses and static neighbours. If on, the kernel answers
    /// packets to these addresses.
    pub addresses: bool,
    /// Whether the interfaces also have IPv6 addresses. If on, the kernel may send neighbour
    /// discovery.
    pub ipv6: bool,
}

impl Default for LabOptions {
    /// Returns the quietest options: 1500 bytes, one queue, no GRO, offloads, addresses or IPv6.
    fn default() -> Self {
        let gro = [false; 2];
        Self { mtu: 1500, queues: 1, gro, offloads: false, addresses: false, ipv6: false }
    }
}

/// MAC address of the interface with this number in its lab.
const fn mac(interface: u8) -> [u8; 6] {
    // The locally administered prefix 02, then "WS".
    [0x02, 0x57, 0x53, 0, 0, interface]
}

/// Formats a MAC address with colons.
struct Mac([u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// An interface and its namespace.
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

    /// Namespace of the interface.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Interface name in its namespace.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Interface name as Wirestorm accepts it in any namespace: `netns/NAME:veth0`.
    pub fn port(&self) -> String {
        format!("netns/{}:{}", self.namespace.name(), self.interface)
    }

    /// MAC address of the interface.
    pub fn mac(&self) -> [u8; 6] {
        mac(self.number)
    }

    /// IPv4 address of the interface (a /24), if the lab has addresses.
    pub fn ipv4(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.network, self.number + 1)
    }

    /// IPv6 address of the interface (a /64), if the lab has IPv6.
    pub fn ipv6(&self) -> Ipv6Addr {
        let [network, number] = [self.network, self.number + 1].map(u16::from);
        Ipv6Addr::new(0xfd77, 0, 0, network, 0, 0, 0, number)
    }

    /// Builds a command that runs in the namespace.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.namespace.command(program)
    }

    /// Reads the kernel's counters of the interface.
    ///
    /// # Errors
    /// Fails if the interface no longer exists.
    pub fn counters(&self) -> Result<InterfaceCounters, NetError> {
        self.namespace.counters(&self.interface)
    }

    /// Starts a capture of received frames; returns once the kernel captures.
    ///
    /// # Errors
    /// Fails if tcpdump cannot be run or is not ready within 10 s.
    pub fn capture(&self) -> Result<Capture, NetError> {
        self.capture_with(&CaptureOptions::default())
    }

    /// [`capture`](Self::capture) with options.
    ///
    /// # Errors
    /// Same as [`capture`](Self::capture).
    pub fn capture_with(&self, options: &CaptureOptions) -> Result<Capture, NetError> {
        Capture::start(&self.namespace, &self.interface, options)
    }

    /// Attaches an XDP program that drops all received frames, until the value is dropped. This is
    /// the cheapest receiver.
    ///
    /// # Errors
    /// Fails if clang or ip fails.
    pub fn drop_sink(&self) -> Result<DropSink, NetError> {
        DropSink::attach(&self.namespace, &self.interface)
    }

    /// Attaches an XDP program that writes the time of arrival into PTP frames, until the value is
    /// dropped.
    ///
    /// # Errors
    /// Fails if clang, ip or ethtool fails.
    pub fn stamp_arrivals(&self) -> Result<ArrivalStamps, NetError> {
        ArrivalStamps::attach(&self.namespace, &self.interface)
    }

    /// Enables the peer to redirect XDP frames to the interface, until the value is dropped. It
    /// works without GRO, which would merge and reorder frames.
    ///
    /// # Errors
    /// Fails if clang, ip or ethtool fails.
    pub fn polling_sink(&self) -> Result<PollingSink, NetError> {
        PollingSink::attach(&self.namespace, &self.interface)
    }

    /// Puts the kernel's traffic on this interface into a VLAN, inside a service VLAN if `outer` is
    /// set. Frames that it sends get these tags; it receives frames with these tags and untagged
    /// ones.
    ///
    /// # Errors
    /// Fails if clang or tc fails.
    pub fn join_vlan(&self, outer: Option<u16>, inner: u16) -> Result<(), NetError> {
        vlans::join(&self.namespace, &self.interface, (outer, inner))
    }

    /// Selects whether the kernel passes the first VLAN tag to the peer beside the frame or inside
    /// it.
    ///
    /// # Errors
    /// Fails if the interface no longer exists.
    pub fn set_vlan_offload(&self, is_beside: bool) -> Result<(), NetError> {
        let features = ["tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"].map(|it| (it, is_beside));
        self.namespace.set_features(&self.interface, &features)
    }

    /// Brings the interface up or down.
    ///
    /// # Errors
    /// Fails if the interface no longer exists.
    pub fn set_up(&self, up: bool) -> Result<(), NetError> {
        let state = if up { "up" } else { "down" };
        self.namespace.ip(&[&format!("link set {} {state}", self.interface)])
    }

    /// Switches the interface's GRO and with it NAPI polling.
    ///
    /// # Errors
    /// Fails if the interface no longer exists.
    pub fn set_gro(&self, on: bool) -> Result<(), NetError> {
        self.namespace.set_features(&self.interface, &[("gro", on)])
    }

    /// Changes the MTU of the interface.
    ///
    /// # Errors
    /// Fails if the interface no longer exists or rejects the MTU.
    pub fn set_mtu(&self, mtu: u32) -> Result<(), NetError> {
        self.namespace.ip(&[&format!("link set {} mtu {mtu}", self.interface)])
    }

    /// Removes the interface and its peer, like unplugging a card.
    ///
    /// # Errors
    /// Fails if the interface no longer exists.
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
    /// Creates a lab with [`LabOptions::default`].
    ///
    /// # Errors
    /// Fails if `ip` or `ethtool` cannot be run or fails, as without root.
    pub fn new() -> Result<Self, NetError> {
        Self::with(&LabOptions::default())
    }

    /// Creates a lab with these options.
    ///
    /// # Errors
    /// Same as [`Lab::new`].
    pub fn with(options: &LabOptions) -> Result<Self, NetError> {
        let name = cleanup::unique_name();
        let a = End::new(Namespace::create(format!("{name}-a"), options.ipv6)?, 0, 0);
        let b = End::new(Namespace::create(format!("{name}-b"), options.ipv6)?, 1, 0);
        link([&a, &b], options)?;
        Ok(Self { a, b })
    }
}

/// Two namespaces with a Linux router between them. Addresses, static neighbours and default routes
/// are always set. `a` and `b` reach each other through the router, without ARP.
#[derive(Debug)]
pub struct RouterLab {
    /// The end that tests send from, `veth0`.
    pub a: End,
    /// The router's interface to `a`, `veth1`.
    pub router_a: End,
    /// The router's interface to `b`, `veth2`, in the same namespace.
    pub router_b: End,
    /// The end that tests receive at, `veth3`.
    pub b: End,
}

impl RouterLab {
    /// Creates a router between two ends; `options.gro` applies to `a` and `b`.
    ///
    /// # Errors
    /// Same as [`Lab::new`].
    pub fn with(options: &LabOptions) -> Result<Self, NetError> {
        let name = cleanup::unique_name();
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

/// Joins two ends with a veth pair, configures them and brings them up.
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
        // Set GRO after the interface is up: only then the kernel updates the peer's XDP features.
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
